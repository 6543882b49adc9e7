//! An application thread of a world: the library's slow path as a state machine.
//!
//! What a blocking thread does in one call is cut at the places where it waits: for an answer, for another
//! thread's event, for its own last unlock, for a back-off to pass. What an access does is the engine's
//! ([`rackmem_proto::engine::Access`]); [`access`] is what operations want, [`event`] carries out what the engine says.

mod access;
mod between;
mod epoch;
mod event;
mod telling;
mod work;

use super::block::{self, BLOCK_BYTES};
use super::config::Config;
use super::fabric::{Fabric, Occurrence, Packet};
use super::mutation::Mutation;
use super::node::Node;
use super::operation::Operation;
use super::oracle::Oracle;
use super::random::Random;
use super::record::{Record, Ticket};
use rackmem_proto::engine::{Access, Defect};
use rackmem_proto::flowcc::{Accept, Requester, RequesterConfig};
use rackmem_proto::wire::Record as Object;
use rackmem_proto::wire::{Dest, Flags, Kind, NodeId, Reason, RequesterId, Seq, Tag};
use rackmem_proto::{Data, Output};
use telling::Done;
pub use work::Work;

/// Worlds see to it themselves that nothing takes for ever.
const NEVER: u64 = u64::MAX / 4;

/// What a thread needs of its world for a moment.
pub struct Around<'a> {
    /// The node it runs on.
    pub node: &'a mut Node,
    /// Time and the network.
    pub fabric: &'a mut Fabric,
    /// The memory to agree with.
    pub oracle: &'a mut Oracle,
    /// What threads are told.
    pub record: &'a mut Record,
    /// Whether nothing breaks any more.
    pub calm: bool,
}

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aim {
    /// What is in this slot of the cache, or is to be.
    Slot(usize),
    /// A lock for the thread's own purposes, which it keeps until then.
    Hold(Option<u64>),
    /// An object.
    Alloc,
    /// This object of its own goes back to its home.
    Free(Tag),
    /// A block whose last content is lost.
    AcceptLoss,
    /// The lock of a block that this node gave away: who has it, has the block.
    Sound(Seq, RequesterId),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Running {
    access: Access,
    aim: Aim,
    tag: Tag,
    seq: Seq,
}

impl Running {
    /// The slot of the cache that is reserved for it.
    fn slot(&self) -> Option<usize> {
        match self.aim {
            Aim::Slot(slot) => Some(slot),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Resting(u64),
    Parked,
    Busy(Running),
    /// The operation is done; nobody has been told.
    Telling(u64),
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
    /// The block it is about, if its home was there when it began.
    target: Option<Tag>,
    began: u64,
    ticket: Option<Ticket>,
    value: u64,
    retries: u64,
    /// The block that it was refused, and how often others had been granted it by then.
    refused: Option<(Tag, u64)>,
    /// Times that one operation was refused after everything had calmed down, at most.
    pub worst: u64,
    earlier_retransmissions: u64,
    dead: bool,
    left: u32,
    state: State,
    attempt: u32,
    unlocking: Option<LiveEvent>,
    alarm: Option<u64>,
    /// What this operation has done, if anything.
    done: Option<Done>,
    /// Whether the lease held when it began.
    held: bool,
    /// Memory that it has been given.
    pub objects: Vec<Tag>,
    /// Its last call for memory, or with it, that was answered.
    call: u32,
}
impl Thread {
    /// A thread with all its work before it.
    pub fn new(
        index: usize,
        config: &Config,
        random: Random,
        (epoch, incarnation, switch): (u32, u32, bool),
    ) -> Self {
        let per_node = usize::from(config.threads);
        let id = RequesterId {
            node: (index / per_node) as NodeId,
            slot: (index % per_node) as u16,
        };
        let engine = Requester::new(RequesterConfig {
            id,
            epoch,
            incarnation,
            block: BLOCK_BYTES,
            switch,
            min_timeout: config.timeout,
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
            target: None,
            began: 0,
            ticket: None,
            value: 0,
            retries: 0,
            refused: None,
            worst: 0,
            earlier_retransmissions: 0,
            dead: false,
            left: config.operations,
            state: State::Resting(0),
            attempt: 0,
            unlocking: None,
            alarm: None,
            done: None,
            held: false,
            objects: Vec::new(),
            call: 0,
        }
    }

    /// Whether nothing is left to do or to be acknowledged.
    pub fn idle(&self) -> bool {
        self.dead || self.state == State::Finished && self.engine.can_unlock()
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
        self.earlier_retransmissions + self.engine.retransmissions()
    }

    /// The events that may hold a lock.
    pub fn live(&self) -> impl Iterator<Item = LiveEvent> {
        let running = match self.state {
            State::Busy(Running { access, tag, .. }) if access.purpose().locks() => {
                Some(LiveEvent {
                    node: self.id.node,
                    tag,
                    shared: access.purpose().shares(),
                })
            }
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
        self.target = None;
        self.refused = None;
        self.operation = Some(Operation::Flush);
        self.state = State::Resting(0);
    }

    /// From now on it makes sure that what its node gave away has arrived.
    pub fn sound(&mut self) {
        self.operation = Some(Operation::Sound);
        self.state = State::Resting(0);
    }

    /// A packet for its requester.
    pub fn receive(&mut self, packet: &Packet, around: &mut Around<'_>) {
        if self.dead {
            return;
        }
        let mut header = packet.header;
        if let State::Busy(running) = self.state
            && self.config.mutation == Some(Mutation::AcceptStaleData)
            && header.kind == Kind::Ack
            && header.flags.has(Flags::DATA)
        {
            header.seq = running.seq;
        }
        if let State::Busy(running) = self.state
            && self.config.mutation == Some(Mutation::AcceptLateRefusal)
            && header.kind == Kind::Ack
            && header.reason != Reason::None
        {
            header.seq = running.seq;
        }
        let bytes = packet.body.len() as u32 * block::GRANULE_BYTES;
        let (accept, outputs) = self.engine.handle(around.fabric.now, &header, bytes);
        if accept == Accept::Store
            && let State::Busy(running) = self.state
            && running.access.purpose().fetches()
            && let Some(slot) = running.slot()
        {
            let words = &mut around.node.cache.slot(slot).words;
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
        if self.dead {
            return;
        }
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
            State::Resting(until) | State::Telling(until) => Some(until),
            State::Busy(Running {
                access,
                aim: Aim::Hold(until),
                ..
            }) if access.is_held() => until,
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
        around.fabric.from_requester = true;
        self.put(output, around);
        around.fabric.from_requester = false;
    }

    fn put(&mut self, output: &Output, around: &mut Around<'_>) {
        let mut output = *output;
        let (tag, flags) = (output.header.tag, output.header.flags);
        if output.header.kind == Kind::Unlock {
            let shared = flags.has(Flags::READER);
            let node = self.id.node;
            self.unlocking = Some(LiveEvent { node, tag, shared });
            if self.config.mutation == Some(Mutation::UnlockAnyOwner) {
                output.header.flags = flags.but(Flags::IN_SWITCH);
                output.to = Dest::Agent(tag.home());
            }
            if shared && self.config.mutation == Some(Mutation::ForgetReader) {
                output.header.copyset = output.header.copyset.without(node);
            }
        }
        if let (Kind::Free, State::Busy(running)) = (output.header.kind, self.state)
            && let Aim::Free(tag) = running.aim
        {
            let word = BLOCK_BYTES.into();
            return around.fabric.send_records(&output, &[Object { tag, word }]);
        }
        let slot = match (output.data, self.state) {
            (Data::Cache, State::Busy(running)) => running.slot(),
            _ => None,
        };
        let words = match slot {
            Some(slot) => &around.node.cache.slot(slot).words[..],
            None => &[],
        };
        around.fabric.send(&output, words);
    }

    /// The rule of a node's engine that is broken, if one is.
    fn defect(&self) -> Option<Defect> {
        self.config.mutation?.in_engine()
    }

    /// One step; false when there is something to wait for.
    fn step(&mut self, around: &mut Around<'_>) -> bool {
        match self.state {
            State::Resting(until) if until > around.fabric.now => false,
            State::Resting(_) | State::Parked => self.attempt(around),
            State::Busy(running) => self.drive(running, around),
            State::Telling(until) if until > around.fabric.now => false,
            State::Telling(_) => self.tell(around),
            State::Finished => false,
        }
    }
}
