//! What the control plane of the P4 program writes: its tables and groups (docs/p4.md), as rows
//! that each test format spells its own way.

use crate::Setup;
use crate::carrier::{AGENT_PORT, SWITCH_ADDRESS, SWITCH_PORT, address_of, mac_of, port_of};
use rackmem_proto::abd::HELD_LINE;
use rackmem_proto::flowcc::migration::MAX_MOVES;
use rackmem_proto::switch::Counted;
use rackmem_proto::wire::{Kind, NodeId};

/// The multicast group of all nodes; the group of one has the number of its port.
const EVERYBODY: u16 = 64;

/// What a row matches.
#[derive(Clone, Copy)]
enum Match {
    Exact(u64),
    /// Value, mask, width in bits.
    Ternary(u64, u64, usize),
}

/// A row of a table.
struct Row {
    table: &'static str,
    keys: Vec<(&'static str, Match)>,
    action: &'static str,
    arguments: Vec<(&'static str, u64)>,
}

impl Row {
    fn is_ternary(&self) -> bool {
        let ternary = |key: &(&str, Match)| matches!(key.1, Match::Ternary(..));
        self.keys.iter().any(ternary)
    }

    /// As BMv2's command line has it.
    fn command(&self) -> String {
        let mut text = format!("table_add {} {}", self.table, self.action);
        for (_, key) in &self.keys {
            match key {
                Match::Exact(value) => text += &format!(" {value}"),
                Match::Ternary(value, mask, _) => text += &format!(" {value}&&&{mask}"),
            }
        }
        text += " =>";
        for (_, value) in &self.arguments {
            text += &format!(" {value}");
        }
        if self.is_ternary() {
            text += " 1";
        }
        text
    }

    /// As an STF file has it.
    fn stf(&self) -> String {
        let mut text = format!("add {}", self.table);
        if self.is_ternary() {
            text += " 1";
        }
        for (name, key) in &self.keys {
            text += &match key {
                Match::Exact(value) => format!(" {name}:{value}"),
                Match::Ternary(value, mask, bits) => {
                    let digit = |bit: usize| match (mask >> bit & 1, value >> bit & 1) {
                        (0, _) => '*',
                        (_, 0) => '0',
                        _ => '1',
                    };
                    let digits: String = (0..*bits).rev().map(digit).collect();
                    format!(" {name}:0b{digits}")
                }
            };
        }
        let argument = |(name, value): &(&str, u64)| format!("{name}:{value}");
        let arguments: Vec<String> = self.arguments.iter().map(argument).collect();
        text + &format!(" {}({})", self.action, arguments.join(", "))
    }
}

/// The numbers below `count`, as values under masks of 8 bits.
pub fn below(count: u8) -> Vec<(u8, u8)> {
    let mut rows = Vec::new();
    let mut from = 0;
    while from < count {
        let mut size = 1 << (count - from).ilog2();
        while from % size != 0 {
            size >>= 1;
        }
        rows.push((from, !(size - 1)));
        from += size;
    }
    rows
}

/// Where everybody is.
fn hosts(nodes: u16) -> Vec<Row> {
    let mut rows = vec![Row {
        table: "RackmemIngress.hosts",
        keys: vec![
            ("hdr.ipv4.to", Match::Exact(SWITCH_ADDRESS.into())),
            ("udp", Match::Ternary(1, 1, 1)),
            ("hdr.udp.to", Match::Ternary(SWITCH_PORT.into(), 0xffff, 16)),
        ],
        action: "RackmemIngress.to_switch",
        arguments: Vec::new(),
    }];
    rows.extend((0..nodes).map(|node: NodeId| Row {
        table: "RackmemEgress.copy.nodes",
        keys: vec![("port", Match::Exact(port_of(node).into()))],
        action: "RackmemEgress.copy.node",
        arguments: vec![
            ("bit_of_node", 1 << node),
            ("number_and_1", u64::from(node) + 1),
            ("mac", mac_of(node)),
            ("address", address_of(node).into()),
            ("agent_port", AGENT_PORT.into()),
        ],
    }));
    rows
}

/// What is served, and who may ask.
fn service(setup: &Setup) -> Vec<Row> {
    let mut rows = vec![Row {
        table: "RackmemIngress.epoch.epochs",
        keys: vec![("hdr.rackmem.epoch", Match::Exact(setup.epoch.into()))],
        action: "RackmemIngress.epoch.serve",
        arguments: vec![
            ("seed", setup.seed.into()),
            ("shadow", setup.shadow.map_or(0, |node| 1 << node)),
            ("sets_mask", u64::from(setup.sets) - 1),
        ],
    }];
    rows.push(Row {
        table: "RackmemIngress.lock_epoch.lock_epochs",
        keys: vec![("hdr.rackmem.epoch", Match::Exact(setup.epoch.into()))],
        action: "RackmemIngress.lock_epoch.serve_locks",
        arguments: vec![("sets_mask", u64::from(setup.lock_sets) - 1)],
    });
    let kind = |kind: Kind| Match::Ternary(kind as u64, 0xff, 8);
    for (node, nodes) in below(setup.nodes as u8) {
        let mut known = |kind: Match, slots| {
            rows.extend(below(slots).into_iter().map(|(slot, mask)| Row {
                table: "RackmemIngress.known.known_requesters",
                keys: vec![
                    ("hdr.rackmem.kind", kind),
                    (
                        "hdr.rackmem.node_id",
                        Match::Ternary(node.into(), nodes.into(), 8),
                    ),
                    (
                        "hdr.rackmem.requester",
                        Match::Ternary(slot.into(), mask.into(), 8),
                    ),
                ],
                action: "RackmemIngress.known.known",
                arguments: Vec::new(),
            }));
        };
        known(Match::Ternary(0, 0, 8), setup.requesters as u8);
        known(kind(Kind::AddToSwitch), MAX_MOVES as u8);
        known(kind(Kind::RemoveFromSwitch), MAX_MOVES as u8);
    }
    rows
}

/// The groups of single nodes, and the one of all.
fn groups(nodes: u16) -> Vec<String> {
    let mut lines = Vec::new();
    let mut all = String::new();
    for (member, port) in (0..nodes).map(port_of).enumerate() {
        lines.push(format!("mc_mgrp_create {port}"));
        lines.push(format!("mc_node_create 0 {port}"));
        // BMv2 numbers the members of groups as they are made.
        lines.push(format!("mc_node_associate {port} {member}"));
        all += &format!(" {port}");
    }
    lines.push(format!("mc_mgrp_create {EVERYBODY}"));
    lines.push(format!("mc_node_create 0{all}"));
    lines.push(format!("mc_node_associate {EVERYBODY} {nodes}"));
    lines
}

/// Statements of an STF file that set up the switch of a case.
pub fn stf(setup: &Setup) -> Vec<String> {
    let rows = hosts(setup.nodes).into_iter().chain(service(setup));
    let mut lines: Vec<String> = rows.map(|row| row.stf()).collect();
    lines.extend(groups(setup.nodes));
    lines
}

/// Lines of BMv2's command line for the rack: once for all cases.
pub fn rack_commands(nodes: u16) -> Vec<String> {
    let rows = hosts(nodes).into_iter();
    let mut lines: Vec<String> = rows.map(|row| row.command()).collect();
    lines.extend(groups(nodes));
    lines
}

/// The register arrays of a way of locks.
pub const OF_A_LOCK_WAY: [&str; 9] = [
    "tag",
    "version_high",
    "version_low",
    "since_high",
    "since_low",
    "who",
    "kept",
    "why",
    "sharers",
];

/// Lines that start over for a case: empty registers, its epoch, who may ask.
pub fn case_commands(setup: &Setup) -> Vec<String> {
    let mut lines = Vec::new();
    for way in 0..setup.ways {
        for array in ["tag", "lock", "status", "copyset"] {
            lines.push(format!("register_reset RackmemIngress.way{way}.{array}"));
        }
    }
    for way in 0..setup.lock_ways {
        for array in OF_A_LOCK_WAY {
            let name = format!("RackmemIngress.lock_way{way}.{array}");
            lines.push(format!("register_reset {name}"));
        }
    }
    for array in [
        "row_seq.seq",
        "row_route.provider",
        "row_route.status",
        "row_score.score",
    ] {
        lines.push(format!("register_reset RackmemIngress.{array}"));
    }
    for table in [
        "RackmemIngress.epoch.epochs",
        "RackmemIngress.lock_epoch.lock_epochs",
        "RackmemIngress.known.known_requesters",
    ] {
        lines.push(format!("table_clear {table}"));
    }
    lines.extend(service(setup).iter().map(Row::command));
    lines
}

/// The register arrays of replicated memory, of the rows of operations and of the entries of lines.
pub const OF_OPERATIONS: [&str; 10] = [
    "row_operation.life",
    "row_operation.number",
    "row_operation.what",
    "row_answers.max_high",
    "row_answers.max_low",
    "row_answers.answered",
    "row_answers.agree",
    "row_chosen.chosen_high",
    "row_chosen.chosen_low",
    "row_stored.stored",
];
/// See [`OF_OPERATIONS`].
pub const OF_LINES: [&str; 6] = [
    "line_entry.tag",
    "line_entry.learner_row",
    "line_entry.learner_number",
    "line_entry.learning",
    "line_stamp.stamp_high",
    "line_stamp.stamp_low",
];

fn resets(arrays: &[&str]) -> Vec<String> {
    let reset = |array| format!("register_reset RackmemIngress.{array}");
    arrays.iter().map(reset).collect()
}

/// Lines that start over with replicated memory: no groups are counted, and all registers are
/// empty.
pub fn no_groups() -> Vec<String> {
    let mut lines = counted(&[], 0);
    lines.extend(resets(&OF_OPERATIONS));
    lines.extend((0..HELD_WORDS).map(|nth| format!("register_reset {}", held_word(nth))));
    lines
}

/// Words of a line that a row holds.
pub const HELD_WORDS: usize = HELD_LINE / 4;

/// The register array of one of them.
pub fn held_word(nth: usize) -> String {
    format!("RackmemIngress.held_line.word{nth}.word")
}

/// The nodes at these places of a group, as bits.
fn nodes(counted: &Counted, places: u8) -> u64 {
    let nodes = counted.nodes().into_iter().enumerate();
    let at = nodes.filter_map(|(place, node)| node.filter(|_| places >> place & 1 == 1));
    at.fold(0, |bits, node| bits | 1 << node)
}

/// Lines after which a switch of this life counts for these groups and no others. What it knows of
/// lines it forgets before: what was learned in another config says nothing in this one.
pub fn counted(groups: &[(u16, Counted)], life: u32) -> Vec<String> {
    let tables = ["counted_groups", "members"];
    let cleared = tables.map(|table| format!("table_clear RackmemIngress.quorum_admit.{table}"));
    let mut lines = cleared.to_vec();
    lines.extend(resets(&OF_LINES));
    for (group, counted) in groups {
        let members = counted.nodes().into_iter().enumerate();
        let members = members.filter_map(|(place, node)| Some((place, node?)));
        let group = ("group", Match::Exact((*group).into()));
        let mut rows: Vec<Row> = members
            .map(|(place, node)| Row {
                table: "RackmemIngress.quorum_admit.members",
                keys: vec![group, ("hdr.rackmem.sender", Match::Exact(node.into()))],
                action: "RackmemIngress.quorum_admit.member",
                arguments: vec![("place", 1 << place)],
            })
            .collect();
        let (counting, quorum) = counted.counting();
        let chooses = counted.chooser() != 0 && counted.chooser() == life;
        rows.push(Row {
            table: "RackmemIngress.quorum_admit.counted_groups",
            keys: vec![
                group,
                ("hdr.own.config", Match::Exact(counted.config().into())),
            ],
            action: "RackmemIngress.quorum_admit.count",
            arguments: vec![
                ("quorum", quorum.into()),
                ("counting", counting.into()),
                ("chooses", chooses.into()),
                ("holds", counted.holds_lines().into()),
                ("counting_nodes", nodes(counted, counting)),
                ("all_nodes", nodes(counted, u8::MAX)),
            ],
        });
        lines.extend(rows.iter().map(Row::command));
    }
    lines
}

/// The line that freezes the switch.
pub const FREEZE: &str = "table_clear RackmemIngress.epoch.epochs";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_a_count_are_a_few_masks() {
        for count in [0, 1, 2, 3, 4, 5, 31, 32, 33, 48, 64] {
            for number in 0..=u8::MAX {
                let matches = below(count)
                    .iter()
                    .filter(|(value, mask)| number & mask == *value)
                    .count();
                assert_eq!(matches, usize::from(number < count), "{number} of {count}");
            }
        }
        assert_eq!(below(4), [(0, 0xfc)]);
    }

    #[test]
    fn a_row_is_spelled_for_both() {
        let setup = Setup::default();
        let rows = service(&setup);
        assert_eq!(
            rows[0].command(),
            "table_add RackmemIngress.epoch.epochs RackmemIngress.epoch.serve 7 => 0 8 3"
        );
        assert_eq!(
            rows[3].stf(),
            "add RackmemIngress.known.known_requesters 1 hdr.rackmem.kind:0b00011101 \
             hdr.rackmem.node_id:0b000000** hdr.rackmem.requester:0b00****** \
             RackmemIngress.known.known()"
        );
    }
}
