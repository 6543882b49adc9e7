//! The store's named region: what every node must agree on.
//!
//! ```text
//! block 0   0 epoch: u64                 flushes so far
//!           8 flushed: [u64; 18]         per database: the epoch of its last flush
//!         152 depth: u64                 no bucket is deeper; 0: none is deeper than the roots
//!         160 watchers: u64              nodes that hear of every change
//!         168 right: u64                 address of the lock of those who flush (`store/right`)
//! block 1   0 state: u64                 0 new, 1 ready
//!           8 layout: u64                version of all these layouts
//!          16 roots: u64                the buckets that it began with
//!          24 seed: u64                  of the hash
//!          32 magic: u64                 of the pages
//!          40 lost_buckets: u64          that began anew because a node had died
//!          48 lost_values: u64           that left a bucket for the same reason
//!          56 events: u64                classes of keyspace events that are published, as bits
//!          64 leaving: u64              the nodes that leave, as bits; from bit 32 on the one
//!                                       whose turn it is, and one (`store/leave`)
//! block 2.. one per node: its counters
//! then      slabs: [u64]                 the table of slabs, of all generations
//! then      one per node: its subscriptions (`store/bus/directory`)
//! then      one per pair of nodes: what one tells the other (`store/bus/lane`)
//! ```
//!
//! The table has the address of each slab's locks, 0 while no bucket of it was needed, and one more
//! when it took the place of locks that died with their node.
//!
//! Nothing of the store is anywhere else but what these addresses lead to, and all of that may die
//! with its node. So the store lives as long as this region does ([`Memory::region`]).
//!
//! [`Memory::region`]: crate::memory::Memory::region
//!
//! Buckets are numbered by the lowest bits of the hashes that are theirs. The roots have as many
//! bits as there are roots; a bucket of `d` bits that splits keeps the hashes whose next bit is 0,
//! and the others go to the bucket whose number is higher by 2^d. So the numbers of one length are
//! a generation, of which all numbers of other lengths are independent.
//!
//! Block 0 is read by every operation and written by flushes, and when a bucket becomes the
//! deepest, so every node keeps a copy.
//! What must not be taken back when its writer dies is published (`Memory::publish`).

use rackmem::window::{Window, WindowMut};

use crate::DATABASES;
use crate::memory::PAGE_STRIDE;

/// Version of the layouts in this folder.
pub(crate) const LAYOUT: u64 = 9;
/// The database that the servers keep their own things in. No client sees it.
pub(crate) const INTERNAL: u8 = DATABASES as u8;
/// The database of scripts, which is flushed by itself.
pub(crate) const SCRIPTS: u8 = INTERNAL + 1;
/// All databases, with those that no client sees.
pub(crate) const ALL_DATABASES: usize = SCRIPTS as usize + 1;
const FLUSHED: usize = 8;
/// Bytes of block 0 in use.
pub(crate) const FLUSH_BYTES: usize = RIGHT + 8;
const DEPTH: usize = FLUSHED + 8 * ALL_DATABASES;
/// Where block 0 tells which nodes want to hear of every change, as bits.
pub(crate) const WATCHERS: usize = DEPTH + 8;
/// Where it names the lock of those who flush.
pub(crate) const RIGHT: usize = WATCHERS + 8;
/// Bytes of block 1 in use.
pub(crate) const SETTINGS_BYTES: usize = LEAVING + 8;
/// Words of block 1 that change: see above.
pub(crate) const EVENTS: usize = 56;
/// Where it tells which nodes leave.
pub(crate) const LEAVING: usize = 64;
const LOST_BUCKETS: usize = 40;
const LOST_VALUES: usize = 48;
/// Buckets in a slab, at most.
const SLAB_BUCKETS: usize = 4096;
/// Bits of a bucket's number at most: a node has room for two million locks
/// (`rackmem::LockError::TooManyLocks`).
pub(crate) const MOST_DEPTH: u8 = 20;
/// Generations of buckets at most: the roots, and one for each bit more.
const GENERATIONS: usize = MOST_DEPTH as usize + 1;

