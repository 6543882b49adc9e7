//! A whole rack's memory inside one process: chunks of words, one sequence lock a block.
//!
//! Freed memory is overwritten, and the books are kept: a store that reads what it freed,
//! frees twice or leaks is caught by its tests.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rackmem::window::{Window, WindowMut};

use super::events::{Calm, Events, Step};
use super::locks::{HeapPages, Locked};
use super::{Fate, Memory, MemoryError};

/// Bytes in a chunk, the longest block; chunks come into being when they are first touched.
const CHUNK: usize = 1 << 16;
/// What freed memory is filled with.
const POISON: u8 = 0xdb;

struct Chunk {
    /// Per block: odd while a writer is inside.
    sequence: Box<[AtomicU64]>,
    words: Box<[AtomicU64]>,
}

#[derive(Default)]
struct Books {
    /// First address never handed out.
    next: u64,
    free: HashMap<usize, Vec<u64>>,
    /// Of what is given out: how many bytes, and whose.
    live: BTreeMap<u64, (usize, u16)>,
    live_bytes: usize,
    /// The nodes that give out nothing.
    withheld: HashSet<u16>,
    regions: HashMap<String, (u64, usize, u64)>,
    pages: HashMap<u64, Arc<Locked>>,
}

struct Inner {
    block: usize,
    limit: usize,
    nodes: usize,
    chunks: Box<[OnceLock<Chunk>]>,
    books: Mutex<Books>,
}

/// Memory of a single process. Clones share it; see [`HeapMemory::node`] for the other nodes' views
/// of it.
#[derive(Clone)]
pub struct HeapMemory {
    inner: Arc<Inner>,
    id: u16,
    events: Arc<dyn Events>,
}

impl HeapMemory {
    /// Memory of `limit` bytes in blocks of `block` bytes, for a rack of `nodes` nodes;
    /// this is node 0.
    ///
    /// # Panics
    /// When `block` is not a power of two between 256 and 65536, or `nodes` is 0.
    pub fn new(block: usize, limit: usize, nodes: usize) -> Self {
        assert!(
            block.is_power_of_two() && (256..=65536).contains(&block),
            "bad block size"
        );
        assert!(nodes > 0, "a rack has at least one node");
        let books = Books {
            next: block as u64,
            ..Books::default()
        };
        let chunks = (0..(limit + block).div_ceil(CHUNK))
            .map(|_| OnceLock::new())
            .collect();
        Self {
            inner: Arc::new(Inner {
                block,
                limit,
                nodes,
                chunks,
                books: Mutex::new(books),
            }),
            id: 0,
            events: Arc::new(Calm),
        }
    }

    /// The same memory as node `id` sees it.
    pub fn node(&self, id: u16) -> Self {
        Self { id, ..self.clone() }
    }

    /// The same memory for those to whom this happens as well.
    pub fn with_events(&self, events: Arc<dyn Events>) -> Self {
        Self {
            events,
            ..self.clone()
        }
    }

    /// Bytes allocated and not freed, regions not counted.
    pub fn live_bytes(&self) -> usize {
        self.books().live_bytes
    }

