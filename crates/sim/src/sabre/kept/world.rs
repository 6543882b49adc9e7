//! A rack at one time: what a majority has, the keepers, requesters and packets on their way.

use super::super::memory::{HomeWords, LEN, Places, Value, bytes_of, writes_of};
use super::super::world::key;
use super::judge::{Judge, Nobody};
use super::scenario::{Budget, Does, Op, Scenario};
use crate::driver::{Complaint, Unpacked};
use crate::print::Print;
use rackmem_proto::abd::{Layout, first_line};
use rackmem_proto::call::Parcel;
use rackmem_proto::sabre::rule::Refusal;
use rackmem_proto::sabre::transaction::{Plan, Used};
use rackmem_proto::sabre::{
    Book, Command, Defect, GRANULE, Known, Laid, Lane, Meta, Need, Outcome, Ref, Sabre, Section,
    Sender, Values, bytes_with_rows, class_of, span_of,
};
use rackmem_proto::wire::{Contract, Copyset, Dest, HomeId, Kind, NodeId, OWN_LEN, Tag};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Bytes of a line.
const LINE: u32 = 4096;
/// The version of the first object.
const FIRST: u64 = 2;
/// The first write, of the first object.
const WRITTEN: u16 = 1;

#[derive(Clone)]
struct Member {
    sabre: Sabre,
    values: Values,
    places: Places,
    epoch: u32,
    dead: bool,
    /// What it has heard of the region.
    heard: u8,
}

/// The region is there, is removed, and another one has its number.
const REMOVED: u8 = 1;
const AGAIN: u8 = 2;

/// The group whose region is removed.
const FIRST_GROUP: u16 = 0;

/// The home that the first group keeps, once this has become of its region.
fn laid(places: u32, became: u8, defect: Option<Defect>) -> Laid {
    let bytes = bytes_with_rows(u64::from(places * LINE), LINE);
    let reuses = defect == Some(Defect::ReuseAddresses);
    let next = became > 0 && !(reuses && became == AGAIN);
    Laid {
        first: if became == AGAIN { 3 } else { 1 },
        base: if next { span_of(bytes, LINE) } else { 0 },
        layout: Layout::new(LINE, bytes).filter(|_| became != REMOVED),
    }
}

/// What a keeper waits for: a packet, and what a majority is to have.
#[derive(Clone, PartialEq, Debug)]
struct Work {
    packet: Parcel,
    line: Tag,
    value: Vec<u8>,
    /// Of the region as its keeper knew it.
    of: u8,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    ops: &'static [Op],
    /// Operations that are over.
    done: u8,
    /// What the transaction that it is at has read, under which versions.
    reads: Vec<(Ref, u64)>,
    /// It waits for an answer.
    pub waits: bool,
}

/// See the module.
#[derive(Clone)]
pub struct World {
    /// Of which a majority has what.
    lines: BTreeMap<Tag, Vec<u8>>,
    judge: Judge,
    nodes: Vec<Rc<Member>>,
    keepers: usize,
    /// The newest epoch. Its keeper is the node before it.
    epoch: u32,
    work: Option<Rc<Work>>,
    /// What came to a majority when the last keeper died: until all have left its epoch, it may
    /// say otherwise.
    decided: Option<Rc<Work>>,
    pub packets: Vec<Parcel>,
    pub threads: Vec<Thread>,
    pub left: Budget,
    regions: u16,
    places: u32,
    /// What has become of the first region.
    became: u8,
    room: usize,
    pub defect: Option<Defect>,
}

/// An object that there is from the beginning, of so many regions.
fn object(regions: u16, nth: u32) -> Ref {
    let (group, place) = (nth % u32::from(regions), nth / u32::from(regions));
    let start = HomeId::of_group(group as u16).start();
    Ref {
        tag: Tag(start.0 + u64::from(place * LINE)).under(Contract::Object),
        generation: 0,
    }
}

/// Whether a line is of the region that is removed.
fn is_of_first(line: Tag) -> bool {
    line.home().0 == FIRST_GROUP
}

/// Who keeps the home in an epoch.
fn keeper_of(epoch: u32) -> usize {
    epoch as usize - 1
}

