//! A run: readers on one chip, objects and their writers on the other.

use super::chip::{CHIP, Chip, EDGES};
use super::cores::{After, CORES, Cores};
use super::memory::{Memory, NOBODY};
use super::r2p2::{Arrival, Loading, Plain, R2p2, Step};
use super::{Layout, NS, Time};
use rackmem_proto::sabre::controller::{Access, Action, Design, Reply, SabreId, Transfer};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What is modelled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setup {
    /// SABRes by controllers of this design; else plain remote reads.
    pub sabres: Option<Design>,
    /// How objects lie.
    pub layout: Layout,
    /// Bytes of an object.
    pub bytes: u32,
    /// Objects.
    pub objects: u32,
    /// They are in memory; else in the last-level cache.
    pub in_memory: bool,
    /// Threads that read, at most 16.
    pub readers: u8,
    /// Operations of each at once.
    pub in_flight: u8,
    /// Threads that write, at most 16. Each has objects of its own.
    pub writers: u8,
    /// What readers do with what has come.
    pub after: After,
    /// Operations that are counted.
    pub operations: u32,
    /// Which objects are read.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Operations that ended with a clean object.
    pub operations: u32,
    /// Attempts that found a writer.
    pub conflicts: u32,
    /// Writes that ended meanwhile.
    pub writes: u32,
    /// Between the first and the last of them.
    pub time: Time,
    /// Of one operation, from its issue to its end, on average.
    pub latency: f64,
    /// Of that, until the transfer's completion.
    pub transfer: f64,
    /// Of that, in checks for atomicity.
    pub check: f64,
    /// Things that happened in the model.
    pub events: u64,
}

impl Outcome {
    /// Operations a microsecond.
    pub fn rate(&self) -> f64 {
        f64::from(self.operations) * 1e6 / self.time.max(1) as f64
    }

    /// GB/s of objects.
    pub fn gigabytes(&self, bytes: u32) -> f64 {
        self.rate() * f64::from(bytes) / 1e3
    }
}

/// What happens at a time.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A reader's slot begins an attempt.
    Begin(u8, u8),
    /// Its request is at its pipeline.
    Posted(u8, u8),
    /// A source pipeline sends its next request.
    Unroll(usize),
    /// A packet is at an R2P2.
    Arrive(usize, usize, Arrival),
    /// The stages of an R2P2.
    Accept(usize),
    Issue(usize),
    /// A load is at its bank, and back.
    Bank(usize, Loading),
    Back(usize, Loading, u64),
    /// A reply is at its source's chip, and has been taken.
    Reply(usize, Answer),
    Taken(Answer),
    /// The core sees the completion.
    Seen(u8, u8, bool),
    /// A writer's next store.
    Store(u8),
    /// An R2P2 is told of a store; it is visible.
    Tell(u64),
    Visible(u8),
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Sabre(Reply),
    /// With the write that its block is of, and whether a writer was in.
    Plain(Plain, u32, bool),
}

#[derive(Clone, Copy, Debug)]
enum Under {
    Sabre(Transfer),
    /// Blocks that were asked for, that have come, and the writes they are of.
    Plain(u16, u16, Option<u32>, bool),
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    object: u32,
    began: Time,
    attempt: Time,
    transfer: Time,
    check: Time,
    under: Under,
}

#[derive(Clone, Copy, Debug, Default)]
struct Writer {
    /// Which of its objects.
    turn: u32,
    /// Stores of this write that are visible: the version, blocks, the version.
    stored: u16,
}

struct Model {
    setup: Setup,
    chip: Chip,
    cores: Cores,
    now: Time,
    agenda: BinaryHeap<Reverse<(Time, u64)>>,
    events: Vec<Option<Event>>,
    free: Vec<u64>,
    order: u64,
    memory: Memory,
    edges: Vec<R2p2>,
    slots: Vec<Slot>,
    /// Transfers at each source pipeline, and whether it has an event that is due.
    queues: [VecDeque<(u8, u8)>; EDGES],
    unrolling: [bool; EDGES],
    /// When the wire there and back, the channels of memory, and pipelines that take replies are
    /// free.
    wires: [Time; 2],
    channels: [Time; 4],
    takers: [Time; EDGES],
    writers: Vec<Writer>,
    random: u64,
    outcome: Outcome,
    first: Option<Time>,
    sums: [f64; 3],
    ended: u32,
}