    /// Does what a step is about, if it can be done, and says so.
    fn happening<R>(
        &self,
        step: Step,
        f: impl FnOnce() -> Result<R, MemoryError>,
    ) -> Result<R, MemoryError> {
        self.events.happens(step)?;
        let result = f();
        let _ = self.events.happens(Step::Done);
        result
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.inner
            .books
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The sequence word of the block at `addr`, and the words of the range.
    fn locate(
        &self,
        addr: u64,
        len: usize,
    ) -> Result<(&AtomicU64, &[AtomicU64], usize), MemoryError> {
        let block = self.inner.block;
        let addr = addr as usize;
        let within = addr % block;
        let chunk = self
            .inner
            .chunks
            .get(addr / CHUNK)
            .filter(|_| within + len <= block && addr >= block);
        let Some(chunk) = chunk else {
            return Err(MemoryError::Other(
                format!("no memory at {addr:#x}, {len} bytes").into(),
            ));
        };
        let chunk = chunk.get_or_init(|| Chunk {
            sequence: (0..CHUNK / block).map(|_| AtomicU64::new(0)).collect(),
            words: (0..CHUNK / 8).map(|_| AtomicU64::new(0)).collect(),
        });
        let start = (addr % CHUNK - within) / 8;
        Ok((
            &chunk.sequence[addr % CHUNK / block],
            &chunk.words[start..start + block / 8],
            within,
        ))
    }

    /// Calls `f` with each block's share of a range: its address and its part of `0..len`.
    fn each_block(
        &self,
        addr: u64,
        len: usize,
        mut f: impl FnMut(u64, std::ops::Range<usize>) -> Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        let mut done = 0;
        while done < len {
            let at = addr.wrapping_add(done as u64);
            let n = (self.inner.block - at as usize % self.inner.block).min(len - done);
            f(at, done..done + n)?;
            done += n;
        }
        Ok(())
    }

    #[inline]
    fn look<R>(
        &self,
        addr: u64,
        len: usize,
        mut f: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, MemoryError> {
        let (sequence, words, skip) = self.locate(addr, len)?;
        let view = Window::new(words, skip, len);
        loop {
            let before = sequence.load(Ordering::Acquire);
            if before & 1 == 0 {
                let result = f(&view);
                std::sync::atomic::fence(Ordering::Acquire);
                if sequence.load(Ordering::Relaxed) == before {
                    return Ok(result);
                }
            }
            std::thread::yield_now();
        }
    }

    #[inline]
    fn change<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R, MemoryError> {
        /// Lets the next one in, also when `f` panics.
        struct Leave<'a>(&'a AtomicU64);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Release);
            }
        }
        let (sequence, words, skip) = self.locate(addr, len)?;
        loop {
            let before = sequence.load(Ordering::Relaxed) & !1;
            if sequence
                .compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
            std::thread::yield_now();
        }
        let _leave = Leave(sequence);
        // The odd sequence must be visible before any of the stores that follow.
        std::sync::atomic::fence(Ordering::Release);
        Ok(f(&mut WindowMut::new(words, skip, len)))
    }

    fn take(&self, len: usize) -> Result<u64, MemoryError> {
        let len = self.rounded(len);
        let mut books = self.books();
        let addr = match books.free.get_mut(&len).and_then(Vec::pop) {
            Some(addr) => addr,
            None => {
                let addr = books.next;
                let end = addr.saturating_add(len as u64);
                if end > (self.inner.limit + self.inner.block) as u64 {
                    return Err(MemoryError::OutOfMemory);
                }
                books.next = end;
                addr
            }
        };
        Ok(addr)
    }

    fn take_back(&self, addr: u64, len: usize) -> Result<(), MemoryError> {
        let mut books = self.books();
        if books.live.get(&addr).map(|known| known.0) != Some(len) {
            return Err(MemoryError::Other(
                format!("free of {len} bytes at {addr:#x}, which is not allocated").into(),
            ));
        }
        books.live.remove(&addr);
        books.pages.remove(&addr);
        books.live_bytes -= len;
        drop(books);
        let rounded = self.rounded(len);
        self.each_block(addr, rounded, |at, part| {
            self.change(at, part.len(), |view| {
                for word in (0..part.len()).step_by(8) {
                    view.set_u64(word, u64::from_ne_bytes([POISON; 8]));
                }
            })
        })?;
        self.books().free.entry(rounded).or_default().push(addr);
        Ok(())
    }

    /// Whole blocks only: simple, and every allocation is block-aligned.
    fn rounded(&self, len: usize) -> usize {
        len.max(1).next_multiple_of(self.inner.block)
    }
}

impl Memory for HeapMemory {
    type Pages = HeapPages;

    fn block_size(&self) -> usize {
        self.inner.block
    }

    fn id(&self) -> u16 {
        self.id
    }

    fn nodes(&self) -> usize {
        self.inner.nodes
    }

    #[inline]
    fn snapshot<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, MemoryError> {
        self.happening(Step::Read(addr, len), || self.look(addr, len, f))
    }

    #[inline]
    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R, MemoryError> {
        self.happening(Step::Update(addr, len), || self.change(addr, len, f))
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        self.happening(Step::Read(addr, out.len()), || {
            self.each_block(addr, out.len(), |at, part| {
                self.look(at, part.len(), |view| view.read(0, &mut out[part.clone()]))
            })
        })
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.happening(Step::Write(addr, bytes.len()), || {
            self.each_block(addr, bytes.len(), |at, part| {
                self.change(at, part.len(), |view| view.write(0, &bytes[part]))
                    .map(|_| ())
            })
        })
    }

    fn alloc(&self, len: usize) -> Result<u64, MemoryError> {
        self.alloc_on(self.id, len)
    }

    fn alloc_on(&self, home: u16, len: usize) -> Result<u64, MemoryError> {
        self.events.happens(Step::Give(home))?;
        if self.books().withheld.contains(&home) {
            return Err(MemoryError::OutOfMemory);
        }
        let addr = self.take(len)?;
        let mut books = self.books();
        books.live.insert(addr, (len, home));
        books.live_bytes += len;
        drop(books);
        let _ = self.events.happens(Step::Given(home, addr));
        Ok(addr)
    }

