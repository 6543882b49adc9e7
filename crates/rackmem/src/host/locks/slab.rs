//! Memory for what locks protect: pieces of a few sizes, cut from chunks that go back to the system
//! when all their pieces have.
//!
//! Addresses stay mapped for as long as the process lives, and every access is atomic. So a program
//! that keeps a window onto what a lock protects after it has left the lock may see the bytes of
//! another lock, or zeros, but does nothing undefined.

use rackmem_fabric::Whole;
use std::alloc::{Layout, handle_alloc_error};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

/// Words of a piece.
const SIZES: [usize; 16] = [
    8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192,
];
/// Words of the longest piece.
pub(crate) const LONGEST: usize = SIZES[SIZES.len() - 1];
/// Bytes of a chunk, which is cut into pieces of one size.
const CHUNK: usize = 64 << 10;
/// Bytes that are mapped at a time.
const MAPPED: usize = 4 << 20;
/// Empty chunks that keep their memory, so that a lock that comes and goes does not ask the system
/// each time.
const SPARE: usize = 16;
/// Pieces of a chunk at most, and the words of a bit for each.
const MARKS: usize = CHUNK / (SIZES[0] * 8) / 64;

const _: () = assert!(LONGEST * 8 <= CHUNK && MAPPED.is_multiple_of(CHUNK));

/// A piece: its address, and how many words it has, in one word. The default is none at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Piece(u64);

impl Piece {
    pub const NONE: Piece = Piece(0);

    pub const fn from_word(word: u64) -> Self {
        Piece(word)
    }

    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// How many words it has.
    #[inline]
    pub const fn len(self) -> usize {
        self.0 as usize & 0xffff
    }

    /// Bytes of memory that it takes.
    pub fn bytes(self) -> usize {
        class(self.len()).map_or(0, |class| SIZES[class] * 8)
    }

    #[inline]
    pub fn words(self) -> &'static [AtomicU64] {
        if self.0 == 0 {
            return &[];
        }
        let start = std::ptr::with_exposed_provenance((self.0 >> 16) as usize);
        // SAFETY: pieces are made by `take` alone, of that many aligned words of memory that is
        // never unmapped, and all accesses to it are atomic.
        unsafe { std::slice::from_raw_parts(start, self.len()) }
    }
}

/// As many words as take no more memory than these.
pub(crate) fn round(words: usize) -> usize {
    class(words).map_or(0, |class| SIZES[class])
}

/// A piece of so many words, all zero; none at all for none.
pub(crate) fn take(words: usize) -> Piece {
    let Some(class) = class(words) else {
        return Piece::NONE;
    };
    let addr = pool().take(class);
    let piece = Piece((addr as u64) << 16 | words.min(LONGEST) as u64);
    piece.words().iter().for_each(|word| word.store(0, Relaxed));
    piece
}

/// Gives a piece back.
pub(crate) fn give_back(piece: Piece) {
    if let Some(class) = class(piece.len()) {
        pool().give_back((piece.0 >> 16) as usize, class);
    }
}

/// Gives the memory of all empty chunks back to the system.
pub(super) fn give_spare_back() {
    pool().give_spare_back();
}

fn class(words: usize) -> Option<usize> {
    debug_assert!(words <= LONGEST);
    (words != 0).then(|| SIZES.partition_point(|size| *size < words.min(LONGEST)))
}

fn pool() -> MutexGuard<'static, Pool> {
    static POOL: Mutex<Pool> = Mutex::new(Pool::new());
    POOL.lock().whole()
}

struct Chunk {
    addr: usize,
    class: usize,
    live: usize,
    /// A bit for each piece that is in use.
    used: [u64; MARKS],
    /// Its memory is all zeros, and the system's.
    clean: bool,
}

/// All chunks of the process.
struct Pool {
    chunks: Vec<Chunk>,
    /// What is mapped: where each begins, and the number of its first chunk.
    mapped: BTreeMap<usize, usize>,
    empty: Vec<usize>,
    /// Empty chunks that keep their memory.
    spare: usize,
    /// Chunks of each size that have room.
    room: [Vec<usize>; SIZES.len()],
}

impl Pool {
    const fn new() -> Self {
        Pool {
            chunks: Vec::new(),
            mapped: BTreeMap::new(),
            empty: Vec::new(),
            spare: 0,
            room: [const { Vec::new() }; SIZES.len()],
        }
    }

    fn capacity(class: usize) -> usize {
        CHUNK / (SIZES[class] * 8)
    }

    fn take(&mut self, class: usize) -> usize {
        let nth = match self.room[class].last() {
            Some(nth) => *nth,
            None => self.cut(class),
        };
        let chunk = &mut self.chunks[nth];
        let free = |(at, marks): (usize, &u64)| (*marks != u64::MAX).then_some((at, !*marks));
        let (at, marks) = chunk
            .used
            .iter()
            .enumerate()
            .find_map(free)
            .unwrap_or((0, 0));
        let bit = marks.trailing_zeros() as usize & 63;
        chunk.used[at] |= 1 << bit;
        chunk.live += 1;
        if chunk.live == Self::capacity(class) {
            self.room[class].pop();
        }
        chunk.addr + (at * 64 + bit) * SIZES[class] * 8
    }

