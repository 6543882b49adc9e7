//! Which members keep copies of which region, as the whole rack agrees on it.
//!
//! It is a register beside the roster, in the same store outside the rack, changed by
//! compare-and-set as well: of two who want to change the groups, one is told that it is late and
//! looks again. So there is one config of a group for each number, whoever decides. It is none of
//! the view's: a change of a group fences the group's packets and no other
//! (`docs/decisions/0028-groups-are-a-register-of-their-own.md`).

use super::View;
use super::group::{Asked, Group, MAX_GROUP_NAME, addresses};
use crate::abd::{COPIES, Change, Config, Durability, GROUPS, HELD_LINE, Layout, Member, Refused};
use crate::sabre::SLAB;
use crate::wire::{MAX_NODES, NodeId, Tag};
use alloc::vec::Vec;

/// Why a change of the groups cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unchanged {
    /// The rack has as many groups as it can have.
    Full,
    /// There is a region of this name.
    Exists,
    /// There is no such group.
    NoGroup,
    /// So many copies take more live members: this many there are.
    Members(u8),
    /// It is to have this many copies already, or there are no groups of so many.
    Copies(u8),
    /// The node is no live member of the rack.
    NotLive(NodeId),
    /// The group's config does not allow it.
    Config(Refused),
    /// The last version there can be.
    Version,
    /// A live node has the region's pages for itself.
    Mapped(NodeId),
}

/// All of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Groups {
    /// Rises by one with every change; 0 is before the first.
    pub version: u64,
    /// The rack's number, by which durable members know the stores that are theirs: whoever
    /// creates the first durable region has drawn it. 0: there has been none.
    pub rack: u64,
    /// By number. None is ever taken away: where a region was removed, its last config stays.
    pub rows: Vec<Group>,
}

impl Groups {
    /// The group of this name, and its number.
    pub fn find(&self, name: &str) -> Option<(u16, &Group)> {
        let is_it = |group: &Group| group.name == name && !group.config.is_removed();
        let at = self.rows.iter().position(is_it)?;
        Some((at as u16, &self.rows[at]))
    }

    /// The group of this number.
    pub fn get(&self, group: u16) -> Option<&Group> {
        self.rows.get(usize::from(group))
    }

    /// Bytes of all regions that a node keeps copies of, or will.
    pub fn bytes_at(&self, node: NodeId) -> u64 {
        let kept = self.rows.iter().filter(|g| g.config.place(node).is_some());
        kept.fold(0, |sum, group| sum.saturating_add(group.layout.bytes))
    }

    fn next(&self) -> Result<Groups, Unchanged> {
        let version = self.version.checked_add(1).ok_or(Unchanged::Version)?;
        let mut next = self.clone();
        next.version = version;
        Ok(next)
    }

    /// With a new region, its copies at `first` and the live nodes behind it.
    pub fn create(
        &self,
        (name, element): (&str, u64),
        asked: Asked,
        (view, first): (&View, NodeId),
    ) -> Result<Groups, Unchanged> {
        if self.find(name).is_some() {
            return Err(Unchanged::Exists);
        }
        // A number whose region was removed is used again, its configs going on from there, as long
        // as its home has addresses that were no object's.
        let takes = addresses(asked.home, asked.layout);
        let has_room = |group: &Group| group.unused().saturating_add(takes) <= Tag::SPACE;
        let fits = |group: &Group| group.config.is_removed() && (takes == 0 || has_room(group));
        let free = self.rows.iter().position(fits);
        if free.is_none() && self.rows.len() >= GROUPS {
            return Err(Unchanged::Full);
        }
        let config = |members: &[Member]| match free {
            Some(at) => self.rows[at].config.again(members),
            None => Config::first(members),
        };
        let around = (0..MAX_NODES as NodeId).map(|step| (first + step) % MAX_NODES as NodeId);
        let live = around.filter_map(|node| member(view, node));
        let members: Vec<Member> = live.take(asked.copies.into()).collect();
        if members.len() < usize::from(asked.copies) {
            return Err(Unchanged::Members(members.len() as u8));
        }
        let mut group = Group {
            name: name.into(),
            element,
            layout: asked.layout,
            copies: asked.copies,
            // A switch knows nothing of the epochs of stamps, which fence a home.
            two_rounds: asked.two_rounds || asked.home.is_some(),
            held: asked.held && asked.layout.line as usize == HELD_LINE,
            durability: asked.durability,
            home: asked.home,
            config: config(&members).map_err(Unchanged::Config)?,
            mapped: None,
            base: free.map_or(0, |at| self.rows[at].unused()),
        };
        let way = group.way(view.switch);
        let config = &mut group.config;
        (config.through_switch, config.chooser, config.holds_lines) = way;
        let mut next = self.next()?;
        match free {
            Some(at) => next.rows[at] = group,
            None => next.rows.push(group),
        }
        Ok(next)
    }

