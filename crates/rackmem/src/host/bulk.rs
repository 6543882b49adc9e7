//! Long ranges, which do not go by way of the cache.
//!
//! | the blocks are | read | written |
//! |---|---|---|
//! | at home here, and no cache has a changed copy | in home's memory | in home's memory, if no cache has any copy |
//! | at home elsewhere, and not in this cache | fetched: no copy is kept | stored there ([`super::storing`]), if no cache has any copy |
//! | anything else | as by [`Access::read`] | as by [`Access::write`] |
//!
//! A fetch asks for as many whole blocks as one packet carries, and [`WINDOW`] fetches are under
//! way at a time. They hold no lock and change no entry, so a fetch may be forgotten at any moment;
//! and whatever is unusual, an epoch that ends or a block that its home does not have, ends all
//! that are under way, so that none of their requesters keeps a rebuild waiting.

use super::access::{Access, coherent};
use super::ahead::Come;
use crate::error::{AccessError, RackError};
use crate::ports::requester::{Borrowed, Bytes, Extra, Sink, Slot};
use rackmem_fabric::{Body, words};
use rackmem_proto::engine::{self, Do, Purpose, Then};
use rackmem_proto::wire::{Kind, Tag};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Fetches of one thread that are under way at a time.
pub(super) const WINDOW: usize = 4;

/// Blocks of this home that are brought together, at most.
const TOGETHER: usize = 32;

/// Something that was done to some of the bytes of a range, from the first on, before it failed.
pub(crate) type Partly<T> = std::result::Result<T, (usize, AccessError)>;

/// What came of some fetches.
struct Came {
    /// Bytes that are here, from the first on.
    bytes: usize,
    /// Bytes behind them that their home has not as the last writer left them, or not for certain.
    missing: usize,
}

impl Access {
    /// Reads whole blocks, from this one on.
    pub fn read_blocks(&self, first: Tag, out: &mut [u8]) -> Partly<()> {
        let block = self.agents.cache.block_bytes();
        let mut done = 0;
        while done < out.len() {
            let (tag, rest) = (Tag(first.0 + done as u64), &mut out[done..]);
            self.may_go_on().map_err(|error| (done, error))?;
            let fetches = !self.is_home(tag) && self.not_cached(tag, block) > 0;
            let step = match fetches {
                true => self.fetch_or_read(tag, rest),
                false => self.read_here(tag, rest).map(|()| block),
            };
            done += step.map_err(|(more, error)| (done + more, error))?;
        }
        // Nothing of it may be told to others otherwise.
        self.confirm().map_err(|error| (0, error.into()))
    }

    /// Does something with a block in the memory of this home, if it is of this home, and the lease
    /// holds: as for a hit, nobody is asked.
    pub fn in_place<R>(
        &self,
        tag: Tag,
        writes: bool,
        f: impl FnOnce(&[AtomicU64]) -> R,
    ) -> Option<R> {
        let here = self.is_home(tag) && self.standing.holds();
        here.then(|| self.agents.in_place(tag, writes, f)).flatten()
    }

    /// Whether long ranges go by way of this node: through its home's memory, or, where a group
    /// keeps the home, through its cache.
    pub fn is_home(&self, tag: Tag) -> bool {
        !tag.home().is_own() || self.standing.host(tag.home()) == Some(self.me())
    }

    pub(super) fn may_go_on(&self) -> Result<(), AccessError> {
        match self.closed.load(Relaxed) {
            true => Err(AccessError::Rack(RackError::Closed)),
            false => Ok(()),
        }
    }

    /// Reads a block, which others of this home may follow: in place, or by way of the cache.
    fn read_here(&self, tag: Tag, out: &mut [u8]) -> Partly<()> {
        let (block, rest) = (self.agents.cache.block_bytes(), out.len());
        let mut read = |from: &[AtomicU64]| words::read(&mut out[..block], from);
        if self.in_place(tag, false, &mut read).is_some()
            || self.agents.cache.read(tag, &mut read).is_some()
        {
            return Ok(());
        }
        self.bring_missing(tag, rest);
        self.read(tag, read).map_err(|error| (0, error))
    }

    /// Of so many bytes of this home's, brings the first blocks that other nodes have changed: for
    /// one of them it is not worth it.
    fn bring_missing(&self, first: Tag, bytes: usize) {
        let block = self.agents.cache.block_bytes();
        let here = |tag| self.has_copy(tag) || self.in_place(tag, false, |_| ()).is_some();
        let tags =
            (0..(bytes / block).min(TOGETHER)).map(|nth| Tag(first.0 + (nth * block) as u64));
        let tags: Vec<Tag> = tags
            .take_while(|tag| self.is_home(*tag) && !here(*tag))
            .collect();
        if tags.len() > 1 {
            self.bring_ahead(&tags, Come::Copies);
        }
    }

    /// Reads blocks of another home, at least one. How many bytes.
    fn fetch_or_read(&self, first: Tag, out: &mut [u8]) -> Partly<usize> {
        let block = self.agents.cache.block_bytes();
        let known = coherent(first).and_then(|()| self.alive(first));
        known.map_err(|error| (0, error))?;
        let Came { bytes, missing } = self.fetch_some(first, out)?;
        let end = bytes + missing.max(if bytes == 0 { block } else { 0 });
        let coming: Vec<Tag> = (bytes..end)
            .step_by(block)
            .map(|at| Tag(first.0 + at as u64))
            .collect();
        if coming.len() > 1 {
            self.bring_ahead(&coming, Come::Copies);
        }
        for at in (bytes..end).step_by(block) {
            let part = &mut out[at..at + block];
            self.read_here(Tag(first.0 + at as u64), part)
                .map_err(|(_, error)| (at, error))?;
        }
        Ok(end)
    }

