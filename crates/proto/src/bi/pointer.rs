//! A word that leads to an object, with the tick of its birth.
//!
//! Processors fetch lines that nobody asked for. So a line of memory that is free may be in a cache
//! with what was there before, and would be taken for the object that is put there next. A reader
//! that has not quiesced since the pointer was born drops the object's lines before it looks.
//!
//! Of an object that is the program's own no quiescence is told, so its pointer has no birth: it is
//! dropped before the first look after each quiescence.

use super::clock::Tick;
use super::defect::Defect;
use super::ring::LINE_BITS;
use super::storing::Tracking;

/// Line 0 is no object's: a word of zeros leads nowhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct BiPtr {
    /// The object's first line.
    pub line: u64,
    /// The tick of `assign`, modulo 2^16; 0: nobody was told of it.
    pub birth: u16,
}

/// Bits of a birth.
const BIRTH_BITS: u32 = 64 - LINE_BITS;
/// Ages from here on cannot be told from the future.
const HALF: u64 = 1 << (BIRTH_BITS - 1);

impl BiPtr {
    /// To an object that is assigned now, and all are told so.
    pub const fn new(line: u64, now: Tick) -> Self {
        let birth = match now.0 as u16 {
            0 => 1,
            birth => birth,
        };
        BiPtr { line, birth }
    }

    /// To an object that is assigned now.
    pub fn assigned(line: u64, now: Tick, tracking: Tracking, broken: Option<Defect>) -> Self {
        match tracking {
            Tracking::Own if broken != Some(Defect::BornUntold) => BiPtr { line, birth: 0 },
            _ => BiPtr::new(line, now),
        }
    }

    /// As it stands in memory.
    #[inline]
    pub const fn to_word(self) -> u64 {
        self.line << BIRTH_BITS | self.birth as u64
    }

    /// From memory; none of a word that leads nowhere.
    #[inline]
    pub const fn from_word(word: u64) -> Option<Self> {
        let (line, birth) = (word >> BIRTH_BITS, word as u16);
        match line {
            0 => None,
            _ => Some(BiPtr { line, birth }),
        }
    }

    /// Whether a domain that has quiesced at `modified` may have lines of the object from before
    /// it was written. `now`: what its clock shows.
    ///
    /// Its look at the rings was at `modified` or later by its clock. With two ticks more than the
    /// birth it was after the birth by the writer's, and so after the object was written back.
    #[inline]
    pub const fn is_young(self, modified: Tick, now: Tick) -> bool {
        let age = (now.0 as u16).wrapping_sub(self.birth) as u64;
        self.birth == 0 || age >= HALF || age < now.since(modified).saturating_add(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_line_and_a_birth() {
        let pointer = BiPtr::new(0x1234_5678_9abc, Tick(0x7_0005));
        assert_eq!(pointer.to_word(), 0x1234_5678_9abc_0005);
        assert_eq!(BiPtr::from_word(pointer.to_word()), Some(pointer));
        assert_eq!(BiPtr::from_word(0), None);
        assert_eq!(BiPtr::from_word(7), None);
    }

    #[test]
    fn what_nobody_is_told_of_is_young_for_ever() {
        for now in [5, 0x1_0000, 0x2_fffe].map(Tick) {
            let own = BiPtr::assigned(1, now, Tracking::Own, None);
            for later in [0, 3, 99, HALF, 2 * HALF + 5].map(|later| now.plus(later)) {
                assert!(own.is_young(later, later));
            }
            let told = BiPtr::assigned(1, now, Tracking::Tracked, None);
            assert!(told == BiPtr::new(1, now) && told.birth != 0);
            assert!(!told.is_young(now.plus(9), now.plus(9)));
        }
    }

    #[test]
    fn a_pointer_is_young_until_two_ticks_after_its_birth_were_quiesced() {
        for born in [5, 0xffff, 0x1_0001, 0x2_fffe] {
            let pointer = BiPtr::new(1, Tick(born));
            for later in 0..6 {
                let now = Tick(born + 5);
                let modified = Tick(born + later);
                let young = modified.0 < born + 2;
                assert_eq!(pointer.is_young(modified, now), young, "{born} {later}");
            }
            // By a clock that is behind the writer's.
            assert!(pointer.is_young(Tick(born - 1), Tick(born - 1)));
            // So old that it may be of the future: dropped for nothing.
            let much_later = Tick(born + HALF);
            assert!(pointer.is_young(much_later, much_later));
            let later = Tick(born + HALF - 1);
            assert!(!pointer.is_young(later, later));
        }
    }
}
