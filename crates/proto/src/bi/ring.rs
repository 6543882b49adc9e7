//! Rings of what a domain has modified and freed (BI §3.4): its owner's end, and what another one
//! has heard of them.
//!
//! An entry is visible before the clock is read for its stamp. So a clock that shows two ticks more
//! than the stamp, of whichever domain, shows it when the entry is there to be seen.

use super::board::{Board, OwnBoard};
use super::clock::Tick;
use super::defect::Defect;
use alloc::vec::Vec;

/// Bits of the number of a line.
pub const LINE_BITS: u32 = 48;

/// Lines that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Extent {
    /// The first one.
    pub line: u64,
    /// How many.
    pub lines: u16,
}

impl Extent {
    /// As it stands in a ring.
    pub const fn to_word(self) -> u64 {
        self.line << (64 - LINE_BITS) | self.lines as u64
    }

    /// From a ring.
    pub const fn from_word(word: u64) -> Self {
        Extent {
            line: word >> (64 - LINE_BITS),
            lines: word as u16,
        }
    }

    /// Its lines.
    pub fn all(self) -> core::ops::Range<u64> {
        self.line..self.line + u64::from(self.lines)
    }
}

/// The two rings of a domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Queue {
    /// What it has stored, or is about to.
    Modified = 0,
    /// What it has freed.
    Freed = 1,
}

impl Queue {
    /// Both.
    pub const BOTH: [Queue; 2] = [Queue::Modified, Queue::Freed];
}

/// An entry of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RingEntry {
    /// Which lines.
    pub extent: Extent,
    /// When; none until the writer has read its clock.
    pub stamp: Option<Tick>,
}

/// There is no room: a domain has not quiesced for long.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RingFull;

/// The owner's end of a ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RingOwner {
    me: u8,
    queue: Queue,
    tail: u64,
    head: u64,
    broken: Option<Defect>,
}

impl RingOwner {
    /// An empty ring of a domain.
    pub fn new(me: u8, queue: Queue, broken: Option<Defect>) -> Self {
        RingOwner {
            me,
            queue,
            tail: 0,
            head: 0,
            broken,
        }
    }

    /// How many entries are kept.
    pub fn kept(&self) -> u64 {
        self.head - self.tail
    }

    /// Enters lines, without a stamp. The number of the entry.
    ///
    /// A full ring of modifications forgets its oldest one if that is stamped: who has not heard of
    /// it finds that it has missed something, and drops everything. Freed memory is never
    /// forgotten, and nothing that may still be stored.
    pub fn push(&mut self, extent: Extent, board: &mut impl OwnBoard) -> Result<u64, RingFull> {
        if self.kept() >= board.room() {
            let oldest = board.entry(self.me, self.queue, self.tail);
            let counts = self.queue == Queue::Freed || oldest.stamp.is_none();
            if counts && self.broken != Some(Defect::RingOverwrites) {
                return Err(RingFull);
            }
            self.tail += 1;
            board.set_ends(self.queue, (self.tail, self.head));
        }
        let nth = self.head;
        let stamp = None;
        board.put(self.queue, nth, RingEntry { extent, stamp });
        self.head += 1;
        board.set_ends(self.queue, (self.tail, self.head));
        Ok(nth)
    }

    /// Stamps an entry.
    pub fn stamp(&mut self, (nth, extent): (u64, Extent), now: Tick, board: &mut impl OwnBoard) {
        if (self.tail..self.head).contains(&nth) {
            let stamp = Some(now);
            board.put(self.queue, nth, RingEntry { extent, stamp });
        }
    }

    /// Entries that were stamped before this, as far as they are the oldest.
    pub fn due(&self, before: Tick, board: &impl Board) -> Vec<Extent> {
        let entries = (self.tail..self.head).map(|nth| board.entry(self.me, self.queue, nth));
        let due = |entry: &RingEntry| entry.stamp.is_some_and(|stamp| stamp < before);
        entries.take_while(due).map(|entry| entry.extent).collect()
    }

    /// Lets go of so many entries, the oldest ones.
    pub fn forget(&mut self, count: usize, board: &mut impl OwnBoard) {
        if count > 0 {
            self.tail = self.head.min(self.tail + count as u64);
            board.set_ends(self.queue, (self.tail, self.head));
        }
    }

    /// Lets go of entries that are due.
    pub fn trim(&mut self, before: Tick, board: &mut impl OwnBoard) -> Vec<Extent> {
        let due = self.due(before, board);
        self.forget(due.len(), board);
        due
    }
}

/// How far a domain has read another one's ring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RingReader {
    incarnation: u32,
    next: u64,
}

