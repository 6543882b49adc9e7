//! What of the memory is handed out. All nodes go by one book, in its first block:
//!
//! ```text
//! block 0     0 next: u64              first byte never handed out
//!             8 changes: u64           of this block: whoever saw an older one looks again
//!            16 region, its bytes and type: u64 × 3
//!            40 free: [u64; 40]        by size, a power of two: first of a list
//! block 1..   what is handed out; a free piece begins with the address of the next
//! ```

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rackmem::Node;
use rackmem::window::{Window, WindowMut};

use super::magazine::Magazine;
use crate::memory::MemoryError;

const NEXT: usize = 0;
const CHANGES: usize = 8;
const REGION: usize = 16;
const FREE: usize = 40;
pub(super) const CLASSES: usize = 40;
/// Bytes of block 0 in use.
const ROOT: usize = FREE + 8 * CLASSES;
/// The smallest piece.
const PIECE: usize = 64;
/// Pieces that a process has handed out to it at once: one that it needs, and others for later.
const AT_ONCE: usize = 8;

/// How long a process that ends waits until what it has kept is given back.
const GIVING: Duration = Duration::from_secs(1);

const _: () = assert!(ROOT <= 512);

/// The book of a memory, as one node goes by it. It gives what it has kept back when it ends.
pub(super) struct Book {
    root: Root,
    kept: Mutex<Magazine>,
}

/// Where the book is.
#[derive(Clone)]
struct Root {
    node: Node,
    base: u64,
    len: u64,
}

/// Which list a piece of so many bytes is of.
fn class(len: usize) -> Result<usize, MemoryError> {
    let size = len.max(PIECE).checked_next_power_of_two();
    let class = size.map(|size| size.trailing_zeros() as usize);
    class
        .filter(|class| *class < CLASSES)
        .ok_or(MemoryError::OutOfMemory)
}

/// Where the list of a class begins.
fn list(class: usize) -> usize {
    FREE + 8 * class
}

impl Root {
    /// Memory never handed out: so many times so many bytes, or as often as there is room for them.
    /// Each begins a block, or is within one. The first, and how many.
    fn carve(&self, view: &mut WindowMut<'_>, bytes: usize, times: usize) -> Option<(u64, usize)> {
        let (block, bytes) = (self.node.block_size() as u64, bytes as u64);
        let align = match bytes.is_power_of_two() {
            true => block.min(bytes),
            false => block,
        };
        let at = view.u64(NEXT).max(block).next_multiple_of(align);
        let times = (self.len.saturating_sub(at) / bytes).min(times as u64);
        if times == 0 {
            return None;
        }
        view.set_u64(NEXT, at + times * bytes);
        view.set_u64(CHANGES, view.u64(CHANGES) + 1);
        Some((self.base + at, times as usize))
    }

    /// Puts pieces of a class in front of its list, for all nodes.
    fn enlist(&self, class: usize, pieces: &[u64]) -> Result<(), MemoryError> {
        let (first, last) = match pieces {
            [] => return Ok(()),
            [one] => (*one, *one),
            [first, .., last] => (*first, *last),
        };
        for pair in pieces.windows(2) {
            self.node.store(pair[0], pair[1])?;
        }
        loop {
            let look = |view: &Window<'_>| view.u64(list(class));
            let head = self.node.snapshot(self.base, ROOT, look)?;
            self.node.store(last, head)?;
            let put = self.node.update(self.base, ROOT, |view| {
                let same = view.u64(list(class)) == head;
                if same {
                    view.set_u64(list(class), first);
                    view.set_u64(CHANGES, view.u64(CHANGES) + 1);
                }
                same
            })?;
            if put {
                return Ok(());
            }
        }
    }
}

