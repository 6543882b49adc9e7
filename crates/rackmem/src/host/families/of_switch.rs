//! The rows of a switch, and of any process.

use super::{Metric, one, packets, several};
use crate::host::metrics::{RackMetrics, SwitchMetrics as S};

/// What can be watched of a switch.
pub const SWITCH_METRICS: &[Metric<S>] = &[
    one(
        "switch_entries",
        "Directory entries that the switch owns",
        &[("", |s: &S| s.entries as u64)],
    )
    .gauge(),
    packets(
        "switch_packets_received",
        "Packets that the switch has received",
        |s: &S| &s.received,
    ),
    several(
        ("switch_requests", "outcome"),
        "Requests for blocks at the switch",
        &[
            ("granted", |s: &S| s.counters.granted),
            ("locked", |s: &S| s.counters.locked),
            ("invalid", |s: &S| s.counters.invalid),
            ("to_home", |s: &S| s.counters.to_home),
        ],
    ),
    one(
        "switch_unlocks",
        "Unlocks carried out",
        &[("", |s: &S| s.counters.unlocked)],
    ),
    several(
        ("switch_entry_moves", "event"),
        "Directory entries moved between homes and the switch",
        &[
            ("added", |s: &S| s.counters.added),
            ("collided", |s: &S| s.counters.collided),
            ("removed", |s: &S| s.counters.removed),
        ],
    ),
    several(
        ("switch_packets_dropped", "about"),
        "Packets dropped: of another epoch, stale, or wrong",
        &[
            ("blocks", |s: &S| s.counters.dropped),
            ("locks", |s: &S| s.locks.dropped),
        ],
    ),
    several(
        ("switch_violations", "about"),
        "Broken rules of the pipeline: zero unless the program has a defect",
        &[
            ("blocks", |s: &S| s.counters.violations),
            ("locks", |s: &S| s.locks.violations),
        ],
    ),
    several(
        ("switch_lock_requests", "outcome"),
        "Requests for locks at the switch",
        &[
            ("served", |s: &S| s.locks.served),
            ("denied", |s: &S| s.locks.denied),
            ("to_home", |s: &S| s.locks.to_home),
        ],
    ),
];

/// What can be watched of a process, whatever its role.
pub const PROCESS_METRICS: &[Metric<RackMetrics>] = &[
    one(
        "datagrams_malformed",
        "Datagrams that were no packets of a rack",
        &[("", |r| r.malformed)],
    ),
    one(
        "packets_unsent",
        "Packets that could not be sent",
        &[("", |r| r.unsent)],
    ),
];
