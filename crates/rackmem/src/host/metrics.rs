//! What a node and a rack have done, in figures.

use crate::bytes::desk::KernelCacheCounts;
use crate::data_plane::kernel::reads::KernelBlockCounts;
use crate::data_plane::kernel::reads::{KernelItemCounts, KernelReadCounts};
use crate::host::rebuilding::RebuildMetrics;
use crate::host::replicated::CopyCounts;
use rackmem_fabric::PacketCounts;
use rackmem_proto::flowcc::{HomeCounters, ShadowCounters};
use rackmem_proto::switch::{LockCounters, SwitchCounters};
use rackmem_proto::wire::{GlobalStatus, Kind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Coherence events of a node, by kind.
#[derive(Default)]
pub(crate) struct MissCounters {
    kinds: [AtomicU64; 5],
    refused: AtomicU64,
    asked: AtomicU64,
    ahead: AtomicU64,
    in_the_way: AtomicU64,
}

const EVENTS: [Kind; 5] = [
    Kind::ReadMiss,
    Kind::WriteMiss,
    Kind::WriteShared,
    Kind::EvictShared,
    Kind::EvictModified,
];

impl MissCounters {
    pub fn count(&self, kind: Kind) {
        match EVENTS.iter().position(|&event| event == kind) {
            Some(at) => self.kinds[at].fetch_add(1, Relaxed),
            None => self.asked.fetch_add(1, Relaxed),
        };
    }

    pub fn refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// A block has left before its room was needed.
    pub fn evicted_ahead(&self) {
        self.ahead.fetch_add(1, Relaxed);
    }

    /// A block has left, and an operation has waited for that.
    pub fn evicted_in_the_way(&self) {
        self.in_the_way.fetch_add(1, Relaxed);
    }

    pub fn events(&self) -> EventCounts {
        let [
            read_miss,
            write_miss,
            write_shared,
            evict_shared,
            evict_modified,
        ] = std::array::from_fn(|i| self.kinds[i].load(Relaxed));
        EventCounts {
            read_miss,
            write_miss,
            write_shared,
            evict_shared,
            evict_modified,
            refused: self.refused.load(Relaxed),
            asked: self.asked.load(Relaxed),
            evicted_ahead: self.ahead.load(Relaxed),
            evicted_in_the_way: self.in_the_way.load(Relaxed),
        }
    }
}

/// Coherence events that a node has completed, and requests of its that were refused and tried
/// again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    /// Reads of blocks that were not in the cache.
    pub read_miss: u64,
    /// Writes of blocks that were not in the cache.
    pub write_miss: u64,
    /// Writes of blocks that were in the cache, clean.
    pub write_shared: u64,
    /// Clean blocks dropped for others.
    pub evict_shared: u64,
    /// Dirty blocks written back for others.
    pub evict_modified: u64,
    /// Requests refused because of concurrent events.
    pub refused: u64,
    /// Questions to guests.
    pub asked: u64,
    /// Of the evictions, those of blocks that left before their room was needed.
    pub evicted_ahead: u64,
    /// Of the evictions, those that an operation had to wait for, to have room.
    pub evicted_in_the_way: u64,
}

impl EventCounts {
    /// Events that an access had to wait for.
    pub fn misses(&self) -> u64 {
        self.read_miss + self.write_miss + self.write_shared + self.asked
    }

    /// Every event.
    pub fn total(&self) -> u64 {
        self.misses() + self.evict_shared + self.evict_modified
    }
}

impl std::ops::Add for EventCounts {
    type Output = EventCounts;
    fn add(self, o: EventCounts) -> EventCounts {
        EventCounts {
            read_miss: self.read_miss + o.read_miss,
            write_miss: self.write_miss + o.write_miss,
            write_shared: self.write_shared + o.write_shared,
            evict_shared: self.evict_shared + o.evict_shared,
            evict_modified: self.evict_modified + o.evict_modified,
            refused: self.refused + o.refused,
            asked: self.asked + o.asked,
            evicted_ahead: self.evicted_ahead + o.evicted_ahead,
            evicted_in_the_way: self.evicted_in_the_way + o.evicted_in_the_way,
        }
    }
}

