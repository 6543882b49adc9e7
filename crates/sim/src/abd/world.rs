//! The rack: its nodes, what is in flight, and what follows when something happens.

use super::host::{Deed, LINE, Load, Part};
use super::judge::Judge;
use super::print::{Print, hash};
use super::scenario::{Budget, Op, Scenario, Store};
use super::witness::Witness;
use crate::driver::Complaint;
use rackmem_proto::abd::{
    Abd, Command, Config, Defect, Layout, Member, Outcome, Phase, Replica, Stamp, config_of,
    first_line,
};
use rackmem_proto::membership::host;
use rackmem_proto::switch::{Counted, QuorumProgram};
use rackmem_proto::wire::{Dest, Header, Kind, NodeId, Own, Tag};
use rackmem_proto::{Data, Output};
use std::hash::Hash;

/// The group.
pub const GROUP: u16 = 0;
/// Where packets to the switch go.
pub const SWITCH: NodeId = NodeId::MAX;

/// A line's address.
pub fn line(nth: u8) -> Tag {
    Tag(first_line(GROUP).0 + u64::from(nth) * u64::from(LINE))
}

pub fn layout() -> Layout {
    Layout::new(LINE, 1 << 12).expect("a line of 64 bytes")
}

/// A packet in flight.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Packet {
    pub to: NodeId,
    pub header: Header,
    pub own: Own,
    pub load: Load,
}

/// A node.
#[derive(Clone, Hash, Debug)]
pub struct Node {
    pub up: bool,
    pub incarnation: u32,
    /// As which life it keeps copies, if it does.
    pub life: Option<u64>,
    pub part: Part,
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

/// All of it.
#[derive(Clone)]
pub struct World {
    pub nodes: Vec<Node>,
    pub threads: Vec<Thread>,
    pub packets: Vec<Packet>,
    /// Lines on their way to a durable store: where, and by which packet.
    pub syncs: Vec<(NodeId, Header, Own)>,
    pub switch: Option<QuorumProgram>,
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
pub struct Rack {
    pub scenario: Scenario,
    pub defect: Option<Defect>,
    /// Whether the history is kept.
    pub records: bool,
}

impl Rack {
    pub fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    /// The nodes that may keep copies.
    pub fn keepers(&self) -> std::ops::Range<usize> {
        let first = self.scenario.threads.len();
        first..first + usize::from(self.scenario.copies + self.scenario.spares)
    }

    fn part(&self, node: NodeId, incarnation: u32) -> Part {
        Part {
            abd: Abd::new(node, incarnation),
            bytes: super::host::Bytes::default(),
        }
    }

    fn replica(&self) -> Replica {
        Replica::new(self.scenario.store == Store::Durable)
    }

