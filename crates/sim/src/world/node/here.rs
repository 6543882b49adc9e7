//! The host of a node's engine as worlds have it: small vectors in place of bytes, a virtual network in place of ports.

use super::epoch::Before;
use super::{Node, Settling};
use crate::world::block::{self, Block, zeroed};
use crate::world::fabric::{Fabric, Packet};
use crate::world::mutate::STRANGE_SLOT;
use crate::world::mutation::Mutation;
use rackmem_proto::engine::{
    self, Change, Copies, Defect, FlowCc, Gcp, Home, Host, Migrating, Note, Part, Payload, Recovery,
};
use rackmem_proto::flowcc::{LocalStatus, Migration, Settled, Shards};
use rackmem_proto::wire::{Flags, Header, Kind, NodeId, Record, RequesterId, Seq, Tag};
use rackmem_proto::{Dest, Output};
use std::collections::BTreeMap;

/// A node, while something happens to it.
pub struct Here<'a> {
    pub(super) node: &'a mut Node,
    pub(super) fabric: &'a mut Fabric,
    pub(super) packet: Option<&'a Packet>,
    /// The slot of the copy that is held, its block, and its words for as long as the packet is handled.
    held: Option<(usize, Tag, Block)>,
    /// Entries as they were before a home makes them anew.
    before: Vec<(Tag, Option<Before>, bool)>,
    /// What has become of them.
    pub settled: Vec<Settling>,
}

/// Home's memory, and the packet at hand.
pub struct Memory<'m> {
    blocks: &'m mut BTreeMap<Tag, Block>,
    packet: Option<&'m Packet>,
}

impl Memory<'_> {
    fn block(&mut self, tag: Tag) -> &mut Block {
        self.blocks.entry(tag).or_insert_with(zeroed)
    }
}

impl engine::Memory for Memory<'_> {
    type Bytes = Block;

    fn store(&mut self, header: &Header) {
        if let Some(packet) = self.packet {
            block::put(self.block(header.tag), header.offset, &packet.body);
        }
    }

    fn put(&mut self, tag: Tag, bytes: &Block) {
        *self.block(tag) = bytes.clone();
    }

    fn clear(&mut self, tag: Tag) {
        *self.block(tag) = zeroed();
    }
}

