//! What the body of an `Operate` is: one step on one word.

/// An atomic operation on a word of eight bytes. A value shorter than the word lies in its low
/// bits, which `mask` has; the others stay as they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    /// Adds, wrapping around.
    Add {
        /// Bits of the value.
        mask: u64,
        /// What is added.
        n: u64,
    },
    /// Keeps some bits and turns some around: AND, OR, XOR, a replacement, or only a look.
    Bits {
        /// Bits that are kept; the others are zero,
        keep: u64,
        /// before these are turned around.
        flip: u64,
    },
    /// Replaces the value if it is the expected one.
    CompareExchange {
        /// Bits of the value.
        mask: u64,
        /// The expected one.
        expected: u64,
        /// What takes its place.
        new: u64,
    },
}

/// Bytes of an operation, and of which word of the block it is about, in a body.
pub const ATOMIC_LEN: usize = 32;

const ADD: u32 = 1;
const BITS: u32 = 2;
const COMPARE_EXCHANGE: u32 = 3;

impl AtomicOp {
    /// What a word is afterwards.
    #[inline]
    pub const fn apply(self, old: u64) -> u64 {
        match self {
            AtomicOp::Add { mask, n } => old & !mask | old.wrapping_add(n) & mask,
            AtomicOp::Bits { keep, flip } => old & keep ^ flip,
            AtomicOp::CompareExchange {
                mask,
                expected,
                new,
            } => {
                if old & mask == expected & mask {
                    old & !mask | new & mask
                } else {
                    old
                }
            }
        }
    }

    /// As it lies in a body, for the nth word of the packet's block.
    pub fn to_bytes(self, nth: u32) -> [u8; ATOMIC_LEN] {
        let (code, words) = match self {
            AtomicOp::Add { mask, n } => (ADD, [mask, n, 0]),
            AtomicOp::Bits { keep, flip } => (BITS, [keep, flip, 0]),
            AtomicOp::CompareExchange {
                mask,
                expected,
                new,
            } => (COMPARE_EXCHANGE, [mask, expected, new]),
        };
        let mut bytes = [0; ATOMIC_LEN];
        bytes[..4].copy_from_slice(&code.to_be_bytes());
        bytes[4..8].copy_from_slice(&nth.to_be_bytes());
        for (to, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The operation of a body, and for which word of the packet's block. `None`: it is none.
    pub fn from_bytes(body: &[u8]) -> Option<(Self, u32)> {
        let body: &[u8; ATOMIC_LEN] = body.try_into().ok()?;
        let word = |nth: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&body[8 * nth..8 * nth + 8]);
            u64::from_be_bytes(eight)
        };
        let (code, nth) = ((word(0) >> 32) as u32, word(0) as u32);
        let (mask, b, c) = (word(1), word(2), word(3));
        let op = match code {
            ADD => AtomicOp::Add { mask, n: b },
            BITS => AtomicOp::Bits {
                keep: mask,
                flip: b,
            },
            COMPARE_EXCHANGE => AtomicOp::CompareExchange {
                mask,
                expected: b,
                new: c,
            },
            _ => return None,
        };
        Some((op, nth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: u64 = 0x1122_3344_5566_77ff;

    #[test]
    fn a_short_value_leaves_the_rest_of_its_word_alone() {
        let add = AtomicOp::Add { mask: 0xff, n: 2 };
        assert_eq!(add.apply(WORD), 0x1122_3344_5566_7701);
        let exchange = |expected| AtomicOp::CompareExchange {
            mask: 0xffff,
            expected,
            new: 0xaa_bbbb,
        };
        assert_eq!(exchange(0x77ff).apply(WORD), 0x1122_3344_5566_bbbb);
        assert_eq!(exchange(0x77fe).apply(WORD), WORD);
        let whole = AtomicOp::Add {
            mask: u64::MAX,
            n: u64::MAX,
        };
        assert_eq!(whole.apply(0), u64::MAX);
    }

    #[test]
    fn bits_are_kept_set_cleared_turned_around_and_replaced() {
        let bits = |keep, flip| AtomicOp::Bits { keep, flip }.apply(WORD);
        assert_eq!(bits(u64::MAX, 0), WORD);
        assert_eq!(bits(!0xf, 0), WORD & !0xf);
        assert_eq!(bits(!0xf00, 0xf00), WORD | 0xf00);
        assert_eq!(bits(u64::MAX, 0xf), WORD ^ 0xf);
        assert_eq!(bits(0, 7), 7);
    }

    #[test]
    fn what_is_no_operation_is_none() {
        let (mask, n) = (u64::MAX, 1 << 40);
        let all = [
            AtomicOp::Add { mask, n },
            AtomicOp::Bits { keep: 5, flip: 9 },
            AtomicOp::CompareExchange {
                mask,
                expected: 3,
                new: 4,
            },
        ];
        for op in all {
            let bytes = op.to_bytes(511);
            assert_eq!(AtomicOp::from_bytes(&bytes), Some((op, 511)));
            assert_eq!(AtomicOp::from_bytes(&bytes[..31]), None);
        }
        assert_eq!(AtomicOp::from_bytes(&[0; ATOMIC_LEN]), None);
        assert_eq!(AtomicOp::from_bytes(&[4; ATOMIC_LEN]), None);
    }
}
