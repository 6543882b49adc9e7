//! The host of a node's engine as explorers have it: small vectors in place of bytes, a list in place of ports.

use super::effects::{Effects, Observation};
use super::layout::Layout;
use super::node::Node;
use super::packet::{Packet, Value, telling};
use super::witness::Witness;
use rackmem_proto::Output;
use rackmem_proto::engine::{
    self, Change, Copies, Defect, FlowCc, Migrating, Note, Part, Payload, Recovery,
};
use rackmem_proto::flowcc::{LocalStatus, Migration, Settled, Shards};
use rackmem_proto::wire::{Copyset, GlobalStatus, Header, Kind, NodeId, Record, Tag};

/// Blocks that have come home while epochs begin, for a promise: those since this home has made its entries last, and those of
/// before this rebuild.
#[derive(Clone, Default, Hash)]
pub struct Homecomings {
    /// All.
    pub came: Vec<Tag>,
    /// Those of rebuilds that were cut off.
    pub before: Vec<Tag>,
}

/// A node, while something happens to it.
pub struct Here<'a> {
    /// The node.
    pub node: &'a mut Node,
    /// Its part in a rebuild, if it is in one.
    pub recovery: Option<&'a mut Recovery<Value>>,
    /// What came home.
    pub homecomings: Homecomings,
    /// The scenario.
    pub layout: &'a Layout,
    /// What comes of it.
    pub fx: &'a mut Effects,
    packet: Option<&'a Packet>,
    held: Option<u8>,
}

/// Home's memory by block, and the packet at hand.
pub struct Memory<'m> {
    blocks: &'m mut [Value],
    layout: &'m Layout,
    packet: Option<&'m Packet>,
}

impl Memory<'_> {
    fn block(&mut self, tag: Tag) -> Option<&mut Value> {
        let block = self.layout.block(tag)?;
        self.blocks.get_mut(usize::from(block))
    }
}

impl engine::Memory for Memory<'_> {
    type Bytes = Value;

    fn store(&mut self, header: &Header) {
        let body = self.packet.map(|packet| packet.body);
        if let (Some(body), Some(block)) = (body, self.block(header.tag)) {
            body.put(header.offset, block);
        }
    }

    fn put(&mut self, tag: Tag, bytes: &Value) {
        self.block(tag)
            .into_iter()
            .for_each(|block| *block = *bytes);
    }

    fn clear(&mut self, tag: Tag) {
        self.put(tag, &Value::default());
    }
}

impl<'a> Here<'a> {
    /// A node in no rebuild.
    pub fn new(node: &'a mut Node, layout: &'a Layout, fx: &'a mut Effects) -> Self {
        Here {
            node,
            recovery: None,
            homecomings: Homecomings::default(),
            layout,
            fx,
            packet: None,
            held: None,
        }
    }

    /// A packet comes.
    pub fn take(&mut self, packet: &'a Packet) {
        self.packet = Some(packet);
        engine::packet(self, &packet.header);
    }

    fn slot(&mut self, tag: Tag) -> Option<&mut super::node::Slot> {
        let block = self.layout.block(tag)?;
        self.node.slots.get_mut(usize::from(block))
    }

    /// A thread goes on with what home has of a block.
    fn accepted(&mut self, tag: Tag) {
        self.fx.seen.see(Witness::LossAccepted);
        let entry = self.node.home.agent.inspect(tag);
        let held = entry.is_some_and(|(lock, ..)| lock != 0);
        self.fx.seen.see_if(held, Witness::LossAcceptedUnderLock);
        if let Some(block) = self.layout.block(tag) {
            let words = self.node.memory[usize::from(block)];
            self.fx.observed.push(Observation::Accepted(block, words));
        }
    }

    fn died(&mut self, change: &Change, tag: Tag) -> bool {
        let nothing = (0, GlobalStatus::Unshared, Copyset::EMPTY, false);
        let entry = self.node.home.agent.inspect(tag);
        let (lock, _, copyset, _) = entry.unwrap_or(nothing);
        let gone = change.gone;
        lock != 0 && !gone.is_empty() || !copyset.is_empty() && gone.covers(copyset)
    }
}

