//! What the nodes of a rack tell each other about a store: keys that others watch have changed,
//! clients have published something.
//!
//! Every pair of nodes has a lane (`lane.rs`), a block in which one leaves messages and from which
//! the other takes them. A node looks at its lanes as long as somebody of it attends, in a thread
//! (`listen.rs`): a look at a block that nobody has written costs no packet. Who has subscribed to
//! what is in `directory.rs`.
//!
//! A lane that stays full loses messages, and its receiver knows: it takes every key for changed
//! and tells those who missed something that was published. The same when a node dies, with which
//! messages may have gone, and where one is missing by its number (`numbers.rs`).
//!
//! All of this is in the store's region (`layout/superblock.rs`); until somebody needs it nobody
//! touches it.

mod changes;
mod directory;
mod ending;
mod lane;
mod listen;
mod message;
mod news;
mod numbers;
mod publish;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rackmem::window::WindowMut;

use super::core::Core;
use crate::error::Result;
use crate::layout::superblock::{EVENTS, FLUSH_BYTES, SETTINGS_BYTES, WATCHERS};
use crate::memory::{Memory, MemoryError};

pub(crate) use self::changes::{Became, Change, watching};
pub(crate) use self::directory::Kind as SubscriptionKind;
pub(crate) use self::message::{Listener, Message};
pub(crate) use self::news::News;

/// How long a message waits for room in a lane whose receiver does not take what is there.
const ROOM: Duration = Duration::from_millis(100);
/// Between two looks whether there is room.
const PAUSE: Duration = Duration::from_micros(50);
/// What makes a message too long for a lane: this part of a block. Its memory is its own then.
const FAR: usize = 4;

/// This node's part.
#[derive(Default)]
pub(crate) struct Bus {
    /// No more than there are servers on this store in this process.
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
    attending: Mutex<listen::Attending>,
    directory: directory::Directory,
    numbers: numbers::Numbers,
    /// How many of this node want to hear of every change.
    all_ears: Mutex<usize>,
}

impl Bus {
    fn listeners(&self) -> MutexGuard<'_, Vec<Weak<dyn Listener>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever listens at this node hears a message.
    fn hear(&self, message: &Message) {
        let all: Vec<_> = self.listeners().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|listener| listener.hear(message));
    }

    fn idle(&self) {
        let all: Vec<_> = self.listeners().iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|listener| listener.idle());
    }

    pub fn add_listener(&self, listener: Weak<dyn Listener>) {
        let mut all = self.listeners();
        all.retain(|other| other.strong_count() != 0);
        all.push(listener);
    }
}

impl<M: Memory> Core<M> {
    /// A word of the superblock that rarely changes.
    fn setting(&self, at: usize) -> Result<u64> {
        let settings = self.map.settings(self.base);
        let look = || {
            self.memory
                .snapshot(settings, SETTINGS_BYTES, |view| view.u64(at))
        };
        look().or_else(|error| self.insist(error, look))
    }

    /// The classes of keyspace events that are published, the same in the whole rack.
    #[inline]
    pub fn events(&self) -> Result<u64> {
        self.setting(EVENTS)
    }

    /// Changes them for the whole rack.
    pub fn set_events(&self, classes: u64) -> Result<()> {
        let settings = self.map.settings(self.base);
        self.memory.update(settings, SETTINGS_BYTES, |view| {
            view.set_u64(EVENTS, classes)
        })?;
        Ok(self.memory.publish(settings)?)
    }

    /// One more of this node wants to hear of every change, or one fewer.
    pub fn hear_all(&self, on: bool) -> Result<()> {
        let ears = self.bus.all_ears.lock();
        let mut ears = ears.unwrap_or_else(PoisonError::into_inner);
        *ears = if on {
            *ears + 1
        } else {
            ears.saturating_sub(1)
        };
        let (bit, on) = (1 << self.memory.id(), *ears != 0);
        let set = || {
            self.memory.update(self.base, FLUSH_BYTES, |view| {
                let others = view.u64(WATCHERS) & !bit;
                view.set_u64(WATCHERS, others | if on { bit } else { 0 });
            })
        };
        set().or_else(|error| self.insist(error, set))?;
        // Who flushes next may die with this block.
        Ok(self.memory.publish(self.base)?)
    }

    /// Tells the nodes in `nodes`, as bits. Who cannot be told is dead, or knows that it misses
    /// something.
    pub fn tell(&self, nodes: u64, message: &Message) {
        let me = self.memory.id();
        for node in (0..self.map.nodes as u16).filter(|node| nodes >> node & 1 != 0) {
            if node == me {
                self.bus.hear(message);
            } else {
                // A message to a node that cannot be reached is one to a dead node: see `listen`.
                let _ = self.send(usize::from(node), message);
            }
        }
    }

    fn send(&self, to: usize, message: &Message) -> std::result::Result<(), MemoryError> {
        let lane = self.map.lane(self.base, to, usize::from(self.memory.id()));
        let state = self.memory.snapshot(lane, lane::HEADER, lane::State::load);
        let state = state.or_else(|error| {
            // What it held died with a node; the receiver finds out as well.
            self.memory.accept(lane)?;
            let _ = error;
            self.memory.snapshot(lane, lane::HEADER, lane::State::load)
        })?;
        let Some(mut packed) = message.packed().filter(|_| state.listens) else {
            return Ok(());
        };
        let far = packed.size() > self.map.block / FAR;
        if far {
            let addr = self.alloc_near(to as u16, packed.len())?;
            self.memory.write(addr, packed.first)?;
            self.memory
                .write(addr + packed.first.len() as u64, packed.second)?;
            packed.far = Some(addr);
        }
        let put = self.put((to, lane), &packed);
        // After an error it may lie there.
        if let (Some(addr), Ok(put)) = (packed.far, &put)
            && *put != lane::Put::Done
        {
            self.memory.free(addr, packed.len())?;
        }
        put.map(|_| ())
    }

    /// Puts a message in a lane, waiting for room for a while.
    fn put(
        &self,
        (to, lane): (usize, u64),
        packed: &lane::Packed<'_>,
    ) -> std::result::Result<lane::Put, MemoryError> {
        let (block, mut since) = (self.map.block, None);
        loop {
            let late = since.is_some_and(|since: Instant| since.elapsed() >= ROOM);
            let number = || {
                let (nodes, life) = (self.map.nodes, self.memory.life());
                self.bus.numbers.next(to, nodes, life)
            };
            let put = |view: &mut WindowMut<'_>| lane::put(view, packed, number, late);
            match self.memory.update(lane, block, put)? {
                lane::Put::Full => {
                    since.get_or_insert_with(Instant::now);
                    rackmem::waiting::sleeps();
                    std::thread::sleep(PAUSE);
                }
                done => return Ok(done),
            }
        }
    }
}
