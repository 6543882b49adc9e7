//! `rackmem doctor`: what this machine can do for a rack, how to enable the rest,
//! what is lost without it.

mod kernel;
mod membership;
mod memory;
mod network;
mod objects;
mod procfs;
mod store;
mod tools;

use crate::ended::Ended;
use crate::failure::Result;
use crate::out;
use clap::Args;
use rackmem_bench::table::{Align, Table};
use serde_json::json;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  rackmem doctor                   a table, then how to enable what is missing
  rackmem doctor --rack rack.toml  also check this rack's membership, durable stores, and which way reads of objects go
  rackmem --json doctor            one object, for scripts

It changes nothing, and exits with 0 whatever it finds: the table says what works without a missing feature.";

/// How much of a capability there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All that is wanted.
    Found,
    /// Less than is wanted.
    Limited,
    /// There, and this user may not use it.
    Denied,
    /// Not there.
    Missing,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Found => "found",
            State::Limited => "limited",
            State::Denied => "denied",
            State::Missing => "missing",
        }
    }
}

/// What a probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    state: State,
    detail: String,
}

impl Finding {
    /// A finding in words.
    pub fn new(state: State, detail: impl Into<String>) -> Self {
        Finding {
            state,
            detail: detail.into(),
        }
    }

    /// Found where it holds, else the other state.
    pub fn found_if(holds: bool, otherwise: State, detail: impl Into<String>) -> Self {
        Finding::new(if holds { State::Found } else { otherwise }, detail)
    }
}

/// One capability.
pub struct Check {
    /// Its name: stable, lower case.
    pub name: &'static str,
    /// Looks for it.
    pub probe: fn() -> Finding,
    /// How to get it.
    pub enable: &'static str,
    /// What is lost without it.
    pub without: &'static str,
}

/// All of them, by what they are about.
const TABLES: [&[Check]; 4] = [
    network::CHECKS,
    memory::CHECKS,
    kernel::CHECKS,
    tools::CHECKS,
];

/// Options of `rackmem doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Also check the membership store, durable store and object reads of the rack in FILE
    #[arg(long, value_name = "FILE")]
    rack: Option<PathBuf>,
}

/// Probes everything and tells.
pub fn run(args: &DoctorArgs, json: bool) -> Result<Ended> {
    let mut found: Vec<(&Check, Finding)> = TABLES
        .iter()
        .flat_map(|table| table.iter())
        .map(|check| (check, (check.probe)()))
        .collect();
    if let Some(file) = &args.rack {
        let config = super::load(file)?;
        found.push((&membership::CHECK, membership::look(&config)));
        found.push((&store::CHECK, store::look(config.store())));
        found.push((&objects::CHECK, objects::look(&config)));
    }
    if json {
        print_json(&found);
    } else {
        print_table(&found);
    }
    Ok(Ended::Done)
}

fn print_json(found: &[(&Check, Finding)]) {
    let row = |(check, finding): &(&Check, Finding)| {
        json!({
            "check": check.name,
            "state": finding.state.name(),
            "detail": finding.detail,
            "enable": check.enable,
            "without": check.without,
        })
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    out::line(json!({"checks": rows}));
}

fn print_table(found: &[(&Check, Finding)]) {
    let columns = [
        ("capability", Align::Left),
        ("", Align::Left),
        ("what is there", Align::Left),
    ];
    let mut table = Table::new("rackmem doctor", &columns);
    for (check, finding) in found {
        table.row(&[check.name, finding.state.name(), &finding.detail]);
    }
    out::table(&table);
    let lacking: Vec<_> = found
        .iter()
        .filter(|row| row.1.state != State::Found)
        .collect();
    if lacking.is_empty() {
        out::line("\nEverything is there.");
    }
    for (check, finding) in lacking {
        out::line(format!("\n{} ({})", check.name, finding.state.name()));
        out::line(format!("  enable:  {}", check.enable));
        out::line(format!("  without: {}", check.without));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_check_has_one_name_a_remedy_and_a_price() {
        let all: Vec<&Check> = TABLES.iter().flat_map(|table| table.iter()).collect();
        let names: BTreeSet<&str> = all.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), all.len());
        for check in all {
            assert!(!check.enable.is_empty() && !check.without.is_empty());
        }
    }

    #[test]
    fn every_probe_returns_on_any_machine() {
        for check in TABLES.iter().flat_map(|table| table.iter()) {
            assert!(!(check.probe)().detail.is_empty(), "{}", check.name);
        }
    }
}
