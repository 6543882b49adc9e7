//! Words in pages of the system's, which come when they are touched and can go again.

use super::memory::zeroed_words;
use crate::faulting::system_page;
use rackmem_fabric::words;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// See the module. As long as it lives, its words do.
pub(crate) struct Pages {
    /// Where they begin.
    at: *mut AtomicU64,
    /// How many bytes.
    len: usize,
    whose: Whose,
}

/// Whose pages they are.
enum Whose {
    /// Mapped for them.
    System,
    /// The system had none to map, and they are a box.
    Box,
    /// Memory that a program in the kernel shares with this process, as long as this lives.
    #[cfg(feature = "xdp")]
    Kernel(#[expect(dead_code, reason = "it unmaps")] rackmem_fabric::shm::Lent),
}

// SAFETY: what is behind the pointer is atomics, shared by nobody else and unmapped by the one
// owner.
unsafe impl Send for Pages {}
// SAFETY: the same.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes of zeros that cost nothing until they are touched.
    pub fn new(len: usize) -> Self {
        // It maps nothing without a reserve, and has no pages to give back.
        if cfg!(miri) {
            return Pages::boxed(len);
        }
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping of no file, anywhere.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        match at == libc::MAP_FAILED {
            true => Pages::boxed(len),
            false => Pages {
                at: at.cast(),
                len,
                whose: Whose::System,
            },
        }
    }

    fn boxed(len: usize) -> Self {
        Pages {
            at: Box::into_raw(zeroed_words(len / 8)).cast(),
            len,
            whose: Whose::Box,
        }
    }

    /// Zeros that the kernel shares.
    #[cfg(feature = "xdp")]
    pub fn lent(lent: rackmem_fabric::shm::Lent) -> Self {
        let words = lent.words();
        Pages {
            at: words.as_ptr().cast_mut(),
            len: size_of_val(words),
            whose: Whose::Kernel(lent),
        }
    }

    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: so many bytes are there, mapped and aligned to a page or a box of words, and any
        // bytes are valid words.
        unsafe { std::slice::from_raw_parts(self.at, self.len / 8) }
    }

    /// Makes these bytes zeros, whole words.
    pub fn zero(&self, bytes: Range<usize>) {
        let range = bytes.start / 8..bytes.end / 8;
        self.words().get(range).into_iter().for_each(words::zero);
    }

    /// The same, and pages that lie within them go back to the system.
    pub fn discard(&self, bytes: Range<usize>) {
        let page = system_page();
        let (from, to) = (bytes.start.next_multiple_of(page), bytes.end / page * page);
        let whole = match self.whose {
            Whose::System if from < to && to <= self.len => {
                // SAFETY: pages of this mapping. They read as zeros afterwards, which are valid
                // words; and whoever reads or writes them meanwhile does so by atomics.
                let done = unsafe {
                    let first = self.at.cast::<u8>().add(from);
                    libc::madvise(first.cast(), to - from, libc::MADV_DONTNEED)
                };
                done == 0
            }
            _ => false,
        };
        match whole {
            true => [bytes.start..from, to..bytes.end].map(|edge| self.zero(edge)),
            false => [self.zero(bytes), ()],
        };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        match self.whose {
            // SAFETY: what `new` has mapped; nobody has a reference to it.
            Whose::System => _ = unsafe { libc::munmap(self.at.cast(), self.len) },
            Whose::Box => {
                let words = std::ptr::slice_from_raw_parts_mut(self.at, self.len / 8);
                // SAFETY: the box that `boxed` has made.
                drop(unsafe { Box::from_raw(words) });
            }
            #[cfg(feature = "xdp")]
            Whose::Kernel(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn what_is_discarded_is_zeros_and_nothing_else_is() {
        const LEN: usize = 1 << 20;
        let mapped = Pages::new(LEN);
        assert!(matches!(mapped.whose, Whose::System));
        for pages in [mapped, Pages::boxed(LEN)] {
            for range in [
                0..LEN,
                8..16,
                4000..8200,
                4096..8192,
                5000..100_000,
                LEN - 8..LEN,
                0..0,
            ] {
                pages.words().iter().for_each(|word| word.store(7, Relaxed));
                pages.discard(range.clone());
                for (at, word) in pages.words().iter().enumerate() {
                    let value = if range.contains(&(at * 8)) { 0 } else { 7 };
                    assert_eq!(word.load(Relaxed), value, "{range:?} {at}");
                }
            }
        }
    }

    #[test]
    fn pages_go_back_to_the_system() {
        const LEN: usize = 8 << 20;
        let pages = Pages::new(LEN);
        let resident = || {
            assert!(matches!(pages.whose, Whose::System));
            let mut there = vec![0u8; LEN.div_ceil(system_page())];
            // SAFETY: a byte for each page of the mapping.
            let told = unsafe { libc::mincore(pages.at.cast(), LEN, there.as_mut_ptr()) };
            assert_eq!(told, 0);
            there.iter().filter(|page| **page & 1 == 1).count() * system_page()
        };
        assert_eq!(resident(), 0);
        pages.words().iter().for_each(|word| word.store(7, Relaxed));
        assert_eq!(resident(), LEN);
        pages.discard(0..LEN / 2);
        assert_eq!(resident(), LEN / 2);
    }
}
