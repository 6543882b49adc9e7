//! What a store of rosters and beats can do.

use super::{Beat, Beats, Result, Role, Roster};
use std::time::Duration;

/// What a look at a store shows, all of it from moments between the beginning and the end of the
/// look.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot {
    /// The newest roster; none before a rack has a member.
    pub roster: Option<Roster>,
    /// The last beats, by role.
    pub beats: Beats,
}

impl Default for Snapshot {
    fn default() -> Self {
        Snapshot {
            roster: None,
            beats: [None; Role::COUNT],
        }
    }
}

/// A place outside the rack that all its processes reach. Any number of threads and processes may
/// use it at once.
///
/// No operation takes much longer than `within`; after an error or a timeout it may still happen
/// later, but at most once. A process that is stopped in the middle of an operation must not keep
/// others from theirs.
pub trait Store: Send + Sync {
    /// Shows the newest roster and the last beats.
    fn load(&self, within: Duration) -> Result<Snapshot>;

    /// Stores `next` if the newest roster is the version before; whether it did,
    /// as far as is known.
    fn propose(&self, next: &Roster, within: Duration) -> Result<bool>;

    /// Stores a beat in the place of the last one under this role.
    fn beat(&self, role: Role, beat: Beat, within: Duration) -> Result<()>;
}
