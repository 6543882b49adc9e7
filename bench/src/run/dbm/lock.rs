//! The lock over all of a database.

use crate::locks::{AnyLock, LockKind, Pthread};
use rackmem_dbm::{Lock, LockFailure};
use std::str::FromStr;
use std::sync::Arc;

/// Which one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OneLock {
    /// The C library's, of a process that has all nodes: what none of the others can beat.
    Pthread,
    /// One that works between nodes.
    Rack(LockKind),
}

impl OneLock {
    /// All of them, in the order of tables.
    pub fn all() -> impl Iterator<Item = OneLock> {
        let rack = LockKind::ALL.iter().map(|row| OneLock::Rack(row.0));
        std::iter::once(OneLock::Pthread).chain(rack)
    }

    /// Its name in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            OneLock::Pthread => "pthread",
            OneLock::Rack(kind) => kind.name(),
        }
    }

    /// What guests of nodes have to be made for.
    pub(super) fn of_rack(self) -> LockKind {
        match self {
            OneLock::Pthread => LockKind::default(),
            OneLock::Rack(kind) => kind,
        }
    }
}

impl FromStr for OneLock {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = OneLock::all().find(|lock| lock.name() == name);
        known.ok_or_else(|| format!("no lock is `{name}`"))
    }
}

/// A lock as one node has it.
pub(super) enum Taken {
    Process(Arc<Pthread>),
    Rack(AnyLock),
}

impl Lock for Taken {
    fn shared(&self, section: &mut dyn FnMut()) -> Result<(), LockFailure> {
        match self {
            Taken::Process(lock) => {
                let _held = lock.read()?;
                section();
            }
            Taken::Rack(lock) => {
                let _held = lock.read()?;
                section();
            }
        }
        Ok(())
    }

    fn exclusive(&self, section: &mut dyn FnMut()) -> Result<(), LockFailure> {
        match self {
            Taken::Process(lock) => {
                let _held = lock.write()?;
                section();
            }
            Taken::Rack(lock) => {
                let _held = lock.write()?;
                section();
            }
        }
        Ok(())
    }
}
