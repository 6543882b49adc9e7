//! Groups that keep blocks of a world: who has their copies, and what becomes of blocks when nodes
//! die. How the rack agrees on members of groups is not played here, as for its own.
//!
//! A majority of each group lives at any time, or nobody could go on; everybody else may die, the
//! rack's keeper too. A block that only a dead node's cache had goes on as it was at home, in
//! silence: the judge knows which these are, and what was home by then.

use super::block::{self, COUNTERS, counters};
use super::config::Config as WorldConfig;
use super::fabric::Occurrence;
use super::node::{Condition, WorldNode};
use super::removals::RemovalsSeen;
use super::run::World;
use super::thread::Complaint;
use crate::site::Came;
use rackmem_proto::abd::{Change, Config, Layout, MEMBERS, Member, Replica};
use rackmem_proto::flowcc::{KeptBlocks, LocalStatus};
use rackmem_proto::wire::{Copyset, NodeId, Tag};

/// How long it takes until a node knows of a config, at most.
pub(super) const NEWS: u64 = 60_000;
/// Groups of a world with copies.
const GROUPS: u16 = block::WRITES + 1;

/// Occasions for defects to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CopiesSeen {
    /// Blocks that a keeper has put in place.
    pub placed: u64,
    /// Blocks that came home, to a majority.
    pub came_home: u64,
    /// Turns of packets that have begun while another one was under way at the same keeper.
    pub side_by_side: u64,
    /// Keepers that died.
    pub keepers_died: u64,
    /// Members that were replaced.
    pub replaced: u64,
    /// Blocks that went on as they were at home, since a node had died with what was newer.
    pub reverted: u64,
    /// Of these, blocks whose writes survive: what was newer had not been told.
    pub untold: u64,
    /// Of regions that are removed.
    pub removals: RemovalsSeen,
}

impl CopiesSeen {
    /// Adds another world's.
    pub fn add(&mut self, other: &CopiesSeen) {
        self.placed += other.placed;
        self.came_home += other.came_home;
        self.side_by_side += other.side_by_side;
        self.keepers_died += other.keepers_died;
        self.replaced += other.replaced;
        self.reverted += other.reverted;
        self.untold += other.untold;
        self.removals.add(&other.removals);
    }
}

/// The groups of a world.
pub struct Copies {
    pub(super) configs: Vec<Config>,
    /// What the home of each has.
    pub(super) blocks: Vec<KeptBlocks>,
    whole: bool,
    pub seen: CopiesSeen,
}

impl Copies {
    pub fn new(config: &WorldConfig) -> Self {
        let (copies, nodes) = (u16::from(config.copies), config.nodes);
        let first = |group: u16| {
            // Of one the first nodes, of the other the last.
            let from = if group == 0 {
                0
            } else {
                nodes.saturating_sub(copies)
            };
            let members = (from..from + copies).map(|node| Member { node, life: 1 });
            Config::first(&members.collect::<Vec<_>>()).ok()
        };
        Copies {
            configs: (0..GROUPS).filter_map(first).collect(),
            blocks: vec![KeptBlocks::of_bytes(block::REGION); GROUPS.into()],
            whole: true,
            seen: CopiesSeen::default(),
        }
    }

    /// Whether every group has all its copies.
    pub fn are_whole(&self) -> bool {
        self.whole
    }
}

impl World {
    pub(super) fn start_groups(&mut self) {
        for node in 0..self.nodes.len() {
            for group in 0..self.copies.configs.len() {
                let (config, blocks) = (self.copies.configs[group], self.copies.blocks[group]);
                self.learn_group(node as NodeId, group as u16, &config);
                self.hear_of_region(node as NodeId, group as u16, blocks);
            }
        }
    }

    /// A node hears of all groups.
    pub(super) fn tell_groups(&mut self, node: NodeId) {
        for group in 0..self.copies.configs.len() {
            if self.config.removals > 0 {
                self.tell_group(node, group as u16);
                continue;
            }
            let (config, after) = (self.copies.configs[group], self.random.below(NEWS));
            let news = Occurrence::Group(node, group as u16, Box::new(config));
            self.fabric.schedule(after, news);
            let news = Occurrence::Hear(node, group as u16, self.copies.blocks[group]);
            self.fabric.schedule(after, news);
        }
    }

    /// A node knows of a config.
    pub(super) fn learn_group(&mut self, node: NodeId, group: u16, config: &Config) {
        let at = usize::from(node);
        if self.nodes[at].standing != Condition::Up {
            return;
        }
        self.fabric.from = node;
        let state = &mut self.nodes[at];
        let life = state.view.incarnations[at].into();
        let (member, blocks) = (Member { node, life }, u64::from(block::KEPT));
        // Old news: copies of a removed region would begin again.
        let known = state.part.memory.abd.config(group);
        if known.is_some_and(|known| known.number > config.number) {
            return;
        }
        let Some(layout) = Layout::new(block::LINE, blocks * u64::from(block::LINE)) else {
            return;
        };
        state.part.memory.lines.lay_out(group, layout);
        state.part.act(|abd, fx| {
            abd.fence_by_epochs(group);
            abd.end_removed(group, config, fx);
            if config.role(member).is_some() && abd.life(group) != Some(life) {
                abd.keep(group, life, Replica::new(false));
            }
            abd.learn(group, layout, config, fx);
        });
        state.carry_out();
        state.follow(&mut self.fabric);
    }

