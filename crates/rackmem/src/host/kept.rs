//! Homes that groups keep: coherent memory that does not die with the node that serves it.
//!
//! Each block of such a home is a line of a group, and the rack's keeper (`View::keeper`) serves
//! all of them, with the home agent that nodes have for their own memory. What is home is with a
//! majority: an acknowledgement that a block has come home leaves when a majority has it. So the
//! next keeper knows as much as the last one did, but for what the members tell it when the epoch
//! begins, and its entries are made anew from that as all entries are. What it has of a block
//! itself is nothing until it is needed for the first time in the epoch: then it reads the line and
//! writes it again, so that what an earlier keeper has left at a minority is below.
//!
//! | a packet about a block | is served |
//! |---|---|
//! | that is in place, and brings no bytes home | at once, by the thread that has it |
//! | that is not in place, or comes home | in its turn, by a thread of this ([`run`]) |
//! | where packets are calls | in its turn, by the thread that sends, which waits |
//!
//! A turn waits for a majority, and where copies are durable for their syncs. Those about different
//! blocks are under way at a time, and share both; those about one block are one after the other
//! ([`Turns`] says why, and how many there are). So the first of these threads has others beside it
//! once this node is the keeper of something; where the system gives none, it serves all.
//!
//! What nobody needs is put in place by the way, when the first thread has nothing else to do or
//! some packets have been served: the sweep ([`Sweep`]), which has a turn for each block. So every
//! copy has what was written before a death, also one that was late for it, and not only those of a
//! majority.
//!
//! Which epoch a write is of, and who takes it, `rackmem_proto::abd` decides, as for the table of
//! names ([`super::names`]). Why this is enough is `docs/decisions/0037-homes-that-groups-keep.md`.

use crate::bytes::mapped::Stop;
use crate::error::AccessError;
use crate::host::agents::Agents;
use crate::host::inner::NodeInner;
use crate::host::kept_objects;
use crate::host::names::{Came, Carried, Held, Send};
use crate::host::replicated::apart;
use crate::membership::Group;
use rackmem_fabric::{Body, Net, Nobody, Port, Receiver, Whole, words};
use rackmem_proto::abd::{Command, GROUPS, first_line};
use rackmem_proto::engine::keeping::{
    self, AtKeeper, InPlace, KeptBy, KeptStep, KeptTurn, Sweep, Way,
};
use rackmem_proto::engine::turns::{AT_ONCE, About, Turns, WAITING};
use rackmem_proto::engine::{self, KeptCopies};
use rackmem_proto::flowcc::{KeptBlocks, LocalStatus, Whereabouts};
use rackmem_proto::membership::{KeptAs, Survives};
use rackmem_proto::sabre::Laid;
use rackmem_proto::wire::{Dest, Header, HomeId, Kind, NodeId, Own, RequesterId, Seq, Tag};
use std::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

/// How often the first thread looks whether the rack is closed.
const LOOK: Duration = Duration::from_millis(50);
/// How often the others look. They are told by the first one.
const LOOK_TOO: Duration = Duration::from_secs(1);

/// Blocks that are swept between two packets, when none waits.
const SWEPT: usize = 32;
/// Packets that are served between two blocks that are swept, when many wait.
const SERVED: u32 = 32;
/// How long the copies of a block may take to answer the sweep: packets wait meanwhile.
const SWEEP_PATIENCE: Duration = Duration::from_millis(200);
/// After a group whose copies do not answer, and before the sweep looks for more to do.
const SWEEP_REST: Duration = Duration::from_secs(2);

/// A turn: it ends when this does.
struct UnderWay<'a> {
    kept: &'a Kept,
    about: About,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut turns = self.kept.turns();
        turns.end(self.about);
        // This thread may sweep before it looks for what could not begin until now.
        if !turns.none_wait() {
            self.kept.came.notify_one();
        }
        if self.kept.await_turns.load(Relaxed) > 0 {
            self.kept.ended.notify_all();
        }
    }
}

