//! Regions of a world that are removed, whose blocks groups keep, and the next ones, which have
//! their numbers: at any moment, while packets are lost and nodes die, and each node hears of it by
//! itself. What it keeps of the group's lines and what it has of the blocks change one after the
//! other, whichever is first.
//!
//! A block of a removed region is nobody's from that moment on, to the judge: what threads read and
//! write there that have not heard is promised to nobody.

use super::block;
use super::copies::{CopiesSeen, NEWS};
use super::fabric::Occurrence;
use super::membership::Change;
use super::mutation::Mutation;
use super::node::Condition;
use super::run::World;
use super::thread::Complaint;
use rackmem_proto::abd::{self, Config, Member};
use rackmem_proto::engine::KeptCopies;
use rackmem_proto::flowcc::{KeptBlocks, LocalStatus, Whereabouts};
use rackmem_proto::wire::{NodeId, Tag};

/// Until the next region has the number of a removed one, at most.
const FREE: u64 = 200_000;
/// Until a removal is tried again that has found a member filling, or too few nodes.
const AGAIN: u64 = 20_000;
/// How long it takes now and then until a node hears of a region.
const OLD_NEWS: u64 = 400_000;

/// Occasions for defects of removals to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RemovalsSeen {
    /// Regions that were removed.
    pub removed: u64,
    /// Regions that had the number of a removed one.
    pub next: u64,
    /// Dirty copies that nodes had when they heard.
    pub dirty: u64,
    /// Clean ones.
    pub clean: u64,
    /// Nodes that heard of a removal and of the next region at once.
    pub both: u64,
    /// Operations of which others said that their region is removed.
    pub refused: u64,
    /// Operations on blocks of a region that was removed, by threads that had not heard.
    pub unheard: u64,
}

impl RemovalsSeen {
    /// Adds another world's.
    pub fn add(&mut self, other: &RemovalsSeen) {
        self.removed += other.removed;
        self.next += other.next;
        self.dirty += other.dirty;
        self.clean += other.clean;
        self.both += other.both;
        self.refused += other.refused;
        self.unheard += other.unheard;
    }
}

/// When regions are removed: when so many of a thousand operations are done, and whose group.
pub fn plan(removals: u32, mut below: impl FnMut(u64) -> u64) -> Vec<(u64, u16)> {
    let mut when: Vec<_> = (0..removals)
        .map(|_| (below(700), below(u64::from(block::WRITES) + 1) as u16))
        .collect();
    when.sort_unstable();
    when
}

impl World {
    /// Removes what is due.
    pub(super) fn begin_removals(&mut self, done: u64, all: u64) {
        while let Some((when, group)) = self.removals.front().copied()
            && when * all <= done * 1000
        {
            self.removals.pop_front();
            self.change_after(0, Change::Remove(group));
        }
    }

    /// A region is removed: one step of its group.
    pub(super) fn remove_region(&mut self, group: u16) {
        let config = self.copies.configs[usize::from(group)];
        let Some(next) = config.step(abd::Change::Remove).ok() else {
            return self.change_after(AGAIN, Change::Remove(group));
        };
        if config.is_removed() {
            return self.change_after(AGAIN, Change::Remove(group));
        }
        let blocks = &mut self.copies.blocks[usize::from(group)];
        blocks.bytes = 0;
        if self.config.mutation != Some(Mutation::ReuseAddresses) {
            blocks.base += block::REGION;
        }
        let base = blocks.base;
        let gone = move |tag: Tag| tag.home().group() == Some(group) && tag.offset() < base;
        self.oracle.bury(gone);
        self.oracle.removed[usize::from(group)] = base;
        self.copies.seen.removals.removed += 1;
        self.fabric
            .tell(|| format!("the region of group {group} is removed"));
        self.agree_on_group(group, next);
        let after = self.random.below(FREE);
        self.change_after(after, Change::NextRegion(group));
    }

