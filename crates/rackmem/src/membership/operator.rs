//! What people who look after a rack do from outside it.

use super::{Beat, Links, MembershipError, Result, Role, Roster, Store};
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
