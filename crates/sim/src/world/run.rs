//! Putting a world together, and letting it run.

use super::block;
use super::config::{Config, Owners};
use super::copies::{Copies, CopiesSeen};
use super::fabric::{Fabric, Occurrence, Traffic, WorldPacket};
use super::failures::{self, Planned};
use super::keeping::Keeping;
use super::locks::{LockSeen, Locking};
use super::membership::{Broken, Change};
use super::mutation::Mutation;
use super::node::WorldNode;
use super::oracle::Oracle;
use super::random::Random;
use super::record::Record;
use super::removals;
use super::scene::Watcher;
use super::switch_host::SwitchHost;
use super::thread::{Around, Complaint, Thread, Work};
use super::violation::Violation;
use crate::invariants::liveness;
use crate::site::{Cache, Copied, Site};
use rackmem_proto::flowcc::{HomeAgent, HomeConfig, HomeCounters, Migration, ShadowConfig};
use rackmem_proto::membership::View;
use rackmem_proto::switch::{SWITCH, SwitchConfig};
use rackmem_proto::wire::{Copyset, Dest, Header, Kind, NodeId, RequesterId, Tag};
use std::collections::VecDeque;
use std::ops::Add;

/// How often agents look after what they have not had answered, in nanoseconds.
const TICK: u64 = 40_000;
/// Faults last no longer than this, even if they keep threads from working: 100 ms.
const FAULTS_END: u64 = 100_000_000;

/// Records that go into a packet: few, so that lists come in parts.
pub(super) const FIT: usize = 3;
/// Blocks whose heat an agent counts, and those that it reports of a period.
const TRACKED: u32 = 16;
const REPORTED: usize = 8;
/// Shards of a home: as many as the smallest machine with several cores has.
const SHARDS: u32 = 2;

/// What a run came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// What threads did.
    pub work: Work,
    /// What the network did.
    pub traffic: Traffic,
    /// What broke.
    pub broken: Broken,
    /// What else was seen, so that nothing passes for want of an occasion.
    pub seen: Seen,
    /// What was seen of locks.
    pub locks: LockSeen,
    /// What was seen of blocks that groups keep.
    pub copies: CopiesSeen,
    /// Virtual time in nanoseconds.
    pub time: u64,
    /// Hash of everything that happened, in order.
    pub trace: u64,
}

/// Occasions for defects to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// Entries that moved to the switch.
    pub migrated: u64,
    /// Entries that the switch had no room for.
    pub collided: u64,
    /// Entries that came back from the switch.
    pub returned: u64,
    /// Entries that the shadow sent away for a hotter one.
    pub displaced: u64,
    /// Requests that found the entry locked.
    pub locked: u64,
    /// Requests that the check table refused.
    pub invalid: u64,
    /// Packets that requesters sent again.
    pub retransmissions: u64,
    /// Answers from retained data.
    pub recalled: u64,
    /// Times a home made its entries anew.
    pub rebuilds: u64,
    /// Blocks sent home in a rebuild because home might not have them.
    pub rescued: u64,
    /// Blocks whose only current copy died.
    pub lost: u64,
    /// Blocks that home had and were said to be lost all the same, because nobody was left who
    /// knew.
    pub doubted: u64,
    /// Operations in the history that was checked.
    pub recorded: u64,
    /// Times that one operation was refused after everything had calmed down, at most.
    pub worst: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Working,
    Flushing,
}

