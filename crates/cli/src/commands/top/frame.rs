//! One frame of the live screen, as lines of text.

use super::sample::Sample;
use crate::commands::inspect::{hot, locks};
use clap::ValueEnum;
use rackmem::Size;
use rackmem::diagnostics::ToldFigures;
use rackmem_bench::table::Look;

/// By which column nodes are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Sort {
    /// Their number
    Node,
    /// Misses a second, most first
    Misses,
    /// Packets that their agents receive a second, most first
    Packets,
}

impl Sort {
    /// What a key asks for.
    pub fn of_key(key: u8) -> Option<Sort> {
        match key {
            b'n' => Some(Sort::Node),
            b'm' => Some(Sort::Misses),
            b'p' => Some(Sort::Packets),
            _ => None,
        }
    }
}

/// A column of the table of nodes.
struct Column {
    title: &'static str,
    width: usize,
    rate: fn(&ToldFigures) -> Option<u64>,
}

const fn rate(title: &'static str, width: usize, rate: fn(&ToldFigures) -> Option<u64>) -> Column {
    Column { title, width, rate }
}

const MISSES: fn(&ToldFigures) -> Option<u64> = |told| Some(told.sum("misses"));
const PACKETS: fn(&ToldFigures) -> Option<u64> = |told| Some(told.sum("packets_received"));

/// Rates, in as many columns as 80 characters have room for beside the rest.
const COLUMNS: [Column; 7] = [
    rate("read", 7, |told| told.get("misses", "read")),
    rate("write", 7, |told| told.get("misses", "write")),
    rate("upgrade", 8, |told| told.get("misses", "upgrade")),
    rate("bulk", 7, |told| told.get("misses", "bulk")),
    rate("refused", 8, |told| told.get("requests_refused", "")),
    rate("lost copies", 12, |told| told.get("copies_invalidated", "")),
    rate("packets", 9, PACKETS),
];

/// Blocks that are shown.
const HOTTEST: usize = 5;

/// What `now` shows, with rates since `before`.
pub fn lines(now: &Sample, before: &Sample, sort: Sort, look: Look) -> Vec<String> {
    let answered = now.nodes.iter().flatten();
    let newest = answered.clone().max_by_key(|told| told.get("epoch", ""));
    let of_rack = |name| newest.and_then(|told| told.get(name, "")).unwrap_or(0);
    let switch = match of_rack("has_switch") {
        0 => "no switch",
        _ => "a switch",
    };
    let mut lines = vec![format!(
        "rack of {}: {} answer, {} members, epoch {}, {switch}",
        now.nodes.len(),
        answered.count(),
        of_rack("members"),
        of_rack("epoch"),
    )];
    lines.push(String::new());
    let mut head = "node epoch".to_owned();
    for column in &COLUMNS {
        head.push_str(&format!("{:>1$}", column.title, column.width));
    }
    lines.push(format!("{head}{:>10}", "memory"));
    let mut nodes: Vec<usize> = (0..now.nodes.len()).collect();
    let by = |node: &usize, of| std::cmp::Reverse(now.rate(before, *node, of));
    match sort {
        Sort::Node => {}
        Sort::Misses => nodes.sort_by_key(|node| by(node, MISSES)),
        Sort::Packets => nodes.sort_by_key(|node| by(node, PACKETS)),
    }
    lines.extend(nodes.into_iter().map(|node| row(now, before, node)));
    lines.push(String::new());
    let blocks = now.hot(before);
    if !blocks.is_empty() {
        let title = "blocks that are missed most, a second";
        let table = hot::table(title, &blocks, &now.regions, HOTTEST).render(look);
        lines.extend(table.lines().map(str::to_owned));
        lines.push(String::new());
    }
    let (told, _) = locks::by_address(now.locks.clone());
    match told.is_empty() {
        true => lines.push("no lock is in use".into()),
        false => {
            let table = locks::table(&told, false).render(look);
            lines.extend(table.lines().map(str::to_owned));
        }
    }
    lines
}

fn row(now: &Sample, before: &Sample, node: usize) -> String {
    let Some(told) = &now.nodes[node] else {
        return format!("{node:>4} does not answer");
    };
    let mut row = format!("{node:>4} {:>5}", told.get("epoch", "").unwrap_or(0));
    for column in &COLUMNS {
        let rate = now.rate(before, node, column.rate);
        let text = rate.map_or("-".into(), |rate| format!("{rate}"));
        row.push_str(&format!("{text:>0$}", column.width));
    }
    let given = Size(told.get("memory", "given").unwrap_or(0)).to_string();
    row + &format!("{given:>10}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::diagnostics::NodeReport;
    use std::time::{Duration, Instant};

    fn told(misses: u64) -> Option<ToldFigures> {
        let mut report = NodeReport {
            epoch: 3,
            members: 2,
            ..NodeReport::default()
        };
        report.metrics.events.read_miss = misses;
        report.metrics.memory.given = 1 << 30;
        Some(ToldFigures::of(&report))
    }

    #[test]
    fn a_frame_has_rates_and_says_who_does_not_answer() {
        let at = Instant::now();
        let sample = |seconds, nodes: [Option<ToldFigures>; 3]| Sample {
            at: at + Duration::from_secs(seconds),
            locks: vec![Some(Vec::new()), None, Some(Vec::new())],
            hot: Vec::new(),
            regions: Vec::new(),
            nodes: nodes.into(),
        };
        let before = sample(0, [told(100), None, told(7)]);
        let now = sample(2, [told(300), None, told(2007)]);
        let look = Look {
            width: 80,
            colour: false,
        };
        let shown = lines(&now, &before, Sort::Node, look);
        assert_eq!(
            shown[0],
            "rack of 3: 2 answer, 2 members, epoch 3, no switch"
        );
        assert!(
            shown.iter().all(|line| line.chars().count() <= 80),
            "{shown:#?}"
        );
        let words = |line: &String| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&shown[3])[..3], ["0", "3", "100"]);
        assert_eq!(shown[4], "   1 does not answer");
        assert_eq!(words(&shown[5])[..3], ["2", "3", "1000"]);
        let sorted = lines(&now, &before, Sort::Misses, look);
        assert_eq!(
            [&sorted[3], &sorted[4], &sorted[5]],
            [&shown[5], &shown[3], &shown[4]]
        );
        // A node that has begun anew is not one whose counters fell.
        let again = sample(4, [told(50), None, told(2007)]);
        assert_eq!(again.rate(&now, 0, MISSES), Some(25));
        assert_eq!(again.rate(&now, 1, MISSES), None);
    }
}
