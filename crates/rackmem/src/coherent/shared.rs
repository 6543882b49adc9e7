//! `Shared<T>`: one value that every node reads from its own cache and any node may change.

use crate::error::{AccessError, AllocError};
use crate::node::Node;
use rackmem_proto::wire::Tag;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use zerocopy::{FromBytes, Immutable, IntoBytes};

impl Node {
    /// A new shared value in this node's memory. Values of one size share blocks:
    /// those that different nodes write often are better allocated with [`Node::alloc_isolated`].
    pub fn alloc<T: Value>(&self, value: T) -> Result<Shared<T>, AllocError> {
        Shared::create(self, self.alloc_bytes(size_of::<T>().max(8))?, value)
    }

    /// A new shared value in a block of its own.
    pub fn alloc_isolated<T: Value>(&self, value: T) -> Result<Shared<T>, AllocError> {
        Shared::create(
            self,
            self.alloc_bytes(size_of::<T>().max(self.inner.block))?,
            value,
        )
    }

    /// A handle on a value that some node has allocated.
    pub fn attach<T: Value>(&self, addr: u64) -> Result<Shared<T>, AccessError> {
        Shared::attach(self, addr)
    }
}

/// What can be shared between machines: plain bytes, no pointers, every bit pattern a value.
/// Integers, floats and arrays of them are; a `bool` is as a [`Bool`](crate::Bool). A struct is
/// when it derives these three of [`zerocopy`](crate::zerocopy), which see to it that it has no
/// padding and nothing but such values in it:
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::zerocopy::{FromBytes, Immutable, IntoBytes};
/// use rackmem::Rack;
///
/// #[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable)]
/// #[zerocopy(crate = "rackmem::zerocopy")]
/// #[repr(C)]
/// struct Particle {
///     place: [f64; 3],
///     charge: i32,
///     kind: u32,
/// }
///
/// let rack = Rack::local(2)?;
/// let one = Particle { place: [0.0; 3], charge: -1, kind: 7 };
/// let shared = rack.node(0).alloc(one)?;
/// shared.update(|one| Particle { charge: 2, ..one })?;
/// assert_eq!(rack.node(1).attach::<Particle>(shared.addr())?.read()?.charge, 2);
/// # Ok(())
/// # }
/// ```
///
/// Where types are compared (locks, and slices with a name), a type is its name without the modules
/// around it, its size and its alignment: a struct that two programs declare alike is one type to
/// them.
pub trait Value: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {}

impl<T: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static> Value for T {}

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
/// The handle is an address and a node. Dropping it frees nothing:
/// other nodes may have the address.
pub struct Shared<T> {
    node: Node,
    addr: u64,
    /// Its block, and which word of it.
    tag: Tag,
    at: u32,
    /// The cache entry where the block was last found.
    hint: AtomicU32,
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
        let cache = &self.node.inner.access.agents.cache;
        if let Some(entry) = cache.find(self.tag) {
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

    /// Replaces the value by what `f` makes of it, as one step; what was there before.
    pub fn update(&self, f: impl FnOnce(T) -> T) -> Result<T, AccessError> {
        self.node.update(self.addr, size_of::<T>(), |view| {
            let mut old = T::new_zeroed();
            view.read(0, old.as_mut_bytes_of());
            view.write(0, f(old).as_bytes());
            old
        })
    }

    /// Gives the memory back. Other handles on it must not be used any more.
    ///
    /// # Errors
    /// Those of [`Node::free_bytes`]. Only a value from [`Node::alloc`] is freed by this: one from
    /// [`Node::alloc_isolated`] has a block.
    pub fn free(self) -> Result<(), AllocError> {
        self.node.free_bytes(self.addr, size_of::<T>().max(8))
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
