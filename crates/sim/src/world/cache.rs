//! A node's cache: one set, least recently used goes first, and the list of events under way.

use super::block::{Block, zeroed};
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

/// What a thread without a usable copy does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Wait for another thread's event.
    Wait,
    /// Fetch the block into this slot.
    Fill(usize),
    /// Ask for the right to write to this slot.
    Upgrade(usize),
    /// Empty this slot of this block first.
    Evict(usize, Tag),
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
    pub fn plan(&mut self, tag: Tag, write: bool) -> Plan {
        if self.slots.iter().any(|slot| slot.reserved == Some(tag)) {
            return Plan::Wait;
        }
        let (at, plan, block) = match self.find(tag) {
            Some(at) if write => (at, Plan::Upgrade(at), tag),
            Some(_) => return Plan::Wait,
            None => {
                let Some(at) = self.victim() else {
                    return Plan::Wait;
                };
                match self.slots[at].tag {
                    Some(old) => (at, Plan::Evict(at, old), old),
                    None => (at, Plan::Fill(at), tag),
                }
            }
        };
        self.slots[at].reserved = Some(block);
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

    fn victim(&self) -> Option<usize> {
        (0..self.slots.len())
            .filter(|&at| self.slots[at].reserved.is_none())
            .min_by_key(|&at| (self.slots[at].tag.is_some(), self.slots[at].used))
    }

    /// The event of a slot is over.
    pub fn release(&mut self, at: usize) {
        self.slots[at].reserved = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_evicts_the_least_recently_used() {
        let mut cache = Cache::new(2);
        for block in [Tag(1), Tag(2)] {
            let Plan::Fill(at) = cache.plan(block, false) else {
                panic!("there is room");
            };
            cache.install(at, block, LocalStatus::Shared);
            cache.release(at);
        }
        assert_eq!(cache.plan(Tag(3), true), Plan::Evict(0, Tag(1)));
        assert_eq!(cache.plan(Tag(1), true), Plan::Wait);
        assert_eq!(cache.plan(Tag(4), true), Plan::Evict(1, Tag(2)));
        assert_eq!(cache.plan(Tag(5), true), Plan::Wait);
        cache.install(0, Tag(1), LocalStatus::Invalid);
        cache.release(0);
        assert_eq!(cache.plan(Tag(3), true), Plan::Fill(0));
    }
}
