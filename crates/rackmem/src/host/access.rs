//! The slow path of coherent memory: what happens when the cache has no usable copy.

use crate::backoff::Backoff;
use crate::bytes::mapped::{Granted, Shown, Stop};
use crate::bytes::pending::{Pending, Plan, Reservation};
use crate::error::{AccessError, AllocError, RackError};
use crate::host::agents::Agents;
use crate::host::groups::Book;
use crate::host::leaving::{LOOK, Leaving};
use crate::host::locks::IN_AN_ENTRY;
use crate::membership::current_view::{CurrentView, Looked};
use crate::ports::requester::{Bytes, Requesters, Slot, refused};
use rackmem_proto::engine::{ACCEPT_EMPTY, Do, Purpose, Then};
use rackmem_proto::flowcc::{Grant, Whereabouts};
use rackmem_proto::membership::Telling;
use rackmem_proto::wire::{Contract, HomeId, Kind, NodeId, Reason, Tag};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A node's way to coherent memory.
pub(crate) struct Access {
    pub agents: Arc<Agents>,
    pub requesters: Arc<Requesters>,
    pub standing: Arc<CurrentView>,
    /// Bytes of memory that an incarnation of a node has, and so the distance between the addresses
    /// of two.
    pub span: u64,
    pub pending: Pending,
    /// How long an operation tries against others' locks.
    pub patience: Duration,
    pub closed: Arc<AtomicBool>,
    /// Which members keep copies of which region.
    pub groups: Arc<Book>,
    /// Bytes of copies that a node may be asked to keep.
    pub room: u64,
}

/// What is done with a block's words where they are. The slow path does not know what: a store has
/// hundreds of such uses, and would have all of this for each.
type Use<'a> = &'a mut dyn FnMut(&[AtomicU64]);

impl Access {
    /// Gives locks up if they take more than their share of the cache.
    /// Where packets are calls nobody else does.
    pub fn relieve(&self) {
        if !self.agents.crowded() {
            return;
        }
        // Without a socket it is left to the next thread.
        if let Ok(slot) = self.requesters.borrow() {
            self.agents.relieve(IN_AN_ENTRY, slot.net());
        }
    }

    /// A page is not pinned any more: who has waited for one has it.
    pub fn unpinned(&self) {
        let waiting = &self.agents.waiting;
        if waiting.is_waited_for()
            && let Ok(slot) = self.requesters.borrow()
        {
            waiting.again(&self.agents, slot.net());
        }
    }

    /// Reads a block. See [`crate::bytes::cache::Cache::read`] for what `f` must bear.
    #[inline]
    pub fn read<R>(
        &self,
        tag: Tag,
        mut f: impl FnMut(&[AtomicU64]) -> R,
    ) -> Result<R, AccessError> {
        if let Some(result) = self.agents.cache.read(tag, &mut f) {
            return Ok(result);
        }
        let mut result = None;
        self.read_miss(tag, &mut |words| result = Some(f(words)))?;
        result.ok_or(AccessError::Interrupted { addr: tag.0 })
    }

    /// `f` has seen the block when this is `Ok`, and counts as it saw it last.
    #[cold]
    fn read_miss(&self, tag: Tag, f: Use<'_>) -> Result<(), AccessError> {
        coherent(tag)?;
        let mut backoff = Backoff::new(self.patience);
        loop {
            if self.agents.cache.read(tag, &mut *f).is_some() {
                return Ok(());
            }
            self.alive(tag)?;
            let done = match self.plan(tag, false) {
                Plan::Begin(purpose, reserved) => self.fetch(purpose, &reserved, f)?,
                plan => self.prepare(plan)?,
            };
            match done {
                Progress::Done => return Ok(self.confirm()?),
                Progress::Again => {}
                Progress::Contended if backoff.wait() => {}
                Progress::Contended => return Err(AccessError::Busy { addr: tag.0 }),
            }
        }
    }

