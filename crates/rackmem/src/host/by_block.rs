//! What is known of blocks, in tables that do not grow.

use rackmem_proto::wire::Tag;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A place for each remainder of blocks' mixed addresses: a block's is its own as long as no other
/// one takes it. Threads that write a place at one time may lose something of what they knew, so
/// nothing may rest on it but speed.
pub(crate) struct ByBlock<K> {
    places: Box<[Place<K>]>,
}

/// What is known of one block.
#[derive(Default)]
pub(crate) struct Place<K> {
    /// Its address, and one: 0 is none.
    block: AtomicU64,
    pub known: K,
}

impl<K: Default> ByBlock<K> {
    /// With so many places, which is a power of two.
    pub fn new(places: usize) -> Self {
        assert!(places.is_power_of_two());
        let places = (0..places).map(|_| Place::default()).collect();
        ByBlock { places }
    }

    /// The place that a block may have.
    pub fn place(&self, tag: Tag) -> &Place<K> {
        let mixed = tag.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Its high bits: the low ones are those of an address, which are all the same.
        &self.places[(mixed >> 40) as usize & (self.places.len() - 1)]
    }

    /// All of them.
    pub fn places(&self) -> &[Place<K>] {
        &self.places
    }
}

impl<K> Place<K> {
    /// Whether it is this block's.
    pub fn is_of(&self, tag: Tag) -> bool {
        self.block.load(Relaxed) == tag.0 | 1
    }

    /// Whose it is; address 0, too, if it is nobody's.
    pub fn tag(&self) -> Tag {
        Tag(self.block.load(Relaxed) & !1)
    }

    /// It is this block's from now on.
    pub fn take(&self, tag: Tag) {
        self.block.store(tag.0 | 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn blocks_that_follow_each_other_have_places_of_their_own() {
        let table = ByBlock::<u64>::new(256);
        for step in [64u64, 4096] {
            let of = |n: u64| std::ptr::from_ref(table.place(Tag(n * step)));
            let different: HashSet<_> = (0..128).map(of).collect();
            assert!(different.len() > 96, "{} at {step}", different.len());
        }
    }

    #[test]
    fn a_place_is_of_the_block_that_took_it_last() {
        let table = ByBlock::<u64>::new(1);
        let place = table.place(Tag(0));
        assert!(!place.is_of(Tag(0)));
        place.take(Tag(0));
        assert!(place.is_of(Tag(0)) && place.tag() == Tag(0));
        place.take(Tag(4096));
        assert!(!place.is_of(Tag(0)) && place.is_of(Tag(4096)));
        assert_eq!(place.tag(), Tag(4096));
    }
}
