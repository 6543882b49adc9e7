//! Words in pages of the system's, which come when they are touched and can go again.

use super::memory::zeroed_words;
use rackmem_fabric::words;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// See the module. As long as it lives, its words do.
pub(crate) enum Pages {
    /// Where they begin, and how many bytes.
    Mapped(*mut AtomicU64, usize),
    /// The system had none to map.
    Heap(Box<[AtomicU64]>),
}

// SAFETY: what is behind the pointer is atomics, shared by nobody else and unmapped by the one owner.
unsafe impl Send for Pages {}
// SAFETY: the same.
unsafe impl Sync for Pages {}

impl Pages {
    /// `len` bytes of zeros that cost nothing until they are touched.
    pub fn new(len: usize) -> Self {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping of no file, anywhere.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        match at == libc::MAP_FAILED {
            true => Pages::Heap(zeroed_words(len / 8)),
            false => Pages::Mapped(at.cast(), len),
        }
    }

    pub fn words(&self) -> &[AtomicU64] {
        match self {
            // SAFETY: so many bytes are mapped there, aligned to a page, and all-zero bytes are valid words.
            Pages::Mapped(at, len) => unsafe { std::slice::from_raw_parts(*at, len / 8) },
            Pages::Heap(words) => words,
        }
    }

    /// Makes these bytes zeros, whole words.
    pub fn zero(&self, bytes: Range<usize>) {
        let range = bytes.start / 8..bytes.end / 8;
        self.words().get(range).into_iter().for_each(words::zero);
    }

    /// The same, and pages that lie within them go back to the system.
    pub fn discard(&self, bytes: Range<usize>) {
        let page = page();
        let (from, to) = (bytes.start.next_multiple_of(page), bytes.end / page * page);
        let whole = match self {
            Pages::Mapped(at, len) if from < to && to <= *len => {
                // SAFETY: pages of this mapping. They read as zeros afterwards, which are valid words; and whoever reads or writes them
                // meanwhile does so by atomics.
                let done = unsafe {
                    let first = at.cast::<u8>().add(from);
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
        if let Pages::Mapped(at, len) = self {
            // SAFETY: what `new` has mapped; nobody has a reference to it.
            unsafe { libc::munmap(at.cast(), *len) };
        }
    }
}

fn page() -> usize {
    // SAFETY: asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn what_is_discarded_is_zeros_and_nothing_else_is() {
        const LEN: usize = 1 << 20;
        let mapped = Pages::new(LEN);
        assert!(matches!(mapped, Pages::Mapped(..)));
        for pages in [mapped, Pages::Heap(zeroed_words(LEN / 8))] {
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
            let Pages::Mapped(at, len) = &pages else {
                panic!("nothing was mapped");
            };
            let mut there = vec![0u8; len.div_ceil(page())];
            // SAFETY: a byte for each page of the mapping.
            let told = unsafe { libc::mincore(at.cast(), *len, there.as_mut_ptr()) };
            assert_eq!(told, 0);
            there.iter().filter(|page| **page & 1 == 1).count() * page()
        };
        assert_eq!(resident(), 0);
        pages.words().iter().for_each(|word| word.store(7, Relaxed));
        assert_eq!(resident(), LEN);
        pages.discard(0..LEN / 2);
        assert_eq!(resident(), LEN / 2);
    }
}