impl std::ops::Sub for EventCounts {
    type Output = EventCounts;
    fn sub(self, o: EventCounts) -> EventCounts {
        EventCounts {
            read_miss: self.read_miss - o.read_miss,
            write_miss: self.write_miss - o.write_miss,
            write_shared: self.write_shared - o.write_shared,
            evict_shared: self.evict_shared - o.evict_shared,
            evict_modified: self.evict_modified - o.evict_modified,
            refused: self.refused - o.refused,
            asked: self.asked - o.asked,
            evicted_ahead: self.evicted_ahead - o.evicted_ahead,
            evicted_in_the_way: self.evicted_in_the_way - o.evicted_in_the_way,
        }
    }
}

/// One node's figures.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::diagnostics::NodeMetrics;
///
/// let rack = Rack::local(2)?;
/// let word = rack.node(0).alloc(1u64)?;
/// let before: NodeMetrics = rack.node(1).metrics();
/// rack.node(1).load(word.addr())?;
/// assert_eq!(rack.node(1).metrics().events.read_miss, before.events.read_miss + 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct NodeMetrics {
    /// Coherence events.
    pub events: EventCounts,
    /// Copies that others' writes have taken from this node.
    pub invalidated: u64,
    /// What the kernel of this host has done with orders to invalidate copies, where it answers
    /// them. What it has answered is not in `received`.
    pub kernel_cache: Option<KernelCacheCounts>,
    /// What it has done with readers' misses for which this cache has the block, where it gives
    /// that. What it has answered is not in `received`.
    pub kernel_copies: Option<KernelCacheCounts>,
    /// What the kernel of this host has done with requests for blocks of its home that the switch
    /// had granted, where it answers them. What it has answered is not in `received` or `at_home`.
    pub kernel_blocks: Option<KernelBlockCounts>,
    /// Blocks this node's cache has provided to others.
    pub provided: u64,
    /// What its home agent has done.
    pub home: HomeCounters,
    /// Parts of its home, whose blocks are served side by side.
    pub home_shards: usize,
    /// Packets its home agent has received.
    pub at_home: u64,
    /// Chunks, from the first, to the last that its home agent has given memory of.
    pub chunks: u32,
    /// What of its memory is given out.
    pub memory: MemoryMetrics,
    /// Packets its agents have received, by kind.
    pub received: PacketCounts,
    /// Packets its requesters have sent, by kind.
    pub sent: PacketCounts,
    /// Packets sent again because an answer did not come in time.
    pub retransmissions: u64,
    /// Packets that its agents dropped: of another epoch, stale, or against the protocol.
    pub ignored: u64,
    /// What making the directory anew has come to.
    pub rebuilds: RebuildMetrics,
    /// The shadow of the switch, if this node keeps it.
    pub shadow: Option<ShadowMetrics>,
    /// What it has done with objects.
    pub objects: ObjectCounts,
    /// What it has done with bounded memory.
    pub bounded: BoundedCounts,
    /// What it has done with arenas.
    pub arenas: ArenaCounts,
    /// Blocks its cache has room for.
    pub cache_blocks: usize,
    /// What its threads have done on replicated memory.
    pub copies: CopyCounts,
}

