//! The slow path of coherent memory: what happens when the cache has no usable copy.

use crate::backoff::Backoff;
use crate::bytes::pending::{Pending, Plan, Reservation};
use crate::error::{Error, Result};
use crate::host::agents::Agents;
use crate::host::locks::IN_AN_ENTRY;
use crate::host::metrics::MissCounters;
use crate::membership::standing::Standing;
use crate::ports::requester::{Borrowed, Bytes, Failure, Requesters, fatal};
use rackmem_proto::engine::ACCEPT_EMPTY;
use rackmem_proto::flowcc::{Grant, LocalStatus};
use rackmem_proto::membership::Telling;
use rackmem_proto::wire::{Contract, Kind, NodeId, Reason, Tag};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long an address may be of memory that this process has not heard of yet.
const NEWS: Duration = Duration::from_secs(1);

/// A node's way to coherent memory.
pub(crate) struct Access {
    pub agents: Arc<Agents>,
    pub requesters: Arc<Requesters>,
    pub standing: Arc<Standing>,
    /// Bytes of memory that an incarnation of a node has, and so the distance between the addresses of two.
    pub span: u64,
    pub pending: Pending,
    pub counters: MissCounters,
    /// How long an operation tries against others' locks.
    pub patience: Duration,
    pub closed: Arc<AtomicBool>,
}

impl Access {
    /// Gives locks up if they take more than their share of the cache. Where packets are calls nobody else does.
    pub fn relieve(&self) {
        if !self.agents.crowded() {
            return;
        }
        // Without a socket it is left to the next thread.
        if let Ok(slot) = self.requesters.borrow() {
            self.agents.relieve(IN_AN_ENTRY, slot.net());
        }
    }

    /// Reads a block. See [`crate::bytes::cache::Cache::read`] for what `f` must bear.
    #[inline]
    pub fn read<R>(&self, tag: Tag, mut f: impl FnMut(&[AtomicU64]) -> R) -> Result<R> {
        match self.agents.cache.read(tag, &mut f) {
            Some(result) => Ok(result),
            None => self.read_miss(tag, f),
        }
    }

    #[cold]
    fn read_miss<R>(&self, tag: Tag, mut f: impl FnMut(&[AtomicU64]) -> R) -> Result<R> {
        coherent(tag)?;
        let mut backoff = Backoff::new(self.patience);
        loop {
            if let Some(result) = self.agents.cache.read(tag, &mut f) {
                return Ok(result);
            }
            self.alive(tag)?;
            let done = match self.plan(tag, false) {
                Plan::Fill(reserved) => self.fill(&reserved, Kind::ReadMiss, &mut f)?,
                plan => self.prepare(plan)?,
            };
            match done {
                Progress::Done(result) => return self.confirm().map(|()| result),
                Progress::Again => {}
                Progress::Contended if backoff.wait() => {}
                Progress::Contended => return Err(Error::Busy { addr: tag.0 }),
            }
        }
    }

    /// Changes a block, alone in the rack. `f` runs exactly once, unless there is an error.
    #[inline]
    pub fn write<R>(&self, tag: Tag, f: impl FnOnce(&[AtomicU64]) -> R) -> Result<R> {
        let mut once = Some(f);
        let mut run = |words: &[AtomicU64]| once.take().map(|f| f(words));
        match self.agents.cache.write(tag, &mut run) {
            Some(Some(result)) => Ok(result),
            _ => self.write_miss(tag, run),
        }
    }

    #[cold]
    fn write_miss<R>(&self, tag: Tag, mut f: impl FnMut(&[AtomicU64]) -> Option<R>) -> Result<R> {
        coherent(tag)?;
        let mut backoff = Backoff::new(self.patience);
        loop {
            if let Some(Some(result)) = self.agents.cache.write(tag, &mut f) {
                return Ok(result);
            }
            self.alive(tag)?;
            let done = match self.plan(tag, true) {
                Plan::Fill(reserved) => self.fill(&reserved, Kind::WriteMiss, &mut f)?,
                Plan::Upgrade(reserved) => self.upgrade(&reserved, &mut f)?,
                plan => self.prepare(plan)?,
            };
            match done {
                // The grant may be of an epoch that is over; nobody has what was written then.
                Progress::Done(Some(result)) if self.confirm().is_ok() => return Ok(result),
                Progress::Done(Some(_)) => return Err(Error::Interrupted { addr: tag.0 }),
                Progress::Done(None) | Progress::Again => {}
                Progress::Contended if backoff.wait() => {}
                Progress::Contended => return Err(Error::Busy { addr: tag.0 }),
            }
        }
    }

