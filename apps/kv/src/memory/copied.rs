//! A rack's memory with copies: a store in it outlives any node.
//!
//! All of it is one coherent region that a group keeps, and whose writes all survive
//! ([`rackmem::Survives::Writes`]): what has returned is with a majority. Nothing here is kept
//! anywhere else, so a node that dies takes along what it had begun and nothing more.
//!
//! ```text
//! block 0     0 next: u64              first byte never handed out
//!             8 changes: u64           of this block: whoever saw an older one looks again
//!            16 region, its bytes and type: u64 × 3
//!            40 free: [u64; 40]        by size, a power of two: first of a list
//! block 1..   what is handed out
//! ```
//!
//! A page is a lock and a block. The lock is a word that says who is inside, a node's incarnation
//! among others, or who was last: whoever finds one of a dead incarnation takes it. A thread inside
//! has the page for itself; what it has changed is written back, whole, when it leaves, and then
//! the lock is released. So a page is as somebody left it, also when one dies inside. What a thread
//! inside has freed is handed out again only after the page that does not name it any more is
//! written.
//!
//! No two entries have the same word. So a reader need not enter: where the lock is free before and
//! after it has read, with the same word, the page and all that it names were nobody else's. Then a
//! read writes nothing, and its blocks stay with the nodes that read them.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rackmem::waiting::sleeps;
use rackmem::window::{Window, WindowMut};
use rackmem::{AccessError, Error, Node, RackError, RegionSpec, Survives, check_kv_copies};

use super::{Access, Memory, MemoryError, Pages};

const NEXT: usize = 0;
const CHANGES: usize = 8;
const REGION: usize = 16;
const FREE: usize = 40;
const CLASSES: usize = 40;
/// Bytes of block 0 in use.
const ROOT: usize = FREE + 8 * CLASSES;
/// The smallest piece, and the distance between two locks.
const PIECE: usize = 64;
/// The longest pause between two looks at a lock.
const LONGEST_PAUSE: Duration = Duration::from_millis(2);
/// Of a lock: nobody is inside, and the rest of the word says who was last. 0: nobody ever was. A
/// node's number, below 64, leaves the bit alone.
const FREE_SINCE: u64 = 1 << 63;
/// How long a thread that leaves tries, beside what each attempt waits.
const LEAVING: Duration = Duration::from_secs(30);

const _: () = assert!(ROOT <= 512);

thread_local! {
    /// Pages that this thread is inside of.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
    /// What it has freed since it entered the first.
    static FREED: RefCell<Vec<(u64, usize)>> = const { RefCell::new(Vec::new()) };
    /// It has left a page that may not have been written.
    static DOUBT: Cell<bool> = const { Cell::new(false) };
}

/// Numbers of locks that this process has taken.
static TOKENS: AtomicU64 = AtomicU64::new(1);

/// Memory with copies, as one node of a rack sees it.
#[derive(Clone)]
pub struct CopiedMemory {
    node: Node,
    base: u64,
    len: u64,
}

