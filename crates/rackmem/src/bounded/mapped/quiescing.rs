//! What a node does at each tick: the acts of a quiescence, on lines.
//!
//! Freed lines wait for the sections that are open, and modified ones do not: while one quiescence
//! waits, later ones go on to the same point, and are absorbed.

use super::super::counter::Moment;
use super::arena::Attached;
use crate::error::{ArenaError, RackError};
use rackmem_fabric::Whole;
use rackmem_proto::bi::{
    Act, Extent, Presence, Queue, Quiescence, Quiescer, SLAB_LINES, Standstill, Tick,
};
use std::sync::Weak;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

/// What is under way.
pub(super) struct Quiescing {
    quiescer: Quiescer,
    /// It waits for the sections of this age, since this tick. If they cannot be known, it waits
    /// until none of them is believed.
    waits: Option<(Quiescence, Option<usize>, Tick)>,
    /// The next one to wait.
    next: Option<Quiescence>,
    /// It has been through one to its end.
    runs: bool,
    /// When the last one began.
    moment: Option<Moment>,
}

impl Quiescing {
    pub fn new(life: (u8, u32)) -> Self {
        Quiescing {
            quiescer: Quiescer::new(life, None),
            waits: None,
            next: None,
            runs: false,
            moment: None,
        }
    }
}

impl Attached {
    /// Drops what was modified until now, and `own`; and what was freed when no section can read it
    /// any more. At some moment since this call began the process was a member of the rack.
    pub fn quiesce(&self, own: Vec<Extent>) -> Result<(), ArenaError> {
        let mut state = self.quiescing.lock().whole();
        self.quiesce_in(&mut state, own)
    }

    /// The same, if nobody else has done so in time while this thread waited its turn.
    pub fn quiesce_if(&self, late: impl Fn() -> bool) -> Result<(), ArenaError> {
        let mut state = self.quiescing.lock().whole();
        match late() {
            true => self.quiesce_in(&mut state, Vec::new()),
            false => Ok(()),
        }
    }

    fn quiesce_in(&self, state: &mut Quiescing, own: Vec<Extent>) -> Result<(), ArenaError> {
        if self.over.load(SeqCst) {
            return Err(ArenaError::Expelled);
        }
        let (moment, now) = self.moment();
        state.moment = Some(moment);
        let mut quiescence = Quiescence::begin(now, own, None);
        if self.all {
            quiescence.drop_all();
        }
        while let Some(act) = quiescence.act().filter(|act| *act != Act::Await) {
            self.act(state, act, &mut quiescence)?;
            quiescence.done(now);
        }
        self.counters.quiesced.fetch_add(1, Relaxed);
        if let Some(earlier) = state.next.take() {
            quiescence.absorb(earlier);
        }
        state.next = Some(quiescence);
        self.drop_freed(state)
    }

    /// Goes on with what waits for sections, as far as they have ended.
    fn drop_freed(&self, state: &mut Quiescing) -> Result<(), ArenaError> {
        loop {
            let now = self.now();
            let waits = state.waits.take().or_else(|| {
                let next = state.next.take()?;
                Some((next, self.open.turn(), now))
            });
            let Some((mut quiescence, turned, since)) = waits else {
                return Ok(());
            };
            let ended = turned.is_some_and(|turned| self.open.have_ended(turned));
            if !ended && !self.bound().has_ended(since, now) {
                state.waits = Some((quiescence, turned, since));
                return Ok(());
            }
            quiescence.done(now);
            while let Some(act) = quiescence.act() {
                self.act(state, act, &mut quiescence)?;
                quiescence.done(now);
            }
            if !state.runs {
                state.runs = true;
                self.board().set_presence(self.life, Presence::Running);
            }
        }
    }

    fn act(
        &self,
        state: &mut Quiescing,
        act: Act,
        quiescence: &mut Quiescence,
    ) -> Result<(), ArenaError> {
        let mut board = self.board();
        match act {
            Act::Look => {
                if state.quiescer.is_excluded(&board) {
                    self.over.store(true, SeqCst);
                    return Err(ArenaError::Expelled);
                }
                let latest = state.quiescer.look(&board, quiescence);
                // What was read is of a time at which the rack waited for this process.
                self.node.confirm()?;
                board.show(self.now());
                if self.compare(latest)? {
                    quiescence.drop_all();
                }
            }
            Act::Drop(queue) => self.drop_found(quiescence.found(queue)),
            Act::Tell(queue) => {
                board.tell(queue, quiescence.began());
                if queue == Queue::Modified {
                    self.modified.store(quiescence.began().0, SeqCst);
                    if let Some(moment) = state.moment.take() {
                        self.quiesced(moment);
                    }
                }
            }
            Act::Await => {}
        }
        Ok(())
    }

    fn drop_found(&self, found: &Standstill) {
        if found.all {
            self.counters.everything.fetch_add(1, Relaxed);
            let slots = self.front.slot(0)..self.front.slot(super::front::SLOTS);
            self.lines
                .drop_all(std::iter::once(slots).chain(self.used()));
        } else {
            let lines = found.extents.iter().map(|extent| u64::from(extent.lines));
            self.counters.dropped.fetch_add(lines.sum(), Relaxed);
            self.lines
                .drop_all(found.extents.iter().map(|extent| extent.all()));
        }
    }

    /// Lines of slabs that were ever used, which are the first ones of each share. What comes to be
    /// used later is behind young pointers.
    fn used(&self) -> impl Iterator<Item = std::ops::Range<u64>> {
        let (each, first) = (self.front.slabs, self.first);
        let shares = (0..u64::from(self.front.board.domains)).map(move |domain| domain * each);
        shares.map(move |share| {
            let slabs = share..share + each;
            let used = slabs.take_while(|nth| self.class_of(*nth as usize).is_some());
            let (begin, count) = (first + share * SLAB_LINES, used.count() as u64);
            begin..begin + count * SLAB_LINES
        })
    }
}

/// Quiesces at each tick, and makes freed memory free, until the last handle is gone or the rack
/// does without this process. What fails here, the next section tries itself, and says why.
pub(super) fn keep_quiescing(attached: &Weak<Attached>) {
    loop {
        let Some(period) = attached.upgrade().map(|at| at.period()) else {
            return;
        };
        std::thread::sleep(period);
        let Some(at) = attached.upgrade() else {
            return;
        };
        let now = at.now();
        let done = at.quiesce_if(|| at.modified.load(SeqCst) < now.0);
        if let Err(ArenaError::Expelled | ArenaError::Rack(RackError::Closed | RackError::Fenced)) =
            done
        {
            return;
        }
        at.reclaim();
    }
}