    fn free(&self, addr: u64, len: usize) -> Result<(), MemoryError> {
        self.happening(Step::TakeBack(addr), || self.take_back(addr, len))
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64, MemoryError> {
        if let Some(&(addr, have, kind)) = self.books().regions.get(name) {
            if (have, kind) != (len, type_hash) {
                return Err(MemoryError::Mismatch(format!(
                    "{name} has {have} bytes, {len} asked for"
                )));
            }
            return Ok(addr);
        }
        let addr = self.take(len)?;
        // Somebody else may have made it meanwhile; then this piece is the loser's and stays
        // unused.
        let mut books = self.books();
        Ok(books
            .regions
            .entry(name.to_owned())
            .or_insert((addr, len, type_hash))
            .0)
    }

    fn used_bytes(&self) -> usize {
        self.live_bytes()
    }

    /// Regions are node 0's.
    fn home_of(&self, addr: u64) -> Option<u16> {
        let books = self.books();
        let before = books.live.range(..=addr).next_back();
        let holds = before.filter(|(start, (len, _))| addr - **start < *len as u64);
        let mut regions = books.regions.values();
        let of_region =
            |region: &(u64, usize, u64)| (region.0..region.0 + region.1 as u64).contains(&addr);
        match holds {
            Some((_, (_, home))) => Some(*home),
            None => regions.any(of_region).then_some(0),
        }
    }

    fn withhold(&self, yes: bool) {
        let withheld = &mut self.books().withheld;
        let _ = match yes {
            true => withheld.insert(self.id),
            false => withheld.remove(&self.id),
        };
    }

    fn given_bytes(&self) -> usize {
        let books = self.books();
        let mine = books.live.values().filter(|known| known.1 == self.id);
        mine.map(|known| known.0).sum()
    }

    fn pages(&self, addr: u64, count: usize, len: usize) -> Result<HeapPages, MemoryError> {
        let mut books = self.books();
        let pages = books.pages.entry(addr);
        let locked = pages.or_insert_with(|| Arc::new(Locked::new(count, len)));
        Ok(HeapPages {
            locked: locked.clone(),
            addr,
            events: self.events.clone(),
        })
    }

    fn fate(&self, addr: u64) -> Fate {
        self.events.fate(addr)
    }

    fn lives(&self) -> u64 {
        self.events.lives()
    }

    fn undisturbed(&self) -> bool {
        self.events.undisturbed()
    }

    fn confirm(&self) -> Result<(), MemoryError> {
        self.events.confirm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cross_blocks_and_chunks() {
        let memory = HeapMemory::new(256, 8 << 20, 1);
        let addr = memory.alloc(3 << 20).unwrap();
        let bytes: Vec<u8> = (0..3 << 20).map(|i| (i % 251) as u8).collect();
        memory.write(addr, &bytes).unwrap();
        let mut out = vec![0; bytes.len() - 77];
        memory.read(addr + 77, &mut out).unwrap();
        assert_eq!(out, bytes[77..]);
    }

    #[test]
    fn the_limit_holds_and_freed_memory_comes_back() {
        let memory = HeapMemory::new(4096, 8 * 4096, 1);
        let all: Vec<u64> = (0..8).map(|_| memory.alloc(4096).unwrap()).collect();
        assert!(matches!(memory.alloc(1), Err(MemoryError::OutOfMemory)));
        memory.free(all[3], 4096).unwrap();
        assert_eq!(memory.alloc(4000).unwrap(), all[3]);
        assert!(memory.free(all[4], 4095).is_err());
        assert_eq!(memory.live_bytes(), 7 * 4096 + 4000);
    }

    #[test]
    fn updates_are_exclusive_and_snapshots_are_whole() {
        let memory = HeapMemory::new(256, 1 << 20, 1);
        let addr = memory.alloc(256).unwrap();
        memory.write(addr, &[0; 256]).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        memory
                            .update(addr, 256, |view| {
                                let next = view.u64(0) + 1;
                                (0..32).for_each(|i| assert!(view.set_u64(i * 8, next)));
                            })
                            .unwrap();
                    }
                });
            }
            for _ in 0..20_000 {
                let words = memory
                    .snapshot(addr, 256, |view| {
                        [view.u64(0), view.u64(128), view.u64(248)]
                    })
                    .unwrap();
                assert!(words.iter().all(|w| *w == words[0]), "torn: {words:?}");
            }
        });
        assert_eq!(
            memory.snapshot(addr, 8, |view| view.u64(0)).unwrap(),
            40_000
        );
    }
}
