//! The home agent: owner of the entries that the switch does not own, keeper of its node's global memory.
//!
//! It processes requests "in the same way as the LCF pipeline of the switch" (§5.2): [`lock`], [`tables`],
//! [`score`] and [`forward`] are the same code. It hands out memory in chunks (§6), and moves an entry to the
//! switch after the entry's first event when it is configured to (§5.2.1; hotness comes later).

use super::assembly::Assembly;
use super::directory::{Directory, Entry, Owner};
use super::forward::{self, Granted};
use super::lock;
use super::per_requester::PerRequester;
use super::score::{self, Route, Score, Verdict};
use super::tables;
use super::{Executed, LastExecuted};
use crate::baseline::gather::Gathers;
use crate::wire::{
    Copyset, Flags, GlobalStatus, Header, Kind, NodeId, Reason, RequesterId, Seq, Tag,
};
use crate::{Data, Dest, Output, Outputs};
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};

/// How a home agent answers requests for the entries it owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// FlowCC: sharers answer the requester.
    #[default]
    Forward,
    /// The directory baseline: sharers answer the home, which then answers the requester.
    Gather,
}

/// What a home agent is told at its start.
#[derive(Clone, Copy, Debug)]
pub struct HomeConfig {
    /// Its node.
    pub node: NodeId,
    /// Epoch of the rack.
    pub epoch: u32,
    /// Block size in bytes.
    pub block: u32,
    /// Chunks of memory it may hand out.
    pub chunks: u32,
    /// Whether there is a switch to move entries to.
    pub migrate: bool,
    /// How it answers.
    pub style: Style,
    /// Decides which sharer provides data.
    pub seed: u32,
}

/// What the host does with the packet's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HomeAction {
    /// Nothing.
    None,
    /// Store it in home memory, at the packet's tag and offset.
    Store,
    /// Carry out the delegated operation, and answer.
    Delegate(Executed),
}

/// What a home agent has done.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct HomeCounters {
    /// Requests served as their owner.
    pub owned: u64,
    /// Requests refused because the entry was locked.
    pub locked: u64,
    /// Requests refused by the check table.
    pub invalid: u64,
    /// Packets ignored as stale or nonsensical.
    pub ignored: u64,
    /// Entries moved to the switch.
    pub migrated: u64,
    /// Entries that the switch had no room for.
    pub collided: u64,
}

/// Entries on their way to the switch at most, so that losing every answer is bounded.
const MAX_MOVING: usize = 64;

/// A node's home agent.
#[derive(Clone)]
pub struct HomeAgent {
    config: HomeConfig,
    directory: Directory,
    scores: PerRequester<[Score; 2]>,
    executed: LastExecuted,
    grown: Vec<(RequesterId, Seq, u64)>,
    gathers: Gathers,
    moving: Vec<Header>,
    add_seq: Seq,
    counters: HomeCounters,
}

impl HomeAgent {
    /// A home agent with nothing handed out.
    pub fn new(config: HomeConfig) -> Self {
        HomeAgent {
            directory: Directory::new(config.block, config.chunks),
            scores: PerRequester::default(),
            executed: LastExecuted::default(),
            grown: Vec::new(),
            gathers: Gathers::default(),
            moving: Vec::new(),
            add_seq: Seq(0),
            counters: HomeCounters::default(),
            config,
        }
    }

    /// What it has done so far.
    pub fn counters(&self) -> HomeCounters {
        self.counters
    }

    /// How many chunks it has handed out.
    pub fn chunks(&self) -> u32 {
        self.directory.chunks()
    }

    /// Hands out chunks to this node itself, without a packet.
    pub fn grow(&mut self, count: u32) -> Option<Tag> {
        let offset = self.directory.grow(count)?;
        Some(Tag((self.config.node as u64) << 48 | offset))
    }

    /// The entry of a block as `(lock word, status, copyset, the switch owns it)`, for checkers.
    pub fn inspect(&mut self, tag: Tag) -> Option<(u16, GlobalStatus, Copyset, bool)> {
        let entry = self.directory.entry(tag)?;
        Some((
            entry.lock,
            entry.status,
            entry.copyset,
            entry.owner == Owner::Switch,
        ))
    }

