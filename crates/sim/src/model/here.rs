//! The host of a node's engine as the cost model has it: no bytes, and packets that leave when the agent's work is done.

use super::EPOCH;
use super::cache::Cache;
use super::fabric::Packet;
use super::workload::Workload;
use rackmem_proto::engine::{
    self, Copies, FlowCc, Home, Host, Migrating, Note, Part, Payload, Recovery,
};
use rackmem_proto::flowcc::{LocalStatus, Migration, Shards};
use rackmem_proto::wire::{Header, Kind, NodeId, Record, Tag};
use rackmem_proto::{Data, Dest, Output};

/// A node's agents, while they serve one packet.
pub struct Here<'a> {
    /// The node.
    pub id: NodeId,
    /// What it runs.
    pub workload: &'a Workload,
    /// Its cache.
    pub cache: &'a mut Cache,
    /// Its home.
    pub home: &'a mut Home,
    /// Its cache agent.
    pub copies: &'a mut Copies<()>,
    /// Its part in ownership migration.
    pub migrating: Option<&'a mut Migrating>,
    /// Bytes behind the packet's header.
    pub body: u32,
    /// The records behind it.
    pub records: &'a [Record],
    /// What comes of it, in order.
    pub sent: Vec<Output>,
    /// How much of that was decided before the home agent took the packet, if it has.
    pub before_home: Option<usize>,
    /// The packet is for a requester of this node.
    pub passed: bool,
    held: Option<u32>,
}

impl<'a> Here<'a> {
    /// A packet is served.
    pub fn new(
        id: NodeId,
        workload: &'a Workload,
        (cache, home, copies): (&'a mut Cache, &'a mut Home, &'a mut Copies<()>),
        migrating: Option<&'a mut Migrating>,
    ) -> Self {
        Here {
            id,
            workload,
            cache,
            home,
            copies,
            migrating,
            body: 0,
            records: &[],
            sent: Vec::new(),
            before_home: None,
            passed: false,
            held: None,
        }
    }

    /// Takes a packet.
    pub fn take(&mut self, packet: &Packet, records: &'a [Record]) {
        (self.body, self.records) = (packet.body, records);
        engine::packet(self, &packet.header);
    }
}

/// There are no bytes.
pub struct Memory;

impl engine::Memory for Memory {
    type Bytes = ();

    fn store(&mut self, _: &Header) {}

    fn put(&mut self, _: Tag, (): &()) {}

    fn clear(&mut self, _: Tag) {}
}

impl Host for Here<'_> {
    type Protocols = (FlowCc,);
    type Bytes = ();
    type Memory<'m>
        = Memory
    where
        Self: 'm;

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
        section(self.home, &mut Memory)
    }

    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<()>) -> R) -> R {
        section(self.copies)
    }

    fn migrating<R>(&mut self, section: impl FnOnce(&mut Migrating) -> R) -> Option<R> {
        self.migrating.as_deref_mut().map(section)
    }

    fn policy(&self) -> Option<Migration> {
        None
    }

    fn recovery(&mut self, _: impl FnOnce(&mut Recovery<()>, &mut Self)) {}

    fn body_len(&self) -> u32 {
        self.body
    }

    fn records(&self) -> Vec<Record> {
        self.records.to_vec()
    }

    fn hold(&mut self, tag: Tag, _: bool) -> Option<LocalStatus> {
        let block = self.workload.block(self.id, tag)?;
        self.held = Some(block);
        let status = self.cache.status(block);
        (status != LocalStatus::Invalid).then_some(status)
    }

    fn keep(&mut self) {}

    fn set(&mut self, status: LocalStatus) {
        if let Some(block) = self.held {
            self.cache.lower(block, status);
        }
    }

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        Vec::new()
    }

    fn clean(&mut self, _: Tag) -> Option<()> {
        None
    }

    fn send(&mut self, output: &Output, _: Payload<'_, ()>) {
        self.sent.push(*output);
    }

    fn requester(&mut self, _: &Header) {
        self.passed = true;
    }

    /// The home of the delegation baseline: it does what is asked, and says so.
    fn elsewhere(&mut self, part: Part, header: &Header) {
        if part == Part::Guest {
            self.before_home = Some(self.sent.len());
            let answer = header.answer(Kind::GuestTell, self.id);
            let to = Dest::Requester(header.requester);
            self.sent.push(Output::with(to, answer, Data::Operand));
        }
    }

    fn note(&mut self, note: Note) {
        if note == Note::AtHome {
            self.before_home = Some(self.sent.len());
        }
    }
}
