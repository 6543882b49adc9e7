//! Memory is handed out as zeros.
//!
//! Homes know which of their free memory has not been used since it was zeros. The rest is made zeros here, by the thread that asked
//! for it, before it has it: by ordinary writes, so that no node's old copy shows through.

use super::Node;
use crate::error::{Error, Result};
use rackmem_proto::heap::MIN_OBJECT;
use rackmem_proto::wire::Tag;

/// Bytes that are written at a time.
const ZEROS: [u8; 4096] = [0; 4096];

impl Node {
    /// Memory of this node for `len` bytes, all zeros: within one block when they fit, else whole blocks.
    pub fn alloc_bytes(&self, len: usize) -> Result<u64> {
        self.alloc_bytes_on(self.inner.id, len)
    }

    /// Memory of another node.
    pub fn alloc_bytes_on(&self, home: u16, len: usize) -> Result<u64> {
        self.open()?;
        if home as usize >= self.inner.nodes {
            return Err(Error::NoSuchNode {
                node: home as usize,
            });
        }
        let (allocator, access) = (&self.inner.allocator, &self.inner.access);
        // Objects of blocks that have died with a node: whoever has others of those blocks is to be told, so they stay lost.
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
                    let is_lost = matches!(error, Error::Lost { .. });
                    if !is_lost || lost.len() > 2 * self.inner.block / MIN_OBJECT as usize {
                        break Err(error);
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

    /// Makes memory zeros that nobody else has yet.
    pub(crate) fn zero(&self, addr: u64, len: usize) -> Result<()> {
        let (agents, block) = (&self.inner.access.agents, self.inner.block);
        let (whole, mut done) = (len > block / 2, 0);
        while done < len {
            let at = addr + done as u64;
            let part = ZEROS.len().min(len - done).min(block - at as usize % block);
            done += part;
            let ours = agents.standing.host(Tag(at).home()) == Some(self.inner.id);
            if ours && agents.wipe(Tag(at), part.next_multiple_of(8) as u64) {
                continue;
            }
            match self.write(at, &ZEROS[..part]) {
                // It died after it was given, and what was in it is of nobody.
                Err(Error::Lost { addr }) if whole => {
                    self.accept_empty(addr)?;
                    self.write(at, &ZEROS[..part])?;
                }
                written => written?,
            }
        }
        Ok(())
    }
}
