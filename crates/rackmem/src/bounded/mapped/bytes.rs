//! Objects of bytes, whose size no type says: what other languages keep in an arena.

use super::arena::Arena;
use super::pointer::{ArenaSlot, Fresh, Pointer};
use super::reading::ArenaSection;
use super::storing::ArenaWriter;
use crate::bytes::value::Value;
use crate::error::ArenaError;
use rackmem_proto::bi::{Extent, LINE};

/// Bytes of an object that takes these lines.
fn room(extent: Extent) -> usize {
    usize::from(extent.lines) * LINE as usize
}

/// Whether so many bytes, from a whole word on, are within an object.
fn within(extent: Extent, at: usize, len: usize) -> Result<(), ArenaError> {
    let end = at.checked_add(len).filter(|_| at.is_multiple_of(8));
    match end.is_some_and(|end| end <= room(extent)) {
        true => Ok(()),
        false => Err(ArenaError::BadPointer {
            line: extent.line,
            len: at.saturating_add(len),
        }),
    }
}

impl Pointer<[u8]> {
    /// The slot that is the word at this byte of the object. None where no word begins. One
    /// outside of the object is found out when it is used, unless another object is there.
    pub fn slot_at<U: ?Sized>(self, at: usize) -> Option<ArenaSlot<U>> {
        ArenaSlot::within(self.to, at, super::pointer::MOST)
    }
}

impl Arena {
    /// See [`Arena::quiesce_stale`].
    ///
    /// # Errors
    /// Those of [`Arena::quiesce`], and [`ArenaError::BadPointer`]: nothing is dropped then.
    pub fn quiesce_stale_bytes(&self, own: &[Pointer<[u8]>]) -> Result<(), ArenaError> {
        let at = &self.at;
        let own = own.iter().map(|pointer| at.object(pointer.to.line, 0));
        at.quiesce(own.collect::<Result<_, _>>()?)
    }
}

impl ArenaSection<'_> {
    /// Bytes of an object, from a multiple of eight on (`bi_dereference`). An object has room for
    /// 64 bytes, or a power of two times as many, up to 64 KiB; what was not written is zeros.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`] where the pointer leads to no object, or to a shorter one;
    /// [`ArenaError::Late`].
    pub fn read_bytes(
        &self,
        pointer: Pointer<[u8]>,
        at: usize,
        into: &mut [u8],
    ) -> Result<(), ArenaError> {
        let object = self.at().object(pointer.to.line, into.len());
        let extent = object.map_err(|error| self.why(error))?;
        within(extent, at, into.len())?;
        self.see_at(pointer.to, extent)?;
        self.at().copy(pointer.to.line, at, into);
        Ok(())
    }
}

impl<L: Value> ArenaWriter<'_, L> {
    /// Bytes of an object as it is now; see [`ArenaSection::read_bytes`].
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`].
    pub fn read_bytes(
        &self,
        pointer: Pointer<[u8]>,
        at: usize,
        into: &mut [u8],
    ) -> Result<(), ArenaError> {
        let extent = self.at().object(pointer.to.line, into.len())?;
        within(extent, at, into.len())?;
        self.at().lines.drop_one(extent);
        self.at().copy(pointer.to.line, at, into);
        Ok(())
    }

    /// A new object that begins with these bytes and has room for `room`, or for them (`bi_alloc`).
    ///
    /// # Errors
    /// Those of [`ArenaWriter::alloc`].
    pub fn alloc_bytes(&mut self, bytes: &[u8], room: usize) -> Result<Fresh<[u8]>, ArenaError> {
        let extent = self.fill(room.max(bytes.len()), &[(0, bytes)])?;
        Ok(Fresh::new(extent))
    }

    /// Leads a slot to an object that is in place elsewhere, or nowhere.
    ///
    /// # Errors
    /// Those of [`ArenaWriter::assign`].
    pub fn lead_bytes(
        &mut self,
        slot: ArenaSlot<[u8]>,
        to: Option<Pointer<[u8]>>,
    ) -> Result<Option<Pointer<[u8]>>, ArenaError> {
        let extent = to.map(|pointer| self.at().object(pointer.to.line, 0));
        self.put(slot, extent.transpose()?, super::Tracking::Tracked)
    }

    /// Changes a word of an object that is in place; see [`ArenaWriter::set`].
    ///
    /// # Errors
    /// Those of [`ArenaWriter::set`].
    pub fn set_bytes(
        &mut self,
        pointer: Pointer<[u8]>,
        at: usize,
        word: u64,
    ) -> Result<(), ArenaError> {
        let extent = self.at().object(pointer.to.line, 8)?;
        self.set_within(pointer.to, at, (room(extent), word))
    }

    /// Frees an object; see [`ArenaWriter::free`].
    ///
    /// # Errors
    /// Those of [`ArenaWriter::free`].
    pub fn free_bytes(&mut self, pointer: Pointer<[u8]>) -> Result<(), ArenaError> {
        let extent = self.at().object(pointer.to.line, 0)?;
        self.free_extent(extent)
    }
}
