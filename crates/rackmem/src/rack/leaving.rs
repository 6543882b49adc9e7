//! A node leaves: everything in its cache goes home.

use crate::backoff::Backoff;
use crate::error::{AccessError, LeaveError, RackError};
use crate::host::locks;
use crate::membership::current_view::TooFew;
use crate::node::Node;
use crate::ports::requester::Bytes;
use crate::rack::Rack;
use rackmem_fabric::{Body, Nobody};
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::{Copyset, Dest, Header, Kind, MAX_NODES, NodeId, RequesterId, Seq, Tag};
use std::sync::Arc;

/// How often each of the others is told that a node goes.
const FAREWELLS: usize = 3;

impl Rack {
    /// For programs that have threads to end before they leave, all of whose memory has copies.
    /// Serves on while copies of other members fill that take the place of its own, for the
    /// configuration's `patience` at most. From then on no operation of this process waits for the
    /// others once they are too few for memory with copies: it ends with an error at once
    /// ([`AccessError::NoQuorum`] for a line with copies), and nothing more comes of this rack than
    /// [`Rack::leave_memory_behind`].
    pub fn begin_to_leave(&self) {
        for node in self.among_others() {
            node.await_copies();
            node.look_around();
        }
    }

    /// For programs that move what others need of their memory to members that stay, before they
    /// leave. From then on no operation of this process waits for the others once there are none:
    /// it ends with an error at once, and nothing more comes of this rack than
    /// [`Rack::leave_memory_behind`]. [`Rack::stay`] takes that back.
    pub fn begin_to_move(&self) {
        self.among_others().for_each(Node::look_for_others);
    }

    /// This process does not leave, whatever it has begun to do.
    pub fn stay(&self) {
        self.among_others().for_each(Node::stay);
    }
}

/// What has died with another node is nothing that one who leaves could bring home.
fn unless_lost(result: Result<(), AccessError>) -> Result<(), AccessError> {
    match result {
        Err(AccessError::Rack(RackError::NodeLost { .. }) | AccessError::Lost { .. }) => Ok(()),
        result => result,
    }
}

impl Node {
    /// Whether others have memory of this node, which is lost if it goes.
    pub(crate) fn is_in_use(&self) -> bool {
        let agents = &self.inner.access.agents;
        let serves = agents.names.is_some() || agents.kept.has_any();
        let keeps = serves && agents.standing.keeper() == Some(self.inner.id);
        keeps || agents.books(|home| home.has_given())
    }

    /// The epoch that it may leave without another one ([`crate::membership::View::leave`]); 0,
    /// which is none: others still wait for its part of one.
    pub(crate) fn settled(&self) -> u32 {
        let settled = self.inner.access.agents.rebuilding.settled();
        settled.unwrap_or_default()
    }

    /// Whether the members that are left are too few to take what it has of homes that groups keep.
    pub(crate) fn is_deserted(&self) -> bool {
        self.inner.access.standing.is_deserted()
    }

    /// Serves on while copies of the others come in the place of its own: of three nodes that are
    /// started anew one after the other, the second would take the majority along. Not for ever.
    pub(crate) fn await_copies(&self) {
        let access = &self.inner.access;
        let mut backoff = Backoff::new(access.patience);
        let misses = || access.groups.misses(self.id(), access.standing.view());
        while !access.standing.is_over() && misses() && backoff.wait() {}
    }

    /// Serves on until the others have given back what they have of its memory, as they do when
    /// they [close](crate::Rack::close); not for ever, and at once where those stay
    /// (`others_stay`). If they have, it says that it goes. Whether they have.
    pub(crate) fn linger(&self, others_stay: bool) -> bool {
        let access = &self.inner.access;
        let mut backoff = Backoff::new(access.patience);
        while access.agents.is_held_elsewhere() {
            if others_stay || !backoff.wait() {
                return false;
            }
        }
        self.say_farewell();
        true
    }

    /// Tells the others that nothing of its memory is under way: what they keep for that
    /// ([`given`](crate::host::agents::Agents::given)), and locks of it that nobody is inside of,
    /// they need not ask about any more.
    fn say_farewell(&self) {
        let access = &self.inner.access;
        // Without a socket nobody hears it, and waits as for one that has died.
        let Ok(slot) = access.requesters.borrow() else {
            return;
        };
        let (me, standing) = (self.id(), &access.standing);
        let requester = RequesterId { node: me, slot: 0 };
        let header = Header {
            incarnation: standing.incarnation(me),
            ..Header::request(Kind::Farewell, standing.epoch(), Tag(0), requester, Seq(0))
        };
        let others = (0..MAX_NODES as NodeId).filter(|node| *node != me && standing.live(*node));
        // Nothing answers it: where one is lost, another may come.
        for node in others.flat_map(|node| [node; FAREWELLS]) {
            slot.net()
                .send(Dest::Agent(node), &header, Body::None, &mut Nobody);
        }
    }

