//! An application thread of a world: the library's slow path as a state machine.
//!
//! What a blocking thread does in one call is cut at the places where it waits: for an answer, for another
//! thread's event, for its own last unlock, for a back-off to pass.

use super::block::{self, BLOCK_BYTES};
use super::cache::Plan;
use super::config::Config;
use super::fabric::{Fabric, Occurrence, Packet};
use super::mutation::Mutation;
use super::node::Node;
use super::operation::{Action, Operation};
use super::oracle::Oracle;
use super::random::Random;
use rackmem_proto::flowcc::{Accept, Event, LocalStatus, Requester, RequesterConfig, Step};
use rackmem_proto::wire::{Flags, Kind, NodeId, Reason, RequesterId, Seq, Tag};
use rackmem_proto::{Data, Output};

/// Retransmission never waits less than this, in nanoseconds: more than a round trip of three quick hops.
const MIN_TIMEOUT: u64 = 12_000;
/// Worlds see to it themselves that nothing takes for ever.
const NEVER: u64 = u64::MAX / 4;
/// Time between two operations, at most.
const THINKING: u64 = 4_000;
/// The first back-off, at most; it doubles with every attempt, so often.
const BACKOFF: u64 = 2_000;
const DOUBLINGS: u32 = 6;

/// What a thread needs of its world for a moment.
pub struct Around<'a> {
    /// The node it runs on.
    pub node: &'a mut Node,
    /// Time and the network.
    pub fabric: &'a mut Fabric,
    /// The memory to agree with.
    pub oracle: &'a mut Oracle,
}

/// What an event is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Fill(LocalStatus),
    Upgrade,
    EvictClean,
    EvictDirty,
    Alloc,
}

/// What follows an event's unlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// The operation is done.
    Finish,
    /// The operation looks again.
    Again,
    /// The eviction looks again, with its slot.
    Relook,
    /// The operation waits and looks again.
    BackOff,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Acquiring,
    WritingBack,
    Ending(Then),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Running {
    purpose: Purpose,
    slot: usize,
    tag: Tag,
    seq: Seq,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Resting(u64),
    Parked,
    Busy(Running),
    Finished,
}

/// A coherence event that may hold its entry's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveEvent {
    /// Whose.
    pub node: NodeId,
    /// On which block.
    pub tag: Tag,
    /// Whether it takes the lock as a reader.
    pub shared: bool,
}

/// Something that a thread must never see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// The promise that is broken, and where the paper makes it.
    pub promise: (&'static str, &'static str),
    /// About which block.
    pub tag: Tag,
    /// What was seen.
    pub detail: String,
}

/// What threads have done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Operations that ended.
    pub operations: u64,
    /// Of these, without a packet.
    pub hits: u64,
    /// Events that were refused, to be tried again.
    pub refused: u64,
    /// Dirty copies written home by an eviction.
    pub dirty_evictions: u64,
    /// Clean copies given back.
    pub clean_evictions: u64,
    /// Clean copies made writable.
    pub upgrades: u64,
    /// Chunks of memory obtained.
    pub chunks: u64,
}

impl Work {
    /// Adds another thread's.
    pub fn add(&mut self, other: &Work) {
        self.operations += other.operations;
        self.hits += other.hits;
        self.refused += other.refused;
        self.dirty_evictions += other.dirty_evictions;
        self.clean_evictions += other.clean_evictions;
        self.upgrades += other.upgrades;
        self.chunks += other.chunks;
    }
}

/// One thread and its requester.
pub struct Thread {
    /// Its requester.
    pub id: RequesterId,
    /// What it has done.
    pub work: Work,
    /// The first thing it saw that cannot be.
    pub complaint: Option<Complaint>,
    index: usize,
    config: Config,
    engine: Requester,
    random: Random,
    operation: Option<Operation>,
    left: u32,
    state: State,
    attempt: u32,
    unlocking: Option<LiveEvent>,
    alarm: Option<u64>,
}

