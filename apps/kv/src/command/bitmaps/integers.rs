//! Integers of up to 64 bits anywhere in a string.

/// How wide an integer is, and whether it can be negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Width {
    pub bits: u32,
    pub signed: bool,
}

/// What becomes of a number that does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Overflow {
    /// Its lower bits are kept.
    #[default]
    Wrap,
    /// The nearest number that fits takes its place.
    Saturate,
    /// Nothing is done.
    Fail,
}

/// Bytes that an integer can touch.
pub(super) const TOUCHED: usize = 9;

impl Width {
    fn limits(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// The number, or what takes its place.
    pub fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = self.limits();
        let fitting = match overflow {
            _ if (least..=most).contains(&number) => number,
            Overflow::Wrap => i128::from(self.extend(number as u64)),
            Overflow::Saturate => number.clamp(least, most),
            Overflow::Fail => return None,
        };
        Some(fitting as i64)
    }

    /// The number that the lower bits mean.
    fn extend(self, bits: u64) -> i64 {
        let unused = 64 - self.bits;
        match self.signed {
            true => ((bits << unused) as i64) >> unused,
            false => ((bits << unused) >> unused) as i64,
        }
    }

    /// Bytes from the one with bit `skip`, below 8, on that an integer touches.
    pub fn bytes(self, skip: u32) -> usize {
        (skip + self.bits).div_ceil(8) as usize
    }

    /// The integer that begins at bit `skip`, below 8, of some bytes.
    pub fn get(self, bytes: &[u8; TOUCHED], skip: u32) -> i64 {
        self.extend((wide(bytes) >> self.behind(skip)) as u64)
    }

    pub fn put(self, bytes: &mut [u8; TOUCHED], skip: u32, number: i64) {
        let behind = self.behind(skip);
        let mask = ((1u128 << self.bits) - 1) << behind;
        let new = (number as u64 as u128) << behind;
        let all = wide(bytes) & !mask | new & mask;
        bytes.copy_from_slice(&all.to_be_bytes()[16 - TOUCHED..]);
    }

    /// Bits of the bytes behind the integer.
    fn behind(self, skip: u32) -> u32 {
        8 * TOUCHED as u32 - skip - self.bits
    }
}

fn wide(bytes: &[u8; TOUCHED]) -> u128 {
    bytes
        .iter()
        .fold(0, |wide, byte| wide << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_found_and_nothing_beside_it_changes() {
        for bits in 1..=64 {
            for signed in [false, true] {
                if !signed && bits == 64 {
                    continue;
                }
                let width = Width { bits, signed };
                let (least, most) = width.limits();
                for skip in 0..8 {
                    for number in [least, most, 0, most / 3] {
                        for around in [0, 0xff] {
                            let mut bytes = [around; TOUCHED];
                            width.put(&mut bytes, skip, number as i64);
                            assert_eq!(i128::from(width.get(&bytes, skip)), number);
                            width.put(&mut bytes, skip, if around == 0 { 0 } else { -1 });
                            assert_eq!(bytes, [around; TOUCHED]);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_are_made_to_fit() {
        use Overflow::{Fail, Saturate, Wrap};
        let signed = |bits| Width { bits, signed: true };
        let unsigned = |bits| Width {
            bits,
            signed: false,
        };
        for (width, number, overflow, want) in [
            (signed(8), 127, Fail, Some(127)),
            (signed(8), 128, Fail, None),
            (signed(8), 128, Wrap, Some(-128)),
            (signed(8), 300, Saturate, Some(127)),
            (signed(8), -300, Saturate, Some(-128)),
            (unsigned(8), 256, Wrap, Some(0)),
            (unsigned(8), -1, Wrap, Some(255)),
            (unsigned(8), -1, Saturate, Some(0)),
            (signed(64), 1 << 63, Wrap, Some(i64::MIN)),
            (signed(64), -(1 << 63) - 1, Saturate, Some(i64::MIN)),
            (unsigned(63), 1 << 63, Wrap, Some(0)),
        ] {
            assert_eq!(width.fit(number, overflow), want, "{width:?} {number}");
        }
    }
}
