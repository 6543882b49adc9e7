//! What can happen next.

use super::mutation::Mutation;
use super::oracle::Complaint;
use super::packet::DIRECTORY;
use super::world::{At, HOME, LockRack, TAG, Witness, World};
use rackmem_proto::engine::{self, Gcp, LockCommand, LockHost, Protocol};
use rackmem_proto::gcp::{Access, Keeping, Known, first};
use rackmem_proto::wire::Copyset;
use std::fmt;

/// A way beside the others, for packets that are late.
const DETOUR: u8 = 64;

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// A thread enters, or ends its critical section.
    Step(usize),
    /// A thread ends its critical section, and another of its node wants to be next.
    HandTo(usize, usize),
    /// A packet arrives.
    Deliver((u8, u8), usize),
    /// It is lost.
    Lose((u8, u8)),
    /// It will come once more.
    Double((u8, u8)),
    /// Others may overtake it.
    Delay((u8, u8)),
    /// A node has waited for long, and asks again.
    Retry(u8),
    /// The home has the lock, and tells a node.
    Dismiss(u8),
    /// A node needs room: it gets rid of what it keeps.
    GiveUp(u8),
    /// The home keeps nothing but a number of the lock, and makes it again from that.
    Rest,
    /// Something dies, or comes back: there is a newer view.
    Fail,
    /// A node enters the epoch of the newest view.
    Enter(u8),
    /// The switch does.
    EnterSwitch,
    /// The home has been told everything, and makes its entry anew.
    Settle,
    /// A node's control plane sees that the rack goes on.
    Resume(u8),
    /// The switch is asked to serve the lock, and does.
    Place,
}

/// A move, as a line of a story.
pub struct Line<'a>(pub &'a World, pub Move);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line(world, step) = self;
        let place = |end: u8| match end & !DETOUR {
            _ if end == DIRECTORY => "directory".to_string(),
            node => format!("node {node}"),
        };
        let mut packet = |what: &str, way: (u8, u8), nth| {
            let header = &world.ways.get(way, nth).header;
            let (from, to) = (place(way.0), place(way.1));
            let (who, number) = (header.requester.node, rackmem_proto::gcp::version(header));
            let number = number & 0xffff_ffff;
            write!(
                f,
                "{what} {} of node {who} #{number} {:?} {:b} from {from} to {to}",
                header.kind.name(),
                header.status,
                header.copyset.0,
            )
        };
        match *step {
            Move::Deliver(way, nth) => packet("arrives:", way, nth),
            Move::Lose(way) => packet("is lost:", way, 0),
            Move::Double(way) => packet("is doubled:", way, 0),
            Move::Delay(way) => packet("is late:", way, 0),
            other => write!(f, "{other:?}"),
        }
    }
}

impl World {
    /// Everything that can happen now.
    pub fn moves(&self, rack: &LockRack) -> Vec<Move> {
        let mut moves = Vec::new();
        self.epoch_moves(rack, &mut moves);
        let waits = !self.settled();
        if waits && !rack.loose {
            return moves;
        }
        self.thread_moves(rack, &mut moves);
        let goes_on = |step: &Move| !matches!(step, Move::Fail | Move::Resume(_));
        let free = !moves.iter().any(goes_on) && self.ways.is_empty();
        for (way, count) in self.ways.iter() {
            let detour = way.0 != DIRECTORY && way.0 >= DETOUR || way.0 == DIRECTORY - 1;
            let last = if detour { count } else { 1 };
            moves.extend((0..last).map(|nth| Move::Deliver(way, nth)));
            if !detour {
                let left = self.left;
                moves.extend((left.lose > 0).then_some(Move::Lose(way)));
                moves.extend((left.double > 0).then_some(Move::Double(way)));
                moves.extend((left.late > 0).then_some(Move::Delay(way)));
            }
        }
        let home = &self.nodes[usize::from(HOME)];
        if self.left.dismiss > 0 && home.up && self.lock(HOME).whole().is_some() {
            moves.extend((1..self.nodes.len() as u8).map(Move::Dismiss));
        }
        if self.left.give_up > 0 {
            let nodes = 1..self.nodes.len() as u8;
            moves.extend(nodes.filter(|n| self.may_give_up(*n)).map(Move::GiveUp));
        }
        moves.extend(self.may_rest().then_some(Move::Rest));
        if (free || self.left.early > 0) && !rack.has(Mutation::NeverRetry) {
            let nodes = 0..self.nodes.len() as u8;
            moves.extend(nodes.filter(|n| self.asks_again(*n)).map(Move::Retry));
        }
        moves
    }

