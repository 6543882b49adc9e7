//! Who belongs to a world's rack: what breaks, who notices, and who is told when.
//!
//! The views are those that members of a real rack agree on; how they agree is not played here.
//! A node that is cut off stops when its lease is over, and is excluded only after that.

use super::block;
use super::fabric::Occurrence;
use super::failures::{Failure, Planned};
use super::mutation::Mutation;
use super::node::Condition;
use super::run::World;
use super::thread::Thread;
use rackmem_proto::membership::View;
use rackmem_proto::switch::SWITCH;
use rackmem_proto::wire::{Copyset, NodeId};

/// How long a node serves without having been heard of, in nanoseconds.
const LEASE: u64 = 150_000;
/// How much longer it takes until it is excluded, at most.
const NOTICE: u64 = 150_000;
/// How long it takes until a member knows of a view, mostly.
const NEWS: u64 = 60_000;
/// And sometimes.
const OLD_NEWS: u64 = 400_000;

/// Something that happens to the rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A failure of the plan.
    Break(Planned),
    /// These nodes' leases are over, if they are still cut off.
    Fence(Copyset, Planned),
    /// Whoever is dead is excluded.
    Exclude(Planned),
    /// This node starts again.
    AdmitNode(NodeId),
    /// Another switch is there.
    AdmitSwitch,
    /// The network is whole again.
    Heal,
    /// The slow node is slow no more.
    Hasten,
    /// The region of this group is removed.
    Remove(u16),
    /// Another one has its number.
    NextRegion(u16),
}

/// What has happened to a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Broken {
    /// Switches that died.
    pub switches: u64,
    /// Nodes that died.
    pub nodes: u64,
    /// Of these, those with the shadow.
    pub shadows: u64,
    /// Nodes that left as they should.
    pub left: u64,
    /// Times the network fell apart.
    pub partitions: u64,
    /// Nodes that were fenced.
    pub fenced: u64,
    /// Nodes that were slow for a while.
    pub slow: u64,
    /// Nodes that were stopped for a while.
    pub stopped: u64,
    /// Nodes whose keepers were late for a while.
    pub starved: u64,
    /// Nodes that the others excluded for their silence.
    pub excluded: u64,
    /// Leases that were over, and came back.
    pub regained: u64,
}

/// A view as a line of a story.
pub(super) fn described(view: &View) -> String {
    let switch = match view.switch {
        Some(incarnation) => format!("switch {incarnation}"),
        None => "no switch".to_owned(),
    };
    let shadow = match view.shadow {
        Some(node) => format!("shadow on node {node}"),
        None => "no shadow".to_owned(),
    };
    let View {
        version,
        epoch,
        live,
        ..
    } = view;
    format!(
        "view {version}, epoch {epoch}: nodes {:b}, {switch}, {shadow}",
        live.0
    )
}

impl World {
    pub(super) fn change_after(&mut self, after: u64, change: Change) {
        self.changes += 1;
        self.fabric.schedule(after, Occurrence::Change(change));
    }

    pub(super) fn change(&mut self, change: Change) {
        self.changes -= 1;
        match change {
            Change::Break(planned) => self.break_down(planned),
            Change::Fence(nodes, planned) => self.fence(nodes, planned),
            Change::Exclude(planned) => self.exclude(planned),
            Change::AdmitNode(node) => self.admit(node),
            Change::AdmitSwitch => self.admit_switch(),
            Change::Remove(group) => self.remove_region(group),
            Change::NextRegion(group) => self.next_region(group),
            Change::Heal => {
                self.fabric.parted = Copyset::EMPTY;
                self.fabric.tell(|| "the network is whole again".into());
            }
            Change::Hasten => {
                self.fabric.slow = None;
                self.fabric.tell(|| "nobody is slow any more".into());
            }
        }
    }

    fn up(&self) -> Copyset {
        let up = self.nodes.iter().filter(|n| n.standing == Condition::Up);
        up.fold(Copyset::EMPTY, |set, node| set.with(node.id))
    }

