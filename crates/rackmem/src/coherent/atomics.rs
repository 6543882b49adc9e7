//! What is done to a shared number in one step.

use super::shared::Shared;
use crate::bytes::value::Value;
use crate::error::AccessError;
use rackmem_proto::wire::AtomicOp;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A `bool` that can be shared: zero is false, and every other byte true.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Bool, Rack};
///
/// let rack = Rack::local(2)?;
/// let stop = rack.node(0).alloc(Bool::from(false))?;
/// let same = rack.node(1).attach::<Bool>(stop.addr())?;
/// assert!(!bool::from(same.swap(true.into())?));
/// assert!(bool::from(stop.read()?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// True.
    pub const TRUE: Bool = Bool(1);
    /// False.
    pub const FALSE: Bool = Bool(0);
}

impl PartialEq<bool> for Bool {
    fn eq(&self, other: &bool) -> bool {
        bool::from(*self) == *other
    }
}

impl std::fmt::Display for Bool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&bool::from(*self), f)
    }
}

impl From<bool> for Bool {
    fn from(is: bool) -> Bool {
        Bool(is.into())
    }
}

impl From<Bool> for bool {
    fn from(byte: Bool) -> bool {
        byte.0 != 0
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        bool::from(*self) == bool::from(*other)
    }
}

impl Eq for Bool {}

impl std::fmt::Debug for Bool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&bool::from(*self), f)
    }
}

/// A value that lies in one word.
trait InWord: Value {
    /// The bits of a word that it has.
    const MASK: u64;
    /// The word, with this value in its first bytes.
    fn into_word(self, word: u64) -> u64;
    /// The value in a word's first bytes.
    fn of_word(word: u64) -> Self;
}

macro_rules! in_word {
    ($($value:ty, $bits:ty, $to:expr, $from:expr;)*) => {$(
        impl InWord for $value {
            const MASK: u64 = <$bits>::MAX as u64;

            #[inline(always)]
            fn into_word(self, word: u64) -> u64 {
                let to: fn($value) -> $bits = $to;
                // Rust has no shift by all of a word's bits, and a value of eight bytes leaves
                // nothing of the word.
                word & !Self::MASK | u64::from(to(self))
            }

            #[inline(always)]
            fn of_word(word: u64) -> $value {
                let from: fn($bits) -> $value = $from;
                from(word as $bits)
            }
        }
    )*};
}

in_word! {
    u8, u8, |n| n, |n| n;
    u16, u16, |n| n, |n| n;
    u32, u32, |n| n, |n| n;
    u64, u64, |n| n, |n| n;
    i8, u8, |n| n as u8, |n| n as i8;
    i16, u16, |n| n as u16, |n| n as i16;
    i32, u32, |n| n as u32, |n| n as i32;
    i64, u64, |n| n as u64, |n| n as i64;
    usize, u64, |n| n as u64, |n| n as usize;
    isize, u64, |n| n as u64, |n| n as isize;
    f32, u32, f32::to_bits, f32::from_bits;
    f64, u64, f64::to_bits, f64::from_bits;
    Bool, u8, |is| is.0, Bool;
}

impl<T: Value> Shared<T> {
    /// Changes the value if `f` says so, as one step; what was there before. `op`: the same as
    /// something that its home can do.
    #[inline(always)]
    fn step(
        &self,
        op: impl FnOnce() -> Option<AtomicOp>,
        f: impl Fn(T) -> Option<T>,
    ) -> Result<T, AccessError>
    where
        T: InWord,
    {
        let f = |old: u64| f(T::of_word(old)).map(|new| new.into_word(old));
        let hit = |cell: &AtomicU64| {
            let old = cell.load(Relaxed);
            if let Some(new) = f(old) {
                cell.store(new, Relaxed);
            }
            old
        };
        if let Some(old) = self.hit_mut(hit) {
            return Ok(T::of_word(old));
        }
        let old = match op() {
            Some(op) => self.node().atomic(self.addr(), op)?,
            None => self.node().fetch_update(self.addr(), f)?,
        };
        self.found();
        Ok(T::of_word(old))
    }
}

macro_rules! atomic {
    ($($value:ty),*) => {$(
        impl Shared<$value> {
            /// Replaces the value; what was there before.
            #[inline]
            pub fn swap(&self, new: $value) -> Result<$value, AccessError> {
                let op = || bits::<$value>(0, new.into_word(0));
                self.step(op, |_| Some(new))
            }

            /// Puts `new` where `expected` is, as one step. `Ok(Err(seen))` when something else was
            /// there. Bits are compared, so a NaN equals itself, and 0.0 is not -0.0.
            #[inline]
            pub fn compare_exchange(
                &self,
                expected: $value,
                new: $value,
            ) -> Result<std::result::Result<$value, $value>, AccessError> {
                let is = |old: $value| old.into_word(0) == expected.into_word(0);
                let op = || {
                    Some(AtomicOp::CompareExchange {
                        mask: <$value>::MASK,
                        expected: expected.into_word(0),
                        new: new.into_word(0),
                    })
                };
                let old = self.step(op, |old| is(old).then_some(new))?;
                Ok(if is(old) { Ok(old) } else { Err(old) })
            }

            /// Changes the value if `f` says so, as one step. `Ok(Err(seen))` when it did not; else
            /// what was there before. `f` may run more than once, and must be short.
            #[inline]
            pub fn fetch_update(
                &self,
                f: impl Fn($value) -> Option<$value>,
            ) -> Result<std::result::Result<$value, $value>, AccessError> {
                let changed = std::cell::Cell::new(false);
                let nothing = || None;
                let old = self.step(nothing, |old| {
                    let new = f(old);
                    changed.set(new.is_some());
                    new
                })?;
                Ok(if changed.get() { Ok(old) } else { Err(old) })
            }
        }
    )*};
}

