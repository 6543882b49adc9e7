//! A lock and its home: what a node keeps of it, who serves it, and how it comes home from a node
//! that leaves or needs room.

use super::acting::Turn;
use super::line::Waiting;
use super::{LockFx, NodeLock};
use crate::Outputs;
use crate::engine::Defect;
use crate::gcp::{
    Access, Body, Keeping, Known, Life, Lock, LockPlace, Rest, Right, Steps, version, with_version,
};
use crate::wire::{Copyset, Dest, GlobalStatus, Header, Kind, RequesterId, Seq};

/// In the `offset` of a `Yield` and its answer: they are about the end of a life,
/// which stands in place of a version.
const LIFE: u32 = 1;

/// The end of a life that a `Yield` or its answer is about, if it is about one.
pub fn ended_life(header: &Header) -> Option<Life> {
    (header.offset == LIFE).then(|| Life::from_word(version(header)))
}

impl<S> NodeLock<S> {
    /// Whether this node has had it, or may be about to.
    pub fn used(&self) -> bool {
        self.lock().is_some_and(|lock| {
            lock.since() > 0 || lock.unfinished() || lock.right() != Right::None
        })
    }

    /// Whether it has the lock, or is about to.
    pub fn has(&self) -> bool {
        let has = |lock: &Lock| lock.right() != Right::None || lock.unfinished();
        !self.over && self.lock().is_some_and(has)
    }

    /// Whether the lock and what it protects are here, and nowhere else:
    /// the version with which it came.
    pub fn whole(&self) -> Option<u64> {
        self.lock().and_then(Lock::whole)
    }

    /// What to remember of it until the epoch ends, if it may be forgotten. `new`: at its home what
    /// it protects is as that of a lock which has never been used.
    pub fn forgettable(&self, new: bool) -> Option<Known> {
        let lock = self.lock().filter(|_| self.line.is_empty() && !self.over)?;
        if let Some(directory) = &self.directory {
            let rest = Rest::of(&self.blade, directory, self.tag);
            return rest.filter(|_| new).map(Known::Home);
        }
        (lock.keeping() == Keeping::Nothing).then(|| Known::Abroad(lock.floor()))
    }

    /// Whether the switch has been asked to serve the lock, and has not answered.
    pub(super) fn placing(&self) -> bool {
        self.entry()
            .is_some_and(|(_, place, _)| place == LockPlace::Placing)
    }

    /// Asks the switch to serve the lock, or once more.
    pub fn place_at_switch(&mut self, fx: &mut impl LockFx<Seat = S>) {
        self.place(&mut Turn::new(fx));
    }

    pub(super) fn place<F: LockFx<Seat = S>>(&mut self, turn: &mut Turn<'_, F>) {
        let mut outputs = Outputs::default();
        if let Some(directory) = &mut self.directory {
            directory.place(self.tag, &mut outputs);
        }
        self.serve(&outputs, turn);
    }

    /// The host needs room ([`crate::gcp::Blade::get_rid`]). Says what the node has kept so far.
    pub fn get_rid(&mut self, fx: &mut impl LockFx<Seat = S>) -> Keeping {
        let mut steps = Steps::new();
        let keeping = self.blade.get_rid(self.tag, &mut steps);
        if keeping == Keeping::Sole && fx.defect() == Some(Defect::DropSole) {
            fx.clear();
        }
        self.follow(steps, fx);
        keeping
    }

    /// Tells nodes that the lock is home, if it is.
    pub fn dismiss(&mut self, to: Copyset, fx: &mut impl LockFx<Seat = S>) {
        let Some(version) = self.whole().filter(|_| self.is_home()) else {
            return;
        };
        let me = self.blade.node();
        for node in to.without(me).iter() {
            let to = RequesterId { node, slot: 0 };
            let header = Header::request(Kind::YieldAck, self.blade.epoch(), self.tag, to, Seq(0));
            let mut header = with_version(header, version);
            header.sender = me;
            header.status = GlobalStatus::Modified;
            fx.send(Dest::Agent(node), &header, &Body::None);
        }
    }

    /// From here on the node leaves the rack, and asks the home to take the lock
    /// ([`NodeLock::ask_home`]).
    pub fn begin_leaving(&mut self) {
        self.taken_home = false;
    }

    /// Whether the home has the lock, and does not need this node for it, or is no more.
    pub fn has_left(&self) -> bool {
        self.taken_home || self.over
    }

    /// Asks the home to take the lock, or to take note of the end of a life.
    pub fn ask_home(&self, ended: Option<Life>) -> (Dest, Header) {
        let me = RequesterId {
            node: self.blade.node(),
            slot: 0,
        };
        let mut header = Header::request(Kind::Yield, self.blade.epoch(), self.tag, me, Seq(0));
        if let Some(ended) = ended {
            header = with_version(header, ended.to_word());
            header.offset = LIFE;
        }
        (Dest::Home(self.tag.home()), header)
    }

    /// At its home: a node that leaves, or that needs room, wants to be rid of it, or one that has
    /// freed the lock tells of the end of that life, which lies in what the lock protects.
    pub(super) fn come_home<F: LockFx<Seat = S>>(
        &mut self,
        header: &Header,
        turn: &mut Turn<'_, F>,
    ) {
        if !self.is_home() || header.epoch != self.blade.epoch() {
            return;
        }
        let ended = ended_life(header);
        let access = match ended {
            Some(_) => Access::Write,
            None => Access::from_status(header.status).unwrap_or(Access::Write),
        };
        let mut taken = self.taken(header, ended, turn);
        if taken.is_none() && self.whole().is_none() {
            // Who leaves is told when the lock has come: where others want it all the time, it has
            // gone again when the next question does.
            let tells = match (ended, access) {
                (None, Access::Write) => Copyset::of(header.requester.node),
                _ => Copyset::EMPTY,
            };
            if !self.line.tell(access, tells) {
                self.line.push_back(Waiting::nobody(access, tells));
                self.settle_here(turn);
                taken = self.taken(header, ended, turn);
            }
        }
        if let Some(taken) = taken {
            let mut answer = header.answer(Kind::YieldAck, self.blade.node());
            if let Some((status, version)) = taken {
                answer.status = status;
                answer = with_version(answer, version);
            }
            let to = Dest::Agent(header.requester.node);
            self.send(to, &answer, &Body::None, turn);
        }
    }

    /// What the home answers when it is asked to take the lock, if it has what is needed.
    #[expect(
        clippy::option_option,
        reason = "an answer, and what it says of a version"
    )]
    pub(super) fn taken<F: LockFx<Seat = S>>(
        &self,
        header: &Header,
        ended: Option<Life>,
        turn: &Turn<'_, F>,
    ) -> Option<Option<(GlobalStatus, u64)>> {
        if turn.fx.defect() == Some(Defect::DismissUnseen) && ended.is_none() {
            let version = self.entry().map_or(0, |(entry, ..)| entry.state.version);
            return Some(Some((GlobalStatus::Modified, version)));
        }
        match ended {
            Some(ended) => (turn.fx.life() >= ended).then_some(None),
            None => self.lock()?.taken_home(header).map(Some),
        }
    }
}
