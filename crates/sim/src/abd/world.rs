//! The rack: its nodes, what is in flight, and what follows when something happens.

use super::judge::{Judge, Place};
use super::restart::Disk;
use super::scenario::{Budget, Op, Scenario, Store};
use super::witness::Witness;
use crate::driver::{Complaint, Unpacked};
use crate::print::{Print, hash};
use rackmem_proto::abd::{
    Abd, Change, Command, Config, Defect, Effect, Layout, Member, Outcome, Phase, Replica,
    ReplicatedMemory, Section, Stamp, Why, first_line,
};
use rackmem_proto::call::Parcel;
use rackmem_proto::switch::{Counted, QuorumProgram, SWITCH};
use rackmem_proto::wire::{Dest, Header, Kind, NodeId, OWN_LEN, Own, Tag};
use std::hash::Hash;

/// The group.
pub const GROUP: u16 = 0;
/// Bytes of a line: all of them say which write it is of.
pub const LINE: u32 = 64;

/// A line's address.
pub fn line(nth: u8) -> Tag {
    Tag(first_line(GROUP).0 + u64::from(nth) * u64::from(LINE))
}

pub fn layout() -> Layout {
    Layout::new(LINE, 1 << 12).expect("a line of 64 bytes")
}

/// A node.
#[derive(Clone, Hash, Debug)]
pub struct LineNode {
    pub up: bool,
    pub incarnation: u32,
    /// The rack's epoch, as it knows it.
    pub epoch: u32,
    /// As which life it keeps copies, if it does.
    pub life: Option<u64>,
    pub part: ReplicatedMemory,
    pub disk: Disk,
}

/// What a line holds from the beginning, and under which stamp: no thread has written it.
fn written(nth: u8) -> (u8, Stamp) {
    (0xf0 | nth, Stamp(1 << 28 | u64::from(nth)))
}

/// Which write a segment of a line is of.
pub fn write_of(segment: &[u8]) -> u8 {
    segment.first().copied().unwrap_or(0)
}

/// A thread. Its node is its number.
#[derive(Clone, Copy, Hash, Debug, Default)]
pub struct Thread {
    /// Operations that it has begun.
    pub begun: u8,
    /// Whether the last of them is under way.
    pub waits: bool,
    /// When it was begun, whatever had completed has a stamp up to this.
    pub floor: Stamp,
}

/// A line on its way to a durable store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Syncing {
    /// Where.
    pub node: NodeId,
    /// The packet that has completed it.
    pub header: Header,
    pub own: Own,
    pub line: Box<[u8]>,
}

/// All of it.
#[derive(Clone)]
pub struct World {
    pub nodes: Vec<LineNode>,
    pub threads: Vec<Thread>,
    pub packets: Vec<Parcel>,
    pub syncs: Vec<Syncing>,
    pub switch: Option<QuorumProgram>,
    /// How often it has started.
    pub switch_life: u32,
    /// Every config of the group.
    pub configs: Vec<Config>,
    pub changed: u8,
    pub left: Budget,
    pub judge: Judge,
    /// What was seen in the last move.
    pub seen: u32,
}

/// What a rack is made by.
#[derive(Clone, Copy)]
pub struct LineRack {
    pub scenario: Scenario,
    pub defect: Option<Defect>,
    /// Whether the history is kept.
    pub records: bool,
}

impl LineRack {
    pub fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// The nodes that may keep copies.
    pub fn keepers(&self) -> std::ops::Range<usize> {
        let first = self.scenario.threads.len();
        first..first + usize::from(self.scenario.copies + self.scenario.spares)
    }

    pub fn part(&self, node: NodeId, incarnation: u32) -> ReplicatedMemory {
        let room = OWN_LEN + LINE as usize / usize::from(self.scenario.segments);
        let mut part = ReplicatedMemory::new((node, incarnation), room).breaking(self.defect);
        if self.scenario.quorum_first {
            part.abd.ask_a_quorum_first();
        }
        part
    }

    pub fn replica(&self) -> Replica {
        Replica::new(self.scenario.store == Store::Durable)
    }

    /// A life of the switch that knows nothing.
    pub fn program(&self, life: u32) -> QuorumProgram {
        let program = QuorumProgram::new(1, self.scenario.entries.into());
        program.of_life(life).breaking(self.defect)
    }

