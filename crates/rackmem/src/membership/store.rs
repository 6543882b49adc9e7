//! What a store of rosters and beats can do.

use super::{Beat, Beats, Groups, Result, Role, Roster};
use std::time::Duration;

/// What a look at a store shows, all of it from moments between the beginning and the end of the
/// look.
///
/// ```
/// use rackmem::membership::Snapshot;
///
/// let nothing = Snapshot::default();
/// assert!(nothing.roster.is_none() && nothing.beats.iter().all(Option::is_none));
/// ```
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
///
/// ```
/// use rackmem::membership::{Memory, Role, Roster, Store, View};
/// use std::time::Duration;
///
/// fn is_member(store: &dyn Store, node: u16) -> rackmem::membership::Result<bool> {
///     let roster: Option<Roster> = store.load(Duration::from_secs(1))?.roster;
///     Ok(roster.is_some_and(|roster| roster.view.live.contains(node)))
/// }
/// assert!(!is_member(&Memory::default(), 3).unwrap());
/// ```
pub trait Store: Send + Sync {
    /// Shows the newest roster and the last beats.
    fn load(&self, within: Duration) -> Result<Snapshot>;

    /// Stores `next` if the newest roster is the version before; whether it did,
    /// as far as is known.
    fn propose(&self, next: &Roster, within: Duration) -> Result<bool>;

    /// Stores a beat in the place of the last one under this role.
    fn beat(&self, role: Role, beat: Beat, within: Duration) -> Result<()>;

    /// The newest groups: which members keep copies of which region. None before there is one.
    ///
    /// ```
    /// # fn main() -> Result<(), rackmem::membership::MembershipError> {
    /// use rackmem::membership::{
    ///     Asked, Copyset, Group, Groups, Layout, Memory, Store, Unchanged, View,
    /// };
    /// use std::time::Duration;
    ///
    /// let (store, within) = (Memory::default(), Duration::from_secs(1));
    /// let groups: Groups = store.groups(within)?.unwrap_or_default();
    /// let (live, lines) = (View::first(Copyset(0b111), false), Layout::new(64, 640).unwrap());
    /// let asked = Asked::new(lines, 3);
    /// let next = groups.create(("ledger", 0), asked, (&live, 0)).unwrap();
    /// assert!(store.propose_groups(&next, within)?);
    /// let ledger: &Group = &store.groups(within)?.unwrap().rows[0];
    /// assert_eq!((ledger.config.number, ledger.config.quorum()), (1, 2));
    /// let gone = next.replace(0, (2, 3), &live);
    /// assert_eq!(gone, Err(Unchanged::NotLive(3)));
    /// # Ok(())
    /// # }
    /// ```
    fn groups(&self, within: Duration) -> Result<Option<Groups>>;

    /// Stores `next` if the newest groups are the version before; whether it did,
    /// as far as is known.
    fn propose_groups(&self, next: &Groups, within: Duration) -> Result<bool>;
}