    /// Whether the block's home is a member. One that has come just now may be known to whoever told us the address and
    /// not yet here.
    pub fn alive(&self, tag: Tag) -> Result<()> {
        if self.standing.is_fenced() {
            return Err(Error::Fenced);
        }
        let node = tag.home();
        let known =
            |standing: &Standing| u64::from(standing.incarnation(node)) > tag.offset() / self.span;
        if !known(&self.standing) {
            let mut backoff = Backoff::new(self.patience.min(NEWS));
            while self.standing.hurry() && !known(&self.standing) && backoff.wait() {}
        }
        if self.standing.live(node) {
            Ok(())
        } else {
            Err(Error::NodeLost { node })
        }
    }

    /// See [`crate::Node::confirm`].
    #[inline]
    pub fn confirm(&self) -> Result<()> {
        if self.standing.holds() {
            return Ok(());
        }
        self.wait_for_lease()
    }

    #[cold]
    fn wait_for_lease(&self) -> Result<()> {
        let mut backoff = Backoff::new(self.patience);
        loop {
            match self.standing.telling() {
                Telling::Now => return Ok(()),
                _ if self.closed.load(Ordering::Relaxed) => return Err(Error::Closed),
                Telling::Never => return Err(Error::Fenced),
                Telling::Later if backoff.wait() => {}
                Telling::Later => return Err(Error::NoLease),
            }
        }
    }

    fn plan(&self, tag: Tag, write: bool) -> Plan<'_> {
        self.pending.plan(&self.agents.cache, tag, write)
    }

    /// The plans that only make room.
    fn prepare<R>(&self, plan: Plan<'_>) -> Result<Progress<R>> {
        match plan {
            Plan::Evict(reserved) => self.evict(&reserved).map(|done| {
                if done {
                    Progress::Again
                } else {
                    Progress::Contended
                }
            }),
            _ => Ok(Progress::Again),
        }
    }

    /// Fetches a block into its reserved entry; `f` sees it before anyone can take it away again.
    fn fill<R>(
        &self,
        reserved: &Reservation<'_>,
        kind: Kind,
        mut f: impl FnMut(&[AtomicU64]) -> R,
    ) -> Result<Progress<R>> {
        let cache = &self.agents.cache;
        let block = cache.vacant(reserved.entry);
        let mut slot = self.requesters.borrow()?;
        if let Err(failure) = slot.acquire(kind, reserved.tag, 0, Bytes::Block(block)) {
            return self.failed(failure, reserved.tag);
        }
        self.counters.count(kind);
        let status = if kind == Kind::ReadMiss {
            LocalStatus::Shared
        } else {
            LocalStatus::Modified
        };
        let entry = cache.lock(reserved.entry);
        let result = finally(
            || f(block),
            || end(&mut slot, || entry.install(reserved.tag, status)),
        );
        Ok(Progress::Done(result))
    }

    /// Turns a clean copy into a writable one.
    fn upgrade<R>(
        &self,
        reserved: &Reservation<'_>,
        mut f: impl FnMut(&[AtomicU64]) -> R,
    ) -> Result<Progress<R>> {
        let cache = &self.agents.cache;
        let mut slot = self.requesters.borrow()?;
        if let Err(failure) = slot.acquire(Kind::WriteShared, reserved.tag, 0, Bytes::Nothing) {
            return self.failed(failure, reserved.tag);
        }
        self.counters.count(Kind::WriteShared);
        let entry = cache.lock(reserved.entry);
        let result = finally(
            || f(cache.block(reserved.entry)),
            || end(&mut slot, || entry.set(LocalStatus::Modified)),
        );
        Ok(Progress::Done(result))
    }

    /// Empties a reserved entry. False when the block is locked by others just now.
    pub fn evict(&self, reserved: &Reservation<'_>) -> Result<bool> {
        let cache = &self.agents.cache;
        let mut slot = self.requesters.borrow()?;
        loop {
            let kind = match cache.status(reserved.entry) {
                LocalStatus::Shared => Kind::EvictShared,
                LocalStatus::Modified => Kind::EvictModified,
                LocalStatus::Invalid => return Ok(true),
            };
            match slot.acquire(kind, reserved.tag, 0, Bytes::Nothing) {
                Ok(_) => {
                    self.counters.count(kind);
                    return self.leave(&mut slot, reserved, kind);
                }
                // The copy was taken or downgraded meanwhile: look again.
                Err(Failure::Refused(Reason::Invalid | Reason::Moved | Reason::Fenced)) => {
                    self.counters.refused();
                }
                Err(Failure::Refused(Reason::Locked)) => {
                    self.counters.refused();
                    return Ok(false);
                }
                Err(other) => return Err(fatal(other, reserved.tag)),
            }
        }
    }

    /// The second half of an eviction: from here on local hits miss, and only then the bytes go home.
    fn leave(
        &self,
        slot: &mut Borrowed<'_>,
        reserved: &Reservation<'_>,
        kind: Kind,
    ) -> Result<bool> {
        let cache = &self.agents.cache;
        cache.lock(reserved.entry).set(LocalStatus::Invalid);
        if kind == Kind::EvictModified {
            match slot.write_back(cache.block(reserved.entry)) {
                Ok(()) => {}
                Err(Failure::Refused(Reason::Fenced)) => {
                    // The epoch ended before home had all of it: this is still the only copy.
                    let entry = cache.lock(reserved.entry);
                    entry.install(reserved.tag, LocalStatus::Modified);
                    return Ok(false);
                }
                Err(failure) => return Err(fatal(failure, reserved.tag)),
            }
        }
        self.agents.left(reserved.tag);
        slot.unlock(false);
        Ok(true)
    }

    fn failed<R>(&self, failure: Failure, tag: Tag) -> Result<Progress<R>> {
        match failure {
            Failure::Refused(Reason::Locked) => {
                self.counters.refused();
                Ok(Progress::Contended)
            }
            Failure::Refused(Reason::Invalid | Reason::Moved | Reason::Fenced) => {
                self.counters.refused();
                Ok(Progress::Again)
            }
            other => Err(fatal(other, tag)),
        }
    }

    /// A question to the guest of a node, asked until it is answered; the answer's first word.
    pub fn ask_guest(&self, to: NodeId, question: &[u8]) -> Result<u64> {
        let tag = Tag(u64::from(to) << 48);
        let answer = std::cell::Cell::new(0);
        let mut slot = self.requesters.borrow()?;
        slot.acquire(Kind::GuestAsk, tag, 0, Bytes::Operand(question, &answer))
            .map_err(|failure| fatal(failure, tag))?;
        self.counters.count(Kind::GuestAsk);
        Ok(answer.get())
    }

    /// Goes on with what a lost block's home had before, or with zeros.
    pub fn accept_loss(&self, tag: Tag, empty: bool) -> Result<()> {
        coherent(tag)?;
        let how = if empty { ACCEPT_EMPTY } else { 0 };
        let alive = || self.alive(tag);
        self.ask(Kind::AcceptLoss, tag, how, Bytes::Nothing, alive)
            .map(|_| ())
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
    ) -> Result<Grant> {
        let node = tag.home();
        let memory = u64::from(incarnation.saturating_sub(1)) * self.span;
        self.ask(kind, tag, offset, bytes, || {
            self.alive(Tag(u64::from(node) << 48 | memory))?;
            match self.standing.incarnation(node) == incarnation {
                true => Ok(()),
                false => Err(Error::NodeLost { node }),
            }
        })
    }

    /// Asks a home agent for something that may as well be asked for again when the epoch ends in the middle.
    fn ask(
        &self,
        kind: Kind,
        tag: Tag,
        offset: u32,
        bytes: Bytes<'_>,
        alive: impl Fn() -> Result<()>,
    ) -> Result<Grant> {
        loop {
            alive()?;
            let mut slot = self.requesters.borrow()?;
            match slot.acquire(kind, tag, offset, bytes) {
                Ok(grant) => return Ok(grant),
                Err(Failure::Refused(Reason::Fenced)) => {}
                Err(failure) => return Err(fatal(failure, tag)),
            }
        }
    }
}