    /// Another region has the number.
    pub(super) fn next_region(&mut self, group: u16) {
        // A majority of the copies of each group lives at any time, also here.
        let up = |node: &NodeId| {
            let there = self.nodes[usize::from(*node)].standing == Condition::Up;
            there && !self.fabric.parted.contains(*node)
        };
        let mut live: Vec<NodeId> = self.view.live.iter().filter(up).collect();
        let copies = usize::from(self.config.copies);
        let turn = self.random.below(live.len().max(1) as u64) as usize;
        live.rotate_left(turn);
        let members = live.iter().take(copies).filter_map(|&node| {
            let life = self.view.incarnation(node)?.into();
            Some(Member { node, life })
        });
        let members: Vec<Member> = members.collect();
        let config = self.copies.configs[usize::from(group)];
        let Some(next) = config
            .again(&members)
            .ok()
            .filter(|_| members.len() == copies)
        else {
            return self.change_after(AGAIN, Change::NextRegion(group));
        };
        let blocks = &mut self.copies.blocks[usize::from(group)];
        (blocks.first, blocks.bytes) = (next.first, block::REGION);
        self.copies.seen.removals.next += 1;
        self.fabric
            .tell(|| format!("another region has group {group}"));
        self.agree_on_group(group, next);
    }

    fn agree_on_group(&mut self, group: u16, config: Config) {
        self.copies.configs[usize::from(group)] = config;
        for node in self.view.live.iter() {
            self.tell_group(node, group);
        }
    }

    /// A node hears of a group: of its lines and of its blocks.
    pub(super) fn tell_group(&mut self, node: NodeId, group: u16) {
        let (config, blocks) = (
            self.copies.configs[usize::from(group)],
            self.copies.blocks[usize::from(group)],
        );
        let mut after = || match self.random.below(8) {
            0 => self.random.below(OLD_NEWS),
            _ => self.random.below(NEWS),
        };
        let (lines, hear) = (after(), after());
        let news = Occurrence::Group(node, group, Box::new(config));
        self.fabric.schedule(lines, news);
        self.fabric
            .schedule(hear, Occurrence::Hear(node, group, blocks));
    }

    /// A node hears what the home has that a group keeps.
    pub(super) fn hear_of_region(&mut self, node: NodeId, group: u16, blocks: KeptBlocks) {
        let state = &mut self.nodes[usize::from(node)];
        let known = state.part.in_place.blocks_of(group);
        let newer = (blocks.base, blocks.first) > (known.base, known.first);
        if state.standing != Condition::Up || !newer {
            return;
        }
        let seen = &mut self.copies.seen.removals;
        if known.base < blocks.base {
            for tag in state.of_home(group) {
                let dirty = state.cache.status(tag) == LocalStatus::Modified;
                seen.dirty += u64::from(dirty);
                seen.clean += u64::from(!dirty);
            }
            seen.both += u64::from(known.bytes > 0 && blocks.bytes > 0);
        }
        self.fabric.from = node;
        self.fabric
            .tell(|| format!("node {node} hears of group {group}: {blocks:?}"));
        state.hear_of(group, blocks);
        state.follow(&mut self.fabric);
        self.look_after(node);
    }

    /// Who has heard of a removal has nothing of the region.
    pub(super) fn check_removed(&self, tag: Tag) -> Option<Complaint> {
        let up = self.nodes.iter().filter(|it| it.standing == Condition::Up);
        let mut has = up.filter(|it| it.whereabouts(tag) == Whereabouts::Gone);
        let node = has.find(|it| it.cache.copy(tag).is_some())?;
        Some(Complaint {
            promise: ("nothing of a removed region", "docs/decisions/0120"),
            tag,
            detail: format!("node {} has heard, and has a copy", node.id),
        })
    }

    /// What was seen of homes that groups keep.
    pub(super) fn copies_seen(&self) -> CopiesSeen {
        let mut all = self.copies.seen;
        for node in &self.nodes {
            all.removals.refused += node.seen.refused;
            all.removals.unheard += node.seen.unheard;
        }
        all
    }

    /// What has come home of a region of which its keeper knows that it is removed.
    pub(super) fn came_nowhere(&mut self, tag: Tag) {
        self.complaint.get_or_insert(Complaint {
            promise: ("nothing of a removed region", "docs/decisions/0120"),
            tag,
            detail: "bytes of it are put in place at home".into(),
        });
    }
}