/// A node's part.
pub(crate) struct Kept {
    block: u64,
    /// Packets can be lost, and threads of this serve what waits.
    lossy: bool,
    /// Homes that there are, and those whose writes all survive, by group.
    there: AtomicU32,
    writes: AtomicU32,
    /// By group, where its blocks begin and end. Both only rise: whoever sees one of them before
    /// the other takes an address for what it was a moment ago.
    begin: [AtomicU64; GROUPS],
    end: [AtomicU64; GROUPS],
    in_place: Mutex<InPlace>,
    /// The packets that wait, and what turns are under way.
    turns: Mutex<Turns<Carried>>,
    /// A packet waits that may be served: for a thread that has nothing to do.
    came: Condvar,
    /// A turn has ended: for threads whose packets are calls, of which so many wait. They count
    /// themselves behind the lock of turns.
    ended: Condvar,
    await_turns: AtomicU32,
    /// Packets that have had their turns.
    served: AtomicU32,
    /// What may leave: with the agents' thread, since only that reaches requesters on every
    /// network.
    leaving: Mutex<Vec<Send>>,
    node: OnceLock<Weak<NodeInner>>,
}

impl Kept {
    /// Of a node whose rack has blocks of so many bytes, in this epoch.
    pub fn new((block, epoch): (u32, u32), lossy: bool) -> Self {
        Kept {
            block: block.into(),
            lossy,
            there: AtomicU32::new(0),
            writes: AtomicU32::new(0),
            begin: [const { AtomicU64::new(0) }; GROUPS],
            end: [const { AtomicU64::new(0) }; GROUPS],
            in_place: Mutex::new(InPlace::new(block, epoch)),
            turns: Mutex::default(),
            came: Condvar::new(),
            ended: Condvar::new(),
            await_turns: AtomicU32::new(0),
            served: AtomicU32::new(0),
            leaving: Mutex::default(),
            node: OnceLock::new(),
        }
    }

    /// From now on it reads and writes lines for this node.
    pub fn plug(&self, node: Weak<NodeInner>) {
        let _ = self.node.set(node);
    }

    /// Whether this process has heard of a home.
    #[inline]
    pub fn has(&self, home: HomeId) -> bool {
        let bit = |group: u16| self.there.load(Relaxed) >> group & 1 == 1;
        home.group().is_some_and(bit)
    }

    /// Where an address of a home that a group keeps is, as far as this process has heard.
    pub fn whereabouts(&self, tag: Tag) -> Whereabouts {
        let group = tag.home().group().map(usize::from);
        let Some(group) = group.filter(|group| *group < GROUPS) else {
            return Whereabouts::Unheard;
        };
        fence(SeqCst);
        let begin = self.begin[group].load(SeqCst);
        Whereabouts::of(tag, begin, self.end[group].load(SeqCst))
    }

    /// Whether a block is of a region that is removed, as far as this process has heard.
    #[inline]
    pub fn is_gone(&self, tag: Tag) -> bool {
        !tag.home().is_own() && self.whereabouts(tag) == Whereabouts::Gone
    }

    /// Whether this process has heard of the region of an address, or that it is removed. If it has
    /// not, it looks for it: what asks comes again.
    pub fn has_heard_of(&self, tag: Tag) -> bool {
        let has = self.whereabouts(tag) != Whereabouts::Unheard;
        if !has {
            self.hurry();
        }
        has
    }

    fn has_heard_of_home(&self, home: HomeId) -> bool {
        let has = self.has(home);
        if !has {
            self.hurry();
        }
        has
    }

    fn hurry(&self) {
        let node = self.node.get().and_then(Weak::upgrade);
        node.iter().for_each(|node| node.access.groups.hurry());
    }

    /// Whether there is any.
    pub fn has_any(&self) -> bool {
        self.there.load(Relaxed) != 0
    }

    /// Whether each write to a block survives.
    #[inline]
    pub fn writes_survive(&self, tag: Tag) -> bool {
        let bit = |group: u16| self.writes.load(Relaxed) >> group & 1 == 1;
        !tag.home().is_own() && tag.home().group().is_some_and(bit)
    }

