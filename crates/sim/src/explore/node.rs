//! A node as explorers see it: its agents, its memory, its cache and its threads, wired as the library wires them.
//!
//! A cache has a place for every block, and only programs evict: which block must go is no matter of coherence.

use super::effects::{Effects, Observation};
use super::layout::{Layout, Standing};
use super::packet::{Packet, Value};
use super::scenario::MAX_NODES;
use super::thread::Thread;
use super::witness::Witness;
use crate::world::Mutation;
use rackmem_proto::Data;
use rackmem_proto::flowcc::cache_agent::{self, Reaction};
use rackmem_proto::flowcc::{Executed, HomeAction, HomeAgent, LastExecuted, LocalStatus};
use rackmem_proto::wire::{
    Copyset, Dest, Flags, GlobalStatus, Header, Kind, NodeId, Reason, RequesterId, Seq,
};
use rackmem_proto::{Output, flowcc::HomeCounters};
use std::hash::{Hash, Hasher};

/// A place for a copy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Slot {
    /// What the node may do with it.
    pub status: LocalStatus,
    /// The words; those of a reserved slot arrive before its status changes.
    pub words: Value,
    /// Whether a thread's event fills or empties it.
    pub reserved: bool,
}

/// Everything of a node.
#[derive(Clone)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// Its home agent.
    pub home: HomeAgent,
    /// Home memory by block; only its own blocks' ever change.
    pub memory: Vec<Value>,
    /// Its cache by block.
    pub slots: Vec<Slot>,
    /// Its threads, by the slots of their requesters.
    pub threads: Vec<Thread>,
    /// How often it has started.
    pub incarnation: u32,
    /// How often each node has, 0 for one that is dead.
    pub homes: [u8; MAX_NODES],
    pub(super) executed: LastExecuted,
    pub(super) retained: Vec<Retained>,
    /// Blocks that this cache has downgraded: their homes may not have them yet.
    pub(super) downgraded: Vec<bool>,
}

/// A block that has been given away, for a retransmission: to which event, which block, its words.
pub type Retained = (RequesterId, Seq, u8, Value);

impl Node {
    /// A node before anything has happened.
    pub fn new(id: NodeId, layout: &Layout, standing: Standing) -> Self {
        let threads = layout.scenario.threads_of(id);
        Node {
            id,
            home: layout.home(id, standing),
            memory: vec![Value::default(); layout.blocks()],
            slots: vec![Slot::default(); layout.blocks()],
            threads: threads
                .map(|index| Thread::new(index, layout, standing))
                .collect(),
            incarnation: standing.incarnation,
            homes: [1; MAX_NODES],
            executed: LastExecuted::default(),
            retained: Vec::new(),
            downgraded: vec![false; layout.blocks()],
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.incarnation, self.homes).hash(into);
        self.home.fingerprint(into);
        self.executed.fingerprint(into);
        self.memory.hash(into);
        self.slots.hash(into);
        self.retained.hash(into);
        self.downgraded.hash(into);
        for thread in &self.threads {
            thread.fingerprint(into);
        }
    }

    /// Takes a packet.
    pub fn handle(&mut self, packet: &Packet, layout: &Layout, fx: &mut Effects) {
        let mut taken = *packet;
        if layout.mutated(Mutation::ForgetEpoch) {
            taken.header.epoch = self.home.epoch();
        }
        let packet = &taken;
        let header = &packet.header;
        if header.epoch != self.home.epoch() {
            fx.seen.see(Witness::IgnoredPast);
            return;
        }
        if let Some((requester, _)) = packet.answers() {
            return self.answered(usize::from(requester.slot), packet, layout, fx);
        }
        let forwarded = header.kind.is_request() && header.flags.has(Flags::GRANTED);
        if forwarded && header.status != GlobalStatus::Unshared {
            self.cache_agent(header, layout, fx);
        } else {
            self.home_agent(packet, layout, fx);
        }
    }

    /// What the home agent sends again because its answer may be lost, one by one.
    pub fn home_resends(&self) -> usize {
        self.home.resend().count()
    }

    /// Sends one of them.
    pub fn resend_home(&self, nth: usize, fx: &mut Effects) {
        if let Some(output) = self.home.resend().nth(nth) {
            fx.send(&output, None);
        }
    }

    /// Its home agent is told to move a block's entry to the switch.
    pub fn want(&mut self, block: u8, layout: &Layout, fx: &mut Effects) {
        if let Some(output) = self.home.want(layout.tag(block)) {
            fx.send(&output, None);
        }
    }

    /// Its home agent is told to take one back: what a shadow says.
    pub fn demote(&mut self, block: u8, layout: &Layout, fx: &mut Effects) {
        let shadow = RequesterId {
            node: self.id,
            slot: 0,
        };
        let tag = layout.tag(block);
        let header = Header::request(Kind::Demote, self.home.epoch(), tag, shadow, Seq(0));
        let (outputs, _) = self.home.handle(&header, 0);
        outputs.iter().for_each(|output| fx.send(output, None));
    }