    /// A chunk for pieces of this size.
    fn cut(&mut self, class: usize) -> usize {
        if self.empty.is_empty() {
            self.map();
        }
        let nth = self.empty.pop().unwrap_or(0);
        let chunk = &mut self.chunks[nth];
        self.spare -= usize::from(!chunk.clean);
        (chunk.class, chunk.clean) = (class, false);
        self.room[class].push(nth);
        nth
    }

    fn map(&mut self) {
        let start = system::map(MAPPED).unwrap_or_else(|| {
            let layout = Layout::from_size_align(MAPPED, 4096);
            handle_alloc_error(layout.unwrap_or(Layout::new::<u64>()))
        });
        self.mapped.insert(start, self.chunks.len());
        for addr in (start..start + MAPPED).step_by(CHUNK) {
            self.empty.push(self.chunks.len());
            self.chunks.push(Chunk {
                addr,
                class: 0,
                live: 0,
                used: [0; MARKS],
                clean: true,
            });
        }
    }

    fn give_spare_back(&mut self) {
        for nth in &self.empty {
            let chunk = &mut self.chunks[*nth];
            if !std::mem::replace(&mut chunk.clean, true) {
                system::discard(chunk.addr, CHUNK);
            }
        }
        self.spare = 0;
    }

    fn give_back(&mut self, addr: usize, class: usize) {
        let Some((start, first)) = self.mapped.range(..=addr).next_back() else {
            return;
        };
        let nth = first + (addr - start) / CHUNK;
        let chunk = &mut self.chunks[nth];
        let place = (addr - chunk.addr) / (SIZES[class] * 8);
        let (at, bit) = (place / 64, 1 << (place % 64));
        debug_assert!(chunk.class == class && chunk.used[at] & bit != 0);
        chunk.used[at] &= !bit;
        if chunk.live == Self::capacity(class) {
            self.room[class].push(nth);
        }
        chunk.live -= 1;
        if chunk.live != 0 {
            return;
        }
        if let Some(place) = self.room[class].iter().rposition(|other| *other == nth) {
            self.room[class].swap_remove(place);
        }
        if self.spare < SPARE {
            self.spare += 1;
        } else {
            chunk.clean = true;
            system::discard(chunk.addr, CHUNK);
        }
        self.empty.push(nth);
    }
}

mod system {
    /// Zeros of the system's.
    pub fn map(len: usize) -> Option<usize> {
        // SAFETY: a new mapping, of no file, where the system likes.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        (start != libc::MAP_FAILED).then(|| start.expose_provenance())
    }

    /// These bytes may become zeros: the system may have their memory.
    pub fn discard(addr: usize, len: usize) {
        // SAFETY: whole pages of a mapping of ours in which no piece is in use.
        // Whoever still looks at them sees zeros.
        unsafe {
            libc::madvise(
                std::ptr::with_exposed_provenance_mut(addr),
                len,
                libc::MADV_DONTNEED,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_every_size_are_zeros_apart_and_used_again() {
        for round in 0..3 {
            let mut pieces = Vec::new();
            for words in (1..=LONGEST).step_by(97).chain([8, 512, LONGEST]) {
                let piece = take(words);
                assert!(piece.len() == words && piece.bytes() == super::round(words) * 8);
                assert!(piece.words().iter().all(|word| word.load(Relaxed) == 0));
                let mark = pieces.len() as u64 + 1 + round;
                piece.words().iter().for_each(|w| w.store(mark, Relaxed));
                pieces.push((mark, piece));
            }
            for (mark, piece) in pieces {
                assert!(piece.words().iter().all(|w| w.load(Relaxed) == mark));
                give_back(piece);
            }
        }
        assert_eq!(take(0), Piece::NONE);
        assert!(Piece::NONE.words().is_empty() && Piece::NONE.bytes() == 0);
    }

    /// A pool of its own, so that other tests do not disturb the count.
    #[test]
    fn empty_chunks_are_the_systems_but_for_a_few() {
        let mut pool = Pool::new();
        for class in [0, 3, 15] {
            let count = 4 * SPARE * Pool::capacity(class);
            let taken: Vec<_> = (0..count).map(|_| pool.take(class)).collect();
            assert_eq!(
                pool.chunks.iter().filter(|c| c.live != 0).count(),
                4 * SPARE
            );
            taken.iter().for_each(|addr| pool.give_back(*addr, class));
            let kept = pool.chunks.iter().filter(|chunk| !chunk.clean).count();
            assert_eq!((kept, pool.spare), (SPARE, SPARE));
            pool.give_spare_back();
            assert!(pool.spare == 0 && pool.chunks.iter().all(|chunk| chunk.clean));
            assert_eq!(pool.empty.len(), pool.chunks.len());
        }
        assert_eq!(pool.chunks.len(), 4 * SPARE, "chunks change their size");
    }
}
