//! A rack at one time: the home's memory, every node's part, packets on their way and threads.

use super::judge::{Judge, Life, Watch};
use super::memory::{HomeWords, LEN, Places, Value, bytes_of, writes_of};
use super::scenario::{Budget, Op, Scenario, Which};
use crate::driver::{Complaint, Unpacked};
use crate::print::Print;
use rackmem_proto::call::Parcel;
use rackmem_proto::sabre::rule::{Refusal, Wanted, is_odd, may_copy, next, taken, unmoved};
use rackmem_proto::sabre::{
    Book, Command, Defect, GRANULE, Known, Lane, Meta, Outcome, Ref, SLAB, Sabre, Section, Sender,
    Values,
};
use rackmem_proto::wire::{Dest, HomeId, NodeId, OWN_LEN, Tag};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// The node whose memory it is.
const HOME: NodeId = 0;
/// Attempts of a thread at one operation. Then it leaves it.
const TRIES: u8 = 3;

/// The node that a packet goes to.
pub fn node_of(parcel: &Parcel) -> NodeId {
    match parcel.to {
        Dest::Home(home) => home.0,
        Dest::Requester(id) => id.node,
        Dest::Agent(node) => node,
        Dest::Agents { .. } | Dest::Switch => NodeId::MAX,
    }
}

/// What packets are ordered by.
pub fn key(parcel: &Parcel) -> (NodeId, u8, u32, u16, u64, u64, u64, &[u8]) {
    let (header, (own, bytes)) = (&parcel.header, parcel.split());
    let (kind, seq) = (header.kind as u8, header.seq.0);
    let more = u64::from(header.reason as u8) << 32 | u64::from(header.requester.node);
    let own = own.a ^ own.b.rotate_left(20);
    (
        node_of(parcel),
        kind,
        header.offset,
        more as u16,
        seq,
        own,
        more ^ header.tag.0,
        bytes,
    )
}

#[derive(Clone)]
struct Member {
    sabre: Sabre,
    values: Values,
}

/// Where a thread of the home's process is in its operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Step {
    /// It has seen a version.
    Version(u64),
    /// It may copy, and has copied so many granules.
    Copying(u64, u8, Value),
    /// Writers are out, and it has written so many granules.
    Writing(u64, u8),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Thread {
    node: NodeId,
    ops: &'static [Op],
    /// Operations that are over.
    done: u8,
    /// Attempts at this one.
    tries: u8,
    /// It waits for an answer.
    pub waits: bool,
    step: Option<Step>,
}

/// See the module.
#[derive(Clone)]
pub struct World {
    places: Places,
    judge: Judge,
    nodes: Vec<Rc<Member>>,
    pub packets: Vec<Parcel>,
    pub threads: Vec<Thread>,
    pub left: Budget,
    /// The objects that there have been.
    objects: [Option<(Ref, u64, Life)>; 2],
    region: Tag,
    pub defect: Option<Defect>,
}

impl Thread {
    /// The node it runs on.
    pub fn node(&self) -> NodeId {
        self.node
    }
}