impl CopiedMemory {
    /// The memory of this name, of so many bytes, of which so many nodes have a copy: 3, 5 or 7;
    /// made if there is none. All of its writes survive: with fewer promises a death would take
    /// parts of values.
    ///
    /// ```
    /// use rackmem_kv::memory::CopiedMemory;
    /// use rackmem_kv::{Options, Store};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rack = rackmem::Rack::local(3)?;
    /// let options = Options { buckets: 64, ..Options::default() };
    /// let stores: Vec<Store<CopiedMemory>> = (0..3)
    ///     .map(|id| {
    ///         let memory = CopiedMemory::open(&rack.node(id), "store", 16 << 20, 3)?;
    ///         Ok(Store::open(memory, options.clone())?)
    ///     })
    ///     .collect::<Result<_, Box<dyn std::error::Error>>>()?;
    /// stores[0].set(b"greeting", b"hello")?;
    /// let mut value = Vec::new();
    /// assert!(stores[2].get(b"greeting", &mut value)? && value == b"hello");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`MemoryError::Copies`] where a store cannot have so many; those of [`Node::create_region`]:
    /// there are too few nodes yet, for example, or it has other copies.
    pub fn open(node: &Node, name: &str, bytes: usize, copies: u8) -> Result<Self, MemoryError> {
        check_kv_copies(copies, node.nodes()).map_err(MemoryError::Copies)?;
        let spec = RegionSpec::new(name, bytes).copies(copies);
        let region = node.create_region(&spec.survives(Survives::Writes))?;
        Ok(CopiedMemory {
            node: node.clone(),
            base: region.addr(),
            len: region.bytes() as u64,
        })
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Bytes that pages and their locks take.
    pub const fn bytes_of_pages(count: usize, block: usize) -> usize {
        (count * PIECE).next_multiple_of(block) + count * block
    }

    fn block(&self) -> usize {
        self.node.block_size()
    }

    /// Which list a piece of so many bytes is of.
    fn class(len: usize) -> Option<usize> {
        let class = len.max(PIECE).checked_next_power_of_two()?.trailing_zeros() as usize;
        (class < CLASSES).then_some(class)
    }

    /// Bytes never handed out, at the beginning of a block or of a piece of this size.
    fn carve(&self, view: &mut WindowMut<'_>, bytes: usize) -> Option<u64> {
        let block = self.block() as u64;
        let align = match bytes.is_power_of_two() {
            true => block.min(bytes as u64),
            false => block,
        };
        let at = view.u64(NEXT).max(block).next_multiple_of(align);
        let end = at
            .checked_add(bytes as u64)
            .filter(|end| *end <= self.len)?;
        view.set_u64(NEXT, end);
        view.set_u64(CHANGES, view.u64(CHANGES) + 1);
        Some(self.base + at)
    }

    fn fresh(&self, bytes: usize) -> Result<u64, MemoryError> {
        let carved = self
            .node
            .update(self.base, ROOT, |view| self.carve(view, bytes))?;
        carved.ok_or(MemoryError::OutOfMemory)
    }

    /// A piece from the list of its size, or one that was never handed out.
    fn take(&self, len: usize) -> Result<u64, MemoryError> {
        let class = Self::class(len).ok_or(MemoryError::OutOfMemory)?;
        let list = FREE + 8 * class;
        loop {
            let look = |view: &Window<'_>| (view.u64(CHANGES), view.u64(list));
            let (changes, head) = self.node.snapshot(self.base, ROOT, look)?;
            let next = match head {
                0 => 0,
                head => self.node.load(head)?,
            };
            let taken = self.node.update(self.base, ROOT, |view| {
                if view.u64(CHANGES) != changes {
                    return None;
                }
                if head == 0 {
                    return Some(self.carve(view, 1 << class));
                }
                view.set_u64(list, next);
                view.set_u64(CHANGES, changes + 1);
                Some(Some(head))
            })?;
            if let Some(piece) = taken {
                return piece.ok_or(MemoryError::OutOfMemory);
            }
        }
    }

    fn put_back(&self, addr: u64, len: usize) -> Result<(), MemoryError> {
        let class = Self::class(len).ok_or(MemoryError::OutOfMemory)?;
        let list = FREE + 8 * class;
        loop {
            let head = self.node.snapshot(self.base, ROOT, |view| view.u64(list))?;
            self.node.store(addr, head)?;
            let put = self.node.update(self.base, ROOT, |view| {
                let same = view.u64(list) == head;
                if same {
                    view.set_u64(list, addr);
                    view.set_u64(CHANGES, view.u64(CHANGES) + 1);
                }
                same
            })?;
            if put {
                return Ok(());
            }
        }
    }

    /// The region that there is: where, of how many bytes and which type.
    fn known_region(&self) -> Result<[u64; 3], MemoryError> {
        Ok(self.node.snapshot(self.base, ROOT, |view| {
            std::array::from_fn(|at| view.u64(REGION + 8 * at))
        })?)
    }

    fn token(&self) -> u64 {
        let (node, number) = (self.node.id(), TOKENS.fetch_add(1, Relaxed) as u32);
        let life = self.node.incarnation_of(node) & 0xff_ffff;
        u64::from(node + 1) << 56 | u64::from(life) << 32 | u64::from(number)
    }

    /// Whether who is inside by this word died there.
    fn is_dead(&self, token: u64) -> bool {
        let (node, life) = ((token >> 56) as u16 - 1, (token >> 32) as u32 & 0xff_ffff);
        let now = self.node.incarnation_of(node) & 0xff_ffff;
        now > life || now == life && !self.node.is_member(node)
    }
}

/// Whether the rack goes on without this process, or is closed.
fn is_over(error: &Error) -> bool {
    matches!(error.rack(), Some(RackError::Fenced | RackError::Closed))
}

/// Does something that may be done twice, until it is done.
fn until_done(mut f: impl FnMut() -> Result<(), Error>) -> bool {
    let began = Instant::now();
    loop {
        match f() {
            Ok(()) => return true,
            Err(error) if is_over(&error) || began.elapsed() >= LEAVING => return false,
            Err(_) => {
                sleeps();
                std::thread::sleep(LONGEST_PAUSE);
            }
        }
    }
}

/// Pages of a [`CopiedMemory`], each behind a lock.
#[derive(Clone)]
pub struct CopiedPages {
    memory: CopiedMemory,
    locks: u64,
    first: u64,
    len: usize,
}

/// That a thread is inside of the lock of one of [`CopiedPages`], and the page; or only that it has
/// seen the page.
#[derive(Debug)]
pub struct CopiedInside {
    page: usize,
    /// The lock's word: what this thread took it with, or what it was when nobody was inside.
    token: u64,
    access: Access,
    /// This thread has not entered.
    glanced: bool,
    changed: bool,
    words: Box<[AtomicU64]>,
}

/// Whether nobody is inside of a lock with this word.
fn is_free(word: u64) -> bool {
    word == 0 || word & FREE_SINCE != 0
}

impl CopiedPages {
    fn lock(&self, page: usize) -> u64 {
        self.locks + (page * PIECE) as u64
    }