impl Thread {
    /// A thread with all its work before it.
    pub fn new(index: usize, config: &Config, random: Random) -> Self {
        let per_node = usize::from(config.threads);
        let id = RequesterId {
            node: (index / per_node) as NodeId,
            slot: (index % per_node) as u16,
        };
        let engine = Requester::new(RequesterConfig {
            id,
            epoch: super::EPOCH,
            block: BLOCK_BYTES,
            switch: matches!(config.rack, super::Rack::Switch { .. }),
            min_timeout: MIN_TIMEOUT,
            give_up: NEVER,
        });
        Thread {
            id,
            work: Work::default(),
            complaint: None,
            index,
            config: *config,
            engine,
            random,
            operation: None,
            left: config.operations,
            state: State::Resting(0),
            attempt: 0,
            unlocking: None,
            alarm: None,
        }
    }

    /// Whether nothing is left to do or to be acknowledged.
    pub fn idle(&self) -> bool {
        self.state == State::Finished && self.engine.can_unlock()
    }

    /// Whether an event that it has left behind is still to be ended or acknowledged.
    pub fn unlocks(&self) -> bool {
        !self.engine.can_unlock()
    }

    /// What it is doing, for a violation.
    pub fn describe(&self) -> String {
        let (node, slot) = (self.id.node, self.id.slot);
        let unlock = if self.engine.can_unlock() {
            ""
        } else {
            ", its unlock is unanswered"
        };
        format!(
            "{node}.{slot} {:?} {:?}{unlock}",
            self.operation, self.state
        )
    }

    /// How often it has sent something again.
    pub fn retransmissions(&self) -> u64 {
        self.engine.retransmissions()
    }

    /// The events that may hold a lock.
    pub fn live(&self) -> impl Iterator<Item = LiveEvent> {
        let running = match self.state {
            State::Busy(running) if running.purpose != Purpose::Alloc => Some(LiveEvent {
                node: self.id.node,
                tag: running.tag,
                shared: running.purpose == Purpose::Fill(LocalStatus::Shared),
            }),
            _ => None,
        };
        let tail = self.engine.tail().map(|tag| LiveEvent {
            node: self.id.node,
            tag,
            shared: true,
        });
        let unlocking = self.unlocking.filter(|_| !self.engine.can_unlock());
        running.into_iter().chain(tail).chain(unlocking)
    }

    /// From now on it empties its node's cache.
    pub fn flush(&mut self) {
        self.operation = Some(Operation::Flush);
        self.state = State::Resting(0);
    }

    /// A packet for its requester.
    pub fn receive(&mut self, packet: &Packet, around: &mut Around<'_>) {
        let mut header = packet.header;
        if let State::Busy(running) = self.state
            && self.config.mutation == Some(Mutation::AcceptStaleData)
            && header.kind == Kind::Ack
            && header.flags.has(Flags::DATA)
        {
            header.seq = running.seq;
        }
        let bytes = packet.body.len() as u32 * block::GRANULE_BYTES;
        let (accept, outputs) = self.engine.handle(around.fabric.now, &header, bytes);
        if accept == Accept::Store
            && let State::Busy(running) = self.state
            && matches!(running.purpose, Purpose::Fill(_))
        {
            let words = &mut around.node.cache.slot(running.slot).words;
            block::put(words, header.offset, &packet.body);
        }
        for output in outputs.iter() {
            self.transmit(output, around);
        }
        self.advance(around);
    }

    /// Does what can be done now.
    pub fn advance(&mut self, around: &mut Around<'_>) {
        let now = around.fabric.now;
        if self.engine.poll_timeout().is_some_and(|at| at <= now) {
            let outputs = self.engine.handle_timeout(now);
            for output in outputs.iter() {
                let again = output.header.kind == Kind::Unlock;
                if !(again && self.config.mutation == Some(Mutation::UnlockOnce)) {
                    self.transmit(output, around);
                }
            }
        }
        while self.step(around) {}
        self.set_alarm(around.fabric);
    }

