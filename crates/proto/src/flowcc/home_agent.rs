//! The home agent: owner of the entries that the switch does not own,
//! keeper of its node's global memory.
//!
//! It processes requests "in the same way as the LCF pipeline of the switch" (§5.2): [`lock`],
//! [`tables`],
//! [`score`] and [`forward`] are the same code. It gives out memory and takes it back
//! ([`super::giving`]). Hot entries it moves to the switch ([`super::migration`]); after a failure
//! it makes its entries anew ([`super::settle`]).

use super::answering::{Answering, MakeAnswering};
use super::directory::{Directory, Entry, Owner};
use super::forward::{self, Granted};
use super::giving::Answer;
use super::lock;
use super::migration::{Migration, Moved, Mover};
use super::operating::Turns;
use super::score::{self, Route, Score, Verdict};
use super::settle::{Early, Findings};
use super::shards::{News, Shards};
use super::storing::Stores;
use super::tables;
use crate::call::{Answers, Assembly, Executed, LastExecuted, PerRequester};
use crate::heap::Heap;
use crate::wire::{Copyset, Flags, GlobalStatus, Header, HomeId, Kind, NodeId, Reason, Tag};
use crate::{CHUNK, Dest, Output, Outputs};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::Add;

/// The configuration of a home agent.
#[derive(Clone, Copy, Debug)]
pub struct HomeConfig {
    /// Its node.
    pub node: NodeId,
    /// Epoch of the rack.
    pub epoch: u32,
    /// Block size in bytes, a power of two.
    pub block: u32,
    /// Chunks of memory it has.
    pub chunks: u32,
    /// How often the node has started, 1 being the first time: every incarnation has addresses of
    /// its own.
    pub incarnation: u32,
    /// Which entries to move to the switch, if there is one.
    pub migration: Option<Migration>,
    /// Who answers what it has granted, if not those who have the block (FlowCC).
    pub answering: Option<MakeAnswering>,
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
}

impl Add for HomeCounters {
    type Output = HomeCounters;

    fn add(self, other: HomeCounters) -> HomeCounters {
        HomeCounters {
            owned: self.owned + other.owned,
            locked: self.locked + other.locked,
            invalid: self.invalid + other.invalid,
            ignored: self.ignored + other.ignored,
            migrated: self.migrated + other.migrated,
            collided: self.collided + other.collided,
            returned: self.returned + other.returned,
            lost: self.lost + other.lost,
        }
    }
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
    /// Entries taken back from the switch.
    pub returned: u64,
    /// Blocks whose last content died with a node.
    pub lost: u64,
}

/// A node's home agent.
#[derive(Clone)]
pub struct HomeAgent {
    pub(super) config: HomeConfig,
    pub(super) directory: Directory,
    pub(super) scores: PerRequester<[Score; 2]>,
    pub(super) executed: LastExecuted,
    /// What of its memory is given out. Explorers copy agents and leave this alone.
    pub(super) heap: Arc<Heap>,
    /// Whether any of it ever was, to others than the host.
    pub(super) gave: bool,
    /// It gives nothing out just now: its node is about to leave.
    pub(super) withheld: bool,
    pub(super) calls: Answers<Answer>,
    pub(super) stores: Stores,
    pub(super) turns: Turns,
    /// Who answers in place of sharers.
    pub(super) answering: Option<Box<dyn Answering>>,
    pub(super) mover: Mover,
    /// The epoch in which the entries were made.
    pub(super) made: u32,
    /// What is known of entries that are being made anew; while there is any of it,
    /// nothing is served.
    pub(super) findings: Option<Findings>,
    pub(super) early: Early,
    pub(super) counters: HomeCounters,
    /// Where the books are: what other shards have to know.
    pub(super) news: Option<News>,
    /// How often there was any.
    pub(super) changes: u64,
    /// There are other shards.
    pub(super) shared: bool,
    /// Blocks of this home, in any shard, whose last content is lost.
    pub(super) losses: bool,
    /// It serves the homes that groups keep, and not its node's own memory.
    pub(super) kept: bool,
}

impl HomeAgent {
    /// The shards of a home, which has given nothing out.
    pub fn sharded(config: HomeConfig, shards: Shards) -> Vec<HomeAgent> {
        let shard = |nth| {
            let mut agent = HomeAgent::new(config);
            agent.directory = agent.directory.of_shard(nth, shards);
            agent.mover = agent.mover.of_shard(nth, shards);
            agent.shared = shards.count() > 1;
            agent
        };
        shards.own().map(shard).collect()
    }

