//! The demo's result for a person.

use super::{Phase, Ranking, Story};
use crate::out;
use crate::size::count;
use rackmem::diagnostics::{NodeMetrics, PacketCounts, RackMetrics};
use rackmem_bench::report::number;
use rackmem_bench::table::{Align, Table};

const LEFT: Align = Align::Left;
const RIGHT: Align = Align::Right;

pub fn print(story: &Story, metrics: &RackMetrics, seconds: f64) {
    out::line("");
    if let Some(ranking) = &story.ranking {
        out::table(&top(story, ranking));
        out::line("");
    }
    out::table(&phases(story));
    out::line(
        "Remote: coherence transactions (block misses, evictions, lock grants) that operations waited \
         for, per operation. PageRank counts edges followed.\n",
    );
    if !story.processes.is_empty() {
        out::table(&beside(story));
        out::line(
            "The processes exchange UDP packets over loopback; all share this machine's cores.\n",
        );
    }
    out::table(&events(metrics));
    out::line("");
    out::table(&packets(metrics));
    let retransmissions: u64 = metrics.nodes.iter().map(|node| node.retransmissions).sum();
    out::line(format!(
        "\n{} retransmissions. All of it in {seconds:.0} s.",
        count(retransmissions)
    ));
}

fn top(story: &Story, ranking: &Ranking) -> Table {
    let (packages, needs) = (
        count(story.packages as u64),
        count(story.dependencies as u64),
    );
    let title = format!("Most needed of {packages} packages ({needs} dependencies)");
    let columns = [("", RIGHT), ("package", LEFT), ("rank", RIGHT), ("", LEFT)];
    let mut table = Table::new(&title, &columns);
    let highest = ranking.top.first().map_or(1.0, |ranked| ranked.rank);
    for (place, ranked) in (1..).zip(&ranking.top) {
        let bar = "█".repeat((ranked.rank / highest * 24.0).round() as usize);
        let rank = format!("{:.5}", ranked.rank);
        table.row(&[&format!("{place}"), &ranked.name, &rank, &bar]);
    }
    table
}

fn phases(story: &Story) -> Table {
    let columns = [
        ("what", LEFT),
        ("operations", RIGHT),
        ("a second", RIGHT),
        ("remote", RIGHT),
        ("p50", RIGHT),
        ("p99", RIGHT),
    ];
    let mut table = Table::new(&format!("Throughput and latency: {}", story.rack), &columns);
    for phase in &story.phases {
        let cells = phase_cells(phase);
        let [a, b, c, d, e] = cells.each_ref().map(String::as_str);
        table.row(&[&phase.name, a, b, c, d, e]);
    }
    table
}

fn phase_cells(phase: &Phase) -> [String; 5] {
    let timed = phase.latencies.count() > 0;
    let time = |percent| match timed {
        true => nanos(phase.latencies.percentile(percent)),
        false => String::new(),
    };
    let remote = phase.remote_per_operation();
    [
        count(phase.operations),
        number(phase.per_second()),
        remote.map_or(String::new(), per_operation),
        time(50.0),
        time(99.0),
    ]
}

/// Transactions an operation.
fn per_operation(ratio: f64) -> String {
    format!("{ratio:.4}")
}

/// The workloads that both racks have run.
fn beside(story: &Story) -> Table {
    let columns = [
        ("what", LEFT),
        ("rack", LEFT),
        ("operations", RIGHT),
        ("a second", RIGHT),
        ("remote", RIGHT),
        ("p50", RIGHT),
        ("p99", RIGHT),
    ];
    let mut table = Table::new("One process beside a process per node (UDP)", &columns);
    for processes in &story.processes {
        let same = |phase: &&Phase| phase.name == processes.name;
        let in_one = story
            .phases
            .iter()
            .find(same)
            .map(|phase| ("one process", phase));
        for (rack, phase) in in_one.into_iter().chain([("processes", processes)]) {
            let cells = phase_cells(phase);
            let [a, b, c, d, e] = cells.each_ref().map(String::as_str);
            table.row(&[&phase.name, rack, a, b, c, d, e]);
        }
    }
    table
}

/// A time in the unit that suits it.
fn nanos(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{} µs", number(nanos as f64 / 1e3)),
        _ => format!("{} ms", number(nanos as f64 / 1e6)),
    }
}

/// A row of the table of events: its name and a node's figure.
type Row = (&'static str, fn(&NodeMetrics) -> u64);

const EVENTS: [Row; 9] = [
    ("read miss", |node| node.events.read_miss),
    ("write miss", |node| node.events.write_miss),
    ("write shared", |node| node.events.write_shared),
    ("evict clean", |node| node.events.evict_shared),
    ("evict dirty", |node| node.events.evict_modified),
    ("evicted ahead of need", |node| node.events.evicted_ahead),
    ("refused, tried again", |node| node.events.refused),
    ("copies invalidated", |node| node.invalidated),
    ("blocks provided", |node| node.provided),
];

/// Nodes that have a column of their own; of larger racks only the sums fit a window.
const COLUMNS: usize = 5;

fn events(metrics: &RackMetrics) -> Table {
    let nodes = match metrics.nodes.len() {
        0..=COLUMNS => &metrics.nodes[..],
        _ => &[],
    };
    let heads: Vec<String> = (0..nodes.len())
        .map(|node| format!("node {node}"))
        .collect();
    let mut columns = vec![("event", LEFT)];
    columns.extend(heads.iter().map(|head| (head.as_str(), RIGHT)));
    columns.push(("all", RIGHT));
    let mut table = Table::new("Coherence events", &columns);
    for (name, figure) in EVENTS {
        let sum: u64 = metrics.nodes.iter().map(figure).sum();
        let figures: Vec<String> = nodes.iter().map(figure).chain([sum]).map(count).collect();
        let mut cells = vec![name];
        cells.extend(figures.iter().map(String::as_str));
        table.row(&cells);
    }
    table
}

fn packets(metrics: &RackMetrics) -> Table {
    let columns = [
        ("packet", LEFT),
        ("from requesters", RIGHT),
        ("at the switch", RIGHT),
        ("at the agents", RIGHT),
    ];
    let mut table = Table::new(
        "Packets by type, by who sent and who handled them",
        &columns,
    );
    let mut sent = PacketCounts::default();
    metrics.nodes.iter().for_each(|node| sent.add(&node.sent));
    let switch = metrics
        .switch
        .as_ref()
        .map(|switch| switch.received.clone());
    let switch = switch.unwrap_or_default();
    let agents = metrics.agent_packets();
    for &kind in rackmem::diagnostics::Kind::ALL {
        let counts = [&sent, &switch, &agents].map(|counts| {
            let row = counts.0.iter().find(|row| row.0 == kind);
            row.map_or(0, |row| row.1)
        });
        if counts.iter().any(|&count| count > 0) {
            packet_row(&mut table, kind.name(), counts);
        }
    }
    table.rule();
    packet_row(
        &mut table,
        "all",
        [&sent, &switch, &agents].map(PacketCounts::total),
    );
    table
}

fn packet_row(table: &mut Table, name: &str, counts: [u64; 3]) {
    let cells = counts.map(|packets| match packets {
        0 => String::new(),
        some => count(some),
    });
    let [sent, switch, agents] = cells.each_ref().map(String::as_str);
    table.row(&[name, sent, switch, agents]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_suits_them() {
        let cases = [(150, "150 ns"), (1_500, "1.50 µs"), (20_000_000, "20.0 ms")];
        for (time, text) in cases {
            assert_eq!(nanos(time), text);
        }
    }
}
