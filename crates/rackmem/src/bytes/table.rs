//! A table of what threads share by atomics: in this process's own memory, or in memory that a
//! program in the kernel shares with it.

use rackmem_fabric::shm::Lent;
use std::ops::Deref;
use std::ptr::slice_from_raw_parts_mut;

/// Rows that are atomics and nothing else.
///
/// # Safety
/// Any bytes are a row, it is so many whole words, and no more than a page is its alignment.
#[cfg(any(test, feature = "xdp"))]
pub(crate) unsafe trait OfWords {}

/// See the module. As long as it lives, its rows do.
pub(crate) struct Table<T> {
    at: *mut T,
    len: usize,
    /// Where they are; none: in a box of their own.
    lent: Option<Lent>,
}

// SAFETY: what is behind the pointer is shared as a slice would be, and freed by the one owner.
unsafe impl<T: Send + Sync> Send for Table<T> {}
// SAFETY: the same.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

impl<T> Table<T> {
    /// These rows, in memory of its own.
    pub fn new(rows: impl Iterator<Item = T>) -> Self {
        let rows: Box<[T]> = rows.collect();
        let len = rows.len();
        Table {
            at: Box::into_raw(rows).cast(),
            len,
            lent: None,
        }
    }
}

#[cfg(any(test, feature = "xdp"))]
impl<T: OfWords> Table<T> {
    /// Rows of zeros that the kernel shares, as many as there is memory for.
    pub fn lent(lent: Lent) -> Self {
        let words = lent.words();
        let len = size_of_val(words) / size_of::<T>();
        Table {
            at: words.as_ptr().cast_mut().cast(),
            len,
            lent: Some(lent),
        }
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the rows of `new`, or of `lent`: a mapping, which begins with a page, of at least
        // so many rows, and any bytes are one.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        if self.lent.is_none() {
            // SAFETY: the box that `new` has made.
            drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(self.at, self.len)) });
        }
    }
}
