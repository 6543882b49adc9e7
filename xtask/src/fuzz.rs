//! Runs the fuzz targets: on any machine by their stable driver,
//! and by cargo-fuzz where it is installed.

use std::process::{Command, Stdio};

use crate::Failure;
use crate::setup;
use crate::step::{self, Verdict};
use crate::workspace::{Workspace, cargo};

/// Seconds a target gets in `cargo xtask test`, for each of the two drivers.
const SHORT_RUN: &str = "5";

/// `cargo xtask fuzz`: the options go to the driver, which knows the targets.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    let status = workspace
        .command(cargo())
        .args(["run", "--profile", "fuzz", "--package", "rackmem-fuzz"])
        .args(["--bin", "stable", "--"])
        .args(arguments)
        .status()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    Ok(status.success())
}

/// Every target for a short while, with a fixed seed so that a failure repeats.
pub fn short_run(workspace: &Workspace) -> Verdict {
    let run = |target: &str| {
        let mut command = driver(workspace);
        command.args(["--target", target, "--seconds", SHORT_RUN, "--seed", "1"]);
        command
    };
    match targets(workspace, run) {
        Ok(commands) => step::all_counted(commands),
        Err(failure) => Verdict::Failed(failure),
    }
}

/// Every target for a short while under libFuzzer.
pub fn short_libfuzzer_run(workspace: &Workspace) -> Verdict {
    let mut fuzzer = workspace.command(cargo());
    if !answers(setup::with_tools(
        workspace,
        fuzzer.args(["fuzz", "--version"]),
    )) {
        return Verdict::Skipped("cargo-fuzz is not installed".into());
    }
    if !answers(Command::new("rustup").args(["run", "nightly", "rustc", "--version"])) {
        return Verdict::Skipped("there is no nightly compiler".into());
    }
    if let Verdict::Failed(why) = write_seeds(workspace) {
        return Verdict::Failed(why);
    }
    step::after_build(build_libfuzzer(workspace), || {
        match targets(workspace, |target| libfuzzer(workspace, target)) {
            Ok(commands) => step::all_hold(commands),
            Err(failure) => Verdict::Failed(failure),
        }
    })
}

/// libFuzzer keeps what it finds of interest beside the seeds.
fn write_seeds(workspace: &Workspace) -> Verdict {
    let mut command = driver(workspace);
    command.arg("--write-seeds");
    step::holds(command)
}

fn libfuzzer(workspace: &Workspace, target: &str) -> Command {
    let mut command = cargo_fuzz(workspace, "run");
    command
        .args([target, "--"])
        .arg(format!("-max_total_time={SHORT_RUN}"));
    command
}

/// What compiles every target with libFuzzer.
pub fn build_libfuzzer(workspace: &Workspace) -> Command {
    cargo_fuzz(workspace, "build")
}

/// It runs in the folder of the targets, where cargo finds how they are built for it. Without what
/// takes half of the time to compile and finds little in some seconds: the address sanitizer, where
/// miri runs what is unsafe, and a look at each comparison. `cargo fuzz run` has both.
fn cargo_fuzz(workspace: &Workspace, subcommand: &str) -> Command {
    let mut command = workspace.command("rustup");
    command
        .current_dir(workspace.root.join("fuzz"))
        .args(["run", "nightly", "cargo", "fuzz", subcommand, "--dev"])
        .args(["--sanitizer", "none", "--no-trace-compares"])
        .args(["--no-default-features", "--features", "libfuzzer"])
        .arg("--target-dir")
        .arg(workspace.target.join("fuzz/libfuzzer"));
    setup::with_tools(workspace, &mut command);
    command
}

/// The stable driver for short runs, as the step that builds all binaries has made it: building it
/// for speed would take most of the time.
fn driver(workspace: &Workspace) -> Command {
    workspace.command(workspace.target.join("debug/stable"))
}

/// The targets by name, and for each a command.
fn targets(
    workspace: &Workspace,
    command: impl Fn(&str) -> Command,
) -> Result<Vec<(String, Command)>, Failure> {
    let output = driver(workspace)
        .arg("--list")
        .output()
        .map_err(|error| format!("the driver did not start: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let names = (lines.lines()).filter_map(|line| line.split_whitespace().next());
    Ok(names.map(|name| (name.to_owned(), command(name))).collect())
}

fn answers(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
