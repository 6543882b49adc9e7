//! A node's part when the rack makes its directory anew: the host of `rackmem_proto::flowcc::Rebuild`.
//!
//! A thread of the node ([`Rebuilding::run`]) goes through the steps; packets come in the agents' thread.

use crate::agents::Agents;
use crate::locked::is_report;
use crate::requester::Requesters;
use rackmem_fabric::{Body, Net, Nobody};
use rackmem_proto::flowcc::{
    Heard, LocalStatus, Members, Next, Open, Rebuild, Settled, Stream, copy_record,
};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Header, NodeId, Record, Tag};
use rackmem_proto::{Data, Output};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is not acknowledged is sent again after this long.
const AGAIN: Duration = Duration::from_millis(5);

/// What rebuilds have come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RebuildMetrics {
    /// Rebuilds that were begun.
    pub begun: u64,
    /// Rebuilds after which the rack went on.
    pub done: u64,
    /// How long the last one took, from the view that called for it.
    pub last: Duration,
    /// Blocks that this node has sent home because home might not have had them, since it started.
    pub rescued: u64,
    /// Blocks of this node's memory that are lost, as of the last one.
    pub lost: u64,
    /// Locks whose home this node is and whose data died with a node, whole or as it was last, as of the last one.
    pub locks_lost: u64,
}

struct State {
    rebuild: Option<Rebuild>,
    /// Events of this node that the end of an epoch has cut off, and blocks that it has read and home may not have:
    /// kept until a rebuild is done, because one that is cut off itself has told some and not others.
    mine: Vec<Open>,
    read: Vec<Tag>,
    /// Open events of all nodes, as far as they are known.
    open: Vec<(NodeId, Open)>,
    /// Bytes of the blocks that are to be rescued.
    rescues: HashMap<Tag, Box<[AtomicU64]>>,
    /// The view in which this home's entries were made last.
    settled: View,
    metrics: RebuildMetrics,
}