    /// Writes what its cache has home, so that this node can go. New misses of other threads get in
    /// the way. `epoch_follows`: what homes have as well may stay, as in the cache of a node that
    /// dies ([`locks::bring_home`]).
    ///
    /// Where other members leave too, those that are left may be too few to take anything home.
    /// Then it ends at once
    /// ([`CurrentView::is_deserted`](crate::membership::current_view::CurrentView::is_deserted)),
    /// with an error if a block is lost by that. Of what locks protect nothing is said:
    /// which of the last members is their home changes while they leave.
    pub(crate) fn bring_home(&self, epoch_follows: bool) -> Result<(), LeaveError> {
        let brought = self.bring_all_home(epoch_follows);
        if !self.inner.access.standing.is_deserted() {
            return brought;
        }
        let agents = &self.inner.access.agents;
        let mut copies = agents.cache.copies();
        let block = copies.find(|(tag, status)| agents.alone_has(*tag, *status));
        block.map_or(Ok(()), |(tag, _)| {
            let (node, addr) = (self.id(), tag.0);
            Err(LeaveError::Deserted { node, addr })
        })
    }

    fn bring_all_home(&self, epoch_follows: bool) -> Result<(), LeaveError> {
        let access = &self.inner.access;
        let (agents, patience) = (&access.agents, access.patience);
        self.inner.allocator.give_all_back(access);
        let must = |copy: &(Tag, LocalStatus)| !epoch_follows || agents.alone_has(copy.0, copy.1);
        let copies = agents.cache.copies().filter(must).map(|copy| copy.0);
        let (own, kept): (Vec<_>, Vec<_>) = copies.partition(|tag| tag.home().is_own());
        // A home that is a node's takes what is its, however few are left.
        for tag in own {
            self.let_go(tag)?;
        }
        self.look_around();
        locks::bring_home(access, patience, epoch_follows)?;
        for tag in kept {
            self.let_go(tag)?;
        }
        for tag in agents.given() {
            unless_lost(self.has_arrived(tag))?;
        }
        access.requesters.drain();
        let mut backoff = Backoff::new(patience);
        while agents.rebuilding.settled().is_none() && !access.standing.is_over() && backoff.wait()
        {
        }
        Ok(())
    }

    /// Writes a block of its cache home, if there is one.
    fn let_go(&self, tag: Tag) -> Result<(), AccessError> {
        unless_lost(self.evict(tag.0).map(drop))
    }

    /// Waits until a block that this node has given away has come: who was given it holds its lock
    /// until it has the data, and till then only this node can send it again. If its home has gone,
    /// nobody waits for it.
    fn has_arrived(&self, tag: Tag) -> Result<(), AccessError> {
        let access = &self.inner.access;
        let mut backoff = Backoff::new(access.patience);
        while !access.standing.has_gone(tag.home()) {
            access.alive(tag)?;
            let then = {
                let mut slot = access.requesters.borrow()?;
                slot.ask(Purpose::Probe, tag, 0, Bytes::Nothing)
            };
            match then {
                Then::Done => return Ok(()),
                Then::Lost if access.standing.has_gone(tag.home()) => {}
                Then::Again | Then::BackOff if backoff.wait() => {}
                Then::Again | Then::BackOff => return Err(AccessError::Busy { addr: tag.0 }),
                then => return Err(access.fatal(then, tag)),
            }
        }
        Ok(())
    }

    /// From here on it waits for nobody once the others are too few to take anything of a home that
    /// a group keeps.
    pub(crate) fn look_around(&self) {
        let (me, groups) = (self.id(), Arc::downgrade(&self.inner.access.groups));
        self.needs(Box::new(move |live| {
            let others = live.without(me);
            let short = || groups.upgrade().is_some_and(|groups| groups.is_short(live));
            others == Copyset::EMPTY || short()
        }));
    }

    /// From here on it waits for nobody once there are no others.
    pub(crate) fn look_for_others(&self) {
        let me = self.id();
        self.needs(Box::new(move |live| live.without(me) == Copyset::EMPTY));
    }

    fn needs(&self, too_few: TooFew) {
        let access = &self.inner.access;
        let standing = &access.standing;
        let Some(seen) = standing.looked() else {
            return;
        };
        // Who has come lately, and was not needed, need not be known here.
        let mut backoff = Backoff::new(access.patience);
        while !standing.has_caught_up(seen) {
            if !backoff.wait() {
                return;
            }
        }
        standing.leave(Some(too_few));
    }

    /// It does not leave after all.
    pub(crate) fn stay(&self) {
        self.inner.access.standing.leave(None);
    }
}
