//! One lock at one node: the node's side of it, its directory entry where the node is its home, and the threads of the node
//! that wait for it.
//!
//! This is a section: what a host's lock covers, and what explorers take as one step. One thread at a time waits in the blade, and a writer
//! only when no thread of the node is inside; the others stand in line in front of it, and hand over among themselves as often as the
//! bound of a cohort allows. What a lock sends to its own node is taken in the same section where the host says so ([`LockFx::loops`]).

use super::line::{Line, Waiting};
use super::{Change, Defect};
use crate::Outputs;
use crate::call::Pace;
use crate::flowcc::Members;
use crate::gcp::{
    Access, Blade, BladeConfig, BladeCounters, Body, Entered, Entry, Event, Keeping, Known, Life,
    Lock, LockDirectory, LockPlace, Regions, Report, Reports, Rest, Right, Send, Steps, version,
    with_version,
};
use crate::wire::{
    Copyset, Dest, GlobalStatus, Header, Kind, NodeId, Reason, Record, RequesterId, Seq, Tag,
};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use core::hash::{Hash, Hasher};

/// In the `offset` of a `Yield` and its answer: they are about the end of a life, which stands in place of a version.
const LIFE: u32 = 1;

/// The end of a life that a `Yield` or its answer is about, if it is about one.
pub fn ended_life(header: &Header) -> Option<Life> {
    (header.offset == LIFE).then(|| Life::from_word(version(header)))
}

/// What a lock needs of its host: the bytes that it protects, a port, and threads to let in. These come in the order in which they
/// are decided.
pub trait LockFx {
    /// What names a thread that waits.
    type Seat;

    /// Keeps the body of the packet at hand beside what the lock protects, at its `offset`: it is not current yet.
    fn store(&mut self, header: &Header);
    /// What is kept beside takes the place of what there was. `inside`: threads are inside who read the same bytes there.
    fn install(&mut self, inside: bool);
    /// What the lock protects is not needed here any more.
    fn clear(&mut self);
    /// Which lock of this place it is, as the bytes say.
    fn life(&self) -> Life {
        Life::NONE
    }
    /// Sends a packet; what the lock protects, as it is now.
    fn send(&mut self, to: Dest, header: &Header, body: &Body);
    /// A thread that waited is inside. `at_once`: without a packet.
    fn inside(&mut self, seat: Self::Seat, entered: Entered, at_once: bool);
    /// A thread waits in vain: the lock's home is no more.
    fn send_away(&mut self, seat: Self::Seat);
    /// Whether what a lock sends to its own node is taken in the same step. Otherwise it is sent like everything else: an explorer sees
    /// more orders then.
    fn loops(&self) -> bool {
        true
    }
    /// The rule that is broken on purpose.
    fn defect(&self) -> Option<Defect> {
        None
    }
}

/// What a node is told of locks whose home it is, while an epoch begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Told {
    nodes: Reports,
    /// What the switch had, and in which epoch.
    switch: BTreeMap<Tag, (u32, Entry)>,
}

impl Told {
    /// A node has told this.
    pub fn node(&mut self, node: NodeId, record: Record) {
        self.nodes.note(node, record);
    }

    /// The switch has told this.
    pub fn switch(&mut self, record: Record) {
        let (tag, epoch, entry) = Entry::from_record(record);
        self.switch.insert(tag, (epoch, entry));
    }
}

/// See the module. `S` names a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeLock<S> {
    tag: Tag,
    blade: Blade,
    directory: Option<Box<LockDirectory>>,
    line: Line<S>,
    /// No program makes it: its home does when it first hears of it, from the requests for it, which say how long it is.
    implicit: bool,
    /// Its home is no more.
    over: bool,
    /// Its home has it, and does not need this node for it.
    taken_home: bool,
    /// When to ask again for what has not come.
    pace: Pace,
}

/// How a node takes part in a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The node.
    pub node: NodeId,
    /// The epoch.
    pub epoch: u32,
    /// Whether requests go to a switch first.
    pub switch: bool,
    /// [`BladeConfig::cohort`].
    pub cohort: u8,
    /// See [`NodeLock`].
    pub implicit: bool,
}

/// What follows from one input, until nothing does.
struct Turn<'f, F> {
    fx: &'f mut F,
    /// Packets of this lock to this node.
    own: VecDeque<Header>,
}