/// What a node has done with objects. Reads of memory that its process has are not counted, unless
/// something stood in their way; which way reads go is seen by the handles that were made, `here`,
/// `mapped` and `elsewhere`.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::diagnostics::ObjectCounts;
/// use rackmem::{Contract, Fabric, Rack, RegionSpec};
///
/// let rack = Rack::builder(2).fabric(Fabric::Udp).build()?;
/// let spec = RegionSpec::new("objects", 1 << 20).contract(Contract::Object);
/// let object = rack.node(0).create_region(&spec)?.alloc(7u64)?;
/// rack.node(1).attach_object::<u64>(object.at())?.read()?;
/// let home: ObjectCounts = rack.node(0).metrics().objects;
/// assert_eq!((home.live, home.here, home.asked), (1, 1, 0));
/// let reader: ObjectCounts = rack.node(1).metrics().objects;
/// assert_eq!((reader.elsewhere, reader.asked, reader.rounds), (1, 1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ObjectCounts {
    /// Objects of its home that there are.
    pub live: u64,
    /// Slabs of 64 KiB of its home that have objects of some size.
    pub slabs: u32,
    /// Handles on objects whose memory is this process' own: a read is a copy.
    pub here: u64,
    /// On objects whose memory another process of the host has, and this one has mapped: a read is
    /// a copy, and nobody at the home is asked.
    pub mapped: u64,
    /// On objects whose memory this process has not: the home's agent is asked by a packet.
    pub elsewhere: u64,
    /// Reads, writes and other calls of which a home's agent was asked.
    pub asked: u64,
    /// How often a thread waited for answers: reads that go together wait once.
    pub rounds: u64,
    /// Reads by handles on mapped memory of which the home was asked all the same, to keep writers
    /// out.
    pub fallbacks: u64,
    /// Attempts to read that found an object which had moved while it was copied.
    pub torn: u64,
    /// Attempts to read that met a writer.
    pub locked: u64,
    /// Attempts to read with writers kept out.
    pub exclusive: u64,
    /// Reads of what the program had already.
    pub not_modified: u64,
    /// Writes that were not made since the object had another version.
    pub conflicts: u64,
    /// Reads of other homes' objects that the kernels of their hosts have answered.
    pub by_kernel: u64,
    /// That homes' agents have answered, wholly or in part.
    pub by_agent: u64,
    /// What the kernel of this host has done with reads of this node's objects, where it answers
    /// them.
    pub in_kernel: Option<KernelReadCounts>,
}

/// What a node has done with bounded memory.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::bounded::Domain;
/// use rackmem::diagnostics::BoundedCounts;
/// use rackmem::{Contract, Rack, RegionSpec};
/// use std::time::Duration;
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("items", 64 * 8).contract(Contract::Bounded);
/// let region = rack.node(0).create_region(&spec)?;
/// let items: Domain<u64> = Domain::of(&rack.node(1).open_region(&spec)?, Duration::from_secs(9))?;
/// items.read(3)?;
/// items.read(3)?;
/// let BoundedCounts { hits, misses, .. } = rack.node(1).metrics().bounded;
/// assert_eq!((hits, misses), (1, 1));
/// assert_eq!(rack.node(0).metrics().bounded.regions, 1);
/// # drop(region);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BoundedCounts {
    /// Regions of its home.
    pub regions: u64,
    /// Reads of a copy: no packet.
    pub hits: u64,
    /// Reads of which the home was asked.
    pub misses: u64,
    /// Writes.
    pub writes: u64,
    /// How often it has heard what was modified.
    pub news: u64,
    /// Copies that it has dropped.
    pub dropped: u64,
    /// Copies that it has replaced by what they are now.
    pub refreshed: u64,
    /// How often it had to drop everything.
    pub everything: u64,
    /// Sections that asked the home before they began.
    pub waited: u64,
    /// Sections whose reads were older than was promised: the program has an error.
    pub stale: u64,
    /// Reads of other homes' items, and questions to them what was modified, that the kernels of
    /// their hosts have answered.
    pub by_kernel: u64,
    /// That homes' agents have answered.
    pub by_agent: u64,
    /// What the kernel of this host has done with such packets for this node, where it answers
    /// them.
    pub in_kernel: Option<KernelItemCounts>,
}

/// What a node has done with an arena since it was attached, or with all arenas since it was
/// started.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::bounded::{Arena, ArenaCounts, ArenaSpec};
/// use std::time::Duration;
///
/// # let path = std::env::temp_dir().join(format!("rackmem-doc-counts-{}", std::process::id()));
/// let rack = Rack::local(1)?;
/// let spec = ArenaSpec::new(&path, 1 << 20).bound(Duration::from_secs(60)).emulated();
/// let arena = Arena::create(&rack.node(0), &spec)?;
/// arena.enter()?.finish()?;
/// let ArenaCounts { sections, late, .. } = arena.counts();
/// assert!(sections >= 1 && late == 0);
/// drop(arena);
/// assert!(rack.node(0).metrics().arenas.sections >= sections);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ArenaCounts {
    /// Sections that have begun.
    pub sections: u64,
    /// Sections that had to quiesce first, or have ended as
    /// [`ArenaError::Late`](crate::ArenaError::Late).
    pub late: u64,
    /// Objects that were dropped before they were read, for their pointers were young.
    pub young: u64,
    /// Quiescences.
    pub quiesced: u64,
    /// How often all lines were dropped.
    pub everything: u64,
    /// Lines that quiescences have dropped by name.
    pub dropped: u64,
    /// How often this node's clock was behind, and has jumped.
    pub jumps: u64,
    /// Freed objects whose memory is free again.
    pub reused: u64,
    /// Freed objects whose memory others may still read, where an arena is asked;
    /// [`ArenaReport`](crate::bounded::ArenaReport) has them for all.
    pub waiting: u64,
    /// Lives of other nodes, which are over, whose memory this node has taken over.
    pub taken_over: u64,
}