    /// Without the region of this name: nobody keeps copies of it any more.
    pub fn remove(&self, name: &str) -> Result<Groups, Unchanged> {
        let (number, _) = self.find(name).ok_or(Unchanged::NoGroup)?;
        self.step(number, Change::Remove)
    }

    /// With this number of the rack, if it has none.
    #[must_use]
    pub fn numbered(mut self, drawn: u64) -> Groups {
        if self.rack == 0 {
            self.rack = drawn;
        }
        self
    }

    /// With a group's next config.
    pub fn step(&self, group: u16, change: Change) -> Result<Groups, Unchanged> {
        let mut next = self.next()?;
        let row = next.rows.get_mut(usize::from(group));
        let row = row.ok_or(Unchanged::NoGroup)?;
        row.config = row.config.step(change).map_err(Unchanged::Config)?;
        Ok(next)
    }

    /// With the life that `new` has now in the place of what `old` was: they may be one node,
    /// which has come back and has forgotten.
    pub fn replace(
        &self,
        group: u16,
        (old, new): (NodeId, NodeId),
        view: &View,
    ) -> Result<Groups, Unchanged> {
        let member = member(view, new).ok_or(Unchanged::NotLive(new))?;
        self.step(group, Change::Replace(old, member))
    }

    /// With the pages of a group for this life of a node alone. Where another life had them that is
    /// not live any more, or this one already, what that has sent is of an earlier config.
    pub fn map(&self, group: u16, node: NodeId, view: &View) -> Result<Groups, Unchanged> {
        let me = member(view, node).ok_or(Unchanged::NotLive(node))?;
        let there = self.get(group).filter(|row| !row.config.is_removed());
        let row = there.ok_or(Unchanged::NoGroup)?;
        let mut next = match row.mapped {
            None => self.next()?,
            Some(now) if now != me && member(view, now.node) == Some(now) => {
                return Err(Unchanged::Mapped(now.node));
            }
            Some(_) => self.step(group, Change::Fence)?,
        };
        if let Some(row) = next.rows.get_mut(usize::from(group)) {
            row.mapped = Some(me);
        }
        Ok(next)
    }

    /// With the pages of a group for nobody, if they were this one's.
    pub fn unmap(&self, group: u16, mapper: Member) -> Option<Groups> {
        let mut next = self.next().ok()?;
        let row = next.rows.get_mut(usize::from(group))?;
        let had = row.mapped.take_if(|now| *now == mapper);
        had.is_some().then_some(next)
    }

    /// With a region of lines that is to have more copies (a home's cannot yet): live nodes are
    /// added from now on, one at a time ([`Groups::growing`]).
    pub fn grow(&self, name: &str, copies: u8, view: &View) -> Result<Groups, Unchanged> {
        let found = self.find(name).filter(|(_, group)| group.home.is_none());
        let (number, group) = found.ok_or(Unchanged::NoGroup)?;
        if copies <= group.copies || !COPIES.contains(&copies) {
            return Err(Unchanged::Copies(group.copies));
        }
        let live = (0..MAX_NODES as NodeId).filter(|node| member(view, *node).is_some());
        let live = live.count() as u8;
        if live < copies {
            return Err(Unchanged::Members(live));
        }
        let mut next = self.next()?;
        next.rows[usize::from(number)].copies = copies;
        Ok(next)
    }