    /// The places of a group's members that keep its copies and can be reached, without some nodes.
    fn there(&self, group: u16, without: Copyset) -> u8 {
        let config = &self.copies.configs[usize::from(group)];
        let there = |place: &usize| {
            let Some(Member { node, life }) = config.members[*place] else {
                return false;
            };
            let state = &self.nodes[usize::from(node)];
            // One that has not heard keeps copies of a removed region.
            let known = state.part.memory.abd.config(group);
            let of_it = known.is_some_and(|known| known.first == config.first);
            let away = !of_it || without.contains(node) || self.fabric.parted.contains(node);
            !away
                && state.standing == Condition::Up
                && state.part.memory.abd.life(group) == Some(life)
                && config.counting >> place & 1 == 1
        };
        let there = (0..MEMBERS).filter(there);
        there.fold(0, |set, place| set | 1 << place)
    }

    /// Whether these nodes may die: a majority of the copies of each group is elsewhere.
    pub(super) fn are_spare(&self, nodes: Copyset) -> bool {
        let configs = (0..).zip(&self.copies.configs);
        configs.into_iter().all(|(group, config)| {
            config.is_removed() || config.is_quorum(self.there(group, nodes))
        })
    }

    /// The members of groups change, as nodes die and come back.
    pub(super) fn look_after_groups(&mut self, node: NodeId) {
        if self.copies.configs.is_empty() || self.view.keeper() != Some(node) {
            return;
        }
        self.copies.whole = true;
        for group in 0..GROUPS {
            if let Some(change) = self.next_change(group) {
                self.copies.whole = false;
                if self.random.below(3) == 0 {
                    self.change_group(group, change);
                }
            }
            let config = &self.copies.configs[usize::from(group)];
            self.copies.whole &= config.filling().is_none();
        }
    }

    fn next_change(&self, group: u16) -> Option<Change> {
        let config = &self.copies.configs[usize::from(group)];
        if config.is_removed() {
            return None;
        }
        let lives = |member: &Member| {
            let incarnation = self.view.incarnation(member.node).map(u64::from);
            incarnation == Some(member.life)
        };
        let filling = config.filling().and_then(|place| config.members[place]);
        let mut members = config.members.iter().flatten();
        let dead = match filling {
            Some(member) if lives(&member) => {
                let abd = &self.nodes[usize::from(member.node)].part.memory.abd;
                let knows = abd.config(group).map(|known| known.number) == Some(config.number);
                let whole = abd.fill(group).is_some_and(|fill| fill.is_whole());
                return (knows && whole).then_some(Change::Filled(member.node));
            }
            Some(member) => member,
            None => *members.find(|member| !lives(member))?,
        };
        let free = |node: &NodeId| *node == dead.node || config.place(*node).is_none();
        let live = self.view.live.iter().filter(free);
        // The nodes that were never members come first, so that copies move.
        let node = live.last()?;
        let life = self.view.incarnation(node)?.into();
        Some(Change::Replace(dead.node, Member { node, life }))
    }

    fn change_group(&mut self, group: u16, change: Change) {
        let config = &mut self.copies.configs[usize::from(group)];
        let Ok(next) = config.step(change) else {
            return;
        };
        *config = next;
        self.copies.seen.replaced += u64::from(matches!(change, Change::Filled(_)));
        self.fabric
            .tell(|| format!("group {group}: {change:?}, config {}", next.number));
        for node in self.view.live.iter() {
            let after = self.random.below(NEWS);
            let news = Occurrence::Group(node, group, Box::new(next));
            self.fabric.schedule(after, news);
        }
    }

    /// A node dies: what only its cache may have, nobody will.
    pub(super) fn doubt_blocks(&mut self, node: NodeId) {
        if self.copies.configs.is_empty() {
            return;
        }
        self.copies.seen.keepers_died += u64::from(self.view.keeper() == Some(node));
        let state = &self.nodes[usize::from(node)];
        let modified = |tag: &Tag| state.cache.status(*tag) == LocalStatus::Modified;
        let cached = state.cache.tags().filter(modified);
        let given = state.copies.given().map(|(_, _, tag)| tag);
        let events = self.threads[self.threads_of(node)].iter();
        let events = events.flat_map(|thread| thread.about_blocks());
        let all = cached.chain(given).chain(state.cache.downgraded());
        for tag in all.chain(events).filter(|tag| !tag.home().is_own()) {
            self.oracle.doubt(tag);
        }
    }