/// A rack, its network and its threads.
pub struct World {
    pub(super) seed: u64,
    pub(super) config: Config,
    pub(super) fabric: Fabric,
    pub(super) switch: Option<SwitchHost>,
    pub(super) nodes: Vec<WorldNode>,
    pub(super) threads: Vec<Thread>,
    pub(super) oracle: Oracle,
    pub(super) record: Record,
    /// What the rack has agreed on last.
    pub(super) view: View,
    pub(super) random: Random,
    pub(super) draw: u32,
    /// The rack's locks, as threads enter them.
    pub(super) locking: Locking,
    /// The members' keepers, where they decide who is excluded.
    pub(super) keeping: Option<Keeping>,
    /// The groups that keep blocks, where there are any.
    pub(super) copies: Copies,
    /// Regions that are to be removed.
    pub(super) removals: VecDeque<(u64, u16)>,
    /// Changes of the rack that are still to come.
    pub(super) changes: u32,
    pub(super) broken: Broken,
    /// Nodes that have ever died.
    pub(super) died: Copyset,
    /// The node that is leaving, and whether it empties its cache already.
    pub(super) leaving: Option<(NodeId, Planned, bool)>,
    /// What its threads had left to do.
    pub(super) kept: Vec<(usize, u32)>,
    /// What nodes have seen that are no more.
    pub(super) past: Seen,
    pub(super) complaint: Option<Complaint>,
    pub(super) was_stable: bool,
    plan: VecDeque<Planned>,
    phase: Phase,
    pub(super) calm: Option<u64>,
}

impl Seen {
    /// Adds what a node has seen.
    pub(super) fn add_node(&mut self, node: &WorldNode) {
        let counters = node.agents().map(HomeAgent::counters);
        let counters = counters.fold(HomeCounters::default(), Add::add);
        self.migrated += counters.migrated;
        self.collided += counters.collided;
        self.returned += counters.returned;
        self.displaced += node
            .migrating
            .as_ref()
            .and_then(|migrating| migrating.counters())
            .map_or(0, |s| s.0.displaced);
        self.locked += counters.locked;
        self.invalid += counters.invalid;
        self.recalled += node.seen.recalled;
        self.rebuilds += node.seen.rebuilds;
        self.rescued += node.seen.rescued;
    }
}

impl World {
    /// Runs a world until all its work is done and checked.
    pub fn run(seed: u64, config: &Config) -> Result<Report, Box<Violation>> {
        World::play(seed, config, None)
    }

    /// The same, for somebody who follows it.
    pub fn watch(seed: u64, config: &Config, watcher: Watcher) -> Result<Report, Box<Violation>> {
        World::play(seed, config, Some(watcher))
    }

    fn play(
        seed: u64,
        config: &Config,
        watcher: Option<Watcher>,
    ) -> Result<Report, Box<Violation>> {
        let mut world = World::new(seed, config, watcher);
        world.start();
        while let Some(what) = world.fabric.next() {
            world.happen(what);
            world.check()?;
            if world.turn_page()? {
                break;
            }
        }
        Ok(world.report())
    }

    pub(super) fn new(seed: u64, config: &Config, watcher: Option<Watcher>) -> Self {
        let mut random = Random::new(seed);
        let draw = random.draw() as u32;
        let threads = usize::from(config.nodes) * usize::from(config.threads);
        let all = (0..config.nodes).fold(Copyset::EMPTY, Copyset::with);
        let view = View::first(all, config.has_switch());
        let mut plan_random = Random::new(seed ^ 0x5eed_fa11);
        let mut removing = Random::new(seed ^ 0x5eed_90e5);
        let mut world = World {
            seed,
            config: *config,
            nodes: (0..config.nodes)
                .map(|node| World::node(node, config, &view, view, draw))
                .collect(),
            threads: (0..threads)
                .map(|index| {
                    let first = (view.epoch, 1, config.has_switch());
                    Thread::new(index, config, random.fork(), first)
                })
                .collect(),
            fabric: Fabric::new(random.fork(), config, watcher),
            switch: None,
            oracle: Oracle::default(),
            record: Record::new(config.history),
            view,
            draw,
            locking: Locking::new(seed, config),
            keeping: config.has_keepers().then(|| Keeping::new(&view)),
            copies: Copies::new(config),
            removals: removals::plan(config.removals, |n| removing.below(n)).into(),
            changes: 0,
            broken: Broken::default(),
            died: Copyset::EMPTY,
            leaving: None,
            kept: Vec::new(),
            past: Seen::default(),
            complaint: None,
            was_stable: true,
            plan: failures::plan(config, &mut plan_random).into(),
            random: plan_random,
            phase: Phase::Working,
            calm: None,
        };
        let mutation = config.mutation;
        world.switch = world
            .switch_config()
            .map(|config| SwitchHost::new(config, &view, mutation));
        world
    }