/// See the module.
pub(crate) struct Rebuilding {
    me: NodeId,
    block: u32,
    /// Records that fit into a packet.
    fit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

impl Rebuilding {
    pub fn new(me: NodeId, block: u32, fit: usize, view: View) -> Self {
        Rebuilding {
            me,
            block,
            fit,
            state: Mutex::new(State {
                rebuild: None,
                mine: Vec::new(),
                read: Vec::new(),
                open: Vec::new(),
                rescues: HashMap::new(),
                settled: view,
                metrics: RebuildMetrics::default(),
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn metrics(&self) -> RebuildMetrics {
        self.lock().metrics
    }

    /// Members have come or gone politely: the entries stay as they are, and from now on who has come can die.
    pub fn note(&self, view: &View) {
        let mut state = self.lock();
        if state.settled.epoch == view.epoch {
            state.settled = *view;
        }
    }

    /// Goes with the rack into the epoch of `view`. Returns when the rack goes on, or, with false, when `overtaken`
    /// says that there is another view already.
    pub fn run(
        &self,
        view: &View,
        agents: &Agents,
        requesters: &Requesters,
        net: &dyn Net,
        overtaken: impl Fn() -> bool,
    ) -> bool {
        let began = Instant::now();
        self.lock().metrics.begun += 1;
        agents.enter(view);
        let cut = requesters.cut_off();
        let mut state = self.lock();
        // Of bare locks only what is held now counts: those of a rebuild that was cut off may have been released since.
        state.mine.retain(|open| !open.bare);
        state
            .mine
            .extend(cut.iter().flat_map(|cut| cut.open).flatten());
        state
            .read
            .extend(cut.iter().flat_map(|cut| cut.unfinished).flatten());
        agents.forget(view.gone_since(&state.settled));
        state.begin(self, view, agents);
        let mut told = Instant::now();
        loop {
            if told.elapsed() >= AGAIN {
                told = Instant::now();
                state.resend();
            }
            state.send(net);
            let next = state.rebuild.as_ref().map_or(Next::Done, Rebuild::next);
            match next {
                // Looked at first: a thread that has slept through the end of its epoch finds the next one behind it.
                Next::Done => break,
                _ if overtaken() => return false,
                Next::Collect => state.collect(self.me, agents),
                Next::Settle => state.settle(view, agents),
                Next::Wait => {
                    let wait = self.changed.wait_timeout(state, AGAIN);
                    state = wait.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
        state.mine.clear();
        state.read.clear();
        state.open.clear();
        state.rescues.clear();
        state.metrics.done += 1;
        state.metrics.last = began.elapsed();
        true
    }

    /// Whether nobody waits for this node's part any more.
    pub fn all_told(&self) -> bool {
        self.lock().rebuild.as_ref().is_none_or(Rebuild::all_told)
    }

    /// Late members may still wait for what this one has told.
    pub fn tick(&self, net: &dyn Net) {
        // Whoever holds the state is at work on it and sends itself.
        if let Ok(mut state) = self.state.try_lock()
            && state.rebuild.is_some()
        {
            state.resend();
            state.send(net);
        }
    }

    /// A packet of a rebuild.
    pub fn packet(&self, agents: &Agents, net: &dyn Net, header: &Header, body: Body<'_>) {
        let mut state = self.lock();
        let Some(rebuild) = &mut state.rebuild else {
            return;
        };
        let (heard, ack) = rebuild.handle(header, body.len() as u32);
        match (heard, body) {
            (Heard::Records(stream), Body::Bytes(bytes)) => {
                state.told(agents, stream, header.sender, Record::all(bytes));
            }
            (Heard::Rescue { store, whole }, _) => {
                if store && let Some(block) = agents.memory.block(header.tag) {
                    body.copy_to(block, header.offset as usize);
                }
                if whole {
                    agents.with_home(|home| home.note_rescued(header.tag));
                }
            }
            (Heard::Rescued(tag), _) => {
                agents.kept.rescued(tag);
                state.read.retain(|read| *read != tag);
                state.metrics.rescued += 1;
            }
            _ => {}
        }
        // The acknowledgement says that all of this has been noted.
        if let Some(ack) = ack {
            net.send(ack.to, &ack.header, Body::None, &mut Nobody);
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    fn begin(&mut self, host: &Rebuilding, view: &View, agents: &Agents) {
        let members = Members {
            epoch: view.epoch,
            founders: view.founders,
            switch: view.switch.is_some(),
        };
        self.open = self.mine.iter().map(|open| (host.me, *open)).collect();
        let settled = self.settled.epoch;
        agents.with_home(|home| {
            self.mine
                .iter()
                .for_each(|open| home.note_open(host.me, *open, settled));
        });
        self.rebuild = Some(Rebuild::node(
            host.me, members, host.block, host.fit, &self.mine,
        ));
    }

    fn resend(&mut self) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.resend();
        }
    }

    fn send(&mut self, net: &dyn Net) {
        let Some(rebuild) = &mut self.rebuild else {
            return;
        };
        while let Some(output) = rebuild.poll_output() {
            let Output { to, header, data } = output;
            match data {
                Data::Records => {
                    let bytes = bytes(rebuild.records(to));
                    net.send(to, &header, Body::Bytes(&bytes), &mut Nobody);
                }
                _ => {
                    if let Some(block) = self.rescues.get(&header.tag) {
                        net.send(to, &header, Body::Block(block), &mut Nobody);
                    }
                }
            }
        }
    }

    fn told(
        &mut self,
        agents: &Agents,
        stream: Stream,
        from: NodeId,
        records: impl Iterator<Item = Record>,
    ) {
        let settled = self.settled.epoch;
        agents.with_home(|home| {
            for record in records {
                match stream {
                    Stream::Open => {
                        let open = Open::from_record(record);
                        self.open.push((from, open));
                        home.note_open(from, open, settled);
                    }
                    Stream::Copies if is_report(&record) => agents.locks.note(from, record),
                    Stream::Copies => home.note_copy(from, record),
                    Stream::Entries if is_report(&record) => agents.locks.note_switch(record),
                    Stream::Entries => home.note_registers(record),
                    Stream::Ready => {}
                }
            }
        });
    }

    /// Step 2: what homes may not have, and what this cache has.
    fn collect(&mut self, me: NodeId, agents: &Agents) {
        let mut abroad = Vec::new();
        for (tag, words) in agents.kept.to_rescue(&agents.cache, &self.open, &self.read) {
            if tag.home() != me {
                abroad.push(tag);
                let block = words.into_iter().map(AtomicU64::new).collect();
                self.rescues.insert(tag, block);
            } else if let Some(home) = agents.memory.block(tag) {
                for (to, from) in home.iter().zip(words) {
                    to.store(from, std::sync::atomic::Ordering::Relaxed);
                }
                agents.with_home(|home| home.note_rescued(tag));
                agents.kept.rescued(tag);
            }
        }
        let copies = agents
            .cache
            .copies()
            .map(|(tag, status)| copy_record(tag, status == LocalStatus::Modified));
        let (own, mut others): (Vec<Record>, Vec<Record>) =
            copies.partition(|copy| copy.tag.home() == me);
        others.extend(agents.locks.reports());
        agents.with_home(|home| own.iter().for_each(|copy| home.note_copy(me, *copy)));
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.collect(abroad, others);
        }
    }

    /// Step 4: the entries.
    fn settle(&mut self, view: &View, agents: &Agents) {
        let gone = view.gone_since(&self.settled);
        let switch_lost = self.settled.switch.is_some() && view.switch != self.settled.switch;
        let Settled { lost, .. } = agents.with_home(|home| home.settle(gone, switch_lost));
        self.metrics.locks_lost = agents.locks.settle(view, gone);
        self.metrics.lost = lost;
        self.settled = *view;
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.settled();
        }
    }
}

/// Records as a body.
pub(crate) fn bytes(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(|r| r.to_bytes()).collect()
}