impl engine::Host for Here<'_> {
    type Protocols = (FlowCc,);
    type Bytes = Value;
    type Memory<'m>
        = Memory<'m>
    where
        Self: 'm;

    fn me(&self) -> NodeId {
        self.node.id
    }

    fn epoch(&self) -> u32 {
        self.node.home.agent.epoch()
    }

    fn incarnation(&self, node: NodeId) -> u32 {
        let homes = &self.node.homes;
        homes.get(usize::from(node)).copied().unwrap_or(0).into()
    }

    fn shards(&self) -> Shards {
        Shards::ONE
    }

    fn home<'m, R>(
        &'m mut self,
        _: usize,
        section: impl FnOnce(&mut engine::Home, &mut Memory<'m>) -> R,
    ) -> R {
        let mut memory = Memory {
            blocks: &mut self.node.memory,
            layout: self.layout,
            packet: self.packet,
        };
        section(&mut self.node.home, &mut memory)
    }

    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<Value>) -> R) -> R {
        section(&mut self.node.copies)
    }

    fn migrating<R>(&mut self, _: impl FnOnce(&mut Migrating) -> R) -> Option<R> {
        None
    }

    fn policy(&self) -> Option<Migration> {
        self.layout.migration()
    }

    fn recovery(&mut self, section: impl FnOnce(&mut Recovery<Value>, &mut Self)) {
        if let Some(recovery) = self.recovery.take() {
            section(recovery, self);
            self.recovery = Some(recovery);
        }
    }

    fn body_len(&self) -> u32 {
        self.packet.map_or(0, |packet| packet.body.bytes())
    }

    fn records(&self) -> Vec<Record> {
        let records = self.packet.map(|packet| packet.body.records().to_vec());
        records.unwrap_or_default()
    }

    fn hold(&mut self, tag: Tag, _: bool) -> Option<LocalStatus> {
        let block = self.layout.block(tag)?;
        self.held = Some(block);
        let status = self.node.slots[usize::from(block)].status;
        (status != LocalStatus::Invalid).then_some(status)
    }

    fn keep(&mut self) -> Value {
        let held = self
            .held
            .map(|block| self.node.slots[usize::from(block)].words);
        held.unwrap_or_default()
    }

    fn set(&mut self, status: LocalStatus) {
        let Some(block) = self.held else { return };
        let slot = &mut self.node.slots[usize::from(block)];
        if slot.status != status {
            let invalid = status == LocalStatus::Invalid;
            let action = if invalid { "invalid" } else { "downgraded" };
            self.fx.notes.push((self.node.id, block, action));
        }
        slot.status = status;
    }

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        let slots = self.node.slots.iter().enumerate();
        let copies = slots.filter(|(_, slot)| slot.status != LocalStatus::Invalid);
        copies
            .map(|(block, slot)| (self.layout.tag(block as u8), slot.status))
            .collect()
    }

    fn clean(&mut self, tag: Tag) -> Option<Value> {
        let slot = self.slot(tag)?;
        (slot.status == LocalStatus::Shared).then_some(slot.words)
    }

    fn send(&mut self, output: &Output, payload: Payload<'_, Value>) {
        let words = match payload {
            Payload::Records(records) => return self.fx.sent.push(telling(output, records)),
            Payload::Copy => Some(self.keep()),
            Payload::Kept(words) => Some(*words),
            Payload::Home => {
                let block = self.layout.block(output.header.tag);
                block.map(|block| self.node.memory[usize::from(block)])
            }
            Payload::Nothing => None,
        };
        let back = output.header.kind == Kind::WriteBack;
        let asked = self.packet.map(|packet| packet.header.kind);
        let under_read = back && asked == Some(Kind::ReadMiss);
        self.fx
            .seen
            .see_if(under_read, Witness::WrittenBackUnderRead);
        self.fx.send(output, words.as_ref());
    }

    fn requester(&mut self, header: &Header) {
        if let Some(packet) = self.packet {
            let slot = usize::from(header.requester.slot);
            self.node.answered(slot, packet, self.layout, self.fx);
        }
    }

    fn elsewhere(&mut self, _: Part, _: &Header) {}

    fn settling(&mut self, change: &Change) {
        let before = std::mem::take(&mut self.homecomings.before);
        let saved = before.into_iter().any(|tag| self.died(change, tag));
        self.fx.seen.see_if(saved, Witness::SavedFromLoss);
    }

    fn settled(&mut self, _: &Change, _: Settled) {
        let came = std::mem::take(&mut self.homecomings.came);
        if came.iter().any(|tag| self.node.home.agent.lost(*tag)) {
            let detail = "a block that has come home is said to be lost".into();
            self.fx.complaint = Some(("no data is lost", "§5.4", detail));
        }
    }

    fn note(&mut self, note: Note) {
        let seen = &mut self.fx.seen;
        let came = &mut self.homecomings.came;
        match note {
            Note::NotOfNow => seen.see(Witness::IgnoredPast),
            Note::Asked {
                again,
                old,
                recalled,
            } => {
                seen.see_if(again, Witness::AnsweredAgain);
                seen.see_if(old, Witness::IgnoredOld);
                seen.see_if(recalled, Witness::Recalled);
            }
            Note::ToRescue(_) => seen.see(Witness::Rescued),
            Note::Dropped(_) => seen.see(Witness::DroppedWithHome),
            Note::CameHome(tag) if !came.contains(&tag) => came.push(tag),
            Note::Stored(tag) => {
                let block = self.layout.block(tag);
                let notes = block.map(|block| (self.node.id, block, "segment home"));
                self.fx.notes.extend(notes);
            }
            Note::Accepted(tag) => self.accepted(tag),
            _ => {}
        }
    }

    fn defect(&self) -> Option<Defect> {
        self.layout.defect()
    }
}
