//! `rackmem switch --resources`: what the switch program asks of an ASIC,
//! beside what the paper reports.

use crate::{out, size};
use clap::Args;
use rackmem::Config;
use rackmem::diagnostics::Resources;
use rackmem_bench::table::{Align, Table};
use rackmem_proto::switch::{LINES, MAX_WAYS, QuorumProgram, SwitchConfig, SwitchProgram};
use rackmem_proto::wire::{MAX_NODES, MAX_REQUESTERS};
use serde_json::json;

/// What Concordia reports of its switch (§6): "375K cache blocks", "about 6MB on-chip memory",
/// "10 stages".
const PAPER_STAGES: u8 = 10;
const PAPER_ENTRIES: usize = 375_000;
const PAPER_BYTES: usize = 6_000_000;

/// The sizes of which CNVMM gives Eq. (1) to (3): "a cache line of 64 bytes, and an address space
/// for 4GB of data" (§III-B), in cells as wide as an ASIC's unit.
const PAPER_SPACE: u64 = 4 << 30;
const PAPER_LINE: u64 = 64;
const PAPER_CELL: u64 = 4;

/// What replicated memory takes where the switch holds all lines.
struct Equations {
    /// Eq. (1).
    lines: u64,
    /// Eq. (2).
    cells_a_line: u64,
    /// The left side of Eq. (3), with one timestamp a line: bytes.
    bytes: u64,
    /// The four quorum registers beside it, a byte a timestamp each.
    quorums: u64,
}

const PAPER_COPIES: Equations = {
    let lines = PAPER_SPACE / PAPER_LINE;
    let cells_a_line = PAPER_LINE / PAPER_CELL;
    Equations {
        lines,
        cells_a_line,
        bytes: (lines * cells_a_line + lines) * PAPER_CELL,
        quorums: 4 * lines,
    }
};

/// Requests in flight that it has rows for.
const IN_FLIGHT: usize = MAX_NODES * MAX_REQUESTERS * 2;

/// Entries of a way at most: more than any ASIC has room for.
const MAX_SETS: usize = 1 << 24;

/// Which switch to describe.
#[derive(Debug, Args)]
pub struct ResourceArgs {
    /// Print the ASIC resources of the switch program and exit
    #[arg(long)]
    pub resources: bool,
    /// With --resources: give each block N candidate locations, 1 to 10
    #[arg(long, value_name = "N", requires = "resources", value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_WAYS)))]
    ways: Option<u8>,
    /// With --resources: give each way N entries, a power of two
    #[arg(long, value_name = "N", requires = "resources", value_parser = parse_sets)]
    sets: Option<usize>,
}

fn parse_sets(text: &str) -> Result<usize, String> {
    let sets: usize = text.parse().map_err(|_| "write a number".to_owned())?;
    if sets.is_power_of_two() && sets <= MAX_SETS {
        Ok(sets)
    } else {
        Err(format!("write a power of two, {MAX_SETS} at most"))
    }
}

/// Prints it: for the rack's switch if there is a rack, with what the arguments say instead.
pub fn print(args: &ResourceArgs, rack: Option<&Config>, json: bool) {
    let default = SwitchConfig::default();
    let (ways, sets) = rack.map_or((default.ways, default.sets), Config::switch_geometry);
    let config = SwitchConfig {
        ways: args.ways.unwrap_or(ways),
        sets: args.sets.unwrap_or(sets),
        ..default
    };
    let resources = SwitchProgram::new(config).resources();
    if json {
        return out::line(as_json(&config, &resources));
    }
    out::table(&beside_the_paper(&config, &resources));
    out::table(&arrays("Register arrays", &resources.arrays));
    out::table(&copies_beside_the_paper());
    let of_copies = QuorumProgram::default().arrays();
    out::table(&arrays("Register arrays of replicated memory", &of_copies));
    let title = "And of lines of 64 bytes that it holds between the rounds of an operation";
    out::table(&arrays(title, &QuorumProgram::default().held_arrays()));
}

fn as_json(config: &SwitchConfig, resources: &Resources) -> serde_json::Value {
    let array = |&(name, stage, items, each): &(&str, u8, usize, usize)| {
        let bytes = items * each;
        json!({"array": name, "stage": stage, "items": items, "bytes_an_item": each, "bytes": bytes})
    };
    let arrays: Vec<_> = resources.arrays.iter().map(array).collect();
    let program = QuorumProgram::default();
    let of_copies: Vec<_> = program.arrays().iter().map(array).collect();
    let held: Vec<_> = program.held_arrays().iter().map(array).collect();
    json!({
        "ways": config.ways,
        "sets": config.sets,
        "stages": resources.stages,
        "entries": resources.entries,
        "bytes": resources.bytes,
        "bytes_an_entry": resources.bytes_an_entry(),
        "arrays": arrays,
        "paper": {
            "stages": PAPER_STAGES,
            "entries": PAPER_ENTRIES,
            "bytes": PAPER_BYTES,
            "bytes_an_entry": PAPER_BYTES / PAPER_ENTRIES,
        },
        "copies": {
            "requests_in_flight": IN_FLIGHT,
            "lines_known": LINES,
            "arrays": of_copies,
            "held": held,
            "paper": {
                "lines": PAPER_COPIES.lines,
                "cells_a_line": PAPER_COPIES.cells_a_line,
                "bytes": PAPER_COPIES.bytes,
                "quorum_bytes": PAPER_COPIES.quorums,
            },
        },
    })
}

