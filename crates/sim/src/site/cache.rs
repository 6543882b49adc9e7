//! A node's cache: a slot for each block that is here, or that an event of the node's threads
//! brings or takes away; in sets, of each of which the least recently used block goes first.

use super::Form;
use rackmem_proto::engine::{self, Entries, Plan, Pressure, Purpose, next_out};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What there is of a block.
#[derive(Clone, Debug)]
struct Slot<B> {
    status: LocalStatus,
    /// The block's words, which arrive before the status says so.
    words: B,
    /// Whether it was written here since it came, and no rebuild has said that home has it.
    written: bool,
    /// Whether an event of this node fills or empties it.
    reserved: bool,
    /// Whether that event empties it.
    leaves: bool,
    /// When it was used last.
    used: u64,
}

impl<B: Form> Slot<B> {
    fn empty() -> Self {
        Slot {
            status: LocalStatus::Invalid,
            words: B::zeroes(),
            written: false,
            reserved: false,
            leaves: false,
            used: 0,
        }
    }
}

/// Slots that blocks may have which the cache hashes to the same set.
#[derive(Clone)]
struct Set<B> {
    slots: BTreeMap<Tag, Slot<B>>,
    /// Blocks that may be evicted, by the time of their last use.
    order: BTreeSet<(u64, Tag)>,
    /// Whether blocks leave before their room is needed.
    pressure: Pressure,
}

/// The slots of a node.
#[derive(Clone)]
pub struct Cache<B> {
    sets: Vec<Set<B>>,
    /// Slots that a set has.
    ways: usize,
    /// Which set a block has.
    set: Arc<dyn Fn(Tag) -> usize + Send + Sync>,
    clock: u64,
}

impl<B: Form> Cache<B> {
    /// An empty cache for so many blocks.
    pub fn new(capacity: usize) -> Self {
        Cache::in_sets((1, capacity), |_| 0)
    }

    /// An empty cache of so many sets with so many slots each. It says which a block has.
    pub fn in_sets(
        (sets, ways): (usize, usize),
        set: impl Fn(Tag) -> usize + Send + Sync + 'static,
    ) -> Self {
        let empty = Set {
            slots: BTreeMap::new(),
            order: BTreeSet::new(),
            pressure: Pressure::default(),
        };
        Cache {
            sets: vec![empty; sets],
            ways,
            set: Arc::new(set),
            clock: 0,
        }
    }

    fn slot(&self, tag: Tag) -> Option<&Slot<B>> {
        self.sets[(self.set)(tag)].slots.get(&tag)
    }

    /// What the node may do with a block.
    pub fn status(&self, tag: Tag) -> LocalStatus {
        self.slot(tag).map(|slot| slot.status).unwrap_or_default()
    }

    /// What the node may do with a block that is here, and its words.
    pub fn copy(&self, tag: Tag) -> Option<(LocalStatus, &B)> {
        let slot = self.slot(tag)?;
        (slot.status != LocalStatus::Invalid).then_some((slot.status, &slot.words))
    }

    /// The blocks that the node may at least read.
    pub fn tags(&self) -> impl Iterator<Item = Tag> {
        let slots = self.sets.iter().flat_map(|set| &set.slots);
        let valid = slots.filter(|(_, slot)| slot.status != LocalStatus::Invalid);
        valid.map(|(tag, _)| *tag)
    }

    /// Decides what to do about a block that a thread wants, which uses a copy that is good for it,
    /// and reserves the slot that takes.
    pub fn plan(&mut self, tag: Tag, writes: bool) -> Plan<Tag> {
        let plan = engine::plan(self, tag, writes);
        let pressure = &mut self.sets[(self.set)(tag)].pressure;
        match plan {
            Plan::Hit(tag) => self.touch(tag),
            Plan::Begin(tag, purpose) => {
                if purpose.fetches() {
                    pressure.comes(tag);
                }
                self.reserve(tag);
            }
            Plan::Evict(_, old) => {
                pressure.comes(tag);
                pressure.leaves(old);
                self.empty(old);
            }
            Plan::Wait | Plan::WaitForRoom => {}
        }
        plan
    }

    /// The block that is to leave beside an event of this purpose, which is about to begin, so that
    /// the next one finds room. It is reserved for that.
    pub fn next_out(&mut self, tag: Tag, purpose: Purpose) -> Option<Tag> {
        let set = (self.set)(tag);
        if !self.sets[set].pressure.evicts_ahead() {
            return None;
        }
        let (old, _) = next_out(self, tag, purpose)?;
        self.sets[set].pressure.leaves(old);
        self.empty(old);
        Some(old)
    }

