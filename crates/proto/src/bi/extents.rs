//! Which lines of a domain's slabs are free: objects of one slab have one size, a power of two of
//! lines, and no two domains have objects in one line.

use super::ring::Extent;
use alloc::vec::Vec;

/// Lines of a slab: 64 KiB.
pub const SLAB_LINES: u64 = 1024;
/// Sizes of objects: 1, 2, 4, … lines, to a whole slab.
const CLASSES: usize = SLAB_LINES.ilog2() as usize + 1;

/// Free lines of one domain.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Extents {
    free: [Vec<u64>; CLASSES],
}

impl Extents {
    /// The class of objects of so many lines; none where they are too large.
    fn class(lines: u64) -> Option<usize> {
        let class = lines.max(1).checked_next_power_of_two()?.ilog2() as usize;
        (class < CLASSES).then_some(class)
    }

    /// Lines that an object of so many takes.
    pub fn rounded(lines: u64) -> Option<u16> {
        Self::class(lines).map(|class| 1 << class)
    }

    /// A slab becomes this domain's, for objects of so many lines.
    pub fn add_slab(&mut self, first: u64, lines: u64) {
        if let Some(class) = Self::class(lines) {
            let objects = SLAB_LINES >> class;
            let all = (0..objects).rev().map(|nth| first + (nth << class));
            self.free[class].extend(all);
        }
    }

    /// Room for an object of so many lines, if there is some.
    pub fn take(&mut self, lines: u64) -> Option<Extent> {
        let class = Self::class(lines)?;
        let line = self.free[class].pop()?;
        let lines = 1 << class;
        Some(Extent { line, lines })
    }

    /// Whether there is room for an object of so many lines.
    pub fn has(&self, lines: u64) -> bool {
        Self::class(lines).is_some_and(|class| !self.free[class].is_empty())
    }

    /// An object's room is free.
    pub fn give(&mut self, extent: Extent) {
        if let Some(class) = Self::class(extent.lines.into()) {
            self.free[class].push(extent.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_has_objects_of_one_size_that_do_not_overlap() {
        let mut extents = Extents::default();
        assert_eq!(extents.take(3), None);
        extents.add_slab(1024, 3);
        let all: Vec<Extent> = core::iter::from_fn(|| extents.take(3)).collect();
        assert_eq!(all.len(), 256);
        assert!(all.windows(2).all(|two| two[0].line + 4 == two[1].line));
        assert!(all.iter().all(|extent| extent.lines == 4));
        assert!(!extents.has(3) && !extents.has(u64::MAX));
        extents.give(all[7]);
        assert!(extents.has(4) && !extents.has(5));
        assert_eq!(extents.take(4), Some(all[7]));
        assert_eq!(
            (Extents::rounded(1024), Extents::rounded(1025)),
            (Some(1024), None)
        );
        assert_eq!(extents.take(u64::MAX), None);
    }
}
