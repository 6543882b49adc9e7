//! A node's cache, and the events of its threads that fill and empty it: one set, of which the
//! least recently used goes first, or a place for each block, where which block must go is no
//! matter. Both are lists to look through. Caches of thousands of blocks are in sets,
//! and have an index.

use super::{Form, Index};
use rackmem_proto::engine::{self, Entries, Plan};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::hash::{Hash, Hasher};

/// One entry.
#[derive(Clone, Debug)]
pub struct Slot<B> {
    /// The block it holds, while its status is not `Invalid`.
    pub tag: Option<Tag>,
    /// What the node may do with it.
    pub status: LocalStatus,
    /// The block's words; those of a reserved slot arrive before its tag is set.
    pub words: B,
    /// The only block that it takes, if there is one.
    place: Option<Tag>,
    /// When it was used last; 0 while it is empty.
    used: u64,
    reserved: Option<Tag>,
}

impl<B: Hash> Hash for Slot<B> {
    fn hash<H: Hasher>(&self, into: &mut H) {
        (self.tag, self.status, &self.words, self.reserved).hash(into);
    }
}

/// The slots of a node.
#[derive(Clone)]
pub struct Cache<B> {
    slots: Vec<Slot<B>>,
    clock: u64,
    index: Option<Box<Index>>,
}

impl<B: Form> Cache<B> {
    fn of(places: impl Iterator<Item = Option<Tag>>) -> Self {
        let empty = |place| Slot {
            tag: None,
            status: LocalStatus::Invalid,
            words: B::zeroes(),
            place,
            used: 0,
            reserved: None,
        };
        Cache {
            slots: places.map(empty).collect(),
            clock: 0,
            index: None,
        }
    }

    /// An empty cache for so many blocks, and one at least.
    pub fn new(capacity: usize) -> Self {
        Cache::of((0..capacity.max(1)).map(|_| None))
    }

    /// An empty cache with a place for each of these blocks.
    pub fn with_places(blocks: &[Tag]) -> Self {
        Cache::of(blocks.iter().copied().map(Some))
    }

    /// An empty cache with this index.
    pub fn indexed(index: Index) -> Self {
        let slots = (0..index.slots()).map(|_| None);
        Cache {
            index: Some(Box::new(index)),
            ..Cache::of(slots)
        }
    }

    /// All of them.
    pub fn slots(&self) -> &[Slot<B>] {
        &self.slots
    }

    /// A slot by its number.
    pub fn slot(&mut self, at: usize) -> &mut Slot<B> {
        &mut self.slots[at]
    }

    /// The slot of a block that the node may at least read.
    pub fn find(&self, tag: Tag) -> Option<usize> {
        if let Some(index) = &self.index {
            return index.find(tag);
        }
        self.slots
            .iter()
            .position(|slot| slot.tag == Some(tag) && slot.status != LocalStatus::Invalid)
    }

    /// What the node may do with a block, and the block.
    pub fn copy(&self, tag: Tag) -> Option<(LocalStatus, &B)> {
        let slot = &self.slots[self.find(tag)?];
        Some((slot.status, &slot.words))
    }

    /// The blocks that the node may at least read.
    pub fn tags(&self) -> impl Iterator<Item = Tag> {
        let valid = |slot: &&Slot<B>| slot.status != LocalStatus::Invalid;
        self.slots.iter().filter(valid).filter_map(|slot| slot.tag)
    }

    /// The slot of a copy that is good for an operation.
    pub fn hit(&self, tag: Tag, writes: bool) -> Option<usize> {
        let good = |at: &usize| !writes || self.slots[*at].status == LocalStatus::Modified;
        self.find(tag).filter(good)
    }

    /// Marks a slot as used now.
    pub fn touch(&mut self, at: usize) {
        // The one that was used last stays it.
        if self.slots[at].used != self.clock.max(1) {
            self.clock += 1;
            self.order(at, self.clock);
        }
    }

    fn order(&mut self, at: usize, used: u64) {
        let before = std::mem::replace(&mut self.slots[at].used, used);
        if let Some(index) = &mut self.index {
            index.order(at, before, used);
        }
    }

