//! A rack's figures as JSON, the same in every command that gives them.

use crate::commands::switch_live;
use rackmem::diagnostics::{
    EventCounts, KernelCacheCounts, LockCounters, NodeMetrics, ObjectCounts, PacketCounts,
    RackMetrics, SwitchMetrics,
};
use serde_json::{Map, Value, json};

/// Everything this process knows about its rack.
pub fn rack(metrics: &RackMetrics) -> Value {
    json!({
        "events": events(&metrics.events()),
        "nodes": metrics.nodes.iter().map(node).collect::<Vec<_>>(),
        "switch": metrics.switch.as_ref().map(switch),
    })
}

/// What became of orders to the cache that came to the program in the kernel.
fn orders(kernel: KernelCacheCounts) -> Value {
    json!({
        "serves": kernel.serves,
        "answered": kernel.answered,
        "passed": {
            "not_of_now": kernel.not_of_now,
            "asks": kernel.asks,
            "no_way": kernel.no_way,
            "absent": kernel.absent,
            "locked": kernel.locked,
            "written": kernel.written,
            "again": kernel.again,
            "no_room": kernel.no_room,
        },
    })
}

/// One node's figures.
pub fn node(metrics: &NodeMetrics) -> Value {
    json!({
        "events": events(&metrics.events),
        "invalidated": metrics.invalidated,
        "kernel_cache": metrics.kernel_cache.map(orders),
        "kernel_copies": metrics.kernel_copies.map(orders),
        "kernel_blocks": metrics.kernel_blocks.map(|kernel| json!({
            "blocks": kernel.blocks,
            "answered": kernel.answered,
            "passed": {
                "elsewhere": kernel.elsewhere,
                "locked": kernel.locked,
                "not_of_now": kernel.not_of_now,
                "no_way": kernel.no_way,
                "torn": kernel.torn,
                "no_room": kernel.no_room,
            },
        })),
        "provided": metrics.provided,
        "retransmissions": metrics.retransmissions,
        "chunks": metrics.chunks,
        "memory": {
            "size": metrics.memory.size,
            "given": metrics.memory.given,
            "used": metrics.memory.used,
            "longest_free": metrics.memory.longest_free,
        },
        "received": packets(&metrics.received),
        "sent": packets(&metrics.sent),
        "home": {
            "owned": metrics.home.owned,
            "locked": metrics.home.locked,
            "invalid": metrics.home.invalid,
            "ignored": metrics.home.ignored,
            "migrated": metrics.home.migrated,
            "collided": metrics.home.collided,
            "returned": metrics.home.returned,
            "lost": metrics.home.lost,
        },
        "shadow": metrics.shadow.map(|shadow| json!({
            "blocks": shadow.blocks,
            "cold": shadow.counters.cold,
            "displaced": shadow.counters.displaced,
            "read": shadow.counters.read,
        })),
        "objects": objects(&metrics.objects),
        "copies": {
            "reads": metrics.copies.reads,
            "read_rounds": metrics.copies.read_rounds,
            "writes": metrics.copies.writes,
            "write_rounds": metrics.copies.write_rounds,
            "interrupted": metrics.copies.interrupted,
            "answered_by": {
                "kernel": metrics.copies.by_kernel,
                "agent": metrics.copies.by_agent,
            },
            "in_kernel": metrics.copies.in_kernel.map(|kernel| json!({
                "groups": kernel.groups,
                "answered": kernel.answered,
                "stamps": kernel.stamps,
                "passed": {
                    "locked": kernel.locked,
                    "torn": kernel.torn,
                    "elsewhere": kernel.elsewhere,
                    "no_room": kernel.no_room,
                },
            })),
        },
        "rebuilds": {
            "begun": metrics.rebuilds.begun,
            "done": metrics.rebuilds.done,
            "last_us": metrics.rebuilds.last.as_micros() as u64,
            "rescued": metrics.rebuilds.rescued,
        },
    })
}

/// What a node has done with objects.
pub fn objects(counts: &ObjectCounts) -> Value {
    json!({
        "live": counts.live,
        "slabs": counts.slabs,
        "handles": {
            "here": counts.here,
            "mapped": counts.mapped,
            "elsewhere": counts.elsewhere,
        },
        "asked": counts.asked,
        "rounds": counts.rounds,
        "fallbacks": counts.fallbacks,
        "torn": counts.torn,
        "locked": counts.locked,
        "exclusive": counts.exclusive,
        "not_modified": counts.not_modified,
        "conflicts": counts.conflicts,
        "answered_by": {
            "kernel": counts.by_kernel,
            "agent": counts.by_agent,
        },
        "in_kernel": counts.in_kernel.map(|kernel| json!({
            "serves": kernel.serves,
            "answered": kernel.answered,
            "not_modified": kernel.not_modified,
            "passed": {
                "locked": kernel.locked,
                "torn": kernel.torn,
                "gone": kernel.gone,
                "long": kernel.long,
                "elsewhere": kernel.elsewhere,
                "no_room": kernel.no_room,
            },
        })),
    })
}

/// The switch's figures.
pub fn switch(metrics: &SwitchMetrics) -> Value {
    let counters = &metrics.counters;
    json!({
        "entries": metrics.entries,
        "received": packets(&metrics.received),
        "granted": counters.granted,
        "locked": counters.locked,
        "invalid": counters.invalid,
        "to_home": counters.to_home,
        "unlocked": counters.unlocked,
        "added": counters.added,
        "collided": counters.collided,
        "removed": counters.removed,
        "dropped": counters.dropped,
        "violations": counters.violations,
        "locks": lock_directory(&metrics.locks),
        "kernel": metrics.kernel.as_ref().map(switch_live::kernel_json),
    })
}

/// What a switch has done for locks.
fn lock_directory(counters: &LockCounters) -> Value {
    json!({
        "served": counters.served,
        "denied": counters.denied,
        "to_home": counters.to_home,
        "dropped": counters.dropped,
        "violations": counters.violations,
    })
}

/// Coherence events by kind.
pub fn events(events: &EventCounts) -> Value {
    json!({
        "read_miss": events.read_miss,
        "write_miss": events.write_miss,
        "write_shared": events.write_shared,
        "evict_shared": events.evict_shared,
        "evict_modified": events.evict_modified,
        "evicted_ahead": events.evicted_ahead,
        "evicted_in_the_way": events.evicted_in_the_way,
        "refused": events.refused,
    })
}

/// Packets by kind, those that there were.
pub fn packets(counts: &PacketCounts) -> Value {
    let seen = counts.0.iter().filter(|row| row.1 > 0);
    let rows: Map<String, Value> = seen
        .map(|(kind, count)| (kind.name().to_owned(), json!(count)))
        .collect();
    Value::Object(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::Rack;
    use rackmem::diagnostics::Kind;

    #[test]
    fn packets_that_never_came_are_left_out() {
        let counts = PacketCounts(vec![(Kind::ReadMiss, 3), (Kind::Ping, 0)]);
        assert_eq!(packets(&counts), json!({"ReadMiss": 3}));
    }

    #[test]
    fn a_rack_without_a_switch_says_so() {
        let rack_of_one = Rack::builder(1)
            .mode(rackmem::Mode::HomeOnly)
            .build()
            .unwrap();
        let figures = rack(&rack_of_one.metrics());
        assert_eq!(figures["switch"], Value::Null);
        assert_eq!(figures["nodes"].as_array().map(Vec::len), Some(1));
    }
}
