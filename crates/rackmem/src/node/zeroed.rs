//! Memory is handed out as zeros.
//!
//! Homes know which of their free memory has not been used since it was zeros. The rest is made
//! zeros here, by the thread that asked for it, before it has it: by ordinary writes, so that no
//! node's old copy shows through.

use super::Node;
use crate::error::{AccessError, AllocError, RackError};
use rackmem_fabric::words;
use rackmem_proto::heap::MIN_OBJECT;
use rackmem_proto::wire::Tag;

impl Node {
    /// Memory of this node for `len` bytes, all zeros: within one block when they fit,
    /// else whole blocks.
    pub fn alloc_bytes(&self, len: usize) -> Result<u64, AllocError> {
        self.alloc_bytes_on(self.inner.id, len)
    }

    /// Memory of another node.
    pub fn alloc_bytes_on(&self, home: u16, len: usize) -> Result<u64, AllocError> {
        self.open()?;
        if home as usize >= self.inner.nodes {
            return Err(AllocError::Rack(RackError::NoSuchNode {
                node: home as usize,
            }));
        }
        let (allocator, access) = (&self.inner.allocator, &self.inner.access);
        // Objects of blocks that have died with a node: whoever has others of those blocks is to be
        // told, so they stay lost.
        let mut lost = Vec::new();
        let given = loop {
            let object = match allocator.alloc(access, home, len) {
                Ok(object) => object,
                Err(error) => break Err(error),
            };
            if object.zeros {
                break Ok(object.addr);
            }
            match self.zero(object.addr, len) {
                Ok(()) => break Ok(object.addr),
                Err(error) => {
                    lost.push(object.addr);
                    let is_lost = matches!(error, AccessError::Lost { .. });
                    if !is_lost || lost.len() > 2 * self.inner.block / MIN_OBJECT as usize {
                        break Err(error.into());
                    }
                }
            }
        };
        for addr in lost {
            // What cannot be given back stays given out, and that is all.
            let _ = allocator.free(access, addr, len);
        }
        given
    }

    /// Makes memory zeros that nobody else has yet: an object that begins at a multiple of eight,
    /// whose last word is all its own.
    pub(crate) fn zero(&self, addr: u64, len: usize) -> Result<(), AccessError> {
        let (access, block) = (&self.inner.access, self.inner.block);
        let (whole, mut done) = (len > block / 2, 0);
        while done < len {
            let at = addr + done as u64;
            let (tag, within) = self.within(at, 0)?;
            let part = (len - done).min(block - within);
            done += part;
            let from = within / 8..(within + part).div_ceil(8);
            // Home's memory is all that there is of a block only if this node's own cache has
            // nothing of it.
            let ours = access.is_home(tag) && access.agents.cache.find(tag).is_none();
            if ours && access.agents.wipe(Tag(at), from.len() as u64 * 8) {
                continue;
            }
            let write = || access.write(tag, |block| words::zero(&block[from.clone()]));
            match write() {
                // It died after it was given, and what was in it is of nobody.
                Err(AccessError::Lost { addr }) if whole => {
                    self.accept_empty(addr)?;
                    write()?;
                }
                written => written?,
            }
        }
        Ok(())
    }
}