fn beside_the_paper(config: &SwitchConfig, resources: &Resources) -> Table {
    let title = format!(
        "{} ways of {} entries",
        config.ways,
        size::count(config.sets as u64)
    );
    let mut table = Table::new(
        &title,
        &[
            ("", Align::Left),
            ("here", Align::Right),
            ("Concordia, §6", Align::Right),
        ],
    );
    let of_entries = resources.entries * resources.bytes_an_entry();
    let count = |number: usize| size::count(number as u64);
    let megabytes = |bytes: usize| format!("{}.{:02} MB", bytes / 1_000_000, bytes / 10_000 % 100);
    let rows = [
        (
            "stages with registers",
            resources.stages.to_string(),
            PAPER_STAGES.to_string(),
        ),
        (
            "directory entries",
            count(resources.entries),
            count(PAPER_ENTRIES),
        ),
        (
            "bytes an entry",
            resources.bytes_an_entry().to_string(),
            (PAPER_BYTES / PAPER_ENTRIES).to_string(),
        ),
        ("memory of entries", megabytes(of_entries), String::new()),
        (
            "memory of scores and moves",
            megabytes(resources.bytes - of_entries),
            String::new(),
        ),
        (
            "memory in all",
            megabytes(resources.bytes),
            "about 6 MB".into(),
        ),
    ];
    for (what, here, paper) in rows {
        table.row(&[what, &here, &paper]);
    }
    table
}

/// The switch holds no line here, and state of requests in flight;
/// in the paper's equations it holds all lines and a timestamp of each.
fn copies_beside_the_paper() -> Table {
    let columns = [
        ("", Align::Left),
        ("here", Align::Right),
        ("CNVMM, §III-B, 4 GB", Align::Right),
    ];
    let mut table = Table::new("Replicated memory", &columns);
    let arrays = QuorumProgram::default().arrays();
    let bytes = |of_lines: bool| {
        let of = arrays.iter().filter(|a| (a.2 == LINES) == of_lines);
        of.map(|a| a.2 * a.3).sum::<usize>()
    };
    let paper = PAPER_COPIES;
    let count = |number: usize| size::count(number as u64);
    let none = || "0".to_owned();
    let rows = [
        (
            "lines that it holds, Eq. (1)",
            none(),
            size::count(paper.lines),
        ),
        (
            "cells of 4 bytes a line, Eq. (2)",
            none(),
            paper.cells_a_line.to_string(),
        ),
        (
            "bytes of lines and timestamps, Eq. (3)",
            none(),
            size::count(paper.bytes),
        ),
        (
            "bytes of quorum registers",
            String::new(),
            size::count(paper.quorums),
        ),
        (
            "requests in flight that it counts",
            count(IN_FLIGHT),
            "about 10 K".into(),
        ),
        ("bytes of their rows", count(bytes(false)), String::new()),
        ("lines whose stamps it knows", count(LINES), String::new()),
        ("bytes of these", count(bytes(true)), String::new()),
    ];
    for (what, here, paper) in rows {
        table.row(&[what, &here, &paper]);
    }
    table
}

fn arrays(title: &str, arrays: &[(&'static str, u8, usize, usize)]) -> Table {
    let columns = [
        ("array", Align::Left),
        ("stage", Align::Right),
        ("items", Align::Right),
        ("bytes an item", Align::Right),
        ("bytes", Align::Right),
    ];
    let mut table = Table::new(title, &columns);
    for &(name, stage, items, bytes) in arrays {
        let cells = [
            stage.to_string(),
            size::count(items as u64),
            bytes.to_string(),
            size::count((items * bytes) as u64),
        ];
        table.row(&[name, &cells[0], &cells[1], &cells[2], &cells[3]]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_a_power_of_two() {
        assert_eq!(parse_sets("32768"), Ok(32_768));
        for wrong in ["0", "3", "-1", "x", "33554432"] {
            assert!(parse_sets(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_arrays_are_told_and_add_up() {
        let config = SwitchConfig {
            ways: 10,
            sets: 32_768,
            ..SwitchConfig::default()
        };
        let resources = SwitchProgram::new(config).resources();
        let told = as_json(&config, &resources);
        assert_eq!(told["stages"], 12);
        assert_eq!(told["entries"], 327_680);
        assert_eq!(told["paper"]["bytes_an_entry"], 16);
        let arrays = told["arrays"].as_array().unwrap();
        let bytes: u64 = arrays.iter().filter_map(|a| a["bytes"].as_u64()).sum();
        assert_eq!(Some(bytes), told["bytes"].as_u64());
        let table = beside_the_paper(&config, &resources);
        let text = table.render(rackmem_bench::table::Look {
            width: 100,
            colour: false,
        });
        assert!(text.contains("about 6 MB"), "{text}");
        // 2^26 lines of 16 cells, and a timestamp of each.
        let paper = &told["copies"]["paper"];
        assert_eq!(paper["lines"], 1u64 << 26);
        assert_eq!(paper["bytes"], (17u64 << 26) * 4);
        assert_eq!(told["copies"]["requests_in_flight"], 4096);
    }
}