    fn in_place(&self) -> MutexGuard<'_, InPlace> {
        self.in_place.lock().whole()
    }

    fn turns(&self) -> MutexGuard<'_, Turns<Carried>> {
        self.turns.lock().whole()
    }

    fn is_in_place(&self, tag: Tag, epoch: u32) -> bool {
        self.in_place().has(tag, epoch)
    }

    /// A block is as a majority has it.
    fn note(&self, tag: Tag, epoch: u32) {
        self.in_place().put(tag, epoch);
    }

    /// The rack is in this epoch: nothing is in place.
    pub fn enter(&self, epoch: u32) {
        self.in_place().enter(epoch, None);
        self.turns().enter();
    }

    /// The home that a group keeps is as this row of the rack's groups says.
    pub fn lay_out(&self, agents: &Agents, group: u16, row: &Group) {
        if usize::from(group) >= GROUPS {
            return;
        }
        let (removed, first) = (row.config.is_removed(), row.config.first);
        let base = if removed { row.unused() } else { row.base };
        let objects = row.home == Some(KeptAs::Objects) && !removed;
        let laid = Laid {
            first,
            base,
            layout: objects.then_some(row.layout),
        };
        let survives = match row.home {
            Some(KeptAs::Blocks(survives)) if !removed => Some(survives),
            _ => None,
        };
        let survives = survives.filter(|_| u64::from(row.layout.line) == self.block);
        let blocks = KeptBlocks {
            first,
            base,
            bytes: survives.map_or(0, |_| row.layout.bytes),
        };
        // Also where another kind of region has the number since: handles are left. And who has
        // removed a region asks by an address of an object, whatever it had.
        if objects || survives.is_some() || base > 0 {
            agents.objects.lay_out(group, laid);
            self.there.fetch_or(1 << group, SeqCst);
        }
        match survives == Some(Survives::Writes) {
            true => self.writes.fetch_or(1 << group, SeqCst),
            false => self.writes.fetch_and(!(1 << group), SeqCst),
        };
        if !self.in_place().lay_out(group, blocks) {
            return;
        }
        if let Some(shard) = agents.shards.kept() {
            let mut home = agents.homes[shard].lock().whole();
            home.agent.lay_out(group, blocks);
            agents.memory.lay_out(group, blocks);
        }
        let mut here = agents;
        engine::hear(&mut here, group, blocks);
    }

    /// Whether a packet is not to be served by the thread that has it as others are: it waits for
    /// its turn, or has been served, or comes again.
    pub fn takes(
        &self,
        agents: &Agents,
        net: &dyn Net,
        header: &Header,
        body: Body<'_>,
        reply: &mut dyn Receiver,
    ) -> bool {
        if header.tag.home().is_own() {
            return false;
        }
        let (epoch, keeper) = (agents.standing.epoch(), agents.standing.keeper());
        let heard_of = |tag: Tag| match header.kind.asks_object() {
            true => self.has_heard_of_home(tag.home()),
            false => self.has_heard_of(tag),
        };
        let in_place = |tag| match header.kind.asks_object() {
            true => agents.objects.answers_at_once(header),
            false => self.is_in_place(tag, epoch),
        };
        match keeping::way(agents.node, header, (epoch, keeper), heard_of, in_place) {
            Way::AtOnce => return false,
            Way::Nobody => return true,
            Way::ByTurn => {}
        }
        if !self.lossy {
            let (header, body) = (*header, Carried::of(body));
            let sends = self.turn_at_once(net, &Came { header, body });
            for (to, header, body) in &sends {
                net.send(*to, header, body.body(), reply);
            }
            return true;
        }
        if self.turns().wait(header, || Carried::of(body)) {
            self.came.notify_one();
        }
        true
    }

    fn turn_at_once(&self, net: &dyn Net, came: &Came) -> Vec<Send> {
        let Some(node) = self.node.get().and_then(Weak::upgrade) else {
            return Vec::new();
        };
        let _turn = self.await_turn(About::of(&came.header));
        apart(|| self.turn(&node, came, net)).unwrap_or_default()
    }

    /// Waits until a turn about this can begin. What is under way ends: it waits for copies only.
    fn await_turn(&self, about: About) -> UnderWay<'_> {
        if !self.turns().begin_about(about) {
            rackmem_fabric::awake::sleeps();
            let mut turns = self.turns();
            self.await_turns.fetch_add(1, Relaxed);
            while !turns.begin_about(about) {
                turns = self.ended.wait(turns).whole();
            }
            self.await_turns.fetch_sub(1, Relaxed);
        }
        UnderWay { kept: self, about }
    }

    /// Sends what may leave.
    pub fn let_leave(&self, net: &dyn Net, reply: &mut dyn Receiver) {
        let leaving = std::mem::take(&mut *self.leaving.lock().whole());
        for (to, header, body) in &leaving {
            net.send(*to, header, body.body(), reply);
        }
    }

    /// This may leave: the agents' thread is told.
    fn lets_leave(&self, me: NodeId, sends: Vec<Send>, port: &Shared) {
        let mut leaving = self.leaving.lock().whole();
        // What finds no room is asked for again.
        if leaving.len() < WAITING {
            leaving.extend(sends);
        }
        drop(leaving);
        // A packet that says nothing, for this node's agents.
        let id = RequesterId { node: me, slot: 0 };
        let header = Header::request(Kind::AbdConfig, 0, first_line(0), id, Seq(0));
        let nothing = Own::default().to_bytes();
        let (to, body) = (Dest::Agent(me), Body::Bytes(&nothing));
        port.send(to, &header, body, &mut Nobody);
    }

    /// The next packet, if one comes in this time and the rack is open, and its turn.
    fn next(&self, node: &NodeInner, within: Duration) -> Option<(UnderWay<'_>, Came)> {
        let mut turns = self.turns();
        let mut next = turns.begin(None);
        if next.is_none() && !within.is_zero() && !node.closed.load(SeqCst) {
            turns = self.came.wait_timeout(turns, within).whole().0;
            next = turns.begin(None);
        }
        let (header, body) = next?;
        let about = About::of(&header);
        Some((UnderWay { kept: self, about }, Came { header, body }))
    }

    /// The rack is closed: threads that have nothing to do look.
    fn ends(&self) {
        // Who has looked before has this lock until it waits.
        let _turns = self.turns();
        self.came.notify_all();
    }

    fn is_idle(&self) -> bool {
        self.turns().none_wait()
    }

    /// How far the sweep of a home is; none where this node is not the keeper.
    pub fn sweep_of(&self, agents: &Agents, group: u16) -> Option<Sweep> {
        let keeper = agents.standing.keeper() == Some(agents.node);
        let there = self.has(HomeId::of_group(group));
        let sweep = self.in_place().sweep(group, agents.standing.epoch());
        sweep.filter(|sweep| keeper && there && self.lossy && sweep.of > 0)
    }

    /// Goes through a block that no packet has been about since the epoch began. What has never
    /// been written stays as it is, and takes no memory. False: there is nothing more to do, or its
    /// copies do not answer. One that a packet is just about is gone through later.
    fn sweep(&self, node: &NodeInner) -> bool {
        let agents = &node.access.agents;
        let epoch = agents.standing.epoch();
        if agents.standing.keeper() != Some(node.id) || !goes_on(node, epoch) {
            return false;
        }
        let Some(tag) = self.in_place().to_sweep(epoch) else {
            return false;
        };
        let about = About::Block(tag);
        if !self.turns().begin_about(about) {
            return true;
        }
        let _turn = UnderWay { kept: self, about };
        let frozen = {
            let home = agents.homes[agents.shards.of(tag)].lock().whole();
            home.agent.frozen()
        };
        if frozen {
            return false;
        }
        let mut repaired = false;
        if !self.is_in_place(tag, epoch) {
            let Some((line, first)) = self.line(tag) else {
                return false;
            };
            let wait = |command, value| {
                let within = (epoch, first, SWEEP_PATIENCE);
                node.access.operate_in_passing(within, command, value)
            };
            let Ok(value) = wait(Command::Read(line), Vec::new()) else {
                return false;
            };
            repaired = value.iter().any(|byte| *byte != 0);
            if repaired
                && self
                    .settle((tag, line), epoch, agents, value, wait)
                    .is_none()
            {
                return false;
            }
        }
        self.in_place().swept(tag, epoch, repaired);
        true
    }

    /// Serves a packet; what is to be sent, once a majority has what it is about. None: the epoch
    /// is over, or no majority answers, and the packet comes again.
    fn turn(&self, node: &NodeInner, came: &Came, net: &dyn Net) -> Option<Vec<Send>> {
        let (agents, header) = (&node.access.agents, &came.header);
        let epoch = agents.standing.epoch();
        if header.kind.asks_object() {
            let serves = header.epoch == epoch && agents.standing.keeper() == Some(node.id);
            return serves.then(|| kept_objects::turn(node, epoch, came, net))?;
        }
        let frozen = || {
            let home = agents.homes[agents.shards.of(header.tag)].lock().whole();
            home.agent.frozen()
        };
        let at = AtKeeper {
            epoch,
            keeps: agents.standing.keeper() == Some(node.id),
            frozen: !keeping::rescues(header) && frozen(),
            // What belongs to no home is refused.
            in_place: self.is_in_place(header.tag, epoch)
                || agents.memory.block(header.tag).is_none(),
        };
        let (mut turn, mut step) = KeptTurn::begin(*header, at, None);
        let mut sends = Vec::new();
        loop {
            step = match step {
                KeptStep::Take(tag) => {
                    let placed = self.put_in_place(node, epoch, tag).is_some();
                    // Its region may have been removed meanwhile.
                    turn.taken(placed || agents.memory.block(tag).is_none())
                }
                KeptStep::Serve => {
                    let held = Held::over(net);
                    agents.serve(&held, header, came.body.body(), &mut Nobody);
                    sends = held.into_sends();
                    turn.served(sends.iter().map(|(_, header, _)| header), None)
                }
                KeptStep::Keep(tag) => {
                    let kept = self.keep(node, epoch, tag);
                    let goes_on = goes_on(node, epoch);
                    let next = turn.kept(kept, goes_on);
                    if next == step && kept != KeptBy::Majority {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    next
                }
                KeptStep::Leave => return Some(sends),
                KeptStep::Drop => return None,
            };
        }
    }

    /// A block's line, and with which config its region began.
    fn line(&self, tag: Tag) -> Option<(Tag, u32)> {
        self.in_place().line(tag)
    }

    /// Puts a block in place as a majority has it.
    fn put_in_place(&self, node: &NodeInner, epoch: u32, tag: Tag) -> Option<()> {
        let (access, (line, first)) = (&node.access, self.line(tag)?);
        let value = access.operate_in_region((epoch, first), Command::Take(line), Vec::new());
        self.put(tag, epoch, &access.agents, &value.ok()?)
    }

    /// Puts what was read of a line in place, when a majority has it as of this epoch: what has
    /// been begun in an earlier one, and has come to a minority, is below.
    fn settle(
        &self,
        (tag, line): (Tag, Tag),
        epoch: u32,
        agents: &Agents,
        value: Vec<u8>,
        operate: impl Fn(Command, Vec<u8>) -> Result<Vec<u8>, AccessError>,
    ) -> Option<()> {
        operate(Command::Write(line), value.clone()).ok()?;
        self.put(tag, epoch, agents, &value)
    }

    /// Puts a block in place, as a majority has it of this epoch.
    fn put(&self, tag: Tag, epoch: u32, agents: &Agents, value: &[u8]) -> Option<()> {
        {
            let _alone = agents.homes[agents.shards.of(tag)].lock().whole();
            words::write(agents.memory.block(tag)?, value);
        }
        self.note(tag, epoch);
        Some(())
    }

    /// Writes a block to its group as it is at home.
    fn keep(&self, node: &NodeInner, epoch: u32, tag: Tag) -> KeptBy {
        let agents = &node.access.agents;
        let mut value = vec![0; self.block as usize];
        let here = {
            let _whole = agents.homes[agents.shards.of(tag)].lock().whole();
            let block = agents.memory.block(tag);
            block.map(|block| words::read(&mut value, block))
        };
        // Of a removed region nobody has to have anything.
        let (Some(()), Some((line, first))) = (here, self.line(tag)) else {
            return KeptBy::Majority;
        };
        let written = node
            .access
            .operate_in_region((epoch, first), Command::Write(line), value);
        match written {
            Ok(_) => {
                self.note(tag, epoch);
                KeptBy::Majority
            }
            Err(AccessError::NoQuorum { .. }) => KeptBy::NoQuorum,
            Err(_) => KeptBy::Failed,
        }
    }
}

