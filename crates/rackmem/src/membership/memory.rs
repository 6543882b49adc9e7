//! A store within this process.

use super::{Beat, Groups, Result, Role, Roster, Snapshot, Store};
use rackmem_fabric::Whole;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// For racks whose nodes are all in this process, and for tests.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::membership::{Memory, Store};
/// use std::time::Duration;
///
/// let store = Memory::default();
/// let seen = store.load(Duration::from_secs(1))?;
/// assert!(seen.roster.is_none(), "no rack yet");
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Memory {
    members: Mutex<Snapshot>,
    groups: Mutex<Option<Groups>>,
}

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        // Nothing panics half-way through a change.
        self.members.lock().whole()
    }
}

impl Store for Memory {
    fn load(&self, _: Duration) -> Result<Snapshot> {
        Ok(*self.lock())
    }

    fn propose(&self, next: &Roster, _: Duration) -> Result<bool> {
        let mut now = self.lock();
        let version = now.roster.map_or(0, |roster| roster.view.version);
        let taken = version.checked_add(1) == Some(next.view.version);
        if taken {
            now.roster = Some(*next);
        }
        Ok(taken)
    }

    fn beat(&self, role: Role, beat: Beat, _: Duration) -> Result<()> {
        self.lock().beats[role.index()] = Some(beat);
        Ok(())
    }

    fn groups(&self, _: Duration) -> Result<Option<Groups>> {
        Ok(self.groups.lock().whole().clone())
    }

    fn propose_groups(&self, next: &Groups, _: Duration) -> Result<bool> {
        let mut now = self.groups.lock().whole();
        let version = now.as_ref().map_or(0, |groups| groups.version);
        let taken = version.checked_add(1) == Some(next.version);
        if taken {
            *now = Some(next.clone());
        }
        Ok(taken)
    }
}
