//! Numbers of the messages from one node to another, by which a receiver knows each for a new one.
//!
//! A lane is a block of coherent memory that both nodes change. Where its home has copies it can be
//! again what it was, and nothing says so: the change that a dead node's cache had alone is undone,
//! and with it what the other node had changed before. Then messages lie there that were taken
//! long ago, whose memory is somebody else's by now, or some are missing.
//!
//! So who sends counts, outside of the lane, beginning with the number of its life. Who takes a
//! message knows by its number whether it is one more, one that it had, or one behind others that
//! it never got.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Bits of a number that count; above is the sender's incarnation.
const COUNT: u32 = 40;

/// What this node has numbered, and heard of others.
#[derive(Default)]
pub(super) struct Numbers {
    /// By receiver: the number of the last message.
    sent: OnceLock<Box<[AtomicU64]>>,
    /// By sender: the number of the last message, 0 if none was heard yet.
    heard: Mutex<Vec<u64>>,
}

/// What a message's number says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It comes after the last one.
    Next,
    /// It comes after one that has not come.
    Behind,
    /// It has come before.
    Again,
}

impl Numbers {
    /// The next message to a node of `nodes`, by a node in its `life`th incarnation. Called while
    /// the lane is this node's alone, so numbers rise in a lane.
    pub fn next(&self, to: usize, nodes: usize, life: u64) -> u64 {
        let fresh = || (0..nodes).map(|_| AtomicU64::new(life << COUNT)).collect();
        let sent = self.sent.get_or_init(fresh);
        sent.get(to)
            .map_or(0, |last| last.fetch_add(1, Relaxed) + 1)
    }

    /// A message from a node was taken.
    pub fn hear(&self, from: usize, number: u64) -> Arrival {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.len() <= from {
            heard.resize(from + 1, 0);
        }
        let last = heard[from];
        heard[from] = number.max(last);
        let first_of_life = number & ((1 << COUNT) - 1) == 1;
        match number {
            again if again <= last => Arrival::Again,
            // From before this node listened there may have been any.
            next if last == 0 || next == last + 1 => Arrival::Next,
            _ if first_of_life => Arrival::Next,
            _ => Arrival::Behind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_come_does_not_come_again_and_what_is_missing_is_noticed() {
        let (sender, receiver) = (Numbers::default(), Numbers::default());
        let next = || sender.next(1, 3, 5);
        let (one, two, three, four) = (next(), next(), next(), next());
        let hear = |number| receiver.hear(2, number);
        assert_eq!(hear(two), Arrival::Next, "it began to listen just now");
        assert_eq!(hear(one), Arrival::Again);
        assert_eq!(hear(two), Arrival::Again);
        assert_eq!(hear(four), Arrival::Behind);
        assert_eq!(hear(three), Arrival::Again);
        assert_eq!(hear(next()), Arrival::Next);
        // The sender has died and is back.
        let again = Numbers::default();
        let (first, second, third) = (
            again.next(1, 3, 6),
            again.next(1, 3, 6),
            again.next(1, 3, 6),
        );
        assert_eq!(hear(first), Arrival::Next);
        assert_eq!(hear(next()), Arrival::Again, "of its last life");
        assert_eq!(hear(third), Arrival::Behind);
        assert_eq!(hear(second), Arrival::Again);
        // Of another sender, and to another receiver.
        assert_eq!(receiver.hear(0, sender.next(0, 3, 5)), Arrival::Next);
    }
}