/// Runs it, at the costs of the paper's chips.
pub fn run(setup: &Setup) -> Outcome {
    with(setup, CORES)
}

/// Operations that end before any is counted.
const WARM: u32 = 64;

/// The same, at other costs of cores.
pub fn with(setup: &Setup, cores: Cores) -> Outcome {
    let mut model = Model::new(*setup, cores);
    for reader in 0..setup.readers {
        for slot in 0..setup.in_flight {
            // They do not begin all at once.
            let at = Time::from(reader) * 7 * NS + Time::from(slot) * 11 * NS;
            model.at(at, Event::Begin(reader, slot));
        }
    }
    for writer in 0..setup.writers {
        model.at(Time::from(writer) * 13 * NS, Event::Store(writer));
    }
    while model.outcome.operations < setup.operations && model.step() {}
    let mut outcome = model.outcome;
    outcome.time = model.now - model.first.unwrap_or(0);
    let each = |sum: f64| sum / f64::from(outcome.operations.max(1));
    [outcome.latency, outcome.transfer, outcome.check] = model.sums.map(each);
    outcome
}

impl Model {
    fn new(setup: Setup, cores: Cores) -> Self {
        let each = setup.layout.blocks(setup.bytes);
        let design = setup.sabres.unwrap_or(Design::PAPER);
        let slot = Slot {
            object: 0,
            began: 0,
            attempt: 0,
            transfer: 0,
            check: 0,
            under: Under::Plain(0, 0, None, false),
        };
        let slots = usize::from(setup.readers) * usize::from(setup.in_flight);
        Model {
            setup,
            chip: CHIP,
            cores,
            now: 0,
            agenda: BinaryHeap::new(),
            events: Vec::new(),
            free: Vec::new(),
            order: 0,
            memory: Memory::new(setup.objects as usize, each),
            edges: (0..EDGES).map(|_| R2p2::new(design)).collect(),
            slots: vec![slot; slots],
            queues: Default::default(),
            unrolling: [false; EDGES],
            wires: [0; 2],
            channels: [0; 4],
            takers: [0; EDGES],
            writers: vec![Writer::default(); usize::from(setup.writers)],
            random: setup.seed | 1,
            outcome: Outcome::default(),
            first: None,
            sums: [0.0; 3],
            ended: 0,
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        // What is due at once comes in the order in which it was decided.
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.events.push(None);
                self.events.len() as u64 - 1
            }
        };
        self.events[at as usize] = Some(event);
        self.order += 1;
        self.agenda.push(Reverse((time, self.order << 24 | at)));
    }

    fn step(&mut self) -> bool {
        let Some(Reverse((now, at))) = self.agenda.pop() else {
            return false;
        };
        let at = at & 0xff_ffff;
        self.now = now;
        self.outcome.events += 1;
        self.free.push(at);
        if let Some(event) = self.events[at as usize].take() {
            self.happen(event);
        }
        true
    }

    fn happen(&mut self, event: Event) {
        let chip = self.chip;
        match event {
            Event::Begin(reader, slot) => self.begin(reader, slot, None),
            Event::Posted(reader, slot) => {
                let edge = usize::from(reader) % EDGES;
                self.queues[edge].push_back((reader, slot));
                if !std::mem::replace(&mut self.unrolling[edge], true) {
                    self.at(self.now, Event::Unroll(edge));
                }
            }
            Event::Unroll(edge) => self.unroll(edge),
            Event::Arrive(edge, source, packet) => {
                self.edges[edge].arrive(source, packet);
                self.wake(edge, true);
            }
            Event::Accept(edge) => {
                let took = self.edges[edge].accept();
                self.edges[edge].accepting = took;
                if took {
                    self.at(self.now + chip.action, Event::Accept(edge));
                    self.wake(edge, false);
                }
            }
            Event::Issue(edge) => self.issue(edge),
            Event::Bank(edge, load) => self.bank(edge, load),
            Event::Back(edge, load, seen) => self.back(edge, load, seen),
            Event::Reply(edge, answer) => {
                let data = !matches!(answer, Answer::Sabre(Reply::Verdict { .. }));
                let takes = if data { chip.link } else { chip.action };
                let taker = &mut self.takers[edge];
                *taker = self.now.max(*taker) + takes;
                let taken = *taker;
                self.at(taken, Event::Taken(answer));
            }
            Event::Taken(answer) => self.taken(answer),
            Event::Seen(reader, slot, whole) => self.seen(reader, slot, whole),
            Event::Store(writer) => self.store(writer),
            Event::Tell(address) => {
                let sharers = std::mem::take(&mut self.memory.at(address).sharers);
                for edge in (0..EDGES).filter(|edge| sharers >> edge & 1 == 1) {
                    self.edges[edge].controller.invalidated(address);
                    self.wake(edge, false);
                }
            }
            Event::Visible(writer) => self.visible(writer),
        }
    }

    fn slot(&mut self, reader: u8, slot: u8) -> &mut Slot {
        let each = usize::from(self.setup.in_flight);
        &mut self.slots[usize::from(reader) * each + usize::from(slot)]
    }

    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// An attempt at a new object, or again at the same.
    fn begin(&mut self, reader: u8, slot: u8, again: Option<u32>) {
        let drawn = (self.draw() >> 16) % u64::from(self.setup.objects);
        let object = again.unwrap_or(drawn as u32);
        let blocks = self.memory.each;
        let id = SabreId {
            node: 0,
            pipeline: reader,
            transfer: slot,
        };
        let base = self.memory.address(object, 0);
        let under = match self.setup.sabres {
            Some(_) => Under::Sabre(Transfer::new(id, base, blocks, blocks)),
            None => Under::Plain(0, 0, None, false),
        };
        let now = self.now;
        let row = self.slot(reader, slot);
        if again.is_none() {
            (row.began, row.transfer, row.check) = (now, 0, 0);
        }
        (row.object, row.attempt, row.under) = (object, now, under);
        self.at(now + self.chip.post, Event::Posted(reader, slot));
    }

    /// The source pipeline sends one request of its first transfer.
    fn unroll(&mut self, edge: usize) {
        let Some((reader, slot)) = self.queues[edge].front().copied() else {
            self.unrolling[edge] = false;
            return;
        };
        let blocks = self.memory.each;
        let row = self.slot(reader, slot);
        let object = row.object;
        let (packet, to, more) = match &mut row.under {
            Under::Sabre(transfer) => {
                let request = transfer.request();
                transfer.sent();
                let packet = request.map(Arrival::Sabre);
                // One R2P2 serves all of it: that opposite its source.
                (packet, None, transfer.request().is_some())
            }
            Under::Plain(asked, ..) => {
                let nth = *asked;
                *asked += 1;
                let plain = Plain { reader, slot, nth };
                (Some(Arrival::Plain(plain)), Some(nth), *asked < blocks)
            }
        };
        let to = match to {
            None => edge,
            Some(nth) => (self.memory.address(object, nth) % EDGES as u64) as usize,
        };
        if !more {
            self.queues[edge].pop_front();
        }
        if let Some(packet) = packet {
            let there = self.over(0, self.chip.packet) + self.chip.stages;
            self.at(there, Event::Arrive(to, edge, packet));
        }
        self.at(self.now + self.chip.action, Event::Unroll(edge));
    }

    /// When a packet that goes to the wire now is at its other end.
    fn over(&mut self, way: usize, takes: Time) -> Time {
        let wire = &mut self.wires[way];
        *wire = self.now.max(*wire) + takes;
        *wire + self.chip.wire
    }

    fn wake(&mut self, edge: usize, came: bool) {
        let r2p2 = &mut self.edges[edge];
        let accepts = came && !std::mem::replace(&mut r2p2.accepting, true);
        let issues = !std::mem::replace(&mut r2p2.issuing, true);
        if accepts {
            self.at(self.now, Event::Accept(edge));
        }
        if issues {
            self.at(self.now, Event::Issue(edge));
        }
    }

    fn issue(&mut self, edge: usize) {
        let Some(step) = self.edges[edge].step() else {
            self.edges[edge].issuing = false;
            return;
        };
        let takes = match step {
            Step::Load(load) => {
                let address = self.address(edge, load);
                let path = self.chip.path(edge, address);
                self.at(self.now + path, Event::Bank(edge, load));
                self.chip.issue
            }
            Step::Action(Action::Reply(reply)) => {
                if let Reply::Verdict { .. } = reply {
                    // An entry is free.
                    self.wake(edge, true);
                }
                self.answer(Answer::Sabre(reply));
                self.chip.action
            }
            Step::Action(_) => self.chip.action,
        };
        self.at(self.now + takes, Event::Issue(edge));
    }

    fn address(&mut self, edge: usize, load: Loading) -> u64 {
        let (reader, slot, nth) = match load {
            Loading::Plain(Plain { reader, slot, nth }) => (reader, slot, nth),
            Loading::Sabre(load) => {
                let id = self.edges[edge].controller.id_of(load.entry);
                id.map_or((0, 0, 0), |id| (id.pipeline, id.transfer, load.nth))
            }
        };
        let object = self.slot(reader, slot).object;
        self.memory.address(object, nth)
    }

    /// A load is at the bank of its block: what it sees is settled here.
    fn bank(&mut self, edge: usize, load: Loading) {
        let chip = self.chip;
        let address = self.address(edge, load);
        let block = self.memory.at(address);
        if block.busy > self.now {
            let again = block.busy;
            return self.at(again, Event::Bank(edge, load));
        }
        let mut takes = chip.bank;
        if std::mem::replace(&mut block.owner, NOBODY) != NOBODY {
            takes += chip.forward;
        }
        block.sharers |= 1 << edge;
        let write = block.write;
        if self.setup.in_memory {
            let channel = &mut self.channels[(address % 4) as usize];
            *channel = self.now.max(*channel) + chip.channel;
            takes += *channel - self.now - chip.channel + chip.memory;
        }
        let version = self.memory.versions[(address / u64::from(self.memory.each)) as usize];
        let seen = match load {
            Loading::Sabre(_) => version,
            Loading::Plain(_) => u64::from(write) << 1 | (version & 1),
        };
        let back = self.now + takes + chip.path(edge, address);
        self.at(back, Event::Back(edge, load, seen));
    }

    fn back(&mut self, edge: usize, load: Loading, seen: u64) {
        let answer = match load {
            Loading::Plain(plain) => {
                let in_write = plain.nth == 0 && seen & 1 == 1;
                Some(Answer::Plain(plain, (seen >> 1) as u32, in_write))
            }
            Loading::Sabre(load) => {
                let reply = self.edges[edge].controller.returned(&load, seen);
                debug_assert!(reply.is_some() || load.access == Access::Compare);
                reply.map(Answer::Sabre)
            }
        };
        if let Some(answer) = answer {
            self.answer(answer);
        }
        self.wake(edge, false);
    }

    fn answer(&mut self, answer: Answer) {
        let (reader, takes) = match answer {
            Answer::Plain(plain, ..) => (plain.reader, self.chip.data),
            Answer::Sabre(Reply::Block { id, nth: Some(_) }) => (id.pipeline, self.chip.data),
            Answer::Sabre(Reply::Block { id, .. } | Reply::Verdict { id, .. }) => {
                (id.pipeline, self.chip.packet)
            }
        };
        let back = self.over(1, takes);
        self.at(back, Event::Reply(usize::from(reader) % EDGES, answer));
    }

    fn taken(&mut self, answer: Answer) {
        let blocks = self.memory.each;
        let (reader, slot) = match answer {
            Answer::Plain(plain, ..) => (plain.reader, plain.slot),
            Answer::Sabre(Reply::Block { id, .. } | Reply::Verdict { id, .. }) => {
                (id.pipeline, id.transfer)
            }
        };
        let row = self.slot(reader, slot);
        let completed = match (&mut row.under, answer) {
            (Under::Sabre(transfer), Answer::Sabre(reply)) => {
                let heard = transfer.reply(&reply);
                debug_assert!(heard.is_ok(), "{reply:?}");
                heard.ok().flatten().map(|completed| completed.is_ok())
            }
            (Under::Plain(_, came, of, torn), Answer::Plain(_, write, in_write)) => {
                *came += 1;
                let other = of.replace(write).is_some_and(|before| before != write);
                *torn |= other || in_write;
                (*came == blocks).then_some(!*torn)
            }
            _ => None,
        };
        if let Some(whole) = completed {
            let complete = self.now + self.chip.complete;
            self.at(complete, Event::Seen(reader, slot, whole));
        }
    }

    /// The core sees that a transfer has ended. A SABRe's completion says whether it is whole;
    /// with versions in lines, that is known when they have been compared.
    fn seen(&mut self, reader: u8, slot: u8, whole: bool) {
        let (now, setup, cores) = (self.now, self.setup, self.cores);
        let check = match (setup.after, setup.layout) {
            (After::Nothing, _) | (_, Layout::Clean) => 0,
            (after, Layout::Versions) => cores.check(setup.bytes, after),
        };
        let row = self.slot(reader, slot);
        row.transfer += now - row.attempt;
        row.check += check;
        let (object, began, transfer, checked) = (row.object, row.began, row.transfer, row.check);
        if !whole && setup.after != After::Nothing {
            self.outcome.conflicts += u32::from(self.first.is_some());
            self.now += check;
            self.begin(reader, slot, Some(object));
            self.now = now;
            return;
        }
        let end = now + check + cores.rest(setup.bytes, setup.layout, setup.after);
        self.ended += 1;
        if self.ended > WARM {
            self.first.get_or_insert(now);
            self.outcome.operations += 1;
            for (sum, part) in self.sums.iter_mut().zip([end - began, transfer, checked]) {
                *sum += part as f64;
            }
        }
        self.at(end, Event::Begin(reader, slot));
    }

    /// A writer's next store: to the version, to each block, to the version.
    fn store(&mut self, writer: u8) {
        let each = self.memory.each;
        let Writer { turn, stored } = self.writers[usize::from(writer)];
        let object = self.object_of(writer, turn);
        let nth = if stored > each {
            0
        } else {
            stored.saturating_sub(1)
        };
        let address = self.memory.address(object, nth);
        let (chip, cores) = (self.chip, self.cores);
        let block = self.memory.at(address);
        let own = block.owner == writer;
        let shared = block.sharers != 0;
        let path = chip.path(1, address);
        let told = self.now + path;
        // A block that others have is asked for ahead, but the version's is waited for.
        let missing = match (own, shared) {
            (true, false) => 0,
            (_, false) => 2 * path + chip.bank,
            (_, true) => 4 * path + chip.bank,
        };
        let missing = if stored == 0 {
            missing
        } else {
            missing / cores.overlap
        };
        let stores = if stored == 0 || stored > each {
            NS / 2
        } else {
            cores.store
        };
        let around = if stored == 0 { cores.around } else { 0 };
        let visible = self.now + around + missing + stores;
        if shared {
            let block = self.memory.at(address);
            block.busy = visible.max(told);
            self.at(self.now.max(visible.min(told)), Event::Tell(address));
        }
        self.at(visible, Event::Visible(writer));
    }

    fn object_of(&self, writer: u8, turn: u32) -> u32 {
        let writers = u32::from(self.setup.writers);
        let own = (self.setup.objects - u32::from(writer)).div_ceil(writers);
        u32::from(writer) + turn % own * writers
    }

    fn visible(&mut self, writer: u8) {
        let each = self.memory.each;
        let Writer { turn, stored } = self.writers[usize::from(writer)];
        let object = self.object_of(writer, turn);
        let nth = if stored > each {
            0
        } else {
            stored.saturating_sub(1)
        };
        let address = self.memory.address(object, nth);
        if self.memory.at(address).sharers != 0 {
            // It was loaded meanwhile: who has it is to be told, and loads wait from now on.
            return self.at(self.now, Event::Store(writer));
        }
        let version = &mut self.memory.versions[object as usize];
        if stored == 0 || stored > each {
            *version += 1;
        }
        let write = version.div_ceil(2) as u32;
        // An object that does not fit beside the others of its writer has left its cache.
        let fits = u32::from(each) * 64 * 6 <= 32 << 10;
        let block = self.memory.at(address);
        if stored > 0 {
            block.write = write;
        }
        block.owner = if fits || stored <= 1 { writer } else { NOBODY };
        let row = &mut self.writers[usize::from(writer)];
        row.stored += 1;
        if row.stored > each + 1 {
            *row = Writer {
                turn: turn + 1,
                stored: 0,
            };
            self.outcome.writes += u32::from(self.first.is_some());
        }
        self.at(self.now, Event::Store(writer));
    }
}
