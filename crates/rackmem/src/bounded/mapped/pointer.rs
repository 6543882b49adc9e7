//! Pointers to objects of an arena, and the places where they are kept.

use super::lines::WORDS;
use rackmem_proto::bi::{BiPtr, Extent, Extents, LINE};
use std::fmt;
use std::marker::PhantomData;

/// Bytes of an object, at most: a slab.
pub(super) const MOST: usize = rackmem_proto::bi::SLAB_LINES as usize * LINE as usize;

/// Lines of an object of this type.
pub(super) const fn lines_of<T>() -> u64 {
    lines_for(size_of::<T>())
}

/// Lines of an object of so many bytes.
pub(super) const fn lines_for(len: usize) -> u64 {
    let lines = len.div_ceil(LINE as usize) as u64;
    if lines == 0 { 1 } else { lines }
}

/// Leads to an object of an [`Arena`](super::Arena), as it was found in a slot or in an object.
///
/// It is good in the section in which it was read. What it leads to is checked when it is used: a
/// word that is no pointer is an error, never a fault.
///
/// ```
/// use rackmem::bounded::Pointer;
///
/// assert!(Pointer::<u64>::from_word(0).is_none());
/// let word = 0x0000_0000_0007_0003;
/// assert_eq!(Pointer::<u64>::from_word(word).map(Pointer::to_word), Some(word));
/// ```
pub struct Pointer<T: ?Sized> {
    pub(super) to: BiPtr,
    of: PhantomData<fn() -> T>,
}

impl<T: ?Sized> Clone for Pointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Pointer<T> {}

impl<T: ?Sized> PartialEq for Pointer<T> {
    /// Whether both lead to one place.
    fn eq(&self, other: &Self) -> bool {
        self.to.line == other.to.line
    }
}

impl<T: ?Sized> Eq for Pointer<T> {}

impl<T: ?Sized> fmt::Debug for Pointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pointer({:#x}, born {})", self.to.line, self.to.birth)
    }
}

impl<T: ?Sized> Pointer<T> {
    #[inline]
    pub(super) fn new(to: BiPtr) -> Self {
        Pointer {
            to,
            of: PhantomData,
        }
    }

    /// What stands in a slot, or in a word of an object; none where nothing is.
    #[inline]
    pub fn from_word(word: u64) -> Option<Self> {
        BiPtr::from_word(word).map(Pointer::new)
    }

    /// What an object that is yet to be made is to hold, to lead there. Only
    /// [`ArenaWriter::assign`](super::ArenaWriter::assign) puts a pointer into one that is there.
    pub fn to_word(self) -> u64 {
        self.to.to_word()
    }
}

impl<T> Pointer<T> {
    /// The slot that is the word at this byte of the object: its field of type `u64`. None outside
    /// of it, and where no word begins.
    pub fn slot<U>(self, at: usize) -> Option<ArenaSlot<U>> {
        ArenaSlot::within(self.to, at, size_of::<T>())
    }

    /// Its lines.
    pub(super) fn extent(self) -> Extent {
        let lines = Extents::rounded(lines_of::<T>()).unwrap_or_default();
        let line = self.to.line;
        Extent { line, lines }
    }
}

/// Where a pointer to a `T` is kept: a numbered slot of the arena, or a word of an object.
pub struct ArenaSlot<T: ?Sized> {
    pub(super) word: u64,
    of: PhantomData<fn() -> T>,
}

impl<T: ?Sized> Clone for ArenaSlot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for ArenaSlot<T> {}

impl<T: ?Sized> fmt::Debug for ArenaSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArenaSlot({:#x})", self.word)
    }
}

impl<T: ?Sized> ArenaSlot<T> {
    pub(super) fn new(word: u64) -> Self {
        ArenaSlot {
            word,
            of: PhantomData,
        }
    }

    /// The word at this byte of an object that has so many bytes.
    pub(super) fn within(object: BiPtr, at: usize, len: usize) -> Option<Self> {
        let fits = at.is_multiple_of(8) && at.checked_add(8)? <= len;
        let word = object.line.checked_mul(WORDS as u64)? + at as u64 / 8;
        fits.then_some(ArenaSlot::new(word))
    }

    /// What another language keeps of it.
    pub fn to_word(self) -> u64 {
        self.word
    }

    /// The slot of which this was kept. One of any other number is an error when it is used.
    pub fn from_word(word: u64) -> Self {
        ArenaSlot::new(word)
    }

    /// Its line.
    #[inline]
    pub(super) fn line(self) -> Extent {
        let line = self.word / WORDS as u64;
        Extent { line, lines: 1 }
    }
}

/// An object that is written and that nothing leads to yet. No other node reads it before
/// [`ArenaWriter::assign`](super::ArenaWriter::assign) has put it in place; so no pointer to it can
/// be stored otherwise.
#[derive(Debug)]
#[must_use = "an object that is not put in place takes room for ever"]
pub struct Fresh<T: ?Sized> {
    pub(super) extent: Extent,
    of: PhantomData<fn() -> T>,
}

impl<T: ?Sized> Fresh<T> {
    pub(super) fn new(extent: Extent) -> Self {
        let of = PhantomData;
        Fresh { extent, of }
    }
}
