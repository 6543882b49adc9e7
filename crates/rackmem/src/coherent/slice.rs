//! `SharedSlice<T>`: many values one after the other, for programs that move them in bulk.

use super::fingerprint::fingerprint;
use crate::bytes::value::Value;
#[cfg(doc)]
use crate::error::RackError;
use crate::error::{AccessError, AllocError, BulkError, BulkResult, RegionError};
use crate::node::Node;
use crate::region::{Region, RegionSpec};
use rackmem_proto::wire::{HomeId, Tag};
use std::marker::PhantomData;
use std::ops::Range;
use zerocopy::IntoBytes;

impl Node {
    /// Zeros in this node's memory, as many as wanted. They cost no time and no memory until they
    /// are written.
    ///
    /// # Errors
    /// [`AllocError::OutOfMemory`], and [`AllocError::TooLarge`] when they are more bytes than
    /// there are addresses.
    pub fn alloc_slice<T: Value>(&self, len: usize) -> Result<SharedSlice<T>, AllocError> {
        self.alloc_slice_on(self.id(), len)
    }

    /// Zeros in another node's memory.
    ///
    /// # Errors
    /// As [`Node::alloc_slice`], and [`RackError::NoSuchNode`].
    pub fn alloc_slice_on<T: Value>(
        &self,
        home: u16,
        len: usize,
    ) -> Result<SharedSlice<T>, AllocError> {
        let bytes = SharedSlice::<T>::bytes_of(len)?;
        // Whole blocks, so that no other object shares one.
        let addr = self.alloc_bytes_on(home, bytes.max(self.block_size()))?;
        Ok(SharedSlice::of(self, addr, len))
    }

    /// The slice of this length at the address, which some node has allocated.
    /// Nothing says what is there: a name does ([`Node::named_slice`]).
    ///
    /// # Errors
    /// [`AccessError::BadRange`] when no slice of such values can begin there;
    /// [`AccessError::BadAddress`],
    /// [`AccessError::WrongContract`].
    pub fn attach_slice<T: Value>(
        &self,
        addr: u64,
        len: usize,
    ) -> Result<SharedSlice<T>, AccessError> {
        let bytes = SharedSlice::<T>::bytes_of(len).ok();
        let bytes = bytes.filter(|_| addr.is_multiple_of(8));
        let bytes = bytes.ok_or(AccessError::BadRange {
            addr,
            len: len.saturating_mul(size_of::<T>()),
            block: Tag::SPACE as usize,
        })?;
        // A first and a last read tell a wrong address now rather than later.
        if bytes > 0 {
            self.read(addr, &mut [0])?;
            self.read(addr + bytes as u64 - 1, &mut [0])?;
        }
        Ok(SharedSlice::of(self, addr, len))
    }

    /// The slice of this name, zeros at first, in the memory of the node that is the first to ask.
    ///
    /// # Errors
    /// [`RegionError::Mismatch`] when what has this name is of another type or length; those of
    /// [`Node::create_region`].
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::{Rack, RegionError};
    ///
    /// let rack = Rack::local(2)?;
    /// let ours = rack.node(0).named_slice::<f64>("grid", 1000)?;
    /// ours.write_from(0, &[1.5; 1000])?;
    /// assert_eq!(rack.node(1).named_slice::<f64>("grid", 1000)?.get(999)?, 1.5);
    /// let other = rack.node(1).named_slice::<u64>("grid", 1000);
    /// assert!(matches!(other, Err(RegionError::Mismatch { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn named_slice<T: Value>(
        &self,
        name: &str,
        len: usize,
    ) -> Result<SharedSlice<T>, RegionError> {
        let bytes = SharedSlice::<T>::bytes_of(len)?;
        let spec = RegionSpec::new(name, bytes.max(self.block_size()));
        let region = self.create_region(&spec.element(element::<T>(len)))?;
        Ok(SharedSlice::of_region(self, &region, len))
    }
}

/// What a named region of such a slice is of.
fn element<T: Value>(len: usize) -> u64 {
    (u64::from(fingerprint::<T>()) << 32) ^ len as u64
}

