//! What happens when the store may not grow: `maxmemory` and `maxmemory-policy`.
//!
//! A command that may add something first makes room if the rack keeps more than it may, and is
//! refused if there is none ([`crate::server::limit`]). A write that finds the rack's own memory
//! full makes room too, if the policy lets it, and is tried again.

use super::{Command, Failure, Flags, Outcome, events};
use crate::error::{Error, Result};
use crate::memory::{Memory, MemoryError};
use crate::resp::args::Args;
use crate::server::session::Session;
use crate::server::settings::Policy;
use crate::server::shared::{Shared, Stats};
use crate::store::{Db, Store};

/// Keys that go at a time.
const ROUND: usize = 16;
/// How often a write is tried again.
pub(super) const MAX_ROUNDS: usize = 64;
/// Keys that go at a time where the rack keeps more than it may, and how often for one command.
const MAX_EVICTED: usize = 1024;
const MAX_RELIEF: usize = 8;
/// Random keys that are looked at for one that has an expiry.
const LOOKS: usize = 256;

/// The words of a refusal.
pub(super) const REFUSED: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Subcommands that may leave more than there was.
const GROWING: [(&str, &str); 2] = [("function", "load"), ("function", "restore")];
/// Commands that run others.
const RUNNING: [&str; 4] = ["eval", "evalsha", "fcall", "exec"];

/// Whether a command may leave more than there was.
pub(super) fn grows<M: Memory>(command: &Command<M>) -> bool {
    command.flags.has(Flags::WRITE) && !command.flags.has(Flags::SHRINKS)
}

/// Makes room for a command where the rack keeps more than it may. What a script writes is refused
/// by itself: see [`Session::over`].
///
/// # Errors
/// [`REFUSED`]: there is none; the store's.
pub(super) fn make_room<M: Memory>(
    shared: &Shared<M>,
    stats: &Stats,
    session: &mut Session,
    command: &Command<M>,
    args: Args<'_>,
) -> Outcome {
    session.over = false;
    let limit = &shared.control.limit;
    if limit.bytes() == 0 {
        return Ok(());
    }
    let runs = RUNNING.contains(&command.name);
    let adds = GROWING
        .iter()
        .any(|(name, word)| command.name == *name && args.len() > 1 && args.is(1, word));
    if !runs && !adds && !command.flags.has(Flags::WRITE) {
        return Ok(());
    }
    session.over = relieve(shared, stats, args.size())? != 0;
    let queued = session.queue.iter().flat_map(|queue| &queue.commands);
    let refused = match command.name {
        "exec" => queued
            .into_iter()
            .any(|one| grows(shared.commands.at(one.command))),
        _ => adds || grows(command),
    };
    match session.over && refused {
        true => Err(REFUSED.into()),
        false => Ok(()),
    }
}

/// Removes keys where the rack would keep more than it may with `adding` bytes more. By how much it
/// still would.
///
/// # Errors
/// The store's.
pub(super) fn relieve<M: Memory>(shared: &Shared<M>, stats: &Stats, adding: usize) -> Result<u64> {
    let limit = &shared.control.limit;
    let mut excess = limit.excess(&shared.store, adding)?;
    for _ in 0..MAX_RELIEF {
        if excess == 0 {
            break;
        }
        let freed = evict_bytes(shared, stats, limit.goal(excess))?;
        // What another node tells may be from before keys have gone there: then some more go.
        excess = limit.freed(&shared.store, freed)?;
        if freed == 0 {
            break;
        }
    }
    Ok(excess)
}

/// Notes the keys that a command uses, if the policy asks for that.
#[inline]
pub(super) fn note_uses<M: Memory>(
    shared: &Shared<M>,
    db: &Db<'_, M>,
    command: &Command<M>,
    args: Args<'_>,
) {
    let (uses, settings) = (&shared.control.uses, &shared.control.settings);
    if settings.policy().goes_by_use() && !command.flags.has(Flags::LOOKS) {
        let (now, counting) = (db.now(), settings.counting());
        let keys = command.keys.positions(args).map(|at| args.at(at));
        keys.for_each(|key| uses.note(db.number(), key, now, counting));
    }
}

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
    let mut evicted = 0;
    for _ in 0..ROUND {
        let Some((db, key)) = choose(shared)? else {
            break;
        };
        evicted += u64::from(remove(&db, &key)?);
    }
    Stats::add(&stats.evicted, evicted);
    Ok(evicted > 0)
}

/// Removes keys of so many bytes as the policy says; how many bytes there were.
fn evict_bytes<M: Memory>(shared: &Shared<M>, stats: &Stats, goal: u64) -> Result<u64> {
    let (mut evicted, mut freed) = (0, 0);
    for _ in 0..MAX_EVICTED {
        let Some((db, key)) = choose(shared)? else {
            break;
        };
        let bytes = db.footprint(&key)?.unwrap_or(0) as u64;
        if remove(&db, &key)? {
            (evicted, freed) = (evicted + 1, freed + bytes);
        }
        if freed >= goal {
            break;
        }
    }
    Stats::add(&stats.evicted, evicted);
    Ok(freed)
}

/// Removes a key and tells of it; whether it was there.
fn remove<M: Memory>(db: &Db<'_, M>, key: &[u8]) -> Result<bool> {
    let was = db.remove(key)?;
    if was {
        events::tell_evicted(db, key)?;
    }
    Ok(was)
}

/// The next key to go.
fn choose<M: Memory>(shared: &Shared<M>) -> Result<Option<(Db<'_, M>, Vec<u8>)>> {
    let settings = &shared.control.settings;
    let policy = settings.policy();
    let among: fn(&Db<'_, M>) -> Result<usize> = match policy {
        Policy::None => return Ok(None),
        Policy::AnyKey | Policy::AnyUnused | Policy::AnySeldom => |db| db.len(),
        _ => |db| db.expiring(),
    };
    let Some(db) = database(&shared.store, among)? else {
        return Ok(None);
    };
    let (now, counting) = (db.now(), settings.counting());
    // Of two that are used as seldom the one goes that was not used for longer.
    let rank = |key: &[u8]| {
        let used = shared.control.uses.of(db.number(), key);
        match policy.goes_by_count() {
            true => (used.count_at(now, counting), used.last),
            false => (0, used.last),
        }
    };
    let any = || Ok(db.random_key()?.map(|key| (rank(&key), key)));
    let expires = || Ok(expiring(&db)?.map(|(_, key)| (rank(&key), key)));
    let key = match policy {
        Policy::None => None,
        Policy::AnyKey => db.random_key()?,
        Policy::AnyExpiring => expiring(&db)?.map(|(_, key)| key),
        Policy::FirstToExpire => first(settings.samples(), || expiring(&db))?,
        Policy::AnyUnused | Policy::AnySeldom => first(settings.samples(), any)?,
        Policy::ExpiringUnused | Policy::ExpiringSeldom => first(settings.samples(), expires)?,
    };
    Ok(key.map(|key| (db, key)))
}

/// The key with the lowest rank of some.
fn first<R: Ord>(
    samples: usize,
    mut sample: impl FnMut() -> Result<Option<(R, Vec<u8>)>>,
) -> Result<Option<Vec<u8>>> {
    let mut first = None;
    for _ in 0..samples {
        first = [first, sample()?].into_iter().flatten().min();
    }
    Ok(first.map(|(_, key)| key))
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