/// The cache of this process.
impl KeptCopies for &Agents {
    fn lay_out(&mut self, group: u16, blocks: KeptBlocks) -> u64 {
        let at = usize::from(group);
        self.kept.end[at].store(blocks.end(), SeqCst);
        let before = self.kept.begin[at].swap(blocks.base, SeqCst);
        fence(SeqCst);
        before
    }

    #[inline]
    fn whereabouts(&self, tag: Tag) -> Whereabouts {
        self.kept.whereabouts(tag)
    }

    fn of_home(&self, group: u16) -> Vec<Tag> {
        let tags = self.cache.copies().map(|(tag, _)| tag);
        tags.filter(|tag| tag.home().group() == Some(group))
            .collect()
    }

    #[cold]
    fn drop_copy(&mut self, tag: Tag) {
        let entry = self.cache.lock_tag(tag, Stop::All);
        if let Some(entry) = entry.filter(|entry| entry.status() != LocalStatus::Invalid) {
            entry.set(LocalStatus::Invalid);
        }
    }
}

pub(super) fn goes_on(node: &NodeInner, epoch: u32) -> bool {
    let standing = &node.access.standing;
    standing.epoch() == epoch && !standing.is_fenced() && !node.closed.load(SeqCst)
}

/// The port of these threads, which they seldom use: only one at a time.
struct Shared(Mutex<Box<dyn Port>>);

