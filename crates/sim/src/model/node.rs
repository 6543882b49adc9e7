//! A node: a host of the engine without bytes, whose agents take time.

use super::agenda::Occurrence;
use super::cache::Cache;
use super::fabric::{Fabric, ModelPacket, Records};
use super::guest::Guest;
use super::layout::Layout;
use super::locks::{Cell, Follows, cells};
use super::program::Steps;
use super::servers::{Job, Servers};
use super::thread::Thread;
use super::{BLOCK, EPOCH, Platform, System};
use rackmem_proto::engine::{
    self, Copies, FlowCc, Gcp, Home, Host, Migrating, Note, Part, Payload, Recovery, Report, Role,
    role,
};
use rackmem_proto::flowcc::{HomeAgent, HomeConfig, LocalStatus, Migration, Shards};
use rackmem_proto::wire::{Header, Kind, NodeId, Record, RequesterId, Seq, Tag};
use rackmem_proto::{CHUNK, Data, Dest, Output};
use std::collections::BTreeMap;

/// Which sharer provides data is drawn from this.
const SEED: u32 = 1;

/// The agent for what others ask of the node's memory, and the one for what the node holds.
const HOME: usize = 0;
const CACHE: usize = 1;

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// The end of the event on a block.
    Over(u32),
    /// The end of any event.
    AnyOver,
    /// Another thread's write to a block, or the block's leaving.
    Changed(u32),
}

/// See the module. Its application threads are beside it.
pub struct ModelNode {
    pub(super) id: NodeId,
    pub(super) layout: Layout,
    platform: Platform,
    /// Its cache.
    pub cache: Cache,
    /// Its home.
    pub home: Home,
    copies: Copies<()>,
    migrating: Option<Migrating>,
    pub(super) locks: Box<[Cell]>,
    guest: Guest,
    servers: Servers,
    parked: Vec<(Until, u16)>,
    /// The packet that is served, the block of it that is held, and whether it is for a requester.
    packet: ModelPacket,
    held: Option<u32>,
    passed: bool,
    /// A block that has left its cache.
    left: Option<u32>,
    /// What its protocols send, and which of it is the home's.
    out: Vec<(Output, Records)>,
    of_home: Option<usize>,
    /// What its locks have decided, when that can leave if it is paid for,
    /// and whether a packet is the cause.
    pub follows: Vec<Follows>,
    pub(super) from: Option<u64>,
    pub(super) serves: bool,
    /// Packets that its home agent has received and sent.
    pub home_packets: u64,
}

impl ModelNode {
    /// A node that has handed out all memory that is used, and cached none of it.
    pub fn new(id: NodeId, platform: &Platform, layout: &Layout) -> Self {
        let Layout {
            cache: (entries, ways),
            private,
            shared,
            ..
        } = *layout;
        let chunks = (u64::from(layout.at_home(id)) * u64::from(BLOCK)).div_ceil(CHUNK) as u32;
        let system = platform.system;
        let mut home = HomeAgent::new(HomeConfig {
            node: id,
            epoch: EPOCH,
            block: BLOCK,
            chunks,
            incarnation: 1,
            migration: (system == System::Switch).then(|| layout.policy()),
            answering: match system {
                System::Directory => Some(rackmem_baselines::gather::answering),
                _ => None,
            },
            seed: SEED,
        });
        home.grow(chunks);
        let nothing = Header::request(Kind::Ping, EPOCH, Tag(0), RequesterId::default(), Seq(0));
        ModelNode {
            id,
            layout: *layout,
            platform: *platform,
            cache: Cache::new(entries, private + shared, ways),
            home: Home::new(home),
            // The model's network loses nothing.
            copies: Copies::new(false),
            migrating: layout.migrating(id),
            locks: cells(id, layout, platform.locks_in_switch),
            guest: match system {
                System::Delegate => Guest::Delegated,
                _ => Guest::Managers(BTreeMap::new()),
            },
            servers: Servers::new(id, platform.agents),
            parked: Vec::new(),
            packet: ModelPacket::new(Dest::Switch, nothing, Data::None, &Records::default()),
            held: None,
            passed: false,
            left: None,
            out: Vec::new(),
            of_home: None,
            follows: Vec::new(),
            from: Some(0),
            serves: false,
            home_packets: 0,
        }
    }