    /// Changes a block, alone in the rack. `f` runs exactly once, unless there is an error.
    #[inline]
    pub fn write<R>(&self, tag: Tag, f: impl FnOnce(&[AtomicU64]) -> R) -> Result<R, AccessError> {
        if !self.agents.kept.writes_survive(tag) {
            return self.change(tag, f);
        }
        let epoch = self.standing.epoch();
        let written = self.change(tag, f)?;
        self.bring_home(tag, epoch)?;
        Ok(written)
    }

    /// Sees to it that a block is home as it is now, or as it is later, and so with a majority
    /// where a group keeps its home.
    ///
    /// A copy that this node gives up is home's: until home has it, nobody is granted that.
    /// `epoch`: in which it was written. In another one, a node may have had it in between that has
    /// died with it, and whether it has been written nobody can tell.
    #[cold]
    pub fn bring_home(&self, tag: Tag, epoch: u32) -> Result<(), AccessError> {
        self.take_home(tag)?;
        // It was nobody's when this node gave it up.
        if self.agents.kept.is_gone(tag) {
            return Err(AccessError::BadAddress { addr: tag.0 });
        }
        match self.standing.epoch() == epoch {
            true => Ok(()),
            false => Err(AccessError::Interrupted { addr: tag.0 }),
        }
    }

    #[cold]
    fn take_home(&self, tag: Tag) -> Result<(), AccessError> {
        let mut backoff = Backoff::new(self.patience);
        loop {
            let reserved = self.pending.reserve(&self.agents.cache, tag);
            let gone = match &reserved {
                Some(reserved) => self.evict(reserved),
                None => Ok(false),
            };
            drop(reserved);
            let gone = match gone {
                Ok(true) => return Ok(()),
                // Another node has it, or another thread here uses it.
                Ok(false) => self.read(tag, |_| ()),
                Err(error) => Err(error),
            };
            if let Err(error @ (AccessError::Rack(_) | AccessError::BadAddress { .. })) = gone {
                return Err(error);
            }
            if !backoff.wait() {
                return Err(AccessError::Interrupted { addr: tag.0 });
            }
        }
    }

    #[inline]
    fn change<R>(&self, tag: Tag, f: impl FnOnce(&[AtomicU64]) -> R) -> Result<R, AccessError> {
        let mut once = Some(f);
        let mut run = |words: &[AtomicU64]| once.take().map(|f| f(words));
        if let Some(Some(result)) = self.agents.cache.write(tag, &mut run) {
            return Ok(result);
        }
        let mut result = None;
        self.write_miss(tag, &mut |words| result = run(words))?;
        result.ok_or(AccessError::Interrupted { addr: tag.0 })
    }

    /// `f` has run once when this is `Ok`.
    #[cold]
    fn write_miss(&self, tag: Tag, f: Use<'_>) -> Result<(), AccessError> {
        coherent(tag)?;
        let mut backoff = Backoff::new(self.patience);
        loop {
            if self.agents.cache.write(tag, &mut *f).is_some() {
                return Ok(());
            }
            self.alive(tag)?;
            let done = match self.plan(tag, true) {
                Plan::Begin(purpose, reserved) => self.fetch(purpose, &reserved, f)?,
                plan => self.prepare(plan)?,
            };
            match done {
                // The grant may be of an epoch that is over; nobody has what was written then.
                Progress::Done if self.confirm().is_ok() => return Ok(()),
                Progress::Done => return Err(AccessError::Interrupted { addr: tag.0 }),
                Progress::Again => {}
                Progress::Contended if backoff.wait() => {}
                Progress::Contended => return Err(AccessError::Busy { addr: tag.0 }),
            }
        }
    }

