//! Pages that come before a fault asks for them, where faults go from end to end of memory.
//!
//! | a fault | pages that come with it |
//! |---|---|
//! | anywhere | none; a run begins behind it |
//! | where a run goes on | one, and then twice as many each time, up to [`Run::MOST`] |
//!
//! So a run brings as many pages for nothing as it has brought to use, at most. A page that comes
//! ahead comes as by a fault of its own, for loads alone: what may be stored to is lost with its
//! node.

use core::ops::Range;

/// Faults that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Run {
    /// The page that goes on with it. Zero: there is none, since no fault is before page zero.
    next: u64,
    /// How many pages come ahead then, as a power of two.
    ahead: u8,
}

impl Run {
    /// Pages that come ahead of a fault, at most.
    pub const MOST: usize = 1 << DOUBLED;

    /// A fault that goes on with no run.
    pub const fn begins(page: usize) -> Run {
        Run {
            next: (page as u64).wrapping_add(1),
            ahead: 0,
        }
    }

    /// Whether a fault of this page goes on with it.
    pub const fn has(self, page: usize) -> bool {
        self.next != 0 && self.next == page as u64
    }

    /// Pages that come with the fault that goes on with it, in memory of so many.
    pub fn ahead(self, pages: usize) -> Range<usize> {
        let first = usize::try_from(self.next).map_or(pages, |next| next.saturating_add(1));
        let first = first.min(pages);
        first..first.saturating_add(1 << self.ahead).min(pages)
    }

    /// The run from then on, when pages up to this one have come.
    pub const fn came(self, end: usize) -> Run {
        let ahead = self.ahead + (self.ahead < DOUBLED) as u8;
        let next = end as u64;
        Run { next, ahead }
    }

    /// For a host that keeps it in a word.
    pub const fn bits(self) -> u64 {
        self.next << AHEAD_BITS | self.ahead as u64
    }

    /// What [`Run::bits`] has said; whatever the bits are, it is one.
    pub const fn of(bits: u64) -> Run {
        let ahead = (bits & ((1 << AHEAD_BITS) - 1)) as u8;
        let ahead = if ahead < DOUBLED { ahead } else { DOUBLED };
        let next = bits >> AHEAD_BITS;
        Run { next, ahead }
    }
}

/// How often it is doubled.
const DOUBLED: u8 = 4;
const AHEAD_BITS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Faults of a program that uses all pages in turn, and how many pages come with each.
    fn scan(pages: usize) -> Vec<(usize, usize)> {
        let (mut run, mut page, mut faults) = (Run::default(), 0, Vec::new());
        while page < pages {
            let came = match run.has(page) {
                true => run.ahead(pages),
                false => page + 1..page + 1,
            };
            run = match run.has(page) {
                true => run.came(came.end),
                false => Run::begins(page),
            };
            faults.push((page, came.len()));
            page = came.end;
        }
        faults
    }

    #[test]
    fn who_goes_on_has_more_and_more_pages_ahead() {
        let begins = [(0, 0), (1, 1), (3, 2), (6, 4), (11, 8), (20, 16), (37, 16)];
        assert_eq!(scan(60), [&begins[..], &[(54, 5)]].concat());
        assert!(scan(10_000).iter().all(|fault| fault.1 <= Run::MOST));
        assert_eq!(scan(10_000).len(), 10_000_usize.div_ceil(17) + 4);
    }

    #[test]
    fn who_jumps_has_none() {
        let mut run = Run::default();
        for page in [0, 2, 4, 3, 3, 9, 0, usize::MAX] {
            assert!(!run.has(page));
            run = Run::begins(page);
        }
        assert!(!run.has(0), "no page is behind the last one");
    }

    #[test]
    fn a_run_that_is_stopped_goes_on_where_it_was() {
        let run = Run::begins(4).came(7);
        assert!(run.has(7) && !run.has(5));
        assert_eq!(run.ahead(100), 8..10);
        // Nothing has come.
        assert!(run.came(8).has(8));
    }

    #[test]
    fn whatever_the_bits_are_it_is_a_run() {
        for bits in [0, 1, 5, 7, 8, 0x1234, u64::MAX, u64::MAX >> 3] {
            let run = Run::of(bits);
            let ahead = run.ahead(1 << 20);
            assert!(ahead.start <= ahead.end && ahead.end <= 1 << 20);
            assert!(ahead.len() <= Run::MOST);
            assert_eq!(Run::of(run.bits()), run);
        }
    }
}
