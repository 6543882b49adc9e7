//! Threads of a node in a lock, and in line for it.

use super::acting::Turn;
use super::line::Waiting;
use super::{LockFx, NodeLock};
use crate::engine::Defect;
use crate::gcp::{Access, Entered, Lock, Right, Steps};
use crate::wire::{Copyset, Reason};

impl<S> NodeLock<S> {
    /// Threads of the node that wait.
    pub fn waiting(&self) -> usize {
        self.line.len()
    }

    /// Whether a thread of the node is inside or waits.
    pub fn in_use(&self) -> bool {
        let inside = self.lock().is_some_and(|lock| lock.inside() != (0, false));
        inside || !self.line.is_empty()
    }

    /// Whether threads may come and go without a section, and as what: the lock is here, current,
    /// and no thread or node waits.
    pub fn free(&self) -> Right {
        let alone = self.line.is_empty() && !self.over;
        let Some(lock) = self.lock().filter(|_| alone) else {
            return Right::None;
        };
        let idle = lock.inside() == (0, false) && !lock.contended() && lock.releasing().is_none();
        let quiet = !lock.unfinished() && lock.waits().is_none();
        match idle && quiet && lock.reason() == Reason::None {
            true => lock.right(),
            false => Right::None,
        }
    }

    /// Whether a thread may wait in the blade: writers are sent there when none of this node is
    /// inside.
    pub(super) fn may_go(&self, access: Access, leaves: Option<Access>) -> bool {
        let Some((mut readers, mut writer)) = self.lock().map(Lock::inside) else {
            return false;
        };
        match leaves {
            Some(Access::Read) => readers = readers.saturating_sub(1),
            Some(Access::Write) => writer = false,
            None => {}
        }
        self.line.first().is_none() && !writer && (access == Access::Read || readers == 0)
    }

    /// A thread is inside that came without a section.
    pub fn came(&mut self, access: Access) {
        let mut steps = Steps::new();
        let (entered, _) = self.blade.enter(self.tag, access, &mut steps);
        debug_assert!(entered.is_some() && steps.is_empty());
    }

    /// The writer inside has found this wrong with the data: whoever enters is told, until one has
    /// written.
    pub fn found(&mut self, reason: Reason) {
        self.blade.found(self.tag, reason);
    }

    /// A thread wants to enter: it is let in at once, or in its turn.
    pub fn enter(&mut self, seat: S, access: Access, fx: &mut impl LockFx<Seat = S>) {
        if self.over {
            return fx.send_away(seat);
        }
        self.line.push_back(Waiting::thread(seat, access));
        self.go_on(fx);
    }

    /// The lock is to come to this node, though none of its threads wants it.
    pub fn bring(&mut self, access: Access, fx: &mut impl LockFx<Seat = S>) {
        self.line.push_back(Waiting::nobody(access, Copyset::EMPTY));
        self.go_on(fx);
    }

    /// Whether [`NodeLock::try_enter`] lets a thread in.
    pub fn at_hand(&self, access: Access) -> bool {
        let right = self
            .lock()
            .is_some_and(|lock| lock.right().allows(access) && !lock.contended());
        right && self.line.is_empty() && self.may_go(access, None)
    }

    /// Enters if no thread is in the way and no packet is needed.
    pub fn try_enter(&mut self, access: Access) -> Option<Entered> {
        if !self.at_hand(access) {
            return None;
        }
        let mut steps = Steps::new();
        let (entered, _) = self.blade.enter(self.tag, access, &mut steps);
        if entered.is_none() {
            // Its release is under way. Nothing was asked for: a writer's right was enough.
            self.blade.cancel(self.tag);
        }
        entered
    }

    /// A thread leaves; the first in line enters with it, as often as the bound of a cohort allows.
    pub fn leave(&mut self, access: Access, fx: &mut impl LockFx<Seat = S>) {
        if self.over {
            return;
        }
        let front = self.line.next().map(|waiting| waiting.access);
        let forgets = fx.defect() == Some(Defect::ForgetNext);
        let next = front.filter(|next| !forgets && self.may_go(*next, Some(access)));
        if next.is_some() {
            self.line.step_forward();
        }
        let mut steps = Steps::new();
        let entered = self.blade.leave(self.tag, access, next, &mut steps);
        let mut turn = Turn::new(fx);
        if let Some(entered) = entered {
            self.let_in(entered, true, &mut turn);
        }
        self.run(steps, None, &mut turn);
        if turn.fx.defect() != Some(Defect::ForgetNext) {
            self.settle_here(&mut turn);
        }
    }

    /// A thread that was let in is not to go on: it leaves, and has seen nothing.
    pub fn decline(&mut self, access: Access, fx: &mut impl LockFx<Seat = S>) {
        if self.over {
            return;
        }
        let mut steps = Steps::new();
        self.blade.decline(self.tag, access, &mut steps);
        self.follow(steps, fx);
    }

    /// A thread waits no longer. `false`: it has been let in meanwhile, or sent away.
    pub fn give_up(&mut self, is: impl Fn(&S) -> bool, fx: &mut impl LockFx<Seat = S>) -> bool {
        let is = |waiting: &Waiting<S>| waiting.seat.as_ref().is_some_and(&is);
        if self.line.first().is_some_and(is) {
            self.line.take_first();
            self.blade.cancel(self.tag);
        } else if !self.line.remove(is) {
            return false;
        }
        self.go_on(fx);
        true
    }

    /// The first in line goes to wait in the blade, or is inside.
    pub(super) fn send_next<F: LockFx<Seat = S>>(&mut self, turn: &mut Turn<'_, F>) -> bool {
        let front = self.line.next().map(|waiting| waiting.access);
        let Some(access) = front.filter(|access| self.may_go(*access, None)) else {
            return false;
        };
        self.line.step_forward();
        let mut steps = Steps::new();
        let (entered, _) = self.blade.enter(self.tag, access, &mut steps);
        if let Some(entered) = entered {
            self.let_in(entered, true, turn);
        }
        self.run(steps, None, turn);
        true
    }

    /// Who waits in the blade is inside. If it is no thread, or has given up meanwhile,
    /// the lock is left at once.
    pub(super) fn let_in<F: LockFx<Seat = S>>(
        &mut self,
        entered: Entered,
        at_once: bool,
        turn: &mut Turn<'_, F>,
    ) {
        self.pace.rest();
        let waiting = self.line.take_first();
        let tells = waiting
            .as_ref()
            .map_or(Copyset::EMPTY, |nobody| nobody.tells);
        if let Some(seat) = waiting.and_then(|waiting| waiting.seat) {
            return turn.fx.inside(seat, entered, at_once);
        }
        self.dismiss(tells, turn.fx);
        let mut steps = Steps::new();
        self.blade.decline(self.tag, entered.access, &mut steps);
        self.run(steps, None, turn);
    }
}