    /// The rack in which nothing has happened.
    pub fn first(&self) -> World {
        let scenario = &self.scenario;
        let keepers = self.keepers();
        let nodes = (0..keepers.end).map(|node| {
            let mut part = self.part(node as NodeId, 1);
            // Threads are the homes of one epoch each, and members hear of one after the other.
            let epoch = if keepers.contains(&node) {
                1
            } else {
                node as u32 + 1
            };
            if scenario.homes {
                part.abd.fence_by_epochs(GROUP);
                part.abd.enter(epoch);
            }
            let life = keepers.contains(&node).then_some(1);
            if let Some(life) = life {
                let mut replica = self.replica();
                let is_first = node < keepers.start + usize::from(scenario.copies);
                for nth in (0..scenario.written).filter(|_| is_first) {
                    let (id, stamp) = written(nth);
                    replica.restore(line(nth), stamp);
                    part.lines.set(line(nth), vec![id; LINE as usize].into());
                }
                part.abd.keep(GROUP, life, replica);
            }
            LineNode {
                up: !scenario.dead.contains(&(node as NodeId)),
                incarnation: 1,
                epoch,
                life,
                part,
                disk: Disk::default(),
            }
        });
        let members: Vec<Member> = keepers
            .clone()
            .take(scenario.copies.into())
            .map(|node| Member {
                node: node as NodeId,
                life: 1,
            })
            .collect();
        let mut config = Config::first(&members).expect("a number of copies that there is");
        config.through_switch = scenario.switch;
        config.chooser = scenario.at_once.into();
        config.holds_lines = scenario.held;
        let switch = scenario.switch.then(|| self.program(1));
        let mut judge = Judge::new(self.records, scenario.homes);
        for nth in 0..scenario.written {
            let (id, stamp) = written(nth);
            judge.found((config.first, line(nth)), id, stamp);
        }
        let mut world = World {
            nodes: nodes.collect(),
            threads: vec![Thread::default(); scenario.threads.len()],
            packets: Vec::new(),
            syncs: Vec::new(),
            switch,
            switch_life: 1,
            configs: vec![config],
            changed: 0,
            left: scenario.budget,
            judge,
            seen: 0,
        };
        for node in 0..world.nodes.len() {
            world
                .learn(self, node as NodeId)
                .expect("nothing is under way");
        }
        world.learn_switch();
        world
    }
}

impl World {
    pub fn witness(&mut self, witness: Witness) {
        self.seen |= 1 << witness as u32;
    }

    pub fn config(&self) -> &Config {
        self.configs.last().expect("there is a first one")
    }

    /// The config that a node lives by.
    pub fn known(&self, node: usize) -> u32 {
        let config = self.nodes[node].part.abd.config(GROUP);
        config.map_or(0, |config| config.number)
    }

    /// A line of the region that a node knows.
    fn place(&self, node: NodeId, line: Tag) -> Place {
        let config = self.nodes[usize::from(node)].part.abd.config(GROUP);
        (config.map_or(1, |config| config.first), line)
    }

    /// Whether the region that a node knows has been removed.
    pub fn is_removed(&self, node: usize) -> bool {
        let config = self.nodes[node].part.abd.config(GROUP);
        config.is_some_and(Config::is_removed)
    }

    /// The highest config that it has lived by.
    pub fn lives_by(&self, node: usize) -> u32 {
        let replica = self.nodes[node].part.abd.replica(GROUP);
        let config = replica.map_or(0, Replica::config);
        config.max(self.known(node))
    }

    /// What a thread does next.
    pub fn next(&self, rack: &LineRack, thread: usize) -> Option<Op> {
        let ops = rack.scenario.threads[thread];
        ops.get(usize::from(self.threads[thread].begun)).copied()
    }