    /// Everything that decides what it will do, for explorers of all states: not what it has counted.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.directory.fingerprint(into);
        self.scores.fingerprint(into);
        self.executed.fingerprint(into);
        self.grown.hash(into);
        self.gathers.fingerprint(into);
        self.moving.hash(into);
        self.add_seq.hash(into);
    }

    /// Takes a packet with `body_len` bytes behind its header.
    pub fn handle(&mut self, header: &Header, body_len: u32) -> (Outputs, HomeAction) {
        let mut outputs = Outputs::default();
        let mut action = HomeAction::None;
        if header.epoch != self.config.epoch || header.tag.home() != self.config.node {
            self.counters.ignored += 1;
            return (outputs, action);
        }
        match header.kind {
            kind if kind.is_request() && header.flags.has(Flags::GRANTED) => {
                outputs.push(self.provide(header))
            }
            kind if kind.is_request() => self.request(header, &mut outputs),
            Kind::Unlock => self.unlock(header, &mut outputs),
            Kind::WriteBack => action = self.write_back(header, body_len, &mut outputs),
            Kind::GatherAck => self.gathered(header, &mut outputs),
            Kind::Alloc => self.alloc(header, &mut outputs),
            Kind::AddAck => self.added(header),
            Kind::DelegateRead | Kind::DelegateWrite | Kind::DelegateAdd | Kind::DelegateCas => {
                action = self.delegate(header, &mut outputs);
            }
            _ => self.counters.ignored += 1,
        }
        (outputs, action)
    }

    /// The packets to send again because their answer may be lost; the host asks every few round trips.
    pub fn resend(&self) -> impl Iterator<Item = Output> {
        self.moving
            .iter()
            .map(|header| Output::new(Dest::Switch, *header))
    }

    /// The switch owns the entry and has granted; the data is here.
    fn provide(&mut self, header: &Header) -> Output {
        if self.directory.entry(header.tag).is_none() || header.status != GlobalStatus::Unshared {
            return refusal(header, self.config.node, Reason::NoMemory);
        }
        forward::from_home(*header, self.config.node)
    }

    fn request(&mut self, header: &Header, outputs: &mut Outputs) {
        let me = self.config.node;
        let Some(entry) = self.directory.entry(header.tag) else {
            return outputs.push(refusal(header, me, Reason::NoMemory));
        };
        let ours = entry.owner != Owner::Switch;
        let shared = header.kind.locks_shared();
        let acquired = ours && lock::acquire(&mut entry.lock, shared);
        let valid = tables::check(
            header.kind,
            header.requester.node,
            entry.status,
            entry.copyset,
        );
        let now = forward::choose(header, entry.status, entry.copyset, self.config.seed);
        let row = &mut self.scores.row(header.requester)[header.seq.parity()];
        let verdict = score::enter(row, header.seq, acquired, valid, now);
        if verdict.undo() {
            lock::release(&mut entry.lock, shared);
        }
        match verdict {
            Verdict::Granted { route, .. } => {
                self.counters.owned += 1;
                let granted = Header {
                    status: route.status,
                    copyset: entry.copyset,
                    ..*header
                };
                self.grant(&granted, route, outputs);
            }
            Verdict::Refused { .. } => {
                let reason = match (ours, acquired) {
                    (false, _) => Reason::Moved,
                    (true, false) => Reason::Locked,
                    (true, true) => Reason::Invalid,
                };
                self.counters.locked += u64::from(reason == Reason::Locked);
                self.counters.invalid += u64::from(reason == Reason::Invalid);
                outputs.push(refusal(header, me, reason));
            }
            Verdict::Stale { .. } => self.counters.ignored += 1,
        }
    }

    fn grant(&mut self, granted: &Header, route: Route, outputs: &mut Outputs) {
        let me = self.config.node;
        if self.config.style == Style::Gather {
            return self.gather(granted, outputs);
        }
        match forward::send(granted, route, me) {
            Some(Granted::Send(output)) => outputs.push(output),
            Some(Granted::FromHome(header)) => outputs.push(forward::from_home(header, me)),
            None => self.counters.ignored += 1,
        }
    }

    fn unlock(&mut self, header: &Header, outputs: &mut Outputs) {
        let row = &mut self.scores.row(header.requester)[header.seq.parity()];
        if header.flags.has(Flags::IN_SWITCH) {
            // The switch granted this event; its unlock is not ours to execute (hard place FlowCC 2).
            self.counters.ignored += 1;
            return;
        }
        let ack = header.answer(Kind::UnlockAck, self.config.node);
        outputs.push(Output::new(Dest::Requester(header.requester), ack));
        if !score::leave(row, header.seq) {
            return;
        }
        let Some(entry) = self.directory.entry(header.tag) else {
            return;
        };
        let shared = header.flags.has(Flags::READER);
        lock::release(&mut entry.lock, shared);
        if !header.flags.has(Flags::KEEP) {
            entry.copyset = if shared {
                entry.copyset.union(header.copyset)
            } else {
                header.copyset
            };
            entry.status = header.status;
        }
        let movable =
            entry.lock == 0 && entry.owner == Owner::Home && !header.flags.has(Flags::KEEP);
        if self.config.migrate && movable && self.moving.len() < MAX_MOVING {
            outputs.push(self.add_to_switch(header.tag));
        }
    }

    /// ADD-TO-SWITCH (§5.2.1): holds the write lock until the switch has answered.
    fn add_to_switch(&mut self, tag: Tag) -> Output {
        self.add_seq = self.add_seq.next();
        let me = RequesterId {
            node: self.config.node,
            slot: 0,
        };
        let mut header =
            Header::request(Kind::AddToSwitch, self.config.epoch, tag, me, self.add_seq);
        if let Some(entry) = self.directory.entry(tag) {
            lock::acquire(&mut entry.lock, false);
            entry.owner = Owner::Moving;
            header.status = entry.status;
            header.copyset = entry.copyset;
        }
        self.moving.push(header);
        Output::new(Dest::Switch, header)
    }

    fn added(&mut self, header: &Header) {
        let Some(at) = self
            .moving
            .iter()
            .position(|add| add.tag == header.tag && add.seq == header.seq)
        else {
            self.counters.ignored += 1;
            return;
        };
        self.moving.swap_remove(at);
        let Some(entry) = self.directory.entry(header.tag) else {
            return;
        };
        lock::release(&mut entry.lock, false);
        if header.reason == Reason::None {
            *entry = Entry {
                owner: Owner::Switch,
                ..Entry::default()
            };
            self.counters.migrated += 1;
        } else {
            entry.owner = Owner::Settled;
            self.counters.collided += 1;
        }
    }

    fn write_back(&mut self, header: &Header, body_len: u32, outputs: &mut Outputs) -> HomeAction {
        let known = self.directory.entry(header.tag).is_some();
        let segment = if known {
            self.executed.segment(header.requester, header.seq)
        } else {
            None
        };
        let Some(assembly) = segment else {
            self.counters.ignored += 1;
            return HomeAction::None;
        };
        let Some(fresh) = Assembly::add(assembly, header.offset, body_len, self.config.block)
        else {
            self.counters.ignored += 1;
            return HomeAction::None;
        };
        if assembly.complete() {
            if header.flags.has(Flags::GATHER) {
                self.gathered(header, outputs);
            } else {
                outputs.push(written(header, self.config.node));
            }
        }
        if fresh {
            HomeAction::Store
        } else {
            HomeAction::None
        }
    }

    /// Hands out chunks, once a request: a copy is answered again, and one that its requester has left behind
    /// would take memory that nobody ever uses.
    fn alloc(&mut self, header: &Header, outputs: &mut Outputs) {
        let known = self.grown.iter().position(|g| g.0 == header.requester);
        let order = known.map(|at| header.seq.compare(self.grown[at].1));
        let offset = match (order, known) {
            (Some(Ordering::Less), _) => {
                self.counters.ignored += 1;
                return;
            }
            (Some(Ordering::Equal), Some(at)) => Some(self.grown[at].2),
            _ => self.directory.grow(header.offset),
        };
        let mut ack = header.answer(Kind::AllocAck, self.config.node);
        match offset {
            Some(offset) => {
                let row = (header.requester, header.seq, offset);
                match known {
                    Some(at) => self.grown[at] = row,
                    None => self.grown.push(row),
                }
                ack.tag = Tag((self.config.node as u64) << 48 | offset);
            }
            None => ack.reason = Reason::Full,
        }
        outputs.push(Output::new(Dest::Requester(header.requester), ack));
    }

    fn delegate(&mut self, header: &Header, outputs: &mut Outputs) -> HomeAction {
        let in_block = header.offset.is_multiple_of(8) && header.offset < self.config.block;
        if self.directory.entry(header.tag).is_none() || !in_block {
            let no = header.refuse(Kind::DelegateAck, self.config.node, Reason::NoMemory);
            outputs.push(Output::new(Dest::Requester(header.requester), no));
            return HomeAction::None;
        }
        let executed = self.executed.enter(header.requester, header.seq);
        if executed == Executed::Old {
            self.counters.ignored += 1;
            return HomeAction::None;
        }
        let ack = header.answer(Kind::DelegateAck, self.config.node);
        outputs.push(Output::with(
            Dest::Requester(header.requester),
            ack,
            Data::Operand,
        ));
        HomeAction::Delegate(executed)
    }

    /// The directory baseline's grant: collect first, answer with home's data then.
    fn gather(&mut self, granted: &Header, outputs: &mut Outputs) {
        let others = granted.copyset.without(granted.requester.node);
        let waiting = match (granted.kind, granted.status) {
            (Kind::ReadMiss | Kind::WriteMiss, GlobalStatus::Modified) => others,
            (Kind::WriteMiss | Kind::WriteShared, GlobalStatus::Shared) => others,
            _ => Copyset::EMPTY,
        };
        let flags = granted.flags.and(Flags::GRANTED).and(Flags::GATHER);
        let granted = Header {
            flags,
            sender: self.config.node,
            ..*granted
        };
        match self.gathers.begin(&granted, waiting) {
            Copyset::EMPTY => outputs.push(self.gathered_ack(granted)),
            nodes => {
                // Only a dirty copy has anything that home's memory has not.
                let provider = if granted.status == GlobalStatus::Modified {
                    nodes.iter().next()
                } else {
                    None
                };
                outputs.push(Output::new(Dest::Agents { nodes, provider }, granted));
            }
        }
    }

    fn gathered(&mut self, header: &Header, outputs: &mut Outputs) {
        match self
            .gathers
            .answer(header.requester, header.seq, header.sender)
        {
            Some(granted) => outputs.push(self.gathered_ack(granted)),
            None => self.counters.ignored += 1,
        }
    }

    fn gathered_ack(&self, granted: Header) -> Output {
        if matches!(granted.kind, Kind::ReadMiss | Kind::WriteMiss) {
            return forward::from_home(granted, self.config.node);
        }
        Output::new(
            Dest::Requester(granted.requester),
            granted.answer(Kind::Ack, self.config.node),
        )
    }
}

/// A block has come home. An eviction's requester waits for that; a read miss's provider has sent it, and the
/// requester's thread has gone on: its node's agent ends the event.
fn written(header: &Header, me: NodeId) -> Output {
    let to = if header.flags.has(Flags::PROVIDER) {
        Dest::Agent(header.requester.node)
    } else {
        Dest::Requester(header.requester)
    };
    Output::new(to, header.answer(Kind::WriteBackAck, me))
}

fn refusal(header: &Header, me: NodeId, reason: Reason) -> Output {
    Output::new(
        Dest::Requester(header.requester),
        header.refuse(Kind::Ack, me, reason),
    )
}
