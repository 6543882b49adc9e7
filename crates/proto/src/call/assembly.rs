//! Putting a block together from segments.
//!
//! A block is 64 granules; a segment is a run of whole granules,
//! so which granules have come is one word. Segments of another event never get here (the sequence
//! number says so); segments of a retransmission carry the same bytes, and the granules that are
//! there already are not written again.

use crate::wire::GRANULES;

/// Which granules of a block have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Assembly(u64);

impl Assembly {
    /// Whether the whole block is there.
    #[inline]
    pub const fn complete(self) -> bool {
        self.0 == u64::MAX
    }

    /// Takes note of a segment. `None` when it does not lie on granules of a block of `block`
    /// bytes; otherwise whether any of it is new.
    #[inline]
    pub fn add(&mut self, offset: u32, len: u32, block: u32) -> Option<bool> {
        let granule = block / GRANULES;
        let end = offset.checked_add(len)?;
        if len == 0
            || end > block
            || !offset.is_multiple_of(granule)
            || !len.is_multiple_of(granule)
        {
            return None;
        }
        let count = len / granule;
        let run = if count == GRANULES {
            u64::MAX
        } else {
            (1 << count) - 1
        };
        let mask = run << (offset / granule);
        let fresh = self.0 & mask != mask;
        self.0 |= mask;
        Some(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::segment_len;

    #[test]
    fn segments_in_any_order_make_a_block() {
        for (block, body) in [(256, 1424), (4096, 1424), (4096, 4096), (65_536, 1424)] {
            let len = segment_len(block, body);
            let mut offsets: alloc::vec::Vec<u32> = (0..block).step_by(len as usize).collect();
            offsets.reverse();
            let mut assembly = Assembly::default();
            for &offset in &offsets {
                assert!(!assembly.complete());
                let n = len.min(block - offset);
                assert_eq!(assembly.add(offset, n, block), Some(true));
                assert_eq!(assembly.add(offset, n, block), Some(false));
            }
            assert!(assembly.complete());
        }
    }

    #[test]
    fn a_segment_off_the_grid_is_refused() {
        let mut assembly = Assembly::default();
        for (offset, len) in [
            (0, 0),
            (0, 63),
            (32, 64),
            (4096, 64),
            (4032, 128),
            (u32::MAX, 64),
            (64, u32::MAX),
        ] {
            assert_eq!(assembly.add(offset, len, 4096), None);
        }
        assert_eq!(assembly, Assembly::default());
    }
}