impl RingReader {
    /// Takes what is there that was not taken before; what has no stamp is taken again next time,
    /// since it may be stored later. Whether entries were missed: then anything may be stale.
    pub fn take(
        &mut self,
        (domain, queue): (u8, Queue),
        board: &impl Board,
        broken: Option<Defect>,
        into: &mut Vec<Extent>,
    ) -> bool {
        let incarnation = board.row(domain).incarnation;
        let (tail, head) = board.ends(domain, queue);
        let other = core::mem::replace(&mut self.incarnation, incarnation) != incarnation;
        let from = match other {
            true => tail,
            false => self.next.max(tail).min(head),
        };
        let mut missed = from != self.next;
        self.next = head;
        for nth in from..head {
            let entry = board.entry(domain, queue, nth);
            into.push(entry.extent);
            if entry.stamp.is_none() && broken != Some(Defect::ForgetPending) {
                self.next = self.next.min(nth);
            }
        }
        // The owner may have written over them meanwhile.
        missed |= board.ends(domain, queue).0 > from;
        other || missed && broken != Some(Defect::NewsGapIgnored)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::BoardIn;
    use super::*;

    const A: Extent = Extent { line: 7, lines: 1 };
    const B: Extent = Extent { line: 9, lines: 4 };

    fn board() -> BoardIn<Vec<u64>> {
        let mut board = BoardIn::of_two(0);
        board.join(1, Tick(5));
        board
    }

    fn taken(
        reader: &mut RingReader,
        board: &BoardIn<Vec<u64>>,
        queue: Queue,
    ) -> (Vec<Extent>, bool) {
        let mut all = Vec::new();
        let missed = reader.take((0, queue), board, None, &mut all);
        (all, missed)
    }

    #[test]
    fn what_has_no_stamp_is_taken_again() {
        let (mut board, mut reader) = (board(), RingReader::default());
        let mut ring = RingOwner::new(0, Queue::Modified, None);
        taken(&mut reader, &board, Queue::Modified);
        let first = ring.push(A, &mut board).unwrap();
        let second = ring.push(B, &mut board).unwrap();
        ring.stamp((second, B), Tick(6), &mut board);
        for _ in 0..2 {
            assert_eq!(
                taken(&mut reader, &board, Queue::Modified),
                (alloc::vec![A, B], false)
            );
        }
        ring.stamp((first, A), Tick(6), &mut board);
        assert_eq!(
            taken(&mut reader, &board, Queue::Modified),
            (alloc::vec![A, B], false)
        );
        assert_eq!(
            taken(&mut reader, &board, Queue::Modified),
            (alloc::vec![], false)
        );
    }

    #[test]
    fn a_full_ring_forgets_modifications_and_says_so_and_keeps_what_was_freed() {
        let mut board = board();
        let mut ring = RingOwner::new(0, Queue::Freed, None);
        ring.push(A, &mut board).unwrap();
        let nth = ring.push(B, &mut board).unwrap();
        assert_eq!(ring.push(A, &mut board), Err(RingFull));
        // The oldest one has no stamp: nothing leaves.
        ring.stamp((nth, B), Tick(6), &mut board);
        assert!(ring.trim(Tick(99), &mut board).is_empty());
        ring.stamp((0, A), Tick(7), &mut board);
        assert_eq!(ring.trim(Tick(7), &mut board), alloc::vec![]);
        assert_eq!(ring.trim(Tick(8), &mut board), alloc::vec![A, B]);

        let (mut ring, mut reader) = (
            RingOwner::new(0, Queue::Modified, None),
            RingReader::default(),
        );
        taken(&mut reader, &board, Queue::Modified);
        for nth in 0..2 {
            ring.push(A, &mut board).unwrap();
            ring.stamp((nth, A), Tick(6), &mut board);
        }
        ring.push(B, &mut board).unwrap();
        assert_eq!(
            taken(&mut reader, &board, Queue::Modified),
            (alloc::vec![A, B], true)
        );
        ring.push(B, &mut board).unwrap();
        assert_eq!(ring.push(B, &mut board), Err(RingFull));
    }

    #[test]
    fn another_life_of_a_domain_is_heard_from_the_beginning() {
        let (mut board, mut reader) = (board(), RingReader::default());
        let mut ring = RingOwner::new(0, Queue::Freed, None);
        ring.push(A, &mut board).unwrap();
        assert_eq!(
            taken(&mut reader, &board, Queue::Freed),
            (alloc::vec![A], true)
        );
        board.join(2, Tick(9));
        assert_eq!(
            taken(&mut reader, &board, Queue::Freed),
            (alloc::vec![], true)
        );
        assert_eq!(
            taken(&mut reader, &board, Queue::Freed),
            (alloc::vec![], false)
        );
    }
}
