//! The Python package: its wheel, in an environment that has nothing else of this checkout.

use std::path::PathBuf;
use std::process::Command;

use crate::step::{self, Verdict};
use crate::workspace::Workspace;
use crate::{Failure, setup, xdp};

/// What its tests import beside it.
const PACKAGES: &[&str] = &["numpy>=1.26,<3", "pytest>=8,<9"];

/// `cargo xtask python`.
pub fn command(workspace: &Workspace, _: &[String]) -> Result<bool, Failure> {
    tests(workspace).told()
}

/// Builds the wheel, installs it in a fresh environment, and runs its tests there.
pub fn tests(workspace: &Workspace) -> Verdict {
    let maturin = setup::python(workspace).with_file_name("maturin");
    if !maturin.exists() {
        return Verdict::Skipped("no maturin: run `cargo xtask setup test`".into());
    }
    let wheels = workspace.target.join("wheels");
    let mut build = workspace.command(maturin);
    // The profile and features of all other tests: what they have compiled is used.
    build
        .args([
            "build",
            "--profile",
            "dev",
            "--manifest-path",
            "python/Cargo.toml",
            "--out",
        ])
        .arg(&wheels)
        .env("CARGO_TARGET_DIR", &workspace.target);
    if xdp::can_be_built() {
        build.args(["--features", "xdp"]);
    }
    // A wheel of an earlier version would be as good to `pip` as this one.
    let _ = std::fs::remove_dir_all(&wheels);
    match step::holds(build) {
        Verdict::Counted(tally) if tally.failed == 0 => {}
        other => return other,
    }
    match environment(workspace, &wheels) {
        Err(why) => Verdict::Failed(why),
        Ok(python) => {
            let mut tests = workspace.command(python);
            tests
                .args([
                    "-m",
                    "pytest",
                    "--color=no",
                    "-rs",
                    "-p",
                    "no:cacheprovider",
                ])
                .arg("python/tests")
                .env("PYTHONDONTWRITEBYTECODE", "1")
                // The package that is installed, not the folder beside the tests.
                .env("PYTHONSAFEPATH", "1");
            step::counted(tests)
        }
    }
}

/// A fresh environment with the wheel; its Python.
fn environment(workspace: &Workspace, wheels: &std::path::Path) -> Result<PathBuf, Failure> {
    let wheel = std::fs::read_dir(wheels)
        .map_err(|error| format!("{}: {error}", wheels.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|kind| kind == "whl"))
        .ok_or("maturin made no wheel")?;
    let folder = workspace.target.join("python-fresh");
    let made = Command::new(setup::python(workspace))
        .args(["-m", "venv", "--clear"])
        .arg(&folder)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return Err("python3 -m venv failed".into());
    }
    let python = folder.join("bin/python");
    let installed = Command::new(&python)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ])
        .args(PACKAGES)
        .arg(wheel)
        .status();
    match installed.is_ok_and(|status| status.success()) {
        true => Ok(python),
        false => Err("pip could not install the wheel".into()),
    }
}
