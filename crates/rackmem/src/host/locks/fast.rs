//! The way into a lock that is here and that nobody else wants: one word,
//! and no word to the protocol.
//!
//! While the word is open, threads come and go by it alone. Whatever else happens to the lock
//! closes it first, and tells the protocol of those inside as if they had just come. It is opened
//! again when nobody is inside, waits, or is waited for, so a thread that finds it open when it
//! leaves did come by it.

use crate::sync::AtomicU64;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use rackmem_proto::gcp::{Access, Right};

/// Who is inside by a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Inside {
    pub readers: u16,
    pub writer: bool,
    /// How many have entered since the word was opened; wraps.
    pub entries: u32,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Word(AtomicU64);

const READERS: u64 = 0xffff;
const WRITER: u64 = 1 << 16;
const READS: u64 = 1 << 17;
const WRITES: u64 = 1 << 18;
const ENTRY: u64 = 1 << 32;

impl Word {
    /// Enters, if that is possible without anybody else.
    #[inline]
    pub fn enter(&self, access: Access) -> bool {
        let mut word = self.0.load(Relaxed);
        loop {
            let (free, inside) = match access {
                Access::Read => (
                    word & READS != 0 && word & WRITER == 0 && word & READERS != READERS,
                    1,
                ),
                Access::Write => (word & WRITES != 0 && word & (WRITER | READERS) == 0, WRITER),
            };
            if !free {
                return false;
            }
            let next = word.wrapping_add(inside + ENTRY);
            match self.0.compare_exchange_weak(word, next, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
    }

    /// Leaves, if the word is still what this thread is inside by.
    #[inline]
    pub fn leave(&self, access: Access) -> bool {
        let mut word = self.0.load(Relaxed);
        loop {
            let inside = match access {
                Access::Read if word & READERS != 0 => 1,
                Access::Write if word & WRITER != 0 => WRITER,
                _ => return false,
            };
            let next = word - inside;
            match self.0.compare_exchange_weak(word, next, Release, Relaxed) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
    }

    /// Lets threads in by the word, as far as the right goes.
    pub fn open(&self, right: Right) {
        let flags = match right {
            Right::None => 0,
            Right::Shared => READS,
            Right::Modified => READS | WRITES,
        };
        self.0.store(flags, Release);
    }

    /// Nobody enters or leaves by the word any more. Says who is inside by it.
    pub fn close(&self) -> Inside {
        let word = self.0.swap(0, AcqRel);
        Inside {
            readers: (word & READERS) as u16,
            writer: word & WRITER != 0,
            entries: (word >> 32) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_lets_in_readers_together_and_writers_alone() {
        let word = Word::default();
        assert!(!word.enter(Access::Read));
        word.open(Right::Shared);
        assert!(word.enter(Access::Read) && word.enter(Access::Read));
        assert!(!word.enter(Access::Write));
        assert!(word.leave(Access::Read) && word.leave(Access::Read));
        assert!(!word.leave(Access::Read));
        word.open(Right::Modified);
        assert!(word.enter(Access::Write));
        assert!(!word.enter(Access::Read) && !word.enter(Access::Write));
        assert!(word.leave(Access::Write) && word.enter(Access::Read));
        assert!(!word.enter(Access::Write));
    }

    #[test]
    fn who_is_inside_when_a_word_is_closed_leaves_another_way() {
        let word = Word::default();
        word.open(Right::Modified);
        assert!(word.enter(Access::Write));
        let inside = Inside {
            readers: 0,
            writer: true,
            entries: 1,
        };
        assert_eq!(word.close(), inside);
        assert!(!word.leave(Access::Write));
        assert!(!word.enter(Access::Read));
        assert_eq!(word.close(), Inside::default());
    }
}