macro_rules! numbers {
    ($add:ident, $sub:ident: $($value:ty),*) => {$(
        impl Shared<$value> {
            /// Adds, an integer wrapping around; what was there before.
            #[inline]
            pub fn fetch_add(&self, n: $value) -> Result<$value, AccessError> {
                self.step(|| Add::adding(n), |old| Some(Add::$add(old, n)))
            }

            /// Subtracts, an integer wrapping around; what was there before.
            #[inline]
            pub fn fetch_sub(&self, n: $value) -> Result<$value, AccessError> {
                self.step(|| Add::taking(n), |old| Some(Add::$sub(old, n)))
            }

            /// Keeps the larger one; what was there before.
            #[inline]
            pub fn fetch_max(&self, n: $value) -> Result<$value, AccessError> {
                self.step(|| None, |old| Some(old.max(n)))
            }

            /// Keeps the smaller one; what was there before.
            #[inline]
            pub fn fetch_min(&self, n: $value) -> Result<$value, AccessError> {
                self.step(|| None, |old| Some(old.min(n)))
            }
        }
    )*};
}

macro_rules! bits {
    ($($int:ty),*) => {$(
        impl Shared<$int> {
            /// Keeps bits that are set in both; what was there before.
            #[inline]
            pub fn fetch_and(&self, set: $int) -> Result<$int, AccessError> {
                let op = || bits::<$int>(set.into_word(0), 0);
                self.step(op, |old| Some(old & set))
            }

            /// Sets bits; what was there before.
            #[inline]
            pub fn fetch_or(&self, set: $int) -> Result<$int, AccessError> {
                let word = set.into_word(0);
                self.step(|| bits::<$int>(!word, word), |old| Some(old | set))
            }

            /// Turns bits around; what was there before.
            #[inline]
            pub fn fetch_xor(&self, set: $int) -> Result<$int, AccessError> {
                let word = set.into_word(0);
                self.step(|| bits::<$int>(u64::MAX, word), |old| Some(old ^ set))
            }
        }
    )*};
}

/// Keeps some bits of a value and turns some around.
fn bits<T: InWord>(keep: u64, flip: u64) -> Option<AtomicOp> {
    let keep = keep | !T::MASK;
    Some(AtomicOp::Bits { keep, flip })
}

/// Addition as atomics do it, and as something that a home can do.
trait Add: Sized {
    fn add(self, n: Self) -> Self;
    fn sub(self, n: Self) -> Self;
    fn adding(self) -> Option<AtomicOp>;
    fn taking(self) -> Option<AtomicOp>;
}

macro_rules! wrapping {
    ($($int:ty),*) => {$(
        impl Add for $int {
            #[inline(always)]
            fn add(self, n: Self) -> Self {
                self.wrapping_add(n)
            }
            #[inline(always)]
            fn sub(self, n: Self) -> Self {
                self.wrapping_sub(n)
            }
            fn adding(self) -> Option<AtomicOp> {
                let (mask, n) = (Self::MASK, self.into_word(0));
                Some(AtomicOp::Add { mask, n })
            }
            fn taking(self) -> Option<AtomicOp> {
                let (mask, n) = (Self::MASK, self.into_word(0).wrapping_neg());
                Some(AtomicOp::Add { mask, n })
            }
        }
    )*};
}

macro_rules! floating {
    ($($float:ty),*) => {$(
        impl Add for $float {
            #[inline(always)]
            fn add(self, n: Self) -> Self {
                self + n
            }
            #[inline(always)]
            fn sub(self, n: Self) -> Self {
                self - n
            }
            fn adding(self) -> Option<AtomicOp> {
                None
            }
            fn taking(self) -> Option<AtomicOp> {
                None
            }
        }
    )*};
}

atomic!(
    u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, Bool
);
numbers!(add, sub: u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);
bits!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);
wrapping!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);
floating!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_its_bytes_of_a_word_and_no_others() {
        let word = 0x8877_6655_4433_2211;
        assert_eq!(0xffu8.into_word(word), 0x8877_6655_4433_22ff);
        assert_eq!((-2i16).into_word(word), 0x8877_6655_4433_fffe);
        assert_eq!(7u64.into_word(word), 7);
        assert_eq!(i8::of_word(0x1ff), -1);
        assert_eq!(i32::of_word(word), 0x4433_2211);
        assert_eq!(f32::of_word(1.5f32.into_word(word)), 1.5);
        assert_eq!(Bool::from(true).into_word(word), 0x8877_6655_4433_2201);
        assert!(bool::from(Bool::of_word(0x1_0080)));
    }
}
