//! A blade but for its threads: the shipped roles behind queues, served by processors that take time.

use super::locks::{Follows, Locks};
use super::memory::Memory;
use super::params::{Costs, Platform};
use super::run::Experiment;
use super::thread::Thread;
use super::{BLOCK, EPOCH};
use crate::model::agenda::Occurrence;
use crate::model::fabric::{Fabric, Packet};
use rackmem_baselines::locks::{Manager, Reply, Request, Seat};
use rackmem_proto::flowcc::{HomeAgent, HomeConfig, Migration};
use rackmem_proto::gcp::{Access as For, Body, Send};
use rackmem_proto::wire::{
    Dest, Flags, GlobalStatus, Header, Kind, NodeId, RECORD_LEN, Record, RequesterId, Seq, Tag,
};
use rackmem_proto::{CHUNK, Output, Outputs};
use std::collections::{BTreeMap, VecDeque};

/// Which sharer provides data is drawn from this.
const SEED: u32 = 1;
/// Entries go to the switch before a run, and none for its heat.
const MIGRATION: Migration = Migration {
    top: 0,
    least: 1,
    tracked: 1,
};

/// A processor that serves packets.
#[derive(Default)]
struct Server {
    packet: Option<u32>,
    free: u64,
    /// As long at most as there are packets in flight, which the rack's threads bound.
    queue: VecDeque<u32>,
}

/// What a blade has as the home of blocks.
pub struct Home {
    /// Its agent.
    pub agent: HomeAgent,
}

/// See the module.
pub struct Node {
    id: NodeId,
    costs: Costs,
    /// Its part of coherent memory.
    pub memory: Memory,
    /// Its locks.
    pub locks: Locks,
    /// At the memory blade.
    pub home: Option<Home>,
    /// Of the locks of a service that this blade manages.
    managers: BTreeMap<Tag, Manager>,
    /// Whatever holds copies and locks; and whatever others ask for them.
    servers: [Server; 2],
}

const HOLDER: usize = 0;
const OWNER: usize = 1;

impl Node {
    /// A blade that has nothing yet; the memory blade has everything.
    pub fn new(id: NodeId, experiment: &Experiment, blocks: u32) -> Self {
        let Experiment {
            scheme,
            platform,
            workload,
            ..
        } = *experiment;
        let memory = workload.memory();
        let locks = match scheme.compared() {
            None => workload.locks,
            Some(_) => 0,
        };
        Node {
            id,
            costs: platform.costs,
            memory: Memory::new(id, memory, blocks),
            locks: Locks::new(id, memory, locks, scheme, platform.switch),
            home: (id == memory).then(|| Home::new(id, blocks, &platform)),
            managers: BTreeMap::new(),
            servers: Default::default(),
        }
    }

    /// A packet has come.
    pub fn arrive(&mut self, id: u32, fabric: &mut Fabric) {
        let at = self.server(&fabric.packet(id).header);
        self.servers[at].queue.push_back(id);
        self.next(at, fabric);
    }

    fn server(&self, header: &Header) -> usize {
        let owner = header.kind.asks_directory() || !(for_holder(header) || for_lock(header.kind));
        if owner { OWNER } else { HOLDER }
    }

    fn next(&mut self, at: usize, fabric: &mut Fabric) {
        let server = &mut self.servers[at];
        if server.packet.is_some() {
            return;
        }
        let Some(id) = server.queue.pop_front() else {
            return;
        };
        server.packet = Some(id);
        let cost = self.costs.message(fabric.packet(id).header.kind);
        let done = server.free.max(fabric.now()) + cost;
        let (node, server) = (self.id, at as u16);
        let what = Occurrence::Served { node, server };
        fabric.agenda.enter(done, what);
    }

    /// The work on a packet is done: what was decided leaves, and the next packet is taken.
    pub fn served(
        &mut self,
        server: u16,
        threads: &mut [Thread],
        fabric: &mut Fabric,
    ) -> Vec<Follows> {
        let at = usize::from(server);
        let Some(id) = self.servers[at].packet.take() else {
            return Vec::new();
        };
        let records = fabric.records(id);
        let packet = fabric.take(id);
        let mut follows = Vec::new();
        let sent = self.handle(&packet, &records, threads, fabric, &mut follows);
        let sends = follows.iter().filter(|f| matches!(f, Follows::Send(_)));
        let sent = sent + sends.count() as u64;
        self.servers[at].free = fabric.now() + sent * self.costs.send;
        self.next(at, fabric);
        follows
    }