    /// The next step of the first region that has fewer copies than it is to have: a live node
    /// behind its last member is added.
    pub fn growing(&self, view: &View) -> Option<Groups> {
        let rows = self.rows.iter().enumerate();
        let grows = |(_, group): &(usize, &Group)| {
            let config = &group.config;
            let few = config.counting.count_ones() < u32::from(group.copies);
            !config.is_removed() && few && config.filling().is_none()
        };
        let mut steps = rows.filter(grows).filter_map(|(number, group)| {
            let config = &group.config;
            let last = config.members.iter().flatten().next_back()?.node;
            let behind = (1..=MAX_NODES as NodeId).map(|nth| (last + nth) % MAX_NODES as NodeId);
            let mut free = behind.filter(|node| config.place(*node).is_none());
            let new = free.find_map(|node| member(view, node))?;
            self.step(number as u16, Change::Add(new)).ok()
        });
        steps.next()
    }

    /// With a live node in the place of a dead member; or, where a region that grows has two
    /// copies and the second one is dead, with the first one alone.
    pub fn without(
        &self,
        group: u16,
        (dead, spare): (NodeId, NodeId),
        view: &View,
    ) -> Result<Groups, Unchanged> {
        let config = self.get(group).ok_or(Unchanged::NoGroup)?.config;
        if config.size != 2 || config.filling() == config.place(dead) {
            return self.replace(group, (dead, spare), view);
        }
        // One thing after the other: whoever fills cannot fill from the dead.
        let fills = config.filling().and_then(|place| config.node(place));
        self.step(group, Change::Cancel(fills.unwrap_or(dead)))
    }

    /// Once this member has filled a group in the config of this number.
    pub fn filled(&self, group: u16, (node, config): (NodeId, u32)) -> Option<Groups> {
        let now = self.get(group)?.config.number;
        let filled = || self.step(group, Change::Filled(node)).ok();
        (now == config).then(filled).flatten()
    }

    /// With the first group that goes another way than this incarnation of the switch allows, or
    /// none of it, brought into line.
    pub fn follow_switch(&self, switch: Option<u32>) -> Option<Groups> {
        let other = |group: &Group| !group.config.is_removed() && group.goes() != group.way(switch);
        let at = self.rows.iter().position(other)?;
        let change = match self.rows[at].way(switch) {
            (through, 0, _) => Change::ThroughSwitch(through),
            (_, life, false) => Change::AtOnce(life),
            (_, life, true) => Change::Held(life),
        };
        self.step(at as u16, change).ok()
    }

    /// A member that is not live in this view, or in another life, and a live node that keeps no
    /// copy of its group: the dead one's own node, if that is back.
    pub fn replaceable(&self, view: &View) -> Vec<(u16, NodeId, NodeId)> {
        let mut found = Vec::new();
        for (number, group) in self.rows.iter().enumerate() {
            let config = &group.config;
            let gone = |m: &&Member| !is_there(group, m, view);
            // Two that count are a quorum only together: nobody fills from one of them.
            let fills = config.filling().filter(|_| config.size != 2);
            let dead = config.members.iter().enumerate();
            let dead = dead.filter(|(place, _)| fills.is_none_or(|fills| fills == *place));
            let Some(dead) = dead.filter_map(|(_, m)| m.as_ref()).find(gone) else {
                continue;
            };
            let around = (0..MAX_NODES as NodeId).map(|n| (dead.node + n) % MAX_NODES as NodeId);
            let fits = |node: &NodeId| *node == dead.node || config.place(*node).is_none();
            let spare = around
                .filter(fits)
                .find(|node| member(view, *node).is_some());
            found.extend(spare.map(|spare| (number as u16, dead.node, spare)));
        }
        found
    }

    /// Whether steps from none can lead here. What was read from outside may contradict itself.
    pub fn is_consistent(&self) -> bool {
        let named = |at: usize, group: &Group| {
            let len = group.name.len();
            (1..=MAX_GROUP_NAME).contains(&len)
                && (group.config.is_removed() || self.find(&group.name) == Some((at as u16, group)))
        };
        let rows = self.rows.iter().enumerate();
        let durable = |group: &Group| group.durability == Durability::Memory || self.rack != 0;
        let sound = |(at, group): (usize, &Group)| named(at, group) && durable(group);
        let mut rows = rows.map(|(at, group)| sound((at, group)) && is_whole(group));
        self.rows.len() <= GROUPS
            && (self.rows.len() as u64) <= self.version
            && rows.all(|whole| whole)
    }
}