    pub(super) fn switch_config(&self) -> Option<SwitchConfig> {
        match self.config.rack {
            Owners::Switch { ways, sets } => Some(SwitchConfig {
                epoch: self.view.epoch,
                ways,
                sets,
                seed: self.draw,
                shadow: self.view.shadow,
                ..SwitchConfig::default()
            }),
            Owners::HomeOnly | Owners::Gather => None,
        }
    }

    /// A node that starts with `view`, and knows of the one before.
    pub(super) fn node(
        id: NodeId,
        config: &Config,
        view: &View,
        before: View,
        draw: u32,
    ) -> WorldNode {
        let forgets = config.mutation == Some(Mutation::ForgetIncarnation);
        let incarnation = view.incarnations[usize::from(id)];
        let home = HomeConfig {
            node: id,
            epoch: view.epoch,
            block: block::BLOCK_BYTES,
            chunks: crate::world::CHUNKS,
            incarnation: if forgets { 1 } else { incarnation },
            seed: draw,
            migration: config.has_switch().then_some(Migration {
                top: 4,
                least: 1,
                tracked: 16,
            }),
            answering: match config.rack {
                Owners::Gather => Some(rackmem_baselines::gather::answering),
                Owners::HomeOnly | Owners::Switch { .. } => None,
            },
        };
        let homes = config.homes();
        let blocks = (0..config.blocks)
            .filter(|&number| config.group(number).is_some() || block::home(number, homes) == id)
            .map(|number| config.tag(number, home.incarnation));
        let cache = Cache::new(config.cache);
        let part = Copied::new((id, home.incarnation), before.epoch);
        let mut site = Site::new(home, (SHARDS, 1, FIT), before, cache, part);
        if config.copies > 0 {
            site = site.with_kept(home);
        }
        (site.mutation, site.blocks) = (config.mutation, blocks.collect());
        let locks = WorldNode::own_locks(id, config, home.incarnation);
        locks
            .into_iter()
            .for_each(|lock| site.open_lock(lock, [0; 4], None));
        if let Owners::Switch { ways, sets } = config.rack {
            let shadow = ShadowConfig {
                patience: 20,
                ..ShadowConfig::new(id, before.epoch, ways, sets)
            };
            site.migrate(shadow, TRACKED, REPORTED);
        }
        WorldNode::new(site)
    }

    pub(super) fn start(&mut self) {
        for thread in 0..self.threads.len() {
            self.fabric.schedule(0, Occurrence::Wake(thread));
        }
        for locker in 0..self.locking.lockers.len() {
            self.fabric.schedule(0, Occurrence::Lock(locker));
        }
        for node in (0..self.config.nodes).chain([SWITCH]) {
            self.fabric.schedule(TICK, Occurrence::Tick(node));
        }
        self.start_keepers();
        self.start_groups();
    }

    pub(super) fn happen(&mut self, what: Occurrence) {
        let Some(what) = self.not_held(what) else {
            return;
        };
        match what {
            Occurrence::Keep(keep) => self.keep(keep),
            Occurrence::Lock(locker) => self.locker(locker),
            Occurrence::Wake(thread) => self.with_thread(thread, Thread::advance),
            Occurrence::Tick(member) => self.tick(member),
            Occurrence::Arrival(packet) => {
                let packet = self.mutate(packet);
                self.deliver(&packet);
            }
            Occurrence::Learn(member, view) => self.learn(member, &view),
            Occurrence::Hear(node, group, blocks) => self.hear_of_region(node, group, blocks),
            Occurrence::Group(node, group, config) => self.learn_group(node, group, &config),
            Occurrence::Change(change) => self.change(change),
        }
    }