    /// Its agents.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Forgets what was counted.
    pub fn reset(&mut self) {
        self.home_packets = 0;
        self.servers.reset();
    }

    /// A thread waits.
    pub fn park(&mut self, thread: u16, until: Until) {
        self.parked.push((until, thread));
    }

    /// This has happened; the threads that waited for it look again.
    pub fn wake(&mut self, what: Until, fabric: &mut Fabric) {
        let now = fabric.now();
        self.parked.retain(|&(until, thread)| {
            let any = until == Until::AnyOver && matches!(what, Until::Over(_));
            let wakes = any || until == what;
            if wakes {
                fabric.agenda.enter(now, Occurrence::Step(thread));
            }
            !wakes
        });
    }

    /// The event on a block in an entry is over.
    pub fn release(&mut self, at: u32, block: u32, fabric: &mut Fabric) {
        self.cache.release(at, block);
        self.wake(Until::Over(block), fabric);
    }

    /// A packet has come that an agent serves.
    pub fn arrive(&mut self, id: u32, fabric: &mut Fabric) {
        let header = &fabric.packet(id).header;
        let holds = match Gcp::takes(header.kind) {
            true => !header.kind.asks_directory(),
            false => matches!(role(self.id, header), Role::Cache | Role::Requester),
        };
        let cost = self.platform.costs.message(header.kind);
        let queue = if holds { CACHE } else { HOME };
        let agenda = &mut fabric.agenda;
        self.servers.enqueue(queue, Job::Packet(id), cost, agenda);
    }

    /// Hands over a packet for an agent to send.
    pub fn post(&mut self, output: Output, records: Records, fabric: &mut Fabric) {
        let cost = self.platform.costs.message(output.header.kind);
        let queue = if records.is_empty() { HOME } else { CACHE };
        let job = Job::Post(output, records);
        self.servers.enqueue(queue, job, cost, &mut fabric.agenda);
    }

    /// A period of the migration ends.
    pub fn end_period(&mut self, fabric: &mut Fabric) {
        let moves = self.home.agent.end_period();
        self.home_packets += moves.len() as u64;
        for output in moves {
            self.post(output, Records::default(), fabric);
        }
        let Some(migrating) = &mut self.migrating else {
            return;
        };
        let (outputs, report) = migrating.end_period(EPOCH);
        for output in outputs {
            self.post(output, Records::default(), fabric);
        }
        if let Some(Report { output, records }) = report {
            self.post(output, records.into(), fabric);
        }
    }

    /// An agent has done the work on a message: what it decided leaves,
    /// and the next message begins.
    pub fn served<P: Steps>(
        &mut self,
        server: u16,
        threads: &mut [Thread<P>],
        fabric: &mut Fabric,
    ) {
        match self.servers.done(server) {
            None => return,
            Some(Job::Post(output, records)) => self.out.push((output, records)),
            Some(Job::Packet(id)) => self.handle(fabric.take(id), threads, fabric),
        }
        self.from = Some(fabric.now());
        let send = self.platform.costs.send;
        let sent = self.send_out(send, fabric) + self.sends();
        self.servers.go_on(server, sent * send, &mut fabric.agenda);
    }

    fn send_out(&mut self, each: u64, fabric: &mut Fabric) -> u64 {
        let (mut sent, mut of_home) = (0, 0);
        let mut out = std::mem::take(&mut self.out);
        for (nth, (output, records)) in out.drain(..).enumerate() {
            let ready = fabric.now() + (sent + 1) * each + self.platform.costs.aggregate;
            let copies = fabric.send(self.id, (ready, each), &output, &records);
            sent += copies;
            if self.of_home.is_some_and(|first| nth >= first) {
                of_home += copies;
            }
        }
        self.out = out;
        if self.of_home.take().is_some() {
            self.home_packets += 1 + of_home;
        }
        sent
    }

