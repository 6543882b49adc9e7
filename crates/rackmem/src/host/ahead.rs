//! Blocks that come to this node before an operation asks for each of them, or go home, several at
//! a time.
//!
//! An event of each is what an operation would have had, and [`AHEAD`] are under way at a time,
//! each with a requester. None waits for another: a block that others have locked is refused at
//! once, and one that another thread of this node has an event about is left out. What has to leave
//! for a block leaves by an event among these. The first that is under way is waited for, and the
//! others are looked at meanwhile: what has come is used, and unlocked for others, whatever the
//! first one waits for.

use super::access::{Access, coherent};
use super::bulk::{Lane, leave_behind};
use super::flight::Flight;
use crate::bytes::mapped::{Granted, Shown};
use crate::bytes::pending::{Plan, Reservation};
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::collections::VecDeque;
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
    /// Pages of a mapping that the program may use at once.
    Pages,
    /// The same for stores, which the program has asked for: what may be stored to is lost with its
    /// node.
    PagesForStores,
    /// Not here but home: what this node has of it leaves.
    Home,
}

impl Come {
    pub const fn pages(stores: bool) -> Come {
        match stores {
            true => Come::PagesForStores,
            false => Come::Pages,
        }
    }

    fn is_for_stores(self) -> bool {
        self == Come::PagesForStores
    }
}

/// How often others may leave to make room for a block, which other threads may take.
const ROOM: u8 = 2;

/// What is to be done about a block.
enum Wanted<'a> {
    /// Nothing: it is here.
    Here,
    /// It is left to its own operation.
    Left,
    /// An event: it comes, or makes another one leave first.
    Begin(Purpose, Reservation<'a>),
}

impl<'a> Wanted<'a> {
    fn event(event: Option<(Purpose, Reservation<'a>)>) -> Self {
        event.map_or(Wanted::Left, |(purpose, reserved)| {
            Wanted::Begin(purpose, reserved)
        })
    }
}

/// Blocks that are coming.
struct Coming<'a> {
    access: &'a Access,
    come: Come,
    window: usize,
    under_way: Vec<Flight<'a>>,
    idle: Vec<Lane<'a>>,
    /// Those that are still to come.
    rest: VecDeque<usize>,
    /// How often others have left for each.
    left: Vec<u8>,
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

    /// Brings blocks, and says which are here. What cannot be had at once is left to its own
    /// operation, which says why.
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
            rest: (0..known).collect(),
            left: vec![0; tags.len()],
            here: vec![false; tags.len()],
        };
        loop {
            coming.begin(tags);
            if coming.under_way.is_empty() {
                return coming.here;
            }
            coming.go_on();
        }
    }

    fn wanted(&self, tag: Tag, come: Come) -> Wanted<'_> {
        let cache = &self.agents.cache;
        let stores = come.is_for_stores();
        let here = match come {
            Come::Home => return Wanted::event(self.going_home(tag)),
            Come::Copies => self.has_copy(tag),
            Come::Pages | Come::PagesForStores => match cache.show(tag, stores) {
                Shown::Yes => true,
                Shown::No if !cache.strays(tag) => false,
                Shown::No | Shown::Refused(_) => return Wanted::Left,
            },
        };
        match (!here).then(|| self.pending.plan_now(cache, tag, stores)) {
            None => Wanted::Here,
            Some(Some(Plan::Begin(purpose, reserved))) => Wanted::Begin(purpose, reserved),
            Some(Some(Plan::Evict(reserved))) => Wanted::event(self.leaving(reserved)),
            Some(Some(Plan::Retry) | None) => Wanted::Left,
        }
    }
}

impl<'a> Coming<'a> {
    /// Begins as many as may be under way.
    fn begin(&mut self, tags: &[Tag]) {
        while self.under_way.len() < self.window
            && self.access.standing.holds()
            && let Some(nth) = self.rest.front().copied()
        {
            match self.access.wanted(tags[nth], self.come) {
                Wanted::Here => self.here[nth] = true,
                Wanted::Left => {}
                Wanted::Begin(purpose, _) if purpose.evicts() && self.left[nth] == ROOM => {}
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
            }
            self.rest.pop_front();
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

    /// Waits for the first that is under way, for a while, and looks at the others.
    fn go_on(&mut self) {
        let (cache, come) = (&self.access.agents.cache, self.come);
        let (mut nth, mut at_most) = (0, LOOK);
        while let Some(flight) = self.under_way.get_mut(nth) {
            if nth == 0 {
                leave_behind(&mut self.idle, &mut flight.lane);
            }
            let (entry, wanted, here) = (flight.reserved.entry, flight.nth, &mut self.here);
            let purpose = flight.purpose();
            let then = flight.go_on(at_most, |_| {
                here[wanted] = match come {
                    Come::Copies | Come::Home => true,
                    Come::Pages | Come::PagesForStores => {
                        let by = Granted::by(purpose);
                        cache.show_locked(entry, come.is_for_stores(), by) == Shown::Yes
                    }
                };
            });
            at_most = Duration::ZERO;
            let Some(then) = then else {
                nth += 1;
                continue;
            };
            let flight = self.under_way.remove(nth);
            self.idle.push(flight.lane);
            match then {
                Then::Done if purpose.evicts() => {
                    if come != Come::Home {
                        self.access.agents.events.evicted_in_the_way();
                    }
                    self.left[wanted] += 1;
                    self.rest.push_front(wanted);
                }
                Then::Done => {}
                Then::BackOff | Then::Relook => self.here[wanted] = false,
                // Of another epoch, or none: nothing more is begun.
                Then::Again | Then::Lost | Then::Fail(_) => {
                    self.here[wanted] = false;
                    self.rest.clear();
                }
            }
        }
    }
}
