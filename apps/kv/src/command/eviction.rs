//! What happens when the rack's memory is full: `maxmemory-policy`.
//!
//! The limit is the memory that the rack has for the store. A write that finds none makes room, if
//! the policy lets it, and is tried again; reads pay nothing for it.

use super::{Failure, Outcome};
use crate::error::{Error, Result};
use crate::memory::{Memory, MemoryError};
use crate::server::settings::Policy;
use crate::server::shared::{Shared, Stats};
use crate::store::{Db, Store};

/// Keys that go at a time.
const ROUND: usize = 16;
/// How often a write is tried again.
pub(super) const MAX_ROUNDS: usize = 64;
/// Keys with an expiry, of which the one goes that would expire first.
const SAMPLE: usize = 5;
/// Random keys that are looked at for one that has an expiry.
const LOOKS: usize = 256;

/// Whether a command failed for want of memory.
pub(super) fn is_full(outcome: &Outcome) -> bool {
    let full = Error::Memory(MemoryError::OutOfMemory).code();
    matches!(outcome, Err(Failure::Store(error)) if error.code() == full)
}

/// Removes some keys as the policy says. Whether there were any.
///
/// # Errors
/// The store's.
pub(super) fn evict<M: Memory>(shared: &Shared<M>, stats: &Stats) -> Result<bool> {
    let policy = shared.control.settings.policy();
    let mut evicted = 0;
    for _ in 0..ROUND {
        let Some((db, key)) = choose(&shared.store, policy)? else {
            break;
        };
        evicted += u64::from(db.remove(&key)?);
    }
    Stats::add(&stats.evicted, evicted);
    Ok(evicted > 0)
}

/// The next key to go.
fn choose<M: Memory>(store: &Store<M>, policy: Policy) -> Result<Option<(Db<'_, M>, Vec<u8>)>> {
    let among: fn(&Db<'_, M>) -> Result<usize> = match policy {
        Policy::None => return Ok(None),
        Policy::AnyKey => |db| db.len(),
        Policy::AnyExpiring | Policy::FirstToExpire => |db| db.expiring(),
    };
    let Some(db) = database(store, among)? else {
        return Ok(None);
    };
    let key = match policy {
        Policy::AnyKey => db.random_key()?,
        Policy::AnyExpiring => expiring(&db)?.map(|(_, key)| key),
        _ => {
            let mut first: Option<(u64, Vec<u8>)> = None;
            for _ in 0..SAMPLE {
                let found = expiring(&db)?;
                first = [first, found].into_iter().flatten().min();
            }
            first.map(|(_, key)| key)
        }
    };
    Ok(key.map(|key| (db, key)))
}

/// A database, by how many of its keys may go.
fn database<M: Memory>(
    store: &Store<M>,
    among: impl Fn(&Db<'_, M>) -> Result<usize>,
) -> Result<Option<Db<'_, M>>> {
    let all = (0..crate::DATABASES as u8).filter_map(|number| store.db(number));
    let counted = all
        .map(|db| Ok((among(&db)?, db)))
        .collect::<Result<Vec<_>>>()?;
    let total: usize = counted.iter().map(|(count, _)| count).sum();
    if total == 0 {
        return Ok(None);
    }
    let mut at = fastrand::usize(..total);
    for (count, db) in counted {
        if at < count {
            return Ok(Some(db));
        }
        at -= count;
    }
    Ok(None)
}

/// A random key that has an expiry, which comes first.
fn expiring<M: Memory>(db: &Db<'_, M>) -> Result<Option<(u64, Vec<u8>)>> {
    for _ in 0..LOOKS {
        let Some(key) = db.random_key()? else {
            return Ok(None);
        };
        let expiry = db.meta(&key)?.map_or(0, |meta| meta.expiry);
        if expiry != 0 {
            return Ok(Some((expiry, key)));
        }
    }
    Ok(None)
}