    /// Brings a block as a page of a mapping, and gives the program's mapping the right that a
    /// fault has asked for. It may be taken away again before it is used: then the fault comes
    /// again.
    pub fn page_in(&self, tag: Tag, writes: bool) -> Result<(), AccessError> {
        let mut backoff = Backoff::new(self.patience);
        let cache = &self.agents.cache;
        loop {
            self.confirm()?;
            // A rack whose members do not change has no lease that ends, and what is cached stays.
            if self.closed.load(Ordering::Relaxed) {
                return Err(RackError::Closed.into());
            }
            match cache.show(tag, writes) {
                Shown::Yes => return Ok(()),
                Shown::No => {}
                Shown::Refused(os) => return Err(AccessError::NotShown { addr: tag.0, os }),
            }
            self.alive(tag)?;
            let mut shown = Shown::No;
            let done = match cache.strays(tag) {
                true => match self.pending.reserve(cache, tag) {
                    Some(reserved) => self.prepare(Plan::Evict(reserved))?,
                    None => Progress::Contended,
                },
                false => match self.plan(tag, cache.asks(tag, writes)) {
                    Plan::Begin(purpose, reserved) => {
                        let (entry, granted) = (reserved.entry, Granted::by(purpose));
                        self.fetch(purpose, &reserved, &mut |_| {
                            shown = cache.show_locked(entry, writes, granted);
                        })?
                    }
                    plan => self.prepare(plan)?,
                },
            };
            match done {
                Progress::Done if shown == Shown::Yes && self.standing.holds() => return Ok(()),
                Progress::Done | Progress::Again => {}
                Progress::Contended if backoff.wait() => {}
                Progress::Contended => return Err(AccessError::Busy { addr: tag.0 }),
            }
        }
    }

    /// Whether the block's home is a member. One that has come just now may be known to whoever
    /// told us the address and not yet here.
    pub fn alive(&self, tag: Tag) -> Result<(), AccessError> {
        let mut seen = None;
        match self.alive_now(tag, &mut seen) {
            Some(alive) => alive,
            None => self.await_known(|| self.alive_now(tag, &mut seen)),
        }
    }

    /// Waits until a node is a member, or this one lives by all that the members had agreed on when
    /// it was asked. The incarnation of that member.
    pub fn member(&self, node: NodeId) -> Result<u32, AccessError> {
        let standing = &self.standing;
        let mut seen = None;
        self.await_known(|| {
            if standing.is_fenced() {
                return Some(Err(RackError::Fenced.into()));
            }
            let incarnation = standing.incarnation(node);
            if standing.live(node) && incarnation > 0 {
                return Some(Ok(incarnation));
            }
            let knows = !self.is_late(&mut seen);
            knows.then(|| Err(RackError::NodeLost { node }.into()))
        })
    }

    /// The same, if it is known: `None` until this node has heard of that life of the home, or
    /// lives by all that the members had agreed on when it was first asked, which `seen` keeps.
    /// However late its threads are, what it has not heard is not what is not so.
    pub fn alive_now(
        &self,
        tag: Tag,
        seen: &mut Option<Looked>,
    ) -> Option<Result<(), AccessError>> {
        let standing = &self.standing;
        if standing.is_fenced() {
            return Some(Err(RackError::Fenced.into()));
        }
        let home = tag.home();
        let Some(node) = standing.host(home) else {
            // Nobody keeps homes of groups, to this node, until it has begun the epoch that it has
            // come into.
            let bad = AccessError::BadAddress { addr: tag.0 };
            return home.group().is_none().then_some(Err(bad));
        };
        // A group keeps it, whoever serves it.
        if !home.is_own() {
            return self.is_kept(tag);
        }
        if !self.has_heard_of(node, tag) && self.is_late(seen) {
            return None;
        }
        Some(match standing.live(node) {
            true => Ok(()),
            false => Err(RackError::NodeLost { node }.into()),
        })
    }

    /// Whether an address in a home that a group keeps is of a region that is there, as far as this
    /// node can know. None: the store is away, and it has not heard of such a region. What is not
    /// coherent memory is for others to say.
    fn is_kept(&self, tag: Tag) -> Option<Result<(), AccessError>> {
        let kept = &self.agents.kept;
        let found = || match kept.whereabouts(tag) {
            _ if !tag.is_under(Contract::Coherent) => Some(Ok(())),
            Whereabouts::Here => Some(Ok(())),
            Whereabouts::Gone => Some(Err(AccessError::BadAddress { addr: tag.0 })),
            Whereabouts::Unheard => None,
        };
        found().or_else(|| {
            // Whoever has told the address may have heard of it before this process has.
            self.groups.look().ok()?;
            found().or(Some(Err(AccessError::BadAddress { addr: tag.0 })))
        })
    }

