//! What a node does about one input of a lock, until nothing follows any more: packets, the
//! directory where it is here, and the steps that the protocol decides.

use super::{LockFx, NodeLock};
use crate::Outputs;
use crate::engine::Defect;
use crate::gcp::{Body, Event, Lock, Send, Steps, version};
use crate::wire::{Dest, GlobalStatus, Header, Kind, Record};
use alloc::collections::VecDeque;

/// What follows from one input, until nothing does.
pub(super) struct Turn<'f, F> {
    pub fx: &'f mut F,
    /// Packets of this lock to this node.
    pub own: VecDeque<Header>,
}

impl<S> NodeLock<S> {
    /// Everything that follows here.
    pub(super) fn go_on(&mut self, fx: &mut impl LockFx<Seat = S>) {
        self.settle_here(&mut Turn::new(fx));
    }

    /// Does what the protocol has decided, and everything that follows.
    pub(super) fn follow(&mut self, steps: Steps, fx: &mut impl LockFx<Seat = S>) {
        let mut turn = Turn::new(fx);
        self.run(steps, None, &mut turn);
        self.settle_here(&mut turn);
    }

    pub(super) fn take<F: LockFx<Seat = S>>(
        &mut self,
        header: &Header,
        body: Option<(u32, &[Record])>,
        turn: &mut Turn<'_, F>,
    ) {
        match header.kind {
            Kind::Yield => return self.come_home(header, turn),
            Kind::YieldAck if header.status != GlobalStatus::Shared => {
                let since = self.lock().map_or(0, Lock::since);
                self.taken_home |= version(header) >= since;
            }
            _ => {}
        }
        if header.kind.asks_directory() {
            let switch = self.blade.has_switch();
            let outputs = self.directory.as_mut().map(|home| match switch {
                true => home.handle_or_place(header),
                false => home.handle(header),
            });
            return self.serve(&outputs.unwrap_or_default(), turn);
        }
        let (len, records) = body.unwrap_or_default();
        let records = match header.kind {
            Kind::Queue => records,
            _ => &[],
        };
        let mut steps = Steps::new();
        self.blade.handle(header, len, records, &mut steps);
        self.run(steps, body.map(|_| header), turn);
    }

    /// Sends what the directory has decided.
    pub(super) fn serve<F: LockFx<Seat = S>>(&self, outputs: &Outputs, turn: &mut Turn<'_, F>) {
        // The directory is at the lock's home, and so is this node.
        let here = |_| Some(self.blade.node());
        for (to, header) in outputs.iter().flat_map(|output| output.copies(here)) {
            self.send(to, &header, &Body::None, turn);
        }
    }

    pub(super) fn send<F: LockFx<Seat = S>>(
        &self,
        to: Dest,
        header: &Header,
        body: &Body,
        turn: &mut Turn<'_, F>,
    ) {
        let here = match to {
            Dest::Home(home) => home == self.tag.home() && self.is_home(),
            to => to == Dest::Agent(self.blade.node()),
        };
        if here && turn.fx.loops() {
            // A node gives nothing to itself: these have no bodies.
            return turn.own.push_back(*header);
        }
        turn.fx.send(to, header, body);
    }

    /// Everything that follows here, until nothing does.
    pub(super) fn settle_here<F: LockFx<Seat = S>>(&mut self, turn: &mut Turn<'_, F>) {
        loop {
            if let Some(header) = turn.own.pop_front() {
                self.take(&header, None, turn);
            } else if !self.send_next(turn) {
                return;
            }
        }
    }

    /// Whether threads are inside that these steps do not let in.
    pub(super) fn inside_before(&self, steps: &Steps) -> bool {
        let enter = |step: &&Event| matches!(step, Event::Enter(_));
        let new = steps.iter().filter(enter).count();
        let (readers, writer) = self.lock().map_or((0, false), Lock::inside);
        usize::from(readers) + usize::from(writer) > new
    }

    /// Does what the protocol has decided, in order. `came`: the packet whose body is at hand.
    pub(super) fn run<F: LockFx<Seat = S>>(
        &mut self,
        mut steps: Steps,
        came: Option<&Header>,
        turn: &mut Turn<'_, F>,
    ) {
        let inside = self.inside_before(&steps);
        if turn.fx.defect() == Some(Defect::EnterFirst) {
            steps.sort_by_key(|step| !matches!(step, Event::Enter(_)));
        }
        for step in steps {
            match step {
                Event::Store => came.into_iter().for_each(|header| turn.fx.store(header)),
                Event::Drop => turn.fx.clear(),
                Event::Install => turn.fx.install(inside),
                Event::Enter(entered) => self.let_in(entered, false, turn),
                Event::Send(Send { to, header, body }) => {
                    let mut header = header;
                    if self.implicit && header.kind == Kind::Acquire {
                        header.offset = self.lock().map_or(0, Lock::protects);
                    }
                    self.send(to, &header, &body, turn);
                }
            }
        }
    }
}

impl<'f, F> Turn<'f, F> {
    pub fn new(fx: &'f mut F) -> Self {
        Turn {
            fx,
            own: VecDeque::new(),
        }
    }
}
