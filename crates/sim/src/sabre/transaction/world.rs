//! A rack at one time: every node's part, its objects, packets on their way and threads.

use super::judge::Judge;
use super::scenario::{Budget, KEPT, Op, Scenario};
use crate::driver::{Complaint, Unpacked};
use crate::print::Print;
use crate::sabre::memory::{HomeWords, LEN, Places, bytes_of};
use crate::sabre::world::{self, key};
use rackmem_proto::abd::{Layout, first_line};
use rackmem_proto::call::Parcel;
use rackmem_proto::engine::is_current;
use rackmem_proto::sabre::rule::is_odd;
use rackmem_proto::sabre::transaction::{Plan, Used};
use rackmem_proto::sabre::{
    Book, Command, Defect, GRANULE, Laid, Lane, Meta, Need, Outcome, Ref, SLAB, Sabre, Section,
    Sender, Values, bytes_with_rows, class_of,
};
use rackmem_proto::wire::{Contract, Copyset, Dest, HomeId, NodeId, OWN_LEN, Reason, Record, Tag};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Attempts of a thread at one operation. Then it leaves it.
const TRIES: u8 = 2;
const LOCKED: &str = "no object stays locked";
/// Bytes of a line.
const LINE: u32 = 4096;

#[derive(Clone)]
struct Member {
    sabre: Sabre,
    values: Values,
    places: Places,
    epoch: u32,
    /// The epoch in which it serves.
    settled: u32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    pub node: NodeId,
    slot: u8,
    ops: &'static [Op],
    done: u8,
    /// Attempts at this operation.
    tries: u8,
    /// It waits for an answer.
    pub waits: bool,
    /// The versions of what it has read in this attempt.
    read: Vec<u64>,
}

/// See the module.
#[derive(Clone)]
pub struct World {
    nodes: Vec<Rc<Member>>,
    objects: Vec<Ref>,
    /// What a majority has of the group that keeps a home: it answers at once.
    lines: BTreeMap<Tag, Vec<u8>>,
    pub packets: Vec<Parcel>,
    pub threads: Vec<Thread>,
    pub left: Budget,
    /// What homes have reported, until it is heard.
    mail: Vec<(NodeId, Record)>,
    judge: Judge,
    room: usize,
    defect: Option<Defect>,
}

impl World {
    /// In which nothing has happened, but that objects were made.
    pub fn new(scenario: &Scenario, defect: Option<Defect>) -> Self {
        let node = |nth: NodeId| {
            let book = Book::new(HomeId::of(nth), 0, 1);
            let mut sabre = Sabre::new((nth, 1), book);
            let objects = scenario.objects.len() as u64 * u64::from(LINE);
            let laid = Laid {
                first: 1,
                base: 0,
                layout: Layout::new(LINE, bytes_with_rows(objects, LINE)),
            };
            sabre.kept.lay_out(0, laid);
            Rc::new(Member {
                sabre,
                values: Values::default(),
                places: Places::new(),
                epoch: 1,
                settled: 1,
            })
        };
        let mut threads: Vec<Thread> = Vec::new();
        for (node, ops) in scenario.threads {
            let before = threads.iter().filter(|thread| thread.node == *node);
            threads.push(Thread {
                node: *node,
                slot: before.count() as u8,
                ops,
                done: 0,
                tries: 0,
                waits: false,
                read: Vec::new(),
            });
        }
        let mut world = World {
            nodes: (0..scenario.nodes).map(node).collect(),
            objects: Vec::new(),
            lines: BTreeMap::new(),
            packets: Vec::new(),
            threads,
            left: scenario.budget,
            mail: Vec::new(),
            judge: Judge::default(),
            room: scenario.room,
            defect,
        };
        let regions: Vec<Tag> = (0..scenario.nodes)
            .map(|node| world.at(node, None, |sabre, _| sabre.home.book.reserve(SLAB)))
            .map(Result::unwrap_or_default)
            .collect();
        for (nth, home) in scenario.objects.iter().enumerate() {
            if *home == KEPT {
                world.keep(nth as u64 * u64::from(LINE));
                continue;
            }
            let region = regions[usize::from(*home)];
            let made = world.at(*home, None, |sabre, fx| sabre.home.give(region, LEN, fx));
            let made = made.unwrap_or_default();
            let (tag, generation) = (made.tag, made.generation);
            world.objects.push(Ref { tag, generation });
        }
        world
    }