    fn page(&self, page: usize) -> u64 {
        self.first + (page * self.memory.block()) as u64
    }

    /// Takes a lock that is free, or whose holder has died.
    fn take(&self, page: usize, token: u64) -> Result<bool, MemoryError> {
        let (node, lock) = (&self.memory.node, self.lock(page));
        let free = |now| is_free(now) || now == token || self.memory.is_dead(now);
        let now = node.load(lock)?;
        if !free(now) {
            return Ok(false);
        }
        let taken = node.fetch_update(lock, |seen| (seen == now).then_some(token));
        match taken {
            Ok(seen) => Ok(seen == now),
            // It may have been taken: the next look shows it.
            Err(AccessError::Interrupted { .. }) => Ok(node.load(lock)? == token),
            Err(error) => Err(error.into()),
        }
    }

    fn release(&self, page: usize, token: u64) -> bool {
        let lock = self.lock(page);
        until_done(|| {
            let freed = |now| (now == token).then_some(FREE_SINCE | token);
            self.memory.node.fetch_update(lock, freed)?;
            Ok(())
        })
    }

    fn load(&self, page: usize) -> Result<Box<[AtomicU64]>, MemoryError> {
        let mut bytes = vec![0; self.len.next_multiple_of(8)];
        self.memory.node.read(self.page(page), &mut bytes)?;
        let words = bytes.chunks_exact(8);
        let words = words.map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
        Ok(words.map(AtomicU64::new).collect())
    }
}

impl Pages for CopiedPages {
    type Inside = CopiedInside;

    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<CopiedInside>, MemoryError> {
        let (token, began) = (self.memory.token(), Instant::now());
        let mut pause = Duration::from_micros(20);
        while !self.take(page, token)? {
            if began.elapsed() >= at_most {
                return Ok(None);
            }
            sleeps();
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        let words = match self.load(page) {
            Ok(words) => words,
            Err(error) => {
                self.release(page, token);
                return Err(error);
            }
        };
        INSIDE.set(INSIDE.get() + 1);
        Ok(Some(CopiedInside {
            page,
            token,
            access,
            glanced: false,
            changed: false,
            words,
        }))
    }

    fn glance(&self, page: usize) -> Result<Option<CopiedInside>, MemoryError> {
        let token = self.memory.node.load(self.lock(page))?;
        if !is_free(token) {
            return Ok(None);
        }
        Ok(Some(CopiedInside {
            page,
            token,
            access: Access::Read,
            glanced: true,
            changed: false,
            words: self.load(page)?,
        }))
    }

    fn is_as_seen(&self, inside: &CopiedInside) -> Result<bool, MemoryError> {
        let word = || self.memory.node.load(self.lock(inside.page));
        Ok(!inside.glanced || word()? == inside.token)
    }

    fn leave(&self, inside: CopiedInside) {
        if inside.glanced {
            return;
        }
        let node = &self.memory.node;
        let mut done = true;
        if inside.changed {
            let words = inside.words.iter();
            let bytes: Vec<u8> = words
                .flat_map(|word| word.load(Relaxed).to_ne_bytes())
                .collect();
            done = until_done(|| Ok(node.write(self.page(inside.page), &bytes)?));
        }
        INSIDE.set(INSIDE.get().saturating_sub(1));
        if INSIDE.get() == 0 {
            let freed = FREED.take();
            // What cannot be put back stays unused.
            let back = |(addr, len): &(u64, usize)| self.memory.put_back(*addr, *len).is_ok();
            let _ = done && freed.iter().all(back);
        }
        let released = done && self.release(inside.page, inside.token);
        if !released {
            DOUBT.set(true);
        }
    }

    fn view<'a>(&'a self, inside: &'a CopiedInside) -> Window<'a> {
        Window::new(&inside.words, 0, self.len)
    }

    fn view_mut<'a>(&'a self, inside: &'a mut CopiedInside, _: usize) -> Option<WindowMut<'a>> {
        let writes = inside.access == Access::Write;
        inside.changed |= writes;
        writes.then(|| WindowMut::new(&inside.words, 0, self.len))
    }

    fn trim(&self, inside: &mut CopiedInside, len: usize) {
        if inside.access == Access::Write {
            inside.changed = true;
            let behind = &inside.words[len.div_ceil(8)..];
            behind.iter().for_each(|word| word.store(0, Relaxed));
        }
    }
}

impl Memory for CopiedMemory {
    type Pages = CopiedPages;

