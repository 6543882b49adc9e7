//! One block, cut into objects of one size.

use alloc::vec::Vec;

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slab {
    /// Bytes of an object.
    pub class: u64,
    objects: u32,
    /// Free objects, and how many of them there are.
    free: Vec<u64>,
    left: u32,
    /// Objects that have been given out since the block was zeros.
    used: Vec<u64>,
}

/// Bits of a word.
const WORD: u32 = u64::BITS;

impl Slab {
    /// A block of this size, of which nothing is given out; whether it is zeros.
    pub fn new(block: u64, class: u64, zeros: bool) -> Self {
        let objects = (block / class) as u32;
        let word = |nth: u32| match objects - nth * WORD {
            rest if rest >= WORD => u64::MAX,
            rest => (1 << rest) - 1,
        };
        let words = objects.div_ceil(WORD);
        let used = if zeros { 0 } else { u64::MAX };
        Slab {
            class,
            objects,
            free: (0..words).map(word).collect(),
            left: objects,
            used: (0..words).map(|_| used).collect(),
        }
    }

    /// Whether all of it is given out.
    pub fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Whether nothing of it is.
    pub fn is_empty(&self) -> bool {
        self.left == self.objects
    }

    /// Takes at most so many objects that lie close together: the first one's number,
    /// and a bit for each that is taken, the first one's being the lowest;
    /// and whether all of them are zeros.
    pub fn take(&mut self, most: u32) -> Option<(u32, u32, bool)> {
        let (nth, word) = self.free.iter_mut().enumerate().find(|w| *w.1 != 0)?;
        let shift = word.trailing_zeros();
        let (mut near, mut bits) = ((*word >> shift) as u32, 0);
        for _ in 0..most.min(u32::BITS) {
            bits |= near & near.wrapping_neg();
            near &= near.wrapping_sub(1);
        }
        let taken = u64::from(bits) << shift;
        *word &= !taken;
        self.left -= bits.count_ones();
        let zeros = self.used[nth] & taken == 0;
        self.used[nth] |= taken;
        Some((nth as u32 * WORD + shift, bits, zeros))
    }

    /// How far objects that are given out are from the block's beginning.
    pub fn given(&self) -> impl Iterator<Item = u64> + '_ {
        let is_given = |nth: &u32| self.free[(nth / WORD) as usize] >> (nth % WORD) & 1 == 0;
        (0..self.objects)
            .filter(is_given)
            .map(|nth| u64::from(nth) * self.class)
    }

    /// Gives the object at this distance from the block's beginning back. `false`: none begins
    /// there that is given out.
    pub fn give(&mut self, within: u64) -> bool {
        let number = within / self.class;
        if !within.is_multiple_of(self.class) || number >= u64::from(self.objects) {
            return false;
        }
        let (word, bit) = ((number as u32 / WORD) as usize, 1 << (number as u32 % WORD));
        let fresh = self.free[word] & bit == 0;
        self.free[word] |= bit;
        self.left += u32::from(fresh);
        fresh
    }
}
