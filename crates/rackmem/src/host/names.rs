//! The table of regions, where a group has copies of it: it outlives every node.
//!
//! In each epoch one node is the rack's keeper (`View::keeper`). The table is coherent memory of
//! that node, at a place that every node has for it, and each of its blocks is a line of a group.
//! An epoch begins with what a majority has: caches drop what they have of the table, and the
//! keeper reads every line, writes it again in the new epoch, puts it in place, and serves. A block
//! that comes home is with a majority before this is acknowledged, so whoever has been told that a
//! row is written home finds it after any minority of the copies has died; where nodes have a
//! `store` the copies are durable, and it is found after all of them have.
//!
//! Why this is enough is `docs/decisions/0032-names-outlive-nodes.md`. Which epoch a write is of,
//! and who takes it, `rackmem_proto::abd` decides (`Abd::fence_by_epochs`).

use crate::backoff::Backoff;
use crate::error::{AccessError, RackError};
use crate::host::agents::Agents;
use crate::host::here::{Block, kept_apart};
use crate::host::inner::NodeInner;
use crate::membership::Asked;
use crate::membership::current_view::CurrentView;
use rackmem_fabric::{Body, Net, Nobody, Port, Receiver, Whole, words};
use rackmem_proto::abd::{Command, Durability, Layout, first_line};
use rackmem_proto::engine::keeping;
use rackmem_proto::wire::{Contract, Dest, Header, Kind, NodeId, Own, RequesterId, Seq, Tag};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, Weak};
use std::time::Duration;

/// The name of the group that has the lines: no region's (`crate::region`).
pub(crate) const GROUP: &str = ".names";
/// Packets that wait while a block is on its way to the others; the next ones come again.
pub(super) const WAITING: usize = 1024;
/// How often to look whether there is something to do that nobody has said.
const LOOK: Duration = Duration::from_millis(20);

/// A packet that waits.
pub(super) struct Came {
    pub header: Header,
    pub body: Carried,
}

/// A body that outlives its packet.
pub(super) enum Carried {
    Nothing,
    Words(Block),
    Bytes(Vec<u8>),
}

impl Carried {
    pub fn of(body: Body<'_>) -> Self {
        match body {
            Body::None => Carried::Nothing,
            Body::Block(words) => Carried::Words(kept_apart(words)),
            Body::Bytes(bytes) => Carried::Bytes(bytes.to_vec()),
        }
    }

    pub fn body(&self) -> Body<'_> {
        match self {
            Carried::Nothing => Body::None,
            Carried::Words(words) => Body::Block(words),
            Carried::Bytes(bytes) => Body::Bytes(bytes),
        }
    }
}

/// Something to be sent.
pub(super) type Send = (Dest, Header, Carried);

/// Keeps what is to be sent until a majority has what it says.
pub(super) struct Held<'a> {
    net: &'a dyn Net,
    sends: RefCell<Vec<Send>>,
}

impl<'a> Held<'a> {
    pub fn over(net: &'a dyn Net) -> Self {
        let sends = RefCell::default();
        Held { net, sends }
    }

    pub fn into_sends(self) -> Vec<Send> {
        self.sends.into_inner()
    }
}

impl Net for Held<'_> {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
        let send = (to, *header, Carried::of(body));
        self.sends.borrow_mut().push(send);
    }

    fn segment(&self, block: usize) -> usize {
        self.net.segment(block)
    }
}

/// A node's part.
pub(crate) struct Names {
    copies: u8,
    /// Where the table is in this node's memory, and how long.
    first: Tag,
    len: u64,
    block: u64,
    /// Bytes of memory that an incarnation of a node has.
    span: u64,
    /// The epoch in which this process has begun to go on.
    going: AtomicU32,
    /// The epoch in which the table is in place here.
    open: AtomicU32,
    waiting: Mutex<VecDeque<Came>>,
    /// What a majority has the cause of: it leaves with the agents' thread, since only that reaches
    /// requesters on every network.
    leaving: Mutex<Vec<Send>>,
    changed: Condvar,
}