    /// The same, by the newest groups.
    #[cold]
    fn is_kept_now(&self, tag: Tag) -> Option<Result<(), AccessError>> {
        self.groups.look().ok()?;
        self.is_kept(tag)
    }

    /// Whether this node knows the life of another one that this address is of.
    fn has_heard_of(&self, node: NodeId, tag: Tag) -> bool {
        u64::from(self.standing.incarnation(node)) > tag.offset() / self.span
    }

    /// Whether this node does not live yet by all that the members had agreed on when it was first
    /// asked, which `seen` keeps.
    fn is_late(&self, seen: &mut Option<Looked>) -> bool {
        let standing = &self.standing;
        *seen = seen.or_else(|| standing.looked());
        seen.is_some_and(|seen| !standing.has_caught_up(seen))
    }

    /// Waits until something about the members is known.
    #[cold]
    fn await_known<R>(
        &self,
        mut known: impl FnMut() -> Option<Result<R, AccessError>>,
    ) -> Result<R, AccessError> {
        let mut backoff = Backoff::new(self.patience);
        loop {
            if let Some(known) = known() {
                return known;
            }
            if self.closed.load(Ordering::Relaxed) {
                return Err(RackError::Closed.into());
            }
            if !backoff.wait() {
                return Err(RackError::Timeout { node: self.me() }.into());
            }
        }
    }

    /// See [`crate::Node::confirm`].
    #[inline]
    pub fn confirm(&self) -> Result<(), RackError> {
        if self.standing.holds() {
            return Ok(());
        }
        self.wait_for_lease()
    }

    #[cold]
    fn wait_for_lease(&self) -> Result<(), RackError> {
        let mut backoff = Backoff::new(self.patience);
        loop {
            match self.confirm_now() {
                Some(confirmed) => return confirmed,
                None if backoff.wait() => {}
                None => return Err(RackError::NoLease),
            }
        }
    }

    /// The same, if it is known. `None`: a lease is late.
    pub fn confirm_now(&self) -> Option<Result<(), RackError>> {
        match self.standing.telling() {
            Telling::Now => Some(Ok(())),
            _ if self.closed.load(Ordering::Relaxed) => Some(Err(RackError::Closed)),
            Telling::Never => Some(Err(RackError::Fenced)),
            Telling::Later => None,
        }
    }

    /// Turns what became of an event that no retry can mend into an error.
    pub(crate) fn fatal(&self, then: Then, tag: Tag) -> AccessError {
        let host = self.standing.host(tag.home());
        // Others may have heard before this node that its region is removed.
        if matches!(then, Then::Fail(_) | Then::Lost)
            && !tag.home().is_own()
            && let Some(Err(error)) = self.is_kept_now(tag)
        {
            return error;
        }
        match (then, host) {
            (Then::Lost, _) if self.standing.is_fenced() => AccessError::Rack(RackError::Fenced),
            (Then::Fail(reason), _) => refused(reason, tag),
            (Then::BackOff, _) => refused(Reason::Locked, tag),
            // Who would have answered has gone with this rack.
            _ if self.closed.load(Ordering::Relaxed) => AccessError::Rack(RackError::Closed),
            _ => AccessError::silent(tag, host),
        }
    }

