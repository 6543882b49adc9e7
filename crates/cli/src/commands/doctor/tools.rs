//! Programs and data that the demo, the tests and the benches use when they are there.

use super::{Check, Finding, State};
use rackmem_bench::packages::LISTS;
use std::fs;
use std::path::PathBuf;

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
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found: Option<PathBuf> = std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    match found {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_looked_for_in_the_path() {
        assert_eq!(program("sh").state, State::Found);
        assert_eq!(program("no-such-program").state, State::Missing);
    }
}
