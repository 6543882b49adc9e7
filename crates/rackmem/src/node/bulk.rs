//! Long ranges, as whole blocks and what is in front of them and behind.

use super::Node;
use crate::bytes::window::{Window, WindowMut};
use crate::error::{Error, Result};
use crate::host::bulk::Partly;
use std::ops::Range;

impl Node {
    /// Reads a range without keeping copies of its whole blocks. How many bytes have been read when it fails.
    pub(crate) fn read_bulk(&self, addr: u64, out: &mut [u8]) -> Partly<()> {
        let [head, blocks, tail] = self.in_blocks(addr, out.len())?;
        let after = |begin: usize| move |(done, error)| (begin + done, error);
        let at = |range: &Range<usize>| addr + range.start as u64;
        let part = |error| (0, error);
        self.read_edge(at(&head), &mut out[head.clone()])
            .map_err(part)?;
        if !blocks.is_empty() {
            let (tag, _) = self.within(at(&blocks), 1).map_err(part)?;
            let read = (self.inner.access).read_blocks(tag, &mut out[blocks.clone()]);
            read.map_err(after(blocks.start))?;
        }
        let read = self.read_edge(at(&tail), &mut out[tail.clone()]);
        read.map_err(|error| (tail.start, error))
    }

    /// Writes a range, in home's memory where that is here and nobody else has anything of it. How many bytes have been written when it
    /// fails.
    pub(crate) fn write_bulk(&self, addr: u64, bytes: &[u8]) -> Partly<()> {
        let [head, blocks, tail] = self.in_blocks(addr, bytes.len())?;
        let after = |begin: usize| move |(done, error)| (begin + done, error);
        let at = |range: &Range<usize>| addr + range.start as u64;
        let part = |error| (0, error);
        self.write_edge(at(&head), &bytes[head.clone()])
            .map_err(part)?;
        if !blocks.is_empty() {
            let (tag, _) = self.within(at(&blocks), 1).map_err(part)?;
            let written = (self.inner.access).write_blocks(tag, &bytes[blocks.clone()]);
            written.map_err(after(blocks.start))?;
        }
        let written = self.write_edge(at(&tail), &bytes[tail.clone()]);
        written.map_err(|error| (tail.start, error))
    }

    /// Reads a part of one block.
    fn read_edge(&self, addr: u64, out: &mut [u8]) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let (tag, at) = self.within(addr, out.len())?;
        let len = out.len();
        let mut read = |words: &[_]| Window::new(words, at, len).read(0, out);
        match self.inner.access.in_place(tag, false, &mut read) {
            Some(()) => Ok(()),
            None => self.inner.access.read(tag, read),
        }
    }

    /// Writes a part of one block.
    fn write_edge(&self, addr: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (tag, at) = self.within(addr, bytes.len())?;
        let write = |words: &[_]| {
            WindowMut::new(words, at, bytes.len()).write(0, bytes);
        };
        match self.inner.access.in_place(tag, true, write) {
            Some(()) => Ok(()),
            None => self.inner.access.write(tag, write),
        }
    }

    /// What of a range lies in front of its first whole block, its whole blocks, and what lies behind.
    fn in_blocks(&self, addr: u64, len: usize) -> Partly<[Range<usize>; 3]> {
        let bad = |_| (0, Error::BadAddress { addr });
        addr.checked_add(len as u64).ok_or(()).map_err(bad)?;
        self.open().map_err(|error| (0, error))?;
        let block = self.inner.block;
        let head = (addr.next_multiple_of(block as u64) - addr) as usize;
        let head = head.min(len);
        let whole = head + (len - head) / block * block;
        Ok([0..head, head..whole, whole..len])
    }
}
