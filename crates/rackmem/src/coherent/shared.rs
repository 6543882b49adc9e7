//! `Shared<T>`: one value that every node reads from its own cache and any node may change.

use crate::bytes::value::Value;
use crate::error::{AccessError, AllocError, RegionError};
use crate::node::Node;
use crate::region::Region;
use rackmem_proto::wire::{Contract, Tag};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

impl Node {
    /// A new shared value in this node's memory. Values of one size share blocks:
    /// those that different nodes write often are better allocated with [`Node::alloc_isolated`].
    ///
    /// # Errors
    /// [`AllocError::OutOfMemory`], and [`AllocError::TooLarge`] for more than a block.
    pub fn alloc<T: Value>(&self, value: T) -> Result<Shared<T>, AllocError> {
        Shared::create(self, self.alloc_bytes(size_of::<T>().max(8))?, value)
    }

    /// A new shared value in a block of its own.
    ///
    /// # Errors
    /// Those of [`Node::alloc`].
    pub fn alloc_isolated<T: Value>(&self, value: T) -> Result<Shared<T>, AllocError> {
        let addr = self.alloc_bytes(size_of::<T>().max(self.inner.block))?;
        let shared = Shared::create(self, addr, value)?;
        let isolated = true;
        Ok(Shared { isolated, ..shared })
    }

    /// A handle on a value that some node has allocated. Nothing says which type is there: a lock
    /// does ([`Mutex::attach`](crate::locked::Mutex::attach)), and so does a name
    /// ([`Node::named_slice`]).
    ///
    /// # Errors
    /// [`AccessError::BadRange`] when no `T` can be there, and those of [`Node::read`].
    pub fn attach<T: Value>(&self, addr: u64) -> Result<Shared<T>, AccessError> {
        Shared::attach(self, addr)
    }
}

impl Region {
    /// The nth value of a region of coherent memory, counted from 0: values of one type, one behind
    /// the other, none of which is in two blocks.
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where it is no coherent memory, [`AccessError::OutOfBounds`]
    /// where it has no such value, and those of [`Node::attach`].
    pub fn shared<T: Value>(&self, nth: usize) -> Result<Shared<T>, RegionError> {
        if self.contract() != Contract::Coherent {
            let wrong = AccessError::wrong_contract(Tag(self.addr()), Contract::Coherent);
            return Err(wrong.into());
        }
        self.check()?;
        let apart = size_of::<T>().max(8);
        let (at, len, of) = (nth, 1, self.bytes() / apart);
        if nth >= of {
            return Err(AccessError::OutOfBounds { at, len, of }.into());
        }
        Ok(self.node().attach(self.addr() + (nth * apart) as u64)?)
    }
}

/// A value of at most one block in coherent memory. Reads and writes are linearizable across the
/// rack. Numbers and [`Bool`](crate::Bool) have the operations of atomics, too: `swap`,
/// `compare_exchange`, `fetch_update`, `fetch_add` and the like.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, Shared};
///
/// let rack = Rack::local(2)?;
/// let high: Shared<f32> = rack.node(0).alloc(1.5)?;
/// let same: Shared<f32> = rack.node(1).attach(high.addr())?;
/// same.fetch_max(2.5)?;
/// assert_eq!(high.read()?, 2.5);
/// assert_eq!(high.compare_exchange(1.0, 0.0)?, Err(2.5));
/// # Ok(())
/// # }
/// ```
///
/// A number that several nodes change a little at a time stays at its home, which makes changes for
/// them, each once; one that a node uses alone, or often at a time, comes to that node.
/// This goes by counts (`docs/decisions/0109`). So a change that ends with
/// [`RackError::Timeout`](crate::RackError::Timeout) or `NodeLost` may have been made.
///
/// The handle is an address and a node. Dropping it frees nothing:
/// other nodes may have the address. [`Shared::free`] does.
pub struct Shared<T> {
    node: Node,
    addr: u64,
    /// Its block, and which word of it.
    tag: Tag,
    at: u32,
    /// The cache entry where the block was last found.
    hint: AtomicU32,
    /// Whether it was allocated with a block of its own, by this handle or that which it is a clone
    /// of.
    isolated: bool,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Shared {
            node: self.node.clone(),
            addr: self.addr,
            tag: self.tag,
            at: self.at,
            hint: AtomicU32::new(self.hint.load(Relaxed)),
            isolated: self.isolated,
            value: PhantomData,
        }
    }
}

impl<T> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("of", &std::any::type_name::<T>())
            .field("addr", &format_args!("{:#018x}", self.addr))
            .finish()
    }
}

impl<T: Value> Shared<T> {
    fn at(node: &Node, addr: u64) -> Self {
        let tag = node.inner.access.agents.cache.tag_of(addr);
        Shared {
            node: node.clone(),
            addr,
            tag,
            at: ((addr - tag.0) / 8) as u32,
            hint: AtomicU32::new(u32::MAX),
            isolated: false,
            value: PhantomData,
        }
    }

    /// The word of a value of eight bytes, by the shortest way.
    #[inline]
    fn hit(&self) -> Option<u64> {
        let cache = &self.node.inner.access.agents.cache;
        cache.read_word(self.hint.load(Relaxed) as usize, self.tag, self.at as usize)
    }

    /// Changes the word of a value of eight bytes, by the shortest way.
    #[inline]
    pub(super) fn hit_mut<R>(&self, f: impl FnOnce(&AtomicU64) -> R) -> Option<R> {
        let cache = &self.node.inner.access.agents.cache;
        cache.write_word(
            self.hint.load(Relaxed) as usize,
            self.tag,
            self.at as usize,
            f,
        )
    }