impl<S> NodeLock<S> {
    /// A lock that the node has never had, or, at its home, a new one. `known`: what the node remembers of it, if it has forgotten
    /// the lock in this epoch.
    pub fn new(tag: Tag, regions: Regions, part: Part, known: Option<Known>) -> Self {
        let Part {
            node,
            epoch,
            switch,
            cohort,
            implicit,
        } = part;
        let mut blade = Blade::new(BladeConfig {
            node,
            epoch,
            switch,
            cohort,
            locks: 1,
        });
        let directory = tag.home().is_of(node).then(|| {
            let mut directory = Box::new(LockDirectory::new(node, epoch));
            match known {
                Some(Known::Home(rest)) => directory.wake(tag, rest),
                _ => directory.create(tag),
            };
            directory
        });
        match (&directory, known) {
            (Some(_), Some(Known::Home(rest))) => blade.wake(tag, regions, rest),
            (Some(_), _) => blade.create(tag, regions),
            (None, Some(Known::Abroad(floor))) => blade.reopen(tag, regions, floor),
            (None, _) => blade.open(tag, regions),
        };
        NodeLock {
            tag,
            blade,
            directory,
            line: Line::new(),
            implicit,
            over: false,
            taken_home: false,
            pace: Pace::default(),
        }
    }

    /// Its address.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// The node's side, to look at.
    pub fn lock(&self) -> Option<&Lock> {
        self.blade.lock(self.tag)
    }

    /// The entry, who serves it, and since which epoch, at its home.
    pub fn entry(&self) -> Option<(Entry, LockPlace, u32)> {
        let directory = self.directory.as_ref()?;
        let (entry, place) = directory.entry(self.tag)?;
        Some((entry, place, directory.epoch()))
    }

    /// Whether requests go to a switch first.
    pub fn has_switch(&self) -> bool {
        self.blade.has_switch()
    }

    /// Whether this node is its home.
    pub fn is_home(&self) -> bool {
        self.directory.is_some()
    }

    /// Its home is no more.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What it has cost.
    pub fn counters(&self) -> BladeCounters {
        self.blade.counters()
    }

    /// Threads of the node that wait.
    pub fn waiting(&self) -> usize {
        self.line.len()
    }

    /// Whether the lock is to come to this node though none of its threads wants it: others want to be rid of it.
    pub fn comes_home(&self) -> bool {
        self.line.iter().any(|waiting| waiting.seat.is_none())
    }

    /// Whether a thread of the node is inside or waits.
    pub fn in_use(&self) -> bool {
        let inside = self.lock().is_some_and(|lock| lock.inside() != (0, false));
        inside || !self.line.is_empty()
    }

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

    /// Whether something is under way that may have to be asked for again.
    pub fn busy(&self) -> bool {
        !self.over && (self.placing() || self.lock().is_some_and(Lock::unfinished))
    }

    /// The end of a section, by a clock of milliseconds: what the lock waits for is to be asked for again in time.
    /// Says whether there is anything.
    pub fn await_news(&mut self, now: impl FnOnce() -> u32) -> bool {
        let awaits = match self.over {
            true => 0,
            false => self.lock().map_or(0, Lock::awaits) << 1 | u32::from(self.placing()),
        };
        self.pace.await_news(awaits, now);
        awaits != 0
    }

    /// Whether it is time to ask again ([`NodeLock::retry`]).
    pub fn due(&mut self, now: impl FnOnce() -> u32) -> bool {
        self.pace.due(now)
    }

    /// Whether threads may come and go without a section, and as what: the lock is here, current, and no thread or node waits.
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

    /// Whether the lock and what it protects are here, and nowhere else: the version with which it came.
    pub fn whole(&self) -> Option<u64> {
        self.lock().and_then(Lock::whole)
    }

    /// What to remember of it until the epoch ends, if it may be forgotten. `new`: at its home what it protects is as that of a lock
    /// which has never been used.
    pub fn forgettable(&self, new: bool) -> Option<Known> {
        let lock = self.lock().filter(|_| self.line.is_empty() && !self.over)?;
        if let Some(directory) = &self.directory {
            let rest = Rest::of(&self.blade, directory, self.tag);
            return rest.filter(|_| new).map(Known::Home);
        }
        (lock.keeping() == Keeping::Nothing).then(|| Known::Abroad(lock.floor()))
    }

    /// Whether the switch has been asked to serve the lock, and has not answered.
    fn placing(&self) -> bool {
        self.entry()
            .is_some_and(|(_, place, _)| place == LockPlace::Placing)
    }

