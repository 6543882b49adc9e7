//! The store's named region: what every node must agree on.
//!
//! ```text
//! block 0   0 epoch: u64                 flushes so far
//!           8 flushed: [u64; 18]         per database: the epoch of its last flush
//! block 1   0 state: u64                 0 new, 1 ready
//!           8 layout: u64                version of all these layouts
//!          16 buckets: u64
//!          24 seed: u64                  of the hash
//!          32 magic: u64                 of the pages
//!          40 lost_buckets: u64          that began anew because a node had died
//!          48 lost_values: u64           that left a bucket for the same reason
//!          56 bus: u64                  address of the nodes' letters to each other, 0 before the
//!                                       first (`store/bus`)
//!          64 events: u64               classes of keyspace events that are published, as bits
//! block 2.. one per node: its counters
//! then      slabs: [u64]                 address of the locks of each slab of buckets
//! ```
//!
//! Block 0 is read by every operation and written only by flushes, so every node keeps a copy.
//! Creation and flushes happen under the lock named by the region's own address.

use rackmem::window::{Window, WindowMut};

use crate::DATABASES;
use crate::memory::PAGE_STRIDE;

/// Version of the layouts in this folder.
pub(crate) const LAYOUT: u64 = 4;
/// The database that the servers keep their own things in. No client sees it.
pub(crate) const INTERNAL: u8 = DATABASES as u8;
/// The database of scripts, which is flushed by itself.
pub(crate) const SCRIPTS: u8 = INTERNAL + 1;
/// All databases, with those that no client sees.
pub(crate) const ALL_DATABASES: usize = SCRIPTS as usize + 1;
const FLUSHED: usize = 8;
/// Bytes of block 0 in use.
pub(crate) const FLUSH_BYTES: usize = FLUSHED + 8 * ALL_DATABASES;
/// Bytes of block 1 in use.
pub(crate) const SETTINGS_BYTES: usize = 72;
/// Words of block 1 that change: see above.
pub(crate) const BUS: usize = 56;
pub(crate) const EVENTS: usize = 64;
const LOST_BUCKETS: usize = 40;
const LOST_VALUES: usize = 48;
/// Buckets in a slab, at most.
const SLAB_BUCKETS: usize = 4096;

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
    pub buckets: u64,
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
            buckets: view.u64(16),
            seed: view.u64(24),
            magic: view.u64(32),
        }
    }

    /// The store is ready, with these.
    pub fn store(&self, view: &mut WindowMut<'_>) {
        view.set_u64(0, State::Ready as u64);
        for (i, word) in [self.layout, self.buckets, self.seed, self.magic]
            .into_iter()
            .enumerate()
        {
            view.set_u64(8 + i * 8, word);
        }
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

/// Where the parts of the region are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub block: usize,
    pub nodes: usize,
    pub buckets: usize,
    /// Buckets in a slab, a power of two.
    pub slab_buckets: usize,
}

impl Map {
    pub fn new(block: usize, nodes: usize, buckets: usize) -> Self {
        let fair = buckets / nodes.next_power_of_two().min(buckets);
        Self {
            block,
            nodes,
            buckets,
            slab_buckets: fair.min(SLAB_BUCKETS),
        }
    }

    pub fn slabs(&self) -> usize {
        self.buckets / self.slab_buckets
    }

    /// Bytes of addresses of a slab's locks.
    pub fn slab_len(&self) -> usize {
        self.slab_buckets * PAGE_STRIDE
    }

    /// A bucket's slab, and its place there.
    #[inline]
    pub fn place(&self, bucket: usize) -> (usize, usize) {
        let shift = self.slab_buckets.trailing_zeros();
        (bucket >> shift, bucket & (self.slab_buckets - 1))
    }

    /// The node that a slab's memory is at, and the further pages of its buckets.
    pub fn home(&self, slab: usize) -> u16 {
        (slab % self.nodes) as u16
    }

    pub fn settings(&self, base: u64) -> u64 {
        base + self.block as u64
    }

    pub fn counters(&self, base: u64, node: usize) -> u64 {
        base + ((2 + node) * self.block) as u64
    }

    pub fn slab_table(&self, base: u64) -> u64 {
        self.counters(base, self.nodes)
    }

    pub fn region_len(&self) -> usize {
        (2 + self.nodes) * self.block + (self.slabs() * 8).next_multiple_of(self.block)
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
}

/// All of block 0.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flushes {
    pub epoch: u64,
    pub flushed: [u64; ALL_DATABASES],
}

impl Flushes {
    pub fn load(view: &Window<'_>) -> Self {
        Self {
            epoch: view.u64(0),
            flushed: std::array::from_fn(|db| view.u64(FLUSHED + 8 * db)),
        }
    }

    pub fn era(&self, db: u8) -> Era {
        Era {
            epoch: self.epoch,
            flushed: self.flushed[usize::from(db) % ALL_DATABASES],
        }
    }
}

/// One database's part of block 0.
#[inline]
pub(crate) fn load_era(view: &Window<'_>, db: u8) -> Era {
    Era {
        epoch: view.u64(0),
        flushed: view.u64(FLUSHED + 8 * usize::from(db)),
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