    /// Reads blocks of another home by fetches, until something else has to be done.
    fn fetch_some(&self, first: Tag, out: &mut [u8]) -> Partly<Came> {
        let block = self.agents.cache.block_bytes();
        let own = self.requesters.borrow();
        let own = own.map_err(|error| (0, error.into()))?;
        let (most, overlaps) = (own.fetches(block), own.overlaps());
        let mut idle = vec![Lane::Own(own)];
        let mut under_way: VecDeque<Fetch<'_, '_>> = VecDeque::new();
        let (mut came, mut asked, mut rest) = (0, 0, out);
        // One at first: where caches have changed blocks, more would be for nothing.
        let mut window = 1;
        loop {
            while under_way.len() < window {
                let tag = Tag(first.0 + asked as u64);
                let len = self.not_cached(tag, rest.len().min(most));
                let more = || self.requesters.borrow_more().map(Lane::More);
                let Some(lane) = (len > 0).then(|| idle.pop().or_else(more)).flatten() else {
                    break;
                };
                let (part, behind) = std::mem::take(&mut rest).split_at_mut(len);
                rest = behind;
                asked += len;
                under_way.extend(Fetch::begin(lane, tag, part, block));
            }
            let Some(mut fetch) = under_way.pop_front() else {
                return Ok(Came {
                    bytes: came,
                    missing: 0,
                });
            };
            leave_behind(&mut idle, &mut fetch.lane);
            let then = fetch.end();
            let bytes = fetch.came() / block * block;
            came += bytes;
            match then {
                Then::Done if bytes == fetch.len => {}
                Then::Done => {
                    let missing = fetch.len - bytes;
                    return Ok(Came {
                        bytes: came,
                        missing,
                    });
                }
                // The rack is in another epoch: all that is under way is of the last one.
                Then::Again => {
                    return Ok(Came {
                        bytes: came,
                        missing: 0,
                    });
                }
                then => return Err((came, self.fatal(then, fetch.tag))),
            }
            self.agents.events.count(Kind::Fetch);
            idle.push(fetch.lane);
            window = if overlaps { WINDOW.min(window + 1) } else { 1 };
        }
    }

    /// Bytes of whole blocks from this one on that are not in the cache, no more than so many.
    pub(super) fn not_cached(&self, tag: Tag, most: usize) -> usize {
        let (cache, block) = (&self.agents.cache, self.agents.cache.block_bytes());
        let blocks = (0..most / block).map(|nth| Tag(tag.0 + (nth * block) as u64));
        block * blocks.take_while(|tag| cache.find(*tag).is_none()).count()
    }
}

/// A requester.
pub(super) enum Lane<'a> {
    Own(Borrowed<'a>),
    More(Extra<'a>),
}

impl Lane<'_> {
    pub fn slot(&mut self) -> &mut Slot {
        match self {
            Lane::Own(slot) => slot,
            Lane::More(extra) => &mut extra.slot,
        }
    }
}

/// Gives requesters back that rest in an older epoch than one that is waited for: the rebuild
/// waits for them, and the answer for the rebuild.
pub(super) fn leave_behind(resting: &mut Vec<Lane<'_>>, awaited: &mut Lane<'_>) {
    let epoch = awaited.slot().epoch();
    resting.retain_mut(|lane| lane.slot().epoch() == epoch);
}

/// Where blocks go that come in one packet, and how many bytes have come.
struct Landing<'b> {
    into: RefCell<&'b mut [u8]>,
    came: Cell<usize>,
}

impl Sink for Landing<'_> {
    fn take(&self, body: Body<'_>) {
        let mut into = self.into.borrow_mut();
        let Some(into) = into.get_mut(..body.len()) else {
            return;
        };
        match body {
            Body::None => return,
            Body::Bytes(bytes) => into.copy_from_slice(bytes),
            Body::Block(blocks) => words::read(into, blocks),
        }
        self.came.set(into.len());
    }
}

/// A fetch under way.
struct Fetch<'a, 'b> {
    lane: Lane<'a>,
    access: engine::Access,
    tag: Tag,
    len: usize,
    landing: Landing<'b>,
}

impl<'a, 'b> Fetch<'a, 'b> {
    /// `None`: the rack goes on without this process.
    fn begin(mut lane: Lane<'a>, tag: Tag, into: &'b mut [u8], block: usize) -> Option<Self> {
        let (len, blocks) = (into.len(), (into.len() / block) as u32);
        let landing = Landing {
            into: RefCell::new(into),
            came: Cell::new(0),
        };
        let (slot, purpose) = (lane.slot(), Purpose::Call(Kind::Fetch));
        let access = slot.begin(purpose, tag, blocks, Bytes::Sink(&landing))?;
        Some(Fetch {
            lane,
            access,
            tag,
            len,
            landing,
        })
    }

    fn end(&mut self) -> Then {
        let slot = self.lane.slot();
        loop {
            match slot.next(&mut self.access, Bytes::Sink(&self.landing)) {
                Do::Over(then) => return then,
                Do::Wait => return Then::Lost,
                _ => {}
            }
        }
    }

    fn came(&self) -> usize {
        self.landing.came.get()
    }
}
