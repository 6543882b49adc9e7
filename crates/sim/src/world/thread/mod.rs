//! An application thread of a world: the library's slow path, cut at the places where it waits.
//!
//! It waits for an answer, for another thread's event, for its own last unlock, for a back-off to
//! pass. What an access does is the engine's, and the site's client carries it out; here is when it
//! goes on, and what follows. What threads want is in `working`,
//! what they find is judged in `judging`.

mod epoch;
mod event;
mod judging;
mod lives;
mod telling;
mod work;
mod working;

use super::block::Block;
use super::config::Config;
use super::fabric::{Fabric, Occurrence, WorldPacket};
use super::node::WorldNode;
use super::operation::Operation;
use super::oracle::Oracle;
use super::random::Random;
use super::record::Record;
use crate::site::Client;
pub use judging::{Complaint, Judged};
use rackmem_proto::wire::{RequesterId, Tag};
pub use work::Work;

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

/// What a thread does when it has rested. Where it is in an event its client knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// It goes on with its operation, or begins another.
    Working,
    /// It has done its operation, and tells of it.
    Telling,
    /// Nothing.
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
    client: Client<Block>,
    random: Random,
    operation: Option<Operation>,
    target: Option<Tag>,
    /// Its node has died, and it is asked nothing more.
    pub dead: bool,
    left: u32,
    state: State,
    /// Until when it rests, or holds a lock for its own purposes.
    until: u64,
    attempt: u32,
    alarm: Option<u64>,
    /// Its last call for memory, or with it, that was answered.
    call: u32,
    /// The epoch in which its operation has written.
    wrote: u32,
    /// What it has written survives: the block, and whether it is home.
    brings: Option<(Tag, bool)>,
}

impl Thread {
    /// A thread with all its work before it.
    pub fn new(index: usize, config: &Config, random: Random, start: (u32, u32, bool)) -> Self {
        let requester = config.requester(index, start);
        Thread {
            id: requester.id(),
            judged: Judged::default(),
            index,
            config: *config,
            client: Client::new(requester),
            random,
            operation: None,
            target: None,
            dead: false,
            left: config.operations,
            state: State::Working,
            until: 0,
            attempt: 0,
            alarm: None,
            call: 0,
            wrote: 0,
            brings: None,
        }
    }

    /// A packet for its requester.
    pub fn receive(&mut self, packet: &WorldPacket, around: &mut Around<'_>) {
        let (header, body, now) = (&packet.header, &packet.body, around.fabric.now);
        around.node.answer(&mut self.client, now, header, body);
        self.advance(around);
    }

    /// Does what can be done now.
    pub fn advance(&mut self, around: &mut Around<'_>) {
        around.node.time_out(&mut self.client, around.fabric.now);
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
        let rest = Some(self.until).filter(|until| *until > fabric.now);
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
            _ if self.until > around.fabric.now => false,
            State::Working if self.client.is_busy() => self.drive(around),
            State::Working => self.attempt(around),
            State::Telling => self.tell(around),
            State::Finished => false,
        }
    }

    /// Does nothing until then.
    fn rest(&mut self, until: u64) {
        (self.state, self.until) = (State::Working, until);
    }
}
