//! A node leaves politely: the locks that it has used go home first, with what they protect. No epoch begins, so nobody
//! would ever ask what it had.
//!
//! It asks the home of each (`Yield`) until that answers (`YieldAck`). The home takes the lock like a writer, and nobody enters;
//! what is in its hands whole depends on nobody else any more. Neither side remembers anything but that: a question that
//! was lost is asked again.

use super::cell::{Cell, State, Turn};
use super::outbox::Payload;
use super::seat::Seat;
use super::table::Locks;
use crate::error::{Error, Result};
use crate::host::access::Access as Coherent;
use rackmem_fabric::{Body, Nobody};
use rackmem_proto::gcp::{Access, Life, Lock, Right, version, with_version};
use rackmem_proto::wire::{Dest, Header, Kind, RequesterId, Seq};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Locks that are asked for at a time.
const WINDOW: usize = 64;
/// The first pause between two questions, and the longest.
pub(crate) const PAUSES: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(16)];

/// In the `offset` of a `Yield` and its answer: they are about the end of a life, which stands in place of a version.
const LIFE: u32 = 1;

/// The end of a life that this packet is about, if it is one.
pub(crate) fn told_of(header: &Header) -> Option<Life> {
    (header.offset == LIFE).then(|| Life::from_word(version(header)))
}

impl State {
    /// At its home: a node that leaves, or that needs room, wants to be rid of it, or one that has freed the lock tells of the end of
    /// that life, which lies in what the lock protects.
    pub(crate) fn come_home(&mut self, cell: &Cell, header: &Header, turn: &mut Turn<'_>) {
        if self.directory.is_none() || self.over {
            return;
        }
        let ended = told_of(header);
        let access = match ended {
            Some(_) => Access::Write,
            None => Access::from_status(header.status).unwrap_or(Access::Write),
        };
        let taken = |state: &State| match ended {
            Some(ended) => (cell.life() >= ended).then_some(None),
            None => state.blade.lock(cell.tag)?.taken_home(header).map(Some),
        };
        let coming = self
            .first
            .iter()
            .chain(self.queue.iter())
            .any(|seat| seat.is_empty() && seat.access >= access);
        if taken(self).is_none() && self.lock_whole(cell).is_none() && !coming {
            self.queue.push_back(Arc::new(Seat::empty(access)));
            self.settle_here(turn);
        }
        if let Some(taken) = taken(self) {
            let mut answer = header.answer(Kind::YieldAck, cell.tag.home());
            if let Some((status, version)) = taken {
                answer.status = status;
                answer = with_version(answer, version);
            }
            turn.send(Dest::Agent(header.requester.node), answer, Payload::None);
        }
    }

    /// Whether the lock and what it protects are here, and nowhere else: the version with which it came.
    pub(crate) fn lock_whole(&self, cell: &Cell) -> Option<u64> {
        self.blade.lock(cell.tag).and_then(Lock::whole)
    }

    /// Whether a thread of this node is inside or waits.
    fn in_use(&self, cell: &Cell) -> bool {
        let inside = self.blade.lock(cell.tag).map(|lock| lock.inside());
        inside.is_some_and(|inside| inside != (0, false))
            || self.first.is_some()
            || !self.queue.is_empty()
    }

    /// Whether this node has had it, or may be about to.
    fn used(&self, cell: &Cell) -> bool {
        let lock = self.blade.lock(cell.tag);
        lock.is_some_and(|lock| {
            lock.since() > 0 || lock.unfinished() || lock.right() != Right::None
        })
    }
}

impl Locks {
    /// Those of other nodes that this one has used.
    fn abroad(&self) -> Vec<Arc<Cell>> {
        let mut cells = self.all();
        cells.retain(|cell| {
            cell.tag.home() != self.me && self.look(cell, |state| !state.over && state.used(cell))
        });
        cells
    }
}

/// Brings the locks of other nodes that a node has used home, with what they protect.
///
/// # Errors
/// [`Error::KeepsLocks`] when a thread of the node is inside one of them, or waits, or their homes do not answer in this time.
pub(crate) fn bring_home(access: &Coherent, patience: Duration) -> Result<()> {
    let locks = &access.agents.locks;
    let keeps = || Error::KeepsLocks { node: locks.me };
    let cells = locks.abroad();
    for cell in &cells {
        let busy = locks.look(cell, |state| {
            state.yielded = false;
            state.in_use(cell)
        });
        if busy {
            return Err(keeps());
        }
    }
    let done = |cell: &&Arc<Cell>| locks.look(cell, |state| state.yielded || state.over);
    let began = Instant::now();
    for window in cells.chunks(WINDOW) {
        let mut left: Vec<_> = window.iter().collect();
        let mut pause = PAUSES[0];
        loop {
            ask(access, &left, None);
            left.retain(|cell| !done(cell));
            if left.is_empty() {
                break;
            }
            if began.elapsed() >= patience {
                return Err(keeps());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSES[1]);
            left.retain(|cell| !done(cell));
        }
    }
    // Nobody stops other threads of this node from taking one again.
    let has = |cell: &Arc<Cell>| {
        locks.look(cell, |state| {
            let lock = state.blade.lock(cell.tag);
            !state.over && lock.is_some_and(|l| l.right() != Right::None || l.unfinished())
        })
    };
    if locks.abroad().iter().any(has) {
        return Err(keeps());
    }
    Ok(())
}

/// Asks homes to take locks, or to take note of the end of a life.
pub(crate) fn ask(access: &Coherent, cells: &[&Arc<Cell>], ended: Option<Life>) {
    let me = RequesterId {
        node: access.agents.locks.me,
        slot: 0,
    };
    // Without a socket they are lost, and sent again later.
    let Ok(slot) = access.requesters.borrow() else {
        return;
    };
    let epoch = access.standing.epoch();
    for cell in cells {
        let mut header = Header::request(Kind::Yield, epoch, cell.tag, me, Seq(0));
        if let Some(ended) = ended {
            header = with_version(header, ended.to_word());
            header.offset = LIFE;
        }
        let home = Dest::Agent(cell.tag.home());
        slot.net().send(home, &header, Body::None, &mut Nobody);
    }
}
