//! Long ranges are written by way of this node's cache, where home's memory is not all that there
//! is of their blocks.
//!
//! A block that this cache may change is changed, and one that home may change here, in place. For
//! the others the right to change is an event each, with a lock of the rack's. [`WINDOW`] of them
//! are under way at a time, each with a requester. None waits for another: a block that others have
//! locked is refused at once and written by itself once all are over, and an entry that another
//! thread of this node has reserved ends the run. So two nodes that write the same range from both
//! ends cannot wait for each other.

use super::access::Access;
use super::bulk::{Lane, Partly, WINDOW, leave_behind};
use super::flight::Flight;
use super::storing::{Outcome, Part};
use crate::bytes::pending::{Plan, Reservation};
use rackmem_fabric::words;
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// What becomes of a block.
enum Next<'a> {
    Written,
    Begin(Purpose, Reservation<'a>),
    /// Something else has to be done first, or about it.
    Stop,
}

impl Access {
    /// Whether this cache has a copy of a block, which is clean.
    pub(super) fn has_clean(&self, tag: Tag) -> bool {
        let cache = &self.agents.cache;
        let clean = |entry| cache.status(entry) == LocalStatus::Shared;
        cache.find(tag).is_some_and(clean)
    }

    /// Writes blocks from one on, until something else has to be done. `stored`: what lies in front
    /// of this its home has not taken.
    pub(super) fn cache_some(
        &self,
        first: Tag,
        bytes: &[u8],
        (range, stored): (Range<usize>, usize),
    ) -> Partly<Outcome> {
        let block = self.agents.cache.block_bytes();
        let own = self.requesters.borrow();
        let own = own.map_err(|error| (range.start, error.into()))?;
        let widest = if own.overlaps() { WINDOW } else { 1 };
        let mut idle = vec![Lane::Own(own)];
        let mut under_way: VecDeque<Flight<'_>> = VecDeque::new();
        let (mut asked, mut refused, mut failed) = (range.start, Vec::new(), None);
        // One at first: where other caches have copies as well, it takes longer.
        let mut window = 1;
        loop {
            while under_way.len() < window && asked < range.end {
                let more = || self.requesters.borrow_more().map(Lane::More);
                let (tag, from) = (Tag(first.0 + asked as u64), asked);
                let wanted = match self.next_write(tag, &bytes[from..from + block], from < stored) {
                    Next::Stop => break,
                    Next::Written => {
                        asked += block;
                        continue;
                    }
                    Next::Begin(purpose, reserved) => (purpose, reserved),
                };
                let Some(lane) = idle.pop().or_else(more) else {
                    break;
                };
                match Flight::begin(self, lane, wanted, from) {
                    Some(flight) => under_way.push_back(flight),
                    None => {
                        failed.get_or_insert((from, self.fatal(Then::Lost, tag)));
                        window = 0;
                        break;
                    }
                }
                asked += block;
            }
            let Some(mut flight) = under_way.pop_front() else {
                break;
            };
            leave_behind(&mut idle, &mut flight.lane);
            let (from, to) = (flight.nth, flight.nth + block);
            match flight.end(|words| words::write(words, &bytes[from..to])) {
                Then::Done if window > 0 => window = widest.min(window + 1),
                Then::Done => {}
                // All that are under way have locks, or may have: they are ended first.
                then @ (Then::Lost | Then::Fail(_)) => {
                    failed.get_or_insert((from, self.fatal(then, flight.reserved.tag)));
                    window = 0;
                }
                then => {
                    refused.push(Part::alone(from, to));
                    if then != Then::BackOff {
                        window = 0;
                    }
                }
            }
            idle.push(flight.lane);
        }
        match failed {
            None => Ok(Outcome {
                end: asked,
                refused,
            }),
            Some((at, error)) => {
                let refused = refused.iter().map(|part| part.from);
                Err((refused.fold(at, usize::min), error))
            }
        }
    }

    /// Writes a block if nobody has to be asked for it.
    fn next_write(&self, tag: Tag, bytes: &[u8], stored: bool) -> Next<'_> {
        let (here, cache) = (self.is_home(tag), &self.agents.cache);
        let write = |to: &[AtomicU64]| words::write(to, bytes);
        if here && self.in_place(tag, true, write).is_some() || cache.write(tag, write).is_some() {
            return Next::Written;
        }
        // Its home may take it as it is.
        if !here && !stored && !self.has_clean(tag) {
            return Next::Stop;
        }
        match self.pending.plan_now(cache, tag, true) {
            Some(Plan::Begin(purpose, reserved)) => Next::Begin(purpose, reserved),
            Some(Plan::Evict(_) | Plan::Retry) | None => Next::Stop,
        }
    }
}