/// Whether a member is live. A durable one remembers: while a process of its node is there, that
/// says what has become of its store.
pub(super) fn is_there(group: &Group, m: &Member, view: &View) -> bool {
    match group.durability {
        Durability::Memory => member(view, m.node) == Some(*m),
        _ => view.incarnation(m.node).is_some(),
    }
}

/// A live node as a member: in the life that it has now.
fn member(view: &View, node: NodeId) -> Option<Member> {
    let life = view.incarnation(node)?;
    Some(Member {
        node,
        life: life.into(),
    })
}

fn is_whole(group: &Group) -> bool {
    let (layout, config) = (&group.layout, &group.config);
    let places = config.members.iter().enumerate();
    let there = places.filter_map(|(place, m)| m.map(|m| (place, m.node)));
    let there: Vec<(usize, NodeId)> = there.collect();
    let bits = there.iter().fold(0u8, |bits, (place, _)| bits | 1 << place);
    let apart = there
        .iter()
        .enumerate()
        .all(|(at, (_, node))| there[..at].iter().all(|(_, other)| other != node));
    let filling = (bits & !config.counting).count_ones();
    Layout::new(layout.line, layout.bytes) == Some(*layout)
        && COPIES.contains(&group.copies)
        && config.number >= config.first
        && config.first >= 1
        && there.iter().all(|(_, node)| usize::from(*node) < MAX_NODES)
        && group.mapped.is_none_or(|m| usize::from(m.node) < MAX_NODES)
        && group.base.is_multiple_of(SLAB)
        && group.unused() <= Tag::SPACE
        && apart
        && config.counting & !bits == 0
        && filling <= 1
        && config.size >= 1
        && (config.through_switch || config.chooser == 0)
        && (config.chooser != 0 || !config.holds_lines)
        && (!group.held || layout.line as usize == HELD_LINE)
        && if config.is_removed() {
            bits == 0 && !config.through_switch
        } else {
            config.counting.count_ones() >= config.quorum()
        }
        && config.counting.count_ones() <= config.size.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::{KeptAs, Survives};
    use crate::switch::LINES;
    use crate::wire::Copyset;

    fn view(nodes: u32) -> View {
        View::first(Copyset(nodes), false)
    }

    fn lines(copies: u8) -> Asked {
        Asked::new(Layout::new(64, 640).unwrap(), copies)
    }

    fn ledger(view: &View) -> Groups {
        let none = Groups::default();
        none.create(("ledger", 7), lines(3), (view, 1)).unwrap()
    }

    #[test]
    fn copies_are_at_the_creating_node_and_those_behind_it() {
        let groups = ledger(&view(0b11111));
        let (number, group) = groups.find("ledger").unwrap();
        assert_eq!((number, group.config.number, groups.version), (0, 1, 1));
        assert_eq!(group.config.nodes(7), Copyset(0b1110));
        assert!(!group.config.through_switch && groups.is_consistent());
        let first = lines(3);
        let again = groups.create(("ledger", 7), first, (&view(7), 0));
        assert_eq!(again, Err(Unchanged::Exists));
        let few = groups.create(("log", 0), first, (&view(0b101), 0));
        assert_eq!(few, Err(Unchanged::Members(2)));
        let two = groups.create(("log", 0), lines(2), (&view(7), 0));
        assert_eq!(two, Err(Unchanged::Config(Refused::Full)));
        let next = groups.create(("log", 0), first, (&view(0b111), 2)).unwrap();
        assert_eq!(next.get(1).unwrap().config.nodes(7), Copyset(0b111));
        assert_eq!((next.bytes_at(1), next.bytes_at(3)), (1280, 640));
    }

    #[test]
    fn a_rack_has_so_many_groups() {
        let mut groups = Groups::default();
        for nth in 0..GROUPS {
            let name = alloc::format!("region {nth}");
            groups = groups.create((&name, 0), lines(1), (&view(1), 0)).unwrap();
        }
        assert!(groups.is_consistent());
        let one_more = groups.create(("more", 0), lines(1), (&view(1), 0));
        assert_eq!(one_more, Err(Unchanged::Full));
    }

    #[test]
    fn a_regions_pages_are_of_one_live_node_at_a_time() {
        let first = view(0b11111);
        let groups = ledger(&first);
        let mine = groups.map(0, 3, &first).unwrap();
        let me = Member { node: 3, life: 1 };
        assert_eq!(mine.get(0).unwrap().mapped, Some(me));
        assert_eq!(mine.get(0).unwrap().config.number, 1, "there was nobody");
        assert_eq!(mine.map(0, 4, &first), Err(Unchanged::Mapped(3)));
        assert_eq!(mine.unmap(0, Member { node: 3, life: 2 }), None);
        let free = mine.unmap(0, me).unwrap();
        assert!(free.map(0, 4, &first).is_ok() && free.unmap(0, me).is_none());
        // It is dead, or another life of it is there: its packets are of an earlier config.
        let without = first.exclude(3).unwrap();
        let back = without.admit(3).unwrap();
        for (node, view) in [(4, &without), (3, &back)] {
            let next = mine.map(0, node, view).unwrap();
            let row = next.get(0).unwrap();
            assert_eq!((row.config.number, row.mapped.unwrap().node), (2, node));
            assert!(next.is_consistent());
        }
        let again = mine.map(0, 3, &first).unwrap();
        assert_eq!(again.get(0).unwrap().config.number, 2);
        let gone = mine.map(0, 3, &without);
        assert_eq!(gone, Err(Unchanged::NotLive(3)));
        assert_eq!(groups.map(1, 3, &first), Err(Unchanged::NoGroup));
    }

    #[test]
    fn a_dead_member_is_replaced_by_a_live_node_in_its_present_life() {
        let first = view(0b11111);
        let groups = ledger(&first);
        assert_eq!(groups.replaceable(&first), []);
        let without = first.exclude(2).unwrap();
        assert_eq!(groups.replaceable(&without), [(0, 2, 4)]);
        let back = without.admit(2).unwrap();
        // It is another life: what it has promised is gone.
        assert_eq!(groups.replaceable(&back), [(0, 2, 2)]);
        let filling = groups.replace(0, (2, 2), &back).unwrap();
        let config = filling.get(0).unwrap().config;
        assert_eq!((config.number, config.filling()), (2, Some(1)));
        assert_eq!(config.members[1], Some(Member { node: 2, life: 2 }));
        assert!(filling.is_consistent());
        assert_eq!(filling.filled(0, (2, 1)), None, "of an earlier config");
        assert_eq!(filling.filled(0, (1, 2)), None, "which does not fill");
        let whole = filling.filled(0, (2, 2)).unwrap();
        assert_eq!(whole.get(0).unwrap().config.filling(), None);
        assert_eq!(whole.replaceable(&back), []);
        let dead = groups.replace(0, (2, 9), &back);
        assert_eq!(dead, Err(Unchanged::NotLive(9)));
        let member = groups.replace(0, (2, 3), &back);
        assert_eq!(member, Err(Unchanged::Config(Refused::Member)));
        assert_eq!(groups.replace(5, (2, 4), &back), Err(Unchanged::NoGroup));
    }

    #[test]
    fn a_member_that_dies_while_it_fills_is_replaced_before_others() {
        let first = view(0b11111);
        let groups = ledger(&first);
        let filling = groups.replace(0, (2, 4), &first).unwrap();
        let two_dead = first.exclude_all(Copyset(0b10010), false).unwrap();
        assert_eq!(filling.replaceable(&two_dead), [(0, 4, 0)]);
    }

    #[test]
    fn a_region_grows_by_live_nodes_one_at_a_time() {
        let all = view(0b11111);
        let one = Groups::default().create(("log", 0), lines(1), (&all, 3));
        let one = one.unwrap();
        assert_eq!(one.growing(&all), None);
        assert_eq!(one.grow("log", 1, &all), Err(Unchanged::Copies(1)));
        assert_eq!(one.grow("log", 4, &all), Err(Unchanged::Copies(1)));
        assert_eq!(one.grow("log", 7, &all), Err(Unchanged::Members(5)));
        assert_eq!(one.grow("ledger", 3, &all), Err(Unchanged::NoGroup));
        let grown = one.grow("log", 3, &all).unwrap();
        assert_eq!(grown.get(0).unwrap().config.number, 1);
        let mut groups = grown;
        for node in [4, 0] {
            groups = groups.growing(&all).unwrap();
            assert_eq!(groups.growing(&all), None, "one thing after the other");
            assert!(groups.is_consistent());
            let config = groups.get(0).unwrap().config;
            assert_eq!(config.node(config.filling().unwrap()), Some(node));
            groups = groups.filled(0, (node, config.number)).unwrap();
        }
        assert_eq!(groups.growing(&all), None);
        let config = groups.get(0).unwrap().config;
        assert_eq!((config.size, config.counting, config.number), (3, 7, 5));
        let more = groups.grow("log", 5, &all).unwrap();
        let more = more.growing(&all).unwrap();
        assert_eq!(more.get(0).unwrap().config.place(1), Some(3));
    }

    #[test]
    fn where_the_second_of_two_copies_dies_the_first_goes_on() {
        let all = view(0b11111);
        let groups = Groups::default().create(("log", 0), lines(1), (&all, 3));
        let groups = groups.unwrap().grow("log", 3, &all).unwrap();
        let two = groups.growing(&all).unwrap().filled(0, (4, 2)).unwrap();
        let third = two.growing(&all).unwrap();
        let without = all.exclude(4).unwrap();
        assert_eq!(third.replaceable(&without), [(0, 4, 1)]);
        let called_off = third.without(0, (4, 1), &without).unwrap();
        assert_eq!(called_off.get(0).unwrap().config.filling(), None);
        let alone = called_off.without(0, (4, 0), &without).unwrap();
        let config = alone.get(0).unwrap().config;
        assert_eq!((config.size, config.members()), (1, 1));
        assert!(alone.is_consistent());
        let again = alone.growing(&without).unwrap();
        assert_eq!(again.get(0).unwrap().config.place(0), Some(1));
        // The third one dies while it fills: another takes its place.
        let without = all.exclude(0).unwrap();
        let other = third.without(0, (0, 1), &without).unwrap();
        assert_eq!(other.get(0).unwrap().config.place(1), Some(2));
    }

    #[test]
    fn the_number_of_a_removed_region_is_used_again_under_later_configs() {
        let all = view(0b11111);
        let groups = ledger(&all);
        assert_eq!(groups.remove("log"), Err(Unchanged::NoGroup));
        let removed = groups.remove("ledger").unwrap();
        let config = removed.get(0).unwrap().config;
        assert!(config.is_removed() && removed.is_consistent());
        assert_eq!((config.number, removed.find("ledger")), (2, None));
        assert_eq!(removed.bytes_at(1), 0);
        let again = removed.replace(0, (1, 4), &all);
        assert_eq!(again, Err(Unchanged::Config(Refused::NoQuorum)));
        assert_eq!(removed.remove("ledger"), Err(Unchanged::NoGroup));
        assert_eq!(
            (removed.replaceable(&view(1)), removed.follow_switch(None)),
            (Vec::new(), None)
        );
        let next = removed.create(("ledger", 8), lines(3), (&all, 0)).unwrap();
        let (number, group) = next.find("ledger").unwrap();
        assert_eq!((number, next.rows.len(), group.element), (0, 1, 8));
        let config = group.config;
        assert_eq!((config.number, config.first, config.since), (3, 3, 3));
        assert!(next.is_consistent());
    }

    /// Handles of the removed one are left, and those of what has the number next are none of them.
    #[test]
    fn addresses_of_removed_homes_are_never_used_again() {
        let all = view(0b11111);
        let objects = |bytes| Asked {
            layout: Layout::new(64, bytes).unwrap(),
            home: Some(KeptAs::Objects),
            ..lines(3)
        };
        let blocks = |bytes| Asked {
            home: Some(KeptAs::Blocks(Survives::Rest)),
            ..objects(bytes)
        };
        let mut groups = Groups::default();
        let mut base = 0;
        for asked in [
            objects(1 << 20),
            lines(3),
            blocks(3 << 8),
            objects(1 << 43),
            blocks(1 << 44),
            lines(3),
        ] {
            groups = groups.create(("again", 0), asked, (&all, 0)).unwrap();
            let group = groups.get(0).unwrap();
            assert_eq!((groups.rows.len(), group.base), (1, base));
            assert!(group.base.is_multiple_of(SLAB) && groups.is_consistent());
            assert_eq!(group.base_of_home(), asked.home.map_or(0, |_| base));
            assert_eq!(group.unused() > base, asked.home.is_some());
            base = group.unused();
            groups = groups.remove("again").unwrap();
            assert_eq!(groups.get(0).unwrap().unused(), base);
        }
        // The home has no addresses for as much again: another number has, and lines take none.
        let next = groups.create(("again", 0), objects(1 << 44), (&all, 0));
        let next = next.unwrap();
        assert_eq!(
            next.find("again").map(|(at, it)| (at, it.base)),
            Some((1, 0))
        );
        let small = groups.create(("again", 0), objects(1 << 20), (&all, 0));
        assert_eq!(small.unwrap().find("again").map(|(at, _)| at), Some(0));
        for spoil in [1, Tag::SPACE] {
            let mut lying = next.clone();
            lying.rows[1].base = spoil;
            assert!(!lying.is_consistent());
        }
        let mut full = groups;
        while full.rows.len() < GROUPS {
            let name = alloc::format!("{}", full.rows.len());
            full = full
                .create((&name, 0), objects(1 << 44), (&all, 0))
                .unwrap();
        }
        let none = full.create(("again", 0), objects(1 << 44), (&all, 0));
        assert_eq!(none, Err(Unchanged::Full));
    }

    /// A process that is there has its store, or says itself that it has not.
    #[test]
    fn a_durable_member_is_replaced_when_its_node_is_away() {
        let first = view(0b11111);
        let what = Asked {
            durability: Durability::Sync,
            ..lines(3)
        };
        let groups = Groups::default().create(("ledger", 7), what, (&first, 1));
        let groups = groups.unwrap();
        assert!(!groups.is_consistent(), "its stores have no rack");
        let groups = groups.numbered(9).numbered(10);
        assert!(groups.is_consistent() && groups.rack == 9);
        let without = first.exclude(2).unwrap();
        assert_eq!(groups.replaceable(&without), [(0, 2, 4)]);
        let back = without.admit(2).unwrap();
        assert_eq!(groups.replaceable(&back), []);
    }

    #[test]
    fn groups_go_through_a_switch_that_is_there() {
        let first = view(0b111);
        let with = first.admit_switch().unwrap();
        let mut groups = Groups::default();
        for (name, copies) in [("one", 1), ("three", 3)] {
            let what = lines(copies);
            groups = groups.create((name, 0), what, (&with, 0)).unwrap();
        }
        assert_eq!(groups.follow_switch(with.switch), None);
        let past = groups.follow_switch(None).unwrap();
        assert_eq!(past.follow_switch(None), None);
        assert_eq!(past.get(1).unwrap().config.number, 2);
        assert_eq!(past.get(0).unwrap().config.number, 1);
    }

    #[test]
    fn a_switch_holds_lines_where_a_region_asks_and_its_lines_and_copies_allow_it() {
        let with = view(0b111).admit_switch().unwrap();
        let held = |layout, asked| Asked {
            layout,
            held: true,
            ..asked
        };
        let lines_of = |line, bytes| Layout::new(line, bytes).unwrap();
        let durable = Asked {
            durability: Durability::Sync,
            ..lines(3)
        };
        // However many lines there are: it looks up none of them.
        let asked = [
            held(lines_of(64, 1 << 30), lines(3)),
            held(lines_of(128, 1 << 20), lines(3)),
            held(lines_of(64, 640), durable),
            lines(3),
        ];
        let mut groups = Groups::default();
        for (nth, asked) in asked.into_iter().enumerate() {
            let name = alloc::format!("region {nth}");
            groups = groups.create((&name, 0), asked, (&with, 0)).unwrap();
        }
        assert!(groups.clone().numbered(7).is_consistent());
        let ways = |groups: &Groups| groups.rows.iter().map(Group::goes).collect::<Vec<_>>();
        let life = with.switch.unwrap();
        let of_others = [(true, life, false), (true, 0, false), (true, life, false)];
        assert_eq!(ways(&groups)[0], (true, life, true));
        assert_eq!(ways(&groups)[1..], of_others);
        // Without the switch it goes past it, and another life holds lines when it is named.
        let past = groups.follow_switch(None).unwrap();
        assert_eq!(ways(&past)[0], (false, 0, false));
        let again = with.exclude_switch().unwrap().admit_switch().unwrap();
        let next = past.follow_switch(again.switch).unwrap();
        assert_eq!(ways(&next)[0], (true, again.switch.unwrap(), true));
        let mut lying = groups;
        lying.rows[1].config.holds_lines = true;
        lying.rows[1].config.chooser = 0;
        assert!(!lying.is_consistent());
    }

    #[test]
    fn the_life_of_the_switch_that_is_there_chooses_stamps_where_that_gains() {
        let with = view(0b111).admit_switch().unwrap();
        let long = Layout::new(64, 64 * (LINES as u64 + 1)).unwrap();
        let asked = [
            lines(3),
            Asked {
                two_rounds: true,
                ..lines(3)
            },
            Asked {
                layout: long,
                ..lines(3)
            },
            lines(1),
        ];
        let mut groups = Groups::default();
        for (nth, asked) in asked.into_iter().enumerate() {
            let name = alloc::format!("region {nth}");
            groups = groups.create((&name, 0), asked, (&with, 0)).unwrap();
        }
        let ways = |groups: &Groups| {
            let way = |group: &Group| (group.config.through_switch, group.config.chooser);
            groups.rows.iter().map(way).collect::<Vec<_>>()
        };
        let life = with.switch.unwrap();
        assert_eq!(
            ways(&groups),
            [(true, life), (true, 0), (true, 0), (false, 0)]
        );
        // Another life has forgotten what it chose.
        let again = with.exclude_switch().unwrap().admit_switch().unwrap();
        let next = groups.follow_switch(again.switch).unwrap();
        let row = next.get(0).unwrap().config;
        assert_eq!((row.chooser, row.number), (again.switch.unwrap(), 2));
        assert_eq!(next.follow_switch(again.switch), None);
        let mut past = next;
        while let Some(next) = past.follow_switch(None) {
            past = next;
        }
        assert_eq!(ways(&past), [(false, 0); 4]);
        assert!(past.is_consistent());
    }

    #[test]
    fn groups_that_no_step_leads_to_are_told() {
        let good = ledger(&view(0b11111));
        let bad: [fn(&mut Group); 13] = [
            |g| g.name.clear(),
            |g| g.layout.line = 65,
            |g| g.layout.bytes = 100,
            |g| g.copies = 2,
            |g| g.config.number = 0,
            |g| g.config.first = 0,
            |g| g.config.first = 2,
            |g| g.config.counting = 0x0f,
            |g| g.config.counting = 1,
            |g| g.config.size = 0,
            |g| g.config.chooser = 1,
            |g| g.config.members[1] = g.config.members[0],
            |g| g.config.members[0] = Some(Member { node: 40, life: 1 }),
        ];
        for (nth, spoil) in bad.into_iter().enumerate() {
            let mut groups = good.clone();
            spoil(&mut groups.rows[0]);
            assert!(!groups.is_consistent(), "{nth}");
        }
        let mut twice = good.clone();
        twice.rows.push(good.rows[0].clone());
        twice.version = 2;
        assert!(!twice.is_consistent());
        assert!(!Groups { version: 0, ..good }.is_consistent());
    }
}