    /// Remembers where the block is, after a miss.
    #[cold]
    pub(super) fn found(&self) {
        let agents = &self.node.inner.access.agents;
        // Where a majority is to have each write, there is no way around the one that sees to it.
        if agents.kept.writes_survive(self.tag) {
            return;
        }
        if let Some(entry) = agents.cache.find(self.tag) {
            self.hint
                .store(u32::try_from(entry).unwrap_or(u32::MAX), Relaxed);
        }
    }

    pub(crate) fn attach(node: &Node, addr: u64) -> Result<Self, AccessError> {
        let block = node.block_size();
        let len = size_of::<T>();
        let inside = addr as usize % block + len <= block;
        if len > block || !inside || !addr.is_multiple_of(8) {
            return Err(AccessError::BadRange { addr, len, block });
        }
        // A first read tells a wrong address now rather than later.
        let shared = Shared::at(node, addr);
        shared.read()?;
        Ok(shared)
    }

    pub(crate) fn create(node: &Node, addr: u64, value: T) -> Result<Self, AllocError> {
        if size_of::<T>() > node.block_size() {
            node.free_bytes(addr, size_of::<T>())?;
            return Err(AllocError::TooLarge {
                len: size_of::<T>(),
                most: node.block_size(),
            });
        }
        let shared = Shared::at(node, addr);
        shared.write(value)?;
        Ok(shared)
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Its global address, which [`Node::attach`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// The last value written, anywhere.
    ///
    /// # Errors
    /// Those of [`Node::read`], as of all operations on it.
    #[inline]
    pub fn read(&self) -> Result<T, AccessError> {
        let mut value = T::new_zeroed();
        if size_of::<T>() == 8 {
            let word = match self.hit() {
                Some(word) => word,
                None => {
                    let word = self.node.load(self.addr)?;
                    self.found();
                    word
                }
            };
            value.as_mut_bytes_of().copy_from_slice(&word.to_ne_bytes());
        } else {
            self.node.read(self.addr, value.as_mut_bytes_of())?;
        }
        Ok(value)
    }

    /// Replaces the value, everywhere.
    #[inline]
    pub fn write(&self, value: T) -> Result<(), AccessError> {
        let Ok(bytes) = <[u8; 8]>::try_from(value.as_bytes()) else {
            // All within one block.
            let len = size_of::<T>();
            return self.node.update(self.addr, len, |view| {
                view.write(0, value.as_bytes());
            });
        };
        let word = u64::from_ne_bytes(bytes);
        if self.hit_mut(|cell| cell.store(word, Relaxed)).is_some() {
            return Ok(());
        }
        self.node.store(self.addr, word)?;
        self.found();
        Ok(())
    }

    /// Replaces the value by what `f` makes of it, as one step; what was there before. `f` must be
    /// short and must not use the rack.
    pub fn update(&self, f: impl FnOnce(T) -> T) -> Result<T, AccessError> {
        self.node.update(self.addr, size_of::<T>(), |view| {
            let mut old = T::new_zeroed();
            view.read(0, old.as_mut_bytes_of());
            view.write(0, f(old).as_bytes());
            old
        })
    }

    /// [`Shared::read`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Shared::read`]; [`AccessError::TooManyAsked`].
    pub fn read_async(
        &self,
    ) -> impl Future<Output = Result<T, AccessError>> + Send + Unpin + use<T> {
        self.node.snapshot_async(self.addr, size_of::<T>(), |view| {
            let mut value = T::new_zeroed();
            view.read(0, value.as_mut_bytes_of());
            value
        })
    }

    /// [`Shared::write`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Shared::read_async`].
    pub fn write_async(
        &self,
        value: T,
    ) -> impl Future<Output = Result<(), AccessError>> + Send + Unpin + use<T> {
        self.node
            .update_async(self.addr, size_of::<T>(), move |view| {
                view.write(0, value.as_bytes());
            })
    }

    /// [`Shared::update`] as a future: see [the page on futures](crate::futures).
    ///
    /// # Errors
    /// Those of [`Shared::read_async`].
    pub fn update_async<F>(
        &self,
        f: F,
    ) -> impl Future<Output = Result<T, AccessError>> + Send + Unpin + use<T, F>
    where
        F: FnOnce(T) -> T + Send + 'static,
    {
        self.node
            .update_async(self.addr, size_of::<T>(), move |view| {
                let mut old = T::new_zeroed();
                view.read(0, old.as_mut_bytes_of());
                view.write(0, f(old).as_bytes());
                old
            })
    }

    /// Gives the memory back. Other handles on it must not be used any more: they read and write
    /// what is allocated there next.
    ///
    /// # Errors
    /// Those of [`Node::free_bytes`]. A handle from [`Node::attach`] does not know of a value that
    /// has a block of its own ([`Node::alloc_isolated`]), and says [`AllocError::NotAllocated`].
    pub fn free(self) -> Result<(), AllocError> {
        let len = match self.isolated {
            true => self.node.block_size(),
            false => size_of::<T>().max(8),
        };
        self.node.free_bytes(self.addr, len)
    }
}

/// Bytes of a `Value` to write into, without asking for more than a `Value` promises.
trait BytesOf {
    fn as_mut_bytes_of(&mut self) -> &mut [u8];
}

impl<T: Value> BytesOf for T {
    fn as_mut_bytes_of(&mut self) -> &mut [u8] {
        self.as_mut_bytes()
    }
}
