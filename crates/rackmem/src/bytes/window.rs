//! Windows onto the bytes of one block, as a closure of `Node::snapshot` or `Node::update` sees
//! them.
//!
//! The bytes live in a cache entry that other threads may read, and that the network may take away,
//! at any moment. They are therefore atomic words: no access is undefined behaviour,
//! whatever races with it. What a [`Window`] shows may be torn *while the closure runs*; the caller
//! of the closure validates the block afterwards and runs it again if anything moved, so a closure
//! must tolerate garbage (check its bounds) and must have no side effects. What a [`WindowMut`]
//! shows is exclusive and never torn.
//!
//! Offsets are in bytes from the start of the window. Integers are little-endian.
//! An access outside the window reads zero or writes nothing (a torn length must not be able to
//! panic); `WindowMut` says `false`.

use rackmem_fabric::words;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A read-only window onto bytes of one block.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, Window};
///
/// let rack = Rack::local(1)?;
/// let node = rack.node(0);
/// let addr = node.alloc_bytes(16)?;
/// let both = |view: &Window<'_>| (view.u64(0), view.u64(8));
/// assert_eq!(node.snapshot(addr, 16, both)?, (0, 0)); // both at one moment
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Window<'a> {
    words: &'a [AtomicU64],
    /// Bytes to skip at the front of the first word (0..8).
    skip: usize,
    len: usize,
}

impl<'a> Window<'a> {
    /// A window of `len` bytes that starts `skip` bytes into `words`.
    ///
    /// # Panics
    /// When the window is larger than the words behind it.
    pub fn new(words: &'a [AtomicU64], skip: usize, len: usize) -> Self {
        let first = skip / 8;
        let skip = skip % 8;
        assert!(
            first * 8 + skip + len <= words.len() * 8,
            "window exceeds its block"
        );
        Self {
            words: &words[first..],
            skip,
            len,
        }
    }

    /// Bytes in the window.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the window is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn within(&self, at: usize, len: usize) -> bool {
        at.checked_add(len).is_some_and(|end| end <= self.len)
    }

    /// The eight bytes at `at` as a little-endian integer. One load when `at` is aligned to eight.
    #[inline]
    pub fn u64(&self, at: usize) -> u64 {
        if !self.within(at, 8) {
            return 0;
        }
        let at = at + self.skip;
        let (word, shift) = (at / 8, (at % 8) * 8);
        let low = u64::from_le(self.words[word].load(Relaxed));
        if shift == 0 {
            return low;
        }
        let high = u64::from_le(self.words[word + 1].load(Relaxed));
        (low >> shift) | (high << (64 - shift))
    }

    /// The four bytes at `at`.
    #[inline]
    pub fn u32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// The two bytes at `at`.
    #[inline]
    pub fn u16(&self, at: usize) -> u16 {
        let mut bytes = [0; 2];
        self.read(at, &mut bytes);
        u16::from_le_bytes(bytes)
    }

    /// The byte at `at`.
    #[inline]
    pub fn u8(&self, at: usize) -> u8 {
        if !self.within(at, 1) {
            return 0;
        }
        let at = at + self.skip;
        (u64::from_le(self.words[at / 8].load(Relaxed)) >> ((at % 8) * 8)) as u8
    }

    /// Copies `out.len()` bytes from `at`; zeros when they are not all within the window.
    #[inline]
    pub fn read(&self, at: usize, out: &mut [u8]) {
        if !self.within(at, out.len()) {
            out.fill(0);
            return;
        }
        let at = at + self.skip;
        let shift = at % 8;
        let mut word = at / 8;
        let mut out = out;
        if shift != 0 {
            let n = (8 - shift).min(out.len());
            let bytes = self.words[word].load(Relaxed).to_ne_bytes();
            let (head, rest) = out.split_at_mut(n);
            head.copy_from_slice(&bytes[shift..shift + n]);
            out = rest;
            word += 1;
        }
        let whole = out.len() / 8;
        let (body, tail) = out.split_at_mut(whole * 8);
        words::read(body, &self.words[word..word + whole]);
        if !tail.is_empty() {
            let bytes = self.words[word + whole].load(Relaxed).to_ne_bytes();
            tail.copy_from_slice(&bytes[..tail.len()]);
        }
    }

    /// Whether the bytes at `at` are `bytes`.
    #[inline]
    pub fn eq(&self, at: usize, bytes: &[u8]) -> bool {
        if !self.within(at, bytes.len()) {
            return false;
        }
        let mut at = at;
        let chunks = bytes.chunks_exact(8);
        let tail = chunks.remainder();
        for chunk in chunks {
            if self.u64(at) != u64::from_le_bytes(chunk.try_into().expect("eight bytes")) {
                return false;
            }
            at += 8;
        }
        tail.iter().enumerate().all(|(i, b)| self.u8(at + i) == *b)
    }
}