    /// There is an object with copies, of the home's byte `offset` on.
    fn keep(&mut self, offset: u64) {
        let (version, generation) = (2, 0);
        let meta = Meta {
            generation,
            class: class_of(LINE - 16).unwrap_or(0),
            live: true,
            len: LEN as u16,
        };
        let mut line = [version, meta.to_word(), 0, 0]
            .map(u64::to_be_bytes)
            .concat();
        line.resize(LINE as usize, 0);
        self.lines.insert(Tag(first_line(0).0 + offset), line);
        let tag = Tag(HomeId::of_group(0).start().0 + offset).under(Contract::Object);
        self.objects.push(Ref { tag, generation });
    }

    /// A section of a node.
    fn at<R>(
        &mut self,
        node: NodeId,
        packet: Option<&Parcel>,
        section: impl FnOnce(&mut Sabre, &mut Section<'_, HomeWords<'_, Judge>>) -> R,
    ) -> R {
        let member = Rc::make_mut(&mut self.nodes[usize::from(node)]);
        let sender = Sender {
            node,
            epoch: member.epoch,
            room: OWN_LEN + self.room * GRANULE as usize,
            broken: self.defect,
        };
        let words = HomeWords {
            places: &mut member.places,
            judge: &mut self.judge,
            meets: None,
        };
        let segment = packet.map_or((0, &[][..]), |parcel| {
            (parcel.header.offset, parcel.split().1)
        });
        let mut fx = Section::new(words, &mut member.values, segment, sender);
        let result = section(&mut member.sabre, &mut fx);
        self.packets.extend(fx.sent);
        result
    }

    /// How many nodes there are, dead ones too.
    pub fn nodes(&self) -> NodeId {
        self.nodes.len() as NodeId
    }

    /// Whether a node does.
    pub fn lives(&self, node: NodeId) -> bool {
        !self.judge.dead.contains(node)
    }

