//! An application thread of a world: the library's slow path, cut at the places where it waits.
//!
//! It waits for an answer, for another thread's event, for its own last unlock, for a back-off to
//! pass. What an access does is the engine's, and the site's client carries it out; here is when it
//! goes on, and what follows. What threads want is in `working`,
//! what they find is judged in `judging`.

mod epoch;
mod event;
mod judging;
mod telling;
mod work;
mod working;

use super::block::BLOCK_BYTES;
use super::config::Config;
use super::fabric::{Fabric, Occurrence, WorldPacket};
use super::node::WorldNode;
use super::operation::Operation;
use super::oracle::Oracle;
use super::random::Random;
use super::record::Record;
use crate::site::Client;
use judging::Done;
pub use judging::{Complaint, Judged};
use rackmem_proto::flowcc::{Requester, RequesterConfig};
use rackmem_proto::wire::{NodeId, RequesterId, Seq, Tag};
pub use work::Work;

/// Worlds see to it themselves that nothing takes for ever.
const NEVER: u64 = u64::MAX / 4;

/// What a thread needs of its world for a moment.
pub struct Around<'a> {
    /// The node it runs on.
    pub node: &'a mut WorldNode,
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
    /// A copy in the cache, or one that is to be there.
    Copy,
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
enum State {
    /// Nothing until then.
    Resting(u64),
    /// Waits for another thread's event.
    Parked,
    /// It has an event, about this.
    Busy(Aim, Tag),
    /// It has done its operation, and tells of it then.
    Telling(u64),
    /// It has nothing to do.
    Finished,
}

/// See the module.
pub struct Thread {
    /// Its requester's number.
    pub id: RequesterId,
    /// What it has done and found.
    pub judged: Judged,
    index: usize,
    config: Config,
    client: Client,
    random: Random,
    operation: Option<Operation>,
    target: Option<Tag>,
    dead: bool,
    left: u32,
    state: State,
    attempt: u32,
    alarm: Option<u64>,
    /// What this operation has done, if anything.
    done: Option<Done>,
    /// Whether the lease held when it began.
    held: bool,
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
        let requester = Requester::new(RequesterConfig {
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
            judged: Judged::default(),
            index,
            config: *config,
            client: Client::new(requester),
            random,
            operation: None,
            target: None,
            dead: false,
            left: config.operations,
            state: State::Resting(0),
            attempt: 0,
            alarm: None,
            done: None,
            held: false,
            call: 0,
        }
    }

    /// A packet for its requester.
    pub fn receive(&mut self, packet: &WorldPacket, around: &mut Around<'_>) {
        if self.dead {
            return;
        }
        let (now, site) = (around.fabric.now, &mut **around.node);
        self.client.receive(now, &packet.header, &packet.body, site);
        self.send(around);
        self.advance(around);
    }

    /// Does what can be done now.
    pub fn advance(&mut self, around: &mut Around<'_>) {
        if self.dead {
            return;
        }
        self.client.time_out(around.fabric.now, around.node);
        self.send(around);
        while self.step(around) {}
        self.set_alarm(around.fabric);
    }

    /// What its client has done leaves the node.
    fn send(&mut self, around: &mut Around<'_>) {
        around.fabric.from_requester = true;
        around.node.follow(around.fabric);
        around.fabric.from_requester = false;
    }

    fn set_alarm(&mut self, fabric: &mut Fabric) {
        let rest = match self.state {
            State::Resting(until) | State::Telling(until) => Some(until),
            State::Busy(Aim::Hold(until), _) if self.client.holding().is_some() => until,
            _ => None,
        };
        let due = self.client.engine.poll_timeout().into_iter().chain(rest);
        let Some(due) = due.min() else { return };
        let pending = self.alarm.is_some_and(|at| at > fabric.now && at <= due);
        if !pending {
            self.alarm = Some(due);
            let after = due.saturating_sub(fabric.now);
            fabric.schedule(after, Occurrence::Wake(self.index));
        }
    }

    /// One step; false when there is something to wait for.
    fn step(&mut self, around: &mut Around<'_>) -> bool {
        match self.state {
            State::Resting(until) if until > around.fabric.now => false,
            State::Resting(_) | State::Parked => self.attempt(around),
            State::Busy(aim, tag) => self.drive(aim, tag, around),
            State::Telling(until) if until > around.fabric.now => false,
            State::Telling(_) => self.tell(around),
            State::Finished => false,
        }
    }
}