/// An exclusive window onto bytes of one block: nobody in the rack reads or writes them meanwhile.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, WindowMut};
///
/// let rack = Rack::local(1)?;
/// let node = rack.node(0);
/// let addr = node.alloc_bytes(16)?;
/// let swap = |view: &mut WindowMut<'_>| {
///     let (a, b) = (view.u64(0), view.u64(8));
///     view.set_u64(0, b);
///     view.set_u64(8, a + 1);
/// };
/// node.update(addr, 16, swap)?;
/// assert_eq!(node.load(addr + 8)?, 1);
/// # Ok(())
/// # }
/// ```
pub struct WindowMut<'a> {
    view: Window<'a>,
    page: Option<&'a dyn Grow>,
}

/// What takes memory as it grows: what has not been asked for is zeros.
pub(crate) trait Grow: Sync {
    /// What there is of it.
    fn window(&self) -> Window<'_>;

    /// At least so many bytes, or all that it may have.
    fn grown(&self, len: usize) -> Window<'_>;
}

impl<'a> std::ops::Deref for WindowMut<'a> {
    type Target = Window<'a>;
    fn deref(&self) -> &Window<'a> {
        &self.view
    }
}

impl std::fmt::Debug for Window<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("len", &self.len).finish()
    }
}

impl std::fmt::Debug for WindowMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let len = &self.len();
        f.debug_struct("WindowMut").field("len", len).finish()
    }
}

impl<'a> WindowMut<'a> {
    /// See [`Window::new`]. The caller vouches that it holds the block exclusively.
    pub fn new(words: &'a [AtomicU64], skip: usize, len: usize) -> Self {
        Self {
            view: Window::new(words, skip, len),
            page: None,
        }
    }

    /// A window onto what grows; `view` is what there is of it.
    #[inline]
    pub(crate) fn growing(view: Window<'a>, page: &'a dyn Grow) -> Self {
        WindowMut {
            view,
            page: Some(page),
        }
    }

    /// Makes the window `len` bytes long, if it is a page of a
    /// [`RwLockArray`](crate::locked::RwLockArray), which takes memory as it grows: the new bytes
    /// are zeros. Whether it is so long now. Windows taken before may show an older page.
    #[inline]
    pub fn grow(&mut self, len: usize) -> bool {
        if self.len() < len
            && let Some(page) = self.page
        {
            self.view = page.grown(len);
        }
        len <= self.len()
    }

    /// Puts `bytes` at `at`; `false`, and nothing written, when they do not fit the window.
    #[inline]
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> bool {
        if !self.view.within(at, bytes.len()) {
            return false;
        }
        let at = at + self.view.skip;
        let shift = at % 8;
        let mut word = at / 8;
        let mut bytes = bytes;
        if shift != 0 {
            let n = (8 - shift).min(bytes.len());
            self.patch(word, shift, &bytes[..n]);
            bytes = &bytes[n..];
            word += 1;
        }
        let whole = bytes.len() / 8;
        let (body, tail) = bytes.split_at(whole * 8);
        words::write(&self.view.words[word..word + whole], body);
        if !tail.is_empty() {
            self.patch(word + whole, 0, tail);
        }
        true
    }