    /// A section of a node, and what follows from it.
    pub fn act(
        &mut self,
        rack: &LineRack,
        node: NodeId,
        act: impl FnOnce(&mut Abd, &mut Section<'_>),
    ) -> Result<(), Complaint> {
        let part = &mut self.nodes[usize::from(node)].part;
        let effects = part.section((0, &[]), act).1;
        self.follow(rack, (node, None), effects)
    }

    /// What follows from a section of a node, and from the packet that it was of.
    pub fn follow(
        &mut self,
        rack: &LineRack,
        (node, packet): (NodeId, Option<&Header>),
        effects: Vec<Effect>,
    ) -> Result<(), Complaint> {
        for effect in effects {
            match effect {
                Effect::Send(parcel) => self.sent(node, parcel)?,
                Effect::Stored(line, stamp) => {
                    self.committed(node, packet, stamp);
                    let bytes = self.nodes[usize::from(node)].part.lines.line(line);
                    let bytes = bytes.unwrap_or_default();
                    let line = self.place(node, line);
                    // A stamp of the switch's choice is the write's when it is stored: one that has
                    // come to no member never was.
                    if rack.scenario.at_once && bytes.first() == bytes.last() {
                        self.judge.stamped(line, write_of(bytes), stamp)?;
                    }
                    self.judge.stored(line, stamp, bytes)?;
                }
                Effect::Sync(line, header, own) => self.syncs.push(Syncing {
                    node,
                    header,
                    own,
                    line,
                }),
                Effect::Ended(slot) => {
                    let operands = &mut self.nodes[usize::from(node)].part.lines.operands;
                    if let Some((outcome, bytes)) = operands.take(slot) {
                        self.done(node, outcome, &bytes)?;
                    }
                }
                // Moves say when a node hears of a config.
                Effect::Behind | Effect::Adopted(_) | Effect::Forgot(_) => {}
            }
        }
        Ok(())
    }

    fn sent(&mut self, from: NodeId, mut parcel: Parcel) -> Result<(), Complaint> {
        parcel.header.sender = from;
        let (header, (own, bytes)) = (&parcel.header, parcel.split());
        if header.kind == Kind::AbdWrite && !bytes.is_empty() && own.a != 0 {
            let line = self.place(from, header.tag);
            self.judge
                .stores(from, (line, write_of(bytes)), Stamp(own.a))?;
        }
        match header.kind {
            Kind::AbdFetch if header.seq.0 > 0 => self.witness(Witness::Fetched),
            Kind::AbdWriteBack => self.witness(Witness::Disagreed),
            Kind::AbdConfig => self.witness(Witness::ToldConfig),
            Kind::AbdTold if own.a == 0 => self.witness(Witness::NeverCame),
            Kind::AbdTold => self.witness(Witness::HadCome),
            Kind::AbdWriteAck => {
                let replica = self.nodes[usize::from(from)].part.abd.replica(GROUP);
                if replica.is_some_and(|replica| replica.stamp(header.tag).0 > own.a) {
                    self.witness(Witness::Superseded);
                }
            }
            _ => {}
        }
        self.put(parcel);
        Ok(())
    }

    /// Puts a packet on its way.
    fn put(&mut self, parcel: Parcel) {
        let up = match parcel.to {
            Dest::Agent(node) => self.nodes.get(usize::from(node)).is_some_and(|n| n.up),
            _ => true,
        };
        if up {
            self.packets.push(parcel);
        }
    }

    fn committed(&mut self, node: NodeId, packet: Option<&Header>, stamp: Stamp) {
        let Some(packet) = packet else {
            return;
        };
        let fills = self.nodes[usize::from(node)].part.abd.fill(GROUP);
        let filling = fills.is_some_and(|fill| !fill.is_whole());
        let requester = &self.nodes[usize::from(packet.requester.node)];
        let gone = requester.incarnation != packet.incarnation;
        match packet.kind {
            Kind::AbdReadAck => self.witness(Witness::Filled),
            Kind::AbdWriteBack => {
                self.witness(Witness::Repaired);
                if self.judge.is_orphan(stamp) {
                    self.witness(Witness::Adopted);
                }
            }
            Kind::AbdWrite if filling && !gone => self.witness(Witness::FilledOver),
            _ => {}
        }
    }

    /// A thread's operation has ended.
    fn done(&mut self, node: NodeId, outcome: Outcome, bytes: &[u8]) -> Result<(), Complaint> {
        let at = usize::from(node);
        let thread = &mut self.threads[at];
        thread.waits = false;
        let floor = std::mem::take(&mut thread.floor);
        match outcome {
            Outcome::Read { rounds: 1, .. } => self.witness(Witness::Agreed),
            Outcome::Written { rounds: 1, .. } => self.witness(Witness::AtOnce),
            Outcome::Refused(Why::Removed) => self.witness(Witness::EndedByRemoval),
            Outcome::Written { .. } if write_of(bytes) >> 4 < node as u8 && write_of(bytes) > 0 => {
                self.witness(Witness::Retaken);
            }
            _ => {}
        }
        self.judge.done(node, (outcome, bytes), floor)
    }

    /// A packet arrives.
    pub fn arrive(&mut self, rack: &LineRack, parcel: &Parcel) -> Result<(), Complaint> {
        if let Dest::Agent(node) = parcel.to {
            let effects = self.nodes[usize::from(node)].part.packet(parcel);
            return self.follow(rack, (node, Some(&parcel.header)), effects);
        }
        let Some(switch) = &mut self.switch else {
            return Ok(());
        };
        let (came, (own, rest)) = (&parcel.header, parcel.split());
        if let Some((to, header, own, carries)) = switch.handle(came, &own, rest) {
            if header.sender == SWITCH {
                self.witness(Witness::Counted);
            }
            match (came.kind, header.kind) {
                (Kind::AbdStampAck, Kind::AbdWrite) => self.witness(Witness::WrittenBySwitch),
                (Kind::AbdReadAck, Kind::AbdWriteBack) => self.witness(Witness::WrittenBack),
                _ => {}
            }
            Parcel::each((to, header), own, carries.bytes(rest))
                .for_each(|parcel| self.put(parcel));
        }
        Ok(())
    }

    /// A thread begins its next operation.
    pub fn begin(&mut self, rack: &LineRack, node: usize) -> Result<(), Complaint> {
        let op = self.next(rack, node).expect("it has something to do");
        let thread = &mut self.threads[node];
        thread.begun += 1;
        thread.waits = true;
        let id = (node as u8) << 4 | thread.begun;
        let (command, of, holds) = match op {
            Op::Read(nth) => (Command::Read(line(nth)), line(nth), 0),
            Op::Take(nth) => (Command::Take(line(nth)), line(nth), 0),
            Op::Write(nth) => (Command::Write(line(nth)), line(nth), id),
        };
        let operands = &mut self.nodes[node].part.lines.operands;
        operands.begin(0, vec![holds; LINE as usize], 0);
        let of = self.place(node as NodeId, of);
        self.threads[node].floor = self.judge.completed(of);
        self.judge.begun(node as NodeId, (op, of), id);
        self.act(rack, node as NodeId, |abd, fx| abd.command(0, command, fx))
    }

    /// A node asks again for what it waits for.
    pub fn retry(&mut self, rack: &LineRack, node: NodeId) -> Result<(), Complaint> {
        self.act(rack, node, |abd, fx| {
            abd.retry(0, fx);
            abd.refill(GROUP, fx);
        })
    }

    /// A node hears of the newest config.
    pub fn learn(&mut self, rack: &LineRack, node: NodeId) -> Result<(), Complaint> {
        let config = *self.config();
        let stores = self.nodes[usize::from(node)].part.abd.awaits(0);
        if stores.is_some_and(|(_, phase)| phase == Phase::Storing) {
            self.witness(Witness::Recounted);
        }
        let life = self.nodes[usize::from(node)].life;
        let member = life.map(|life| Member { node, life });
        let member = member.filter(|member| config.role(*member).is_some());
        self.act(rack, node, |abd, fx| {
            fx.lines.lay_out(GROUP, layout());
            // As the library's host does for a member of a region that it has not had copies of.
            if config.first > 1 {
                abd.end_removed(GROUP, &config, fx);
                if let (Some(member), None) = (member, abd.replica(GROUP)) {
                    abd.keep(GROUP, member.life, rack.replica());
                }
            }
            abd.learn(GROUP, layout(), &config, fx);
        })?;
        self.keep_config(rack, usize::from(node));
        Ok(())
    }

    /// The switch does.
    pub fn learn_switch(&mut self) {
        let config = *self.config();
        if let Some(switch) = &mut self.switch {
            switch.count(GROUP, Some(Counted::new(&config)));
        }
    }

    /// Whether a thread's node is the home now, as far as it and a majority know; any is where
    /// there are no homes.
    pub fn is_home(&self, rack: &LineRack, thread: usize) -> bool {
        let mine = self.nodes[thread].epoch;
        let members = self.nodes.iter().filter(|node| node.life.is_some());
        let there = members.filter(|node| node.epoch >= mine).count();
        let majority = there > usize::from(rack.scenario.copies) / 2;
        !rack.scenario.homes || majority && !self.is_fenced(rack, thread)
    }

    /// Whether there is an epoch that a member may hear of.
    pub fn may_enter(&self, rack: &LineRack, node: usize) -> bool {
        let last = rack.scenario.threads.len() as u32;
        rack.scenario.homes && rack.keepers().contains(&node) && self.nodes[node].epoch < last
    }

    /// A member hears of the next epoch.
    pub fn enter(&mut self, node: NodeId) {
        let node = &mut self.nodes[usize::from(node)];
        node.epoch += 1;
        node.part.abd.enter(node.epoch);
    }

    /// Whether the rack has gone on without the home that a thread is.
    pub fn is_fenced(&self, rack: &LineRack, thread: usize) -> bool {
        let mine = self.nodes[thread].epoch;
        rack.scenario.homes
            && self
                .nodes
                .iter()
                .any(|node| node.life.is_some() && node.epoch > mine)
    }

    /// A home hears that the rack has gone on without it.
    pub fn fence(&mut self, node: NodeId) {
        self.left.abandon += 1;
        self.abandon(node);
        self.witness(Witness::Fenced);
    }

    /// A thread waits no longer for its operation.
    pub fn abandon(&mut self, node: NodeId) {
        let at = usize::from(node);
        self.left.abandon -= 1;
        self.nodes[at].part.abandon(0);
        self.threads[at].waits = false;
        self.threads[at].floor = Stamp::NONE;
        self.judge.abandoned(node);
    }

    /// The switch starts again and has forgotten everything. It chooses stamps in another config
    /// only.
    pub fn restart_switch(&mut self, rack: &LineRack) {
        self.left.switch -= 1;
        self.switch_life += 1;
        self.switch = Some(rack.program(self.switch_life));
        let chooses = self.config().chooser != 0 && !rack.has(Defect::ChooseInLastLife);
        let next = self.config().step(match rack.scenario.held {
            true => Change::Held(self.switch_life),
            false => Change::AtOnce(self.switch_life),
        });
        self.configs.extend(next.ok().filter(|_| chooses));
        self.learn_switch();
    }

    /// A node is gone for good.
    pub fn die(&mut self, node: NodeId) {
        self.left.die -= 1;
        self.nodes[usize::from(node)].up = false;
        self.packets.retain(|packet| packet.to != Dest::Agent(node));
        self.syncs.retain(|sync| sync.node != node);
    }

    /// Drops what changes nothing: answers that their operation does not wait for, unless they are
    /// to stay, and questions for such answers.
    pub fn purge(&mut self, rack: &LineRack, answers_stay: bool) {
        let nodes = &self.nodes;
        let fences = rack.scenario.homes && !rack.has(Defect::OldHomeWrites);
        let is_late = |packet: &Parcel| match packet.to {
            Dest::Agent(node) => {
                let node = &nodes[usize::from(node)];
                node.life.is_some() && packet.header.epoch < node.epoch
            }
            _ => false,
        };
        self.packets.retain(|packet| !(fences && is_late(packet)));
        let matters = |packet: &Parcel| {
            let answer = match packet.header.kind {
                Kind::AbdStamp | Kind::AbdStampAck => Kind::AbdStampAck,
                Kind::AbdRead | Kind::AbdFetch | Kind::AbdReadAck => Kind::AbdReadAck,
                Kind::AbdConfig => return false,
                Kind::AbdAsk => Kind::AbdTold,
                kind @ (Kind::AbdWriteAck | Kind::AbdWriteBackAck | Kind::AbdTold) => kind,
                _ => return true,
            };
            if packet.header.seq.0 == 0 || answers_stay && answer == packet.header.kind {
                return true;
            }
            let requester = &nodes[usize::from(packet.header.requester.node)];
            let waits = requester.part.abd.awaits(0);
            let config = requester.part.abd.config(GROUP);
            requester.incarnation == packet.header.incarnation
                && config.is_some_and(|config| config.number <= packet.config())
                && waits.is_some_and(|(seq, phase)| {
                    seq == packet.header.seq && (phase.awaits() == answer || phase.is_held())
                })
        };
        self.packets.retain(matters);
    }

    /// Orders what has no order.
    pub fn settle(&mut self) {
        self.packets.sort_by_cached_key(hash);
        self.syncs.sort_by_cached_key(hash);
    }
}

impl Unpacked for World {
    fn fingerprint(&self) -> u128 {
        let mut hasher = Print::default();
        (&self.nodes, &self.threads, &self.packets, &self.syncs).hash(&mut hasher);
        (&self.configs, self.changed, self.left).hash(&mut hasher);
        self.judge.fingerprint(&mut hasher);
        if let Some(switch) = &self.switch {
            switch.state().hash(&mut hasher);
        }
        hasher.whole()
    }
}