    /// The rack in which nothing has happened.
    pub fn first(&self) -> World {
        let scenario = &self.scenario;
        let keepers = self.keepers();
        let nodes = (0..keepers.end).map(|node| {
            let mut part = self.part(node as NodeId, 1);
            let life = keepers.contains(&node).then_some(1);
            if let Some(life) = life {
                part.abd.keep(GROUP, life, self.replica());
            }
            Node {
                up: !scenario.dead.contains(&(node as NodeId)),
                incarnation: 1,
                life,
                part,
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
        let switch = scenario
            .switch
            .then(|| QuorumProgram::new(1).counting_on(self.has(Defect::CountOn)));
        let mut world = World {
            nodes: nodes.collect(),
            threads: vec![Thread::default(); scenario.threads.len()],
            packets: Vec::new(),
            syncs: Vec::new(),
            switch,
            configs: vec![config],
            changed: 0,
            left: scenario.budget,
            judge: Judge::new(self.records),
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

    /// What a thread does next.
    pub fn next(&self, rack: &Rack, thread: usize) -> Option<Op> {
        let ops = rack.scenario.threads[thread];
        ops.get(usize::from(self.threads[thread].begun)).copied()
    }

    /// A section of a node, and what follows from it.
    pub fn act(
        &mut self,
        rack: &Rack,
        node: NodeId,
        packet: Option<&Packet>,
        act: impl FnOnce(&mut Abd, &mut super::host::Fx<'_>),
    ) -> Result<(), Complaint> {
        let at = usize::from(node);
        let how = (u32::from(rack.scenario.segments), rack.defect);
        let body = packet.map(|packet| (packet.header.offset, &packet.load));
        let deeds = self.nodes[at].part.section(how, body, act);
        for deed in deeds {
            match deed {
                Deed::Sent(to, header, own, load) => {
                    self.sent(rack, node, (to, header, own, load))?;
                }
                Deed::Committed(line, stamp, value) => {
                    self.committed(node, packet, stamp);
                    self.judge.stored(line, stamp, value)?;
                }
                Deed::Sync => {
                    let packet = packet.expect("a segment has completed it");
                    self.syncs.push((node, packet.header, packet.own));
                }
                Deed::Done(outcome, value) => self.done(node, outcome, value)?,
            }
        }
        Ok(())
    }

    fn sent(
        &mut self,
        rack: &Rack,
        from: NodeId,
        (to, mut header, own, load): (Dest, Header, Own, Load),
    ) -> Result<(), Complaint> {
        header.sender = from;
        if header.kind == Kind::AbdWrite && load.len > 0 {
            let id = load.value[0].max(load.value[1]);
            self.judge.stamped(header.tag, id, Stamp(own.a))?;
        }
        match header.kind {
            Kind::AbdFetch if header.seq.0 > 0 => self.witness(Witness::Fetched),
            Kind::AbdWriteBack => self.witness(Witness::Disagreed),
            Kind::AbdConfig => self.witness(Witness::ToldConfig),
            Kind::AbdWriteAck => {
                let replica = self.nodes[usize::from(from)].part.abd.replica(GROUP);
                if replica.is_some_and(|replica| replica.stamp(header.tag).0 > own.a) {
                    self.witness(Witness::Superseded);
                }
            }
            _ => {}
        }
        self.put(rack, (to, header, own, load));
        Ok(())
    }

    /// Puts a packet on its way, to each that it is for.
    fn put(&mut self, _: &Rack, (to, header, own, load): (Dest, Header, Own, Load)) {
        let output = Output::with(to, header, Data::Operand);
        for (to, header) in output.copies(host) {
            let to = match to {
                Dest::Agent(node) => node,
                _ => SWITCH,
            };
            let packet = Packet {
                to,
                header,
                own,
                load: load.clone(),
            };
            let up = to == SWITCH || self.nodes.get(usize::from(to)).is_some_and(|node| node.up);
            if up {
                self.packets.push(packet);
            }
        }
    }

    fn committed(&mut self, node: NodeId, packet: Option<&Packet>, stamp: Stamp) {
        let Some(packet) = packet else {
            return;
        };
        let fills = self.nodes[usize::from(node)].part.abd.fill(GROUP);
        let filling = fills.is_some_and(|fill| !fill.is_whole());
        let requester = &self.nodes[usize::from(packet.header.requester.node)];
        let gone = requester.incarnation != packet.header.incarnation;
        match packet.header.kind {
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
    fn done(&mut self, node: NodeId, outcome: Outcome, value: [u8; 2]) -> Result<(), Complaint> {
        let at = usize::from(node);
        let thread = &mut self.threads[at];
        thread.waits = false;
        let floor = std::mem::take(&mut thread.floor);
        self.nodes[at].part.bytes.operand = [0; 2];
        if let Outcome::Read { rounds: 1, .. } = outcome {
            self.witness(Witness::Agreed);
        }
        self.judge.done(node, (outcome, value), floor)
    }

    /// A packet arrives.
    pub fn arrive(&mut self, rack: &Rack, packet: &Packet) -> Result<(), Complaint> {
        if packet.to == SWITCH {
            let Some(switch) = &mut self.switch else {
                return Ok(());
            };
            if let Some((to, header, own)) = switch.handle(&packet.header, &packet.own) {
                if header.sender == SWITCH {
                    self.witness(Witness::Counted);
                }
                self.put(rack, (to, header, own, packet.load.clone()));
            }
            return Ok(());
        }
        let (header, own, load) = (&packet.header, &packet.own, &packet.load);
        self.act(rack, packet.to, Some(packet), |abd, fx| {
            abd.packet(header, own, (load.len, &load.records), fx);
        })
    }

    /// A thread begins its next operation.
    pub fn begin(&mut self, rack: &Rack, node: usize) -> Result<(), Complaint> {
        let op = self.next(rack, node).expect("it has something to do");
        let thread = &mut self.threads[node];
        thread.begun += 1;
        thread.waits = true;
        let id = (node as u8) << 4 | thread.begun;
        let (command, of) = match op {
            Op::Read(nth) => (Command::Read(line(nth)), line(nth)),
            Op::Write(nth) => {
                self.nodes[node].part.bytes.operand = [id; 2];
                (Command::Write(line(nth)), line(nth))
            }
        };
        thread.floor = self.judge.completed(of);
        self.judge.begun(node as NodeId, (op, of), id);
        self.act(rack, node as NodeId, None, |abd, fx| {
            abd.command(0, command, fx)
        })
    }

    /// A node asks again for what it waits for.
    pub fn retry(&mut self, rack: &Rack, node: NodeId) -> Result<(), Complaint> {
        self.act(rack, node, None, |abd, fx| {
            abd.retry(0, fx);
            abd.refill(GROUP, fx);
        })
    }

    /// What was staged by this packet is durable.
    pub fn synced(&mut self, rack: &Rack, nth: usize) -> Result<(), Complaint> {
        let (node, header, own) = self.syncs.remove(nth);
        self.act(rack, node, None, |abd, fx| abd.synced(&header, &own, fx))
    }

    /// A node hears of the newest config.
    pub fn learn(&mut self, rack: &Rack, node: NodeId) -> Result<(), Complaint> {
        let config = *self.config();
        let stores = self.nodes[usize::from(node)].part.abd.awaits(0);
        if stores.is_some_and(|(_, phase)| phase == Phase::Storing) {
            self.witness(Witness::Recounted);
        }
        self.act(rack, node, None, |abd, fx| {
            abd.learn(GROUP, layout(), &config, fx)
        })
    }

    /// The switch does.
    pub fn learn_switch(&mut self) {
        let config = *self.config();
        if let Some(switch) = &mut self.switch {
            switch.count(GROUP, Some(Counted::new(&config)));
        }
    }

    /// A process ends, and starts again.
    pub fn crash(&mut self, rack: &Rack, node: NodeId) {
        let at = usize::from(node);
        self.left.crash -= 1;
        let before = self.syncs.len();
        self.syncs.retain(|sync| sync.0 != node);
        if before > self.syncs.len() {
            self.witness(Witness::CutSync);
        }
        let known = self.nodes[at].part.abd.config(GROUP).copied();
        let old = &mut self.nodes[at];
        old.incarnation += 1;
        let mut part = rack.part(node, old.incarnation);
        if let Some(life) = old.life {
            let mut replica = rack.replica();
            match rack.scenario.store {
                Store::Memory => old.life = Some(u64::from(old.incarnation)),
                Store::Durable => {
                    for tag in old.part.bytes.lines.keys() {
                        let stamp = old.part.abd.replica(GROUP).map(|r| r.stamp(*tag));
                        replica.restore(*tag, stamp.unwrap_or_default());
                    }
                    part.bytes.lines = std::mem::take(&mut old.part.bytes.lines);
                }
            }
            part.abd.keep(GROUP, old.life.unwrap_or(life), replica);
        }
        old.part = part;
        if let Some(thread) = self.threads.get_mut(at)
            && thread.waits
        {
            thread.waits = false;
            thread.floor = Stamp::NONE;
            self.judge.abandoned(node);
        }
        // It is told the config that it has written down; one that has forgotten hears the newest.
        let config = match rack.scenario.store {
            Store::Durable => known,
            Store::Memory => Some(*self.config()),
        };
        if let Some(config) = config {
            let learn = |abd: &mut Abd, fx: &mut super::host::Fx<'_>| {
                abd.learn(GROUP, layout(), &config, fx);
            };
            self.act(rack, node, None, learn)
                .expect("nothing is under way");
        }
    }

    /// A node is gone for good.
    pub fn die(&mut self, node: NodeId) {
        self.left.die -= 1;
        self.nodes[usize::from(node)].up = false;
        self.packets.retain(|packet| packet.to != node);
        self.syncs.retain(|sync| sync.0 != node);
    }

    /// Drops what changes nothing: answers that their operation does not wait for, unless they are
    /// to stay, and questions for such answers.
    pub fn purge(&mut self, answers_stay: bool) {
        let nodes = &self.nodes;
        let matters = |packet: &Packet| {
            let answer = match packet.header.kind {
                Kind::AbdStamp | Kind::AbdStampAck => Kind::AbdStampAck,
                Kind::AbdRead | Kind::AbdFetch | Kind::AbdReadAck => Kind::AbdReadAck,
                Kind::AbdConfig => return false,
                kind @ (Kind::AbdWriteAck | Kind::AbdWriteBackAck) => kind,
                _ => return true,
            };
            if packet.header.seq.0 == 0 || answers_stay && answer == packet.header.kind {
                return true;
            }
            let requester = &nodes[usize::from(packet.header.requester.node)];
            let waits = requester.part.abd.awaits(0);
            let config = requester.part.abd.config(GROUP);
            requester.incarnation == packet.header.incarnation
                && config.is_some_and(|config| config.number <= config_of(&packet.own))
                && waits.is_some_and(|(seq, phase)| {
                    seq == packet.header.seq && phase.awaits() == answer
                })
        };
        self.packets.retain(matters);
    }

    /// Orders what has no order.
    pub fn settle(&mut self) {
        self.packets.sort_by_cached_key(hash);
        self.syncs.sort_by_cached_key(hash);
    }

    pub fn fingerprint(&self) -> u128 {
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