/// Many values one after the other in coherent memory: 1 GiB and more.
///
/// Its bulk operations ([`read_into`](Self::read_into), [`write_from`](Self::write_from)) move
/// whole blocks. In the memory of this node they are copies: what no other node uses costs no
/// packet. From another node's memory several requests of many blocks are under way at a time, and
/// no copy is kept: what is read again and again is better read with [`get`](Self::get) or
/// [`Node::read`], which keep copies in the node's cache.
///
/// **While others write**, each block's part of a read is as it was at one moment during the call,
/// and each block's part of a write is written at one moment; the parts of several blocks are not
/// one step. An element that crosses the border of two blocks is part of both
/// ([`blocks`](Self::blocks) tells where they lie).
///
/// **When something fails**, the [`BulkError`] says how many elements have been read or written,
/// and why it stopped.
///
/// The handle is an address, a length and a node. Dropping it frees nothing:
/// other nodes may have the address.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, SharedSlice};
///
/// let rack = Rack::local(4)?;
/// let samples: SharedSlice<f64> = rack.node(0).alloc_slice(1 << 20)?;     // 8 MiB of zeros
/// samples.write_from(1000, &[0.5; 500])?;
///
/// let same = rack.node(3).attach_slice::<f64>(samples.addr(), samples.len())?;
/// let mut window = vec![0.0; 2000];
/// same.read_into(0, &mut window)?;
/// assert_eq!(window.iter().sum::<f64>(), 250.0);
///
/// let mut sum = 0.0;
/// same.for_each_part(|_, part| sum += part.iter().sum::<f64>())?;
/// assert_eq!(sum, 250.0);
/// # Ok(())
/// # }
/// ```
pub struct SharedSlice<T> {
    node: Node,
    addr: u64,
    len: usize,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for SharedSlice<T> {
    fn clone(&self) -> Self {
        SharedSlice {
            node: self.node.clone(),
            ..*self
        }
    }
}

impl<T> std::fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedSlice")
            .field("of", &std::any::type_name::<T>())
            .field("addr", &format_args!("{:#018x}", self.addr))
            .field("len", &self.len)
            .finish()
    }
}

/// Bytes of which [`SharedSlice::for_each_part`] gives its closure at most.
const PART: usize = 1 << 20;

impl<T: Value> SharedSlice<T> {
    fn of(node: &Node, addr: u64, len: usize) -> Self {
        SharedSlice {
            node: node.clone(),
            addr,
            len,
            value: PhantomData,
        }
    }

    fn of_region(node: &Node, region: &Region, len: usize) -> Self {
        SharedSlice::of(node, region.addr(), len)
    }