impl Net for Shared {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.0.lock().whole().send(to, header, body, reply);
    }

    fn segment(&self, block: usize) -> usize {
        self.0.lock().whole().segment(block)
    }
}

fn open(node: &Weak<NodeInner>) -> Option<Arc<NodeInner>> {
    node.upgrade().filter(|node| !node.closed.load(SeqCst))
}

/// Serves what waits, until the rack is closed or gone, and sweeps by the way: the first thread.
pub(crate) fn run(node: &Weak<NodeInner>, name: &str, port: Box<dyn Port>) {
    let port = Shared(Mutex::new(port));
    std::thread::scope(|threads| {
        let (mut alone, mut swept_at, mut rests) = (true, 0, Instant::now());
        let mut busy = false;
        while let Some(node_now) = open(node) {
            let kept = &node_now.access.agents.kept;
            let keeps = node_now.access.standing.keeper() == Some(node_now.id);
            if alone && keeps && kept.has_any() {
                alone = false;
                for nth in 1..AT_ONCE {
                    let thread = std::thread::Builder::new().name(format!("{name}-{nth}"));
                    // Where the system refuses, there are fewer.
                    let _ = thread.spawn_scoped(threads, || serve(node, &port));
                }
            }
            let sweeps = kept.has_any() && rests <= Instant::now();
            let within = if busy && sweeps { Duration::ZERO } else { LOOK };
            busy = serve_next(&node_now, within, &port);
            let sweep = || sweeps && kept.sweep(&node_now);
            let swept = match busy {
                true if kept.served.load(Relaxed).wrapping_sub(swept_at) < SERVED => continue,
                true => sweep(),
                false => (0..SWEPT).take_while(|_| kept.is_idle() && sweep()).count() == SWEPT,
            };
            swept_at = kept.served.load(Relaxed);
            if sweeps && !swept && (busy || kept.is_idle()) {
                rests = Instant::now() + SWEEP_REST;
            }
        }
        let node = node.upgrade();
        node.iter().for_each(|node| node.access.agents.kept.ends());
    });
}

/// Serves what waits, until the rack is closed or gone.
fn serve(node: &Weak<NodeInner>, port: &Shared) {
    while let Some(node) = open(node) {
        serve_next(&node, LOOK_TOO, port);
    }
}

/// Serves the next packet, if one comes in this time. Whether one has.
fn serve_next(node: &NodeInner, within: Duration, port: &Shared) -> bool {
    let kept = &node.access.agents.kept;
    let Some((turn, came)) = kept.next(node, within) else {
        return false;
    };
    let sends = kept.turn(node, &came, port).unwrap_or_default();
    kept.served.fetch_add(1, Relaxed);
    if !sends.is_empty() {
        kept.lets_leave(node.id, sends, port);
    }
    // Not before: what the next one about this says leaves behind it.
    drop(turn);
    true
}
