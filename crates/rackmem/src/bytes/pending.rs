//! Which cache entries a coherence event is filling or emptying,
//! so that threads of a node that miss on the same block make one request,
//! and no two events reserve one entry.

use crate::bytes::node_cache::NodeCache;
use rackmem_fabric::Whole;
use rackmem_proto::engine::{self, Entries, Purpose};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Independent parts; a set of the cache belongs to one.
const SHARDS: usize = 64;

#[derive(Default)]
struct Shard {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    events: Vec<(Tag, usize)>,
    /// Threads that wait for an event to end; telling nobody would still be a system call.
    waiting: usize,
}

impl State {
    fn reserved(&self, entry: usize) -> bool {
        self.events.iter().any(|event| event.1 == entry)
    }
}

/// The events under way.
pub(crate) struct Pending {
    shards: Box<[Shard]>,
}

/// What a thread that found no usable copy does next.
pub(crate) enum Plan<'a> {
    /// Nothing: another thread's event has ended, look again.
    Retry,
    /// An event with this reserved entry.
    Begin(Purpose, Reservation<'a>),
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
        let mut state = lock(self.shard);
        state.events.retain(|event| event.1 != self.entry);
        if state.waiting > 0 {
            self.shard.ended.notify_all();
        }
    }
}

/// No code that holds this lock can panic between its steps, so a poisoned list is a whole one.
fn lock(shard: &Shard) -> MutexGuard<'_, State> {
    shard.state.lock().whole()
}

/// Sleeps until some event of the shard has ended.
fn wait<'a>(shard: &'a Shard, mut state: MutexGuard<'a, State>) -> Plan<'a> {
    state.waiting += 1;
    let mut state = shard.ended.wait(state).whole();
    state.waiting -= 1;
    Plan::Retry
}

/// What an operation needs, reserved for it. An error: others' events to end.
fn begin<'a>(
    cache: &NodeCache,
    (shard, mut state): (&'a Shard, MutexGuard<'a, State>),
    tag: Tag,
    write: bool,
) -> Result<Plan<'a>, MutexGuard<'a, State>> {
    let looking = Looking {
        cache,
        state: &state,
    };
    match engine::plan(&looking, tag, write) {
        engine::Plan::Hit(_) => Ok(Plan::Retry),
        engine::Plan::Wait | engine::Plan::WaitForRoom => Err(state),
        engine::Plan::Begin(entry, purpose) => {
            state.events.push((tag, entry));
            Ok(Plan::Begin(purpose, Reservation { shard, tag, entry }))
        }
        engine::Plan::Evict(entry, tag) => {
            state.events.push((tag, entry));
            Ok(Plan::Evict(Reservation { shard, tag, entry }))
        }
    }
}

/// A cache and the events under way in a part of it.
struct Looking<'a> {
    cache: &'a NodeCache,
    state: &'a State,
}

impl Entries for Looking<'_> {
    type Entry = usize;
    type Block = Tag;

    fn under_way(&self, tag: Tag) -> bool {
        self.state.events.iter().any(|event| event.0 == tag)
    }

    fn find(&self, tag: Tag) -> Option<(usize, LocalStatus)> {
        let entry = self.cache.find(tag)?;
        Some((entry, self.cache.status(entry)))
    }

    fn room(&self, tag: Tag) -> Option<(usize, Option<Tag>)> {
        let shard = |tag| self.cache.set_of(tag).0 % SHARDS;
        let near = |other| shard(other) == shard(tag);
        self.cache
            .room(tag, near, |entry| !self.state.reserved(entry))
    }
}

impl Pending {
    pub fn new() -> Self {
        Pending {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
        }
    }

    /// Decides, atomically, what to do about a block that this thread wants to read or write.
    pub fn plan(&self, cache: &NodeCache, tag: Tag, write: bool) -> Plan<'_> {
        let shard = self.shard(cache, tag);
        let state = lock(shard);
        match begin(cache, (shard, state), tag, write) {
            Ok(plan) => plan,
            Err(state) => wait(shard, state),
        }
    }

    /// The same for a thread that does not wait for others' events. `None`: the block is here, or
    /// others' events are in the way.
    pub fn plan_now(&self, cache: &NodeCache, tag: Tag, write: bool) -> Option<Plan<'_>> {
        let shard = self.shard(cache, tag);
        let plan = begin(cache, (shard, lock(shard)), tag, write).ok();
        plan.filter(|plan| !matches!(plan, Plan::Retry))
    }

    fn shard(&self, cache: &NodeCache, tag: Tag) -> &Shard {
        let (set, _) = cache.set_of(tag);
        &self.shards[set % SHARDS]
    }

    /// Reserves a block that is in the cache, to evict it; `None` when it is not there or has an
    /// event already.
    pub fn reserve(&self, cache: &NodeCache, tag: Tag) -> Option<Reservation<'_>> {
        let shard = self.shard(cache, tag);
        let mut state = lock(shard);
        let entry = cache.find(tag)?;
        if state.reserved(entry) || cache.status(entry) == LocalStatus::Invalid {
            return None;
        }
        state.events.push((tag, entry));
        Some(Reservation { shard, tag, entry })
    }
}