    /// An event takes this block away.
    fn empty(&mut self, tag: Tag) {
        self.change(tag, |slot| (slot.reserved, slot.leaves) = (true, true));
    }

    /// An event brings this block or takes it away.
    pub fn reserve(&mut self, tag: Tag) {
        self.change(tag, |slot| slot.reserved = true);
    }

    /// The event of a block is over.
    pub fn release(&mut self, tag: Tag) {
        self.change(tag, |slot| (slot.reserved, slot.leaves) = (false, false));
    }

    /// The words of a block that is here, or on its way.
    pub fn words(&mut self, tag: Tag) -> &mut B {
        let slots = &mut self.sets[(self.set)(tag)].slots;
        &mut slots.entry(tag).or_insert_with(Slot::empty).words
    }

    /// Puts the block there whose words have arrived, or changes what may be done with it.
    pub fn install(&mut self, tag: Tag, status: LocalStatus) {
        self.lower(tag, status);
        self.touch(tag);
    }

    /// Changes what may be done with a block, which is no use of it.
    pub fn lower(&mut self, tag: Tag, status: LocalStatus) {
        self.change(tag, |slot| {
            slot.written |= (slot.status, status) == (LocalStatus::Modified, LocalStatus::Shared);
            slot.written &= status != LocalStatus::Invalid;
            slot.status = status;
        });
    }

    /// The clean copies that were written here, and that home may not have.
    pub fn downgraded(&self) -> impl Iterator<Item = Tag> {
        let slots = self.sets.iter().flat_map(|set| &set.slots);
        let written = slots.filter(|(_, slot)| slot.written && slot.status == LocalStatus::Shared);
        written.map(|(tag, _)| *tag)
    }

    /// Home has a block as it is here.
    pub fn home_has(&mut self, tag: Tag) {
        if self.slot(tag).is_some() {
            self.change(tag, |slot| slot.written = false);
        }
    }

    /// What it holds. Who was used last does not count: explorers have room for all blocks.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        for Set { slots, .. } in &self.sets {
            slots.len().hash(into);
            for (tag, slot) in slots {
                (tag, slot.status, &slot.words, slot.reserved).hash(into);
                slot.written.hash(into);
            }
        }
    }

    fn touch(&mut self, tag: Tag) {
        self.clock += 1;
        let now = self.clock;
        self.change(tag, |slot| slot.used = now);
    }

    /// Changes the slot of a block, and with it what may leave its set.
    fn change(&mut self, tag: Tag, act: impl FnOnce(&mut Slot<B>)) {
        let Set { slots, order, .. } = &mut self.sets[(self.set)(tag)];
        let slot = slots.entry(tag).or_insert_with(Slot::empty);
        order.remove(&(slot.used, tag));
        act(slot);
        match (slot.reserved, slot.status) {
            (true, _) => {}
            (false, LocalStatus::Invalid) => _ = slots.remove(&tag),
            (false, _) => _ = order.insert((slot.used, tag)),
        }
    }
}

impl<B: Form> Entries for Cache<B> {
    type Entry = Tag;
    type Block = Tag;

    fn under_way(&self, tag: Tag) -> bool {
        self.slot(tag).is_some_and(|slot| slot.reserved)
    }

    fn makes_room(&self, tag: Tag) -> bool {
        let slots = &self.sets[(self.set)(tag)].slots;
        slots.values().any(|slot| slot.leaves)
    }

    fn find(&self, tag: Tag) -> Option<(Tag, LocalStatus)> {
        Some((tag, self.copy(tag)?.0))
    }

