//! Long ranges are written of which this node's own cache has clean copies.
//!
//! The right to change a block is an event of its own, with a lock of the rack's. [`WINDOW`] of
//! them are under way at a time, each with a requester. None waits for another: a block that others
//! have locked is refused at once and written the ordinary way once all are over, and an entry that
//! another thread of this node has reserved ends the run. So two nodes that write the same range
//! from both ends cannot wait for each other.

use super::access::Access;
use super::bulk::{Lane, Partly, WINDOW, leave_behind};
use super::flight::Flight;
use super::storing::{Outcome, Part};
use crate::bytes::pending::Reservation;
use rackmem_fabric::words;
use rackmem_proto::engine::{Purpose, Then};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::collections::VecDeque;
use std::ops::Range;

impl Access {
    /// Whether this cache has a clean copy of a block.
    pub(super) fn has_clean(&self, tag: Tag) -> bool {
        let cache = &self.agents.cache;
        let clean = |entry| cache.status(entry) == LocalStatus::Shared;
        cache.find(tag).is_some_and(clean)
    }

    /// Writes blocks of which this cache has clean copies, from one on, until something else has to
    /// be done.
    pub(super) fn upgrade_some(
        &self,
        first: Tag,
        bytes: &[u8],
        range: Range<usize>,
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
                let Some(reserved) = self.reserve_clean(Tag(first.0 + asked as u64)) else {
                    break;
                };
                let Some(lane) = idle.pop().or_else(more) else {
                    break;
                };
                match Flight::begin(self, lane, (Purpose::Upgrade, reserved), asked) {
                    Some(upgrade) => under_way.push_back(upgrade),
                    None => {
                        let tag = Tag(first.0 + asked as u64);
                        failed.get_or_insert((asked, self.fatal(Then::Lost, tag)));
                        window = 0;
                        break;
                    }
                }
                asked += block;
            }
            let Some(mut upgrade) = under_way.pop_front() else {
                break;
            };
            leave_behind(&mut idle, &mut upgrade.lane);
            let (from, to) = (upgrade.nth, upgrade.nth + block);
            match upgrade.end(|words| words::write(words, &bytes[from..to])) {
                Then::Done if window > 0 => window = widest.min(window + 1),
                Then::Done => {}
                // All that are under way have locks, or may have: they are ended first.
                then @ (Then::Lost | Then::Fail(_)) => {
                    failed.get_or_insert((from, self.fatal(then, upgrade.reserved.tag)));
                    window = 0;
                }
                then => {
                    let plain = to;
                    refused.push(Part { from, to, plain });
                    if then != Then::BackOff {
                        window = 0;
                    }
                }
            }
            idle.push(upgrade.lane);
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

    /// The entry of a clean copy, if no other event of this node is about it.
    fn reserve_clean(&self, tag: Tag) -> Option<Reservation<'_>> {
        let cache = &self.agents.cache;
        let reserved = self.pending.reserve(cache, tag)?;
        (cache.status(reserved.entry) == LocalStatus::Shared).then_some(reserved)
    }
}