    fn cache_agent(&mut self, header: &Header, layout: &Layout, fx: &mut Effects) {
        let Some(block) = layout.block(header.tag) else {
            return;
        };
        let mut executed = self.executed.enter(header.requester, header.seq);
        fx.seen
            .see_if(executed == Executed::Again, Witness::AnsweredAgain);
        fx.seen
            .see_if(executed == Executed::Old, Witness::IgnoredOld);
        if layout.mutated(Mutation::ForgetExecuted) {
            executed = Executed::New;
        }
        let reads_dirty = header.kind == Kind::ReadMiss && header.status == GlobalStatus::Modified;
        self.downgraded[usize::from(block)] |= reads_dirty && executed != Executed::Old;
        let slot = self.slots[usize::from(block)];
        let words = match slot.status {
            LocalStatus::Invalid => self.recall(header, fx),
            _ => Some(slot.words),
        };
        let has_data = words.is_some();
        let reaction = cache_agent::react(self.id, header, slot.status, executed, has_data);
        let words = words.unwrap_or_default();
        self.react(header, &reaction, &words, layout, fx);
        if reaction.retain && !layout.mutated(Mutation::DontRetain) {
            self.retain(header, block, words);
        }
        let invalidates = reaction.next == LocalStatus::Invalid;
        let ignores = invalidates && layout.mutated(Mutation::KeepInvalidated);
        if reaction.next != slot.status && !ignores {
            self.downgraded[usize::from(block)] &= !invalidates;
            let action = if invalidates { "invalid" } else { "downgraded" };
            fx.notes.push((self.id, block, action));
            self.slots[usize::from(block)].status = reaction.next;
        }
    }

    fn recall(&self, header: &Header, fx: &mut Effects) -> Option<Value> {
        let of_event = |row: &&Retained| (row.0, row.1) == (header.requester, header.seq);
        let row = self.retained.iter().find(of_event)?;
        fx.seen.see(Witness::Recalled);
        Some(row.3)
    }

    /// One block a requester, in the order of the requesters.
    fn retain(&mut self, header: &Header, block: u8, words: Value) {
        self.retained.retain(|row| row.0 != header.requester);
        self.retained
            .push((header.requester, header.seq, block, words));
        self.retained.sort_unstable_by_key(|row| row.0);
    }

    fn react(
        &self,
        header: &Header,
        reaction: &Reaction,
        words: &Value,
        layout: &Layout,
        fx: &mut Effects,
    ) {
        for output in reaction.outputs.iter() {
            let writes_back =
                output.header.kind == Kind::WriteBack && !header.flags.has(Flags::GATHER);
            fx.seen.see_if(
                writes_back && header.kind == Kind::ReadMiss,
                Witness::WrittenBackUnderRead,
            );
            if writes_back && layout.mutated(Mutation::SkipWriteBack) {
                let lie = header.answer(Kind::WriteBackAck, self.id);
                fx.send(&Output::new(Dest::Requester(header.requester), lie), None);
                continue;
            }
            fx.send(output, (output.data == Data::Cache).then_some(words));
        }
    }

    fn home_agent(&mut self, packet: &Packet, layout: &Layout, fx: &mut Effects) {
        let header = &packet.header;
        let before = self.home.counters();
        let entry = self.home.inspect(header.tag);
        let lost = self.home.lost(header.tag);
        let (outputs, action) = self.home.handle(header, packet.body.bytes());
        if let Some(block) = layout.block(header.tag) {
            if lost && !self.home.lost(header.tag) {
                self.accepted(block, layout, fx);
            }
            let stale = header.kind == Kind::WriteBack && layout.mutated(Mutation::StoreStaleData);
            if action == HomeAction::Store || stale {
                fx.notes.push((self.id, block, "segment home"));
                let memory = &mut self.memory[usize::from(block)];
                packet.body.put(header.offset, memory);
            }
            for output in outputs.iter() {
                let words = &self.memory[usize::from(block)];
                fx.send(output, (output.data == Data::Home).then_some(words));
            }
        }
        let same = entry == self.home.inspect(header.tag);
        if header.kind == Kind::Unlock && same && fx.sent.len() == 1 {
            fx.seen.see(Witness::UnlockedAgain);
            let moved = entry.is_some_and(|(_, _, _, in_switch)| in_switch);
            fx.seen.see_if(moved, Witness::UnlockAfterMove);
        }
        self.watch(header, before, fx);
    }

    /// A thread goes on with what home has of a block.
    fn accepted(&mut self, block: u8, layout: &Layout, fx: &mut Effects) {
        fx.seen.see(Witness::LossAccepted);
        let entry = self.home.inspect(layout.tag(block));
        let held = entry.is_some_and(|(lock, ..)| lock != 0);
        fx.seen.see_if(held, Witness::LossAcceptedUnderLock);
        let words = self.memory[usize::from(block)];
        fx.observed.push(Observation::Accepted(block, words));
        if layout.mutated(Mutation::FreeLockOnAccept) {
            // As a home does that makes its entries without having heard of any event.
            self.home.freeze(self.home.epoch());
            self.home.settle(Copyset::EMPTY, false);
        }
    }

    /// What a home agent's counters and answers give away.
    fn watch(&self, header: &Header, before: HomeCounters, fx: &mut Effects) {
        let now = self.home.counters();
        let refused = |reason| {
            let mut answers = fx.sent.iter().filter(|p| p.header.kind == Kind::Ack);
            answers.any(|packet| packet.header.reason == reason)
        };
        let moved_away = refused(Reason::Moved);
        let seen = &mut fx.seen;
        seen.see_if(now.locked > before.locked, Witness::RefusedLocked);
        seen.see_if(now.invalid > before.invalid, Witness::RefusedInvalid);
        seen.see_if(now.migrated > before.migrated, Witness::Migrated);
        seen.see_if(now.collided > before.collided, Witness::Collided);
        seen.see_if(now.returned > before.returned, Witness::Returned);
        let stays = header.kind == Kind::RemoveAck && header.reason == Reason::Locked;
        seen.see_if(stays, Witness::Stayed);
        seen.see_if(moved_away, Witness::RefusedMoved);
        let gathered = matches!(header.kind, Kind::GatherAck | Kind::WriteBack)
            && fx.sent.iter().any(|p| p.header.kind == Kind::Ack);
        seen.see_if(gathered, Witness::Gathered);
    }
}
