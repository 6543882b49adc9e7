//! A node keeps locks of other homes while there is room, and gives the coldest ones up when there
//! is not.
//!
//! A hand goes round all locks, a bounded number at a time. A lock that a thread has entered since
//! the hand came by last stays; of another one at rest the node gets rid as
//! [`rackmem_proto::gcp::Keeping`] says, with the packets of leaving (`Yield`, `YieldAck`). A
//! question that was lost is asked again when the hand comes by the next time.

use super::cell::Cell;
use super::table::Locks;
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Net, Receiver};
use rackmem_proto::gcp::Keeping;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

/// Locks to look at, and to give up, at a time: in a tick, and by a thread that has waited for a
/// lock.
pub(crate) const IN_A_TICK: Effort = Effort {
    looks: 1024,
    gives: 128,
};
pub(crate) const IN_AN_ENTRY: Effort = Effort {
    looks: 16,
    gives: 4,
};
/// How often the room is measured at most.
const MEASURED: Duration = Duration::from_millis(500);

/// See above.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    looks: usize,
    gives: usize,
}

/// Where the hand is.
#[derive(Default)]
struct Hand {
    shard: usize,
    /// Of this shard, those that it has yet to come by.
    cells: Vec<Arc<Cell>>,
    measured: Option<Instant>,
    /// Shards that it has gone round since it gave a lock up.
    fruitless: usize,
}

/// See the module.
pub(crate) struct Pressure {
    /// Bytes that locks of other homes may take.
    room: AtomicUsize,
    hand: Mutex<Hand>,
}

impl Default for Pressure {
    fn default() -> Self {
        Pressure {
            room: AtomicUsize::new(usize::MAX),
            hand: Mutex::default(),
        }
    }
}

impl Locks {
    /// Whether locks of other homes take more than this, or than there was room for.
    #[inline]
    pub fn crowded(&self, least: usize) -> bool {
        self.abroad_bytes() > least.min(self.pressure.room.load(Relaxed))
    }

    fn abroad_bytes(&self) -> usize {
        self.kept[0].load(Relaxed)
    }

    /// Gives locks up if they take more than `room` says there is, which is asked now and then.
    pub fn relieve(
        &self,
        room: impl FnOnce() -> usize,
        effort: Effort,
        net: &dyn Net,
        reply: &mut dyn Receiver,
    ) {
        let mut hand = match self.pressure.hand.try_lock() {
            Ok(hand) => hand,
            // What another thread was about to do is done by it, or later.
            Err(TryLockError::WouldBlock) => return,
            Err(TryLockError::Poisoned(hand)) => hand.into_inner(),
        };
        if hand.measured.is_none_or(|at| at.elapsed() >= MEASURED) {
            hand.measured = Some(Instant::now());
            hand.fruitless = 0;
            self.pressure.room.store(room(), Relaxed);
        }
        // All that is left is in use, or the state of locks that programs have handles of: to look
        // again at once costs time.
        if hand.fruitless > 2 * self.shards.len() {
            return;
        }
        let (mut looks, mut gives) = (effort.looks, effort.gives);
        while looks > 0 && gives > 0 && self.abroad_bytes() > self.pressure.room.load(Relaxed) {
            looks -= 1;
            let Some(cell) = hand.cells.pop() else {
                self.turn_to_next_shard(&mut hand);
                continue;
            };
            if self.pass_by(&cell, net, reply) {
                gives -= 1;
                hand.fruitless = 0;
            }
        }
    }

    /// The hand keeps no lock that it has yet to come by: it goes on with the next shard.
    pub(super) fn let_go(&self) {
        if let Ok(mut hand) = self.pressure.hand.try_lock() {
            hand.cells = Vec::new();
        }
    }

    fn turn_to_next_shard(&self, hand: &mut Hand) {
        hand.shard = (hand.shard + 1) % self.shards.len();
        hand.fruitless += 1;
        let shard = self.shards[hand.shard].read();
        let shard = shard.whole();
        // What a node has of a lock whose home may die in its turn is a copy that counts, unless
        // a majority has it anyhow.
        let spare = |cell: &&Arc<Cell>| match cell.tag.home().is_own() {
            true => !self.is_home(cell.tag),
            false => cell.recorded.load(Relaxed),
        };
        hand.cells = shard.values().filter(spare).cloned().collect();
    }

    /// The hand comes by. Says whether the lock is given up.
    fn pass_by(&self, cell: &Arc<Cell>, net: &dyn Net, reply: &mut dyn Receiver) -> bool {
        let mut gives = false;
        let out = self.turn(cell, |state, out| {
            if state.lock.is_over() || state.entered_since() || state.awaited() {
                return;
            }
            if cell.recorded.load(Relaxed) {
                gives = !state.lock.in_use() && !cell.words().is_empty();
                if gives {
                    cell.content.clear();
                    out.dropped();
                }
                return;
            }
            let keeping = state.act(cell, Body::None, out, |lock, fx| lock.get_rid(fx));
            gives = !matches!(keeping, Keeping::Used | Keeping::Nothing);
        });
        self.send(out, net, reply);
        gives
    }
}