impl Names {
    /// With so many copies of a table of `len` bytes that is at `first` when this node keeps it.
    pub fn new(copies: u8, (first, len): (Tag, u64), (block, span): (u32, u64)) -> Self {
        Names {
            copies,
            first,
            len,
            block: block.into(),
            span,
            going: AtomicU32::new(0),
            open: AtomicU32::new(0),
            waiting: Mutex::default(),
            leaving: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// How many nodes have a copy.
    pub fn copies(&self) -> u8 {
        self.copies
    }

    /// Whether a block is of the table as some node has kept it, or does.
    pub fn is_a_table(&self, tag: Tag, standing: &CurrentView) -> bool {
        let there = standing.host(tag.home()).is_some() && tag.is_under(Contract::Coherent);
        there && tag.offset() % self.span < self.len
    }

    /// Whether a block is where the table is in this node's memory, if it keeps that.
    pub fn has(&self, tag: Tag) -> bool {
        tag.0 >= self.first.0 && tag.0 - self.first.0 < self.len
    }

    /// Whether the table is in place here.
    pub fn is_open(&self, agents: &Agents) -> bool {
        let epoch = agents.standing.epoch();
        self.open.load(SeqCst) == epoch && agents.standing.keeper() == Some(agents.node)
    }

    /// All members go on in this epoch.
    pub fn may_serve(&self, epoch: u32) {
        self.going.store(epoch, SeqCst);
        self.changed.notify_all();
    }

    /// The keeper and the epoch, once this process goes on in that and has the table in place if
    /// it is the one.
    pub fn await_term(&self, node: &NodeInner) -> Result<(NodeId, u32), AccessError> {
        let standing = &node.access.standing;
        let mut backoff = Backoff::new(node.access.patience);
        loop {
            let epoch = standing.epoch();
            let keeper = standing.keeper();
            if let Some(keeper) = keeper
                && self.going.load(SeqCst) == epoch
                && (keeper != node.id || self.open.load(SeqCst) == epoch)
                && standing.epoch() == epoch
            {
                return Ok((keeper, epoch));
            }
            let error = if node.closed.load(SeqCst) {
                RackError::Closed
            } else if standing.is_fenced() {
                RackError::Fenced
            } else if backoff.wait() {
                continue;
            } else {
                let node = keeper.unwrap_or(node.id);
                RackError::Timeout { node }
            };
            return Err(AccessError::Rack(error));
        }
    }

    /// Whether a packet is not to be served by who has received it: it waits for its turn, or
    /// comes again when the table is in place.
    pub fn takes(&self, agents: &Agents, header: &Header, body: Body<'_>) -> bool {
        let tag = header.tag;
        if !self.has(tag) || !keeping::concerns_home(agents.node, header) {
            return false;
        }
        // Where another node keeps the table this is memory that nobody looks at.
        if agents.standing.keeper() != Some(agents.node) {
            return false;
        }
        if self.open.load(SeqCst) != agents.standing.epoch() {
            // Blocks that have died with a node are to be overwritten.
            let own = header.requester.node == agents.node;
            return !(own && keeping::accepts_loss(header));
        }
        let mut waiting = self.waiting.lock().whole();
        if waiting.len() < WAITING {
            let (header, body) = (*header, Carried::of(body));
            waiting.push_back(Came { header, body });
            self.changed.notify_all();
        }
        true
    }

    /// Sends what may leave.
    pub fn let_leave(&self, net: &dyn Net, reply: &mut dyn Receiver) {
        let leaving = std::mem::take(&mut *self.leaving.lock().whole());
        for (to, header, body) in &leaving {
            net.send(*to, header, body.body(), reply);
        }
    }

    fn next(&self) -> Option<Came> {
        let mut waiting = self.waiting.lock().whole();
        if waiting.is_empty() {
            waiting = self.changed.wait_timeout(waiting, LOOK).whole().0;
        }
        waiting.pop_front()
    }
}

/// Keeps the table whenever this node is the keeper, until the rack is closed or gone.
pub(crate) fn keep(node: &Weak<NodeInner>, port: &dyn Port) {
    let mut keeping = None;
    while let Some(node) = node.upgrade().filter(|node| !node.closed.load(SeqCst)) {
        let Some(names) = &node.access.agents.names else {
            return;
        };
        let epoch = node.access.standing.epoch();
        let ours = node.access.standing.keeper() == Some(node.id);
        if !ours || names.going.load(SeqCst) != epoch || node.access.standing.is_fenced() {
            keeping = None;
        } else if keeping
            .as_ref()
            .is_none_or(|now: &Keeping| now.epoch != epoch)
        {
            // Whatever has waited is of another epoch.
            names.waiting.lock().whole().clear();
            keeping = Keeping::begin(&node, names, epoch);
        }
        let came = names.next();
        if let (Some(came), Some(keeping)) = (came, &mut keeping) {
            keeping.turn(&node, names, &came, port);
        }
    }
}

/// The keeper's part in an epoch.
struct Keeping {
    epoch: u32,
    group: u16,
    /// What a majority has of each block.
    lines: Vec<Vec<u8>>,
}

impl Keeping {
    /// Puts in place what a majority has. None: not yet.
    fn begin(node: &NodeInner, names: &Names, epoch: u32) -> Option<Self> {
        let mut keeping = Keeping {
            epoch,
            group: group(node, names)?,
            lines: Vec::new(),
        };
        let access = &node.access;
        for nth in 0..names.len / names.block {
            let (line, tag) = keeping.places(names, nth);
            let value = access.operate_in(epoch, Command::Take(line), Vec::new());
            let value = value.ok()?;
            keeping.place(node, tag, &value)?;
            keeping.lines.push(value);
        }
        names.open.store(epoch, SeqCst);
        Some(keeping)
    }

    /// A block's line, and where it is in this node's memory.
    fn places(&self, names: &Names, nth: u64) -> (Tag, Tag) {
        let offset = nth * names.block;
        let line = Tag(first_line(self.group).0 + offset);
        (line, Tag(names.first.0 + offset))
    }

    fn goes_on(&self, node: &NodeInner) -> bool {
        let standing = &node.access.standing;
        standing.epoch() == self.epoch && !standing.is_fenced() && !node.closed.load(SeqCst)
    }

    fn place(&self, node: &NodeInner, tag: Tag, value: &[u8]) -> Option<()> {
        let agents = &node.access.agents;
        while self.goes_on(node) {
            let put = agents.in_place(tag, true, |block| words::write(block, value));
            if put.is_some() {
                return put;
            }
            let lost = agents.homes[agents.shards.of(tag)]
                .lock()
                .whole()
                .agent
                .lost(tag);
            if lost {
                // What is put in place is all that there is to know of it.
                let _ = node.access.accept_loss(tag, false);
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        None
    }

    /// Serves a packet; what it says to others leaves when a majority has what it is about.
    fn turn(&mut self, node: &NodeInner, names: &Names, came: &Came, port: &dyn Port) {
        let agents = &node.access.agents;
        let held = Held::over(port);
        agents.serve(&held, &came.header, came.body.body(), &mut Nobody);
        let sends = held.into_sends();
        let mut home = sends.iter().filter(|(_, h, _)| keeping::says_home(h));
        if home.any(|(_, header, _)| !self.keep(node, names, header.tag)) {
            return;
        }
        if sends.is_empty() {
            return;
        }
        let mut leaving = names.leaving.lock().whole();
        // What finds no room is asked for again.
        if leaving.len() < WAITING {
            leaving.extend(sends);
        }
        drop(leaving);
        self.wake(node.id, port);
    }

    /// Says nothing to this node's agents.
    fn wake(&self, me: NodeId, port: &dyn Port) {
        let id = RequesterId { node: me, slot: 0 };
        let line = first_line(self.group);
        let header = Header::request(Kind::AbdConfig, 0, line, id, Seq(0));
        let nothing = Own::default().to_bytes();
        port.send(Dest::Agent(me), &header, Body::Bytes(&nothing), &mut Nobody);
    }

    /// Sees to it that a majority has a block as it is. False: the epoch is over.
    fn keep(&mut self, node: &NodeInner, names: &Names, tag: Tag) -> bool {
        let agents = &node.access.agents;
        let nth = (tag.0 - names.first.0) / names.block;
        let (line, _) = self.places(names, nth);
        let Some(known) = self.lines.get_mut(nth as usize) else {
            return true;
        };
        let mut value = vec![0; known.len()];
        {
            let _whole = agents.homes[agents.shards.of(tag)].lock().whole();
            let Some(block) = agents.memory.block(tag) else {
                return true;
            };
            words::read(&mut value, block);
        }
        if *known == value {
            return true;
        }
        loop {
            let written = Command::Write(line);
            match node.access.operate_in(self.epoch, written, value.clone()) {
                Ok(_) => {
                    self.lines[nth as usize] = value;
                    return true;
                }
                // Without a majority nothing is acknowledged, for as long as that takes.
                Err(_) if self.goes_on(node) => std::thread::sleep(Duration::from_millis(1)),
                Err(_) => return false,
            }
        }
    }
}

/// The number of the group, which the keeper makes when there are nodes for it.
fn group(node: &NodeInner, names: &Names) -> Option<u16> {
    let book = &node.access.groups;
    let groups = book.look().ok()?;
    if let Some((number, _)) = groups.find(GROUP) {
        return Some(number);
    }
    let view = book.view(node.access.standing.view()).ok()?;
    let layout = Layout::new(names.block as u32, names.len)?;
    let durability = match node.access.agents.replicas.stores.has_folder() {
        true => Durability::Sync,
        false => Durability::Memory,
    };
    // A switch knows nothing of the epochs of stamps.
    let asked = Asked {
        two_rounds: true,
        durability,
        ..Asked::new(layout, names.copies)
    };
    let next = groups.create((GROUP, 0), asked, (&view, node.id)).ok()?;
    let next = match durability {
        Durability::Memory => next,
        _ => next.numbered(fastrand::u64(1..)),
    };
    let taken = book.propose(&next).ok()?;
    let (number, _) = next.find(GROUP)?;
    taken.then_some(number)
}