    fn plan(&self, tag: Tag, write: bool) -> Plan<'_> {
        self.pending.plan(&self.agents.cache, tag, write)
    }

    /// The plans that only make room.
    fn prepare(&self, plan: Plan<'_>) -> Result<Progress, AccessError> {
        match plan {
            Plan::Evict(reserved) => self.evict(&reserved).map(|done| match done {
                true => {
                    self.agents.events.evicted_in_the_way();
                    Progress::Again
                }
                false => Progress::Contended,
            }),
            _ => Ok(Progress::Again),
        }
    }

    /// Brings a block or the right to write to it; `f` sees it before anyone can take it away
    /// again.
    fn fetch(
        &self,
        purpose: Purpose,
        reserved: &Reservation<'_>,
        f: Use<'_>,
    ) -> Result<Progress, AccessError> {
        let mut slot = self.requesters.borrow()?;
        let mut beside = self.make_room(&slot, purpose, reserved);
        let (then, used) = self.event(&mut slot, (purpose, reserved), &mut beside, f);
        // It would rest, and a rebuild waits for those that do.
        drop(slot);
        if let Some(mut leaving) = beside {
            leaving.end();
        }
        let used = used.map(|used| used.unwrap_or_else(|panic| resume_unwind(panic)));
        match (then, used) {
            (Then::Done, Some(())) => Ok(Progress::Done),
            (Then::BackOff, _) => Ok(Progress::Contended),
            (Then::Done | Then::Again | Then::Relook, _) => Ok(Progress::Again),
            (then, _) => Err(self.fatal(then, reserved.tag)),
        }
    }

    /// Has the next victim of a full set leave beside an event that fills the set's last free
    /// entry. Where events do not overlap it would only leave earlier, and nobody would wait less.
    fn make_room(
        &self,
        slot: &Slot,
        purpose: Purpose,
        filled: &Reservation<'_>,
    ) -> Option<Leaving<'_>> {
        if !slot.overlaps() {
            return None;
        }
        let reserved = self.pending.next_out(&self.agents.cache, purpose, filled)?;
        Leaving::begin(self, reserved)
    }

    /// Carries out what the engine says about an event with a reserved entry, while another block
    /// leaves beside it. The event ends also when `f` panics: the block may be the only copy, and
    /// its entry is locked in the whole rack.
    fn event(
        &self,
        slot: &mut Slot,
        (purpose, reserved): (Purpose, &Reservation<'_>),
        beside: &mut Option<Leaving<'_>>,
        f: Use<'_>,
    ) -> (Then, Option<std::thread::Result<()>>) {
        let (cache, tag, entry) = (&self.agents.cache, reserved.tag, reserved.entry);
        let (block, bytes) = match purpose.fetches() {
            true => {
                let vacant = cache.vacant(entry);
                (vacant, Bytes::Block(vacant))
            }
            false => (cache.block(entry), Bytes::Copy(cache.block(entry))),
        };
        let Some(mut access) = slot.begin(purpose, tag, 0, bytes) else {
            return (Then::Lost, None);
        };
        let (mut locked, mut used) = (None, None);
        let stop = Stop::to_end(purpose.evicts());
        let then = loop {
            let todo = match beside {
                None => slot.next(&mut access, bytes),
                Some(_) => Leaving::beside(beside, || slot.next_within(LOOK, &mut access, bytes)),
            };
            match todo {
                Do::Use => {
                    locked = Some(cache.lock(entry, stop));
                    used = Some(catch_unwind(AssertUnwindSafe(|| f(block))));
                }
                Do::Set(status) => {
                    let locked = locked.take().unwrap_or_else(|| cache.lock(entry, stop));
                    self.agents.install(locked, tag, status);
                }
                Do::Over(then) => break then,
                Do::Wait | Do::Held | Do::Send(_) => break Then::Lost,
            }
        };
        match then {
            Then::Done => {
                self.agents.events.count(purpose.kind());
                self.agents.hot.count(tag, purpose.kind());
            }
            Then::Lost => {}
            _ => self.agents.events.refused(),
        }
        (then, used)
    }

    /// The event by which what is in a reserved entry leaves. `None`: another node has just taken
    /// it.
    pub fn leaving<'a>(&self, reserved: Reservation<'a>) -> Option<(Purpose, Reservation<'a>)> {
        let purpose = Purpose::to_evict(self.agents.cache.status(reserved.entry))?;
        Some((purpose, reserved))
    }

    /// The event by which this node's copy of a block goes home. `None`: it has none, or another
    /// thread uses it.
    pub fn going_home(&self, tag: Tag) -> Option<(Purpose, Reservation<'_>)> {
        let reserved = self.pending.reserve(&self.agents.cache, tag)?;
        self.leaving(reserved)
    }

    /// Empties a reserved entry. False when the block is locked by others just now.
    pub fn evict(&self, reserved: &Reservation<'_>) -> Result<bool, AccessError> {
        let mut slot = self.requesters.borrow()?;
        while let Some(purpose) = Purpose::to_evict(self.agents.cache.status(reserved.entry)) {
            match self
                .event(&mut slot, (purpose, reserved), &mut None, &mut |_| ())
                .0
            {
                Then::Done => return Ok(true),
                // The copy was taken or downgraded meanwhile: look again. One of a dead home's goes
                // when this node has noticed, and its home answers no more.
                Then::Relook if self.standing.serves(reserved.tag) => {}
                Then::Relook | Then::Again | Then::BackOff => return Ok(false),
                then => return Err(self.fatal(then, reserved.tag)),
            }
        }
        Ok(true)
    }

    /// A question to the guest of a node, asked until it is answered; `bytes` have the question,
    /// and what takes the answer.
    pub fn ask_guest(&self, to: NodeId, bytes: Bytes<'_>) -> Result<(), AccessError> {
        let tag = HomeId::of(to).start();
        self.alive(tag)?;
        let mut slot = self.requesters.borrow()?;
        match slot.ask(Purpose::Call(Kind::GuestAsk), tag, 0, bytes) {
            Then::Done => {
                self.agents.events.count(Kind::GuestAsk);
                Ok(())
            }
            then => Err(self.fatal(then, tag)),
        }
    }

    /// Goes on with what a lost block's home had before, or with zeros.
    pub fn accept_loss(&self, tag: Tag, empty: bool) -> Result<(), AccessError> {
        coherent(tag)?;
        let how = if empty { ACCEPT_EMPTY } else { 0 };
        let alive = || self.alive(tag);
        let fatal = |then| self.fatal(then, tag);
        self.ask(Kind::AcceptLoss, tag, how, Bytes::Nothing, alive, fatal)?;
        Ok(())
    }

    /// This node.
    pub fn me(&self) -> NodeId {
        self.requesters.node()
    }

    /// A call about its memory to an incarnation of a home, which lets it take effect once.
    pub fn call(
        &self,
        kind: Kind,
        tag: Tag,
        offset: u32,
        incarnation: u32,
        bytes: Bytes<'_>,
    ) -> Result<Grant, AllocError> {
        let memory = u64::from(incarnation.saturating_sub(1)) * self.span;
        let first = Tag(tag.home().start().0 | memory);
        let fatal = |then| match (then, self.standing.host(first.home())) {
            (Then::Fail(Reason::Full), Some(node)) => AllocError::OutOfMemory { node },
            _ => self.fatal(then, tag).into(),
        };
        let alive = || {
            self.alive(first)?;
            let node = self.standing.host(first.home());
            match node.is_some_and(|node| self.standing.incarnation(node) == incarnation) {
                true => Ok(()),
                false => Err(AccessError::gone(first, self.standing.host(first.home()))),
            }
        };
        self.ask(kind, tag, offset, bytes, alive, fatal)
    }

    /// Asks a home agent for something that may as well be asked for again when the epoch ends in
    /// the middle.
    fn ask<E: From<AccessError>>(
        &self,
        kind: Kind,
        tag: Tag,
        offset: u32,
        bytes: Bytes<'_>,
        alive: impl Fn() -> Result<(), AccessError>,
        fatal: impl Fn(Then) -> E,
    ) -> Result<Grant, E> {
        loop {
            alive()?;
            let mut slot = self.requesters.borrow().map_err(AccessError::from)?;
            match (
                slot.ask(Purpose::Call(kind), tag, offset, bytes),
                slot.granted(),
            ) {
                (Then::Done, Some(grant)) => return Ok(grant),
                (Then::Done | Then::Again, _) => {}
                (then, _) => return Err(fatal(then)),
            }
        }
    }
}

/// Whether a block is of coherent memory. Nothing else is ever in the cache, so a hit need not ask;
/// and its home asks again.
pub(crate) fn coherent(tag: Tag) -> Result<(), AccessError> {
    match tag.is_under(Contract::Coherent) {
        true => Ok(()),
        false => Err(AccessError::wrong_contract(tag, Contract::Coherent)),
    }
}

/// What a step of the slow path came to.
enum Progress {
    Done,
    Again,
    Contended,
}
