//! What threads of a world want done.

use super::block::COUNTERS;
use super::config::Config;
use super::random::Random;
use rackmem_proto::wire::NodeId;
use std::fmt::{self, Display};

/// What to do with a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Look at all of it.
    Read,
    /// Store a counter's next value without looking.
    Write,
    /// Increment a counter.
    Add,
    /// Look at all of it, and keep no copy.
    Fetch,
    /// Write all of it, and keep no copy.
    Store,
    /// Increment a counter at its home, and keep no copy.
    Operate,
}

impl Action {
    /// Whether it looks at what is there.
    pub fn looks(self) -> bool {
        !matches!(self, Action::Write | Action::Store)
    }

    /// Whether it changes something.
    pub fn writes(self) -> bool {
        !matches!(self, Action::Read | Action::Fetch)
    }

    /// Whether it moves whole blocks, as of long ranges.
    pub fn is_long(self) -> bool {
        matches!(self, Action::Fetch | Action::Store)
    }
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Of a block's counter.
    Access(u32, usize, Action),
    /// Hold a block's lock for a while, as a reader or as the writer.
    Hold(u32, bool),
    /// More memory from a home.
    Alloc(NodeId),
    /// Empty the node's cache.
    Flush,
    /// Make sure that what the node gave away has arrived.
    Sound,
}

impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Access(_, counter, action) => write!(f, "{action:?} of counter {counter}"),
            Operation::Hold(_, true) => write!(f, "hold the lock as a reader"),
            Operation::Hold(_, false) => write!(f, "hold the lock as the writer"),
            Operation::Alloc(home) => write!(f, "more memory of node {home}"),
            Operation::Flush => write!(f, "empty the cache"),
            Operation::Sound => write!(f, "see that what was given away has arrived"),
        }
    }
}

impl Operation {
    /// What a thread does next.
    pub fn draw(config: &Config, random: &mut Random) -> Self {
        let mix = config.mix;
        let mut draw = random.below(u64::from(mix.sum())) as u32;
        let block = random.below(u64::from(config.blocks)) as u32;
        let counter = random.below(COUNTERS as u64) as usize;
        for (share, action) in [
            (mix.read, Action::Read),
            (mix.write, Action::Write),
            (mix.add, Action::Add),
            (mix.fetch, Action::Fetch),
            (mix.store, Action::Store),
            (mix.operate, Action::Operate),
        ] {
            if draw < share {
                return Operation::Access(block, counter, action);
            }
            draw -= share;
        }
        if draw < mix.hold {
            return Operation::Hold(block, random.below(3) != 0);
        }
        Operation::Alloc(random.below(u64::from(config.nodes)) as NodeId)
    }
}