    fn break_down(&mut self, planned: Planned) {
        let up = self.up();
        let Planned { number, what, .. } = planned;
        self.fabric
            .tell(|| format!("failure {number} is due: {what:?}"));
        match planned.what {
            Failure::Switch => {
                if self.switch.is_some() {
                    self.note_switch_death();
                    self.switch = None;
                    self.fabric.tell(|| "the switch dies".into());
                    self.broken.switches += 1;
                    self.notice(planned);
                }
            }
            Failure::Shadow => {
                if let Some(shadow) = self.view.shadow.filter(|&node| up.contains(node)) {
                    self.kill(shadow, planned);
                }
            }
            Failure::Node(node) => self.kill(node, planned),
            Failure::Leave(node) => {
                if up.contains(node) && up.len() > 2 && self.leaving.is_none() {
                    self.leaving = Some((node, planned, false));
                    self.lockers_retire(node, true);
                    for thread in self.threads_of(node) {
                        self.kept.push((thread, self.threads[thread].retire()));
                    }
                }
            }
            Failure::Partition(nodes) => {
                let cut = Copyset(up.0 & nodes.0);
                if self.are_spare(nodes)
                    && up.len() > 2 * cut.len()
                    && self.fabric.parted.is_empty()
                    && !cut.is_empty()
                {
                    self.broken.partitions += 1;
                    self.fabric.parted = nodes;
                    self.fabric
                        .tell(|| format!("nodes {:b} are cut off", nodes.0));
                    // Every other time it is over before anyone is excluded.
                    if self.random.below(2) == 0 {
                        self.change_after(LEASE, Change::Fence(nodes, planned));
                        let over = LEASE + NOTICE + planned.lasts;
                        self.change_after(over, Change::Heal);
                    } else {
                        self.change_after(LEASE - 10_000, Change::Heal);
                    }
                }
            }
            Failure::Stop(_) | Failure::Starve(_) => self.hold_back(planned),
            Failure::Slow(node, factor) => {
                self.broken.slow += 1;
                self.fabric.slow = Some((node, factor));
                self.change_after(planned.lasts, Change::Hasten);
            }
        }
    }

    pub(super) fn threads_of(&self, node: NodeId) -> std::ops::Range<usize> {
        let per_node = usize::from(self.config.threads);
        let first = usize::from(node) * per_node;
        first..first + per_node
    }

    pub(super) fn stop(&mut self, node: NodeId, standing: Condition) {
        let left =
            self.leaving.is_some_and(|leaving| leaving.0 == node) && standing == Condition::Left;
        if self.leaving.is_some_and(|leaving| leaving.0 == node) {
            self.stay();
        }
        self.lockers_die(node, standing);
        self.doubt_blocks(node);
        if !left {
            self.died = self.died.with(node);
        }
        self.nodes[usize::from(node)].standing = standing;
        self.fabric
            .tell(|| format!("node {node} stops: {standing:?}"));
        for thread in self.threads_of(node) {
            self.threads[thread].die(&mut self.oracle);
        }
    }

    fn kill(&mut self, node: NodeId, planned: Planned) {
        let up = self.up();
        if !up.contains(node) || up.len() <= 2 || !self.are_spare(Copyset::of(node)) {
            return;
        }
        self.broken.nodes += 1;
        self.broken.shadows += u64::from(self.view.shadow == Some(node));
        self.stop(node, Condition::Down);
        self.notice(planned);
    }

    fn notice(&mut self, planned: Planned) {
        let after = 20_000 + self.random.below(NOTICE);
        self.change_after(after, Change::Exclude(planned));
    }

    fn fence(&mut self, nodes: Copyset, planned: Planned) {
        let fenced = Copyset(nodes.0 & self.up().0);
        self.fabric
            .tell(|| format!("the leases of nodes {:b} are over", fenced.0));
        for node in fenced.iter() {
            self.broken.fenced += 1;
            if self.config.mutation == Some(super::Mutation::ServeFenced) {
                self.nodes[usize::from(node)].standing = Condition::Fenced;
            } else {
                self.stop(node, Condition::Fenced);
            }
        }
        if !fenced.is_empty() {
            self.notice(planned);
        }
    }

    fn exclude(&mut self, planned: Planned) {
        let dead = Copyset(self.view.live.0 & !self.up().0);
        let switch = self.view.switch.is_some() && self.switch.is_none();
        if let Some(view) = self.view.exclude_all(dead, switch) {
            for node in dead.iter() {
                let after = planned.lasts + self.random.below(NOTICE);
                self.change_after(after, Change::AdmitNode(node));
            }
            if switch {
                self.change_after(planned.lasts, Change::AdmitSwitch);
            }
            self.agree(view);
        }
    }

    /// Everyone who takes part learns of it, each at its own time.
    fn agree(&mut self, view: View) {
        self.view = view;
        self.fabric.tell(|| described(&view));
        let up = Copyset(self.up().0 & view.live.0);
        let switch = self.switch.as_ref().map(|_| SWITCH);
        for member in up.iter().chain(switch) {
            let slow = self.random.below(8) == 0;
            let mut after = self.random.below(if slow { OLD_NEWS } else { NEWS });
            if let Some((node, factor)) = self.fabric.slow
                && node == member
            {
                after *= factor;
            }
            self.fabric
                .schedule(after, Occurrence::Learn(member, Box::new(view)));
        }
    }