    /// Packets among what its locks have decided.
    pub fn sends(&self) -> u64 {
        let sends = self.follows.iter();
        sends.filter(|f| matches!(f, Follows::Send(..))).count() as u64
    }

    fn handle<P: Steps>(
        &mut self,
        packet: ModelPacket,
        threads: &mut [Thread<P>],
        fabric: &mut Fabric,
    ) {
        self.passed = matches!(packet.to, Dest::Requester(_));
        let header = packet.header;
        self.packet = packet;
        if !self.passed {
            self.serve(&header);
        }
        let thread = threads.get_mut(usize::from(header.requester.slot));
        if let (true, Some(thread)) = (self.passed, thread) {
            let taken = thread.take(&self.packet, 0, fabric);
            self.out
                .extend(taken.map(|output| (output, Records::default())));
        }
        if let Some(block) = self.left.take() {
            self.wake(Until::Changed(block), fabric);
        }
    }

    /// Its protocols take a packet.
    pub fn serve(&mut self, header: &Header) {
        self.serves = true;
        engine::packet(self, header);
    }
}

/// Packets have sizes and no bytes.
impl engine::Memory for ModelPacket {
    type Bytes = ();

    fn store(&mut self, _: &Header) {}

    fn put(&mut self, _: Tag, (): &()) {}

    fn clear(&mut self, _: Tag) {}

    fn gather(&mut self, _: Tag) -> bool {
        true
    }

    fn scatter(&mut self, _: Tag, _: u16) {}
}

impl Host for ModelNode {
    type Protocols = (FlowCc, Gcp);
    type Bytes = ();
    type Memory<'m> = ModelPacket;

    fn me(&self) -> NodeId {
        self.id
    }

    fn epoch(&self) -> u32 {
        EPOCH
    }

    fn incarnation(&self, _: NodeId) -> u32 {
        1
    }

    fn shards(&self) -> Shards {
        Shards::ONE
    }

    fn home<'m, R>(
        &'m mut self,
        _: usize,
        section: impl FnOnce(&mut Home, &mut Self::Memory<'m>) -> R,
    ) -> R {
        section(&mut self.home, &mut self.packet)
    }

    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<()>) -> R) -> R {
        section(&mut self.copies)
    }

    fn migrating<R>(&mut self, section: impl FnOnce(&mut Migrating) -> R) -> Option<R> {
        self.migrating.as_mut().map(section)
    }

    fn policy(&self) -> Option<Migration> {
        None
    }

    fn recovery(&mut self, _: impl FnOnce(&mut Recovery<()>, &mut Self)) {}

    fn body_len(&self) -> u32 {
        self.packet.body
    }

    fn records(&self) -> Vec<Record> {
        self.packet.records.to_vec()
    }

    fn hold(&mut self, tag: Tag, _: bool) -> Option<LocalStatus> {
        self.held = self.layout.block(self.id, tag);
        let status = self.cache.status(self.held?);
        (status != LocalStatus::Invalid).then_some(status)
    }

    fn keep(&mut self) {}

    fn set(&mut self, status: LocalStatus) {
        let Some(block) = self.held else { return };
        self.cache.lower(block, status);
        self.left = (status == LocalStatus::Invalid).then_some(block);
    }

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        Vec::new()
    }

    fn clean(&mut self, _: Tag) -> Option<()> {
        None
    }

    fn send(&mut self, output: &Output, payload: Payload<'_, ()>) {
        let records = match payload {
            Payload::Records(records) => records.into(),
            _ => Records::default(),
        };
        self.out.push((*output, records));
    }

    fn requester(&mut self, _: &Header) {
        self.passed = true;
    }

    fn elsewhere(&mut self, part: Part, header: &Header) {
        if part == Part::Guest {
            self.note(Note::AtHome);
            let answers = self.guest.asked(self.id, header).into_iter();
            let answers = answers.map(|output| (output, Records::default()));
            self.out.extend(answers);
        }
    }

    fn note(&mut self, note: Note) {
        if note == Note::AtHome {
            self.of_home = Some(self.out.len());
        }
    }
}
