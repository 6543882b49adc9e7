//! Long ranges are written: in home's memory where that is here, in another home's by `Store`,
//! or by way of the cache, several blocks at a time ([`super::caching`]).
//!
//! A store brings as many whole blocks as one packet carries, and [`WINDOW`] stores are under way
//! at a time. The home puts each block in place where its memory is all that there is of the block,
//! and ends at the first one where it is not; that one is written by way of the cache, which takes
//! it away from those who have copies.
//!
//! A block is written once. So a store whose epoch ends before it is answered is asked again as the
//! same one, until its home says what became of it; and all that are under way then go into the new
//! epoch before any is waited for, so that none of their requesters keeps the rebuild waiting.

use super::access::{Access, coherent};
use super::bulk::{Lane, Partly, WINDOW, leave_behind};
use crate::error::AccessError;
use crate::ports::requester::Bytes;
use rackmem_fabric::words;
use rackmem_proto::engine::{self, Do, Purpose, Stored, Then};
use rackmem_proto::wire::{Kind, Tag};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// A part of the range that is not written yet.
pub(super) struct Part {
    pub from: usize,
    to: usize,
    /// What lies in front of this goes by way of the cache.
    cached: usize,
    /// And what lies in front of this each by itself: who has refused it is waited for.
    alone: usize,
}

impl Part {
    /// A part whose blocks are written by themselves.
    pub fn alone(from: usize, to: usize) -> Part {
        let (cached, alone) = (to, to);
        Part {
            from,
            to,
            cached,
            alone,
        }
    }
}

/// What came of some stores.
pub(super) struct Outcome {
    /// Nothing of the range from here on has been sent.
    pub end: usize,
    /// What has been sent and not written, in order.
    pub refused: Vec<Part>,
}

impl Access {
    /// Writes whole blocks, from this one on.
    pub fn write_blocks(&self, first: Tag, bytes: &[u8]) -> Partly<()> {
        let block = self.agents.cache.block_bytes();
        // What is left, the beginning last.
        let mut left = vec![Part {
            from: 0,
            to: bytes.len(),
            cached: 0,
            alone: 0,
        }];
        while let Some(part) = left.pop() {
            let Part {
                from,
                to,
                cached,
                alone,
            } = part;
            if from == to {
                continue;
            }
            let tag = Tag(first.0 + from as u64);
            self.may_go_on().map_err(|error| (from, error))?;
            let here = self.is_home(tag);
            if from < alone {
                let next = from + block;
                self.write_block(tag, here, &bytes[from..next])
                    .map_err(|error| (from, error))?;
                left.push(Part { from: next, ..part });
                continue;
            }
            let known = coherent(tag).and_then(|()| self.alive(tag));
            known.map_err(|error| (from, error))?;
            let by_cache = here || from < cached || self.not_cached(tag, block) == 0;
            let Outcome { end, refused } = match by_cache {
                true => self.cache_some(first, bytes, (from..to, cached))?,
                false => self.store_some(first, bytes, from..to)?,
            };
            // Nothing has been sent: no packet holds a block, or others' events are in the way.
            let next = if end == from { from + block } else { 0 };
            let alone = if by_cache { next } else { 0 };
            left.push(Part {
                from: end,
                to,
                cached: cached.max(next),
                alone,
            });
            left.extend(refused.into_iter().rev());
        }
        // What homes have taken may be of an epoch that is over.
        let cut_off = |_| (0, AccessError::Interrupted { addr: first.0 });
        self.confirm().map_err(cut_off)
    }

    fn write_block(&self, tag: Tag, here: bool, bytes: &[u8]) -> Result<(), AccessError> {
        let write = |to: &[AtomicU64]| words::write(to, bytes);
        match here && self.in_place(tag, true, write).is_some() {
            true => Ok(()),
            false => self.write(tag, write),
        }
    }