    fn room(&self, tag: Tag) -> Option<(Tag, Option<Tag>)> {
        let set = &self.sets[(self.set)(tag)];
        if set.slots.len() < self.ways {
            return Some((tag, None));
        }
        let (_, oldest) = *set.order.first()?;
        Some((oldest, Some(oldest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use LocalStatus::{Invalid, Modified, Shared};
    use rackmem_proto::engine::Purpose;

    fn fill(cache: &mut Cache<()>, blocks: impl IntoIterator<Item = u64>, status: LocalStatus) {
        for tag in blocks.into_iter().map(Tag) {
            let plan = cache.plan(tag, status == Modified);
            assert!(
                matches!(plan, Plan::Begin(at, _) if at == tag),
                "there is room"
            );
            cache.install(tag, status);
            cache.release(tag);
        }
    }

    fn evicts(block: u64) -> Plan<Tag> {
        Plan::Evict(Tag(block), Tag(block))
    }

    #[test]
    fn a_block_goes_where_its_set_has_room() {
        let mut cache = Cache::<()>::in_sets((2, 2), |tag| tag.0 as usize % 2);
        fill(&mut cache, 1..=4, Shared);
        assert_eq!(cache.tags().count(), 4);
        assert_eq!(cache.plan(Tag(5), false), evicts(1));
        assert_eq!(cache.plan(Tag(7), false), evicts(3));
        assert_eq!(cache.plan(Tag(6), true), evicts(2));
        assert_eq!(cache.plan(Tag(9), false), Plan::WaitForRoom);
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Cache::new(5);
        fill(&mut cache, 0..5, Shared);
        assert_eq!(cache.plan(Tag(0), false), Plan::Hit(Tag(0)));
        assert_eq!(cache.plan(Tag(10), false), evicts(1));
        // Reserved entries are passed over, and so is the block of another thread's event.
        assert_eq!(cache.plan(Tag(1), true), Plan::Wait);
        assert_eq!(cache.plan(Tag(11), true), evicts(2));
        let upgrade = Plan::Begin(Tag(3), Purpose::Upgrade);
        assert_eq!(cache.plan(Tag(3), true), upgrade);
        assert_eq!(cache.plan(Tag(12), true), evicts(4));
        assert_eq!(cache.plan(Tag(13), true), evicts(0));
        assert_eq!(cache.plan(Tag(14), true), Plan::WaitForRoom);
        cache.install(Tag(1), Invalid);
        cache.release(Tag(1));
        let read = Plan::Begin(Tag(10), Purpose::Read);
        assert_eq!(cache.plan(Tag(10), false), read);
        assert_eq!(cache.copy(Tag(1)), None);
    }

    #[test]
    fn a_set_that_had_to_evict_makes_room_beside_what_comes() {
        let mut cache = Cache::new(4);
        fill(&mut cache, 0..4, Shared);
        assert_eq!(cache.next_out(Tag(3), Purpose::Read), None);
        let mut next = 4;
        while !cache.sets[0].pressure.evicts_ahead() {
            assert_eq!(cache.plan(Tag(next), false), evicts(next - 4));
            cache.install(Tag(next - 4), Invalid);
            cache.release(Tag(next - 4));
            fill(&mut cache, [next], Shared);
            next += 1;
        }
        assert_eq!(cache.next_out(Tag(next - 1), Purpose::Upgrade), None);
        let out = Tag(next - 4);
        assert_eq!(cache.next_out(Tag(next - 1), Purpose::Read), Some(out));
        // One at a time.
        assert_eq!(cache.next_out(Tag(next - 1), Purpose::Read), None);
        cache.install(out, Invalid);
        cache.release(out);
        // There is room.
        assert_eq!(cache.next_out(Tag(next - 1), Purpose::Read), None);
        fill(&mut cache, [next], Shared);
        assert!(cache.next_out(Tag(next), Purpose::Read).is_some());
    }

    #[test]
    fn what_the_network_takes_away_makes_room() {
        let mut cache = Cache::new(8);
        fill(&mut cache, 0..8, Modified);
        cache.lower(Tag(7), Invalid);
        cache.lower(Tag(0), Shared);
        assert_eq!(cache.copy(Tag(7)), None);
        assert_eq!(cache.copy(Tag(0)), Some((Shared, &())));
        let read = Plan::Begin(Tag(12), Purpose::Read);
        assert_eq!(cache.plan(Tag(12), false), read);
        assert_eq!(cache.plan(Tag(13), false), evicts(0));
    }

    #[test]
    fn a_copy_that_is_taken_away_during_its_event_keeps_its_slot() {
        let mut cache = Cache::new(1);
        fill(&mut cache, [1], Shared);
        cache.reserve(Tag(1));
        cache.lower(Tag(1), Invalid);
        assert_eq!(cache.tags().count(), 0);
        assert_eq!(cache.plan(Tag(2), false), Plan::WaitForRoom);
        cache.release(Tag(1));
        assert_eq!(
            cache.plan(Tag(2), false),
            Plan::Begin(Tag(2), Purpose::Read)
        );
    }
}
