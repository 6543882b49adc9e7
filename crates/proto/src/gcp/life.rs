//! Freeing a lock, and making the next one in its place.
//!
//! A lock's *place* is type-stable: what was a lock's address is never anything but a lock's. To
//! the protocol it stays one lock for ever, whose entry, versions and floors go on, so nothing that
//! was sent about an earlier lock can be mistaken. What changes is one word of what the lock
//! protects, its *life*, which is read and written inside the lock like any other of its bytes.
//!
//! | step | who | inside to write | the word |
//! |---|---|---|---|
//! | a lock is made | its home | yes | [`Life::next`] of what is found there |
//! | a handle is used | any node | as its user wants | must be the handle's: [`Life::admits`] |
//! | a lock is freed | any node | yes | [`Life::freed`]; then the home takes the lock, and so has the word |
//! | its place is used again | its home | – | only where the home has [`Life::is_vacant`] itself |
//!
//! **Lives do not go back.** A death takes a lock back to the newest data that a living node has
//! (`settle`). A life begins at the home, and without the home there is no lock: so what a living
//! node has is never of an earlier life than the home's last. Who has freed a lock waits until the
//! home has the word: from then on that holds for the end of the life as well. What dies with a
//! node that has not heard so much is that the lock was freed at all: it lives on,
//! and may be freed again.

/// Which lock of a place this is, and whether it is one: the first eight bytes of what a lock
/// protects that can be freed. Later ones are larger numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Life(u64);

/// The lower bits of a word.
const STATE: u64 = 3;
const LIVE: u64 = 1;
const CLOSED: u64 = 2;
const VACANT: u64 = 3;

impl Life {
    /// No lock has been made there yet.
    pub const NONE: Life = Life(0);
    /// Bytes of it.
    pub const LEN: u32 = 8;

    /// From a word of what a lock protects, or of a packet.
    pub const fn from_word(word: u64) -> Self {
        Life(word)
    }

    /// As such a word.
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// Whether it is that of a lock which has not been freed.
    pub const fn is_live(self) -> bool {
        self.0 & STATE == LIVE
    }

    /// Whether another lock may be made in its place.
    pub const fn is_vacant(self) -> bool {
        self.0 & STATE == VACANT || self.0 == Life::NONE.0
    }

    /// Whether a handle on the lock of this life may enter a lock in which this is `found`.
    #[inline]
    pub const fn admits(self, found: Life) -> bool {
        self.0 == found.0
    }

    /// The life of the lock that is made where this is found. `None`: there is one,
    /// or its name still leads there.
    pub const fn next(self) -> Option<Life> {
        match self.is_vacant() {
            true => Some(Life((self.0 & !STATE).wrapping_add(STATE + 1) | LIVE)),
            false => None,
        }
    }

    /// The lock is no more, and its place is not to be used yet: its name still leads there.
    #[must_use]
    pub const fn closed(self) -> Life {
        Life(self.0 & !STATE | CLOSED)
    }

    /// The lock is no more.
    #[must_use]
    pub const fn freed(self) -> Life {
        Life(self.0 & !STATE | VACANT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_follow_each_other_and_never_go_back() {
        let mut last = Life::NONE;
        for _ in 0..10 {
            let live = last.next().unwrap();
            assert!(live > last && live.is_live() && !live.is_vacant());
            assert_eq!(live.next(), None, "there is a lock");
            let closed = live.closed();
            assert!(closed > live && !closed.is_live() && closed.next().is_none());
            let freed = closed.freed();
            assert_eq!(freed, live.freed());
            assert!(freed > closed && !freed.is_live() && freed.is_vacant());
            assert!(live.admits(live) && ![closed, freed, last].iter().any(|l| live.admits(*l)));
            last = freed;
        }
        assert_eq!(Life::from_word(last.to_word()), last);
    }
}
