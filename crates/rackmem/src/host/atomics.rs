//! Operations on words: by a copy that is here, or at the word's home, where that is shorter
//! ([`Contention`] says where).

use super::access::{Access, coherent};
use super::by_block::ByBlock;
use crate::backoff::Backoff;
use crate::bytes::node_cache::NodeCache;
use crate::error::AccessError;
use crate::ports::requester::Bytes;
use rackmem_proto::engine::{Contention, Purpose, Stored, Then};
use rackmem_proto::wire::{AtomicOp, Kind, Tag};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Blocks of which a node knows it: one for each remainder of their numbers.
const PLACES: usize = 4096;

/// Times that a home is asked while an event has the block's lock.
const TRIES: u32 = 16;

/// No entry of a cache.
const NOWHERE: u64 = u64::MAX;

/// Changes of an entry that are none of its block: a copy went, and another one came.
const OF_A_MISS: u64 = 2;

/// A look, as an operation.
const LOOK: AtomicOp = AtomicOp::Bits {
    keep: u64::MAX,
    flip: 0,
};

/// What is known of a block. Where a step of it is lost, the block is hot a little later.
#[derive(Default)]
struct Changed {
    known: AtomicU32,
    /// Where its last copy was, and how often that entry had changed by then.
    entry: AtomicU64,
    changes: AtomicU64,
}

/// The blocks whose words threads of this node change, as far as no two of them want one place.
pub(crate) struct Contended(ByBlock<Changed>);

impl Default for Contended {
    fn default() -> Self {
        Contended(ByBlock::new(PLACES))
    }
}

impl Contended {
    fn get(&self, tag: Tag) -> Contention {
        let place = self.0.place(tag);
        match place.is_of(tag) {
            true => Contention::from_bits(place.known.known.load(Relaxed)),
            false => Contention::default(),
        }
    }

    fn set(&self, tag: Tag, known: Contention) {
        let place = self.0.place(tag);
        place.take(tag);
        place.known.known.store(known.to_bits(), Relaxed);
    }

    /// A change has missed the block, and been made with the copy that has come. `clean`: where a
    /// copy was before.
    fn missed(&self, tag: Tag, clean: bool, cache: &NodeCache) {
        let (place, known) = (self.0.place(tag), self.get(tag));
        let last = &place.known;
        let now = |entry: u64| usize::try_from(entry).ok().and_then(|at| cache.changes(at));
        let before = match place.is_of(tag) {
            true => now(last.entry.load(Relaxed)).map(|now| {
                // Where the last copy has been, others may have been since: more changes, then.
                now.wrapping_sub(last.changes.load(Relaxed))
            }),
            false => None,
        };
        // Of a copy that went at once, no entry is known.
        let changes = before.unwrap_or(0).saturating_sub(OF_A_MISS);
        self.set(tag, known.missed((!clean).then_some(changes)));
        let entry = cache.find(tag).map_or(NOWHERE, |entry| entry as u64);
        last.entry.store(entry, Relaxed);
        last.changes.store(now(entry).unwrap_or(0), Relaxed);
    }
}

/// Does it to a word that nobody else writes meanwhile; what the word was before.
pub(super) fn apply(op: AtomicOp, word: &AtomicU64) -> u64 {
    let old = word.load(Relaxed);
    word.store(op.apply(old), Relaxed);
    old
}

impl Access {
    /// A word of a block.
    #[inline]
    pub fn look(&self, tag: Tag, at: usize) -> Result<u64, AccessError> {
        let look = |words: &[AtomicU64]| words[at].load(Relaxed);
        match self.agents.cache.read(tag, look) {
            Some(word) => Ok(word),
            None => self.look_missed(tag, at),
        }
    }

    #[cold]
    fn look_missed(&self, tag: Tag, at: usize) -> Result<u64, AccessError> {
        let known = self.agents.contended.get(tag);
        if known.delegates() {
            let seen = self.atomic_at_home(tag, at, LOOK)?;
            let now = match seen {
                Some((_, alone)) => known.looked(alone),
                None => known.refused(),
            };
            self.agents.contended.set(tag, now);
            if let Some((word, _)) = seen {
                return self.told(tag, word);
            }
        }
        self.read(tag, |words| words[at].load(Relaxed))
    }

    /// Puts a word in place of one of a block.
    #[inline]
    pub fn replace(&self, tag: Tag, at: usize, word: u64) -> Result<(), AccessError> {
        let put = |words: &[AtomicU64]| words[at].store(word, Relaxed);
        let own = tag.home().is_own();
        match own.then(|| self.agents.cache.write(tag, put)).flatten() {
            Some(()) => Ok(()),
            None => self.replace_missed(tag, at, word),
        }
    }

