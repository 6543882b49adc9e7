//! Long ranges, as whole blocks and what is in front of them and behind.

use super::Node;
use crate::bytes::window::{Window, WindowMut};
use crate::error::AccessError;
use crate::host::bulk::Partly;
use rackmem_proto::wire::Tag;
use std::ops::Range;

impl Node {
    /// Reads a range without keeping copies of its whole blocks. How many bytes have been read when
    /// it fails.
    pub(crate) fn read_bulk(&self, addr: u64, out: &mut [u8]) -> Partly<()> {
        self.in_parts(addr, out.len(), |at, part, whole| match whole {
            true => (self.inner.access).read_blocks(Tag(at), &mut out[part]),
            false => (self.read_edge(at, &mut out[part])).map_err(|error| (0, error)),
        })
    }

    /// Writes a range, in home's memory where that is here and nobody else has anything of it. How
    /// many bytes have been written when it fails.
    pub(crate) fn write_bulk(&self, addr: u64, bytes: &[u8]) -> Partly<()> {
        self.in_parts(addr, bytes.len(), |at, part, whole| match whole {
            true => self.write_whole(Tag(at), &bytes[part]),
            false => (self.write_edge(at, &bytes[part])).map_err(|error| (0, error)),
        })
    }

    /// Writes whole blocks, and brings them home where each write survives.
    fn write_whole(&self, first: Tag, bytes: &[u8]) -> Partly<()> {
        let access = &self.inner.access;
        let epoch = access.standing.epoch();
        access.write_blocks(first, bytes)?;
        if !access.agents.kept.writes_survive(first) {
            return Ok(());
        }
        for at in (0..bytes.len()).step_by(self.inner.block) {
            let brought = access.bring_home(Tag(first.0 + at as u64), epoch);
            brought.map_err(|error| (at, error))?;
        }
        Ok(())
    }

    /// Reads a part of one block.
    fn read_edge(&self, addr: u64, out: &mut [u8]) -> Result<(), AccessError> {
        let (tag, at) = self.within(addr, out.len())?;
        let len = out.len();
        let mut read = |words: &[_]| Window::new(words, at, len).read(0, out);
        match self.inner.access.in_place(tag, false, &mut read) {
            Some(()) => Ok(()),
            None => self.inner.access.read(tag, read),
        }
    }

    /// Writes a part of one block.
    fn write_edge(&self, addr: u64, bytes: &[u8]) -> Result<(), AccessError> {
        let (tag, at) = self.within(addr, bytes.len())?;
        let write = |words: &[_]| {
            WindowMut::new(words, at, bytes.len()).write(0, bytes);
        };
        match self.inner.access.in_place(tag, true, write) {
            Some(()) => Ok(()),
            None => self.inner.access.write(tag, write),
        }
    }

    /// Does something with what of a range lies in front of its first whole block, with its whole
    /// blocks, and with what lies behind: with each that there is, by its address, its place in the
    /// range, and whether these are whole blocks.
    fn in_parts(
        &self,
        addr: u64,
        len: usize,
        mut act: impl FnMut(u64, Range<usize>, bool) -> Partly<()>,
    ) -> Partly<()> {
        let bad = |_| (0, AccessError::BadAddress { addr });
        addr.checked_add(len as u64).ok_or(()).map_err(bad)?;
        self.open().map_err(|error| (0, error.into()))?;
        let block = self.inner.block;
        // A block's size is a power of two, so the end of the address space is a multiple of it.
        let head = ((addr.wrapping_neg() % block as u64) as usize).min(len);
        let tail = head + (len - head) / block * block;
        for (part, whole) in [(0..head, false), (head..tail, true), (tail..len, false)] {
            if part.is_empty() {
                continue;
            }
            let (start, at) = (part.start, addr + part.start as u64);
            let after = |(done, error)| (start + done, error);
            if whole {
                self.within(at, 1).map_err(|error| after((0, error)))?;
            }
            act(at, part, whole).map_err(after)?;
        }
        Ok(())
    }
}
