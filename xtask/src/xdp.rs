//! The switch in the kernel: what is compiled only with clang is checked where clang is.

use std::process::Command;

use crate::step::{self, Verdict};
use crate::tally::Tally;
use crate::workspace::{Workspace, cargo};
use crate::{programs, setup};

/// The packages that have the feature `xdp`.
const OPTIONAL_IN: &[&str] = &[
    "-p",
    "rackmem-xdp",
    "-p",
    "rackmem",
    "-p",
    "rackmem-bench",
    "-p",
    "rackmem-cli",
];

/// The lints of everything, with the feature where that can be compiled.
pub fn lints(workspace: &Workspace) -> Verdict {
    lint(workspace, &[&["--workspace", "--all-targets"], features()])
}

/// The lints of what is compiled only without the feature: libraries and binaries have such lines.
pub fn lints_without(workspace: &Workspace) -> Verdict {
    if let Some(why) = missing() {
        return Verdict::Skipped(format!("all lints were without: {why}"));
    }
    lint(workspace, &[OPTIONAL_IN, &["--lib", "--bins"]])
}

fn lint(workspace: &Workspace, options: &[&[&str]]) -> Verdict {
    let mut command = workspace.command(cargo());
    command.arg("clippy").args(options.concat());
    command.args(["--", "-D", "warnings"]);
    step::builds(command)
}

/// What [`tests`] runs, compiled beforehand.
pub fn build_tests(workspace: &Workspace) -> Verdict {
    let mut command = workspace.command(cargo());
    command.args(["test", "--workspace", "--no-run"]);
    command.args(features());
    step::builds(command)
}

/// The tests of all packages, and with them the golden packets in the kernel and racks whose switch
/// it is. What needs more of the machine than clang skips itself and says why.
pub fn tests(workspace: &Workspace) -> Verdict {
    let programs = match programs::built(workspace, &[&["--workspace"], features()].concat()) {
        Ok(programs) => programs,
        Err(why) => return Verdict::Failed(why),
    };
    let mut documentation = workspace.command(cargo());
    documentation.args(["test", "--workspace", "--doc", "--no-fail-fast"]);
    documentation.args(features());
    programs::run(workspace, programs, documentation).verdict(Ok(true))
}

/// The binaries and libraries as the tests have them, and what tests preload.
pub fn binaries(workspace: &Workspace) -> Verdict {
    step::holds(build(workspace))
}

/// What compiles them: no other choice of packages has these features of dependencies, and would
/// find what is compiled.
pub fn build(workspace: &Workspace) -> Command {
    let mut command = workspace.command(cargo());
    command.args(["build", "--workspace", "--bins", "--lib"]);
    command.args(features());
    command
}

/// That the tests have the switch in the kernel among them, or why not.
pub fn is_tested(_: &Workspace) -> Verdict {
    missing().map_or(Verdict::Counted(Tally::PASS), Verdict::Skipped)
}

/// The feature of every package that has it, where it can be built.
pub fn features() -> &'static [&'static str] {
    if can_be_built() {
        &["--features", "rackmem-cli/xdp,rackmem-xdp/xdp"]
    } else {
        &[]
    }
}

/// Whether the compiler for the kernel is here.
pub fn can_be_built() -> bool {
    missing().is_none()
}

/// What keeps the feature `xdp` from being built here.
fn missing() -> Option<String> {
    let lacks = [("clang", "clang"), (setup::BPF_HEADERS, "libbpf-dev")];
    let (_, package) = lacks.into_iter().find(|(file, _)| !setup::on_path(file))?;
    Some(format!(
        "{package} is not installed: run `cargo xtask setup test`"
    ))
}