const _: () = assert!(FLUSH_BYTES <= 256 && SETTINGS_BYTES <= 256);

/// Where a store's set-up stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    New,
    Ready,
}

/// The settings of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub layout: u64,
    /// Buckets that it began with.
    pub roots: u64,
    pub seed: u64,
    pub magic: u64,
}

impl Settings {
    pub fn state(view: &Window<'_>) -> State {
        match view.u64(0) {
            0 => State::New,
            _ => State::Ready,
        }
    }

    pub fn load(view: &Window<'_>) -> Self {
        Self {
            layout: view.u64(8),
            roots: view.u64(16),
            seed: view.u64(24),
            magic: view.u64(32),
        }
    }

    /// The store is ready with these, unless it is already. The settings that it has.
    pub fn store_if_new(&self, view: &mut WindowMut<'_>) -> Self {
        if Settings::state(view) == State::Ready {
            return Settings::load(view);
        }
        view.set_u64(0, State::Ready as u64);
        for (i, word) in [self.layout, self.roots, self.seed, self.magic]
            .into_iter()
            .enumerate()
        {
            view.set_u64(8 + i * 8, word);
        }
        *self
    }
}

/// What has died with nodes since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Buckets that began anew, empty.
    pub buckets: u64,
    /// Values, and pages of values, that left their bucket.
    pub values: u64,
}

impl Losses {
    pub(crate) fn load(view: &Window<'_>) -> Self {
        Self {
            buckets: view.u64(LOST_BUCKETS),
            values: view.u64(LOST_VALUES),
        }
    }

    pub(crate) fn add(view: &mut WindowMut<'_>, buckets: u64, values: u64) {
        let old = Self::load(view);
        view.set_u64(LOST_BUCKETS, old.buckets + buckets);
        view.set_u64(LOST_VALUES, old.values + values);
    }
}

/// Where the parts of the region are, and which bucket is in which slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub block: usize,
    pub nodes: usize,
    /// Buckets in a slab at most.
    most: usize,
    /// Buckets that the store began with, a power of two.
    pub roots: usize,
    /// The slabs of each generation: the first one's number.
    first: [u32; GENERATIONS + 1],
    /// Buckets in a slab of each generation, as a power of two.
    shift: [u8; GENERATIONS],
}

impl Map {
    /// Of a store that begins with so many buckets, and whose slabs have `most` buckets at most.
    pub fn new(block: usize, nodes: usize, roots: usize, most: usize) -> Self {
        let mut map = Self {
            block,
            nodes,
            most,
            roots,
            first: [0; GENERATIONS + 1],
            shift: [0; GENERATIONS],
        };
        for generation in 0..GENERATIONS {
            // Where slabs are short they are many: none for more buckets than there can be.
            if most < SLAB_BUCKETS && roots << generation > 1 << MOST_DEPTH {
                map.first[generation + 1] = map.first[generation];
                continue;
            }
            let buckets = map.buckets_of(generation);
            let fair = buckets / nodes.next_power_of_two().min(buckets);
            let slab = fair.min(SLAB_BUCKETS).min(most.max(1));
            map.shift[generation] = slab.ilog2() as u8;
            map.first[generation + 1] = map.first[generation] + (buckets / slab) as u32;
        }
        map
    }

    /// That of a store that begins with so many.
    pub fn with_roots(&self, roots: usize) -> Self {
        Self::new(self.block, self.nodes, roots, self.most)
    }

    /// Bits of a root's number.
    pub fn root_depth(&self) -> u8 {
        self.roots.trailing_zeros() as u8
    }

    fn buckets_of(&self, generation: usize) -> usize {
        match generation {
            0 => self.roots,
            later => self.roots << (later - 1),
        }
    }

