//! The switch in the kernel: what is compiled only with clang is checked where clang is.

use crate::step::{self, Verdict};
use crate::tally::Tally;
use crate::workspace::{Workspace, cargo};
use crate::{ahead, setup};

/// What says to the harness how many tests of a program run at a time.
const THREADS: &str = "RUST_TEST_THREADS";
/// Most of its time a test waits: for leases, which are long so that a machine that stands still
/// passes, and for processes.
const TESTS_A_PROCESSOR: usize = 2;

/// The packages that have the feature `xdp`.
const LINTED: &[&str] = &[
    "-p",
    "rackmem-xdp",
    "-p",
    "rackmem",
    "-p",
    "rackmem-bench",
    "-p",
    "rackmem-cli",
];

/// The lints of what only the feature compiles.
pub fn lints(workspace: &Workspace) -> Verdict {
    if let Some(why) = missing() {
        return Verdict::Skipped(why);
    }
    let mut command = workspace.command(cargo());
    command.arg("clippy").args(LINTED);
    command.args(["--features", "xdp", "--all-targets"]);
    command.args(["--", "-D", "warnings"]);
    step::holds(command)
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
    let mut command = workspace.command(cargo());
    command.args(["test", "--workspace", "--no-fail-fast"]);
    command.args(features());
    if std::env::var_os(THREADS).is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        command.env(THREADS, (TESTS_A_PROCESSOR * processors).to_string());
    }
    ahead::beside(workspace, || step::counted(command))
}

/// The binaries as the tests have them.
pub fn binaries(workspace: &Workspace) -> Verdict {
    let mut command = workspace.command(cargo());
    command.args(["build", "--workspace", "--bins"]);
    command.args(features());
    step::holds(command)
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
