//! The end of a run of a transaction, step by step: its homes are asked to make it one step, and if
//! others came first the next run begins a little later.

use super::{Objects, plan};
use crate::error::{AccessError, Changed, RackError, TransactionError};
use crate::host::access::Access;
use crate::host::driving::errand::{self, Action, Came, Operation};
use crate::host::objects::{Commits, count, not_done, unlike};
use crate::node::Node;
use rackmem_proto::sabre::Outcome;
use rackmem_proto::sabre::transaction::{Plan, Used};
use rackmem_proto::wire::{Reason, Tag};
use std::time::{Duration, Instant};

/// Nanoseconds before the next run: after the first one that did not count, and at most.
const FIRST: u64 = 500;
const LONGEST: u64 = 1 << 20;

/// Runs that did not count.
#[derive(Clone, Copy, Default)]
pub(super) struct Attempts {
    failed: u32,
    /// When the first of them ended.
    since: Option<Instant>,
}

impl Attempts {
    /// One more: how long the next one waits, at most. It is the last one if others have come first
    /// for so long.
    fn fail(&mut self, patience: Duration) -> Result<u64, TransactionError> {
        let pause = (FIRST << self.failed.min(16)).min(LONGEST);
        self.failed = self.failed.saturating_add(1);
        let tries = self.failed;
        match self.since.get_or_insert_with(Instant::now).elapsed() < patience {
            true => Ok(pause),
            false => Err(TransactionError::Conflict { tries }),
        }
    }
}

/// What a run has come to.
pub(super) enum Ended {
    /// What it has read was of one moment, and what it writes took effect at that.
    Whole,
    /// Something that it has read has changed, or is being changed: it runs again.
    Again(Attempts),
}

/// What the steps of a run's end come to.
type Ends = Result<Ended, TransactionError>;

/// See the module.
pub(super) struct Committing {
    objects: Objects,
    writes: bool,
    attempts: Attempts,
    next: Next,
}

/// What it does next, if it has asked nothing.
enum Next {
    Asks,
    /// It has taken effect: may that be told?
    Confirms,
    /// Others came first, and the pause is over.
    RunsAgain,
}

impl Committing {
    pub fn new(mut objects: Objects, writes: bool, attempts: Attempts) -> Self {
        if !writes {
            objects.values_mut().for_each(|used| used.write = None);
        }
        let writes = objects.values().any(|used| used.write.is_some());
        Committing {
            objects,
            writes,
            attempts,
            next: Next::Asks,
        }
    }

    /// Goes through it in this thread.
    pub fn call(mut self, node: &Node) -> Ends {
        let access = &node.inner.access;
        let ask = |commits| access.transact(commits);
        match errand::call(access, ask, |came| self.go_on(node, came)) {
            Ok(ends) => ends,
            Err(why) => Err(self.given_up(why)),
        }
    }

    /// What is to be done next, when the homes have answered this if they were asked.
    pub fn go_on(&mut self, node: &Node, came: Option<Came<Commits>>) -> Action<Ends, Commits> {
        let access = &node.inner.access;
        match (came, &self.next) {
            (Some(came), _) => self.heard(access, came),
            (None, Next::Asks) => self.ask(node),
            (None, Next::Confirms) => self.confirm(access),
            (None, Next::RunsAgain) => Action::Over(Ok(Ok(Ended::Again(self.attempts)))),
        }
    }

    fn ask(&mut self, node: &Node) -> Action<Ends, Commits> {
        let read = self.objects.values().filter(|used| used.read.is_some());
        if !self.writes && read.count() < 2 {
            // One read is of one moment.
            return self.confirm(&node.inner.access);
        }
        match node.open_now() {
            Some(Ok(())) => {}
            Some(Err(error)) => return over(self.given_up(error.into())),
            None => return Action::Later(RackError::NoLease.into()),
        }
        let used: Vec<Used<'_>> = plan(&self.objects).collect();
        let (plan, parts) = Plan::of(&used);
        Action::Ask(Commits { plan, parts })
    }

    fn heard(&mut self, access: &Access, came: Came<Commits>) -> Action<Ends, Commits> {
        match came {
            Ok(Ok(Outcome::Committed)) => self.confirm(access),
            Ok(Ok(Outcome::Aborted(reason, tag))) => self.aborted(access, (reason, tag)),
            Ok(Ok(outcome)) => over(unlike(outcome, Tag(0)).into()),
            Ok(Err(left)) => over(match (left.decided, left.error) {
                (true, AccessError::Rack(why)) => TransactionError::Undecided { why },
                (_, error) => never(error),
            }),
            Err(error) => over(never(error)),
        }
    }

