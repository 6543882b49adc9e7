//! A rack's memory with copies: a store in it outlives any node.
//!
//! All of it is one coherent region that a group keeps, and whose writes all survive
//! ([`rackmem::Survives::Writes`]): what has returned is with a majority. Nothing that is
//! read is kept anywhere else, so a node that dies takes along what it had begun, and free memory
//! that it had kept for what it would have begun next:
//!
//! - `book.rs`: what is handed out;
//! - `magazine.rs`: what a process has freed and takes first.
//!
//! A page is behind a lock of an [`RwLockArray`] in that region: readers inside together, or one
//! writer, and the page travels with the lock. A writer who has changed it leaves when a majority
//! has the page, whole. So a page is as somebody left it, also when one dies inside.
//! What a thread inside has freed is handed out again only after the page that does not name it any
//! more is written.

mod book;
mod magazine;

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use rackmem::locked::RwLockArray;
use rackmem::window::{Window, WindowMut};
use rackmem::{KvCopies, Node, Region, RegionSpec, Survives, check_kv_copies};

use self::book::Book;
use super::{Access, LONGEST_PAGE, Memory, MemoryError, NodeInside, Pages};

/// Of the longest page, or a block, what is kept for the record of its lock: more than it takes, so
/// that a page is a multiple of it.
const RECORD: usize = 64;
/// How long a thread that leaves tries to have a majority have the page.
const LEAVING: Duration = Duration::from_secs(30);

const _: () = assert!(RwLockArray::room_in_region(LONGEST_PAGE - RECORD) == LONGEST_PAGE);

thread_local! {
    /// Pages that this thread is inside of.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
    /// What it has freed since it entered the first.
    static FREED: RefCell<Vec<(u64, usize)>> = const { RefCell::new(Vec::new()) };
    /// It has left a page that may not have been written.
    static DOUBT: Cell<bool> = const { Cell::new(false) };
}

/// Memory with copies, as one node of a rack sees it.
#[derive(Clone)]
pub struct CopiedMemory {
    node: Node,
    region: Region,
    book: Arc<Book>,
}

impl CopiedMemory {
    /// The memory of this name, of so many bytes, of which so many nodes have a copy: 3, 5 or 7;
    /// made if there is none. All of its writes survive: with fewer promises a death would take
    /// parts of values. With a [`durability`](KvCopies::durability) they survive that all nodes
    /// end, in the folder of the rack's `store`.
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
    pub fn open(
        node: &Node,
        name: &str,
        bytes: usize,
        copies: impl Into<KvCopies>,
    ) -> Result<Self, MemoryError> {
        let KvCopies { count, durability } = copies.into();
        check_kv_copies(count, node.nodes()).map_err(MemoryError::Copies)?;
        let spec = RegionSpec::new(name, bytes).copies(count);
        let spec = spec.survives(Survives::Writes).durability(durability);
        let region = node.create_region(&spec)?;
        let book = Book::new(node.clone(), region.addr(), region.bytes());
        Ok(CopiedMemory {
            node: node.clone(),
            region,
            book: Arc::new(book),
        })
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Bytes that so many pages take in memory of such blocks.
    pub const fn bytes_of_pages(count: usize, block: usize) -> usize {
        count
            * if block < LONGEST_PAGE {
                block
            } else {
                LONGEST_PAGE
            }
    }

    fn block(&self) -> usize {
        self.node.block_size()
    }
}

/// What a thread has freed inside, when it is inside of no page any more; `kept`: a majority has
/// the pages that do not name it. What cannot be put back stays unused.
fn put_freed_back(memory: &CopiedMemory, kept: bool) {
    let freed = FREED.take();
    let back = |(addr, len): &(u64, usize)| memory.book.give(*addr, *len).is_ok();
    let _ = kept && freed.iter().all(back);
}

/// Pages of a [`CopiedMemory`], each behind a lock.
pub struct CopiedPages {
    memory: CopiedMemory,
    locks: RwLockArray,
}

impl Pages for CopiedPages {
    type Inside = NodeInside;

    #[inline]
    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<NodeInside>, MemoryError> {
        let inside = Pages::enter(&self.locks, page, access, at_most)?;
        INSIDE.set(INSIDE.get() + usize::from(inside.is_some()));
        Ok(inside)
    }

    #[inline]
    fn leave(&self, mut inside: NodeInside) {
        let kept = match &mut inside {
            NodeInside::Reading(_) => true,
            NodeInside::Writing(entered) => self.locks.keep(entered, LEAVING).is_ok(),
        };
        INSIDE.set(INSIDE.get().saturating_sub(1));
        if INSIDE.get() == 0 {
            put_freed_back(&self.memory, kept);
        }
        match kept {
            true => Pages::leave(&self.locks, inside),
            // Whether a majority has the page nobody knows: nobody is to see it before.
            false => DOUBT.set(true),
        }
    }

    // `is_outdated`: never. What a writer has left is with a majority, whoever has died.

    #[inline]
    fn view<'a>(&'a self, inside: &'a NodeInside) -> Window<'a> {
        Pages::view(&self.locks, inside)
    }

    #[inline]
    fn view_mut<'a>(&'a self, inside: &'a mut NodeInside, len: usize) -> Option<WindowMut<'a>> {
        Pages::view_mut(&self.locks, inside, len)
    }

    fn trim(&self, inside: &mut NodeInside, len: usize) {
        Pages::trim(&self.locks, inside, len);
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
        self.book.take(len)
    }

    fn alloc_on(&self, _: u16, len: usize) -> Result<u64, MemoryError> {
        self.book.take(len)
    }

    fn alloc_pages(&self, _: u16, count: usize) -> Result<u64, MemoryError> {
        self.book.fresh(Self::bytes_of_pages(count, self.block()))
    }

    fn free(&self, addr: u64, len: usize) -> Result<(), MemoryError> {
        if INSIDE.get() == 0 {
            return self.book.give(addr, len);
        }
        FREED.with_borrow_mut(|freed| freed.push((addr, len)));
        Ok(())
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64, MemoryError> {
        self.book.region(name, len, type_hash)
    }

    fn page_bytes(&self) -> usize {
        self.block().min(LONGEST_PAGE) - RECORD
    }

    fn pages(&self, addr: u64, count: usize, len: usize) -> Result<CopiedPages, MemoryError> {
        let at = (addr - self.region.addr()) as usize;
        Ok(CopiedPages {
            memory: self.clone(),
            locks: RwLockArray::in_region(&self.region, at, count, len)?,
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
