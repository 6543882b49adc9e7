//! The one memory that does one operation at a time, which the rack must be indistinguishable from.
//!
//! A store or load of a world happens at one instant between an operation's beginning and its end.
//! If every load sees exactly what this memory holds at that instant,
//! the instants are linearization points.
//!
//! A block whose only current copy dies with its node is lost, and the rack says so. Who accepts
//! that goes on with what home has: so does this memory, and a new [generation](Oracle::generation)
//! of the block begins.

use super::block::{COUNTERS, counters, word_of};
use rackmem_proto::abd::GROUPS;
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;

/// A block's content, and the threads that hold its lock for their own purposes.
#[derive(Clone, Copy, Default)]
struct Known {
    counters: [u64; COUNTERS],
    generation: u32,
    /// Events that were granted its lock.
    grants: u64,
    readers: u32,
    writers: u32,
    /// Its home's memory is gone.
    dead: bool,
    /// What was home last, where a group keeps that.
    floor: [u64; COUNTERS],
    /// A node has died that may have had newer content alone.
    doubtful: bool,
}

/// What every block must look like.
#[derive(Default)]
pub struct Oracle {
    blocks: BTreeMap<Tag, Known>,
    stores: u64,
    /// Memory that homes have given out, and how long each object is.
    given: BTreeMap<Tag, u64>,
    /// By group, where addresses begin that are of no removed region.
    pub removed: [u64; GROUPS],
}

impl Oracle {
    fn known(&mut self, tag: Tag) -> &mut Known {
        self.blocks.entry(tag).or_default()
    }

    /// Whether a block is of a region that is removed.
    pub fn is_removed(&self, tag: Tag) -> bool {
        let group = tag.home().group().map(usize::from);
        group.is_some_and(|group| tag.offset() < self.removed[group])
    }

    /// Whether a copy is current.
    pub fn agrees(&self, tag: Tag, words: &[u64]) -> bool {
        self.expected(tag) == counters(words)
    }

    /// What a block must hold now.
    pub fn expected(&self, tag: Tag) -> [u64; COUNTERS] {
        self.blocks
            .get(&tag)
            .map_or([0; COUNTERS], |known| known.counters)
    }

    /// How often a block's content was lost.
    pub fn generation(&self, tag: Tag) -> u32 {
        self.blocks.get(&tag).map_or(0, |known| known.generation)
    }

    /// Writes the next value without a look at the old one.
    pub fn write(&mut self, tag: Tag, counter: usize, words: &mut [u64]) -> u64 {
        self.stores += 1;
        let next = &mut self.known(tag).counters[counter % COUNTERS];
        *next += 1;
        words[word_of(counter)] = *next;
        *next
    }

    /// Increments what the copy says.
    pub fn add(&mut self, tag: Tag, counter: usize, words: &mut [u64]) -> u64 {
        self.stores += 1;
        self.known(tag).counters[counter % COUNTERS] += 1;
        words[word_of(counter)] += 1;
        words[word_of(counter)]
    }

    /// Writes a block as a whole.
    pub fn store(&mut self, tag: Tag, words: &[u64]) {
        let known = self.known(tag);
        let before = std::mem::replace(&mut known.counters, counters(words));
        let [before, now] = [before, known.counters].map(|counters| counters.iter().sum::<u64>());
        self.stores = self.stores.wrapping_add(now).wrapping_sub(before);
    }

    /// The loss of a block's content is accepted: this is what it holds from here on.
    pub fn accept_loss(&mut self, tag: Tag, words: &[u64]) {
        let known = self.known(tag);
        known.counters = counters(words);
        known.generation += 1;
        (known.floor, known.doubtful) = (known.counters, false);
    }

    /// A node has died that may have had a block's content alone.
    pub fn doubt(&mut self, tag: Tag) {
        self.known(tag).doubtful = true;
    }

    /// Whether one has since the block came home.
    pub fn is_doubtful(&self, tag: Tag) -> bool {
        self.blocks.get(&tag).is_some_and(|known| known.doubtful)
    }

    /// A block's content has come home, where a group keeps that.
    pub fn came_home(&mut self, tag: Tag) {
        let known = self.known(tag);
        (known.floor, known.doubtful) = (known.counters, false);
    }

    /// What was home last.
    pub fn floor(&self, tag: Tag) -> [u64; COUNTERS] {
        self.blocks
            .get(&tag)
            .map_or([0; COUNTERS], |known| known.floor)
    }

    /// An event was granted a block's lock.
    pub fn grant(&mut self, tag: Tag) {
        self.known(tag).grants += 1;
    }

    /// Events that were granted a block's lock so far.
    pub fn grants(&self, tag: Tag) -> u64 {
        self.blocks.get(&tag).map_or(0, |known| known.grants)
    }

    /// A thread holds a block's lock from now on. False if it must not, because of another.
    pub fn hold(&mut self, tag: Tag, shared: bool) -> bool {
        let known = self.known(tag);
        let alone = known.writers == 0 && (shared || known.readers == 0);
        *known.side(shared) += 1;
        alone
    }

    /// It lets go.
    pub fn let_go(&mut self, tag: Tag, shared: bool) {
        let side = self.known(tag).side(shared);
        *side = side.saturating_sub(1);
    }

    /// A thread has been given memory. `false`: some of it is another's.
    pub fn give(&mut self, tag: Tag, len: u64) -> bool {
        let before = self.given.range(..Tag(tag.0 + len)).next_back();
        let free = before.is_none_or(|(at, have)| at.0 + have <= tag.0);
        self.given.insert(tag, len);
        free
    }

    /// It gives it back, from now on.
    pub fn take_back(&mut self, tag: Tag) {
        self.given.remove(&tag);
    }

    /// Stores so far, which is what all counters sum up to, unless some were lost: of one of a
    /// whole block, what it has added to them.
    pub fn stores(&self) -> u64 {
        self.stores
    }

    /// What all counters must sum up to.
    pub fn sum(&self) -> u64 {
        self.blocks
            .values()
            .filter(|known| !known.dead)
            .flat_map(|known| known.counters)
            .sum()
    }

    /// The memory of a home is gone, and all its blocks.
    pub fn bury(&mut self, gone: impl Fn(Tag) -> bool) {
        for (tag, known) in &mut self.blocks {
            known.dead |= gone(*tag);
        }
    }
}

impl Known {
    fn side(&mut self, shared: bool) -> &mut u32 {
        if shared {
            &mut self.readers
        } else {
            &mut self.writers
        }
    }
}