    /// Puts the block there whose words have arrived, or changes what may be done with it.
    pub fn install(&mut self, at: usize, tag: Tag, status: LocalStatus) {
        self.lower(at, tag, status);
        if status != LocalStatus::Invalid {
            self.touch(at);
        }
    }

    /// Changes what may be done with the block of a slot, which is no use of it; one that is taken
    /// away leaves its slot empty.
    pub fn lower(&mut self, at: usize, tag: Tag, status: LocalStatus) {
        let slot = &mut self.slots[at];
        slot.status = status;
        let left = slot.tag.replace(tag);
        if status == LocalStatus::Invalid {
            slot.tag = None;
            self.order(at, 0);
        }
        let holds = self.slots[at].tag;
        if let Some(index) = self.index.as_mut().filter(|_| left != holds) {
            index.put(left, None);
            index.put(holds, Some(at));
        }
    }

    /// Decides what to do about a block that a thread wants, and reserves the slot that takes.
    pub fn plan(&mut self, tag: Tag, write: bool) -> Plan<usize> {
        let plan = engine::plan(self, tag, write);
        match plan {
            Plan::Begin(at, _) => self.reserve(at, tag),
            Plan::Evict(at, old) => self.reserve(at, old),
            _ => {}
        }
        plan
    }

    /// An event of this block begins in a slot.
    pub fn reserve(&mut self, at: usize, tag: Tag) {
        self.slots[at].reserved = Some(tag);
        if let Some(index) = &mut self.index {
            index.reserve(tag);
        }
    }

    /// Reserves any block that is here, to evict it.
    pub fn reserve_any(&mut self) -> Option<(usize, Tag)> {
        let free = |slot: &Slot<B>| slot.tag.is_some() && slot.reserved.is_none();
        let at = self.slots.iter().position(free)?;
        let tag = self.slots[at].tag?;
        self.reserve(at, tag);
        Some((at, tag))
    }

    /// The event of a slot is over.
    pub fn release(&mut self, at: usize) {
        let over = self.slots[at].reserved.take();
        if let (Some(index), Some(tag)) = (&mut self.index, over) {
            index.release(tag);
        }
    }
}

impl<B: Form> Entries for Cache<B> {
    type Entry = usize;
    type Block = Tag;

    fn under_way(&self, tag: Tag) -> bool {
        match &self.index {
            Some(index) => index.under_way(tag),
            None => self.slots.iter().any(|slot| slot.reserved == Some(tag)),
        }
    }

    fn find(&self, tag: Tag) -> Option<(usize, LocalStatus)> {
        let at = Cache::find(self, tag)?;
        Some((at, self.slots[at].status))
    }

    fn room(&self, tag: Tag) -> Option<(usize, Option<Tag>)> {
        let fits = |slot: &Slot<B>| slot.place.is_none_or(|place| place == tag);
        let free = |at: &usize| self.slots[*at].reserved.is_none() && fits(&self.slots[*at]);
        let at = match &self.index {
            Some(index) => index.by_use(tag).find(free)?,
            None => (0..self.slots.len())
                .filter(free)
                .min_by_key(|&at| self.slots[at].used)?,
        };
        Some((at, self.slots[at].tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::engine::Purpose;

    #[test]
    fn a_full_cache_evicts_the_least_recently_used() {
        let mut cache = Cache::<crate::world::block::Block>::new(2);
        for block in [Tag(1), Tag(2)] {
            let Plan::Begin(at, Purpose::Read) = cache.plan(block, false) else {
                panic!("there is room");
            };
            cache.install(at, block, LocalStatus::Shared);
            cache.release(at);
        }
        assert_eq!(cache.plan(Tag(3), true), Plan::Evict(0, Tag(1)));
        assert_eq!(cache.plan(Tag(1), true), Plan::Wait);
        assert_eq!(cache.plan(Tag(4), true), Plan::Evict(1, Tag(2)));
        assert_eq!(cache.plan(Tag(5), true), Plan::WaitForRoom);
        cache.install(0, Tag(1), LocalStatus::Invalid);
        cache.release(0);
        assert_eq!(cache.plan(Tag(3), true), Plan::Begin(0, Purpose::Write));
    }
}
