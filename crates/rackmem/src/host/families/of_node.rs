//! The rows of a node.

use super::{Metric, one, packets, several};
use crate::bytes::desk::KernelCacheCounts;
use crate::data_plane::kernel::reads::{KernelBlockCounts, KernelItemCounts, KernelLineCounts};
use crate::host::metrics::{NodeMetrics, ShadowMetrics};
use crate::host::told::NodeReport as N;

fn shadow(metrics: &NodeMetrics) -> ShadowMetrics {
    metrics.shadow.unwrap_or_default()
}

fn kernel_cache(report: &N) -> KernelCacheCounts {
    report.metrics.kernel_cache.unwrap_or_default()
}

fn kernel_copies(report: &N) -> KernelCacheCounts {
    report.metrics.kernel_copies.unwrap_or_default()
}

fn kernel_blocks(report: &N) -> KernelBlockCounts {
    report.metrics.kernel_blocks.unwrap_or_default()
}

fn kernel_items(report: &N) -> KernelItemCounts {
    report.metrics.bounded.in_kernel.unwrap_or_default()
}

fn kernel_lines(report: &N) -> KernelLineCounts {
    report.metrics.copies.in_kernel.unwrap_or_default()
}

/// What can be watched of a node.
pub const NODE_METRICS: &[Metric<N>] = &[
    one(
        "epoch",
        "Epoch of the rack that the node lives in",
        &[("", |n: &N| n.epoch.into())],
    )
    .gauge(),
    one(
        "members",
        "Nodes that are members of the rack",
        &[("", |n: &N| n.members.into())],
    )
    .gauge(),
    one(
        "has_switch",
        "Whether the rack has a switch now, 0 or 1",
        &[("", |n: &N| n.has_switch.into())],
    )
    .gauge(),
    several(
        ("misses", "cause"),
        "Accesses that waited for a coherence event",
        &[
            ("read", |n: &N| n.metrics.events.read_miss),
            ("write", |n: &N| n.metrics.events.write_miss),
            ("upgrade", |n: &N| n.metrics.events.write_shared),
            ("bulk", |n: &N| n.metrics.events.asked),
        ],
    ),
    several(
        ("evictions", "state"),
        "Blocks dropped from the cache for others",
        &[
            ("clean", |n: &N| n.metrics.events.evict_shared),
            ("dirty", |n: &N| n.metrics.events.evict_modified),
        ],
    ),
    several(
        ("evictions_for_room", "when"),
        "Of these, blocks dropped before their room was needed, and while an operation waited",
        &[
            ("ahead", |n: &N| n.metrics.events.evicted_ahead),
            ("needed", |n: &N| n.metrics.events.evicted_in_the_way),
        ],
    ),
    one(
        "requests_refused",
        "Requests refused because of concurrent events, and tried again",
        &[("", |n: &N| n.metrics.events.refused)],
    ),
    one(
        "copies_invalidated",
        "Copies that writes of other nodes have taken",
        &[("", |n: &N| n.metrics.invalidated)],
    ),
    several(
        ("kernel_invalidations", "outcome"),
        "Orders to invalidate copies that came to the program in the kernel: answered, or why passed",
        &[
            ("answered", |n: &N| kernel_cache(n).answered),
            ("not_of_now", |n: &N| kernel_cache(n).not_of_now),
            ("asks", |n: &N| kernel_cache(n).asks),
            ("no_way", |n: &N| kernel_cache(n).no_way),
            ("absent", |n: &N| kernel_cache(n).absent),
            ("locked", |n: &N| kernel_cache(n).locked),
            ("written", |n: &N| kernel_cache(n).written),
            ("again", |n: &N| kernel_cache(n).again),
        ],
    ),
    several(
        ("kernel_copies", "outcome"),
        "Readers' misses for blocks of the cache that came to the program in the kernel: answered, or why passed",
        &[
            ("answered", |n: &N| kernel_copies(n).answered),
            ("not_of_now", |n: &N| kernel_copies(n).not_of_now),
            ("asks", |n: &N| kernel_copies(n).asks),
            ("no_way", |n: &N| kernel_copies(n).no_way),
            ("absent", |n: &N| kernel_copies(n).absent),
            ("locked", |n: &N| kernel_copies(n).locked),
            ("written", |n: &N| kernel_copies(n).written),
            ("again", |n: &N| kernel_copies(n).again),
            ("no_room", |n: &N| kernel_copies(n).no_room),
        ],
    ),
    several(
        ("kernel_blocks", "outcome"),
        "Requests of the switch for blocks of home that came to the program in the kernel: answered, or why passed",
        &[
            ("answered", |n: &N| kernel_blocks(n).answered),
            ("elsewhere", |n: &N| kernel_blocks(n).elsewhere),
            ("locked", |n: &N| kernel_blocks(n).locked),
            ("not_of_now", |n: &N| kernel_blocks(n).not_of_now),
            ("no_way", |n: &N| kernel_blocks(n).no_way),
            ("torn", |n: &N| kernel_blocks(n).torn),
            ("no_room", |n: &N| kernel_blocks(n).no_room),
        ],
    ),
    one(
        "blocks_provided",
        "Blocks that the cache has provided to other nodes",
        &[("", |n: &N| n.metrics.provided)],
    ),
    one(
        "cache_blocks",
        "Blocks that the cache has room for",
        &[("", |n: &N| n.metrics.cache_blocks as u64)],
    )
    .gauge(),
    packets(
        "packets_received",
        "Packets that the agents have received",
        |n: &N| &n.metrics.received,
    ),
    packets(
        "packets_sent",
        "Packets that requesters have sent",
        |n: &N| &n.metrics.sent,
    )
    .only_here(),
    one(
        "retransmissions",
        "Packets sent again because no answer came in time",
        &[("", |n: &N| n.metrics.retransmissions)],
    )
    .only_here(),
    one(
        "packets_ignored",
        "Packets that the agents dropped: of another epoch, stale, or wrong",
        &[("", |n: &N| n.metrics.ignored)],
    ),
    one(
        "home_packets",
        "Packets that the home agent has received",
        &[("", |n: &N| n.metrics.at_home)],
    ),
    several(
        ("home_requests", "outcome"),
        "Requests for blocks at the home agent",
        &[
            ("served", |n: &N| n.metrics.home.owned),
            ("locked", |n: &N| n.metrics.home.locked),
            ("invalid", |n: &N| n.metrics.home.invalid),
        ],
    ),
    several(
        ("home_entries", "event"),
        "Directory entries moved between the home agent and the switch",
        &[
            ("migrated", |n: &N| n.metrics.home.migrated),
            ("collided", |n: &N| n.metrics.home.collided),
            ("returned", |n: &N| n.metrics.home.returned),
        ],
    ),
    one(
        "blocks_lost",
        "Blocks of this home whose last content died with a node",
        &[("", |n: &N| n.metrics.home.lost)],
    ),
    several(
        ("memory", "of"),
        "Memory of this home",
        &[
            ("size", |n: &N| n.metrics.memory.size),
            ("given", |n: &N| n.metrics.memory.given),
            ("used", |n: &N| n.metrics.memory.used),
            ("longest_free", |n: &N| n.metrics.memory.longest_free),
        ],
    )
    .bytes(),
    one(
        "rebuilds_begun",
        "Rebuilds of the directory that have begun",
        &[("", |n: &N| n.metrics.rebuilds.begun)],
    ),
    one(
        "rebuilds",
        "Rebuilds of the directory that were completed",
        &[("", |n: &N| n.metrics.rebuilds.done)],
    ),
    one(
        "rebuild_last",
        "Duration of the last rebuild of the directory",
        &[("", |n: &N| n.metrics.rebuilds.last.as_micros() as u64)],
    )
    .seconds(),
    one(
        "blocks_rescued",
        "Blocks whose content a rebuild found in a cache",
        &[("", |n: &N| n.metrics.rebuilds.rescued)],
    ),
    one(
        "locks_lost",
        "Locks of this home whose data died with a node",
        &[("", |n: &N| n.metrics.rebuilds.locks_lost)],
    ),
    one(
        "switch_blocks",
        "Blocks that the shadow of the switch knows to be there",
        &[("", |n: &N| shadow(&n.metrics).blocks as u64)],
    )
    .gauge(),
    several(
        ("switch_returns", "reason"),
        "Blocks that the shadow has asked to leave the switch",
        &[
            ("cold", |n: &N| shadow(&n.metrics).counters.cold),
            ("displaced", |n: &N| shadow(&n.metrics).counters.displaced),
        ],
    ),
    one(
        "locks_known",
        "Locks that the node knows",
        &[("", |n: &N| n.locks.known as u64)],
    )
    .gauge()
    .only_here(),
    several(
        ("lock_acquisitions", "way"),
        "Locks acquired: here, without a packet, or by a transaction",
        &[
            ("here", |n: &N| n.locks.local),
            ("transaction", |n: &N| n.locks.granted),
        ],
    )
    .only_here(),
    one(
        "lock_requests",
        "Requests to directories of locks",
        &[("", |n: &N| n.locks.requests)],
    )
    .only_here(),
    one(
        "lock_releases",
        "Releases to directories of locks",
        &[("", |n: &N| n.locks.releases)],
    )
    .only_here(),
    one(
        "lock_packets_dropped",
        "Packets dropped: about a lock that the node does not know",
        &[("", |n: &N| n.locks.dropped)],
    ),
    one(
        "locks_given_up",
        "Locks of other homes that the node has given up",
        &[("", |n: &N| n.locks.given_up)],
    ),
    several(
        ("lock_memory", "of"),
        "Memory that the node keeps for locks",
        &[
            ("home", |n: &N| n.locks.kept_home as u64),
            ("cache", |n: &N| n.locks.kept as u64),
            ("tombstones", |n: &N| n.locks.remembered as u64),
        ],
    )
    .bytes(),
    one(
        "objects",
        "Objects of this home",
        &[("", |n: &N| n.metrics.objects.live)],
    )
    .gauge(),
    several(
        ("object_handles", "way"),
        "Handles on objects, by the way their reads go",
        &[
            ("here", |n: &N| n.metrics.objects.here),
            ("mapped", |n: &N| n.metrics.objects.mapped),
            ("packets", |n: &N| n.metrics.objects.elsewhere),
        ],
    ),
    one(
        "object_calls",
        "Calls about objects of which a home was asked",
        &[("", |n: &N| n.metrics.objects.asked)],
    ),
    several(
        ("object_retries", "cause"),
        "Attempts to read an object that were made again",
        &[
            ("torn", |n: &N| n.metrics.objects.torn),
            ("locked", |n: &N| n.metrics.objects.locked),
            ("exclusive", |n: &N| n.metrics.objects.exclusive),
        ],
    ),
    one(
        "object_conflicts",
        "Writes not made since the object had another version",
        &[("", |n: &N| n.metrics.objects.conflicts)],
    ),
    several(
        ("object_answers", "by"),
        "Reads of objects of other homes, by what answered",
        &[
            ("kernel", |n: &N| n.metrics.objects.by_kernel),
            ("agent", |n: &N| n.metrics.objects.by_agent),
        ],
    ),
    several(
        ("bounded_reads", "result"),
        "Reads of bounded memory",
        &[
            ("hit", |n: &N| n.metrics.bounded.hits),
            ("miss", |n: &N| n.metrics.bounded.misses),
        ],
    ),
    several(
        ("bounded_answers", "by"),
        "Reads of other homes' items and questions to them what was modified, by what answered",
        &[
            ("kernel", |n: &N| n.metrics.bounded.by_kernel),
            ("agent", |n: &N| n.metrics.bounded.by_agent),
        ],
    ),
    several(
        ("kernel_bounded", "outcome"),
        "Such packets that came to the program in the kernel: answered, or why passed",
        &[
            ("answered", |n: &N| kernel_items(n).answered),
            ("unchanged", |n: &N| kernel_items(n).unchanged),
            ("locked", |n: &N| kernel_items(n).locked),
            ("torn", |n: &N| kernel_items(n).torn),
            ("news", |n: &N| kernel_items(n).news),
            ("elsewhere", |n: &N| kernel_items(n).elsewhere),
            ("no_room", |n: &N| kernel_items(n).no_room),
        ],
    ),
    one(
        "bounded_writes",
        "Writes of bounded memory",
        &[("", |n: &N| n.metrics.bounded.writes)],
    ),
    one(
        "bounded_news",
        "Times that the node has heard what was modified",
        &[("", |n: &N| n.metrics.bounded.news)],
    ),
    one(
        "bounded_copies_dropped",
        "Copies of bounded memory dropped",
        &[("", |n: &N| n.metrics.bounded.dropped)],
    ),
    one(
        "bounded_stale",
        "Sections whose reads were older than promised",
        &[("", |n: &N| n.metrics.bounded.stale)],
    ),
    one(
        "arena_sections",
        "Sections that have begun in arenas of bounded memory",
        &[("", |n: &N| n.metrics.arenas.sections)],
    ),
    one(
        "arena_late_sections",
        "Sections in arenas that had to quiesce first, or have lasted too long",
        &[("", |n: &N| n.metrics.arenas.late)],
    ),
    one(
        "arena_quiescences",
        "Quiescences in arenas: about one a tick in each",
        &[("", |n: &N| n.metrics.arenas.quiesced)],
    ),
    one(
        "arena_everything_dropped",
        "Times that all lines of an arena were dropped, since news were missed",
        &[("", |n: &N| n.metrics.arenas.everything)],
    ),
    one(
        "arena_lines_dropped",
        "Lines that quiescences in arenas have dropped by name",
        &[("", |n: &N| n.metrics.arenas.dropped)],
    ),
    one(
        "arena_young_objects_dropped",
        "Objects in arenas that were dropped before they were read, since they were new",
        &[("", |n: &N| n.metrics.arenas.young)],
    ),
    one(
        "arena_objects_reused",
        "Freed objects in arenas whose memory is free again",
        &[("", |n: &N| n.metrics.arenas.reused)],
    ),
    one(
        "arena_clock_jumps",
        "Times that the clock of an arena was behind, and has jumped",
        &[("", |n: &N| n.metrics.arenas.jumps)],
    ),
    several(
        ("replicated_operations", "operation"),
        "Operations on memory with copies",
        &[
            ("read", |n: &N| n.metrics.copies.reads),
            ("write", |n: &N| n.metrics.copies.writes),
        ],
    ),
    several(
        ("replicated_rounds", "operation"),
        "Rounds of the members that these took",
        &[
            ("read", |n: &N| n.metrics.copies.read_rounds),
            ("write", |n: &N| n.metrics.copies.write_rounds),
        ],
    ),
    one(
        "replicated_interrupted",
        "Operations on memory with copies that were interrupted",
        &[("", |n: &N| n.metrics.copies.interrupted)],
    ),
    several(
        ("replicated_answers", "by"),
        "Answers of other nodes to questions for lines and their stamps, by what answered",
        &[
            ("kernel", |n: &N| n.metrics.copies.by_kernel),
            ("agent", |n: &N| n.metrics.copies.by_agent),
        ],
    ),
    several(
        ("kernel_replicated", "outcome"),
        "Such questions that came to the program in the kernel: answered, or why passed",
        &[
            ("answered", |n: &N| kernel_lines(n).answered),
            ("stamp", |n: &N| kernel_lines(n).stamps),
            ("locked", |n: &N| kernel_lines(n).locked),
            ("torn", |n: &N| kernel_lines(n).torn),
            ("elsewhere", |n: &N| kernel_lines(n).elsewhere),
            ("no_room", |n: &N| kernel_lines(n).no_room),
        ],
    ),
];