    /// Has blocks of another home written there, until something else has to be done.
    fn store_some(&self, first: Tag, bytes: &[u8], range: Range<usize>) -> Partly<Outcome> {
        let own = self.requesters.borrow();
        let own = own.map_err(|error| (range.start, error.into()))?;
        let (block, most) = (
            self.agents.cache.block_bytes(),
            own.fetches(self.agents.cache.block_bytes()),
        );
        // Where a packet is answered before it is sent, there is nothing to overlap.
        let widest = if own.overlaps() { WINDOW } else { 1 };
        let mut stores = Stores {
            idle: vec![Lane::Own(own)],
            asked: range.start,
            ..Stores::default()
        };
        // One at first: where caches have copies, more would be for nothing.
        let mut window = 1;
        loop {
            while stores.under_way.len() < window {
                let (at, tag) = (stores.asked, Tag(first.0 + stores.asked as u64));
                let len = self.not_cached(tag, most.min(range.end - at));
                let more = || self.requesters.borrow_more().map(Lane::More);
                let Some(lane) = (len > 0).then(|| stores.idle.pop().or_else(more)).flatten()
                else {
                    break;
                };
                stores.asked += len;
                let store = Store::begin(lane, (tag, at), &bytes[at..at + len]);
                let store = store.ok_or_else(|| stores.failed(at, self.fatal(Then::Lost, tag)))?;
                stores.under_way.push_back(store);
            }
            let Some(mut store) = stores.under_way.pop_front() else {
                if stores.cut.is_empty() {
                    return Ok(stores.outcome());
                }
                self.ask_again(&mut stores)?;
                continue;
            };
            leave_behind(&mut stores.idle, &mut store.lane);
            match store.end() {
                Then::Done => {
                    self.agents.events.count(Kind::Store);
                    let (from, to) = (store.at + store.stored(block), store.at + store.bytes.len());
                    if from < to {
                        // Of a packet of which home took nothing, nothing is sent again.
                        let cached = if from == store.at { to } else { from + block };
                        stores.refused.push(Part {
                            from,
                            to,
                            cached,
                            alone: from,
                        });
                        window = 0;
                    }
                    if window > 0 {
                        stores.idle.push(store.lane);
                        window = widest.min(window + 1);
                    }
                }
                // The rack is in another epoch: no requester stays in the old one while others are
                // waited for.
                Then::Again => {
                    window = 0;
                    store.lane.slot().follow();
                    stores.cut.push_back(store);
                }
                then => return Err(stores.failed(store.at, self.fatal(then, store.tag))),
            }
        }
    }

    /// Goes into the new epoch with all stores that the end of the last one has cut off.
    fn ask_again(&self, stores: &mut Stores<'_, '_>) -> Partly<()> {
        while let Some(store) = stores.cut.pop_front() {
            let (at, tag) = (store.at, store.tag);
            let again = self.alive(tag).map(|()| store.again());
            match again {
                Ok(Some(store)) => stores.under_way.push_back(store),
                Ok(None) => return Err(stores.failed(at, self.fatal(Then::Lost, tag))),
                Err(error) => return Err(stores.failed(at, error)),
            }
        }
        Ok(())
    }
}

/// Stores of one thread.
#[derive(Default)]
struct Stores<'a, 'b> {
    /// Requesters for the next ones.
    idle: Vec<Lane<'a>>,
    under_way: VecDeque<Store<'a, 'b>>,
    /// Those that the end of an epoch has cut off.
    cut: VecDeque<Store<'a, 'b>>,
    /// What homes have not taken.
    refused: Vec<Part>,
    /// Nothing of the range from here on has been sent.
    asked: usize,
}

impl Stores<'_, '_> {
    /// All are over.
    fn outcome(mut self) -> Outcome {
        self.refused.sort_by_key(|part| part.from);
        Outcome {
            end: self.asked,
            refused: self.refused,
        }
    }

    /// One has failed. Everything in front of what is told is written.
    fn failed(&self, at: usize, error: AccessError) -> (usize, AccessError) {
        let open = self.under_way.iter().chain(&self.cut).map(|store| store.at);
        let refused = self.refused.iter().map(|part| part.from);
        (open.chain(refused).fold(at, usize::min), error)
    }
}

/// A store under way.
struct Store<'a, 'b> {
    lane: Lane<'a>,
    access: engine::Access,
    tag: Tag,
    /// Where its bytes lie in the range.
    at: usize,
    bytes: &'b [u8],
}

impl<'a, 'b> Store<'a, 'b> {
    /// `None`: the rack goes on without this process.
    fn begin(lane: Lane<'a>, (tag, at): (Tag, usize), bytes: &'b [u8]) -> Option<Self> {
        Store::ask(lane, (tag, at), bytes, Stored::Open)
    }

    /// The same one, in a new epoch.
    fn again(self) -> Option<Self> {
        Store::ask(self.lane, (self.tag, self.at), self.bytes, Stored::CutOff)
    }

    fn ask(
        mut lane: Lane<'a>,
        (tag, at): (Tag, usize),
        bytes: &'b [u8],
        stored: Stored,
    ) -> Option<Self> {
        let nothing = Cell::new(0);
        let operand = Bytes::Operand(bytes, &nothing);
        let purpose = Purpose::Call(Kind::Store);
        let access = lane.slot().begin(purpose, tag, stored.offset(), operand)?;
        Some(Store {
            lane,
            access,
            tag,
            at,
            bytes,
        })
    }

    fn end(&mut self) -> Then {
        let nothing = Cell::new(0);
        let operand = Bytes::Operand(self.bytes, &nothing);
        let slot = self.lane.slot();
        loop {
            match slot.next(&mut self.access, operand) {
                Do::Over(then) => return then,
                Do::Wait => return Then::Lost,
                _ => {}
            }
        }
    }

    /// Bytes that its home has put in place, once it is done.
    fn stored(&mut self, block: usize) -> usize {
        let stored = self.lane.slot().granted().map_or(0, |grant| grant.stored());
        (stored as usize * block).min(self.bytes.len())
    }
}