    fn living(&self) -> impl Iterator<Item = NodeId> + '_ {
        (0..self.nodes.len() as NodeId).filter(|node| self.lives(*node))
    }

    /// The node that a packet is for. Who serves the home that a group keeps is the lowest node of
    /// the epoch. It dies between packets here, and in the middle of one in [`super::super::kept`].
    fn node_of(&self, packet: &Parcel) -> NodeId {
        match packet.to {
            Dest::Home(home) if !home.is_own() && packet.header.epoch == 1 => 0,
            Dest::Home(home) if !home.is_own() => self.living().next().unwrap_or(0),
            _ => world::node_of(packet),
        }
    }

    /// A packet comes to its node.
    pub fn arrive(&mut self, packet: &Parcel) -> Result<(), Complaint> {
        let node = self.node_of(packet);
        let epoch = self.nodes[usize::from(node)].epoch;
        if self.lives(node) && is_current(&packet.header, epoch, |_| 1) {
            self.serve(packet, node);
            self.settle_threads(node);
        }
        self.judge.verdict()
    }

    /// Serves a packet, until it needs nothing more of a majority.
    fn serve(&mut self, packet: &Parcel, node: NodeId) {
        let (own, rest) = packet.split();
        loop {
            let need = self.at(node, Some(packet), |sabre, fx| {
                sabre.packet(&packet.header, &own, rest.len() as u32, fx);
                sabre.kept.take_need()
            });
            match need {
                None => return,
                Some(Need::Line(line)) => {
                    let nothing = || vec![0; LINE as usize];
                    let value = self.lines.get(&line).cloned().unwrap_or_else(nothing);
                    let epoch = self.epoch(node);
                    self.at(node, None, |sabre, fx| {
                        sabre.kept.fetched((line, epoch), &value, fx);
                    });
                }
                // No region is removed here.
                Some(Need::News) => return,
                Some(Need::Store(line, value)) => {
                    self.lines.insert(line, value);
                    self.at(node, None, |sabre, fx| sabre.kept.stored(fx));
                }
            }
        }
    }

    /// A node asks again.
    pub fn retry(&mut self, node: NodeId) -> Result<(), Complaint> {
        self.at(node, None, |sabre, fx| sabre.resume(fx));
        self.judge.verdict()
    }

    /// Whether something of a node has not ended.
    pub fn is_busy(&self, node: NodeId) -> bool {
        let member = &self.nodes[usize::from(node)];
        let transacts = |thread: &Thread| thread.waits || !member.sabre.may_transact(thread.slot);
        let mut threads = self.threads.iter();
        let doubts = member.sabre.home.participant.in_doubt() > 0;
        let busy = doubts || threads.any(|thread| thread.node == node && transacts(thread));
        self.lives(node) && busy
    }

    /// A node dies.
    pub fn die(&mut self, node: NodeId) {
        self.left.die -= 1;
        self.judge.dead = self.judge.dead.with(node);
    }

    /// Whether a node has not heard of a death.
    pub fn may_enter(&self, node: NodeId) -> bool {
        !self.judge.dead.is_empty() && self.lives(node) && self.epoch(node) == 1
    }

    fn epoch(&self, node: NodeId) -> u32 {
        self.nodes[usize::from(node)].epoch
    }

    /// A node goes into the next epoch, and reports.
    pub fn enter(&mut self, node: NodeId) -> Result<(), Complaint> {
        let members = self.living().fold(Copyset::EMPTY, Copyset::with);
        let gone = self.judge.dead;
        Rc::make_mut(&mut self.nodes[usize::from(node)]).epoch = 2;
        let told = self.at(node, None, |sabre, fx| {
            sabre.enter(members);
            sabre.forget(gone, fx);
            sabre.report()
        });
        let told = told.into_iter().map(|record| (record.tag.home().0, record));
        self.mail.extend(told);
        self.mail.sort_unstable();
        self.settle_threads(node);
        for nth in 0..self.threads.len() {
            let thread = &self.threads[nth];
            let alone = matches!(self.op(nth), Some(Op::Write(object)) if !self.is_there(object));
            if thread.node == node && thread.waits && alone {
                let (slot, number) = (thread.slot, self.number(nth));
                self.at(node, None, |sabre, _| sabre.abandon(Lane { slot, nth: 0 }));
                self.judge.told(number, None);
                self.end(nth);
            }
        }
        self.judge.verdict()
    }

    /// Whether a node can settle: all have reported.
    pub fn may_settle(&self, node: NodeId) -> bool {
        let all = self.living().all(|node| self.epoch(node) == 2);
        all && self.lives(node) && self.nodes[usize::from(node)].settled == 1
    }

    /// It does.
    pub fn settle(&mut self, node: NodeId) -> Result<(), Complaint> {
        let (mine, others) = self.mail.drain(..).partition(|(to, _)| *to == node);
        self.mail = others;
        let mine: Vec<(NodeId, Record)> = mine;
        Rc::make_mut(&mut self.nodes[usize::from(node)]).settled = 2;
        self.at(node, None, |sabre, fx| {
            mine.into_iter().for_each(|(_, record)| sabre.hear(record));
            sabre.settle(fx);
        });
        self.judge.verdict()
    }

    /// The operation that a thread is at.
    pub fn op(&self, thread: usize) -> Option<Op> {
        let thread = &self.threads[thread];
        thread.ops.get(usize::from(thread.done)).copied()
    }

    /// Whether the home of an object lives.
    fn is_there(&self, object: usize) -> bool {
        let home = self.objects[object].tag.home();
        !home.is_own() || self.lives(home.0)
    }

    /// Whether a thread's node knows of a death.
    fn has_entered(&self, thread: usize) -> bool {
        self.epoch(self.threads[thread].node) == 2
    }

    fn version(&self, object: usize) -> u64 {
        let tag = self.objects[object].tag;
        if !tag.home().is_own() {
            let line = self.lines.get(&Tag(first_line(0).0 + tag.offset()));
            let version = line.and_then(|line| line.first_chunk());
            return version.map_or(0, |version| u64::from_be_bytes(*version));
        }
        let places = &self.nodes[usize::from(tag.home().0)].places;
        places.get(&tag).map_or(0, |place| place.version)
    }

    /// The object that a thread is to read next.
    fn next_read(&self, thread: usize) -> Option<usize> {
        let have = self.threads[thread].read.len();
        match self.op(thread)? {
            Op::Both(reads, _) => reads.get(have).copied(),
            Op::Read(object) => Some(object).filter(|_| have == 0),
            Op::Write(_) => None,
        }
    }

    /// Whether a thread can go on by itself.
    pub fn can_go(&self, thread: usize) -> bool {
        let at = &self.threads[thread];
        if at.waits || self.op(thread).is_none() || !self.lives(at.node) {
            return false;
        }
        match self.next_read(thread) {
            // It is whole, or its reader is to be told that it is gone.
            Some(object) if self.is_there(object) => !is_odd(self.version(object)),
            Some(_) => self.has_entered(thread),
            None => self.nodes[usize::from(at.node)].sabre.may_transact(at.slot),
        }
    }

    /// The number of the attempt that a thread is at; what it writes says it.
    fn number(&self, thread: usize) -> u16 {
        let at = &self.threads[thread];
        (thread as u16 + 1) * 64 + u16::from(at.done) * 8 + u16::from(at.tries)
    }

    fn end(&mut self, thread: usize) {
        let at = &mut self.threads[thread];
        at.done += 1;
        (at.tries, at.waits) = (0, false);
        at.read.clear();
    }

    fn again(&mut self, thread: usize) {
        let at = &mut self.threads[thread];
        at.tries += 1;
        at.waits = false;
        at.read.clear();
        if at.tries >= TRIES {
            self.end(thread);
        }
    }

    /// A thread does its next step.
    pub fn go(&mut self, thread: usize) -> Result<(), Complaint> {
        let (number, Some(op)) = (self.number(thread), self.op(thread)) else {
            return Ok(());
        };
        let places = |objects: &[usize]| objects.iter().map(|at| self.objects[*at].tag).collect();
        if self.threads[thread].read.is_empty() {
            let writes = match op {
                Op::Both(_, writes) => places(writes),
                Op::Write(object) => places(&[object]),
                Op::Read(_) => Vec::new(),
            };
            self.judge.begin(number, writes);
        }
        match (self.next_read(thread), op) {
            (Some(object), _) if !self.is_there(object) => {
                self.judge.told(number, Some(false));
                self.end(thread);
            }
            (Some(object), _) => {
                let version = self.version(object);
                self.threads[thread].read.push(version);
                let tag = self.objects[object].tag;
                self.judge.read(number, tag, version);
                if matches!(op, Op::Read(_)) {
                    self.judge.told(number, Some(true));
                    self.end(thread);
                }
            }
            (None, Op::Both(reads, writes)) => self.commit(thread, reads, writes),
            (None, Op::Write(object)) if !self.is_there(object) && self.has_entered(thread) => {
                self.judge.told(number, Some(false));
                self.end(thread);
            }
            (None, Op::Write(object)) => self.write(thread, object),
            (None, Op::Read(_)) => {}
        }
        self.judge.verdict()
    }

    fn write(&mut self, thread: usize, object: usize) {
        let (number, at) = (self.number(thread), &mut self.threads[thread]);
        at.waits = true;
        let (node, slot) = (at.node, at.slot);
        let command = Command::Write(self.objects[object], 0, LEN);
        let values = &mut Rc::make_mut(&mut self.nodes[usize::from(node)]).values;
        values.begin(slot, 0, (bytes_of(number, LEN), 1));
        self.at(node, None, |sabre, fx| sabre.command(slot, command, fx));
    }

    fn commit(&mut self, thread: usize, reads: &[usize], writes: &[usize]) {
        let number = self.number(thread);
        let at = &mut self.threads[thread];
        at.waits = true;
        let (node, slot, version) = (at.node, at.slot, at.read.clone());
        let content = bytes_of(number, LEN);
        let used = self.objects.iter().enumerate().filter_map(|(nth, object)| {
            let read = reads.iter().position(|read| *read == nth);
            let writes = writes.contains(&nth);
            (read.is_some() || writes).then(|| Used {
                object: *object,
                read: read.map(|at| version[at]),
                write: writes.then_some(&content[..]),
            })
        });
        let (plan, mut parts) = Plan::of(&used.collect::<Vec<_>>());
        let values = &mut Rc::make_mut(&mut self.nodes[usize::from(node)]).values;
        values.begin_transaction(slot, 0, &mut parts);
        let gone = match self.epoch(node) {
            1 => Copyset::EMPTY,
            _ => self.judge.dead,
        };
        self.at(node, None, |sabre, fx| {
            sabre.transact(slot, plan, fx);
            // A home that had died before.
            sabre.lose(slot, gone, fx);
        });
        self.settle_threads(node);
    }

    /// Whether a thread waits for its transaction.
    pub fn may_leave(&self, thread: usize) -> bool {
        let (at, op) = (&self.threads[thread], self.op(thread));
        at.waits && self.lives(at.node) && matches!(op, Some(Op::Both(..)))
    }

    /// A thread waits no longer.
    pub fn leave(&mut self, thread: usize) -> Result<(), Complaint> {
        self.left.leave -= 1;
        let (node, slot) = (self.threads[thread].node, self.threads[thread].slot);
        let values = &mut Rc::make_mut(&mut self.nodes[usize::from(node)]).values;
        values.leave_transaction(slot);
        let decided = self.at(node, None, |sabre, fx| sabre.leave(slot, fx));
        let number = self.number(thread);
        self.judge.told(number, (!decided).then_some(false));
        self.end(thread);
        self.judge.verdict()
    }

    /// What threads of a node have been answered.
    fn settle_threads(&mut self, node: NodeId) {
        for nth in 0..self.threads.len() {
            let at = &self.threads[nth];
            if at.node != node || !at.waits {
                continue;
            }
            let (slot, number, op) = (at.slot, self.number(nth), self.op(nth));
            let values = &mut Rc::make_mut(&mut self.nodes[usize::from(node)]).values;
            let outcome = match op {
                Some(Op::Both(..)) => values.end_transaction(slot),
                _ => values
                    .take(Lane { slot, nth: 0 })
                    .map(|(outcome, _)| outcome),
            };
            match outcome {
                None => {}
                Some(Outcome::Committed | Outcome::Written(_)) => {
                    self.judge.told(number, Some(true));
                    self.end(nth);
                }
                Some(Outcome::Aborted(reason, _) | Outcome::Refused(reason)) => {
                    self.judge.told(number, Some(false));
                    match reason {
                        Reason::Locked | Reason::Invalid => self.again(nth),
                        _ => self.end(nth),
                    }
                }
                Some(_) => self.end(nth),
            }
        }
    }

    /// Whether everything has ended that was to be done.
    pub fn is_quiet(&self) -> bool {
        let over = |nth: usize| {
            let at = &self.threads[nth];
            !self.lives(at.node) || !at.waits && self.op(nth).is_none()
        };
        let settled = |node: NodeId| {
            let member = &self.nodes[usize::from(node)];
            self.judge.dead.is_empty() || member.settled == 2
        };
        self.packets.is_empty()
            && (0..self.threads.len()).all(over)
            && self
                .living()
                .all(|node| settled(node) && !self.is_busy(node))
    }

    /// What is wrong with a state in which everything has ended.
    pub fn verdict(&self) -> Option<Complaint> {
        if !self.is_quiet() {
            return None;
        }
        let mut there = (0..self.objects.len()).filter(|object| self.is_there(*object));
        if let Some(object) = there.find(|object| is_odd(self.version(*object))) {
            return Some((LOCKED, "SABRes §7", format!("object {object} is")));
        }
        self.judge.over().err()
    }

    /// Drops packets that change nothing any more.
    pub fn purge(&mut self) {
        let counts = |packet: &Parcel| {
            let node = self.node_of(packet);
            let now = self.epoch(node) <= packet.header.epoch;
            let heard = packet.header.kind.asks_object() || self.is_busy(node);
            self.lives(node) && now && heard
        };
        let keep: Vec<bool> = self.packets.iter().map(counts).collect();
        let mut keep = keep.into_iter();
        self.packets.retain(|_| keep.next().unwrap_or(true));
        self.packets.sort_by(|a, b| key(a).cmp(&key(b)));
        self.packets.dedup();
    }
}

impl Unpacked for World {
    fn fingerprint(&self) -> u128 {
        let mut print = Print::default();
        for node in &self.nodes {
            node.sabre.fingerprint(&mut print);
            (&node.values, &node.places, node.epoch, node.settled).hash(&mut print);
        }
        for packet in &self.packets {
            (key(packet), packet.header.epoch).hash(&mut print);
        }
        print.write_usize(self.packets.len());
        (&self.threads, self.left, &self.mail, &self.judge).hash(&mut print);
        self.lines.hash(&mut print);
        print.whole()
    }
}