    fn asks_again(&self, node: u8) -> bool {
        let state = &self.nodes[usize::from(node)];
        state.up && !state.fenced && self.lock(node).unfinished()
    }

    fn may_give_up(&self, node: u8) -> bool {
        let state = &self.nodes[usize::from(node)];
        let keeping = self.lock(node).keeping();
        state.up && !state.fenced && !matches!(keeping, Keeping::Used | Keeping::Nothing)
    }

    fn thread_moves(&self, rack: &LockRack, moves: &mut Vec<Move>) {
        for (nth, thread) in self.threads.iter().enumerate() {
            match thread.at {
                At::Outside if self.may_try(rack, nth, None) => moves.push(Move::Step(nth)),
                At::Inside => {
                    moves.push(Move::Step(nth));
                    let others = if thread.refused {
                        0
                    } else {
                        self.threads.len()
                    };
                    for other in 0..others {
                        let neighbour = self.threads[other].node == thread.node;
                        if neighbour && other != nth && self.may_try(rack, other, Some(nth)) {
                            moves.push(Move::HandTo(nth, other));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Whether the node's own lock lets a thread ask for this one, when `leaving` has left:
    /// one at a time waits, and writers come alone.
    fn may_try(&self, rack: &LockRack, thread: usize, leaving: Option<usize>) -> bool {
        let Some(access) = rack.next(self, thread) else {
            return false;
        };
        let node = self.threads[thread].node;
        let in_the_way = |(other, with): (usize, &super::world::Thread)| {
            let here = with.node == node && other != thread && Some(other) != leaving;
            let inside = with.at == At::Inside
                && (access == Access::Write || rack.next(self, other) == Some(Access::Write));
            here && (with.at == At::Waiting || inside)
        };
        let coming = node == HOME && self.comes_home();
        self.threads[thread].at == At::Outside
            && !coming
            && self.nodes[usize::from(node)].up
            && !self.threads.iter().enumerate().any(in_the_way)
    }

    /// Does it.
    pub fn act(&mut self, rack: &LockRack, step: Move) -> Result<(), Complaint> {
        self.seen = 0;
        match step {
            Move::Step(thread) => self.step(rack, thread, None)?,
            Move::HandTo(thread, next) => self.step(rack, thread, Some(next))?,
            Move::Deliver(way, nth) => {
                let packet = self.ways.take(way, nth);
                self.deliver(rack, way.1, packet)?;
            }
            Move::Lose(way) => {
                self.left.lose -= 1;
                self.ways.take(way, 0);
            }
            Move::Double(way) => {
                self.left.double -= 1;
                let copy = self.ways.get(way, 0).clone();
                self.ways.push(detour(way.0), way.1, copy);
            }
            Move::Delay(way) => {
                self.left.late -= 1;
                let packet = self.ways.take(way, 0);
                self.ways.push(detour(way.0), way.1, packet);
            }
            Move::Retry(node) => {
                let mut busy = Vec::new();
                self.epoch_moves(rack, &mut busy);
                self.thread_moves(rack, &mut busy);
                let goes_on = |step: &Move| !matches!(step, Move::Fail | Move::Resume(_));
                if busy.iter().any(goes_on) || !self.ways.is_empty() {
                    self.left.early -= 1;
                }
                self.act_on(rack, node, |site| {
                    // Long enough for whatever is awaited.
                    site.locks.clock += 1 << 16;
                    engine::tick(site, false);
                })?;
            }
            Move::Dismiss(node) => self.dismiss(rack, node)?,
            Move::GiveUp(node) => self.give_up(rack, node)?,
            Move::Rest => self.rest(rack),
            Move::Fail => self.fail(rack),
            Move::Enter(node) => self.enter(rack, node),
            Move::EnterSwitch => self.enter_switch(rack),
            Move::Settle => self.settle(),
            Move::Resume(node) => self.resume(rack, node)?,
            Move::Place => self.taken_by_switch(),
        }
        super::oracle::check(self, rack)
    }

    /// The home tells a node that the lock is home.
    fn dismiss(&mut self, rack: &LockRack, to: u8) -> Result<(), Complaint> {
        self.left.dismiss -= 1;
        let to = Copyset::of(to.into());
        self.act_on(rack, HOME, |home| {
            home.lock(TAG, |lock, fx| lock.dismiss(to, fx));
        })
    }

    /// Whether the home may keep no more than a number of the lock.
    fn may_rest(&self) -> bool {
        self.left.rest > 0
            && self.nodes[usize::from(HOME)]
                .cell()
                .lock
                .forgettable(true)
                .is_some()
    }

    /// The home keeps no more than a number of the lock. Whatever is next about it has the home
    /// make it again, so it does that at once.
    fn rest(&mut self, rack: &LockRack) {
        self.left.rest -= 1;
        let node = self.node_mut(HOME);
        let Some(Known::Home(mut rest)) = node.cell().lock.forgettable(true) else {
            return;
        };
        let first = first(node.epoch());
        let rested = rest.number > first;
        if rack.has(Mutation::WakeOld) {
            rest.number = first;
        }
        node.granted_before += node.cell().lock.counters().granted;
        if let Some(cell) = node.site.locks.cells.remove(&TAG) {
            node.site
                .open_lock(TAG, cell.fx.data, Some(Known::Home(rest)));
        }
        if rested {
            self.witness(Witness::Rested);
        }
    }

    /// A node needs room.
    fn give_up(&mut self, rack: &LockRack, node: u8) -> Result<(), Complaint> {
        self.left.give_up -= 1;
        let keeping = self.act_on(rack, node, |here| {
            here.lock(TAG, |lock, fx| lock.get_rid(fx))
        })?;
        if keeping == Some(Keeping::Copy) {
            self.witness(Witness::GaveCopyUp);
        }
        Ok(())
    }

    fn step(
        &mut self,
        rack: &LockRack,
        thread: usize,
        next: Option<usize>,
    ) -> Result<(), Complaint> {
        let node = self.threads[thread].node;
        if self.threads[thread].at == At::Outside && !self.enters(rack, thread) {
            self.threads[thread].done += 1;
            return Ok(());
        }
        if self.threads[thread].refused {
            let access = self.end(rack, thread);
            return self.command(rack, node, LockCommand::Decline(access));
        }
        let enters = |world: &mut World, thread: usize| {
            world.threads[thread].at = At::Waiting;
            let access = rack.next(world, thread).expect("it has something to do");
            LockCommand::Enter(thread as u16, access)
        };
        if self.threads[thread].at == At::Outside {
            let enter = enters(self, thread);
            return self.command(rack, node, enter);
        }
        let access = self.end(rack, thread);
        let next = next.map(|next| enters(self, next));
        self.act_on(rack, node, |here| {
            for command in next.into_iter().chain([LockCommand::Leave(access)]) {
                Gcp::command(here, 0, (TAG, command));
            }
        })
    }

    fn command(
        &mut self,
        rack: &LockRack,
        node: u8,
        command: LockCommand<u16>,
    ) -> Result<(), Complaint> {
        self.act_on(rack, node, |here| Gcp::command(here, 0, (TAG, command)))
    }
}

fn detour(from: u8) -> u8 {
    match from {
        DIRECTORY => DIRECTORY - 1,
        node => node | DETOUR,
    }
}
