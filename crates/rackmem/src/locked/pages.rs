//! Pages behind locks in coherent memory with copies whose writes all survive: an [`RwLockArray`]
//! that does not die with a node.
//!
//! Nobody makes such a lock, as of any array: its record ([`super::copied`]) is a stamp, the
//! fencing token of the last writer, how long the page is, and the page. A writer who has changed
//! the page writes the record before it leaves. So the record is what the last one left whenever
//! nobody is inside, and a node may drop what it has of the page at any time (`pressure.rs`): who
//! enters and finds nothing takes it from the record. There is nothing to say that one is out.

use super::array::RwLockArray;
use super::copied::Record;
use super::descriptor::Name;
use super::handle::{Handle, locks};
use crate::error::{AccessError, LockError, LockShape, RegionError};
use crate::host::locks::table::Origin;
use crate::node::{Node, places};
use crate::region::Region;
use rackmem_proto::gcp::{Life, MAX_LOCKED};
use rackmem_proto::wire::Tag;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of a stamp, which nodes have in front of the page, too.
const STAMP: usize = 8;
/// Bytes of a record in front of the page.
const HEAD: usize = STAMP + 8;

impl RwLockArray {
    /// Bytes that a lock over a page of so many takes in a region with copies: at multiples of
    /// this, none is in two blocks.
    pub const fn room_in_region(len: usize) -> usize {
        let room = (HEAD + len).next_power_of_two();
        if room < Self::STRIDE {
            Self::STRIDE
        } else {
            room
        }
    }

    /// The array of `count` locks over `len` bytes each at this byte of a region of coherent memory
    /// with copies, of which each write survives ([`crate::Survives::Writes`]):
    /// [`RwLockArray::room_in_region`] bytes from one to the next, which are zeros at first, and
    /// are not read or written directly. All nodes name the same length.
    ///
    /// It does not die with a node. Who has changed a page leaves it when a majority has that; to
    /// leave a page that was not changed takes no packet. After the death of a node that had a lock
    /// its page is what the last one left that was inside, and [`super::Content::OwnerDied`] says
    /// so to all until a writer has left it.
    ///
    /// ```
    /// # fn main() -> rackmem::Result<()> {
    /// use rackmem::locked::RwLockArray;
    /// use rackmem::{Rack, RegionSpec, Survives};
    ///
    /// let rack = Rack::local(3)?;
    /// let room = RwLockArray::room_in_region(1000);
    /// let spec = RegionSpec::new("pages", 16 * room).copies(3).survives(Survives::Writes);
    /// let made = rack.node(0).create_region(&spec)?;
    /// let here = RwLockArray::in_region(&made, 0, 16, 1000)?;
    /// let there = RwLockArray::in_region(&rack.node(2).open_region(&spec)?, 0, 16, 1000)?;
    /// there.write(7)?.view_mut(8).set_u64(0, 42); // a majority has it
    /// assert_eq!(here.read(7)?.view().u64(0), 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`LockShape::NoCopies`] where not every write to the region survives;
    /// [`LockShape::TwoBlocks`] where a page and 16 bytes are longer than a block, or the array
    /// begins at no multiple of [`RwLockArray::room_in_region`]; [`LockShape::Unaligned`] for a
    /// length that is 0 or no multiple of 8; [`RegionError::OutOfBounds`].
    /// [`LockError::TooManyLocks`] comes from what enters a lock of it.
    pub fn in_region(
        region: &Region,
        at: usize,
        count: usize,
        len: usize,
    ) -> Result<Self, RegionError> {
        let node = region.node();
        let bad = |why| Err(RegionError::Lock(LockError::BadShape { why }));
        if len == 0 || !len.is_multiple_of(8) {
            return bad(LockShape::Unaligned);
        }
        let kept = &node.inner.access.agents.kept;
        if !region.has_home() || !kept.writes_survive(Tag(region.addr())) {
            return bad(LockShape::NoCopies);
        }
        let (block, room) = (
            node.inner.block,
            Self::room_in_region(len.min(MAX_LOCKED as usize)),
        );
        if room > block || !at.is_multiple_of(room) {
            return bad(LockShape::TwoBlocks { block });
        }
        let addr = region.within(at, count.saturating_mul(room))?;
        let first = Tag(places::lock_at(addr));
        Ok(RwLockArray::of(node, first, (count, room), len))
    }
}

impl Handle {
    /// A lock of such an array.
    pub(super) fn of_page(node: &Node, tag: Tag, len: usize) -> Result<Self, LockError> {
        let cell = locks(node).open(tag, MAX_LOCKED as usize, Origin::Heard)?;
        cell.recorded.store(true, Relaxed);
        Ok(Handle {
            words: ((STAMP + len) / 8) as u32,
            is_page: true,
            ..Handle::new(node, cell, len, Life::NONE, Name::NONE)
        })
    }

    /// Bytes of what it protects that are in front of the page.
    #[inline]
    pub(super) fn before_page(&self) -> usize {
        match self.is_page {
            true => STAMP,
            false => 0,
        }
    }

    /// What a majority has.
    pub(super) fn read_page(&self) -> Result<Record, AccessError> {
        let mut content = self.record_bytes(HEAD + self.len())?;
        let word = |at: usize| content[at..].first_chunk().copied().unwrap_or_default();
        let [stamp, len] = [0, STAMP].map(|at| u64::from_le_bytes(word(at)));
        let end = HEAD + self.len().min(len as usize).next_multiple_of(8);
        content.truncate(end);
        content.drain(STAMP..HEAD);
        Ok(Record {
            out: false,
            stamp,
            content,
        })
    }

    /// What a majority is to have: as a whole block, where it is one, it is written without being
    /// read.
    pub(super) fn page_record(&self) -> Vec<u8> {
        let words = self.cell.words().iter().take(self.words as usize);
        let mut bytes: Vec<u8> = words
            .flat_map(|word| word.load(Relaxed).to_le_bytes())
            .collect();
        let len = bytes.len().saturating_sub(STAMP) as u64;
        bytes.splice(STAMP..STAMP, len.to_le_bytes());
        bytes.resize(RwLockArray::room_in_region(self.len()), 0);
        bytes
    }
}