    fn tick(&mut self, member: NodeId) {
        self.fabric.from = member;
        if let Some(node) = self.nodes.get_mut(usize::from(member)) {
            if node.runs() {
                node.tick(&mut self.fabric);
                self.look_after(member);
                self.look_after_groups(member);
            }
        } else if let Some(switch) = &mut self.switch {
            switch.tick(&mut self.fabric);
        }
        let slow = self.fabric.slow.filter(|slow| slow.0 == member);
        let after = TICK * slow.map_or(1, |slow| slow.1);
        self.fabric.schedule(after, Occurrence::Tick(member));
    }

    fn deliver(&mut self, packet: &WorldPacket) {
        match packet.to {
            Dest::Switch => {
                self.fabric.from = SWITCH;
                if let Some(switch) = &mut self.switch {
                    switch.handle(packet, &mut self.fabric);
                }
            }
            Dest::Agent(id) => {
                self.fabric.from = id;
                let Some(node) = self.nodes.get_mut(usize::from(id)) else {
                    return;
                };
                if node.runs() {
                    node.handle(packet, &mut self.fabric);
                    let (passed, stored) = (node.passed, node.seen.stored.take());
                    self.look_after(id);
                    if let Some(tag) = stored {
                        self.written_at(id, tag, &packet.header);
                    }
                    if passed {
                        self.answer(packet.header.requester, packet);
                    }
                }
            }
            Dest::Requester(id) => self.answer(id, packet),
            Dest::Agents { .. } | Dest::Home(_) => {}
        }
    }

    /// What else follows from what a node has done.
    pub(super) fn look_after(&mut self, id: NodeId) {
        self.hear_of_locks(id);
        self.hear_of_blocks(id);
        if let Some(tag) = self.nodes[usize::from(id)].seen.came_nowhere.take() {
            self.came_nowhere(tag);
        }
        for settling in std::mem::take(&mut self.nodes[usize::from(id)].seen.settlings) {
            self.judge(id, &settling);
        }
        let node = &mut self.nodes[usize::from(id)];
        if node.lease.alone {
            // What it accepts and does for others that are excluded is nothing to the rack.
            node.seen.accepted.clear();
        }
        for tag in std::mem::take(&mut node.seen.accepted) {
            self.oracle.accept_loss(tag, node.memory(tag));
            let now = self.fabric.now;
            self.record.begin_generation(&self.oracle, tag, now);
        }
        if std::mem::take(&mut node.poked) {
            let threads = self.threads_of(id);
            for thread in &mut self.threads[threads] {
                thread.poke(&mut self.fabric);
            }
        }
    }

    /// A block has been put in place at home for a requester: this is when it is written.
    fn written_at(&mut self, home: NodeId, tag: Tag, header: &Header) {
        let (index, node) = (
            self.thread_of(header.requester),
            &mut self.nodes[usize::from(home)],
        );
        if let Some(thread) = self.threads.get_mut(index).filter(|_| !node.lease.alone) {
            let (oracle, record) = (&mut self.oracle, &mut self.record);
            match header.kind {
                Kind::Operate => thread.operated(tag, node.memory(tag), oracle, record),
                _ => thread.stored(tag, node.memory(tag), oracle, record),
            }
        }
    }

    fn thread_of(&self, requester: RequesterId) -> usize {
        let per_node = usize::from(self.config.threads);
        usize::from(requester.node) * per_node + usize::from(requester.slot)
    }

    fn answer(&mut self, requester: RequesterId, packet: &WorldPacket) {
        let thread = self.thread_of(requester);
        self.with_thread(thread, |thread, around| thread.receive(packet, around));
    }

