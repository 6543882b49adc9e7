//! An inbox's bell: how a sender tells a receiver of a packet, and how the receiver sleeps until
//! one does.

use super::system;
use crate::sync::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Duration;

/// In shared memory.
#[derive(Clone, Copy)]
pub(super) struct Bell<'a> {
    /// Whether the receiver sleeps.
    pub word: &'a AtomicU64,
    /// A bit a lane: something may be there.
    pub bits: &'a [AtomicU64],
}

impl Bell<'_> {
    /// Tells the receiver of a packet in this lane. A sender that dies before has left a packet
    /// that comes with the lane's next; one that dies on the way lets the receiver sleep until it
    /// next looks by itself.
    pub fn ring_for(self, lane: usize) {
        self.bits[lane / 64].fetch_or(1 << (lane % 64), SeqCst);
        if self.word.load(SeqCst) != 0 && self.word.swap(0, SeqCst) != 0 {
            system::wake(self.word);
        }
    }

    /// The lanes of this word that have been rung for since the last call.
    pub fn rung(self, at: usize) -> u64 {
        // A look does not disturb senders; only something new takes the line from them.
        match self.bits[at].load(Relaxed) {
            0 => 0,
            _ => self.bits[at].swap(0, SeqCst),
        }
    }

    /// Sleeps until a packet is sent, at most this long, and not if one has arrived already.
    pub fn sleep(self, at_most: Duration) {
        // Either the sender sees that we sleep, or we see its bit: both are in one order with both
        // looks.
        self.word.store(system::ASLEEP, SeqCst);
        if self.bits.iter().all(|bits| bits.load(SeqCst) == 0) {
            system::sleep(self.word, at_most);
        }
        self.word.store(0, SeqCst);
    }
}