    /// Stores go where atomic operations do, and have no part in the decision: what else they come
    /// with, reads of the same block, is not counted.
    #[cold]
    fn replace_missed(&self, tag: Tag, at: usize, word: u64) -> Result<(), AccessError> {
        let put = AtomicOp::Bits {
            keep: 0,
            flip: word,
        };
        match self.agents.contended.get(tag).delegates() {
            true => self.atomic(tag, at, put).map(drop),
            false => self.write(tag, |words| words[at].store(word, Relaxed)),
        }
    }

    /// Does something to a word of a block, alone in the rack; what the word was before.
    #[inline]
    pub fn atomic(&self, tag: Tag, at: usize, op: AtomicOp) -> Result<u64, AccessError> {
        // What groups keep is written as other blocks of theirs.
        if !tag.home().is_own() {
            return self.write(tag, |words| apply(op, &words[at]));
        }
        match self.agents.cache.write(tag, |words| apply(op, &words[at])) {
            Some(old) => Ok(old),
            None => self.atomic_missed(tag, at, op),
        }
    }

    #[cold]
    fn atomic_missed(&self, tag: Tag, at: usize, op: AtomicOp) -> Result<u64, AccessError> {
        let contended = &self.agents.contended;
        let (known, clean) = (contended.get(tag), self.has_copy(tag));
        if clean || !known.delegates() {
            let old = self.write(tag, |words| apply(op, &words[at]))?;
            contended.missed(tag, clean, &self.agents.cache);
            return Ok(old);
        }
        if let Some((old, alone)) = self.atomic_at_home(tag, at, op)? {
            contended.set(tag, known.changed(alone));
            return self.told(tag, old);
        }
        contended.set(tag, known.refused());
        let old = self.write(tag, |words| apply(op, &words[at]))?;
        // For the next one. Who takes it first has it.
        if let Some(reserved) = self.pending.reserve(&self.agents.cache, tag) {
            // What has been done is done, whatever becomes of the copy.
            let _ = self.evict(&reserved);
        }
        Ok(old)
    }

    /// What a home has found may be told, if this node is still a member.
    fn told(&self, tag: Tag, word: u64) -> Result<u64, AccessError> {
        let cut_off = |_| AccessError::Interrupted { addr: tag.0 };
        self.confirm().map(|()| word).map_err(cut_off)
    }

    /// Has a word's home do it: what was there before, and whether nobody else asks. `None`: not
    /// while caches have the block, or the switch has its entry.
    fn atomic_at_home(
        &self,
        tag: Tag,
        at: usize,
        op: AtomicOp,
    ) -> Result<Option<(u64, bool)>, AccessError> {
        coherent(tag)?;
        self.alive(tag)?;
        if self.is_home(tag) {
            let here = self.standing.holds();
            let done = here.then(|| self.agents.at_home(tag, |words| apply(op, &words[at])));
            let done = done.flatten();
            if done.is_some() {
                self.agents.hot.count(tag, Kind::Operate);
            }
            return Ok(done.map(|old| (old, false)));
        }
        let (bytes, nothing) = (op.to_bytes(at as u32), Cell::new(0));
        let operand = Bytes::Operand(&bytes, &nothing);
        let mut slot = self.requesters.borrow()?;
        let mut stored = Stored::Open;
        let mut backoff = Backoff::new(self.patience);
        loop {
            let purpose = Purpose::Call(Kind::Operate);
            match slot.ask(purpose, tag, stored.offset(), operand) {
                Then::Done => {
                    let grant = slot.granted();
                    let done = grant.and_then(|grant| Some((grant.operated()?, grant.brings())));
                    if done.is_some() {
                        self.agents.events.count(Kind::Operate);
                        self.agents.hot.count(tag, Kind::Operate);
                    }
                    return Ok(done);
                }
                // Whether it is done, its home knows; in the new epoch, this requester keeps
                // nobody waiting meanwhile.
                Then::Again => {
                    slot.follow();
                    stored = Stored::CutOff;
                }
                // Its lock is let go in a moment. Who takes it again and again has it.
                Then::BackOff if backoff.tries() < TRIES => {
                    stored = Stored::Open;
                    backoff.wait();
                }
                Then::BackOff => return Ok(None),
                then => return Err(self.fatal(then, tag)),
            }
            self.alive(tag)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::engine::HOT;

    #[test]
    fn a_place_is_of_one_block() {
        let (contended, cache) = (Contended::default(), NodeCache::new(1 << 20, 4096));
        let tag = Tag(7 * 4096);
        // No copy is left each time: it was used once.
        for _ in 0..HOT {
            assert!(!contended.get(tag).delegates());
            contended.missed(tag, false, &cache);
        }
        assert!(contended.get(tag).delegates());
        let others = (8..).map(|n| Tag(n * 4096));
        let mut same =
            others.filter(|at| std::ptr::eq(contended.0.place(*at), contended.0.place(tag)));
        let other = same.next().expect("one of very many");
        assert!(!contended.get(other).delegates());
        contended.missed(other, false, &cache);
        assert!(!contended.get(tag).delegates());
    }
}
