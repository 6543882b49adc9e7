//! A block that leaves a full set of the cache beside a miss, so that the next one finds room.
//!
//! Its event is begun before the miss's and carried out by the same thread while it waits for that:
//! both go to their homes together, and nobody else has to be woken. It has come to its end when
//! the operation returns, for the block is locked in the rack until then; so there is no list of
//! such blocks, nothing to bound and nothing left to do when a rack is closed. Whether a set's
//! blocks leave like this is `rackmem_proto::engine`'s `Pressure`.

use super::access::Access;
use super::bulk::Lane;
use super::flight::Flight;
use crate::bytes::pending::Reservation;
use rackmem_proto::engine::{Do, Then};
use std::time::Duration;

/// How long the miss is waited for before the other event is looked at.
pub(super) const LOOK: Duration = Duration::from_micros(100);

/// See the module.
pub(super) struct Leaving<'a> {
    access: &'a Access,
    flight: Flight<'a>,
}

impl<'a> Leaving<'a> {
    /// `None`: the block is gone, or there is no requester for it. It may leave later.
    pub fn begin(access: &'a Access, reserved: Reservation<'a>) -> Option<Self> {
        let wanted = access.leaving(reserved)?;
        let lane = Lane::More(access.requesters.borrow_more()?);
        let flight = Flight::begin(access, lane, wanted, 0)?;
        Some(Leaving { access, flight })
    }

    /// What is to be done next about the miss, as `next` says it once it knows; meanwhile the other
    /// event goes on, until it is over.
    pub fn beside(leaving: &mut Option<Self>, mut next: impl FnMut() -> Option<Do>) -> Do {
        loop {
            let todo = next();
            // It would rest once it is over, and a rebuild waits for those that do.
            leaving.take_if(|leaving| leaving.is_over(Duration::ZERO));
            if let Some(todo) = todo {
                return todo;
            }
        }
    }

    fn is_over(&mut self, at_most: Duration) -> bool {
        let then = self.flight.go_on(at_most, |_| ());
        if then == Some(Then::Done) {
            self.access.agents.events.evicted_ahead();
        }
        then.is_some()
    }

    /// Waits for its end. A block that others have locked, or that does not answer, stays: who
    /// needs its room will say so.
    pub fn end(&mut self) {
        while !self.is_over(Duration::MAX) {}
    }
}