impl Book {
    /// That of so many bytes of memory at `base`, of which zeros are a book.
    pub fn new(node: Node, base: u64, len: usize) -> Self {
        let root = Root {
            node,
            base,
            len: len as u64,
        };
        Book {
            root,
            kept: Mutex::new(Magazine::new(len)),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Magazine> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many bytes, never handed out and never given back.
    pub fn fresh(&self, bytes: usize) -> Result<u64, MemoryError> {
        let carve = |view: &mut WindowMut<'_>| self.root.carve(view, bytes.max(1), 1);
        let carved = self.root.node.update(self.root.base, ROOT, carve)?;
        carved.map(|(addr, _)| addr).ok_or(MemoryError::OutOfMemory)
    }

    /// A piece of so many bytes: one that is kept here, from the list of its size, or never handed
    /// out.
    pub fn take(&self, len: usize) -> Result<u64, MemoryError> {
        let class = class(len)?;
        if let Some(piece) = self.kept().take(class) {
            return Ok(piece);
        }
        loop {
            let look = |view: &Window<'_>| (view.u64(CHANGES), view.u64(list(class)));
            let (changes, head) = self.root.node.snapshot(self.root.base, ROOT, look)?;
            let next = match head {
                0 => 0,
                head => self.root.node.load(head)?,
            };
            let times = AT_ONCE.min(self.kept().room(class) + 1);
            let taken = self.root.node.update(self.root.base, ROOT, |view| {
                if view.u64(CHANGES) != changes {
                    return None;
                }
                if head == 0 {
                    return Some(self.root.carve(view, 1 << class, times));
                }
                view.set_u64(list(class), next);
                view.set_u64(CHANGES, changes + 1);
                Some(Some((head, 1)))
            })?;
            if let Some(taken) = taken {
                let (piece, times) = taken.ok_or(MemoryError::OutOfMemory)?;
                let others = (1..times as u64).map(|nth| piece + (nth << class));
                self.put_all_back(class, others)?;
                return Ok(piece);
            }
        }
    }

    /// Gives back what [`Book::take`] has given.
    pub fn give(&self, addr: u64, len: usize) -> Result<(), MemoryError> {
        self.put_all_back(class(len)?, [addr])
    }

    /// Keeps pieces of a class here; those for which there is no room go to the others.
    fn put_all_back(
        &self,
        class: usize,
        pieces: impl IntoIterator<Item = u64>,
    ) -> Result<(), MemoryError> {
        let mut pieces: Vec<u64> = pieces.into_iter().collect();
        let mut kept = self.kept();
        pieces.retain(|piece| !kept.keep(class, *piece));
        drop(kept);
        self.root.enlist(class, &pieces)
    }

    /// The region called so: the first to ask for it has it made.
    pub fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64, MemoryError> {
        let known = |view: &Window<'_>| std::array::from_fn(|at| view.u64(REGION + 8 * at));
        let mut region: [u64; 3] = self.root.node.snapshot(self.root.base, ROOT, known)?;
        if region[0] == 0 {
            let fresh = self.fresh(len.next_multiple_of(self.root.node.block_size()))?;
            region = self.root.node.update(self.root.base, ROOT, |view| {
                if view.u64(REGION) == 0 {
                    let words = [fresh, len as u64, type_hash];
                    for (at, word) in words.into_iter().enumerate() {
                        view.set_u64(REGION + 8 * at, word);
                    }
                }
                std::array::from_fn(|at| view.u64(REGION + 8 * at))
            })?;
        }
        match region[1..] == [len as u64, type_hash] {
            true => Ok(region[0]),
            false => Err(MemoryError::Mismatch(format!(
                "{name} has {} bytes, {len} asked for",
                region[1]
            ))),
        }
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        let kept: Vec<(usize, Vec<u64>)> = self.kept().empty().collect();
        if kept.is_empty() {
            return;
        }
        let root = self.root.clone();
        let giving = std::thread::spawn(move || {
            // Where it is not one of the rack any more, they stay unused.
            let back = |(class, pieces): &(usize, Vec<u64>)| root.enlist(*class, pieces).is_ok();
            kept.iter().all(back)
        });
        // Where all processes end together there is soon no majority that would answer.
        let end = Instant::now() + GIVING;
        while !giving.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::{Rack, RegionSpec, Survives};
    use std::collections::BTreeSet;

    const BYTES: usize = 4 << 20;

    /// The books of all nodes of a rack, of the same memory.
    fn books(rack: &Rack) -> Vec<Book> {
        let spec = RegionSpec::new("memory", BYTES).copies(3);
        let spec = spec.survives(Survives::Writes);
        let book = |node: &Node| {
            let region = node.create_region(&spec).unwrap();
            Book::new(node.clone(), region.addr(), region.bytes())
        };
        rack.nodes().iter().map(book).collect()
    }

    fn changes(book: &Book) -> u64 {
        book.root
            .node
            .load(book.root.base + CHANGES as u64)
            .unwrap()
    }

    /// Takes pieces until there are none.
    fn all(book: &Book, len: usize) -> BTreeSet<u64> {
        let mut taken = BTreeSet::new();
        loop {
            match book.take(len) {
                Ok(piece) => assert!(taken.insert(piece), "{piece:#x} is handed out twice"),
                Err(MemoryError::OutOfMemory) => return taken,
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[test]
    fn a_value_that_takes_the_place_of_another_changes_no_book() {
        let rack = Rack::local(3).unwrap();
        let books = books(&rack);
        let mut piece = books[1].take(1500).unwrap();
        let before = changes(&books[0]);
        for _ in 0..1000 {
            let next = books[1].take(1500).unwrap();
            books[1].give(piece, 1500).unwrap();
            piece = next;
        }
        assert_eq!(changes(&books[0]), before);
    }

    #[test]
    fn new_values_are_handed_out_several_at_a_time() {
        let rack = Rack::local(3).unwrap();
        let book = &books(&rack)[1];
        let before = changes(book);
        let taken: BTreeSet<u64> = (0..64).map(|_| book.take(100).unwrap()).collect();
        assert_eq!(taken.len(), 64);
        assert_eq!(changes(book), before + 64 / AT_ONCE as u64);
        // Nothing of a size of which nothing may be kept.
        let before = changes(book);
        for _ in 0..8 {
            book.take(64 << 10).unwrap();
        }
        assert_eq!(changes(book), before + 8);
    }

    #[test]
    fn what_a_book_has_kept_is_everybodys_when_it_ends_and_little_until_then() {
        let rack = Rack::local(3).unwrap();
        let mut books = books(&rack);
        for len in [100, 1000, 4096, 50_000] {
            let pieces = all(&books[0], len);
            assert!(pieces.len() > 8);
            pieces
                .iter()
                .for_each(|piece| books[0].give(*piece, len).unwrap());
            let elsewhere = all(&books[1], len);
            assert!(elsewhere.is_subset(&pieces));
            let kept = pieces.len() - elsewhere.len();
            assert!(kept * len <= BYTES / 1024 && kept <= 16, "{kept}");
            elsewhere
                .iter()
                .for_each(|piece| books[1].give(*piece, len).unwrap());
            // Those two end.
            let third = books.pop().unwrap();
            books.clear();
            // On a starved machine they may take longer than they are waited for.
            let (mut given, began) = (all(&third, len), Instant::now());
            while given.len() < pieces.len() && began.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(10));
                given.append(&mut all(&third, len));
            }
            assert_eq!(given, pieces, "{len}");
            pieces
                .iter()
                .for_each(|piece| third.give(*piece, len).unwrap());
            // Kept nowhere: the next size begins with an empty memory.
            third.kept().empty().for_each(drop);
            drop(third);
            books = self::books(&rack);
            let root = |view: &mut WindowMut<'_>| {
                for class in 0..CLASSES {
                    view.set_u64(list(class), 0);
                }
                view.set_u64(NEXT, 0);
            };
            rack.node(0).update(books[0].root.base, ROOT, root).unwrap();
        }
    }

    #[test]
    fn no_piece_is_two_threads_at_a_time() {
        let rack = Rack::local(3).unwrap();
        let books = books(&rack);
        let live = Mutex::new(BTreeSet::new());
        std::thread::scope(|scope| {
            for (nth, book) in books.iter().chain(&books).enumerate() {
                let live = &live;
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(nth as u64);
                    let mut mine = Vec::new();
                    for _ in 0..2000 {
                        let many = mine.len() > 40;
                        if many || random.bool() && !mine.is_empty() {
                            let (piece, len) = mine.swap_remove(random.usize(..mine.len()));
                            assert!(live.lock().unwrap().remove(&piece));
                            book.give(piece, len).unwrap();
                        } else {
                            let len = 1 << random.usize(3..14);
                            let piece = book.take(len).unwrap();
                            assert!(live.lock().unwrap().insert(piece));
                            book.root.node.store(piece, nth as u64).unwrap();
                            mine.push((piece, len));
                        }
                    }
                });
            }
        });
    }
}
