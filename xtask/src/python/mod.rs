//! The Python package: its wheel, in an environment that has nothing else of this checkout.

mod versions;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{self, Verdict};
use crate::workspace::{Workspace, cargo};
use crate::{Failure, setup, xdp};

/// What its tests import beside it.
const PACKAGES: &[&str] = &[
    "numpy>=1.26,<3",
    "pytest>=8,<9",
    "distributed>=2026,<2027",
    "mypy>=1.13,<3",
];
/// What links for systems older than this one.
const ZIG: &str = "ziglang>=0.13,<1";

/// `cargo xtask python`.
pub fn command(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    match arguments {
        [] => {
            let held = tests(workspace).told()?;
            match other_versions(workspace) {
                Verdict::Skipped(why) => println!("skipped: {why}"),
                verdict => return Ok(verdict.told()? && held),
            }
            Ok(held)
        }
        [demo] if demo == "demo" => self::demo(workspace),
        [wheel] if wheel == "wheel" => self::wheel(workspace),
        _ => Err("python: takes nothing, `demo` or `wheel`".into()),
    }
}

/// Two Python processes that change one array: a part of `make demo`, which has built `rackmem`.
fn demo(workspace: &Workspace) -> Result<bool, Failure> {
    println!("\nTwo Python processes, one NumPy array (python/examples/heat.py)");
    let folder = workspace.target.join("python-demo");
    let python = match with_numpy(&folder) {
        Ok(python) => python,
        Err(why) => {
            println!("  skipped: {why}");
            return Ok(true);
        }
    };
    let mut build = workspace.command(cargo());
    build.args(["build", "--release", "--quiet", "-p", "rackmem-python"]);
    if xdp::can_be_built() {
        build.args(["--features", "rackmem-python/xdp"]);
    }
    if !build.status().is_ok_and(|status| status.success()) {
        return Err("the Python package does not compile".into());
    }
    let release = workspace.target.join("release");
    let package = folder.join("rackmem");
    let laid_out = lay_out(&workspace.root.join("python/rackmem"), &release, &package);
    laid_out.map_err(|error| format!("{}: {error}", package.display()))?;
    let mut run = workspace.command(release.join("rackmem"));
    run.args(["run", "-n", "2", "--"])
        .arg(python)
        .arg("python/examples/heat.py")
        .env("PYTHONPATH", &folder);
    Ok(run.status().is_ok_and(|status| status.success()))
}

/// A Python that has NumPy: the system's, or one of our own.
fn with_numpy(folder: &Path) -> Result<PathBuf, Failure> {
    let has = |python: &Path| {
        let mut asks = Command::new(python);
        asks.args([
            "-c",
            "import numpy, sys; sys.exit(sys.version_info < (3, 11))",
        ]);
        let asks = asks.stderr(Stdio::null()).status();
        asks.is_ok_and(|status| status.success())
    };
    let own = folder.join("venv/bin/python");
    let system = PathBuf::from("python3");
    if let Some(python) = [system, own.clone()].into_iter().find(|python| has(python)) {
        return Ok(python);
    }
    println!("  NumPy is missing: a Python environment with it is made in the build's folder");
    let quietly = |command: &mut Command| {
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv", "--clear"])
        .arg(folder.join("venv"));
    if !quietly(&mut venv) {
        return Err("no python3 with venv: apt-get install python3-venv".into());
    }
    let mut pip = Command::new(&own);
    pip.args(["-m", "pip", "install", "--quiet", PACKAGES[0]]);
    match quietly(&mut pip) && has(&own) {
        true => Ok(own),
        false => Err("no NumPy: pip could not install it".into()),
    }
}

/// The package in a folder, as its wheel has it.
fn lay_out(sources: &Path, release: &Path, package: &Path) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(package);
    std::fs::create_dir_all(package)?;
    for entry in std::fs::read_dir(sources)? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            std::fs::copy(&path, package.join(name))?;
        }
    }
    let built = release.join("lib_rackmem.so");
    std::fs::copy(built, package.join("_rackmem.abi3.so")).map(drop)
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
    let folder = workspace.target.join("python-fresh");
    match environment(&setup::python(workspace), &folder, &wheels) {
        Err(why) => Verdict::Failed(why),
        Ok(python) => step::counted(versions::pytest(workspace, &python, "python/tests")),
    }
}

/// The wheel that [`tests`] has built, in other versions of Python.
pub fn other_versions(workspace: &Workspace) -> Verdict {
    let wheels = workspace.target.join("wheels");
    match wheels.exists() {
        true => versions::tests_but(workspace, &wheels, &setup::python(workspace)),
        false => Verdict::Skipped("no wheel was built".into()),
    }
}

/// The wheel that people install: for every Linux since glibc 2.17, by Zig's linker.
fn wheel(workspace: &Workspace) -> Result<bool, Failure> {
    let python = setup::python(workspace);
    let maturin = python.with_file_name("maturin");
    if !maturin.exists() {
        return Err("no maturin: run `cargo xtask setup test`".into());
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", ZIG]);
    if !pip.status().is_ok_and(|status| status.success()) {
        return Err("pip could not install Zig, whose linker knows older systems".into());
    }
    let wheels = workspace.target.join("wheels-release");
    let _ = std::fs::remove_dir_all(&wheels);
    let mut build = workspace.command(maturin);
    build
        .args(["build", "--release", "--strip", "--zig", "--compatibility"])
        .args(["manylinux2014", "--manifest-path", "python/Cargo.toml"])
        .arg("--out")
        .arg(&wheels)
        .env("CARGO_TARGET_DIR", &workspace.target)
        .env("CARGO_ZIGBUILD_PYTHON_PATH", &python);
    if !build.status().is_ok_and(|status| status.success()) {
        return Err("the wheel was not built".into());
    }
    println!("The wheel is in {}", wheels.display());
    versions::tests_but(workspace, &wheels, Path::new("")).told()
}

/// A fresh environment with the wheel; its Python.
fn environment(python: &Path, folder: &Path, wheels: &Path) -> Result<PathBuf, Failure> {
    let wheel = std::fs::read_dir(wheels)
        .map_err(|error| format!("{}: {error}", wheels.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|kind| kind == "whl"))
        .ok_or("maturin made no wheel")?;
    let made = Command::new(python)
        .args(["-m", "venv", "--clear"])
        .arg(folder)
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return Err("python3 -m venv failed".into());
    }
    let python = folder.join("bin/python");
    let installed = Command::new(&python)
        .args(["-m", "pip", "install", "--quiet"])
        .arg("--disable-pip-version-check")
        .args(PACKAGES)
        .arg(wheel)
        .status();
    match installed.is_ok_and(|status| status.success()) {
        true => Ok(python),
        false => Err("pip could not install the wheel".into()),
    }
}