    /// Whether a thread may wait in the blade: writers are sent there when none of this node is inside.
    fn may_go(&self, access: Access, leaves: Option<Access>) -> bool {
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

    /// A thread wants to enter: it is let in at once, or in its turn.
    pub fn enter(&mut self, seat: S, access: Access, fx: &mut impl LockFx<Seat = S>) {
        if self.over {
            return fx.send_away(seat);
        }
        self.line.push_back(Waiting {
            seat: Some(seat),
            access,
        });
        self.go_on(fx);
    }

    /// The lock is to come to this node, though none of its threads wants it.
    pub fn bring(&mut self, access: Access, fx: &mut impl LockFx<Seat = S>) {
        self.line.push_back(Waiting { seat: None, access });
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

    /// A packet has come, with a body of `len` bytes or these records.
    pub fn packet(
        &mut self,
        header: &Header,
        (len, records): (u32, &[Record]),
        fx: &mut impl LockFx<Seat = S>,
    ) {
        if self.over {
            return;
        }
        let mut turn = Turn::new(fx);
        self.take(header, Some((len, records)), &mut turn);
        self.settle_here(&mut turn);
    }

    /// Asks again for what has not come. `false`: the node waits for nothing.
    pub fn retry(&mut self, fx: &mut impl LockFx<Seat = S>) -> bool {
        let mut turn = Turn::new(fx);
        if self.placing() {
            self.place(&mut turn);
        }
        let mut steps = Steps::new();
        let waits = self.blade.retry(self.tag, &mut steps);
        self.run(steps, None, &mut turn);
        self.settle_here(&mut turn);
        waits
    }

    /// Asks the switch to serve the lock, or once more.
    pub fn place_at_switch(&mut self, fx: &mut impl LockFx<Seat = S>) {
        self.place(&mut Turn::new(fx));
    }

    fn place<F: LockFx<Seat = S>>(&mut self, turn: &mut Turn<'_, F>) {
        let mut outputs = Outputs::default();
        if let Some(directory) = &mut self.directory {
            directory.place(self.tag, &mut outputs);
        }
        self.serve(&outputs, turn);
    }

    /// The host needs room ([`Blade::get_rid`]). Says what the node has kept so far.
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

    /// From here on the node leaves the rack, and asks the home to take the lock ([`NodeLock::ask_home`]).
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

    /// The rack is in a new epoch: what was under way is over. Rights, and threads inside, stay; threads that wait go on waiting.
    pub fn enter_epoch(&mut self, members: Members, defect: Option<Defect>) {
        // A lock of a home that is gone ends by [`NodeLock::end`].
        let all = Copyset(u32::MAX);
        self.blade.enter_epoch(members.epoch, all, members.switch);
        if defect == Some(Defect::SettleEarly) {
            let change = Change {
                members,
                settled: 0,
                gone: Copyset::EMPTY,
                switch_lost: false,
            };
            self.settle(&change, &Told::default(), None);
        }
    }

    /// Its home is no more.
    pub fn end(&mut self, fx: &mut impl LockFx<Seat = S>) {
        self.over = true;
        for waiting in self.line.take() {
            if let Some(seat) = waiting.seat {
                fx.send_away(seat);
            }
        }
    }

    /// What this node tells the home, of this moment.
    pub fn report(&self) -> Option<Report> {
        self.blade.reports().next().map(|(_, report)| report)
    }

    /// All have told: makes the directory's entry anew, which serves from here on. `true`: the lock's last data died with a node.
    pub fn settle(&mut self, change: &Change, told: &Told, defect: Option<Defect>) -> bool {
        let Members {
            epoch, founders, ..
        } = change.members;
        let own = self.report().map(|report| (self.blade.node(), report));
        let own = own.filter(|_| defect != Some(Defect::ForgetOwnReport));
        let Some(directory) = &mut self.directory else {
            return false;
        };
        // A lock that was made in this epoch has been served in it.
        if directory.epoch() == epoch {
            return false;
        }
        let gone = match defect {
            Some(Defect::ForgetGone) => Copyset::EMPTY,
            _ => change.gone,
        };
        let live = Copyset(founders.0 & !gone.0);
        let tell = |tag, each: &mut dyn FnMut(NodeId, Report)| {
            for (node, report) in told.nodes.of(tag).chain(own) {
                each(node, report);
            }
        };
        let switch = |tag| told.switch.get(&tag).copied();
        directory.enter_epoch(epoch, live, gone.len(), tell, switch);
        let entry = directory.entry(self.tag);
        entry.is_some_and(|(entry, _)| entry.state.reason != Reason::None)
    }

    /// All homes serve: asks for what threads wait for.
    pub fn resume(&mut self, fx: &mut impl LockFx<Seat = S>) {
        let mut steps = Steps::new();
        if fx.defect() != Some(Defect::ForgetWaiting) {
            self.blade.resume(self.tag, &mut steps);
        }
        self.follow(steps, fx);
    }

    /// Everything that follows here.
    fn go_on(&mut self, fx: &mut impl LockFx<Seat = S>) {
        self.settle_here(&mut Turn::new(fx));
    }

    /// Does what the protocol has decided, and everything that follows.
    fn follow(&mut self, steps: Steps, fx: &mut impl LockFx<Seat = S>) {
        let mut turn = Turn::new(fx);
        self.run(steps, None, &mut turn);
        self.settle_here(&mut turn);
    }

    fn take<F: LockFx<Seat = S>>(
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
    fn serve<F: LockFx<Seat = S>>(&self, outputs: &Outputs, turn: &mut Turn<'_, F>) {
        // The directory is at the lock's home, and so is this node.
        let here = |_| Some(self.blade.node());
        for (to, header) in outputs.iter().flat_map(|output| output.copies(here)) {
            self.send(to, &header, &Body::None, turn);
        }
    }

    /// At its home: a node that leaves, or that needs room, wants to be rid of it, or one that has freed the lock tells of the end of
    /// that life, which lies in what the lock protects.
    fn come_home<F: LockFx<Seat = S>>(&mut self, header: &Header, turn: &mut Turn<'_, F>) {
        if !self.is_home() || header.epoch != self.blade.epoch() {
            return;
        }
        let ended = ended_life(header);
        let access = match ended {
            Some(_) => Access::Write,
            None => Access::from_status(header.status).unwrap_or(Access::Write),
        };
        let mut taken = self.taken(header, ended, turn);
        let coming = self
            .line
            .iter()
            .filter(|waiting| waiting.seat.is_none())
            .any(|waiting| waiting.access >= access);
        if taken.is_none() && self.whole().is_none() && !coming {
            self.line.push_back(Waiting { seat: None, access });
            self.settle_here(turn);
            taken = self.taken(header, ended, turn);
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
    fn taken<F: LockFx<Seat = S>>(
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

    fn send<F: LockFx<Seat = S>>(
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
    fn settle_here<F: LockFx<Seat = S>>(&mut self, turn: &mut Turn<'_, F>) {
        loop {
            if let Some(header) = turn.own.pop_front() {
                self.take(&header, None, turn);
            } else if !self.send_next(turn) {
                return;
            }
        }
    }

    /// The first in line goes to wait in the blade, or is inside.
    fn send_next<F: LockFx<Seat = S>>(&mut self, turn: &mut Turn<'_, F>) -> bool {
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

    /// Who waits in the blade is inside. If it is no thread, or has given up meanwhile, the lock is left at once.
    fn let_in<F: LockFx<Seat = S>>(
        &mut self,
        entered: Entered,
        at_once: bool,
        turn: &mut Turn<'_, F>,
    ) {
        self.pace.rest();
        if let Some(seat) = self.line.take_first().and_then(|waiting| waiting.seat) {
            return turn.fx.inside(seat, entered, at_once);
        }
        let mut steps = Steps::new();
        self.blade.decline(self.tag, entered.access, &mut steps);
        self.run(steps, None, turn);
    }

    /// Whether threads are inside that these steps do not let in.
    fn inside_before(&self, steps: &Steps) -> bool {
        let enter = |step: &&Event| matches!(step, Event::Enter(_));
        let new = steps.iter().filter(enter).count();
        let (readers, writer) = self.lock().map_or((0, false), Lock::inside);
        usize::from(readers) + usize::from(writer) > new
    }

    /// Does what the protocol has decided, in order. `came`: the packet whose body is at hand.
    fn run<F: LockFx<Seat = S>>(
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

impl<S: Hash> NodeLock<S> {
    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.lock().hash(into);
        self.entry().hash(into);
        // Whether the home has it is asked by who leaves, and by nothing here.
        (&self.line, self.over).hash(into);
    }
}

impl<'f, F> Turn<'f, F> {
    fn new(fx: &'f mut F) -> Self {
        Turn {
            fx,
            own: VecDeque::new(),
        }
    }
}
