//! The section that INFO shows of a node: what its part of the rack has done.

use rackmem::Node;
use rackmem_kv::InfoSection;
use std::fmt::Write;
use std::sync::Arc;

/// The title of the section.
const TITLE: &str = "Rackmem";

/// The section of one node.
pub fn section(node: &Node) -> (String, InfoSection) {
    let node = node.clone();
    let write: InfoSection = Arc::new(move |text: &mut String| describe(&node, text));
    (TITLE.to_owned(), write)
}

fn describe(node: &Node, text: &mut String) {
    let metrics = node.metrics();
    let events = metrics.events;
    let rows = [
        ("rack_node", u64::from(node.id())),
        ("rack_nodes", node.nodes() as u64),
        ("rack_block_size", node.block_size() as u64),
        ("rack_read_misses", events.read_miss),
        ("rack_write_misses", events.write_miss),
        ("rack_write_shared", events.write_shared),
        ("rack_evictions_clean", events.evict_shared),
        ("rack_evictions_dirty", events.evict_modified),
        ("rack_requests_refused", events.refused),
        ("rack_copies_invalidated", metrics.invalidated),
        ("rack_blocks_provided", metrics.provided),
        ("rack_packets_sent", metrics.sent.total()),
        ("rack_packets_received", metrics.received.total()),
        ("rack_retransmissions", metrics.retransmissions),
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
        let (title, write) = section(&rack.node(1));
        let mut text = String::new();
        write(&mut text);
        assert_eq!(title, TITLE);
        assert!(text.contains("rack_node:1\r\nrack_nodes:2\r\n"), "{text}");
        assert!(text.lines().all(|line| line.split(':').count() == 2));
    }
}
