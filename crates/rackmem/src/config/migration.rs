//! Which blocks the switch owns (§5.2.2). What a node does about it is
//! `rackmem_proto::engine::Migrating`.

use std::time::Duration;

/// Which blocks the switch owns: the hottest, period by period.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Migration, Rack};
/// use std::time::Duration;
///
/// let migration = Migration { period: Duration::from_millis(20), ..Migration::default() };
/// let rack = Rack::builder(2).migration(migration).build()?;
/// assert!(rack.node(0).has_switch());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Migration {
    /// How long heat is counted before it decides.
    pub period: Duration,
    /// Entries that one home agent moves to the switch at the end of a period, at most.
    pub top: u32,
    /// Packets to cache agents in a period that make an entry worth moving.
    pub least: u32,
    /// Blocks whose heat an agent counts at a time.
    pub tracked: u32,
    /// Periods without an invalidation after which an entry goes back.
    pub patience: u32,
    /// Entries that go back at the end of a period for being cold, at most.
    pub leave: u32,
}

impl Default for Migration {
    /// The paper's 10 ms and top 1000; an entry that was cold for 5 s goes back.
    fn default() -> Self {
        Migration {
            period: Duration::from_millis(10),
            top: 1000,
            least: 1,
            tracked: 4096,
            patience: 500,
            leave: 64,
        }
    }
}

impl Migration {
    pub(crate) fn policy(&self) -> rackmem_proto::flowcc::Migration {
        rackmem_proto::flowcc::Migration {
            top: self.top,
            least: self.least,
            tracked: self.tracked,
        }
    }
}

/// What the switch looks like to its shadow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub ways: u8,
    pub sets: usize,
}