impl<'a> Here<'a> {
    /// A packet has come to a node, or something else happens to it.
    pub fn new(node: &'a mut Node, fabric: &'a mut Fabric, packet: Option<&'a Packet>) -> Self {
        Here {
            node,
            fabric,
            packet,
            held: None,
            before: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// Does something to the node's part in a rebuild.
    pub fn with_recovery(&mut self, f: impl FnOnce(&mut Recovery<Block>, &mut Self)) {
        if let Some(mut recovery) = self.node.recovery.take() {
            f(&mut recovery, self);
            self.node.recovery = Some(recovery);
        }
    }

    /// Locks of the dead stay.
    fn keep_dead_locks(&mut self, change: &Change) {
        let Some(dead) = change.gone.iter().next() else {
            return;
        };
        let before = std::mem::take(&mut self.before);
        let locked = before.iter().filter(|row| row.1.is_some_and(|e| e.0 != 0));
        for (at, (tag, ..)) in locked.enumerate() {
            let id = RequesterId {
                node: dead,
                slot: STRANGE_SLOT - at as u16,
            };
            let epoch = self.node.view.epoch;
            let request = Header::request(Kind::LockWrite, epoch, *tag, id, Seq(1));
            self.node.homes.of(*tag).handle(&request, 0);
        }
        self.before = before;
    }
}

impl Host for Here<'_> {
    type Protocols = (FlowCc, Gcp);
    type Bytes = Block;
    type Memory<'m>
        = Memory<'m>
    where
        Self: 'm;

    fn me(&self) -> NodeId {
        self.node.id
    }

    fn epoch(&self) -> u32 {
        self.node.view.epoch
    }

    fn incarnation(&self, node: NodeId) -> u32 {
        let incarnations = &self.node.view.incarnations;
        incarnations.get(usize::from(node)).copied().unwrap_or(0)
    }

    fn shards(&self) -> Shards {
        self.node.homes.shards()
    }

    fn home<'m, R>(
        &'m mut self,
        shard: usize,
        section: impl FnOnce(&mut Home, &mut Memory<'m>) -> R,
    ) -> R {
        let mut memory = Memory {
            blocks: &mut self.node.memory,
            packet: self.packet,
        };
        section(self.node.homes.shard(shard), &mut memory)
    }

    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<Block>) -> R) -> R {
        section(&mut self.node.copies)
    }

    fn migrating<R>(&mut self, section: impl FnOnce(&mut Migrating) -> R) -> Option<R> {
        self.node.migrating.as_mut().map(section)
    }

    fn policy(&self) -> Option<Migration> {
        self.node.migration
    }

    fn recovery(&mut self, section: impl FnOnce(&mut Recovery<Block>, &mut Self)) {
        self.with_recovery(section);
    }

    fn body_len(&self) -> u32 {
        let words = self.packet.map_or(0, |packet| packet.body.len());
        words as u32 * block::GRANULE_BYTES
    }

    fn records(&self) -> Vec<Record> {
        let records = self.packet.iter().flat_map(|packet| packet.records());
        records.collect()
    }

    fn hold(&mut self, tag: Tag, _: bool) -> Option<LocalStatus> {
        let at = self.node.cache.find(tag)?;
        let (status, words) = self.node.cache.copy(tag)?;
        self.held = Some((at, tag, words.into()));
        Some(status)
    }

    fn keep(&mut self) -> Block {
        let held = self.held.as_ref();
        held.map(|held| held.2.clone()).unwrap_or_default()
    }

    fn set(&mut self, status: LocalStatus) {
        let Some((at, tag, _)) = self.held else {
            return;
        };
        let changes = self.node.cache.slot(at).status != status;
        if changes {
            let invalid = status == LocalStatus::Invalid;
            let action = if invalid { "invalid" } else { "downgraded" };
            self.fabric.note(self.node.id, tag, action);
            self.node.cache.install(at, tag, status);
        }
    }

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        let tags = self.node.cache.tags();
        tags.filter_map(|tag| Some((tag, self.node.cache.copy(tag)?.0)))
            .collect()
    }

    fn clean(&mut self, tag: Tag) -> Option<Block> {
        let (status, words) = self.node.cache.copy(tag)?;
        (status == LocalStatus::Shared).then(|| words.into())
    }

    fn send(&mut self, output: &Output, payload: Payload<'_, Block>) {
        if output.header.kind == Kind::Demote && self.node.mutated(Mutation::DemoteAlone) {
            let mut header = output.header;
            header.kind = Kind::RemoveFromSwitch;
            header.flags = Flags::GRANTED;
            header.requester.slot = STRANGE_SLOT;
            header.seq = Seq(self.fabric.now / 8);
            return self.fabric.send(&Output::new(Dest::Switch, header), &[]);
        }
        match payload {
            Payload::Nothing => self.fabric.send(output, &[]),
            Payload::Copy => {
                let words = self.keep();
                self.fabric.send(output, &words);
            }
            Payload::Kept(words) => self.fabric.send(output, words),
            Payload::Home => {
                let words = self.node.memory(output.header.tag);
                self.fabric.send(output, words);
            }
            Payload::Records(records) => self.fabric.send_records(output, records),
        }
    }

    fn requester(&mut self, _: &Header) {
        self.node.passed.extend(self.packet.cloned());
    }

    fn elsewhere(&mut self, _: Part, _: &Header) {}

    fn settling(&mut self, _: &Change) {
        let homes = &mut self.node.homes;
        let tags = self.node.blocks.iter();
        let before = tags.map(|&tag| {
            let home = homes.of(tag);
            (tag, home.inspect(tag), home.lost(tag))
        });
        self.before = before.collect();
    }

    fn settled(&mut self, change: &Change, _: Settled) {
        let (id, gone) = (self.node.id, change.gone);
        let (left, switch_lost) = (gone.0, change.switch_lost);
        self.fabric.tell(|| {
            format!(
                "node {id} settles its entries: nodes {left:b} gone, switch lost: {switch_lost}"
            )
        });
        if self.node.mutated(Mutation::KeepDeadLocks) {
            self.keep_dead_locks(change);
        }
        self.node.settled = self.node.view;
        self.node.rebuilds += 1;
        for (tag, before, was_lost) in std::mem::take(&mut self.before) {
            let lost = self.node.homes.of(tag).lost(tag);
            let text = if lost { "settled: lost" } else { "settled" };
            self.fabric.note(id, tag, text);
            self.settled.extend(before.map(|before| Settling {
                tag,
                before,
                was_lost,
                lost,
                gone,
            }));
        }
    }

    fn note(&mut self, note: Note) {
        let id = self.node.id;
        match note {
            Note::Asked { recalled, .. } => self.node.recalled += u64::from(recalled),
            Note::Stored(tag) => self.fabric.note(id, tag, "segment home"),
            Note::Rescuing(tag) => self.fabric.note(id, tag, "segment rescued"),
            Note::Dropped(tag) => self.fabric.note(id, tag, "dropped: its home is gone"),
            Note::CameHome(tag) => self.fabric.note(id, tag, "rescued"),
            Note::ToRescue(tag) if tag.home() != id => self.node.rescued += 1,
            Note::Accepted(tag) => {
                self.fabric.note(id, tag, "loss accepted");
                self.node.accepted.push(tag);
            }
            _ => {}
        }
    }

    fn defect(&self) -> Option<Defect> {
        self.node.mutation.and_then(Mutation::in_engine)
    }
}