    /// Replaces some bytes of one word. Exclusive, so load and store need not be one step.
    fn patch(&self, word: usize, shift: usize, bytes: &[u8]) {
        let cell = &self.view.words[word];
        let mut old = cell.load(Relaxed).to_ne_bytes();
        old[shift..shift + bytes.len()].copy_from_slice(bytes);
        cell.store(u64::from_ne_bytes(old), Relaxed);
    }

    /// Puts an eight-byte little-endian integer at `at`.
    #[inline]
    pub fn set_u64(&mut self, at: usize, value: u64) -> bool {
        let start = at + self.view.skip;
        if start.is_multiple_of(8) && self.view.within(at, 8) {
            self.view.words[start / 8].store(value.to_le(), Relaxed);
            return true;
        }
        self.write(at, &value.to_le_bytes())
    }

    /// Puts a four-byte little-endian integer at `at`.
    #[inline]
    pub fn set_u32(&mut self, at: usize, value: u32) -> bool {
        self.write(at, &value.to_le_bytes())
    }

    /// Puts a two-byte little-endian integer at `at`.
    #[inline]
    pub fn set_u16(&mut self, at: usize, value: u16) -> bool {
        self.write(at, &value.to_le_bytes())
    }

    /// Moves `len` bytes from `from` to `to`; the ranges may overlap.
    pub fn copy_within(&mut self, from: usize, to: usize, len: usize) -> bool {
        if !self.view.within(from, len) || !self.view.within(to, len) {
            return false;
        }
        let mut buffer = [0u8; 512];
        let mut done = 0;
        while done < len {
            let n = (len - done).min(buffer.len());
            // Front to back when moving down, back to front when moving up,
            // so no byte is read after it is lost.
            let at = if to <= from { done } else { len - done - n };
            self.view.read(from + at, &mut buffer[..n]);
            self.write(to + at, &buffer[..n]);
            done += n;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Vec<AtomicU64> {
        bytes
            .chunks(8)
            .map(|c| {
                let mut w = [0; 8];
                w[..c.len()].copy_from_slice(c);
                AtomicU64::new(u64::from_ne_bytes(w))
            })
            .collect()
    }

    #[test]
    fn every_offset_and_length_agrees_with_a_byte_slice() {
        let bytes: Vec<u8> = (0..64).map(|i| i as u8 * 3 + 1).collect();
        for skip in 0..16 {
            for len in 0..=(64 - skip) {
                let cells = words(&bytes);
                let mut view = WindowMut::new(&cells, skip, len);
                let mut model = bytes[skip..skip + len].to_vec();
                for at in 0..len {
                    let n = (len - at).min(at % 19);
                    let mut out = vec![0; n];
                    view.read(at, &mut out);
                    assert_eq!(out, model[at..at + n]);
                    assert!(view.eq(at, &model[at..at + n]));
                    let new: Vec<u8> = (0..n).map(|i| (i * 7 + at) as u8).collect();
                    assert!(view.write(at, &new));
                    model[at..at + n].copy_from_slice(&new);
                    assert!(view.copy_within(at, len - at - n.min(len - at), n.min(len - at)));
                    let to = len - at - n;
                    model.copy_within(at..at + n, to);
                }
                let mut out = vec![0; len];
                view.read(0, &mut out);
                assert_eq!(out, model);
            }
        }
    }

    #[test]
    fn an_access_outside_the_window_is_harmless() {
        let cells = words(&[0xff; 16]);
        let mut view = WindowMut::new(&cells, 0, 12);
        assert_eq!(view.u64(5), 0);
        assert_eq!(view.u64(usize::MAX), 0);
        assert_eq!(view.u8(12), 0);
        assert!(!view.write(10, &[1, 2, 3]));
        assert!(!view.eq(10, &[0xff; 3]));
        assert!(!view.copy_within(0, 10, 3));
    }
}