    fn handle(
        &mut self,
        packet: &Packet,
        records: &[Record],
        threads: &mut [Thread],
        fabric: &mut Fabric,
        follows: &mut Vec<Follows>,
    ) -> u64 {
        let header = &packet.header;
        if header.kind == Kind::GuestAsk {
            let manager = self.managers.entry(header.tag).or_default();
            let replies = manager.handle(&request(header));
            return self.send_replies(header.tag, &replies, fabric);
        }
        if for_lock(header.kind) || header.kind.asks_directory() {
            self.locks.packet(header, packet.body, records, follows);
            return 0;
        }
        let outputs = if header.kind == Kind::WriteBackAck {
            let thread = threads.get_mut(usize::from(header.requester.slot));
            thread.map_or(Outputs::default(), |thread| thread.take(packet, 0, fabric))
        } else if for_holder(header) {
            self.memory.react(header, fabric)
        } else {
            match &mut self.home {
                Some(home) => home.agent.handle(header, packet.body).0,
                None => Outputs::default(),
            }
        };
        let mut sent = 0;
        for output in outputs.iter() {
            let ready = fabric.now() + (sent + 1) * self.costs.send;
            sent += fabric.send(self.id, ready, self.costs.send, output);
        }
        sent
    }

    fn send_replies(&self, tag: Tag, replies: &[Reply], fabric: &mut Fabric) -> u64 {
        for (nth, reply) in (1..).zip(replies) {
            let status = match reply.inside {
                true => GlobalStatus::Shared,
                false => GlobalStatus::Unshared,
            };
            let header = service(Kind::GuestTell, tag, reply.seat, reply.turn, status);
            let output = Output::new(Dest::Requester(header.requester), header);
            fabric.send(self.id, fabric.now() + nth * self.costs.send, 0, &output);
        }
        replies.len() as u64
    }

    /// Sends what a lock's protocol has decided, as the `nth` of several packets that are ready at `ready`.
    pub fn send(&self, send: Send, ready: u64, nth: u64, fabric: &mut Fabric) {
        let Send { to, header, body } = send;
        let mut records = Vec::new();
        let body = match body {
            Body::None => 0,
            Body::Regions => self.locks.bytes(header.tag),
            Body::Queue(queue) => {
                records.extend(queue.records());
                (records.len() * RECORD_LEN) as u32
            }
        };
        let packet = Packet { to, header, body };
        let ready = ready + nth * self.costs.send;
        fabric.post(self.id, ready, packet, records.into());
    }
}

/// A thread's name in packets.
pub fn requester(seat: Seat) -> RequesterId {
    RequesterId {
        node: seat.node,
        slot: seat.place,
    }
}

/// A packet of the lock service, as the library has them.
fn service(kind: Kind, tag: Tag, seat: Seat, turn: u64, status: GlobalStatus) -> Header {
    let mut header = Header::request(kind, EPOCH, tag, requester(seat), Seq(turn));
    header.status = status;
    header
}

/// What a lock's manager is told, as a packet.
pub fn ask(tag: Tag, request: &Request) -> Header {
    let want = request.want.map_or(GlobalStatus::Unshared, For::status);
    service(Kind::GuestAsk, tag, request.seat, request.turn, want)
}

fn request(header: &Header) -> Request {
    Request {
        seat: Seat {
            node: header.requester.node,
            place: header.requester.slot,
        },
        turn: header.seq.0,
        want: For::from_status(header.status),
    }
}

/// Whether a blade's part of a lock is meant.
fn for_lock(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Wait
            | Kind::Grant
            | Kind::Invalidate
            | Kind::InvAck
            | Kind::Give
            | Kind::Queue
            | Kind::ReleaseAck
    )
}

/// Whether a blade's copy of a block is meant, or what ends a read miss whose provider wrote the block back.
fn for_holder(header: &Header) -> bool {
    let forwarded = header.kind.is_request() && header.flags.has(Flags::GRANTED);
    (forwarded && header.status != GlobalStatus::Unshared) || header.kind == Kind::WriteBackAck
}

impl Home {
    fn new(node: NodeId, blocks: u32, platform: &Platform) -> Self {
        let chunks = (u64::from(blocks) * u64::from(BLOCK)).div_ceil(CHUNK) as u32;
        let mut agent = HomeAgent::new(HomeConfig {
            node,
            epoch: EPOCH,
            block: BLOCK,
            chunks,
            incarnation: 1,
            migration: platform.blocks_in_switch().then_some(MIGRATION),
            answering: match platform.gathers {
                true => Some(rackmem_baselines::gather::answering),
                false => None,
            },
            seed: SEED,
        });
        agent.grow(chunks);
        Home { agent }
    }
}
