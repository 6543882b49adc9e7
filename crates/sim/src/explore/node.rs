//! A node as explorers see it: its agents, its memory, its cache and its threads.
//!
//! A cache has a place for every block, and only programs evict: which block must go is no matter of coherence.

use super::effects::Effects;
use super::host::Here;
use super::layout::{Layout, Start};
use super::packet::{Packet, Value};
use super::scenario::MAX_NODES;
use super::thread::Thread;
use super::witness::Witness;
use crate::world::Mutation;
use rackmem_proto::engine::{Copies, Home, Part, Role, part, role};
use rackmem_proto::flowcc::{HomeCounters, LocalStatus};
use rackmem_proto::wire::{Copyset, Dest, Header, Kind, NodeId, Reason, RequesterId, Seq};
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
    /// Its home.
    pub home: Home,
    /// Its cache agent.
    pub copies: Copies<Value>,
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
}

impl Node {
    /// A node before anything has happened.
    pub fn new(id: NodeId, layout: &Layout, standing: Start) -> Self {
        let threads = layout.scenario.threads_of(id);
        Node {
            id,
            home: Home::new(layout.home(id, standing)),
            copies: Copies::new(true),
            memory: vec![Value::default(); layout.blocks()],
            slots: vec![Slot::default(); layout.blocks()],
            threads: threads
                .map(|index| Thread::new(index, layout, standing))
                .collect(),
            incarnation: standing.incarnation,
            homes: [1; MAX_NODES],
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.incarnation, self.homes).hash(into);
        self.home.agent.fingerprint(into);
        self.copies.fingerprint(into);
        self.memory.hash(into);
        self.slots.hash(into);
        for thread in &self.threads {
            thread.fingerprint(into);
        }
    }

    /// Takes a packet.
    pub fn handle(&mut self, packet: &Packet, layout: &Layout, fx: &mut Effects) {
        let mut taken = *packet;
        if layout.mutated(Mutation::ForgetEpoch) {
            taken.header.epoch = self.home.agent.epoch();
        }
        if let Dest::Requester(id) = taken.to {
            if taken.header.epoch == self.home.agent.epoch() {
                self.answered(usize::from(id.slot), &taken, layout, fx);
            }
            return;
        }
        let header = taken.header;
        let before = self.home.agent.counters();
        let entry = self.home.agent.inspect(header.tag);
        let lost = self.home.agent.lost(header.tag);
        Here::new(self, layout, fx).take(&taken);
        let at_home = matches!(role(self.id, &header), Role::Home | Role::ShadowAndHome);
        if part(&header) != Part::Protocol || !at_home {
            return;
        }
        if lost && !self.home.agent.lost(header.tag) && layout.mutated(Mutation::FreeLockOnAccept) {
            // As a home does that makes its entries without having heard of any event.
            self.home.agent.freeze(self.home.agent.epoch());
            self.home.agent.settle(Copyset::EMPTY, false);
        }
        let same = entry == self.home.agent.inspect(header.tag);
        if header.kind == Kind::Unlock && same && fx.sent.len() == 1 {
            fx.seen.see(Witness::UnlockedAgain);
            let moved = entry.is_some_and(|(_, _, _, in_switch)| in_switch);
            fx.seen.see_if(moved, Witness::UnlockAfterMove);
        }
        self.watch(&header, before, fx);
    }

    /// What the home agent sends again because its answer may be lost, one by one.
    pub fn home_resends(&self) -> usize {
        self.home.agent.resend().count()
    }

    /// Sends one of them.
    pub fn resend_home(&self, nth: usize, fx: &mut Effects) {
        if let Some(output) = self.home.agent.resend().nth(nth) {
            fx.send(&output, None);
        }
    }

    /// Its home agent is told to move a block's entry to the switch.
    pub fn want(&mut self, block: u8, layout: &Layout, fx: &mut Effects) {
        if let Some(output) = self.home.agent.want(layout.tag(block)) {
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
        let header = Header::request(Kind::Demote, self.home.agent.epoch(), tag, shadow, Seq(0));
        let (outputs, _) = self.home.agent.handle(&header, 0);
        outputs.iter().for_each(|output| fx.send(output, None));
    }

    /// What a home agent's counters and answers give away.
    fn watch(&self, header: &Header, before: HomeCounters, fx: &mut Effects) {
        let now = self.home.agent.counters();
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
