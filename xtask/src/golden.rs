//! What is made from the Rust switch program: golden packets, and the headers that C and P4
//! include.

use crate::Failure;
use crate::workspace::{Workspace, cargo};

const WRITE: &[&str] = &["run", "--quiet", "--package", "rackmem-conformance"];

/// The same, to say what is stale instead of writing it: a step of the gate.
pub const CHECK: &[&str] = &[
    "run",
    "--quiet",
    "--package",
    "rackmem-conformance",
    "--",
    "--check",
];

/// `cargo xtask golden [--check]`.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    let wanted = match arguments {
        [] => WRITE,
        [option] if option == "--check" => CHECK,
        _ => return Err("the only option is --check".into()),
    };
    let status = workspace.command(cargo()).args(wanted).status();
    let status = status.map_err(|error| format!("cargo did not start: {error}"))?;
    Ok(status.success())
}
