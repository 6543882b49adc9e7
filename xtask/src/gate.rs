//! What a change must pass, as tables.

use std::path::{Path, PathBuf};

use crate::step::{self, Action, Stage, Step, Verdict};
use crate::workspace::{Workspace, cargo};
use crate::{Failure, ahead, c, fuzz, golden, licences, python, races, setup, tidy, xdp};

/// The read-only gate. It changes no file of the source tree.
const VERIFY: &[Step] = &[
    Step {
        name: "format",
        action: Action::Cargo(&["fmt", "--all", "--check"]),
    },
    Step {
        name: "lints",
        action: Action::Run(xdp::lints),
    },
    Step {
        name: "lints without the switch in the kernel",
        action: Action::Run(xdp::lints_without),
    },
    Step {
        name: "format of the races",
        action: Action::Cargo(&["fmt", "--manifest-path", "races/Cargo.toml", "--check"]),
    },
    Step {
        name: "lints of the races",
        action: Action::Run(races::lints),
    },
    Step {
        name: "house rules",
        action: Action::Run(tidy::verdict),
    },
    Step {
        name: "golden packets and generated headers",
        action: Action::Cargo(golden::CHECK),
    },
    Step {
        name: "licences of dependencies",
        action: Action::Run(licences::verdict),
    },
    Step {
        name: "documentation",
        action: Action::Cargo(&["doc", "--workspace", "--lib", "--no-deps"]),
    },
];

/// What `test --quick` runs: what a change breaks first. The explorers, the seeded worlds, racks of
/// processes, races and fuzzers are left out.
const QUICK: &[Step] = &[
    Step {
        name: "format",
        action: Action::Cargo(&["fmt", "--all", "--check"]),
    },
    Step {
        name: "house rules",
        action: Action::Run(tidy::verdict),
    },
    Step {
        name: "golden packets and generated headers",
        action: Action::Cargo(golden::CHECK),
    },
    Step {
        name: "unit tests",
        action: Action::Tests(&["test", "--workspace", "--lib", "--bins", "--no-fail-fast"]),
    },
    Step {
        name: "the core",
        action: Action::Tests(&[
            "test",
            "-p",
            "rackmem-wire",
            "-p",
            "rackmem-proto",
            "--tests",
        ]),
    },
    Step {
        name: "racks in one process, over every fabric",
        action: Action::Tests(&[
            "test",
            "-p",
            "rackmem",
            "--test",
            "coherence",
            "--test",
            "memory",
        ]),
    },
];

/// What `test` builds after the gate.
const BUILDS: &[Step] = &[
    Step {
        name: "build of the tests",
        action: Action::Run(xdp::build_tests),
    },
    Step {
        name: "binaries and libraries",
        action: Action::Run(xdp::binaries),
    },
];

/// What it runs then: most of it waits, for processes and leases.
const TESTS: &[Step] = &[
    Step {
        name: "unit, integration and end to end",
        action: Action::Run(xdp::tests),
    },
    Step {
        name: "the switch in the kernel is among them",
        action: Action::Run(xdp::is_tested),
    },
    Step {
        name: "Python clients",
        action: Action::Run(python_clients),
    },
    Step {
        name: "the library for C",
        action: Action::Run(c::tests),
    },
    Step {
        name: "the Python package",
        action: Action::Run(python::tests),
    },
    Step {
        name: "the Python package, other versions",
        action: Action::Run(python::other_versions),
    },
];

/// What takes every processor, and was compiled meanwhile.
const COMPUTED: &[Step] = &[
    Step {
        name: "races: every order, and miri",
        action: Action::Run(races::tests),
    },
    Step {
        name: "fuzz, stable driver",
        action: Action::Run(fuzz::short_run),
    },
    Step {
        name: "fuzz, libFuzzer",
        action: Action::Run(fuzz::short_libfuzzer_run),
    },
];

/// All of `test`.
const ALL: &[Stage] = &[
    alone(VERIFY),
    alone(BUILDS),
    Stage {
        steps: TESTS,
        beside: Some(ahead::compile),
    },
    alone(COMPUTED),
];

const fn alone(steps: &'static [Step]) -> Stage {
    Stage {
        steps,
        beside: None,
    }
}

/// Repairs; each may change files.
const FIXES: &[&[&str]] = &[
    &[
        "clippy",
        "--workspace",
        "--all-targets",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
    ],
    &["fmt", "--all"],
    &["fmt", "--manifest-path", "races/Cargo.toml"],
];

/// `cargo xtask verify`.
pub fn verify(workspace: &Workspace, _: &[String]) -> Result<bool, Failure> {
    Ok(step::run_all(workspace, &[alone(VERIFY)]))
}

/// `cargo xtask test`.
pub fn test(workspace: &Workspace, arguments: &[String]) -> Result<bool, Failure> {
    match arguments {
        [] => Ok(step::run_all(workspace, ALL)),
        [quick] if quick == "--quick" => Ok(step::run_all(workspace, &[alone(QUICK)])),
        _ => Err("test: takes --quick, and nothing else".into()),
    }
}

/// `cargo xtask fix`.
pub fn fix(workspace: &Workspace, _: &[String]) -> Result<bool, Failure> {
    tidy::wrap(workspace, &[])?;
    for arguments in FIXES {
        let status = workspace
            .command(cargo())
            .args(*arguments)
            .status()
            .map_err(|error| format!("cargo did not start: {error}"))?;
        if !status.success() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The end-to-end tests that are written in Python, against the `rackmem` binary that was just
/// built.
fn python_clients(workspace: &Workspace) -> Verdict {
    let tests = workspace.root.join("tests/e2e");
    if !holds_python_tests(&tests) {
        return Verdict::Skipped("there are none".into());
    }
    let python = setup::python(workspace);
    if !python.exists() {
        return Verdict::Skipped("no Python environment: run `cargo xtask setup test`".into());
    }
    let mut command = workspace.command(python);
    command
        .args([
            "-m",
            "pytest",
            "--color=no",
            "-rfEs",
            "-p",
            "no:cacheprovider",
            "tests/e2e",
        ])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("RACKMEM_BIN", binary(workspace));
    step::counted(command)
}

fn binary(workspace: &Workspace) -> PathBuf {
    workspace.target.join("debug/rackmem")
}

fn holds_python_tests(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name.starts_with("test_") && name.ends_with(".py")
    })
}
