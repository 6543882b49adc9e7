//! Where the blocks of a large cache are: in sets, of which each block has one.

use rackmem_proto::wire::Tag;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What number a block has, of all that the node may have.
pub type Numbers = Arc<dyn Fn(Tag) -> Option<usize> + Send + Sync>;

/// See the module.
#[derive(Clone)]
pub struct Index {
    numbers: Numbers,
    ways: usize,
    /// By number, the slot of each block that is here.
    at: Vec<Option<u32>>,
    /// Blocks with an event under way, at most one a thread.
    reserved: Vec<Tag>,
    /// Of each set, slots by the time of their last use.
    sets: Vec<BTreeSet<(u64, usize)>>,
}

impl Index {
    /// One of so many slots in sets of so many, for so many blocks.
    pub fn new((slots, ways): (usize, usize), blocks: usize, numbers: Numbers) -> Self {
        let ways = ways.max(1);
        let set = |nth: usize| (nth * ways..(nth + 1) * ways).map(|at| (0, at)).collect();
        Index {
            numbers,
            ways,
            at: vec![None; blocks],
            reserved: Vec::new(),
            sets: (0..(slots / ways).max(1)).map(set).collect(),
        }
    }

    /// How many slots there are.
    pub fn slots(&self) -> usize {
        self.sets.len() * self.ways
    }

    /// The slot of a block.
    pub fn find(&self, tag: Tag) -> Option<usize> {
        self.at[(self.numbers)(tag)?].map(|at| at as usize)
    }

    /// A block is there, or nowhere.
    pub fn put(&mut self, tag: Option<Tag>, at: Option<usize>) {
        if let Some(number) = tag.and_then(&*self.numbers) {
            self.at[number] = at.map(|at| at as u32);
        }
    }

    /// A slot that was used last at one time has been used at another.
    pub fn order(&mut self, at: usize, before: u64, used: u64) {
        let set = &mut self.sets[at / self.ways];
        set.remove(&(before, at));
        set.insert((used, at));
    }

    /// An event of this block begins.
    pub fn reserve(&mut self, tag: Tag) {
        self.reserved.push(tag);
    }

    /// It is over.
    pub fn release(&mut self, tag: Tag) {
        self.reserved.retain(|reserved| *reserved != tag);
    }

    /// Whether there is one.
    pub fn under_way(&self, tag: Tag) -> bool {
        self.reserved.contains(&tag)
    }

    /// The slots that a block may be in, those that were not used for longest first.
    pub fn by_use(&self, tag: Tag) -> impl Iterator<Item = usize> {
        let set = (self.numbers)(tag).map(|number| &self.sets[self.set(number)]);
        set.into_iter().flatten().map(|(_, at)| *at)
    }

    /// "We hash its tag into a bucket" (§6): neighbours are spread at random,
    /// and some sets get too many.
    fn set(&self, number: usize) -> usize {
        let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (((mixed >> 32) * self.sets.len() as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cache;
    use super::*;
    use rackmem_proto::engine::{Plan, Purpose};
    use rackmem_proto::flowcc::LocalStatus::{self, Invalid, Modified, Shared};

    fn index(slots: usize, blocks: usize) -> Index {
        let number = |tag: Tag| Some(tag.0 as usize);
        Index::new((slots, 8), blocks, Arc::new(number))
    }

    fn fill(cache: &mut Cache<()>, block: u64, status: LocalStatus) -> usize {
        let Plan::Begin(at, _) = cache.plan(Tag(block), status == Modified) else {
            panic!("there is room");
        };
        cache.install(at, Tag(block), status);
        cache.release(at);
        at
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::<()>::indexed(index(8, 20));
        let slots: Vec<usize> = (0..8).map(|nth| fill(&mut cache, nth, Shared)).collect();
        let at = cache.hit(Tag(0), false).unwrap();
        cache.touch(at);
        assert_eq!(cache.hit(Tag(0), true), None);
        assert_eq!(cache.plan(Tag(9), false), Plan::Evict(slots[1], Tag(1)));
        // Reserved entries are passed over, and so is the block of another thread's event.
        assert_eq!(cache.plan(Tag(1), false), Plan::Wait);
        assert_eq!(cache.plan(Tag(10), true), Plan::Evict(slots[2], Tag(2)));
        assert_eq!(
            cache.plan(Tag(3), true),
            Plan::Begin(slots[3], Purpose::Upgrade)
        );
        assert_eq!(cache.plan(Tag(11), true), Plan::Evict(slots[4], Tag(4)));
        cache.install(slots[1], Tag(1), Invalid);
        cache.release(slots[1]);
        assert_eq!(
            cache.plan(Tag(9), false),
            Plan::Begin(slots[1], Purpose::Read)
        );
        assert_eq!(cache.copy(Tag(1)), None);
    }

    #[test]
    fn what_the_network_takes_away_is_used_first() {
        let mut cache = Cache::<()>::indexed(index(8, 20));
        let slots: Vec<usize> = (0..8).map(|nth| fill(&mut cache, nth, Modified)).collect();
        cache.lower(slots[7], Tag(7), Invalid);
        cache.lower(slots[0], Tag(0), Shared);
        assert_eq!(cache.copy(Tag(7)), None);
        assert_eq!(cache.copy(Tag(0)), Some((Shared, &())));
        assert_eq!(
            cache.plan(Tag(12), false),
            Plan::Begin(slots[7], Purpose::Read)
        );
        assert_eq!(cache.plan(Tag(13), false), Plan::Evict(slots[0], Tag(0)));
    }

    #[test]
    fn a_block_takes_the_place_of_another_and_is_found_there() {
        let mut cache = Cache::<()>::indexed(index(8, 20));
        let at = fill(&mut cache, 3, Shared);
        cache.install(at, Tag(4), Shared);
        assert_eq!((cache.find(Tag(3)), cache.find(Tag(4))), (None, Some(at)));
    }

    #[test]
    fn sets_overflow_as_random_ones_do() {
        let index = index(8192, 8192);
        let mut load = vec![0u32; 1024];
        (0..8192).for_each(|block| load[index.set(block)] += 1);
        let excess: u32 = load.iter().map(|n| n.saturating_sub(8)).sum();
        // Poisson with mean 8: 1.117 beyond eight on average.
        assert!((1000..1300).contains(&excess), "{excess}");
    }
}
