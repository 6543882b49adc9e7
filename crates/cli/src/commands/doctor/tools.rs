//! Programs and data that the demo, the tests and the benches use when they are there.

use super::{Check, Finding, State};
use crate::programs;
use rackmem_bench::packages::LISTS;
use std::fs;

pub const CHECKS: &[Check] = &[
    Check {
        name: "redis-cli",
        probe: || program("redis-cli"),
        enable: "as root: apt-get install redis-tools",
        without: "no prompt to try the store at, and some end-to-end tests are skipped",
    },
    Check {
        name: "redis-benchmark",
        probe: || program("redis-benchmark"),
        enable: "as root: apt-get install redis-tools",
        without: "the store is measured through its library only",
    },
    Check {
        name: "redis-server",
        probe: || program("redis-server"),
        enable: "as root: apt-get install redis-server",
        without: "no comparison with Redis in `rackmem bench kv`",
    },
    Check {
        name: "package lists",
        probe: package_lists,
        enable: "on Debian or Ubuntu, as root: apt-get update",
        without: "the demo takes the smaller package graph that is built in",
    },
];

fn program(name: &str) -> Finding {
    match programs::find(name) {
        Some(path) => Finding::new(State::Found, path.display().to_string()),
        None => Finding::new(State::Missing, "not in PATH"),
    }
}

fn package_lists() -> Finding {
    let entries = fs::read_dir(LISTS).into_iter().flatten().flatten();
    let lists = entries
        .filter(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
        .count();
    if lists == 0 {
        return Finding::new(State::Missing, format!("none in {LISTS}"));
    }
    Finding::new(State::Found, format!("{lists} in {LISTS}"))
}