    /// A bucket's generation, and its place there.
    #[inline]
    fn generation(&self, bucket: usize) -> (usize, usize) {
        if bucket < self.roots {
            return (0, bucket);
        }
        let top = bucket.ilog2();
        let generation = (top - self.roots.trailing_zeros()) as usize + 1;
        (generation.min(GENERATIONS - 1), bucket - (1 << top))
    }

    /// A bucket's slab, and its place there.
    #[inline]
    pub fn place(&self, bucket: usize) -> (usize, usize) {
        let (generation, at) = self.generation(bucket);
        let shift = self.shift[generation];
        let slab = self.first[generation] as usize + (at >> shift);
        (slab, at & ((1 << shift) - 1))
    }

    /// The slabs of the roots.
    pub fn root_slabs(&self) -> usize {
        self.first[1] as usize
    }

    fn generation_of(&self, slab: usize) -> usize {
        let later = self.first.iter().skip(1);
        let before = later.take_while(|first| **first as usize <= slab);
        before.count().min(GENERATIONS - 1)
    }

    /// Buckets in a slab.
    pub fn slab_buckets(&self, slab: usize) -> usize {
        1 << self.shift[self.generation_of(slab)]
    }

    /// Bytes of addresses of a slab's locks.
    pub fn slab_len(&self, slab: usize) -> usize {
        self.slab_buckets(slab) * PAGE_STRIDE
    }

    /// The node that a slab's memory begins at, and the further pages of its buckets. A node that
    /// leaves moves it: the slab's address says where it is.
    pub fn home(&self, slab: usize) -> u16 {
        (slab % self.nodes) as u16
    }

    /// The bucket that a bucket was split from. It has none: it is a root.
    #[inline]
    pub fn parent(&self, bucket: usize) -> Option<usize> {
        (bucket >= self.roots).then(|| bucket - (1 << bucket.ilog2()))
    }

    /// Bits of a bucket's number when it came into being.
    #[inline]
    pub fn birth_depth(&self, bucket: usize) -> u8 {
        match bucket < self.roots {
            true => self.root_depth(),
            false => bucket.ilog2() as u8 + 1,
        }
    }

    pub fn settings(&self, base: u64) -> u64 {
        base + self.block as u64
    }

    pub fn counters(&self, base: u64, node: usize) -> u64 {
        base + ((2 + node) * self.block) as u64
    }

    /// Where a slab stands in the store's table.
    pub fn entry(&self, base: u64, slab: usize) -> u64 {
        self.counters(base, self.nodes) + slab as u64 * 8
    }

    /// What a node tells of its subscriptions.
    pub fn directory(&self, base: u64, node: usize) -> u64 {
        let slabs = self.first[GENERATIONS] as usize;
        let table = (slabs * 8).next_multiple_of(self.block);
        self.counters(base, self.nodes) + (table + node * self.block) as u64
    }

    /// What a node tells another one.
    pub fn lane(&self, base: u64, to: usize, from: usize) -> u64 {
        self.directory(base, self.nodes) + ((to * self.nodes + from) * self.block) as u64
    }

    pub fn region_len(&self) -> usize {
        self.lane(0, self.nodes, 0) as usize
    }
}

/// The flushes an operation knows of when it starts.
///
/// A page says up to which flush it has been cleaned; whatever it holds of a database flushed later
/// does not exist. An operation that knows of fewer flushes than the page starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Era {
    pub epoch: u64,
    /// Of the operation's database.
    pub flushed: u64,
    /// The nodes that want to hear of every change, as bits.
    pub watchers: u64,
}

/// All of block 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flushes {
    pub epoch: u64,
    pub flushed: [u64; ALL_DATABASES],
    /// Bits of the deepest bucket's number; 0 as long as there are only roots.
    pub depth: u8,
    /// The nodes that want to hear of every change, as bits.
    pub watchers: u64,
}