    fn with_thread(&mut self, index: usize, act: impl FnOnce(&mut Thread, &mut Around<'_>)) {
        let thread = self.threads.get_mut(index);
        let Some(thread) = thread.filter(|thread| !thread.dead) else {
            return;
        };
        self.fabric.from = thread.id.node;
        let mut around = Around {
            node: &mut self.nodes[usize::from(thread.id.node)],
            fabric: &mut self.fabric,
            oracle: &mut self.oracle,
            record: &mut self.record,
            calm: self.calm.is_some(),
        };
        let before = thread.judged.work;
        act(thread, &mut around);
        let inside = self
            .locking
            .lockers
            .get(index)
            .is_some_and(|l| l.is_inside());
        if inside {
            let (work, seen) = (
                &self.threads[index].judged.work,
                &mut self.locking.locked.seen,
            );
            seen.accepted_inside += work.lost - before.lost;
            seen.operations_inside += work.operations - before.operations;
        }
    }

    /// Moves on from faults to calm, from work to the emptying of caches, from there to the end.
    pub(super) fn turn_page(&mut self) -> Result<bool, Box<Violation>> {
        let now = self.fabric.now;
        let all = self.threads.len() as u64 * u64::from(self.config.operations);
        let done: u64 = self.threads.iter().map(|t| t.judged.work.operations).sum();
        while let Some(next) = self.plan.front().copied()
            && next.when * all <= done * 1000
        {
            self.plan.pop_front();
            self.change_after(next.after, Change::Break(next));
        }
        self.begin_removals(done, all);
        if self.leaving.is_some() {
            self.go_on_leaving();
        }
        let nodes = self.config.nodes;
        let held = self.keeping.as_ref().is_some_and(|it| it.busy(nodes));
        let held = held || !self.copies.are_whole();
        let held = held || !self.removals.is_empty();
        let broken = held || self.changes > 0 || !self.plan.is_empty() || self.leaving.is_some();
        if self.calm.is_none() && (done * 4 >= all * 3 && !broken || now > FAULTS_END) {
            self.fabric.calm_down();
            self.fabric.tell(|| "the network calms down".into());
            self.calm = Some(now);
        }
        if liveness::broken(now, self.calm) {
            return Err(self.stuck());
        }
        if !self.threads.iter().all(Thread::idle) || !self.locking.idle() {
            return Ok(false);
        }
        // Nobody is left to wait for: what has not happened by now does not happen.
        self.plan.clear();
        self.removals.clear();
        if broken || self.moving() || !self.stable() {
            return Ok(false);
        }
        match self.phase {
            Phase::Working => {
                if !self.audit_locks() {
                    self.flush();
                }
                Ok(false)
            }
            Phase::Flushing if self.fabric.in_flight() > 0 || !self.kept_idle() => Ok(false),
            Phase::Flushing => self.finish().map(|()| true),
        }
    }

    fn moving(&self) -> bool {
        self.nodes.iter().any(|node| node.moves().next().is_some())
    }

    fn flush(&mut self) {
        self.phase = Phase::Flushing;
        self.fabric
            .tell(|| "all operations are done: caches are emptied".into());
        for index in (0..self.threads.len()).step_by(usize::from(self.config.threads)) {
            self.threads[index].flush();
            self.fabric.wake(index, 0);
        }
    }

    /// The tag of a block, now.
    pub(super) fn tag(&self, number: u32) -> Tag {
        let home = block::home(number, self.config.homes());
        let incarnation = match self.config.mutation {
            Some(Mutation::ForgetIncarnation) => 1,
            _ => self.view.incarnations[usize::from(home)],
        };
        let tag = self.config.tag(number, incarnation);
        match self.config.group(number) {
            Some(group) => Tag(tag.0 + self.copies.blocks[usize::from(group)].base),
            None => tag,
        }
    }

    fn report(&self) -> Report {
        let mut seen = self.past;
        self.nodes.iter().for_each(|node| seen.add_node(node));
        if let Some(switch) = &self.switch {
            seen.locked += switch.program.counters().locked;
            seen.invalid += switch.program.counters().invalid;
        }
        let mut work = Work::default();
        for thread in &self.threads {
            seen.retransmissions += thread.retransmissions();
            seen.worst = seen.worst.max(thread.judged.worst);
            work.add(&thread.judged.work);
        }
        seen.recorded = self.record.len() as u64;
        Report {
            work,
            traffic: self.fabric.traffic,
            broken: self.broken,
            seen,
            locks: LockSeen {
                mixed_lists_lost: self.fabric.mixed_lists_lost,
                ..self.locking.locked.seen
            },
            copies: self.copies_seen(),
            time: self.fabric.now,
            trace: self.fabric.trace.hash(),
        }
    }
}