impl World {
    /// In which nothing has happened, but that the first object was made.
    pub fn new(scenario: &Scenario, defect: Option<Defect>) -> Self {
        let node = |nth: usize| {
            let book = Book::new(HomeId::of(nth as NodeId), 0, 1);
            let mut sabre = Sabre::new((nth as NodeId, 1), book);
            sabre.home.kernel_reads = scenario.by_granules;
            let values = Values::default();
            Rc::new(Member { sabre, values })
        };
        let thread = |node: usize, ops: &&'static [Op]| Thread {
            node: node as NodeId,
            ops,
            done: 0,
            tries: 0,
            waits: false,
            step: None,
        };
        let own = scenario.own.iter().map(|ops| thread(0, ops));
        let others = scenario.others.iter().enumerate();
        let others = others.map(|(nth, ops)| thread(nth + 1, ops));
        let mut world = World {
            places: Places::new(),
            judge: Judge::default(),
            nodes: (0..=scenario.others.len()).map(node).collect(),
            packets: Vec::new(),
            threads: own.chain(others).collect(),
            left: scenario.budget,
            objects: [None; 2],
            region: Tag(0),
            defect,
        };
        let region = world.at(HOME, None, None, |sabre, _| sabre.home.book.reserve(SLAB));
        world.region = region.unwrap_or_default();
        world.make(0);
        world
    }

    /// A section of a node.
    fn at<R>(
        &mut self,
        node: NodeId,
        packet: Option<&Parcel>,
        meets: Option<u16>,
        section: impl FnOnce(&mut Sabre, &mut Section<'_, HomeWords<'_, Judge>>) -> R,
    ) -> R {
        let sender = Sender {
            node,
            epoch: 1,
            room: OWN_LEN + GRANULE as usize,
            broken: self.defect,
        };
        let Member { sabre, values } = Rc::make_mut(&mut self.nodes[usize::from(node)]);
        let words = HomeWords {
            places: &mut self.places,
            judge: &mut self.judge,
            meets,
        };
        let segment = packet.map_or((0, &[][..]), |parcel| {
            (parcel.header.offset, parcel.split().1)
        });
        let mut fx = Section::new(words, values, segment, sender);
        let result = section(sabre, &mut fx);
        self.packets.extend(fx.sent);
        result
    }

    fn make(&mut self, nth: usize) {
        let region = self.region;
        let made = self.at(HOME, None, None, |sabre, fx| {
            sabre.home.give(region, LEN, fx)
        });
        if let Ok(answer) = made {
            let (tag, generation) = (answer.tag, answer.generation);
            let life = (tag, self.judge.life_of(tag));
            self.objects[nth] = Some((Ref { tag, generation }, answer.version, life));
        }
    }

    /// A packet comes to its node.
    pub fn arrive(&mut self, packet: &Parcel, meets: Option<u16>) -> Result<(), Complaint> {
        let (node, (own, rest)) = (node_of(packet), packet.split());
        self.at(node, Some(packet), meets, |sabre, fx| {
            sabre.packet(&packet.header, &own, rest.len() as u32, fx);
        });
        self.settle(node);
        self.judge.verdict()
    }

    /// A node asks again.
    pub fn retry(&mut self, node: NodeId) -> Result<(), Complaint> {
        self.at(node, None, None, |sabre, fx| sabre.resume(fx));
        self.judge.verdict()
    }

    /// The operation that a thread is at.
    pub fn op(&self, thread: usize) -> Option<Op> {
        let thread = &self.threads[thread];
        thread.ops.get(usize::from(thread.done)).copied()
    }

    /// Whether a thread can go on by itself.
    pub fn can_go(&self, thread: usize) -> bool {
        let (busy, op) = (self.threads[thread].waits, self.op(thread));
        !busy
            && match op {
                None => false,
                Some(Op::Make) => true,
                Some(op) => self.object(of(op)).is_some(),
            }
    }

    /// The write that a thread of the home's process would make now, all of it,
    /// on the first object.
    pub fn would_write(&self, thread: usize) -> Option<u16> {
        let at = &self.threads[thread];
        let writes = matches!(self.op(thread), Some(Op::Write(Which::First)));
        (at.node == HOME && at.step.is_none() && writes).then(|| self.write_of(thread))
    }

    /// Another thread has made that write meanwhile.
    pub fn wrote(&mut self, thread: usize, write: u16) {
        if self.judge.has(write) {
            self.end(thread);
        }
    }

    fn object(&self, which: Which) -> Option<(Ref, u64)> {
        self.objects[which as usize].map(|(object, version, _)| (object, version))
    }

    fn life(&self, which: Which) -> Option<Life> {
        self.objects[which as usize].map(|(.., life)| life)
    }

    /// The number of the write that a thread is at.
    fn write_of(&self, thread: usize) -> u16 {
        (thread as u16 + 1) * 16 + u16::from(self.threads[thread].done)
    }

    fn end(&mut self, thread: usize) {
        let at = &mut self.threads[thread];
        at.done += 1;
        (at.tries, at.waits, at.step) = (0, false, None);
    }

    /// Begins anew, or leaves it after so many attempts.
    fn again(&mut self, thread: usize) {
        let at = &mut self.threads[thread];
        at.tries += 1;
        (at.waits, at.step) = (false, None);
        if at.tries >= TRIES {
            self.end(thread);
        }
    }

    /// A thread does its next step.
    pub fn go(&mut self, thread: usize) -> Result<(), Complaint> {
        if let Some(op) = self.op(thread) {
            match self.threads[thread].node {
                HOME => self.step(thread, op),
                node => self.ask(thread, node, op),
            }
        }
        self.judge.verdict()
    }

    fn ask(&mut self, thread: usize, node: NodeId, op: Op) {
        let Some((object, version)) = self.object(of(op)) else {
            return;
        };
        let at = &mut self.threads[thread];
        at.waits = true;
        let (tries, write) = (at.tries, self.write_of(thread));
        let life = self.life(of(op));
        let command = match op {
            // A reader that expects a length asks for all its granules together.
            Op::Read(_) if tries == 0 => {
                let known = Known {
                    version: 0,
                    len: LEN,
                };
                Command::Read(object, known)
            }
            Op::Read(_) => Command::ReadLocked(object),
            Op::Write(_) => Command::Write(object, 0, LEN),
            Op::WriteIf(_) => Command::Write(object, version, LEN),
            Op::Free(_) | Op::Make => Command::Free(object),
        };
        if let (Op::Read(_), Some(life)) = (op, life) {
            self.judge.begin(thread, life);
        }
        let writes = matches!(command, Command::Write(..));
        let value = bytes_of(if writes { write } else { 0 }, LEN);
        let values = &mut Rc::make_mut(&mut self.nodes[usize::from(node)]).values;
        values.begin(0, 0, (value, 1));
        self.at(node, None, None, |sabre, fx| sabre.command(0, command, fx));
    }

    /// What a node's thread has been answered.
    fn settle(&mut self, node: NodeId) {
        let Some(thread) = self.threads.iter().position(|t| t.node == node && t.waits) else {
            return;
        };
        let values = &mut Rc::make_mut(&mut self.nodes[usize::from(node)]).values;
        let Some((outcome, bytes)) = values.take(Lane { slot: 0, nth: 0 }) else {
            return;
        };
        let Some(op) = self.op(thread) else {
            return;
        };
        let write = self.write_of(thread);
        let expected = match (op, self.object(of(op))) {
            (Op::WriteIf(_), Some((_, version))) => version,
            _ => 0,
        };
        match outcome {
            Outcome::Read { .. } => {
                let mut value = Value::default();
                (value.iter_mut().zip(writes_of(&bytes))).for_each(|(to, write)| *to = write);
                self.judge.read(thread, value);
            }
            Outcome::Written(version) => self.judge.written(write, version, expected),
            Outcome::Conflict(_) => self.judge.not_written(write),
            Outcome::Freed | Outcome::Given(_) | Outcome::Committed | Outcome::Aborted(..) => {}
            Outcome::Refused(reason) => {
                if matches!(op, Op::Write(_) | Op::WriteIf(_)) {
                    self.judge.not_written(write);
                }
                match (Refusal::of(reason), self.life(of(op))) {
                    (Some(Refusal::Gone), Some(life)) => self.judge.gone(thread, life),
                    (Some(Refusal::Locked | Refusal::Torn), _) => {
                        self.judge.not_read(thread);
                        return self.again(thread);
                    }
                    _ => self.judge.not_read(thread),
                }
            }
        }
        self.end(thread);
    }

    /// A load or store of a thread of the home's process.
    fn step(&mut self, thread: usize, op: Op) {
        if op == Op::Make {
            self.make(1);
            return self.end(thread);
        }
        let (Some((object, expected)), Some(life)) = (self.object(of(op)), self.life(of(op)))
        else {
            return;
        };
        let tag = object.tag;
        let words = self.places.get(&tag).copied().unwrap_or_default();
        let meta = Meta::from_word(words.meta);
        let wanted = Wanted {
            generation: object.generation,
            known: 0,
        };
        let step = self.threads[thread].step;
        let next_step = match (op, step) {
            (Op::Free(_), _) => {
                let freed = self.at(HOME, None, None, |sabre, fx| {
                    sabre.home.free(tag, object.generation, fx)
                });
                return match freed.map_err(Refusal::of) {
                    Err(Some(Refusal::Locked)) => self.again(thread),
                    _ => self.end(thread),
                };
            }
            (Op::Read(_), None) => {
                self.judge.begin(thread, life);
                Step::Version(words.version)
            }
            (Op::Read(_), Some(Step::Version(version))) => match may_copy(version, meta, wanted) {
                Ok(version) => Step::Copying(version, 0, Value::default()),
                Err(Refusal::Gone) => {
                    self.judge.gone(thread, life);
                    return self.end(thread);
                }
                Err(_) => {
                    self.judge.not_read(thread);
                    return self.again(thread);
                }
            },
            (Op::Read(_), Some(Step::Copying(version, nth, mut value))) => {
                if let Some(to) = value.get_mut(usize::from(nth)) {
                    *to = words.value[usize::from(nth)];
                    Step::Copying(version, nth + 1, value)
                } else if unmoved(version, words.version).is_ok() {
                    self.judge.read(thread, value);
                    return self.end(thread);
                } else {
                    self.judge.not_read(thread);
                    return self.again(thread);
                }
            }
            (_, Some(Step::Writing(version, nth))) => {
                let write = self.write_of(thread);
                let words = self.places.entry(tag).or_default();
                if let Some(to) = words.value.get_mut(usize::from(nth)) {
                    *to = write;
                    self.judge.changed(tag);
                    Step::Writing(version, nth + 1)
                } else {
                    words.version = next(version);
                    let now = *words;
                    self.judge.put(write);
                    self.judge.released(tag, version, &now);
                    let named = matches!(op, Op::WriteIf(_));
                    let expected = if named { expected } else { 0 };
                    self.judge.written(write, now.version, expected);
                    return self.end(thread);
                }
            }
            (_, _) if is_odd(words.version) => return self.again(thread),
            (op, _) => {
                let other = matches!(op, Op::WriteIf(_)) && words.version != expected;
                let gone = may_copy(words.version, meta, wanted).is_err();
                if other || gone {
                    return self.end(thread);
                }
                self.places.entry(tag).or_default().version = taken(words.version);
                Step::Writing(words.version, 0)
            }
        };
        self.threads[thread].step = Some(next_step);
    }

    /// Drops packets that change nothing any more.
    pub fn purge(&mut self) {
        let threads = &self.threads;
        let waits = |node: NodeId| threads.iter().any(|t| t.node == node && t.waits);
        self.packets
            .retain(|packet| packet.header.kind.asks_object() || waits(node_of(packet)));
        self.packets.sort_by(|a, b| key(a).cmp(&key(b)));
        self.packets.dedup();
    }
}

impl Unpacked for World {
    fn fingerprint(&self) -> u128 {
        let mut print = Print::default();
        self.places.hash(&mut print);
        self.judge.hash(&mut print);
        for node in &self.nodes {
            node.sabre.fingerprint(&mut print);
            node.values.hash(&mut print);
        }
        for packet in &self.packets {
            key(packet).hash(&mut print);
        }
        print.write_usize(self.packets.len());
        (&self.threads, self.left, self.objects).hash(&mut print);
        print.whole()
    }
}

/// What an operation is about.
fn of(op: Op) -> Which {
    match op {
        Op::Read(which) | Op::Write(which) | Op::WriteIf(which) | Op::Free(which) => which,
        Op::Make => Which::Second,
    }
}
