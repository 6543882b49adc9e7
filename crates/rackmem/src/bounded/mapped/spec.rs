//! What an arena is to be.

use super::front::Front;
use crate::error::ArenaError;
use crate::node::Node;
use rackmem_proto::bi::{BoardLayout, Bound, RING};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest tick: a thread sleeps in between.
const LEAST_TICK: Duration = Duration::from_millis(1);
/// The longest: what is freed waits for several.
const LONGEST_TICK: Duration = Duration::from_secs(60);

/// Whose cache is in front of the memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CacheKind {
    Processor,
    Emulated,
}

/// Where an arena is, how large, and how old what is read may be: what all nodes have to agree on.
///
/// ```
/// use rackmem::bounded::ArenaSpec;
/// use std::time::Duration;
///
/// // Memory of several machines, or of one host: `/dev/dax0.0`, a file on famfs, `/dev/shm/...`.
/// let spec = ArenaSpec::new("/dev/dax0.0", 1 << 30).bound(Duration::from_millis(10));
/// assert_eq!(spec, spec.clone().ring(4096));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArenaSpec {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) cache: CacheKind,
    pub(super) all: bool,
    bound: Duration,
    ring: u64,
}

impl ArenaSpec {
    /// So many bytes at the beginning of a file or a device.
    pub fn new(path: impl AsRef<Path>, bytes: u64) -> Self {
        ArenaSpec {
            path: path.as_ref().to_owned(),
            bytes,
            cache: CacheKind::Processor,
            all: false,
            bound: Duration::from_millis(10),
            ring: RING,
        }
    }

    /// How old what a section reads may be when it begins; 10 ms without this call, and 5 ms at
    /// least. A tick is a fifth of it, and a section may last as long.
    #[must_use]
    pub fn bound(mut self, bound: Duration) -> Self {
        self.bound = bound;
        self
    }

    /// Entries of a ring: what a node has freed and others may still read, and what it has
    /// modified and others are told of by name; 4,096 without this call.
    #[must_use]
    pub fn ring(mut self, entries: u64) -> Self {
        self.ring = entries;
        self
    }

    /// Quiescences of this node drop everything that may have been modified instead of what others
    /// say they have (the paper's first way of invalidation).
    #[must_use]
    pub fn drop_everything(mut self) -> Self {
        self.all = true;
        self
    }

    /// Each process has a cache of its own in front of the memory, which nothing keeps coherent:
    /// what is forgotten to be written back or dropped is seen on one host, too. For tests: it is
    /// slower than what it stands for.
    #[must_use]
    pub fn emulated(mut self) -> Self {
        self.cache = CacheKind::Emulated;
        self
    }

    /// What it is in this rack.
    pub(super) fn front(&self, node: &Node) -> Result<Front, ArenaError> {
        let bound = Bound::DEFAULT;
        let tick = self.bound / bound.ticks() as u32;
        let bad = |why| Err(ArenaError::BadSpec { why });
        if tick < LEAST_TICK {
            return bad("the bound is below 5 ms, and a tick below 1 ms");
        }
        if tick > LONGEST_TICK {
            return bad("the bound is above 5 minutes, and a tick above a minute");
        }
        if !(2..=RING).contains(&self.ring) {
            return bad("a ring has 2 to 4,096 entries");
        }
        let board = BoardLayout {
            domains: node.nodes() as u8,
            room: self.ring,
        };
        let tick = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX);
        let front = Front::new((node.inner.rack, self.bytes), tick, board, bound);
        front.is_sound()?;
        Ok(front)
    }
}