    /// What a keeper has found of blocks, and what has come home.
    pub(super) fn hear_of_blocks(&mut self, id: NodeId) {
        let at = usize::from(id);
        let part = &mut self.nodes[at].part;
        self.copies.seen.side_by_side += std::mem::take(&mut part.side_by_side);
        for (tag, came, words) in std::mem::take(&mut part.news) {
            let seen = &mut self.copies.seen;
            seen.placed += u64::from(came == Came::Placed);
            seen.came_home += u64::from(came == Came::Home);
            if self.nodes[at].standing != Condition::Up || self.oracle.is_removed(tag) {
                continue;
            }
            let action = match came {
                Came::Placed => "put in place",
                Came::Rescued => "rescued, to a majority",
                Came::Home => "home, with a majority",
            };
            self.fabric.note(id, tag, action);
            match (self.oracle.agrees(tag, &words), came) {
                (true, Came::Placed) => {}
                (true, _) => self.oracle.came_home(tag),
                // A late copy of what came home before.
                (false, Came::Home) => {}
                (false, _) if self.is_elsewhere(tag) => {}
                (false, _) => self.reverted(tag, &words),
            }
        }
    }

    /// Whether a live node has what a block must hold.
    fn is_elsewhere(&mut self, tag: Tag) -> bool {
        let per_node = usize::from(self.config.threads);
        let up = |node: &WorldNode| node.standing == Condition::Up;
        let mut copies = self.nodes.iter().filter(|node| up(node));
        let cached = copies.any(|node| {
            let copy = node.cache.copy(tag);
            copy.is_some_and(|(_, words)| self.oracle.agrees(tag, words))
        });
        let moves = |thread: &usize| self.threads[*thread].moving() == Some(tag);
        let nodes = (0..self.threads.len())
            .filter(moves)
            .map(|thread| thread / per_node);
        let nodes: Vec<usize> = nodes.filter(|node| up(&self.nodes[*node])).collect();
        cached
            || nodes.into_iter().any(|node| {
                let words = self.nodes[node].cache.words(tag);
                self.oracle.agrees(tag, words)
            })
    }

    /// A block goes on as it was at home, since nobody has anything newer.
    fn reverted(&mut self, tag: Tag, words: &[u64]) {
        let (found, expected) = (counters(words), self.oracle.expected(tag));
        let floor = self.oracle.floor(tag);
        let between = (0..COUNTERS).all(|at| floor[at] <= found[at] && found[at] <= expected[at]);
        if !between || !self.oracle.is_doubtful(tag) {
            self.complaint.get_or_insert(Complaint {
                promise: ("what is home stays, and what the living have", "§5.4"),
                tag,
                detail: format!(
                    "the keeper goes on with {found:?}; home was {floor:?}, the last content is \
                     {expected:?}, and a node that may have had it alone has died: {}",
                    self.oracle.is_doubtful(tag)
                ),
            });
        }
        self.copies.seen.reverted += 1;
        self.copies.seen.untold += u64::from(self.config.survives(tag));
        self.oracle.accept_loss(tag, words);
        let now = self.fabric.now;
        self.record.begin_generation(&self.oracle, tag, now);
    }

    /// Whether what any majority of a block's group may find is what it must hold. A member that
    /// has something newer than a majority may be asked or not.
    pub(super) fn is_with_majority(&self, tag: Tag) -> bool {
        let (Some(group), Some(line)) = (tag.home().group(), block::line(tag)) else {
            return true;
        };
        let config = &self.copies.configs[usize::from(group)];
        let there = self.there(group, Copyset::EMPTY);
        let mut found: Vec<(_, [u64; COUNTERS])> = Vec::new();
        for place in (0..MEMBERS).filter(|place| there >> place & 1 == 1) {
            let Some(member) = config.members[place] else {
                continue;
            };
            let memory = &self.nodes[usize::from(member.node)].part.memory;
            let replica = memory.abd.replica(group);
            let stamp = replica
                .map(|replica| replica.stamp(line))
                .unwrap_or_default();
            let words = memory.lines.line(line).map(block::of_line);
            found.push((stamp, words.map_or([0; COUNTERS], |words| counters(&words))));
        }
        found.sort_unstable_by_key(|(stamp, _)| *stamp);
        let Some((least, _)) = found.get(config.quorum() as usize - 1).copied() else {
            return true;
        };
        let expected = self.oracle.expected(tag);
        let mut may_find = found.iter().filter(|(stamp, _)| *stamp >= least);
        may_find.all(|(_, found)| *found == expected)
    }

    /// Whether no packet waits for a majority anywhere.
    pub(super) fn kept_idle(&self) -> bool {
        let up = self
            .nodes
            .iter()
            .filter(|node| node.standing == Condition::Up);
        up.into_iter().all(|node| node.part.is_idle())
    }
}
