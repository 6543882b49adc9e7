//! `rackmem switch --resources`: what the switch program asks of an ASIC,
//! beside what the paper reports.

use crate::{out, size};
use clap::Args;
use rackmem::Config;
use rackmem::diagnostics::Resources;
use rackmem_bench::table::{Align, Table};
use rackmem_proto::switch::{MAX_WAYS, SwitchConfig, SwitchProgram};
use serde_json::json;

/// What Concordia reports of its switch (§6): "375K cache blocks", "about 6MB on-chip memory",
/// "10 stages".
const PAPER_STAGES: u8 = 10;
const PAPER_ENTRIES: usize = 375_000;
const PAPER_BYTES: usize = 6_000_000;

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
    out::table(&arrays(&resources));
}

fn as_json(config: &SwitchConfig, resources: &Resources) -> serde_json::Value {
    let array = |&(name, stage, items, each): &(&str, u8, usize, usize)| {
        let bytes = items * each;
        json!({"array": name, "stage": stage, "items": items, "bytes_an_item": each, "bytes": bytes})
    };
    let arrays: Vec<_> = resources.arrays.iter().map(array).collect();
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

fn arrays(resources: &Resources) -> Table {
    let columns = [
        ("array", Align::Left),
        ("stage", Align::Right),
        ("items", Align::Right),
        ("bytes an item", Align::Right),
        ("bytes", Align::Right),
    ];
    let mut table = Table::new("Register arrays", &columns);
    for &(name, stage, items, bytes) in &resources.arrays {
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
    }
}
