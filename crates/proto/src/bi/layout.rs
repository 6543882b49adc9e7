//! Where rows and rings stand in shared memory, word by word. All of it is lines of one writer.
//!
//! ```text
//! front      one line: what the region is (the host's)
//! a domain   one line: incarnation << 2 | presence, clock, modified, freed
//!            lines of words: which life of each domain it does not wait for
//!            one line each: tail and head of a ring
//!            rings: an entry is two words, extent and stamp (all ones: none yet)
//! ```

use super::board::{Board, DomainRow, OwnBoard, Presence};
use super::clock::Tick;
use super::ring::{Extent, Queue, RingEntry};
use super::{LINE, MAX_DOMAINS};
#[cfg(test)]
use alloc::vec::Vec;

/// Words of a line.
const WORDS: u64 = LINE / 8;
/// Words in front, which are the host's.
pub const FRONT: u64 = WORDS;
/// A stamp that is not there yet.
const PENDING: u64 = u64::MAX;
/// Lines of what is not waited for.
const EXCLUDED: u64 = MAX_DOMAINS as u64 / WORDS;

/// How large it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BoardLayout {
    /// Domains that there is room for, [`MAX_DOMAINS`] at most.
    pub domains: u8,
    /// Entries of a ring.
    pub room: u64,
}

impl BoardLayout {
    /// Words of a domain.
    const fn each(self) -> u64 {
        let ring = (self.room * 2).next_multiple_of(WORDS);
        (1 + EXCLUDED + 2) * WORDS + 2 * ring
    }

    /// Words in all.
    pub const fn words(self) -> u64 {
        FRONT + self.domains as u64 * self.each()
    }

    const fn row(self, domain: u8) -> u64 {
        FRONT + domain as u64 * self.each()
    }

    const fn excluded(self, by: u8, domain: u8) -> u64 {
        self.row(by) + WORDS + domain as u64
    }

    const fn ends(self, domain: u8, queue: Queue) -> u64 {
        self.row(domain) + (1 + EXCLUDED + queue as u64) * WORDS
    }

    const fn entry(self, domain: u8, queue: Queue, nth: u64) -> u64 {
        let ring = (self.room * 2).next_multiple_of(WORDS);
        let first = self.row(domain) + (3 + EXCLUDED) * WORDS + queue as u64 * ring;
        first + nth % self.room * 2
    }
}

/// The words. A load is past the cache of who loads; loads and stores stay in order, and a store is
/// written back when a later one is visible.
pub trait BoardWords {
    /// A word.
    fn load(&self, word: u64) -> u64;
    /// Changes a word of the own domain.
    fn store(&mut self, word: u64, value: u64);
}

impl<W: BoardWords> BoardWords for &mut W {
    fn load(&self, word: u64) -> u64 {
        (**self).load(word)
    }

    fn store(&mut self, word: u64, value: u64) {
        (**self).store(word, value);
    }
}

/// A board in such words, of one domain.
#[derive(Clone, Copy, Debug)]
pub struct BoardIn<W> {
    /// How large it is.
    pub layout: BoardLayout,
    /// Whose.
    pub me: u8,
    /// Where.
    pub words: W,
}

impl<W: BoardWords> BoardIn<W> {
    /// This domain joins: its row counts from now on, with nothing stale.
    pub fn join(&mut self, incarnation: u32, now: Tick) {
        let row = self.layout.row(self.me);
        for queue in Queue::BOTH {
            let ends = self.layout.ends(self.me, queue);
            self.words.store(ends, 0);
            self.words.store(ends + 1, 0);
        }
        for domain in 0..self.layout.domains {
            let word = self.layout.excluded(self.me, domain);
            self.words.store(word, 0);
        }
        for word in row + 1..row + 4 {
            self.words.store(word, now.0);
        }
        self.set_presence(incarnation, Presence::Joining);
    }

    /// Where this domain is in its life.
    pub fn set_presence(&mut self, incarnation: u32, presence: Presence) {
        let word = u64::from(incarnation) << 2 | presence as u64;
        self.words.store(self.layout.row(self.me), word);
    }

    /// What its clock shows.
    pub fn show(&mut self, now: Tick) {
        self.words.store(self.layout.row(self.me) + 1, now.0);
    }

    /// A part of its quiescence that began then is over.
    pub fn tell(&mut self, queue: Queue, began: Tick) {
        let word = self.layout.row(self.me) + 2 + queue as u64;
        self.words.store(word, began.0);
    }
}

impl<W: BoardWords> Board for BoardIn<W> {
    fn domains(&self) -> u8 {
        self.layout.domains
    }