/// Whether a block is of coherent memory. Nothing else is ever in the cache, so a hit need not ask; and its home asks again.
pub(crate) fn coherent(tag: Tag) -> Result<()> {
    match tag.is_under(Contract::Coherent) {
        true => Ok(()),
        false => Err(Error::wrong_contract(tag, Contract::Coherent)),
    }
}

/// Ends an event that has brought a block or a right. The cache's entry comes first: as soon as the rack's entry is unlocked
/// another node's request is served here, and must find in the cache what this event has brought.
fn end(slot: &mut Borrowed<'_>, settle_entry: impl FnOnce()) {
    #[cfg(test)]
    if UNLOCK_FIRST.get() {
        slot.unlock(false);
        return settle_entry();
    }
    settle_entry();
    slot.unlock(false);
}

#[cfg(test)]
std::thread_local! {
    /// A planted defect: this thread's events unlock before the cache has what they brought.
    pub(crate) static UNLOCK_FIRST: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs the caller's operation on a block that was fetched for it, then ends the event, also when the operation
/// panics: the block may be the only copy, and its entry is locked in the whole rack.
fn finally<R>(f: impl FnOnce() -> R, end: impl FnOnce()) -> R {
    let result = catch_unwind(AssertUnwindSafe(f));
    end();
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

/// What a step of the slow path came to.
enum Progress<R> {
    Done(R),
    Again,
    Contended,
}
