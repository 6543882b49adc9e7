//! What may break in a world, and how often.

use super::config::Config;
use super::random::Random;
use rackmem_proto::wire::{Copyset, NodeId};

/// How often each of these happens in a run, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Failures {
    /// The switch dies, and another one comes later.
    pub switch: u32,
    /// A node dies, and starts again later.
    pub node: u32,
    /// The node with the shadow dies, and starts again later.
    pub shadow: u32,
    /// A node empties its cache and leaves, and comes back later.
    pub leave: u32,
    /// A few nodes cannot talk to the rest for a while. They are excluded, and start again later.
    pub partition: u32,
    /// A node becomes slow for a while.
    pub slow: u32,
    /// A node is stopped for a while, or only its keeper. The members' own keepers exclude it then
    /// if it is for long. Nothing else breaks in such a world, and threads hold no locks for
    /// purposes of their own.
    pub stop: u32,
    /// Out of a thousand, failures that happen right after the one before,
    /// while its rebuild is under way.
    pub together: u32,
    /// Bit `n`: failure number `n` of the plan does not happen.
    pub omit: u64,
}

impl Failures {
    /// Nothing breaks.
    pub const NONE: Failures = Failures {
        switch: 0,
        node: 0,
        shadow: 0,
        leave: 0,
        partition: 0,
        slow: 0,
        stop: 0,
        together: 300,
        omit: 0,
    };
    /// The switch dies, twice.
    pub const SWITCH: Failures = Failures {
        switch: 2,
        ..Failures::NONE
    };
    /// Nodes die.
    pub const NODE: Failures = Failures {
        node: 2,
        ..Failures::NONE
    };
    /// The shadow dies with its node.
    pub const SHADOW: Failures = Failures {
        shadow: 2,
        ..Failures::NONE
    };
    /// Nodes leave and come back.
    pub const LEAVE: Failures = Failures {
        leave: 2,
        ..Failures::NONE
    };
    /// The network falls apart.
    pub const PARTITION: Failures = Failures {
        partition: 2,
        ..Failures::NONE
    };
    /// Nodes are slow.
    pub const SLOW: Failures = Failures {
        slow: 2,
        ..Failures::NONE
    };
    /// Nodes are stopped, or their keepers late.
    pub const STOP: Failures = Failures {
        stop: 3,
        ..Failures::NONE
    };
    /// One of each that a world without keepers has, often two at once.
    pub const ALL: Failures = Failures {
        switch: 1,
        node: 1,
        shadow: 1,
        leave: 1,
        partition: 1,
        slow: 1,
        stop: 0,
        together: 500,
        omit: 0,
    };

    /// Whether anything breaks.
    pub fn any(&self) -> bool {
        self.switch + self.node + self.shadow + self.leave + self.partition + self.slow + self.stop
            > 0
    }
}

/// Something that breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The switch dies.
    Switch,
    /// This node dies.
    Node(NodeId),
    /// The node with the shadow dies.
    Shadow,
    /// This node leaves as it should.
    Leave(NodeId),
    /// These nodes cannot talk to the others and to the switch.
    Partition(Copyset),
    /// This node takes so many times longer.
    Slow(NodeId, u64),
    /// Nothing of this node runs.
    Stop(NodeId),
    /// The thread that keeps this node's lease does not run.
    Starve(NodeId),
}

/// A failure and its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// Its number, for [`Failures::omit`].
    pub number: usize,
    /// When so many of a thousand operations are done.
    pub when: u64,
    /// How long after that, in nanoseconds.
    pub after: u64,
    /// What.
    pub what: Failure,
    /// How long it lasts, in nanoseconds.
    pub lasts: u64,
}

/// What breaks in a run, in order.
pub fn plan(config: &Config, random: &mut Random) -> Vec<Planned> {
    let failures = config.failures;
    let nodes = u64::from(config.nodes);
    let mut what = Vec::new();
    let node = |random: &mut Random| random.below(nodes) as NodeId;
    let stops = if config.has_keepers() {
        failures.stop
    } else {
        0
    };
    for _ in 0..stops {
        let node = node(random);
        what.push(match random.below(3) {
            0 => Failure::Starve(node),
            _ => Failure::Stop(node),
        });
    }
    let failures = if stops > 0 {
        Failures {
            together: failures.together,
            omit: failures.omit,
            ..Failures::NONE
        }
    } else {
        failures
    };
    if config.has_switch() {
        what.extend((0..failures.switch).map(|_| Failure::Switch));
        what.extend((0..failures.shadow).map(|_| Failure::Shadow));
    }
    for _ in 0..failures.node {
        what.push(Failure::Node(node(random)));
    }
    // A home that leaves takes its memory along: only who has none may.
    let guests = nodes - u64::from(config.homes());
    let leaving = if guests > 0 { failures.leave } else { 0 };
    for _ in 0..leaving {
        what.push(Failure::Leave((nodes - 1 - random.below(guests)) as NodeId));
    }
    for _ in 0..failures.partition {
        let size = 1 + random.below((nodes - 1) / 2);
        let first = random.below(nodes);
        let members = (0..size).map(|i| ((first + i) % nodes) as NodeId);
        what.push(Failure::Partition(
            members.fold(Copyset::EMPTY, Copyset::with),
        ));
    }
    for _ in 0..failures.slow {
        what.push(Failure::Slow(node(random), 3 + random.below(20)));
    }
    for at in (1..what.len()).rev() {
        what.swap(at, random.below(at as u64 + 1) as usize);
    }
    let mut when = 0;
    let share = 700 / what.len().max(1) as u64;
    what.into_iter()
        .enumerate()
        .map(|(number, what)| {
            let together = random.per_mille(failures.together);
            when += if together { 0 } else { 1 + random.below(share) };
            Planned {
                number,
                when,
                after: random.below(if together { 300_000 } else { 30_000 }),
                what,
                lasts: 100_000 + random.below(600_000),
            }
        })
        .filter(|planned| failures.omit >> planned.number.min(63) & 1 == 0)
        .collect()
}
