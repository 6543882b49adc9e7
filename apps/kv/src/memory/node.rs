//! A rack's memory, as one of its nodes sees it.

use rackmem::Node;
use rackmem::view::{View, ViewMut};

use super::{Memory, MemoryError};

impl From<rackmem::Error> for MemoryError {
    fn from(error: rackmem::Error) -> Self {
        match error {
            rackmem::Error::OutOfMemory { .. } => Self::OutOfMemory,
            rackmem::Error::RegionMismatch { name } => Self::Mismatch(name),
            other => Self::Other(Box::new(other)),
        }
    }
}

impl Memory for Node {
    fn block_size(&self) -> usize {
        Node::block_size(self)
    }

    fn id(&self) -> u16 {
        Node::id(self)
    }

    fn nodes(&self) -> usize {
        Node::nodes(self)
    }

    #[inline]
    fn snapshot<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnMut(&View<'_>) -> R,
    ) -> Result<R, MemoryError> {
        Ok(Node::snapshot(self, addr, len, f)?)
    }

    #[inline]
    fn update<R>(
        &self,
        addr: u64,
        len: usize,
        f: impl FnOnce(&mut ViewMut<'_>) -> R,
    ) -> Result<R, MemoryError> {
        Ok(Node::update(self, addr, len, f)?)
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        Ok(Node::read(self, addr, out)?)
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        Ok(Node::write(self, addr, bytes)?)
    }

    fn alloc(&self, len: usize) -> Result<u64, MemoryError> {
        Ok(self.alloc_bytes(len)?)
    }

    fn alloc_on(&self, home: u16, len: usize) -> Result<u64, MemoryError> {
        Ok(self.alloc_bytes_on(home, len)?)
    }

    fn free(&self, addr: u64, len: usize) -> Result<(), MemoryError> {
        self.free_bytes(addr, len);
        Ok(())
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64, MemoryError> {
        Ok(Node::region(self, name, len, type_hash)?.0)
    }
}
