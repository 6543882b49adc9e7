//! The code that threads share without locks: in every order of steps (`races/`, docs/races.md),
//! and under miri where that is installed.

use std::process::{Command, Stdio};

use crate::Failure;
use crate::step::{self, Verdict};
use crate::workspace::{Workspace, cargo};

/// A workspace of its own, so that no other build takes the checker.
const MANIFEST: &str = "races/Cargo.toml";

/// What miri runs: the package and the tests of its library whose names begin so.
/// System calls are none of its business.
const UNDER_MIRI: &[(&str, &[&str])] = &[
    (
        "rackmem",
        &[
            "cache::",
            "whole::",
            "slots::",
            "locks::fast::",
            "locks::cell::",
            "bounded::places::",
        ],
    ),
    (
        "rackmem-fabric",
        &["words::tests::bytes", "shm::lane::tests::packets"],
    ),
];

/// `cargo xtask races [TEST]`: what was gone through, a line a scenario and a defect.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    let status = in_races(workspace, "test")
        .args(["--test", "explore"])
        .args(arguments)
        .args(["--", "--nocapture", "--test-threads", "1"])
        .status()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    Ok(status.success())
}

/// The lints of its workspace, and of the shipped files in it.
pub fn lints(workspace: &Workspace) -> Verdict {
    let mut command = in_races(workspace, "clippy");
    command.args(["--all-targets", "--", "-D", "warnings"]);
    step::holds(command)
}

/// Every scenario and every planted defect, and beside them the tests of the same code under miri,
/// which looks for undefined behaviour and lets stores come late. How far an exploration goes is
/// bounded by preemptions, not by time.
pub fn tests(workspace: &Workspace) -> Verdict {
    let mut commands = vec![("races: explore".to_owned(), explore(workspace, &[]))];
    let mut asked = nightly(workspace, &["miri", "--version"]);
    let quiet = asked.stdout(Stdio::null()).stderr(Stdio::null());
    let has_miri = quiet.status().is_ok_and(|status| status.success());
    if has_miri {
        commands.extend(UNDER_MIRI.iter().map(|(package, tests)| {
            let mut command = miri(workspace, &["--package", package]);
            command.arg("--").args(*tests);
            (format!("{package} under miri"), command)
        }));
    }
    step::after_build(build(workspace), || {
        let mut sum = step::count_all(commands);
        if !has_miri {
            sum.skip("cargo miri: rustup +nightly component add miri rust-src");
        }
        sum.verdict(Ok(true))
    })
}

/// What compiles the scenarios.
pub fn build(workspace: &Workspace) -> Command {
    explore(workspace, &["--no-run"])
}

fn explore(workspace: &Workspace, more: &[&str]) -> Command {
    let mut command = in_races(workspace, "test");
    command.args(["--test", "explore"]).args(more);
    command
}

/// What compiles the tests for miri.
pub fn build_under_miri(workspace: &Workspace) -> Command {
    let packages = UNDER_MIRI
        .iter()
        .flat_map(|(package, _)| ["--package", package]);
    let mut command = miri(workspace, &packages.collect::<Vec<_>>());
    command.arg("--no-run");
    command
}

fn miri(workspace: &Workspace, packages: &[&str]) -> Command {
    let mut command = nightly(workspace, &["miri", "test", "--lib"]);
    command
        .args(packages)
        .arg("--target-dir")
        .arg(workspace.target.join("miri"));
    command
}

fn nightly(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = workspace.command("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments);
    command
}

fn in_races(workspace: &Workspace, subcommand: &str) -> Command {
    let mut command = workspace.command(cargo());
    command
        .args([subcommand, "--manifest-path", MANIFEST])
        .arg("--target-dir")
        .arg(workspace.target.join("races"));
    command
}
