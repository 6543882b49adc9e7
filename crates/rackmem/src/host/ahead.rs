//! Blocks that come to this node before an operation asks for each of them, several at a time.
//!
//! An event of each is what an operation would have had, and [`AHEAD`] are under way at a time,
//! each with a requester. None waits for another: a block that others have locked is refused at
//! once, and one that another thread of this node has an event about is left out. The first that is
//! under way is waited for, and the others are looked at meanwhile: what has come is used, and
//! unlocked for others, whatever the first one waits for.

use super::access::{Access, coherent};
use super::bulk::{Lane, leave_behind};
use super::flight::Flight;
use crate::bytes::mapped::{Granted, Shown};
use crate::bytes::pending::{Plan, Reservation};
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::time::Duration;

/// Events of one thread that bring blocks ahead, at most.
const AHEAD: usize = 8;

/// How long the first one is waited for before the others are looked at.
const LOOK: Duration = Duration::from_micros(100);

/// What blocks come as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Come {
    /// Copies in the cache.
    Copies,
    /// Pages that the program may load.
    Pages,
}

/// What is to be done about a block.
enum Wanted<'a> {
    /// Nothing: it is here.
    Here,
    /// It is left to its own operation.
    Left,
    Begin(Purpose, Reservation<'a>),
    /// Another one has to leave first.
    Evict(Reservation<'a>),
}

/// Blocks that are coming.
struct Coming<'a> {
    access: &'a Access,
    come: Come,
    window: usize,
    under_way: Vec<Flight<'a>>,
    idle: Vec<Lane<'a>>,
    /// Which of them are here.
    here: Vec<bool>,
}

impl Access {
    /// Whether there may be such a block, and its home lives.
    pub fn is_reachable(&self, tag: Tag) -> bool {
        coherent(tag).and_then(|()| self.alive(tag)).is_ok()
    }

    /// Whether this node has a copy of a block.
    pub fn has_copy(&self, tag: Tag) -> bool {
        let cache = &self.agents.cache;
        let valid = |entry| cache.status(entry) != LocalStatus::Invalid;
        cache.find(tag).is_some_and(valid)
    }

    /// Brings blocks for loads, and says which are here. What cannot be had at once is left to its
    /// own operation, which says why.
    ///
    /// What may be stored to is lost with its node, so nothing comes ahead for that.
    pub fn bring_ahead(&self, tags: &[Tag], come: Come) -> Vec<bool> {
        // Before the first is asked for: it may take a while to hear of a home.
        let known = tags.iter().take_while(|tag| self.is_reachable(**tag));
        let known = known.count();
        let mut coming = Coming {
            access: self,
            come,
            window: AHEAD,
            under_way: Vec::new(),
            idle: Vec::new(),
            here: vec![false; tags.len()],
        };
        let mut rest = 0..known;
        loop {
            coming.begin(tags, &mut rest);
            if coming.under_way.is_empty() {
                return coming.here;
            }
            if !coming.go_on() {
                rest = 0..0;
            }
        }
    }

    fn wanted(&self, tag: Tag, come: Come) -> Wanted<'_> {
        let cache = &self.agents.cache;
        let here = match come {
            Come::Copies => self.has_copy(tag),
            Come::Pages => match cache.show(tag, false) {
                Shown::Yes => true,
                Shown::No if !cache.strays(tag) => false,
                Shown::No | Shown::Refused(_) => return Wanted::Left,
            },
        };
        match (!here).then(|| self.pending.plan_now(cache, tag, false)) {
            None => Wanted::Here,
            Some(Some(Plan::Begin(purpose, reserved))) => Wanted::Begin(purpose, reserved),
            Some(Some(Plan::Evict(reserved))) => Wanted::Evict(reserved),
            Some(Some(Plan::Retry) | None) => Wanted::Left,
        }
    }
}

impl<'a> Coming<'a> {
    /// Begins as many as may be under way, of these.
    fn begin(&mut self, tags: &[Tag], rest: &mut std::ops::Range<usize>) {
        while self.under_way.len() < self.window
            && self.access.standing.holds()
            && let Some(nth) = rest.clone().next()
        {
            match self.access.wanted(tags[nth], self.come) {
                Wanted::Here => self.here[nth] = true,
                Wanted::Left => {}
                Wanted::Begin(purpose, reserved) => {
                    let Some(mut lane) = self.lane() else {
                        return;
                    };
                    if !lane.slot().overlaps() {
                        self.window = 1;
                    }
                    let flight = Flight::begin(self.access, lane, (purpose, reserved), nth);
                    self.under_way.extend(flight);
                }
                // Nothing is waited for while something is under way.
                Wanted::Evict(_) if !self.under_way.is_empty() => return,
                Wanted::Evict(reserved) => {
                    self.idle.clear();
                    if matches!(self.access.evict(&reserved), Ok(true)) {
                        continue;
                    }
                }
            }
            rest.start += 1;
        }
    }

    /// A requester: this thread's own, and others beside it.
    fn lane(&mut self) -> Option<Lane<'a>> {
        let requesters = &self.access.requesters;
        self.idle.pop().or_else(|| match self.under_way.is_empty() {
            true => requesters.borrow().ok().map(Lane::Own),
            false => requesters.borrow_more().map(Lane::More),
        })
    }

    /// Waits for the first that is under way, for a while, and looks at the others. Whether more
    /// are to be begun.
    fn go_on(&mut self) -> bool {
        let (cache, pages) = (&self.access.agents.cache, self.come == Come::Pages);
        let (mut nth, mut at_most, mut goes_on) = (0, LOOK, true);
        while let Some(flight) = self.under_way.get_mut(nth) {
            if nth == 0 {
                leave_behind(&mut self.idle, &mut flight.lane);
            }
            let (entry, wanted, here) = (flight.reserved.entry, flight.nth, &mut self.here);
            let granted = Granted::by(Purpose::Read);
            let then = flight.go_on(at_most, |_| {
                let shown = || cache.show_locked(entry, false, granted) == Shown::Yes;
                here[wanted] = !pages || shown();
            });
            at_most = Duration::ZERO;
            let Some(then) = then else {
                nth += 1;
                continue;
            };
            self.here[wanted] &= then == Then::Done;
            goes_on &= matches!(then, Then::Done | Then::BackOff | Then::Relook);
            let flight = self.under_way.remove(nth);
            self.idle.push(flight.lane);
        }
        goes_on
    }
}
