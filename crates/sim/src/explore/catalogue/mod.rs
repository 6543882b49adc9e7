//! The scenarios: of racks whose members stay (`steady`), of those that fail (`epochs`), and of
//! those that remove a region (`removed`).

mod epochs;
mod removed;
mod steady;

use super::scenario::Op;
use super::scenario::{Budget, Program, Scenario, Size};
use crate::world::Owners;
use epochs::EPOCHS;
use removed::REMOVED;
use steady::STEADY;

/// A switch in which two blocks want the same place.
const ONE_PLACE: Owners = Owners::Switch { ways: 1, sets: 1 };
/// A switch in which they both fit.
const TWO_PLACES: Owners = Owners::Switch { ways: 2, sets: 1 };

/// One packet is lost and one comes twice.
const SOME: Budget = Budget {
    losses: 1,
    duplicates: 1,
    early: 0,
    retries: 0,
    moves: 0,
    epochs: 0,
};
/// Besides, a timeout is early and a refused request is repeated too soon.
const MORE: Budget = Budget {
    losses: 1,
    duplicates: 1,
    early: 1,
    retries: 1,
    moves: 0,
    epochs: 0,
};

/// A perfect network.
const NONE: Budget = Budget {
    losses: 0,
    duplicates: 0,
    ..SOME
};

/// With so many new epochs.
const fn and_epochs(budget: Budget, epochs: u8) -> Budget {
    Budget { epochs, ..budget }
}

/// With entries moved so often.
const fn and_moves(budget: Budget, moves: u8) -> Budget {
    Budget { moves, ..budget }
}

const fn on(node: u16, ops: &'static [Op]) -> Program {
    Program { node, ops }
}

/// Pinned: where these change, the behaviour of a role has.
const fn size(states: usize, transitions: usize) -> Option<Size> {
    Some(Size {
        states,
        transitions,
    })
}

const BASE: Scenario = Scenario {
    name: "",
    shows: "",
    rack: Owners::HomeOnly,
    nodes: 3,
    homes: &[0, 1],
    kept: &[],
    young: &[],
    late: false,
    programs: &[],
    in_switch: &[],
    failures: &[],
    inside: false,
    in_kernel: false,
    budget: SOME,
    deep: MORE,
    segments: 1,
    sometimes: &[],
    size: None,
    mutation: None,
};

const SWITCH: Scenario = Scenario {
    rack: TWO_PLACES,
    in_switch: &[0, 1],
    ..BASE
};

/// All of them.
pub const SCENARIOS: &[Scenario] = &JOINED;

const COUNT: usize = STEADY.len() + EPOCHS.len() + REMOVED.len();

const JOINED: [Scenario; COUNT] = {
    let mut all = [BASE; COUNT];
    let lists = [STEADY, EPOCHS, REMOVED];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut nth = 0;
        while nth < lists[list].len() {
            all[at] = lists[list][nth];
            (at, nth) = (at + 1, nth + 1);
        }
        list += 1;
    }
    all
};