    /// A domain whose row is of two lives has quiesced never.
    fn row(&self, domain: u8) -> DomainRow {
        let at = self.layout.row(domain);
        let load = |nth| self.words.load(at + nth);
        let first = load(0);
        let [clock, modified, freed] = [1, 2, 3].map(load).map(Tick);
        let one = load(0) == first;
        let since = |tick| if one { tick } else { Tick(0) };
        DomainRow {
            incarnation: (first >> 2) as u32,
            presence: Presence::from_word(first & 3),
            clock: since(clock),
            modified: since(modified),
            freed: since(freed),
        }
    }

    fn ends(&self, domain: u8, queue: Queue) -> (u64, u64) {
        let at = self.layout.ends(domain, queue);
        let tail = self.words.load(at);
        let head = self.words.load(at + 1);
        // Of a domain that writes nonsense no more is read than a ring has.
        (
            tail.max(head.saturating_sub(self.layout.room)).min(head),
            head,
        )
    }

    fn entry(&self, domain: u8, queue: Queue, nth: u64) -> RingEntry {
        let at = self.layout.entry(domain, queue, nth);
        let extent = Extent::from_word(self.words.load(at));
        let stamp = match self.words.load(at + 1) {
            PENDING => None,
            stamp => Some(Tick(stamp)),
        };
        RingEntry { extent, stamp }
    }

    fn excluded(&self, by: u8, domain: u8) -> u32 {
        let word = self.words.load(self.layout.excluded(by, domain));
        word as u32
    }
}

impl<W: BoardWords> OwnBoard for BoardIn<W> {
    fn room(&self) -> u64 {
        self.layout.room
    }

    fn put(&mut self, queue: Queue, nth: u64, entry: RingEntry) {
        let at = self.layout.entry(self.me, queue, nth);
        self.words.store(at, entry.extent.to_word());
        let stamp = entry.stamp.map_or(PENDING, |stamp| stamp.0);
        self.words.store(at + 1, stamp);
    }

    fn set_ends(&mut self, queue: Queue, (tail, head): (u64, u64)) {
        let at = self.layout.ends(self.me, queue);
        self.words.store(at, tail);
        self.words.store(at + 1, head);
    }

    fn exclude(&mut self, domain: u8, incarnation: u32) {
        let word = self.layout.excluded(self.me, domain);
        self.words.store(word, incarnation.into());
    }
}

/// Words of one process, which are what was stored last.
#[cfg(test)]
impl BoardWords for Vec<u64> {
    fn load(&self, word: u64) -> u64 {
        self[word as usize]
    }

    fn store(&mut self, word: u64, value: u64) {
        self[word as usize] = value;
    }
}

#[cfg(test)]
impl BoardIn<Vec<u64>> {
    /// One for two domains that have yet to join, with queues of two.
    pub fn of_two(me: u8) -> Self {
        let layout = BoardLayout {
            domains: 2,
            room: 2,
        };
        let words = alloc::vec![0; layout.words() as usize];
        BoardIn { layout, me, words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_words_lie_in_one_place_and_no_two_domains_in_one_line() {
        let layout = BoardLayout {
            domains: 3,
            room: 5,
        };
        let mut all = Vec::new();
        for domain in 0..3 {
            let mut own: Vec<u64> = (0..4).map(|nth| layout.row(domain) + nth).collect();
            own.extend((0..32).map(|other| layout.excluded(domain, other)));
            for queue in Queue::BOTH {
                own.extend([0, 1].map(|nth| layout.ends(domain, queue) + nth));
                let entries = (0..5).map(|nth| layout.entry(domain, queue, nth));
                own.extend(entries.flat_map(|word| [word, word + 1]));
                assert_eq!(
                    layout.entry(domain, queue, 7),
                    layout.entry(domain, queue, 2)
                );
            }
            all.extend(own.into_iter().map(|word| (word, domain)));
        }
        all.sort_unstable();
        assert!(all.windows(2).all(|two| two[0].0 < two[1].0));
        assert!(
            all.windows(2)
                .all(|two| two[0].1 == two[1].1 || two[0].0 / WORDS != two[1].0 / WORDS)
        );
        assert!(
            all.iter()
                .all(|(word, _)| (FRONT..layout.words()).contains(word))
        );
    }

    /// Words that another process has written anyhow: what is read stays within a ring.
    #[test]
    fn nonsense_of_another_domain_is_bounded() {
        let layout = BoardLayout {
            domains: 2,
            room: 4,
        };
        for value in [0, 1, 1 << 40, u64::MAX - 1, u64::MAX] {
            for other in [0, 3, u64::MAX] {
                let mut words = alloc::vec![value; layout.words() as usize];
                words[layout.ends(1, Queue::Freed) as usize] = other;
                let board = BoardIn {
                    layout,
                    me: 0,
                    words,
                };
                for queue in Queue::BOTH {
                    let (tail, head) = board.ends(1, queue);
                    assert!(head - tail <= 4);
                    (tail..head)
                        .for_each(|nth| assert!(board.entry(1, queue, nth).extent.line >> 48 == 0));
                }
                board.row(1);
            }
        }
    }
}
