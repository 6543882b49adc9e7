//! Which cache entries a coherence event is filling or emptying, so that threads of a node that miss on the
//! same block make one request, and no two events reserve one entry.

use crate::cache::{Cache, WAYS};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Independent parts; a set of the cache belongs to one.
const SHARDS: usize = 64;

#[derive(Default)]
struct Shard {
    events: Mutex<Vec<(Tag, usize)>>,
    ended: Condvar,
}

/// The events under way.
pub(crate) struct Pending {
    shards: Box<[Shard]>,
}

/// What a thread that found no usable copy does next.
pub(crate) enum Plan<'a> {
    /// Nothing: another thread's event has ended, look again.
    Retry,
    /// Fetch the block into this reserved entry.
    Fill(Reservation<'a>),
    /// The block is there, clean: obtain the right to write.
    Upgrade(Reservation<'a>),
    /// The set is full: evict this block first, then look again.
    Evict(Reservation<'a>),
}

/// An entry that no other event touches until this is dropped.
pub(crate) struct Reservation<'a> {
    shard: &'a Shard,
    /// The block of the event.
    pub tag: Tag,
    /// The entry it fills or empties.
    pub entry: usize,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        lock(self.shard).retain(|event| event.1 != self.entry);
        self.shard.ended.notify_all();
    }
}

/// No code that holds this lock can panic between its steps, so a poisoned list is a whole one.
fn lock(shard: &Shard) -> MutexGuard<'_, Vec<(Tag, usize)>> {
    shard.events.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pending {
    pub fn new() -> Self {
        Pending {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        }
    }

    /// Decides, atomically, what to do about a block that this thread wants to read or write.
    pub fn plan(&self, cache: &Cache, tag: Tag, write: bool) -> Plan<'_> {
        let (set, _) = cache.set_of(tag);
        let shard = &self.shards[set % SHARDS];
        let mut events = lock(shard);
        if events.iter().any(|event| event.0 == tag) {
            drop(
                shard
                    .ended
                    .wait(events)
                    .unwrap_or_else(PoisonError::into_inner),
            );
            return Plan::Retry;
        }
        if let Some(entry) = cache.find(tag) {
            match cache.status(entry) {
                LocalStatus::Shared if write => {
                    events.push((tag, entry));
                    return Plan::Upgrade(Reservation { shard, tag, entry });
                }
                LocalStatus::Invalid => {}
                _ => return Plan::Retry,
            }
        }
        cache.tick();
        let free = cache
            .victims(set)
            .into_iter()
            .find(|&entry| !events.iter().any(|event| event.1 == entry));
        let Some(entry) = free else {
            debug_assert!(events.len() >= WAYS);
            drop(
                shard
                    .ended
                    .wait(events)
                    .unwrap_or_else(PoisonError::into_inner),
            );
            return Plan::Retry;
        };
        match (cache.status(entry), cache.tag_at(entry)) {
            (LocalStatus::Invalid, _) | (_, None) => {
                events.push((tag, entry));
                Plan::Fill(Reservation { shard, tag, entry })
            }
            (_, Some(victim)) => {
                events.push((victim, entry));
                Plan::Evict(Reservation {
                    shard,
                    tag: victim,
                    entry,
                })
            }
        }
    }

    /// Reserves a block that is in the cache, to evict it; `None` when it is not there or has an event already.
    pub fn reserve(&self, cache: &Cache, tag: Tag) -> Option<Reservation<'_>> {
        let (set, _) = cache.set_of(tag);
        let shard = &self.shards[set % SHARDS];
        let mut events = lock(shard);
        let entry = cache.find(tag)?;
        if events.iter().any(|event| event.1 == entry)
            || cache.status(entry) == LocalStatus::Invalid
        {
            return None;
        }
        events.push((tag, entry));
        Some(Reservation { shard, tag, entry })
    }
}
