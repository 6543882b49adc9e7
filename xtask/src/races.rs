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

/// Every scenario and every planted defect. How far an exploration goes is bounded by preemptions,
/// not by time.
pub fn tests(workspace: &Workspace) -> Verdict {
    step::after_build(build(workspace), || step::counted(explore(workspace, &[])))
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

/// The tests of the same code under miri, which looks for undefined behaviour and lets stores come
/// late.
pub fn under_miri(workspace: &Workspace) -> Verdict {
    let mut asked = nightly(workspace, &["miri", "--version"]);
    let quiet = asked.stdout(Stdio::null()).stderr(Stdio::null());
    if !quiet.status().is_ok_and(|status| status.success()) {
        return Verdict::Skipped(
            "cargo miri is not installed: rustup +nightly component add miri rust-src".into(),
        );
    }
    let mut counted = None;
    for (package, tests) in UNDER_MIRI {
        let mut command = miri(workspace, &["--package", package]);
        command.arg("--").args(*tests);
        counted = Some(match (counted, step::counted(command)) {
            (Some(Verdict::Counted(before)), Verdict::Counted(tally)) => {
                let mut sum = before;
                sum += tally;
                Verdict::Counted(sum)
            }
            (Some(failed @ (Verdict::Failed(_) | Verdict::Told(..))), _) => failed,
            (_, verdict) => verdict,
        });
    }
    counted.unwrap_or_else(|| Verdict::Failed("there is nothing to run".into()))
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