    /// What the other shards have to hear ([`HomeAgent::hear`]) before any use of what the books
    /// have given out just now.
    pub fn news(&self) -> Option<News> {
        self.news.clone()
    }

    /// The other shards have heard this.
    pub fn heard(&mut self, news: &News) {
        if self
            .news
            .as_ref()
            .is_some_and(|now| now.number == news.number)
        {
            self.news = None;
        }
    }

    /// What the books have changed.
    pub fn hear(&mut self, news: &News) {
        self.directory.adopt(&news.kinds);
        news.fresh
            .iter()
            .for_each(|blocks| self.renew(blocks.clone()));
    }

    /// Of all shards, when they have settled.
    pub fn note_losses(&mut self, lost: u64) {
        self.losses = lost != 0;
    }

    /// A home agent that has given nothing out.
    pub fn new(config: HomeConfig) -> Self {
        let home = HomeId::of(config.node);
        let directory = Directory::new(home, config.block, config.chunks, config.incarnation);
        let block = u64::from(config.block);
        let blocks = u64::from(directory.limit()) * (CHUNK / block);
        let heap = Arc::new(Heap::new(block, blocks));
        HomeAgent {
            directory,
            scores: PerRequester::default(),
            executed: LastExecuted::default(),
            heap,
            gave: false,
            withheld: false,
            calls: Answers::default(),
            stores: Stores::default(),
            turns: Turns::default(),
            answering: config.answering.map(|make| make()),
            mover: Mover::new(config.node, config.migration),
            made: config.epoch,
            findings: None,
            early: Early::default(),
            counters: HomeCounters::default(),
            news: None,
            changes: 0,
            shared: false,
            losses: false,
            kept: false,
            config,
        }
    }

    /// The agent of the homes that groups keep, where this node serves them. Their memory is not
    /// given out, their entries stay with it, and what no live cache has of a block is what a
    /// majority of its group has: none of them is ever lost.
    pub fn of_groups(config: HomeConfig) -> Self {
        let config = HomeConfig {
            migration: None,
            answering: None,
            chunks: 0,
            ..config
        };
        HomeAgent {
            directory: Directory::of_groups(config.block),
            kept: true,
            ..HomeAgent::new(config)
        }
    }

    /// Whether a home is one that it serves.
    pub(super) const fn serves(&self, home: HomeId) -> bool {
        match self.kept {
            true => home.group().is_some(),
            false => home.0 == self.config.node,
        }
    }

    /// Which entries to move to the switch from now on, if there is one.
    pub fn set_migration(&mut self, migration: Option<Migration>) {
        self.mover.set_policy(migration);
    }

    /// What it has done so far.
    pub fn counters(&self) -> HomeCounters {
        self.counters
    }

    /// The epoch it is in.
    pub fn epoch(&self) -> u32 {
        self.config.epoch
    }

    /// The epoch in which its entries were made.
    pub fn made(&self) -> u32 {
        self.made
    }

    /// How many chunks, from the first, have directory entries: it has given out memory of the last
    /// of them.
    pub fn chunks(&self) -> u32 {
        self.directory.chunks()
    }

    /// The entry of a block as `(lock word, status, copyset, the switch owns it)`, for checkers.
    pub fn inspect(&mut self, tag: Tag) -> Option<(u16, GlobalStatus, Copyset, bool)> {
        let entry = self.directory.entry(tag)?;
        Some((entry.lock, entry.status, entry.copyset, entry.away()))
    }

    /// Whether the switch decides about requests for a block, or may: then home is asked for its
    /// bytes only, and nobody writes home's memory in place.
    pub fn is_away(&self, tag: Tag) -> bool {
        let entry = self.directory.look(tag);
        self.findings.is_none() && entry.is_some_and(|entry| entry.away())
    }

