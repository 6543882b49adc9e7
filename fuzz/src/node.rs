//! A node's engine under a fuzzer: no bytes, and everything that it wants done is written down.

use rackmem_proto::Output;
use rackmem_proto::engine::{
    self, Copies, FlowCc, Home, Host, Memory, Migrating, Note, Part, Payload, Recovery,
};
use rackmem_proto::flowcc::{
    HomeAgent, HomeConfig, LocalStatus, Members, Migration, ShadowConfig, Shards,
};
use rackmem_wire::{Header, NodeId, Record, Tag};
use std::collections::BTreeMap;

/// Records of a packet at most.
pub const FIT: usize = 8;

/// A node.
pub struct Node {
    id: NodeId,
    /// Its home.
    pub home: Home,
    copies: Copies<()>,
    migrating: Option<Migrating>,
    recovery: Option<Recovery<()>>,
    /// Its cache: as large as it likes.
    pub cache: BTreeMap<Tag, LocalStatus>,
}

/// What a packet has caused.
#[derive(Default)]
pub struct Caused {
    /// Packets to send, and the records behind them.
    pub sent: Vec<(Output, Vec<Record>)>,
    /// The packet is for a requester of the node.
    pub passed: bool,
    /// It is of none of the node's protocols.
    pub of_nobody: bool,
}

impl Node {
    /// A node that has handed out its first chunk; with `shadow`, beside a switch of so many ways and sets.
    pub fn new(config: HomeConfig, shadow: Option<(u8, usize)>) -> Self {
        let mut home = HomeAgent::new(config);
        home.grow(1);
        let migrating = shadow.map(|(ways, sets)| {
            let shadow = ShadowConfig::new(config.node, config.epoch, ways, sets);
            let mut migrating = Migrating::new(shadow, 16, FIT);
            migrating.set_shadow(Some(0), config.epoch);
            migrating
        });
        Node {
            id: config.node,
            home: Home::new(home),
            copies: Copies::new(true),
            migrating,
            recovery: Some(Recovery::new(config.block, FIT)),
            cache: BTreeMap::new(),
        }
    }

    /// Takes a packet with so many bytes, or with records, behind its header.
    pub fn packet(&mut self, header: &Header, body: u32, records: &[Record]) -> Caused {
        self.with(body, records, |here| engine::packet(here, header))
    }

    /// A period of ownership migration ends, or only a tick.
    pub fn tick(&mut self, period_ended: bool) -> Caused {
        self.with(0, &[], |here| engine::tick(here, period_ended))
    }

    /// Stops for a new epoch.
    pub fn stop(&mut self, members: Members) {
        self.with(0, &[], |here| engine::stop(here, members));
    }

    /// Does something to its part in a rebuild.
    pub fn recover(&mut self, f: impl FnOnce(&mut Recovery<()>, &mut Here<'_>)) -> Caused {
        self.with(0, &[], |here| here.recovery(f))
    }

    fn with(&mut self, body: u32, records: &[Record], f: impl FnOnce(&mut Here<'_>)) -> Caused {
        let mut here = Here {
            node: self,
            body,
            records,
            held: None,
            caused: Caused::default(),
        };
        f(&mut here);
        here.caused
    }
}

/// A node, while something happens to it.
pub struct Here<'a> {
    node: &'a mut Node,
    body: u32,
    records: &'a [Record],
    held: Option<Tag>,
    caused: Caused,
}

/// There are no bytes.
pub struct Nothing;

impl Memory for Nothing {
    type Bytes = ();

    fn store(&mut self, _: &Header) {}

    fn put(&mut self, _: Tag, (): &()) {}

    fn clear(&mut self, _: Tag) {}
}

impl Host for Here<'_> {
    type Protocols = (FlowCc,);
    type Bytes = ();
    type Memory<'m>
        = Nothing
    where
        Self: 'm;

    fn me(&self) -> NodeId {
        self.node.id
    }

    fn epoch(&self) -> u32 {
        self.node.home.agent.epoch()
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
        section(&mut self.node.home, &mut Nothing)
    }

    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<()>) -> R) -> R {
        section(&mut self.node.copies)
    }

    fn migrating<R>(&mut self, section: impl FnOnce(&mut Migrating) -> R) -> Option<R> {
        self.node.migrating.as_mut().map(section)
    }

    fn policy(&self) -> Option<Migration> {
        self.node.migrating.as_ref().map(|_| Migration::default())
    }

    fn recovery(&mut self, section: impl FnOnce(&mut Recovery<()>, &mut Self)) {
        if let Some(mut recovery) = self.node.recovery.take() {
            section(&mut recovery, self);
            self.node.recovery = Some(recovery);
        }
    }

    fn body_len(&self) -> u32 {
        self.body
    }

    fn records(&self) -> Vec<Record> {
        self.records.to_vec()
    }

    fn hold(&mut self, tag: Tag, _: bool) -> Option<LocalStatus> {
        self.held = Some(tag);
        self.node.cache.get(&tag).copied()
    }

    fn keep(&mut self) {}

    fn set(&mut self, status: LocalStatus) {
        let Some(tag) = self.held else { return };
        let before = self.node.cache.remove(&tag).unwrap_or_default();
        assert!(
            status <= before,
            "a packet from the network gave this cache more rights"
        );
        if status != LocalStatus::Invalid {
            self.node.cache.insert(tag, status);
        }
    }

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        let cache = self.node.cache.iter();
        cache.map(|(tag, status)| (*tag, *status)).collect()
    }

    fn clean(&mut self, tag: Tag) -> Option<()> {
        let status = self.node.cache.get(&tag)?;
        (*status == LocalStatus::Shared).then_some(())
    }

    fn send(&mut self, output: &Output, payload: Payload<'_, ()>) {
        let records = match payload {
            Payload::Records(records) => records.to_vec(),
            _ => Vec::new(),
        };
        self.caused.sent.push((*output, records));
    }

    fn requester(&mut self, _: &Header) {
        self.caused.passed = true;
    }

    fn elsewhere(&mut self, _: Part, _: &Header) {}

    fn note(&mut self, note: Note) {
        self.caused.of_nobody |= note == Note::OfNobody;
    }
}