    fn set_alarm(&mut self, fabric: &mut Fabric) {
        let rest = match self.state {
            State::Resting(until) => Some(until),
            _ => None,
        };
        let due = self.engine.poll_timeout().into_iter().chain(rest).min();
        let Some(due) = due else { return };
        let pending = self.alarm.is_some_and(|at| at > fabric.now && at <= due);
        if !pending {
            self.alarm = Some(due);
            let after = due.saturating_sub(fabric.now);
            fabric.schedule(after, Occurrence::Wake(self.index));
        }
    }

    fn transmit(&mut self, output: &Output, around: &mut Around<'_>) {
        let mut output = *output;
        let (tag, flags) = (output.header.tag, output.header.flags);
        if output.header.kind == Kind::Unlock {
            let shared = flags.has(Flags::READER);
            let node = self.id.node;
            self.unlocking = Some(LiveEvent { node, tag, shared });
            if shared && self.config.mutation == Some(Mutation::ForgetReader) {
                output.header.copyset = output.header.copyset.without(node);
            }
        }
        let words = match (output.data, self.state) {
            (Data::Cache, State::Busy(running)) => &around.node.cache.slot(running.slot).words[..],
            _ => &[],
        };
        around.fabric.send(&output, words);
    }

    /// One step; false when there is something to wait for.
    fn step(&mut self, around: &mut Around<'_>) -> bool {
        match self.state {
            State::Resting(until) if until > around.fabric.now => false,
            State::Resting(_) | State::Parked => self.attempt(around),
            State::Busy(running) => self.drive(running, around),
            State::Finished => false,
        }
    }

    fn attempt(&mut self, around: &mut Around<'_>) -> bool {
        if self.operation.is_none() {
            if self.left == 0 {
                self.state = State::Finished;
                return false;
            }
            self.left -= 1;
            self.operation = Some(Operation::draw(&self.config, &mut self.random));
        }
        match self.operation {
            Some(Operation::Access(block, counter, action)) => {
                self.access(block, counter, action, around)
            }
            Some(Operation::Alloc(home)) => {
                let tag = Tag(u64::from(home) << 48);
                self.begin(Purpose::Alloc, usize::MAX, tag, around);
                true
            }
            Some(Operation::Flush) => self.flush_one(around),
            None => false,
        }
    }

    fn flush_one(&mut self, around: &mut Around<'_>) -> bool {
        match around.node.cache.reserve_any() {
            Some((slot, tag)) => self.evict(slot, tag, around),
            None => {
                self.operation = None;
                self.state = State::Finished;
                false
            }
        }
    }

    fn access(
        &mut self,
        block: u32,
        counter: usize,
        action: Action,
        around: &mut Around<'_>,
    ) -> bool {
        let tag = block::tag(block, self.config.nodes);
        let writes = action != Action::Read;
        let cache = &mut around.node.cache;
        if let Some(slot) = cache.find(tag)
            && (!writes || cache.slot(slot).status == LocalStatus::Modified)
        {
            cache.touch(slot);
            self.perform(block, counter, action, slot, around);
            self.work.hits += 1;
            self.finish(around.fabric.now);
            return true;
        }
        match cache.plan(tag, writes) {
            Plan::Wait => {
                self.state = State::Parked;
                around.node.park(self.index);
                false
            }
            Plan::Fill(slot) => {
                let status = if writes {
                    LocalStatus::Modified
                } else {
                    LocalStatus::Shared
                };
                self.begin(Purpose::Fill(status), slot, tag, around);
                true
            }
            Plan::Upgrade(slot) => {
                self.begin(Purpose::Upgrade, slot, tag, around);
                true
            }
            Plan::Evict(slot, old) => self.evict(slot, old, around),
        }
    }

