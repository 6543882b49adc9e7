//! A row of the table: 128 bytes, which never cross a block.
//!
//! | bytes | |
//! |---|---|
//! | 0..8 | state |
//! | 8..16 | address, of a claim the claimant's memory |
//! | 16..24 | length |
//! | 24..32 | element type |
//! | 32..40 | bytes of the name, contract, backing, a zero, and generation (4 bytes), lowest first |
//! | 40..128 | name |
//!
//! The generation rises with every claim and every removal, whatever the names, so that who has a
//! handle on what had this row before can tell.

use super::spec::{RegionSpec, What};
use crate::bytes::window::{Window, WindowMut};
use crate::host::rows;
use rackmem_proto::abd::{Durability, MIN_LINE};
use rackmem_proto::heap::Backing;
use rackmem_proto::membership::Survives;
use rackmem_proto::wire::{Contract, HomeId, Tag};

/// Bytes of a name at most.
pub(super) const MAX_NAME: usize = 88;
pub(super) use rows::ROW;

/// A row's state word.
pub(super) const EMPTY: u64 = 0;
pub(super) const CLAIMED: u64 = 1;
pub(super) const READY: u64 = rows::READY;
pub(super) const VACANT: u64 = 3;

pub(super) const STATE: usize = 0;
pub(super) const ADDR: usize = 8;
const LEN: usize = 16;
const TYPE: usize = 24;
const MIXED: usize = 32;
pub(super) const NAME: usize = 40;

/// What a look at a row tells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    Empty,
    /// Another name's.
    Other,
    /// Another name's that has been freed, and anybody's since.
    Left {
        generation: u32,
    },
    /// What had this name has been freed; by a call that has this number.
    Vacant {
        by: u64,
    },
    /// By a process that has memory here.
    Claimed {
        by: u64,
    },
    Ready(Ready),
}

/// A region that is there, or was until its home died.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Ready {
    pub addr: u64,
    pub what: What,
    pub generation: u32,
}

fn name_len(view: &Window<'_>) -> usize {
    (view.u64(MIXED) & 0xff) as usize
}

fn generation(view: &Window<'_>) -> u32 {
    (view.u64(MIXED) >> 32) as u32
}

/// What a row says that is ready; nothing where its contract or backing is of a later version.
fn ready(view: &Window<'_>) -> Option<Ready> {
    let [_, contract, backing, ..] = view.u64(MIXED).to_le_bytes();
    Some(Ready {
        addr: view.u64(ADDR),
        what: What {
            len: view.u64(LEN),
            element: view.u64(TYPE),
            contract: Contract::from_byte(contract)?,
            backing: Backing::from_byte(backing)?,
        },
        generation: generation(view),
    })
}

pub(super) fn look(view: &Window<'_>, name: &str) -> Row {
    let state = view.u64(STATE);
    if state == EMPTY {
        return Row::Empty;
    }
    if name_len(view) != name.len() || !view.eq(NAME, name.as_bytes()) {
        return match state {
            VACANT => Row::Left {
                generation: generation(view),
            },
            _ => Row::Other,
        };
    }
    match (state, ready(view)) {
        (CLAIMED, _) => Row::Claimed { by: view.u64(ADDR) },
        (READY, Some(ready)) => Row::Ready(ready),
        (READY, None) => Row::Other,
        _ => Row::Vacant { by: view.u64(ADDR) },
    }
}

fn put(view: &mut WindowMut<'_>, state: u64, addr: u64, name: &str, what: &What, generation: u32) {
    view.set_u64(STATE, state);
    view.set_u64(ADDR, addr);
    view.set_u64(LEN, what.len);
    view.set_u64(TYPE, what.element);
    let [a, b, c, d] = generation.to_le_bytes();
    let (contract, backing) = (what.contract as u8, what.backing as u8);
    let mixed = [name.len() as u8, contract, backing, 0, a, b, c, d];
    view.set_u64(MIXED, u64::from_le_bytes(mixed));
    view.write(NAME, name.as_bytes());
}

/// Somebody makes a region of this name.
pub(super) fn claim(view: &mut WindowMut<'_>, by: u64, name: &str, what: &What) {
    let next = generation(view).wrapping_add(1);
    put(view, CLAIMED, by, name, what, next);
}

/// It is made.
pub(super) fn finish(view: &mut WindowMut<'_>, addr: u64, name: &str, what: &What) -> Ready {
    let generation = generation(view);
    put(view, READY, addr, name, what, generation);
    Ready {
        addr,
        what: *what,
        generation,
    }
}

/// Nothing has this name any more. The row keeps it until another one takes it, and the number of
/// the call that has done it.
pub(super) fn vacate(view: &mut WindowMut<'_>, name: &str, by: u64) -> Mark {
    let next = generation(view).wrapping_add(1);
    put(view, VACANT, by, name, &What::NOTHING, next);
    Mark::of(view)
}

/// How a change has left a row.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    state: u64,
    addr: u64,
    generation: u32,
}

impl Mark {
    pub fn of(view: &Window<'_>) -> Self {
        Mark {
            state: view.u64(STATE),
            addr: view.u64(ADDR),
            generation: generation(view),
        }
    }

    /// Whether the row is as it was left, or has been changed again since.
    pub fn is_in(&self, view: &Window<'_>) -> bool {
        let now = Mark::of(view);
        let same =
            (now.state, now.addr, now.generation) == (self.state, self.addr, self.generation);
        let later = now.generation.wrapping_sub(self.generation).cast_signed() > 0;
        now.state != EMPTY && (same || later)
    }
}

/// The name in a row, whatever its state.
pub(super) fn name(view: &Window<'_>) -> Option<String> {
    let mut name = [0; MAX_NAME];
    let name = &mut name[..name_len(view).min(MAX_NAME)];
    view.read(NAME, name);
    std::str::from_utf8(name).ok().map(str::to_owned)
}

/// A named region, as the rack's table has it.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{HomeId, Rack, RegionInfo, RegionSpec};
///
/// let rack = Rack::local(2)?;
/// rack.node(1).create_region(&RegionSpec::new("log", 4096))?;
/// let all: Vec<RegionInfo> = rack.node(0).regions()?;
/// assert_eq!((all[0].spec.name(), all[0].home()), ("log", HomeId::of(1)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RegionInfo {
    /// What it is.
    pub spec: RegionSpec,
    /// Where its memory begins; its contract is part of this.
    pub addr: u64,
    /// How often its row of the table was taken and left, by whatever names: who has a name next
    /// has another one, or another row.
    pub generation: u32,
}

impl RegionInfo {
    /// Whose memory it is.
    pub fn home(&self) -> HomeId {
        Tag(self.addr).home()
    }

    /// Of a row that is ready.
    pub(crate) fn of(view: &Window<'_>) -> Option<Self> {
        if view.u64(STATE) != READY {
            return None;
        }
        let Ready {
            addr,
            what,
            generation,
        } = ready(view)?;
        Some(RegionInfo {
            spec: RegionSpec {
                name: name(view)?,
                len: usize::try_from(what.len).ok()?,
                element: what.element,
                contract: what.contract,
                backing: what.backing,
                home: Some(Tag(addr).home()),
                renew: false,
                copies: 0,
                line: MIN_LINE,
                two_rounds: false,
                held: false,
                durability: Durability::Memory,
                survives: Survives::Rest,
            },
            addr,
            generation,
        })
    }
}
