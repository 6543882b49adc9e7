//! The package in every version of Python that it is for and this machine has.

use super::environment;
use crate::step::{self, Verdict};
use crate::tally::Tally;
use crate::workspace::Workspace;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Minor versions of Python 3 that the package is for.
const MINORS: std::ops::RangeInclusive<u32> = 11..=14;
/// What each of them runs: enough to see that the library loads, and that memory is mapped.
const TESTS: &str = "python/tests/test_arrays.py";

/// Installs the wheel in a fresh environment of each version but this one, and runs some tests.
pub fn tests_but(workspace: &Workspace, wheels: &Path, own: &Path) -> Verdict {
    let own = version_of(own);
    let found = MINORS.filter(|minor| Some(*minor) != own);
    let found: Vec<(u32, PathBuf)> = found
        .filter_map(|minor| Some((minor, find(minor)?)))
        .collect();
    if found.is_empty() {
        let names = MINORS.map(|minor| format!("3.{minor}"));
        let names: Vec<String> = names.collect();
        return Verdict::Skipped(format!("no other Python of {}", names.join(", ")));
    }
    let (mut tally, mut failed, mut said) = (Tally::default(), Vec::new(), Vec::new());
    for (minor, python) in found {
        println!("Python 3.{minor}");
        let folder = workspace.target.join(format!("python-fresh-3.{minor}"));
        let verdict = match environment(&python, &folder, wheels) {
            Ok(python) => step::counted(pytest(workspace, &python, TESTS)),
            Err(why) => Verdict::Failed(why),
        };
        match verdict {
            Verdict::Counted(counted) => tally += counted,
            Verdict::Told(counted, names, lines) => {
                tally += counted;
                failed.extend(names);
                said.extend(lines);
            }
            Verdict::Failed(why) | Verdict::Skipped(why) => {
                tally += Tally::FAIL;
                failed.push(format!("Python 3.{minor}: {why}"));
            }
        }
    }
    Verdict::Told(tally, failed, said)
}

/// The tests in these files, in an environment that has the package.
pub fn pytest(workspace: &Workspace, python: &Path, tests: &str) -> Command {
    let mut command = workspace.command(python);
    command
        .args(["-m", "pytest", "--color=no", "-rfEs", "-p"])
        .args(["no:cacheprovider", tests])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // The package that is installed, not the folder beside the tests.
        .env("PYTHONSAFEPATH", "1");
    command
}

/// A Python of this version that can make environments: on the path, or one of pyenv's.
fn find(minor: u32) -> Option<PathBuf> {
    let works = |python: &PathBuf| {
        let mut asks = Command::new(python);
        asks.args(["-c", "import ensurepip, venv"]);
        asks.stdout(Stdio::null()).stderr(Stdio::null());
        asks.status().is_ok_and(|status| status.success())
    };
    let on_path = PathBuf::from(format!("python3.{minor}"));
    std::iter::once(on_path).chain(of_pyenv(minor)).find(works)
}

fn of_pyenv(minor: u32) -> Vec<PathBuf> {
    let root = Command::new("pyenv").arg("root").output();
    let root = root
        .ok()
        .and_then(|said| String::from_utf8(said.stdout).ok());
    let folders =
        root.and_then(|root| std::fs::read_dir(Path::new(root.trim()).join("versions")).ok());
    let names = folders
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let wanted = format!("3.{minor}.");
    names
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&wanted)
        })
        .map(|path| path.join("bin/python"))
        .collect()
}

/// The minor version of a Python 3.
fn version_of(python: &Path) -> Option<u32> {
    let mut asks = Command::new(python);
    asks.args(["-c", "import sys; print(sys.version_info.minor)"]);
    let said = asks.output().ok()?;
    String::from_utf8(said.stdout).ok()?.trim().parse().ok()
}