impl std::ops::AddAssign for ArenaCounts {
    fn add_assign(&mut self, other: ArenaCounts) {
        self.sections += other.sections;
        self.late += other.late;
        self.young += other.young;
        self.quiesced += other.quiesced;
        self.everything += other.everything;
        self.dropped += other.dropped;
        self.jumps += other.jumps;
        self.reused += other.reused;
        self.waiting += other.waiting;
        self.taken_over += other.taken_over;
    }
}

/// A home's memory, in bytes.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::diagnostics::MemoryMetrics;
///
/// let rack = Rack::builder(2).memory(32 << 20).build()?;
/// rack.node(1).alloc_bytes(1 << 20)?;
/// let MemoryMetrics { size, given, .. } = rack.node(1).metrics().memory;
/// assert_eq!((size, given), (32 << 20, 1 << 20));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryMetrics {
    /// All of it.
    pub size: u64,
    /// Given out: used, or kept by nodes for their next allocations.
    pub given: u64,
    /// Blocks of it that may hold what somebody wrote: given out, or free and not yet made zeros
    /// again.
    pub used: u64,
    /// The longest free range.
    pub longest_free: u64,
}

/// The shadow's figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShadowMetrics {
    /// What it has done.
    pub counters: ShadowCounters,
    /// Blocks it knows to be in the switch.
    pub blocks: usize,
}

/// A rack's figures, as far as this process sees them.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::diagnostics::{RackMetrics, SwitchMetrics};
///
/// let rack = Rack::local(3)?;
/// let metrics: RackMetrics = rack.metrics();
/// let switch: SwitchMetrics = metrics.switch.expect("an embedded rack has one");
/// assert_eq!((metrics.nodes.len(), switch.entries), (3, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct RackMetrics {
    /// The nodes in this process.
    pub nodes: Vec<NodeMetrics>,
    /// The switch, if it is in this process.
    pub switch: Option<SwitchMetrics>,
    /// Datagrams that were no packets of ours, or not well formed.
    pub malformed: u64,
    /// Packets that could not be sent.
    pub unsent: u64,
}

/// The switch's figures.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Mode, Rack};
///
/// let rack = Rack::builder(2).mode(Mode::HomeOnly).build()?;
/// assert!(rack.metrics().switch.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct SwitchMetrics {
    /// What it has done.
    pub counters: SwitchCounters,
    /// Entries it owns now.
    pub entries: usize,
    /// Packets it has received, by kind.
    pub received: PacketCounts,
    /// What it has done for locks.
    pub locks: LockCounters,
    /// What else it counts if it is in the kernel.
    pub kernel: Option<crate::data_plane::kernel::KernelMetrics>,
}

impl RackMetrics {
    /// Coherence events of all nodes.
    pub fn events(&self) -> EventCounts {
        self.nodes
            .iter()
            .fold(EventCounts::default(), |sum, node| sum + node.events)
    }

    /// Packets that home and cache agents have received.
    pub fn agent_packets(&self) -> PacketCounts {
        let mut sum = PacketCounts::default();
        self.nodes.iter().for_each(|node| sum.add(&node.received));
        sum
    }
}

/// The name of a global status in documents and metrics.
pub(crate) fn status_name(status: GlobalStatus) -> &'static str {
    match status {
        GlobalStatus::Unshared => "Unshared",
        GlobalStatus::Shared => "Shared",
        GlobalStatus::Modified => "Modified",
    }
}
