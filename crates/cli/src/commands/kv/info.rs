//! The section that INFO shows of a node: what its part of the rack has done.

use crate::store::AtNode;
use rackmem::diagnostics::Work;
use rackmem_kv::{InfoSection, Store};
use std::fmt::Write;
use std::sync::Arc;

/// The title of the section.
const TITLE: &str = "Rackmem";

/// The section of one node.
pub fn section<M: AtNode>(store: &Store<M>) -> (String, InfoSection) {
    let store = store.clone();
    let write: InfoSection = Arc::new(move |text: &mut String| describe(&store, text));
    (TITLE.to_owned(), write)
}

fn describe<M: AtNode>(store: &Store<M>, text: &mut String) {
    let node = store.memory().at();
    let metrics = node.metrics();
    let locks = node.lock_memory();
    let members = (0..node.nodes()).filter(|&other| node.is_member(other as u16));
    // Where the superblock cannot be read, nobody can say.
    let losses = store.losses().unwrap_or_default();
    let events = metrics.events;
    let work = Work::now();
    let rows = [
        ("rack_node", u64::from(node.id())),
        ("rack_nodes", node.nodes() as u64),
        ("rack_block_size", node.block_size() as u64),
        ("rack_read_misses", events.read_miss),
        ("rack_write_misses", events.write_miss),
        ("rack_write_shared", events.write_shared),
        ("rack_evictions_clean", events.evict_shared),
        ("rack_evictions_dirty", events.evict_modified),
        ("rack_evictions_ahead", events.evicted_ahead),
        ("rack_evictions_in_the_way", events.evicted_in_the_way),
        ("rack_requests_refused", events.refused),
        ("rack_copies_invalidated", metrics.invalidated),
        ("rack_blocks_provided", metrics.provided),
        ("rack_packets_sent", metrics.sent.total()),
        ("rack_packets_received", metrics.received.total()),
        ("rack_retransmissions", metrics.retransmissions),
        ("rack_system_calls", work.system_calls()),
        ("rack_yields", work.yields),
        ("rack_datagrams_sent", work.datagrams_out),
        ("rack_datagrams_received", work.datagrams_in),
        ("rack_sleeps", work.sleeps),
        ("rack_lock_cache_bytes", locks.kept as u64),
        ("rack_lock_home_bytes", locks.kept_home as u64),
        ("rack_lock_tombstone_bytes", locks.remembered as u64),
        ("rack_locks_evicted", locks.given_up),
        ("rack_epoch", u64::from(node.epoch())),
        ("rack_members", members.count() as u64),
        ("rack_switch", u64::from(node.has_switch())),
        ("rack_rebuilds", metrics.rebuilds.done),
        (
            "rack_rebuild_last_us",
            metrics.rebuilds.last.as_micros() as u64,
        ),
        ("rack_blocks_rescued", metrics.rebuilds.rescued),
        ("rack_blocks_lost", metrics.home.lost),
        ("rack_locks_lost", metrics.rebuilds.locks_lost),
        ("rack_buckets_unavailable", store.buckets_away() as u64),
        ("rack_buckets_lost", losses.buckets),
        ("rack_values_lost", losses.values),
    ];
    for (name, value) in rows {
        // Writing to a string does not fail.
        let _ = write!(text, "{name}:{value}\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::Rack;

    #[test]
    fn the_section_is_lines_of_names_and_values() {
        let rack = Rack::local(2).unwrap();
        let store = crate::store::open(rack.node(1), 64).unwrap();
        let (title, write) = section(&store);
        let mut text = String::new();
        write(&mut text);
        assert_eq!(title, TITLE);
        assert!(text.contains("rack_node:1\r\nrack_nodes:2\r\n"), "{text}");
        assert!(
            text.contains("rack_members:2\r\nrack_switch:1\r\n"),
            "{text}"
        );
        assert!(text.contains("rack_buckets_lost:0\r\n"), "{text}");
        assert!(text.contains("rack_buckets_unavailable:0\r\n"), "{text}");
        assert!(text.lines().all(|line| line.split(':').count() == 2));
    }
}