    fn block_size(&self) -> usize {
        self.block()
    }

    fn id(&self) -> u16 {
        self.node.id()
    }

    fn nodes(&self) -> usize {
        self.node.nodes()
    }

    fn snapshot<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnMut(&Window<'_>) -> R,
    ) -> Result<R, MemoryError> {
        Ok(self.node.snapshot(addr, len, f)?)
    }

    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut WindowMut<'_>) -> R,
    ) -> Result<R, MemoryError> {
        Ok(self.node.update(addr, len, f)?)
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        Ok(self.node.read(addr, out)?)
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        Ok(self.node.write(addr, bytes)?)
    }

    fn alloc(&self, len: usize) -> Result<u64, MemoryError> {
        self.take(len)
    }

    fn alloc_on(&self, _: u16, len: usize) -> Result<u64, MemoryError> {
        self.take(len)
    }

    fn alloc_pages(&self, _: u16, count: usize) -> Result<u64, MemoryError> {
        self.fresh(Self::bytes_of_pages(count, self.block()))
    }

    fn free(&self, addr: u64, len: usize) -> Result<(), MemoryError> {
        if INSIDE.get() == 0 {
            return self.put_back(addr, len);
        }
        FREED.with_borrow_mut(|freed| freed.push((addr, len)));
        Ok(())
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64, MemoryError> {
        let bytes = len.next_multiple_of(self.block());
        let mut known = self.known_region()?;
        if known[0] == 0 {
            let fresh = self.fresh(bytes)?;
            known = self.node.update(self.base, ROOT, |view| {
                if view.u64(REGION) == 0 {
                    let words = [fresh, len as u64, type_hash];
                    for (at, word) in words.into_iter().enumerate() {
                        view.set_u64(REGION + 8 * at, word);
                    }
                }
                std::array::from_fn(|at| view.u64(REGION + 8 * at))
            })?;
        }
        match known[1..] == [len as u64, type_hash] {
            true => Ok(known[0]),
            false => Err(MemoryError::Mismatch(format!(
                "{name} has {} bytes, {len} asked for",
                known[1]
            ))),
        }
    }

    fn pages(&self, addr: u64, count: usize, len: usize) -> Result<CopiedPages, MemoryError> {
        let block = self.block() as u64;
        Ok(CopiedPages {
            memory: self.clone(),
            locks: addr,
            first: addr + ((count * PIECE) as u64).next_multiple_of(block),
            len,
        })
    }

    fn is_member(&self, node: u16) -> bool {
        Memory::is_member(&self.node, node)
    }

    fn lives(&self) -> u64 {
        Memory::lives(&self.node)
    }

    fn life(&self) -> u64 {
        Memory::life(&self.node)
    }

    fn used_bytes(&self) -> usize {
        Memory::used_bytes(&self.node)
    }

    fn pages_survive(&self) -> bool {
        true
    }

    fn undisturbed(&self) -> bool {
        Memory::undisturbed(&self.node)
    }

    /// Buckets of a node that has died are there: the lowest live one looks after them.
    fn looks_after(&self, home: u16) -> bool {
        let node = &self.node;
        let mut live = (0..node.nodes() as u16).filter(|other| node.is_member(*other));
        home == node.id() || !node.is_member(home) && live.next() == Some(node.id())
    }

    fn confirm(&self) -> Result<(), MemoryError> {
        self.node.confirm()?;
        match DOUBT.take() {
            true => Err(MemoryError::Other(
                "no majority of the copies has answered: what was changed may be lost".into(),
            )),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reader who has not entered has seen counts as long as nobody has entered to write,
    /// however often one did, and whatever the page is then.
    #[test]
    fn a_glance_ends_with_the_next_writer() {
        let rack = rackmem::Rack::local(3).unwrap();
        let [here, there] = [0, 1].map(|id| {
            let memory = CopiedMemory::open(&rack.node(id), "store", 1 << 20, 3).unwrap();
            let addr = 2 * memory.block() as u64 + memory.base;
            memory.pages(addr, 2, memory.block()).unwrap()
        });
        let enter = |access| there.enter(0, access, Duration::ZERO).unwrap().unwrap();
        for access in [Access::Write, Access::Read, Access::Write] {
            let seen = here.glance(0).unwrap().unwrap();
            assert!(here.is_as_seen(&seen).unwrap());
            let inside = enter(access);
            assert!(!here.is_as_seen(&seen).unwrap());
            assert!(here.glance(0).unwrap().is_none(), "somebody is inside");
            assert!(here.glance(1).unwrap().is_some(), "of another page");
            there.leave(inside);
            assert!(!here.is_as_seen(&seen).unwrap());
            let again = here.glance(0).unwrap().unwrap();
            here.leave(seen);
            assert!(here.is_as_seen(&again).unwrap());
        }
        assert_eq!((INSIDE.get(), DOUBT.get()), (0, false));
    }
}