    pub(super) fn learn(&mut self, member: NodeId, view: &View) {
        self.fabric.from = member;
        if member == SWITCH {
            if let Some(switch) = &mut self.switch {
                switch.learn(view, &mut self.fabric);
            }
            return;
        }
        let threads = self.threads_of(member);
        let node = &mut self.nodes[usize::from(member)];
        if node.standing != Condition::Up {
            return;
        }
        let was_in_service = node.in_service();
        let (fabric, oracle) = (&mut self.fabric, &mut self.oracle);
        let threads = &mut self.threads[threads];
        if node.learn(view, threads, fabric, oracle) {
            self.note_epoch(member, was_in_service);
            self.look_after(member);
        } else {
            threads
                .iter_mut()
                .for_each(|thread| thread.look_around(node, fabric));
        }
    }

    fn admit(&mut self, node: NodeId) {
        // Who comes back begins an epoch, whatever the last one still waits for. One that has left
        // does not help the others out of that.
        let left = self.nodes[usize::from(node)].standing == Condition::Left;
        if self.fabric.parted.contains(node) || left && !self.stable() {
            return self.change_after(NOTICE, Change::AdmitNode(node));
        }
        let Some(view) = self.view.admit(node) else {
            return;
        };
        let at = usize::from(node);
        let incarnation = view.incarnations[at];
        self.oracle
            .bury(|tag| tag.home().is_of(node) && block::incarnation(tag) < incarnation);
        let fresh = World::node(node, &self.config, &view, self.view, self.draw);
        let retired = std::mem::replace(&mut self.nodes[at], fresh);
        self.past.add_node(&retired);
        let switch = view.switch.is_some();
        for thread in self.threads_of(node) {
            let fabric = &mut self.fabric;
            self.threads[thread].born_again(view.epoch, incarnation, switch, fabric);
        }
        self.lockers_born(node);
        self.learn(node, &view);
        self.tell_groups(node);
        self.agree(view);
    }

    fn admit_switch(&mut self) {
        let (Some(view), Some(config)) = (self.view.admit_switch(), self.switch_config()) else {
            return;
        };
        // It comes from the epoch before, as in the library, and has nothing of it.
        let mutation = self.config.mutation;
        let mut switch = super::switch_host::SwitchHost::new(config, &self.view, mutation);
        self.fabric.from = SWITCH;
        switch.learn(&view, &mut self.fabric);
        self.switch = Some(switch);
        self.agree(view);
    }

    /// A node that is leaving goes as far as it can.
    pub(super) fn go_on_leaving(&mut self) {
        let Some((node, planned, flushing)) = self.leaving else {
            return;
        };
        let threads = self.threads_of(node);
        let at = usize::from(node);
        let idle = self.threads[threads.clone()].iter().all(Thread::idle);
        if !idle || !self.nodes[at].recovery.all_told() {
            return;
        }
        let empty = self.nodes[at].cache.tags().next().is_none();
        if flushing && empty && self.nodes[at].copies.given().next().is_some() {
            self.threads[threads.start].sound();
            return self.fabric.wake(threads.start, 0);
        }
        if !flushing || !empty {
            self.leaving = Some((node, planned, true));
            self.threads[threads.start].flush();
            return self.fabric.wake(threads.start, 0);
        }
        if !self.lockers_left(node) || !self.are_spare(Copyset::of(node)) {
            return;
        }
        // It may not have heard of the newest.
        let settled = match self.config.mutation {
            Some(Mutation::LeaveAnyEpoch) => self.view.epoch,
            _ => self.nodes[at].view.epoch,
        };
        if let Some(view) = self.view.leave(node, settled) {
            self.broken.left += 1;
            self.stop(node, Condition::Left);
            let after = planned.lasts + self.random.below(NOTICE);
            self.change_after(after, Change::AdmitNode(node));
            self.agree(view);
        }
    }

    /// Nobody is leaving any more: the threads that were to stop get their work back.
    fn stay(&mut self) {
        if let Some((node, ..)) = self.leaving.take() {
            self.lockers_retire(node, false);
        }
        for (thread, left) in std::mem::take(&mut self.kept) {
            self.threads[thread].resume(left, &mut self.fabric);
        }
    }

    /// Whether everyone is in the newest epoch and serves.
    pub(super) fn stable(&self) -> bool {
        let epoch = self.view.epoch;
        let switch = match (&self.switch, self.view.switch) {
            (Some(switch), Some(_)) => switch.serves(epoch),
            (None, None) => true,
            _ => false,
        };
        switch
            && self.view.live.iter().all(|node| {
                let node = &self.nodes[usize::from(node)];
                node.standing == Condition::Up && node.view.epoch == epoch && node.in_service()
            })
    }
}
