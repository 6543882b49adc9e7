//! The switch in the kernel: what is compiled only with clang is checked where clang is.

use crate::setup;
use crate::step::{self, Verdict};
use crate::workspace::{Workspace, cargo};

/// The packages that have the feature `xdp`.
const LINTED: &[&str] = &["-p", "rackmem-xdp", "-p", "rackmem", "-p", "rackmem-cli"];

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

/// Golden packets in the kernel, and the program between hosts. They skip themselves where the kernel refuses.
pub fn tests(workspace: &Workspace) -> Verdict {
    if let Some(why) = missing() {
        return Verdict::Skipped(why);
    }
    let mut command = workspace.command(cargo());
    command.args([
        "test",
        "-p",
        "rackmem-xdp",
        "--features",
        "xdp",
        "--no-fail-fast",
    ]);
    step::counted(command)
}

/// What keeps the feature `xdp` from being built here.
fn missing() -> Option<String> {
    let lacks = [("clang", "clang"), (setup::BPF_HEADERS, "libbpf-dev")];
    let (_, package) = lacks.into_iter().find(|(file, _)| !setup::on_path(file))?;
    Some(format!(
        "{package} is not installed: run `cargo xtask setup test`"
    ))
}
