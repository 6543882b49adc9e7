//! What a future wants with a block, and what it waits for next: the slow path of an operation
//! (`host/access.rs`) without waiting in it.

use super::order::{Pace, Step};
use super::task::Job;
use crate::bytes::pending::Plan;
use crate::error::{AccessError, RackError};
use crate::host::access::{Access, coherent};
use crate::host::inner::NodeInner;
use crate::membership::current_view::Looked;
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::membership::Telling;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The block.
    Use,
    /// The block to be home, since this epoch: it has been changed, and is to survive this node.
    Home(u32),
    /// The lease, which covers what has been done.
    Lease,
}

/// See the module.
pub(crate) struct BlockOrder {
    pub(super) job: Arc<dyn Job>,
    phase: Phase,
    pub(super) pace: Pace,
    /// What was known of the members when its home was not.
    seen: Option<Looked>,
}

impl BlockOrder {
    pub fn new(job: Arc<dyn Job>) -> Self {
        BlockOrder {
            job,
            phase: Phase::Use,
            pace: Pace::new(),
            seen: None,
        }
    }

    fn busy<'a>(&self) -> Step<'a> {
        Step::Later(AccessError::Busy {
            addr: self.job.tag().0,
        })
    }

    pub(super) fn step<'a>(&mut self, inner: &'a NodeInner) -> Step<'a> {
        if inner.closed.load(Relaxed) {
            return Step::Over(Err(RackError::Closed.into()));
        }
        match self.phase {
            Phase::Use => self.bring(inner),
            Phase::Home(epoch) => self.bring_home(&inner.access, epoch),
            Phase::Lease => self.confirm(&inner.access),
        }
    }

    fn bring<'a>(&mut self, inner: &'a NodeInner) -> Step<'a> {
        let (access, tag) = (&inner.access, self.job.tag());
        if let Err(error) = coherent(tag) {
            return Step::Over(Err(error));
        }
        let standing = &access.standing;
        if standing.is_fenced() {
            return Step::Over(Err(RackError::Fenced.into()));
        }
        if !inner.serving.load(Relaxed) || !standing.holds() {
            return Step::Later(RackError::NoLease.into());
        }
        let epoch = standing.epoch();
        if self.job.hit(&access.agents.cache) {
            return self.used(access, epoch, true);
        }
        match access.alive_now(tag, &mut self.seen) {
            Some(Ok(())) => {}
            Some(Err(error)) => return Step::Over(Err(error)),
            None => return Step::Later(RackError::Timeout { node: access.me() }.into()),
        }
        let writes = self.job.writes();
        self.begin(
            access,
            access.pending.plan_now(&access.agents.cache, tag, writes),
        )
    }

    fn begin<'a>(&self, access: &'a Access, plan: Option<Plan<'a>>) -> Step<'a> {
        match plan {
            Some(Plan::Begin(purpose, reserved)) => Step::Begin(purpose, reserved),
            Some(Plan::Evict(reserved)) => match access.leaving(reserved) {
                Some((purpose, reserved)) => Step::Begin(purpose, reserved),
                None => self.busy(),
            },
            Some(Plan::Retry) | None => self.busy(),
        }
    }

    /// What the future wants has been done in this epoch, with a copy that was here or one that has
    /// come for it.
    fn used<'a>(&mut self, access: &Access, epoch: u32, hit: bool) -> Step<'a> {
        self.pace.goes_on();
        let survives = self.job.writes() && access.agents.kept.writes_survive(self.job.tag());
        self.phase = match survives {
            true => Phase::Home(epoch),
            // A hit was allowed when it was made.
            false if hit => return Step::Over(Ok(())),
            false => Phase::Lease,
        };
        Step::Again
    }

    /// See [`Access::bring_home`].
    fn bring_home<'a>(&mut self, access: &'a Access, epoch: u32) -> Step<'a> {
        let (tag, cache) = (self.job.tag(), &access.agents.cache);
        let interrupted = AccessError::Interrupted { addr: tag.0 };
        if access.agents.kept.is_gone(tag) {
            return Step::Over(Err(AccessError::BadAddress { addr: tag.0 }));
        }
        if access.standing.epoch() != epoch {
            return Step::Over(Err(interrupted));
        }
        if let Some((purpose, reserved)) = access.going_home(tag) {
            return Step::Begin(purpose, reserved);
        }
        // Another node has it, or another thread here uses it.
        match access.pending.plan_now(cache, tag, false) {
            None => Step::Later(interrupted),
            plan => self.begin(access, plan),
        }
    }

    /// See [`Access::confirm`]. What was written under a lease that is over nobody may have.
    fn confirm<'a>(&self, access: &Access) -> Step<'a> {
        let error = |error: RackError| match self.job.writes() {
            true => AccessError::Interrupted {
                addr: self.job.tag().0,
            },
            false => error.into(),
        };
        match access.standing.telling() {
            Telling::Now => Step::Over(Ok(())),
            Telling::Never => Step::Over(Err(error(RackError::Fenced))),
            Telling::Later => Step::Later(error(RackError::NoLease)),
        }
    }

    /// The block of its event is here, and nobody can take it away.
    pub fn use_block(&self, purpose: Purpose, words: &[std::sync::atomic::AtomicU64]) {
        if self.phase == Phase::Use && !purpose.evicts() {
            self.job.run(words);
        }
    }

    /// Its event, of this epoch, is over; `own`: it was about its own block.
    pub(super) fn ended<'a>(
        &mut self,
        access: &Access,
        (purpose, own, epoch): (Purpose, bool, u32),
        then: Then,
    ) -> Step<'a> {
        match (then, self.phase) {
            (Then::Done, Phase::Use) if !purpose.evicts() => self.used(access, epoch, false),
            (Then::Done, Phase::Home(since)) if purpose.evicts() && own => {
                self.phase = Phase::Lease;
                match access.standing.epoch() == since {
                    true => Step::Again,
                    false => Step::Over(Err(AccessError::Interrupted {
                        addr: self.job.tag().0,
                    })),
                }
            }
            (Then::Done, _) if purpose.evicts() && !own => {
                access.agents.events.evicted_in_the_way();
                Step::Again
            }
            (Then::Done | Then::Again, _) => Step::Again,
            (Then::Relook | Then::BackOff, _) => self.busy(),
            (Then::Lost | Then::Fail(_), _) => Step::Over(Err(access.fatal(then, self.job.tag()))),
        }
    }
}
