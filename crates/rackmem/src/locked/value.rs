//! The value that a lock protects, among its words.

use super::handle::HEAD;
use crate::bytes::value::Value;
use crate::bytes::window::{Window, WindowMut};
use std::sync::atomic::AtomicU64;

/// Puts a first value there.
pub(super) fn fill<T: Value>(value: T) -> impl Fn(&[AtomicU64]) {
    move |words| put(words, value)
}

#[inline]
pub(super) fn get<T: Value>(words: &[AtomicU64]) -> T {
    let mut value = T::new_zeroed();
    Window::new(words, HEAD, size_of::<T>()).read(0, value.as_mut_bytes());
    value
}

#[inline]
pub(super) fn put<T: Value>(words: &[AtomicU64], value: T) {
    WindowMut::new(words, HEAD, size_of::<T>()).write(0, value.as_bytes());
}

/// Where the value is, of words that are those of a lock over a `T`.
///
/// # Panics
/// When they are too few.
#[inline]
fn place<T>(words: &[AtomicU64]) -> *mut T {
    const {
        assert!(
            align_of::<T>() <= align_of::<AtomicU64>(),
            "a lock's value is aligned to 8 bytes"
        )
    };
    let behind = &words[HEAD / 8..];
    assert!(
        size_of::<T>() <= size_of_val(behind),
        "a lock's words are whole"
    );
    behind.as_ptr().cast_mut().cast()
}

/// The value as it lies there.
///
/// # Safety
/// As long as the reference lives, the caller is inside of the lock that the words are of,
/// so that nobody changes them.
#[inline]
pub(super) unsafe fn in_place<T: Value>(words: &[AtomicU64]) -> &T {
    // SAFETY: `place` has checked room and alignment, all bytes are a `T` (`Value` says), and the
    // caller keeps writers away.
    unsafe { &*place::<T>(words) }
}

/// The same, to change it.
///
/// # Safety
/// As long as the reference lives, the caller is inside of the lock as its writer,
/// and uses the words in no other way.
#[inline]
#[expect(
    clippy::mut_from_ref,
    reason = "the words are cells, and the caller has them alone"
)]
pub(super) unsafe fn in_place_mut<T: Value>(words: &[AtomicU64]) -> &mut T {
    // SAFETY: as in `in_place`; the words are cells, so they may be changed behind a shared
    // reference, and whatever bytes are written are words.
    unsafe { &mut *place::<T>(words) }
}