    fn aborted(&mut self, access: &Access, (reason, tag): (Reason, Tag)) -> Action<Ends, Commits> {
        let addr = tag.0;
        let write = self.objects.get(&tag).and_then(|used| used.write.as_ref());
        over(match (reason, write) {
            (Reason::Locked | Reason::Invalid, _) => {
                count(&access.agents.objects.counters.conflicts);
                match self.attempts.fail(access.patience) {
                    Ok(pause) => {
                        self.next = Next::RunsAgain;
                        return Action::Pause(pause);
                    }
                    Err(conflict) => conflict,
                }
            }
            (Reason::Refused, Some(content)) => {
                let (len, is) = (content.len(), 0);
                AccessError::OtherSize { addr, len, is }.into()
            }
            (Reason::Lost, _) => {
                let node = tag.home().0;
                RackError::NodeLost { node }.into()
            }
            (reason, _) => not_done(reason, tag).into(),
        })
    }

    /// It may have been the process of a home that the rack goes on without.
    fn confirm(&mut self, access: &Access) -> Action<Ends, Commits> {
        self.next = Next::Confirms;
        match access.confirm_now() {
            Some(Ok(())) => Action::Over(Ok(Ok(Ended::Whole))),
            Some(Err(why)) => over(self.given_up(why.into())),
            None => Action::Later(RackError::NoLease.into()),
        }
    }

    /// What it comes to if nobody goes on with it, for this reason.
    pub fn given_up(&self, why: AccessError) -> TransactionError {
        match (&self.next, why) {
            (Next::Confirms, AccessError::Rack(why)) if self.writes => {
                TransactionError::Undecided { why }
            }
            (_, why) => never(why),
        }
    }
}

fn over(error: TransactionError) -> Action<Ends, Commits> {
    Action::Over(Ok(Err(error)))
}

/// It was not decided, and never takes effect.
fn never(error: AccessError) -> TransactionError {
    match error {
        AccessError::Rack(why) if why.changed() != Changed::No => TransactionError::GivenUp { why },
        error => error.into(),
    }
}

/// As a value that nobody need wait for.
pub(super) struct OfNode(pub Node, pub Committing);

impl Operation<Ends, Commits> for OfNode {
    fn go_on(&mut self, came: Option<Came<Commits>>) -> Action<Ends, Commits> {
        self.1.go_on(&self.0, came)
    }

    fn given_up(&self, why: AccessError) -> Result<Ends, AccessError> {
        Ok(Err(self.1.given_up(why)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Used as Object;
    use super::*;
    use crate::Rack;
    use crate::membership::term::Term;
    use std::sync::Arc;

    /// An object that is read and written.
    fn written() -> Objects {
        let used = Object {
            generation: 1,
            read: Some((2, vec![0])),
            write: Some(vec![1]),
        };
        Objects::from([(Tag(64), used)])
    }

    /// What homes have done is told once the lease holds; if the rack has gone on without this
    /// process, nobody knows.
    #[test]
    fn a_decision_is_told_by_a_process_that_has_its_lease() {
        for fenced in [false, true] {
            let rack = Rack::local(1).unwrap();
            let node = rack.node(0);
            let (term, standing) = (Arc::new(Term::default()), &node.inner.access.standing);
            standing.lease(term.clone());
            let mut committing = Committing::new(written(), true, Attempts::default());
            let committed = Some(Ok(Ok(Outcome::Committed)));
            let late = RackError::NoLease.into();
            for came in [committed, None] {
                let next = committing.go_on(&node, came);
                assert!(matches!(next, Action::Later(why) if why == late));
            }
            match fenced {
                true => standing.fence(),
                false => term.set(u64::MAX),
            }
            let Action::Over(Ok(ends)) = committing.go_on(&node, None) else {
                panic!("it waits");
            };
            let why = RackError::Fenced;
            match fenced {
                true => assert_eq!(ends.err(), Some(TransactionError::Undecided { why })),
                false => assert!(matches!(ends, Ok(Ended::Whole))),
            }
        }
    }

    /// Nobody goes on with it: before it was asked for it never takes effect, and after that it may
    /// have.
    #[test]
    fn what_may_have_taken_effect_is_said_to() {
        let why = RackError::NoLease;
        for writes in [true, false] {
            let mut committing = Committing::new(written(), writes, Attempts::default());
            let before = committing.given_up(RackError::Closed.into());
            assert_eq!(before.changed(), Changed::No);
            committing.next = Next::Confirms;
            let after = committing.given_up(why.into());
            let said = match writes {
                true => TransactionError::Undecided { why },
                false => TransactionError::Rack(why),
            };
            assert_eq!(after, said);
        }
    }
}
