//! What people who look after a rack do from outside it.

use super::{Beat, Copyset, Groups, Links, MembershipError, Result, Role, Roster, Store, View};
use rackmem_proto::membership::Unchanged;
use rackmem_proto::wire::NodeId;
use std::time::{Duration, Instant};

/// How often a removal is proposed again when others change the rack at the same moment.
const ATTEMPTS: usize = 32;

/// A sign of life of a member, as seen from outside.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::membership::{Memory, Sign, watch};
/// use std::time::Duration;
///
/// let ms = Duration::from_millis(10);
/// let (roster, signs): (_, Vec<Sign>) = watch(&Memory::default(), ms, ms)?;
/// assert!(roster.is_none() && signs.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sign {
    /// Whose.
    pub role: Role,
    /// The incarnation that it was admitted with.
    pub incarnation: u32,
    /// How long ago its last beat was seen to come; none if none came while we watched.
    pub age: Option<Duration>,
    /// What it said of its links in that beat.
    pub links: Links,
    /// Whether a majority cannot reach it: it has been told to stop serving, and is excluded next.
    pub suspected: bool,
}

/// Watches a rack for at most `time`, or until every member has beaten,
/// and says what was seen last: the roster, none where no rack has ever been, and a row for each
/// member. Each operation of the store may take `within`.
///
/// # Errors
/// Those of the store.
pub fn watch(
    store: &dyn Store,
    time: Duration,
    within: Duration,
) -> Result<(Option<Roster>, Vec<Sign>)> {
    let start = Instant::now();
    let mut places = [None::<(Option<Beat>, Option<Instant>)>; Role::COUNT];
    loop {
        let snapshot = store.load(within)?;
        let now = Instant::now();
        let mut signs = Vec::new();
        for role in snapshot.roster.iter().flat_map(Roster::held) {
            let beat = snapshot.beats[role.index()];
            let place = &mut places[role.index()];
            let came = match *place {
                Some((before, _)) if before != beat => Some(now),
                Some((_, came)) => came,
                None => None,
            };
            *place = Some((beat, came));
            signs.push(Sign {
                role,
                incarnation: snapshot
                    .roster
                    .and_then(|roster| roster.incarnation(role))
                    .unwrap_or(0),
                age: came.map(|came| now - came),
                links: beat.map_or_else(Links::default, |beat| beat.links),
                suspected: snapshot.roster.is_some_and(|it| it.suspects.contains(role)),
            });
        }
        if start.elapsed() >= time || signs.iter().all(|sign| sign.age.is_some()) {
            return Ok((snapshot.roster, signs));
        }
        std::thread::sleep(within.min(time) / 10);
    }
}

/// Excludes a member as if it were dead: it is fenced, and the rack goes on without it.
/// What was only in its cache or its memory is lost.
///
/// # Errors
/// [`MembershipError::NotHeld`] when nobody holds this place; those of the store.
pub fn remove(store: &dyn Store, role: Role, within: Duration) -> Result<Roster> {
    for _ in 0..ATTEMPTS {
        let roster = store.load(within)?.roster;
        let Some(next) = roster.and_then(|roster| roster.exclude([role].into_iter())) else {
            return Err(MembershipError::NotHeld { role });
        };
        if store.propose(&next, within)? {
            return Ok(next);
        }
    }
    Err(MembershipError::Late {
        role,
        waited: within,
        cause: None,
    })
}

/// Gives the copies of a region that `old` keeps, or kept, to `new`, which fills while the region
/// is in use and counts when it has all. They may be one node: one that has come back has
/// forgotten.
///
/// ```
/// # fn main() {
/// use rackmem::membership::{Memory, MembershipError, replace};
/// use std::time::Duration;
///
/// let empty = Memory::default();
/// let error = replace(&empty, "ledger", (2, 3), Duration::from_millis(10)).unwrap_err();
/// assert!(matches!(error, MembershipError::NoGroup { .. }), "{error}");
/// # }
/// ```
///
/// # Errors
/// [`MembershipError::NoGroup`] and [`MembershipError::NotReplaced`]; those of the store.
pub fn replace(
    store: &dyn Store,
    region: &str,
    (old, new): (NodeId, NodeId),
    within: Duration,
) -> Result<Groups> {
    let next = |groups: &Groups, view: &View| {
        let (number, _) = groups.find(region).ok_or(Unchanged::NoGroup)?;
        groups.replace(number, (old, new), view)
    };
    change(store, region, within, next)
}

/// Has a region keep more copies from now on: 3, 5 or 7. The rack's lowest live node adds members
/// one at a time, each of which fills while the region is in use and counts when it has all.
///
/// ```
/// # fn main() {
/// use rackmem::membership::{Memory, MembershipError, grow};
/// use std::time::Duration;
///
/// let empty = Memory::default();
/// let error = grow(&empty, "ledger", 3, Duration::from_millis(10)).unwrap_err();
/// assert!(matches!(error, MembershipError::NoGroup { .. }), "{error}");
/// # }
/// ```
///
/// # Errors
/// [`MembershipError::NoGroup`] and [`MembershipError::NotReplaced`]; those of the store.
pub fn grow(store: &dyn Store, region: &str, copies: u8, within: Duration) -> Result<Groups> {
    let next = |groups: &Groups, view: &View| groups.grow(region, copies, view);
    change(store, region, within, next)
}

/// Proposes what comes next to the group of a region, until the store has taken it.
fn change(
    store: &dyn Store,
    region: &str,
    within: Duration,
    next: impl Fn(&Groups, &View) -> std::result::Result<Groups, Unchanged>,
) -> Result<Groups> {
    let mut first = Role::Node(0);
    for _ in 0..ATTEMPTS {
        let groups = store.groups(within)?.unwrap_or_default();
        let name = || region.to_owned();
        if groups.find(region).is_none() {
            return Err(MembershipError::NoGroup { name: name() });
        }
        let view = store.load(within)?.roster.map(|roster| roster.view);
        let view = view.unwrap_or_else(|| View::first(Copyset::EMPTY, false));
        first = view.live.iter().next().map_or(first, Role::Node);
        let next = next(&groups, &view);
        let next = next.map_err(|why| MembershipError::NotReplaced { name: name(), why })?;
        if store.propose_groups(&next, within)? {
            return Ok(next);
        }
    }
    Err(MembershipError::Late {
        role: first,
        waited: within,
        cause: None,
    })
}