    /// The operation itself, on words that this node may use at this instant.
    fn perform(
        &mut self,
        block: u32,
        counter: usize,
        action: Action,
        slot: usize,
        around: &mut Around<'_>,
    ) {
        let tag = block::tag(block, self.config.nodes);
        let words = &mut around.node.cache.slot(slot).words;
        if action != Action::Write && !around.oracle.agrees(block, words) {
            let saw = block::counters(words);
            let expected = around.oracle.expected(block);
            let (node, thread) = (self.id.node, self.id.slot);
            self.complaint.get_or_insert(Complaint {
                promise: ("data value", "§5.1.2"),
                tag,
                detail: format!(
                    "{action:?} at {node}.{thread} saw {saw:?}, memory is {expected:?}"
                ),
            });
        }
        match action {
            Action::Read => around.fabric.note(self.id.node, tag, "read"),
            Action::Write => {
                around.oracle.write(block, counter, words);
                around.fabric.note(self.id.node, tag, "written");
            }
            Action::Add => {
                around.oracle.add(block, counter, words);
                around.fabric.note(self.id.node, tag, "added to");
            }
        }
    }

    fn finish(&mut self, now: u64) {
        self.work.operations += 1;
        self.operation = None;
        self.attempt = 0;
        self.state = State::Resting(now + self.random.below(THINKING));
    }

    fn begin(&mut self, purpose: Purpose, slot: usize, tag: Tag, around: &mut Around<'_>) {
        let kind = match purpose {
            Purpose::Fill(LocalStatus::Modified) => Kind::WriteMiss,
            Purpose::Fill(_) => Kind::ReadMiss,
            Purpose::Upgrade => Kind::WriteShared,
            Purpose::EvictClean => Kind::EvictShared,
            Purpose::EvictDirty => Kind::EvictModified,
            Purpose::Alloc => Kind::Alloc,
        };
        let event = Event {
            kind,
            tag,
            offset: u32::from(kind == Kind::Alloc),
            reply_port: 0,
        };
        let output = self.engine.begin(around.fabric.now, event);
        self.state = State::Busy(Running {
            purpose,
            slot,
            tag,
            seq: output.header.seq,
            stage: Stage::Acquiring,
        });
        around.fabric.send(&output, &[]);
    }

    /// Begins to empty a slot, or finds it empty.
    fn evict(&mut self, slot: usize, tag: Tag, around: &mut Around<'_>) -> bool {
        let purpose = match around.node.cache.slot(slot).status {
            LocalStatus::Shared if self.config.mutation == Some(Mutation::DropSilently) => {
                around.node.cache.install(slot, tag, LocalStatus::Invalid);
                None
            }
            LocalStatus::Shared => Some(Purpose::EvictClean),
            LocalStatus::Modified => Some(Purpose::EvictDirty),
            LocalStatus::Invalid => None,
        };
        match purpose {
            Some(purpose) => self.begin(purpose, slot, tag, around),
            None => {
                around.node.release(slot, around.fabric);
                self.state = State::Resting(around.fabric.now);
            }
        }
        true
    }

    fn drive(&mut self, running: Running, around: &mut Around<'_>) -> bool {
        match (running.stage, self.engine.step()) {
            (Stage::Ending(then), _) => self.end(running, then, around),
            (_, Step::Waiting) => false,
            (_, Step::Refused(reason)) => {
                self.refused(running, reason);
                true
            }
            (_, Step::Lost) => {
                self.complain(running.tag, "a requester gave up".into());
                false
            }
            (Stage::Acquiring, Step::Held(_)) => {
                self.held(running, around);
                true
            }
            (Stage::WritingBack, Step::Held(_)) => {
                self.move_on(running, Stage::Ending(Then::Again));
                true
            }
        }
    }

    fn complain(&mut self, tag: Tag, detail: String) {
        self.complaint.get_or_insert(Complaint {
            promise: ("a granted event is served", "§5.1.1"),
            tag,
            detail,
        });
    }

