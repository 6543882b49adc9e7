//! The second level of allocation (paper §6): a node cuts chunks from home agents into objects.
//!
//! Sizes are rounded up to a class: powers of two and three steps between. Objects smaller than a block share
//! blocks with others of their class; larger ones are whole blocks. Freed memory goes back to the class of the
//! node that frees it.

use crate::access::Access;
use crate::error::Result;
use rackmem_proto::CHUNK;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The smallest object, in bytes.
const MIN_OBJECT: u64 = 16;

/// What a node holds of one home's memory.
#[derive(Default)]
struct Arena {
    /// Where the current chunk goes on, and where it ends.
    bump: (u64, u64),
    free: BTreeMap<u64, Vec<u64>>,
    /// The home's incarnation whose memory this is.
    incarnation: u32,
}

/// A node's allocator.
pub(crate) struct Allocator {
    block: u64,
    /// Bytes of memory that an incarnation of a node has, and so the distance between the addresses of two.
    span: u64,
    arenas: Mutex<BTreeMap<u16, Arena>>,
}

/// The class that serves objects of `len` bytes.
fn class(len: u64, block: u64) -> u64 {
    let len = len.max(MIN_OBJECT);
    if len >= CHUNK {
        return len.next_multiple_of(block);
    }
    let power = 1 << (63 - len.leading_zeros());
    let step = (power / 4).max(8);
    let class = len.next_multiple_of(step);
    if class > block / 2 {
        class.next_multiple_of(block)
    } else {
        class
    }
}

impl Allocator {
    pub fn new(block: usize, chunks: u32) -> Self {
        Allocator {
            block: block as u64,
            span: u64::from(chunks.max(1)) * CHUNK,
            arenas: Mutex::default(),
        }
    }

    /// Memory of `home` for `len` bytes: within one block when they fit, else whole blocks. Not zeroed.
    pub fn alloc(&self, access: &Access, home: u16, len: usize) -> Result<u64> {
        let class = class(len as u64, self.block);
        // Held while chunks are fetched: a second thread would only fetch one too many.
        let mut arenas = self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
        let arena = arenas.entry(home).or_default();
        let incarnation = access.standing.incarnation(home);
        if arena.incarnation != incarnation {
            *arena = Arena {
                incarnation,
                ..Arena::default()
            };
        }
        if let Some(addr) = arena.free.get_mut(&class).and_then(Vec::pop) {
            return Ok(addr);
        }
        if class >= CHUNK {
            return access.grow(home, class.div_ceil(CHUNK) as u32);
        }
        // Small objects come a block at a time, so that none crosses the end of one.
        let take = class.max(self.block);
        if arena.bump.1 - arena.bump.0 < take {
            let chunk = access.grow(home, 1)?;
            // What is left of the old chunk is still good for blocks.
            let (mut from, to) = arena.bump;
            while from < to {
                arena.free.entry(self.block).or_default().push(from);
                from += self.block;
            }
            arena.bump = (chunk, chunk + CHUNK);
        }
        let addr = arena.bump.0;
        arena.bump.0 += take;
        let rest = (1..take / class).map(|i| addr + i * class);
        arena.free.entry(class).or_default().extend(rest.rev());
        Ok(addr)
    }

    /// Gives back what [`Allocator::alloc`] gave for `len` bytes, on whichever node.
    pub fn free(&self, addr: u64, len: usize) {
        let class = class(len as u64, self.block);
        let mut arenas = self.arenas.lock().unwrap_or_else(PoisonError::into_inner);
        let arena = arenas.entry((addr >> 48) as u16).or_default();
        // Memory that died with an incarnation of its home is nobody's to give out again.
        let incarnation = ((addr & 0xffff_ffff_ffff) / self.span) as u32 + 1;
        if arena.incarnation == 0 {
            arena.incarnation = incarnation;
        }
        if arena.incarnation == incarnation {
            arena.free.entry(class).or_default().push(addr);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_close_to_what_was_asked_and_never_less() {
        for block in [256, 4096, 65_536] {
            for len in (1..200_000).step_by(37) {
                let class = class(len, block);
                assert!(class >= len);
                assert!(
                    class <= (len * 5 / 4 + 16).max(len.next_multiple_of(block)),
                    "{len} in {class}"
                );
                assert!(
                    class <= block / 2 || class.is_multiple_of(block),
                    "{len} in {class} crosses blocks"
                );
            }
        }
        assert_eq!(class(CHUNK + 1, 4096), CHUNK + 4096);
    }
}