    fn bytes_of(len: usize) -> Result<usize, AllocError> {
        let bytes = len.checked_mul(size_of::<T>());
        // Values without bytes are counted as well.
        let fits = |bytes: &usize| (*bytes).max(len) as u64 <= Tag::SPACE;
        bytes.filter(fits).ok_or(AllocError::TooLarge {
            len: len.saturating_mul(size_of::<T>()),
            most: Tag::SPACE as usize,
        })
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Its global address, which [`Node::attach_slice`] takes on any node.
    pub fn addr(&self) -> u64 {
        self.addr
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whose memory it is.
    pub fn home(&self) -> HomeId {
        Tag(self.addr).home()
    }

    /// An element, as the last writer left it. Keeps a copy of its block in this node's cache.
    ///
    /// # Errors
    /// [`AccessError::OutOfBounds`], and those of [`Node::read`].
    pub fn get(&self, at: usize) -> Result<T, AccessError> {
        let mut value = T::new_zeroed();
        let addr = self.within(at, 1)?;
        self.node.read(addr, value.as_mut_bytes())?;
        Ok(value)
    }

    /// Replaces an element, everywhere.
    ///
    /// # Errors
    /// [`AccessError::OutOfBounds`], and those of [`Node::write`].
    pub fn set(&self, at: usize, value: T) -> BulkResult<()> {
        let addr = self.within(at, 1).map_err(writing)?;
        let written = self.node.write(addr, value.as_bytes());
        written.map_err(|bulk| BulkError::writing(0, bulk.error))
    }

    /// Reads the elements from one on. See [the type](Self) for what concurrent writes and failures
    /// do.
    ///
    /// # Errors
    /// [`BulkError`], with [`AccessError::OutOfBounds`] and those of [`Node::read`].
    pub fn read_into(&self, at: usize, out: &mut [T]) -> BulkResult<()> {
        let addr = self.within(at, out.len()).map_err(reading)?;
        let read = self.node.read_bulk(addr, out.as_mut_bytes());
        read.map_err(|(bytes, error)| BulkError::reading(Self::elements(bytes), error))
    }

    /// Writes elements from one on. See [the type](Self) for what concurrent reads and failures do.
    ///
    /// # Errors
    /// [`BulkError`], with [`AccessError::OutOfBounds`] and those of [`Node::write`].
    pub fn write_from(&self, at: usize, values: &[T]) -> BulkResult<()> {
        let addr = self.within(at, values.len()).map_err(writing)?;
        let written = self.node.write_bulk(addr, values.as_bytes());
        written.map_err(|(bytes, error)| BulkError::writing(Self::elements(bytes), error))
    }

    /// These elements.
    ///
    /// # Errors
    /// Those of [`SharedSlice::read_into`].
    pub fn to_vec(&self, range: Range<usize>) -> BulkResult<Vec<T>> {
        self.within(range.start, range.len()).map_err(reading)?;
        let mut out = vec![T::new_zeroed(); range.len()];
        self.read_into(range.start, &mut out)?;
        Ok(out)
    }

    /// Reads all elements in order, in parts that begin and end with a block, and gives each to `f`
    /// with the number of its first element.
    ///
    /// # Errors
    /// Those of [`SharedSlice::read_into`]: `f` has had the first [`BulkError::done`] elements.
    pub fn for_each_part(&self, mut f: impl FnMut(usize, &[T])) -> BulkResult<()> {
        let most = (PART / size_of::<T>().max(1)).max(1);
        let mut part = vec![T::new_zeroed(); most.min(self.len)];
        let mut done = 0;
        while done < self.len {
            let len = part.len().min(self.len - done);
            let read = self.read_into(done, &mut part[..len]);
            // `f` has not had what has been read of this part.
            read.map_err(|why| BulkError::reading(done, why.error))?;
            f(done, &part[..len]);
            done += len;
        }
        Ok(())
    }

    /// The elements of each block, in order: those that are all within one block. What is read or
    /// written of one block is read or written at one moment, and [`SharedSlice::update`] changes
    /// it in one step.
    pub fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        let (block, size) = (self.node.block_size() as u64, size_of::<T>().max(1) as u64);
        let (addr, len) = (self.addr, self.len);
        let end = addr + len as u64 * size;
        let first = addr / block;
        let last = end.div_ceil(block);
        (first..last).filter_map(move |nth| {
            let (from, to) = ((nth * block).max(addr), ((nth + 1) * block).min(end));
            let from = (from - addr).div_ceil(size) as usize;
            let to = ((to - addr) / size) as usize;
            (from < to).then_some(from..to)
        })
    }

    /// Replaces elements of one block by what `f` makes of them, as one step in the whole rack. `f`
    /// must be short and must not use the rack.
    ///
    /// # Errors
    /// [`AccessError::OutOfBounds`]; [`AccessError::BadRange`] when they are not all within one
    /// block; those of [`Node::update`].
    pub fn update<R>(
        &self,
        range: Range<usize>,
        f: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R, AccessError> {
        let addr = self.within(range.start, range.len())?;
        let mut values = vec![T::new_zeroed(); range.len()];
        self.node
            .update(addr, size_of::<T>() * range.len(), |view| {
                view.read(0, values.as_mut_bytes());
                let result = f(&mut values);
                view.write(0, values.as_bytes());
                result
            })
    }

    /// Gives the memory back. Other handles on it must not be used any more.
    /// One that has a name is removed by it ([`Node::remove_region`]).
    ///
    /// # Errors
    /// Those of [`Node::free_bytes`].
    pub fn free(self) -> Result<(), AllocError> {
        let len = size_of::<T>() * self.len;
        self.node
            .free_bytes(self.addr, len.max(self.node.block_size()))
    }

    pub(super) fn within(&self, at: usize, len: usize) -> Result<u64, AccessError> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.addr + (at * size_of::<T>()) as u64),
            _ => Err(AccessError::OutOfBounds {
                at,
                len,
                of: self.len,
            }),
        }
    }

    /// How many elements so many bytes are.
    pub(super) fn elements(bytes: usize) -> usize {
        bytes / size_of::<T>().max(1)
    }
}

pub(super) fn reading(error: AccessError) -> BulkError {
    BulkError::reading(0, error)
}

pub(super) fn writing(error: AccessError) -> BulkError {
    BulkError::writing(0, error)
}