    fn move_on(&mut self, running: Running, stage: Stage) {
        self.state = State::Busy(Running { stage, ..running });
    }

    fn refused(&mut self, running: Running, reason: Reason) {
        self.work.refused += 1;
        let evicts = matches!(running.purpose, Purpose::EvictClean | Purpose::EvictDirty);
        let then = match reason {
            Reason::Locked => Then::BackOff,
            Reason::Invalid | Reason::Moved if evicts => Then::Relook,
            Reason::Invalid | Reason::Moved => Then::Again,
            Reason::Full => Then::Finish,
            Reason::None | Reason::NoMemory | Reason::Refused => {
                let detail = format!("{} was told {reason:?}", self.describe());
                self.complain(running.tag, detail);
                Then::BackOff
            }
        };
        self.move_on(running, Stage::Ending(then));
    }

    /// The entry is locked for this thread and its data is here.
    fn held(&mut self, running: Running, around: &mut Around<'_>) {
        let Running {
            purpose, slot, tag, ..
        } = running;
        match purpose {
            Purpose::Alloc => {
                self.work.chunks += 1;
                self.finish(around.fabric.now);
            }
            Purpose::Fill(status) => self.install(running, status, around),
            Purpose::Upgrade => {
                self.work.upgrades += 1;
                self.install(running, LocalStatus::Modified, around);
            }
            Purpose::EvictClean => {
                self.work.clean_evictions += 1;
                around.node.cache.install(slot, tag, LocalStatus::Invalid);
                around.fabric.note(self.id.node, tag, "evicted clean");
                self.move_on(running, Stage::Ending(Then::Again));
            }
            Purpose::EvictDirty => self.leave(running, around),
        }
    }

    /// Carries the operation out before anyone can take the block away again, and lets the node use the copy.
    fn install(&mut self, running: Running, status: LocalStatus, around: &mut Around<'_>) {
        let Running { slot, tag, .. } = running;
        if let Some(Operation::Access(block, counter, action)) = self.operation {
            self.perform(block, counter, action, slot, around);
        }
        around.node.cache.install(slot, tag, status);
        around.fabric.note(self.id.node, tag, "installed");
        self.move_on(running, Stage::Ending(Then::Finish));
    }

    /// From here on local hits miss, and only then the bytes go home.
    fn leave(&mut self, running: Running, around: &mut Around<'_>) {
        self.work.dirty_evictions += 1;
        let Running { slot, tag, .. } = running;
        around.node.cache.install(slot, tag, LocalStatus::Invalid);
        around.fabric.note(self.id.node, tag, "evicted dirty");
        if self.config.mutation == Some(Mutation::EvictWithoutWriteBack) {
            return self.move_on(running, Stage::Ending(Then::Again));
        }
        if let Some(output) = self.engine.write_back(around.fabric.now) {
            self.transmit(&output, around);
        }
        self.move_on(running, Stage::WritingBack);
    }

    fn end(&mut self, running: Running, then: Then, around: &mut Around<'_>) -> bool {
        if !self.engine.can_unlock() {
            return false;
        }
        let keep = matches!(then, Then::Relook | Then::BackOff);
        if let Some(output) = self.engine.unlock(around.fabric.now, keep) {
            self.transmit(&output, around);
        }
        let now = around.fabric.now;
        if then == Then::Relook {
            return self.evict(running.slot, running.tag, around);
        }
        if running.purpose != Purpose::Alloc {
            around.node.release(running.slot, around.fabric);
        }
        match then {
            Then::Finish => self.finish(now),
            Then::BackOff => {
                self.attempt += 1;
                let most = BACKOFF << self.attempt.min(DOUBLINGS);
                self.state = State::Resting(now + most / 2 + self.random.below(most / 2));
            }
            Then::Again | Then::Relook => self.state = State::Resting(now),
        }
        true
    }
}