    /// Everything that decides what it will do, for explorers of all states:
    /// not what it has counted.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (self.config.epoch, self.made).hash(into);
        self.directory.fingerprint(into);
        self.scores.fingerprint(into);
        self.executed.fingerprint(into);
        self.heap.hash(into);
        (self.gave, self.withheld).hash(into);
        self.calls.fingerprint(into);
        self.stores.fingerprint(into);
        if let Some(answering) = &self.answering {
            answering.fingerprint(into);
        }
        self.mover.fingerprint(into);
        self.findings.hash(into);
        if self.kept {
            self.early.hash(into);
        }
    }

    /// The memory that it serves.
    pub(super) const fn home(&self) -> HomeId {
        HomeId::of(self.config.node)
    }

    /// Takes a packet with `body_len` bytes behind its header.
    pub fn handle(&mut self, header: &Header, body_len: u32) -> (Outputs, HomeAction) {
        let mut outputs = Outputs::default();
        let action = self.serve(header, body_len, &mut outputs);
        (outputs, action)
    }

    /// The same, with what is to be sent put where the caller wants it: it is some 200 bytes, which
    /// are not to be copied from function to function.
    pub fn serve(&mut self, header: &Header, body_len: u32, outputs: &mut Outputs) -> HomeAction {
        let stranger = header.epoch != self.config.epoch || !self.serves(header.tag.home());
        if stranger || self.findings.is_some() {
            self.counters.ignored += 1;
            return HomeAction::None;
        }
        match header.kind {
            kind if kind.is_request() && header.flags.has(Flags::GRANTED) => {
                outputs.push(self.provide(header))
            }
            kind if kind.is_request() => self.request(header, outputs),
            Kind::Unlock => self.unlock(header, outputs),
            Kind::WriteBack => return self.write_back(header, body_len, outputs),
            Kind::GatherAck => self.answered(header, outputs),
            Kind::Alloc => self.alloc(header, outputs),
            Kind::AddAck | Kind::RemoveAck => self.moved(header, outputs),
            Kind::Demote => self.demote(header, outputs),
            Kind::AcceptLoss => self.accept_loss(header, outputs),
            _ => self.counters.ignored += 1,
        }
        HomeAction::None
    }

    /// The packets to send again because their answer may be lost; the host asks every few round
    /// trips.
    pub fn resend(&self) -> impl Iterator<Item = Output> {
        self.mover
            .packets()
            .map(|header| Output::new(Dest::Switch, header))
    }

    /// Ends a period (§5.2.2): the hottest entries are to move. What can start at once is returned;
    /// the rest starts as locks and slots become free.
    pub fn end_period(&mut self) -> Vec<Output> {
        let (directory, turns) = (&mut self.directory, &mut self.turns);
        turns.end_period();
        self.mover.end_period(|tag, hot| {
            let Some(entry) = directory.entry(tag) else {
                return false;
            };
            if hot && turns.recent(tag) {
                return false;
            }
            let (from, to) = if hot {
                (Owner::Home, Owner::Wanted)
            } else {
                (Owner::Wanted, Owner::Home)
            };
            let changes = entry.owner == from;
            if changes {
                entry.owner = to;
            }
            changes
        });
        self.start_moves()
    }

    /// Starts the moves that can start, the hottest first.
    pub fn start_moves(&mut self) -> Vec<Output> {
        if self.findings.is_some() {
            return Vec::new();
        }
        let wanted: Vec<Tag> = self.mover.wanted().rev().collect();
        let mut outputs = Vec::new();
        for tag in wanted {
            outputs.extend(self.start_move(tag));
        }
        outputs
    }

    fn start_move(&mut self, tag: Tag) -> Option<Output> {
        let entry = self.directory.entry(tag)?;
        self.mover.add(self.config.epoch, tag, entry)
    }

    /// The switch owns the entry and has granted; the data is here.
    fn provide(&mut self, header: &Header) -> Output {
        if self.directory.entry(header.tag).is_none() || header.status != GlobalStatus::Unshared {
            return refusal(header, self.config.node, self.directory.absence(header.tag));
        }
        forward::from_home(*header, self.config.node)
    }

    fn request(&mut self, header: &Header, outputs: &mut Outputs) {
        let me = self.config.node;
        let absence = self.directory.absence(header.tag);
        let Some(entry) = self.directory.entry(header.tag) else {
            return outputs.push(refusal(header, me, absence));
        };
        let lost = entry.owner == Owner::Lost;
        let ours = !entry.away() && !lost;
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
                    (false, _) if lost => Reason::Lost,
                    (false, _) => Reason::Moved,
                    (true, false) => Reason::Locked,
                    (true, true) => Reason::Invalid,
                };
                self.counters.locked += u64::from(reason == Reason::Locked);
                self.counters.invalid += u64::from(reason == Reason::Invalid);
                outputs.push(refusal(header, me, reason));
            }
            // Only a switch passes requests on.
            Verdict::Stale { .. } | Verdict::Elsewhere { .. } => self.counters.ignored += 1,
        }
    }

    fn grant(&mut self, granted: &Header, route: Route, outputs: &mut Outputs) {
        let me = self.config.node;
        if let Some(answering) = &mut self.answering {
            return answering.grant(granted, me, outputs);
        }
        match forward::send(granted, route, me) {
            Some(Granted::Send(output)) => {
                if let Dest::Agents { nodes, .. } = output.to {
                    self.mover.heat(granted.tag, nodes.len());
                }
                outputs.push(output);
            }
            Some(Granted::FromHome(header)) => outputs.push(forward::from_home(header, me)),
            None => self.counters.ignored += 1,
        }
    }

    fn unlock(&mut self, header: &Header, outputs: &mut Outputs) {
        let row = &mut self.scores.row(header.requester)[header.seq.parity()];
        if header.flags.has(Flags::IN_SWITCH) {
            // The switch granted this event; its unlock is not ours to execute (hard place FlowCC
            // 2).
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
        if entry.owner == Owner::Wanted {
            self.start_move(header.tag)
                .into_iter()
                .for_each(|output| outputs.push(output));
        }
    }

    /// The switch has answered a move (§5.2.1).
    fn moved(&mut self, header: &Header, outputs: &mut Outputs) {
        let Some(entry) = self.directory.entry(header.tag) else {
            self.counters.ignored += 1;
            return;
        };
        match self.mover.answered(header, entry) {
            Moved::Added => self.counters.migrated += 1,
            Moved::Collided => self.counters.collided += 1,
            Moved::Returned(free) => {
                self.counters.returned += 1;
                outputs.push(free);
            }
            Moved::Stays | Moved::Freed => {}
            Moved::Stale => self.counters.ignored += 1,
        }
    }

    /// The shadow node has found the entry cold, or another hotter.
    fn demote(&mut self, header: &Header, outputs: &mut Outputs) {
        let Some(entry) = self.directory.entry(header.tag) else {
            self.counters.ignored += 1;
            return;
        };
        match self.mover.remove(self.config.epoch, header.tag, entry) {
            Some(output) => outputs.push(output),
            None => self.counters.ignored += 1,
        }
    }

    /// The application goes on with what home's memory has of a lost block.
    fn accept_loss(&mut self, header: &Header, outputs: &mut Outputs) {
        let executed = self.executed.enter(header.requester, header.seq);
        let mut ack = header.answer(Kind::AcceptLossAck, self.config.node);
        let absence = self.directory.absence(header.tag);
        match (executed, self.directory.entry(header.tag)) {
            (Executed::Old, _) => return,
            (_, None) => ack.reason = absence,
            (Executed::New, Some(entry)) if entry.owner == Owner::Lost => {
                // Applications may hold its lock.
                let lock = entry.lock;
                *entry = Entry {
                    lock,
                    ..Entry::default()
                };
            }
            _ => {}
        }
        outputs.push(Output::new(Dest::Requester(header.requester), ack));
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
            // Who gives it up would wait, and needs its entry for another block.
            if !known && self.comes_nowhere(header.tag) {
                outputs.push(written(header, self.config.node));
            }
            return HomeAction::None;
        };
        let Some(fresh) = Assembly::add(assembly, header.offset, body_len, self.config.block)
        else {
            self.counters.ignored += 1;
            return HomeAction::None;
        };
        if assembly.complete() {
            if header.flags.has(Flags::GATHER) {
                self.answered(header, outputs);
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

    /// An agent has answered to home, and not to the requester.
    fn answered(&mut self, header: &Header, outputs: &mut Outputs) {
        let me = self.config.node;
        let awaited = (self.answering.as_mut()).is_some_and(|a| a.answered(header, me, outputs));
        self.counters.ignored += u64::from(!awaited);
    }
}

/// A block has come home. An eviction's requester waits for that;
/// a read miss's provider has sent it, and the requester's thread has gone on:
/// its node's agent ends the event.
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