impl Flushes {
    pub fn load(view: &Window<'_>) -> Self {
        Self {
            epoch: view.u64(0),
            depth: view.u64(DEPTH).min(u64::from(MOST_DEPTH)) as u8,
            flushed: std::array::from_fn(|db| view.u64(FLUSHED + 8 * db)),
            watchers: view.u64(WATCHERS),
        }
    }

    pub fn era(&self, db: u8) -> Era {
        Era {
            epoch: self.epoch,
            flushed: self.flushed[usize::from(db) % ALL_DATABASES],
            watchers: self.watchers,
        }
    }
}

/// One database's part of block 0.
#[inline]
pub(crate) fn load_era(view: &Window<'_>, db: u8) -> Era {
    Era {
        epoch: view.u64(0),
        flushed: view.u64(FLUSHED + 8 * usize::from(db)),
        watchers: view.u64(WATCHERS),
    }
}

/// Flushes one database, or all that clients see.
pub(crate) fn flush(view: &mut WindowMut<'_>, db: Option<u8>) {
    let epoch = view.u64(0) + 1;
    view.set_u64(0, epoch);
    let flushed = match db {
        Some(db) => usize::from(db)..usize::from(db) + 1,
        None => 0..DATABASES,
    };
    for i in flushed {
        view.set_u64(FLUSHED + 8 * i, epoch);
    }
}

/// A bucket may be as deep as this from now on.
pub(crate) fn deepen(view: &mut WindowMut<'_>, depth: u8) {
    let depth = u64::from(depth).max(view.u64(DEPTH));
    view.set_u64(DEPTH, depth);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bucket_has_a_place_of_its_own() {
        for (nodes, roots, most) in [
            (1, 1, 4096),
            (3, 4, 4096),
            (4, 1024, 64),
            (2, 1 << 16, 4096),
        ] {
            let map = Map::new(256, nodes, roots, most);
            let (mut next, mut ends) = ((0, 0), 0);
            for bucket in 0..1usize << 18 {
                let (slab, at) = map.place(bucket);
                if (slab, at) != next {
                    assert_eq!((slab, at), (next.0 + 1, 0), "{bucket} of {roots}");
                    ends += 1;
                }
                assert!(at < map.slab_buckets(slab) && map.slab_buckets(slab) <= most);
                next = (slab, at + 1);
            }
            let slabs = map.place((1 << 18) - 1).0 + 1;
            assert_eq!(ends + 1, slabs);
            let full: usize = (0..slabs).map(|slab| map.slab_buckets(slab)).sum();
            assert_eq!(full, 1 << 18);
        }
    }

    /// More would take memory that nothing is ever in: a store with copies has no other.
    #[test]
    fn the_table_has_a_place_for_each_bucket_that_there_can_be_and_no_more() {
        for roots in [1, 64, 1024, 1 << MOST_DEPTH] {
            let map = Map::new(4096, 3, roots, 64);
            let slabs = map.first[GENERATIONS] as usize;
            let all: usize = (0..slabs).map(|slab| map.slab_buckets(slab)).sum();
            assert_eq!(all, 1 << MOST_DEPTH, "{roots}");
            assert!(map.region_len() < 1 << 20, "{roots}: {}", map.region_len());
        }
    }

    #[test]
    fn a_bucket_is_its_parent_and_a_bit() {
        let map = Map::new(256, 3, 8, 64);
        assert_eq!((map.parent(7), map.birth_depth(7)), (None, 3));
        assert_eq!((map.parent(8 + 5), map.birth_depth(8 + 5)), (Some(5), 4));
        assert_eq!((map.parent(64 + 8), map.birth_depth(64 + 8)), (Some(8), 7));
        assert_eq!(map.entry(0, 0), 5 * 256);
        assert!(map.entry(0, map.place((1 << MOST_DEPTH) - 1).0) < map.directory(0, 0));
        assert_eq!(map.region_len() as u64, map.directory(0, 0) + (3 + 9) * 256);
    }
}