impl World {
    /// In which nothing has happened, but that the first object was made and written.
    pub fn new(scenario: &Scenario, defect: Option<Defect>) -> Self {
        let keepers = usize::from(scenario.budget.die) + 1;
        let node = |nth: usize| {
            let book = Book::new(HomeId::of(nth as NodeId), 0, 1);
            let mut sabre = Sabre::new((nth as NodeId, 1), book);
            for group in 0..scenario.regions {
                sabre.kept.lay_out(group, laid(scenario.places, 0, defect));
            }
            Rc::new(Member {
                sabre,
                values: Values::default(),
                places: Places::new(),
                epoch: 1,
                dead: false,
                heard: 0,
            })
        };
        let thread = |ops: &&'static [Op]| Thread {
            ops,
            done: 0,
            reads: Vec::new(),
            waits: false,
        };
        let generation = 0;
        let meta = Meta {
            generation,
            class: class_of(LINE - 16).unwrap_or(0),
            live: true,
            len: LEN as u16,
        };
        let mut judge = Judge::default();
        let mut lines = BTreeMap::new();
        for nth in 0..scenario.objects() {
            let mut line = [FIRST, meta.to_word(), 0, 0].map(u64::to_be_bytes).concat();
            line.extend(bytes_of(WRITTEN + nth as u16, LEN));
            line.resize(LINE as usize, 0);
            let object = object(scenario.regions, nth);
            judge.stored(&[(object.tag, line.clone())]);
            judge.given(object);
            let group = object.tag.home().group().unwrap_or_default();
            lines.insert(Tag(first_line(group).0 + object.tag.offset()), line);
        }
        World {
            lines,
            judge,
            nodes: (0..keepers + scenario.threads.len()).map(node).collect(),
            keepers,
            epoch: 1,
            work: None,
            decided: None,
            packets: Vec::new(),
            threads: scenario.threads.iter().map(thread).collect(),
            left: scenario.budget,
            regions: scenario.regions,
            places: scenario.places,
            became: 0,
            room: scenario.room,
            defect,
        }
    }

    /// The node of a packet.
    pub fn node_of(&self, packet: &Parcel) -> usize {
        match packet.to {
            Dest::Home(_) => keeper_of(packet.header.epoch),
            Dest::Requester(id) => id.node.into(),
            Dest::Agent(node) => node.into(),
            Dest::Agents { .. } | Dest::Switch => usize::MAX,
        }
    }

    fn at<R>(
        &mut self,
        node: usize,
        packet: Option<&Parcel>,
        section: impl FnOnce(&mut Sabre, &mut Section<'_, HomeWords<'_, Nobody>>) -> R,
    ) -> R {
        let member = Rc::make_mut(&mut self.nodes[node]);
        let sender = Sender {
            node: node as NodeId,
            epoch: member.epoch,
            room: OWN_LEN + self.room * GRANULE as usize,
            broken: self.defect,
        };
        let words = HomeWords {
            places: &mut member.places,
            judge: &mut Nobody,
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

    /// Whether a packet can come to its node now: a keeper does one thing after the other.
    pub fn can_come(&self, packet: &Parcel) -> bool {
        let asks = packet.header.kind.asks_object();
        !asks || self.work.is_none() || self.at_once(packet)
    }

    fn at_once(&self, packet: &Parcel) -> bool {
        let node = &self.nodes[self.node_of(packet)];
        node.sabre.kept.answers_at_once(&packet.header)
    }

    /// A packet comes to its node.
    pub fn arrive(&mut self, packet: &Parcel) -> Result<(), Complaint> {
        let nth = self.node_of(packet);
        let node = &self.nodes[nth];
        let late = node.epoch != packet.header.epoch;
        if late || (node.dead && !self.at_once(packet)) {
            return Ok(());
        }
        self.serve(packet, nth);
        self.settle(nth);
        self.judge.verdict()
    }

    /// Serves a packet, until it is answered or a majority is to have something.
    fn serve(&mut self, packet: &Parcel, node: usize) {
        let (own, rest) = packet.split();
        loop {
            let need = self.at(node, Some(packet), |sabre, fx| {
                sabre.packet(&packet.header, &own, rest.len() as u32, fx);
                sabre.kept.take_need()
            });
            match need {
                // What asks for what the node has not heard of comes again.
                None | Some(Need::News) => return,
                Some(Need::Line(line)) if !self.is_of_region(line, self.nodes[node].heard) => {
                    return;
                }
                Some(Need::Line(line)) => {
                    let nothing = || vec![0; LINE as usize];
                    let value = self.lines.get(&line).cloned().unwrap_or_else(nothing);
                    let epoch = self.nodes[node].epoch;
                    self.at(node, None, |sabre, fx| {
                        sabre.kept.fetched((line, epoch), &value, fx);
                    });
                }
                Some(Need::Store(line, value)) => {
                    let packet = packet.clone();
                    self.work = Some(Rc::new(Work {
                        packet,
                        line,
                        value,
                        of: self.nodes[node].heard,
                    }));
                    return;
                }
            }
        }
    }

    /// Whether something is on its way to a majority.
    pub fn stores(&self) -> bool {
        self.work.is_some()
    }

    fn put(&mut self, work: &Work) {
        self.lines.insert(work.line, work.value.clone());
        self.judge_line(work);
    }

    fn judge_line(&mut self, work: &Work) {
        // Who has removed it knows, and else all do.
        let knows = |node: &&Rc<Member>| node.heard == self.became;
        let Some(node) = self.nodes.iter().find(knows) else {
            return;
        };
        let kept = &node.sabre.kept;
        let behind = |line| self.lines.get(&line).map(Vec::as_slice);
        let lines = kept.lines_of(work.line, &work.value, behind);
        self.judge.stored(&lines);
    }

    /// Whether members take a line of the region that was known as this.
    fn is_of_region(&self, line: Tag, of: u8) -> bool {
        let next = self.defect == Some(Defect::StoreInNext) && self.became == AGAIN;
        !is_of_first(line) || of == self.became || next
    }

    /// A majority has it, unless the region is removed.
    pub fn stored(&mut self) -> Result<(), Complaint> {
        let work = self.work.take();
        if let Some(work) = work.filter(|work| self.is_of_region(work.line, work.of)) {
            let node = keeper_of(self.epoch);
            self.put(&work);
            self.at(node, None, |sabre, fx| sabre.kept.stored(fx));
            self.serve(&work.packet, node);
        }
        self.judge.verdict()
    }

    /// Whether the keeper may die now.
    pub fn may_die(&self) -> bool {
        self.left.die > 0 && self.all_in()
    }

    /// The keeper dies. What it was storing has come to a majority, or has not.
    pub fn die(&mut self, stored: bool) -> Result<(), Complaint> {
        self.left.die -= 1;
        let work = self.work.take();
        self.decided = work.filter(|work| stored && self.is_of_region(work.line, work.of));
        if let Some(work) = &self.decided {
            self.lines.insert(work.line, work.value.clone());
        }
        Rc::make_mut(&mut self.nodes[keeper_of(self.epoch)]).dead = true;
        self.epoch += 1;
        self.judge.verdict()
    }

    /// Whether a node has yet to hear what has become of the region.
    pub fn has_to_hear(&self, node: usize) -> bool {
        !self.nodes[node].dead && self.nodes[node].heard < self.became
    }

    /// It hears.
    pub fn hear(&mut self, node: usize) {
        let laid = laid(self.places, self.became, self.defect);
        let member = Rc::make_mut(&mut self.nodes[node]);
        member.heard = self.became;
        member.sabre.kept.lay_out(FIRST_GROUP, laid);
    }

    /// A thread has the rack agree what becomes of the region, and its node hears first.
    fn becomes(&mut self, thread: usize, what: u8) {
        self.became = what;
        if what == REMOVED {
            self.judge.removed(HomeId::of_group(FIRST_GROUP));
            self.lines.retain(|line, _| !is_of_first(*line));
            self.decided.take_if(|work| is_of_first(work.line));
        }
        self.hear(self.keepers + thread);
    }

    /// Whether a node has yet to come into the epoch.
    pub fn is_behind(&self, node: usize) -> bool {
        !self.nodes[node].dead && self.nodes[node].epoch < self.epoch
    }

    /// Whether all that live are in the epoch.
    fn all_in(&self) -> bool {
        !(0..self.nodes.len()).any(|node| self.is_behind(node))
    }

    pub fn nodes(&self) -> std::ops::Range<usize> {
        0..self.nodes.len()
    }

    /// A node comes into the epoch. The last one ends what was before.
    pub fn enter(&mut self, node: usize) -> Result<(), Complaint> {
        let epoch = self.epoch;
        Rc::make_mut(&mut self.nodes[node]).epoch = epoch;
        self.at(node, None, |sabre, _| sabre.enter(Copyset::EMPTY));
        if self.all_in() {
            if let Some(work) = self.decided.take() {
                self.judge_line(&work);
            }
            for node in self.nodes() {
                if !self.nodes[node].dead {
                    self.at(node, None, |sabre, fx| sabre.settle(fx));
                }
            }
            // Nobody is in the epoch before.
            self.packets.retain(|packet| packet.header.epoch == epoch);
        }
        self.judge.verdict()
    }

    /// Whether the node of a thread may ask again.
    pub fn may_ask(&self, thread: usize) -> bool {
        let idle = self.packets.is_empty() && self.work.is_none();
        self.threads[thread].waits && self.all_in() && (idle || self.left.early > 0)
    }

    /// It does.
    pub fn retry(&mut self, thread: usize) -> Result<(), Complaint> {
        let idle = self.packets.is_empty() && self.work.is_none();
        self.left.early -= u8::from(!idle);
        self.at(self.keepers + thread, None, |sabre, fx| sabre.resume(fx));
        self.judge.verdict()
    }

    /// The operation that a thread is at.
    pub fn op(&self, thread: usize) -> Option<Op> {
        let thread = &self.threads[thread];
        thread.ops.get(usize::from(thread.done)).copied()
    }

    /// Whether a thread can go on by itself.
    pub fn can_go(&self, thread: usize) -> bool {
        !self.threads[thread].waits && self.op(thread).is_some()
    }

    /// The number of the write that a thread is at.
    fn write_of(&self, thread: usize) -> u16 {
        (thread as u16 + 1) * 16 + u16::from(self.threads[thread].done)
    }

    /// A thread begins its next operation.
    pub fn go(&mut self, thread: usize) -> Result<(), Complaint> {
        let Some(op) = self.op(thread) else {
            return Ok(());
        };
        if let Op::Again | Op::RemoveOnly = op {
            self.becomes(thread, if op == Op::Again { AGAIN } else { REMOVED });
            self.threads[thread].done += 1;
            return self.judge.verdict();
        }
        if op == Op::Remove {
            self.becomes(thread, REMOVED);
        }
        self.threads[thread].waits = true;
        let ([first, second], write) = (self.both(), self.write_of(thread));
        let object = match (op, self.threads[thread].reads.len()) {
            (Op::Audit, 1) | (Op::ReadOther | Op::WriteOther, _) => second,
            (Op::Audit, 2..) => {
                let reads = self.threads[thread].reads.iter();
                let reads = reads.map(|(object, version)| Used {
                    object: *object,
                    read: Some(*version),
                    write: None,
                });
                let reads: Vec<Used<'_>> = reads.collect();
                return self.transact(thread, &reads);
            }
            _ => first,
        };
        if let Some(both) = op.together() {
            let content = bytes_of(write, LEN);
            let used = |(object, (writes, expects)): (Ref, Does)| Used {
                object,
                read: expects.then_some(FIRST),
                write: writes.then_some(&content[..]),
            };
            let used = [first, second].into_iter().zip(both).map(used);
            return self.transact(thread, &used.collect::<Vec<_>>());
        }
        let known = Known {
            version: 0,
            len: LEN,
        };
        let command = match op {
            Op::Read | Op::ReadOther | Op::Audit => Command::Read(object, known),
            Op::Write | Op::WriteOther => Command::Write(object, 0, LEN),
            Op::WriteIf => Command::Write(object, FIRST, LEN),
            Op::Free => Command::Free(object),
            Op::Remove => Command::Remove(object.tag),
            Op::Make => {
                let known = self.nodes[self.keepers + thread].heard;
                let base = laid(self.places, known, self.defect).base;
                Command::Alloc(Tag(first.tag.0 + base), LEN)
            }
            Op::WriteBoth
            | Op::WriteBothIf
            | Op::WriteFirstIf
            | Op::WriteSecondIf
            | Op::RemoveOnly
            | Op::Again => {
                return Ok(());
            }
        };
        if matches!(op, Op::Read | Op::ReadOther | Op::Audit) {
            self.judge.begin(thread, object);
        }
        if op == Op::Audit && object == first {
            self.judge.begin_audit(thread);
        }
        let value = bytes_of(if op.writes() { write } else { 0 }, LEN);
        let node = self.keepers + thread;
        let values = &mut Rc::make_mut(&mut self.nodes[node]).values;
        values.begin(0, 0, (value, 1));
        self.at(node, None, |sabre, fx| sabre.command(0, command, fx));
        self.judge.verdict()
    }

    /// The objects that a transaction reads, in this order.
    fn both(&self) -> [Ref; 2] {
        [0, 1].map(|nth| object(self.regions, nth))
    }

    /// A thread commits a transaction.
    fn transact(&mut self, thread: usize, used: &[Used<'_>]) -> Result<(), Complaint> {
        let (plan, mut parts) = Plan::of(used);
        let node = self.keepers + thread;
        let values = &mut Rc::make_mut(&mut self.nodes[node]).values;
        values.begin_transaction(0, 0, &mut parts);
        self.at(node, None, |sabre, fx| sabre.transact(0, plan, fx));
        self.judge.verdict()
    }

    /// What a node's thread has been answered.
    fn settle(&mut self, node: usize) {
        let Some(thread) = node.checked_sub(self.keepers) else {
            return;
        };
        let values = &mut Rc::make_mut(&mut self.nodes[node]).values;
        let whole = |outcome| (outcome, Vec::new());
        let transaction = values.end_transaction(0).map(whole);
        let ended = values.take(Lane { slot: 0, nth: 0 });
        let Some((outcome, bytes)) = ended.or(transaction) else {
            return;
        };
        let Some(op) = self.op(thread) else {
            return;
        };
        let write = self.write_of(thread);
        let meant = self.both()[usize::from(matches!(op, Op::ReadOther | Op::WriteOther))];
        match outcome {
            Outcome::Read { version, .. } => {
                let mut value = Value::default();
                (value.iter_mut().zip(writes_of(&bytes))).for_each(|(to, write)| *to = write);
                self.judge.read(thread, value);
                if op == Op::Audit {
                    let both = self.both();
                    let reads = &mut self.threads[thread].reads;
                    let object = both[reads.len() % 2];
                    reads.push((object, version));
                    self.threads[thread].waits = false;
                    return;
                }
            }
            Outcome::Written(version) => {
                let expected = if op == Op::WriteIf { FIRST } else { 0 };
                self.judge.written(write, version, expected);
            }
            Outcome::Conflict(_) => self.judge.not_written(write),
            Outcome::Given(object) => self.judge.given(object),
            Outcome::Refused(reason) => {
                if op.writes() {
                    self.judge.not_written(write);
                }
                match Refusal::of(reason) {
                    Some(Refusal::Gone) => self.judge.gone(thread, meant),
                    _ => self.judge.not_read(thread),
                }
            }
            Outcome::Committed => match op.together() {
                Some(both) => {
                    let expected = both.map(|(_, expects)| expects.then_some(FIRST));
                    self.judge.together(write, expected);
                }
                None => self.judge.audited(thread, true),
            },
            Outcome::Aborted(..) if op.writes() => {
                self.judge.not_committed(write, self.regions > 1);
            }
            Outcome::Aborted(..) => self.judge.audited(thread, false),
            Outcome::Freed if op == Op::Remove => self.judge.removal_is_over(),
            Outcome::Freed => {}
        }
        let at = &mut self.threads[thread];
        (at.done, at.waits) = (at.done + 1, false);
        at.reads.clear();
    }

    /// What is wrong when all has ended.
    pub fn left_over(&self) -> Option<Complaint> {
        self.judge.all_given()
    }

    /// Whether all has ended.
    pub fn is_quiet(&self) -> bool {
        let over = |thread: usize| !self.threads[thread].waits && !self.can_go(thread);
        let quiet = self.packets.is_empty() && self.work.is_none() && self.all_in();
        quiet && (0..self.threads.len()).all(over)
    }

    /// Drops packets that change nothing any more.
    pub fn purge(&mut self) {
        let (threads, keepers) = (&self.threads, self.keepers);
        let waits = |node: NodeId| {
            let thread = usize::from(node).checked_sub(keepers);
            thread.is_some_and(|thread| threads[thread].waits)
        };
        let answers = |packet: &Parcel| waits(packet.header.requester.node);
        let asks = |kind: Kind| kind.asks_object();
        self.packets
            .retain(|packet| asks(packet.header.kind) || answers(packet));
        self.packets.sort_by(|a, b| key(a).cmp(&key(b)));
        self.packets.dedup();
    }
}

impl Unpacked for World {
    fn fingerprint(&self) -> u128 {
        let mut print = Print::default();
        self.lines.hash(&mut print);
        self.judge.hash(&mut print);
        for node in &self.nodes {
            node.sabre.fingerprint(&mut print);
            (&node.values, &node.places, node.epoch, node.dead).hash(&mut print);
            node.heard.hash(&mut print);
        }
        for packet in &self.packets {
            (key(packet), packet.header.epoch).hash(&mut print);
        }
        print.write_usize(self.packets.len());
        for work in [&self.work, &self.decided].into_iter().flatten() {
            (key(&work.packet), work.line, &work.value, work.of).hash(&mut print);
        }
        (self.work.is_some(), &self.threads, self.left, self.epoch).hash(&mut print);
        self.became.hash(&mut print);
        print.whole()
    }
}
