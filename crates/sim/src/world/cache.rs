//! A node's cache: one set, least recently used goes first, and the list of events under way.

use super::block::{Block, zeroed};
use rackmem_proto::engine::{self, Entries, Plan};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;

/// One entry.
pub struct Slot {
    /// The block it holds, while its status is not `Invalid`.
    pub tag: Option<Tag>,
    /// What the node may do with it.
    pub status: LocalStatus,
    /// The block's words; those of a reserved slot arrive before its tag is set.
    pub words: Block,
    used: u64,
    reserved: Option<Tag>,
}

/// The slots of a node.
pub struct Cache {
    slots: Box<[Slot]>,
    clock: u64,
}

impl Cache {
    /// An empty cache.
    pub fn new(capacity: usize) -> Self {
        let empty = || Slot {
            tag: None,
            status: LocalStatus::Invalid,
            words: zeroed(),
            used: 0,
            reserved: None,
        };
        Cache {
            slots: (0..capacity.max(1)).map(|_| empty()).collect(),
            clock: 0,
        }
    }

    /// A slot by its number.
    pub fn slot(&mut self, at: usize) -> &mut Slot {
        &mut self.slots[at]
    }

    /// The slot of a block that the node may at least read.
    pub fn find(&self, tag: Tag) -> Option<usize> {
        self.slots
            .iter()
            .position(|slot| slot.tag == Some(tag) && slot.status != LocalStatus::Invalid)
    }

    /// What the node may do with a block, and the block.
    pub fn copy(&self, tag: Tag) -> Option<(LocalStatus, &[u64])> {
        let slot = &self.slots[self.find(tag)?];
        Some((slot.status, &slot.words))
    }

    /// The blocks that the node may at least read.
    pub fn tags(&self) -> impl Iterator<Item = Tag> {
        let valid = |slot: &&Slot| slot.status != LocalStatus::Invalid;
        self.slots.iter().filter(valid).filter_map(|slot| slot.tag)
    }

    /// Marks a slot as used now.
    pub fn touch(&mut self, at: usize) {
        self.clock += 1;
        self.slots[at].used = self.clock;
    }

    /// Puts the block there whose words have arrived, or changes what may be done with it.
    pub fn install(&mut self, at: usize, tag: Tag, status: LocalStatus) {
        self.touch(at);
        let slot = &mut self.slots[at];
        slot.status = status;
        slot.tag = (status != LocalStatus::Invalid).then_some(tag);
    }

    /// Decides what to do about a block that a thread wants, and reserves the slot that takes.
    pub fn plan(&mut self, tag: Tag, write: bool) -> Plan<usize> {
        let plan = engine::plan(self, tag, write);
        match plan {
            Plan::Begin(at, _) => self.slots[at].reserved = Some(tag),
            Plan::Evict(at, old) => self.slots[at].reserved = Some(old),
            _ => {}
        }
        plan
    }

    /// Reserves any block that is here, to evict it.
    pub fn reserve_any(&mut self) -> Option<(usize, Tag)> {
        let free = |slot: &Slot| slot.tag.is_some() && slot.reserved.is_none();
        let at = self.slots.iter().position(free)?;
        let tag = self.slots[at].tag?;
        self.slots[at].reserved = Some(tag);
        Some((at, tag))
    }

    /// The event of a slot is over.
    pub fn release(&mut self, at: usize) {
        self.slots[at].reserved = None;
    }
}

impl Entries for Cache {
    type Entry = usize;
    type Block = Tag;

    fn under_way(&self, tag: Tag) -> bool {
        self.slots.iter().any(|slot| slot.reserved == Some(tag))
    }

    fn find(&self, tag: Tag) -> Option<(usize, LocalStatus)> {
        let at = Cache::find(self, tag)?;
        Some((at, self.slots[at].status))
    }

    fn room(&self, _: Tag) -> Option<(usize, Option<Tag>)> {
        let free = (0..self.slots.len()).filter(|&at| self.slots[at].reserved.is_none());
        let at = free.min_by_key(|&at| (self.slots[at].tag.is_some(), self.slots[at].used))?;
        Some((at, self.slots[at].tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::engine::Purpose;

    #[test]
    fn a_full_cache_evicts_the_least_recently_used() {
        let mut cache = Cache::new(2);
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
