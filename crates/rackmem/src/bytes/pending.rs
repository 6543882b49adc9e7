//! Which cache entries a coherence event is filling or emptying,
//! so that threads of a node that miss on the same block make one request,
//! and no two events reserve one entry.

use crate::bytes::cache::WAYS;
use crate::bytes::node_cache::NodeCache;
use rackmem_fabric::Whole;
use rackmem_proto::engine::{self, Entries, Pressure, Purpose, next_out};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
    events: Vec<Event>,
    /// Threads that wait for an event to end; telling nobody would still be a system call.
    waiting: usize,
    /// What is known of the shard's sets; none of them, until one of them has had to evict.
    pressure: Vec<Pressure>,
}

struct Event {
    tag: Tag,
    entry: usize,
    empties: bool,
}

impl State {
    fn reserved(&self, entry: usize) -> bool {
        self.events.iter().any(|event| event.entry == entry)
    }

    /// A block has to leave this set first, so that another one can come.
    fn evicts(&mut self, set: usize, (tag, old): (Tag, Tag)) {
        let nth = set / SHARDS;
        if self.pressure.len() <= nth {
            self.pressure.resize(nth + 1, Pressure::default());
        }
        self.pressure[nth].comes(tag);
        self.pressure[nth].leaves(old);
    }

    fn comes(&mut self, set: usize, tag: Tag) {
        if let Some(pressure) = self.pressure.get_mut(set / SHARDS) {
            pressure.comes(tag);
        }
    }
}

/// The events under way.
pub(crate) struct Pending {
    shards: Box<[Shard]>,
    /// Whether blocks leave before their room is needed at all.
    ahead: bool,
    /// Some set has had to evict.
    pressed: AtomicBool,
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
        state.events.retain(|event| event.entry != self.entry);
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

/// Takes an entry for an event; it empties it or not.
fn reserve<'a>(
    (shard, state): (&'a Shard, &mut State),
    (tag, entry): (Tag, usize),
    empties: bool,
) -> Reservation<'a> {
    state.events.push(Event {
        tag,
        entry,
        empties,
    });
    Reservation { shard, tag, entry }
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
        self.state.events.iter().any(|event| event.tag == tag)
    }

    fn makes_room(&self, tag: Tag) -> bool {
        let (set, _) = self.cache.set_of(tag);
        let mut events = self.state.events.iter();
        events.any(|event| event.empties && event.entry / WAYS == set)
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
    /// `ahead`: blocks leave before their room is needed.
    pub fn new(ahead: bool) -> Self {
        Pending {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            ahead,
            pressed: AtomicBool::new(false),
        }
    }

    /// What an operation needs, reserved for it. An error: others' events to end.
    fn begin<'a>(
        &'a self,
        cache: &NodeCache,
        (tag, write): (Tag, bool),
    ) -> Result<Plan<'a>, (&'a Shard, MutexGuard<'a, State>)> {
        let (shard, (set, _)) = (self.shard(cache, tag), cache.set_of(tag));
        let mut state = lock(shard);
        let looking = Looking {
            cache,
            state: &state,
        };
        match engine::plan(&looking, tag, write) {
            engine::Plan::Hit(_) => Ok(Plan::Retry),
            engine::Plan::Wait | engine::Plan::WaitForRoom => Err((shard, state)),
            engine::Plan::Begin(entry, purpose) => {
                if purpose.fetches() {
                    state.comes(set, tag);
                }
                let reserved = reserve((shard, &mut state), (tag, entry), false);
                Ok(Plan::Begin(purpose, reserved))
            }
            engine::Plan::Evict(entry, old) => {
                if cache.is_in_sets(entry) {
                    state.evicts(set, (tag, old));
                    self.pressed.store(self.ahead, Relaxed);
                }
                let reserved = reserve((shard, &mut state), (old, entry), true);
                Ok(Plan::Evict(reserved))
            }
        }
    }

    /// The block that is to leave beside an event of this purpose and entry, which is about to
    /// begin, so that the next one finds room.
    pub fn next_out(
        &self,
        cache: &NodeCache,
        purpose: Purpose,
        filled: &Reservation<'_>,
    ) -> Option<Reservation<'_>> {
        if !self.pressed.load(Relaxed) || !cache.is_in_sets(filled.entry) {
            return None;
        }
        let (shard, (set, _)) = (self.shard(cache, filled.tag), cache.set_of(filled.tag));
        let mut state = lock(shard);
        let nth = set / SHARDS;
        if !state.pressure.get(nth)?.evicts_ahead() {
            return None;
        }
        let looking = Looking {
            cache,
            state: &state,
        };
        let (entry, old) = next_out(&looking, filled.tag, purpose)?;
        // The thread may have a fault there while it uses what comes, and would wait for itself.
        if cache.strays(old) {
            return None;
        }
        state.pressure[nth].leaves(old);
        Some(reserve((shard, &mut state), (old, entry), true))
    }

    /// Decides, atomically, what to do about a block that this thread wants to read or write.
    pub fn plan(&self, cache: &NodeCache, tag: Tag, write: bool) -> Plan<'_> {
        match self.begin(cache, (tag, write)) {
            Ok(plan) => plan,
            Err((shard, state)) => wait(shard, state),
        }
    }

    /// The same for a thread that does not wait for others' events. `None`: the block is here, or
    /// others' events are in the way.
    pub fn plan_now(&self, cache: &NodeCache, tag: Tag, write: bool) -> Option<Plan<'_>> {
        let plan = self.begin(cache, (tag, write)).ok();
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
        Some(reserve((shard, &mut state), (tag, entry), true))
    }
}
