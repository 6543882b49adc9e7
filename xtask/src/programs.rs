//! The programs of tests that cargo has built, run as cargo runs them: those that only compute
//! beside those that wait.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde::Deserialize;

use crate::Failure;
use crate::counting::Counting;
use crate::process::{self, Patience};
use crate::step;
use crate::workspace::{Workspace, cargo};

/// What says to the harness how many tests of a program run at a time.
const THREADS: &str = "RUST_TEST_THREADS";
/// What says to tests where the library is that programs preload. Without it they have cargo build
/// it, for as long as a machine with much to do takes to compile all that it stands on: a package
/// alone has other features than all of them.
const LIBRARY: &str = "RACKMEM_TEST_DROPIN";
/// Most of its time a test waits: for leases, which are long so that a machine that stands still
/// passes, and for processes.
const TESTS_A_PROCESSOR: usize = 2;

/// Packages whose tests have no clock, process or socket: they take the processors when the others
/// wait, and their order is the order here, the longest first.
const COMPUTING: &[&str] = &["rackmem-sim", "rackmem-proto", "rackmem-wire"];
/// Their priority, as `nice` counts it: before builds that nobody waits for yet.
const BESIDE: u8 = 10;

/// A program of tests.
pub struct Program {
    /// Of the package that it belongs to.
    package: String,
    folder: PathBuf,
    /// Its source, as seen from the folder.
    source: String,
    path: PathBuf,
}

impl Program {
    fn name(&self) -> String {
        format!("{} of {}", self.source, self.package)
    }

    fn command(&self, workspace: &Workspace, threads: usize) -> Command {
        let mut command = Command::new(&self.path);
        command
            .current_dir(&self.folder)
            .env(
                LIBRARY,
                workspace.target.join("debug/librackmem_pthread.so"),
            )
            .env("CARGO_MANIFEST_DIR", &self.folder);
        if std::env::var_os(THREADS).is_none() {
            command.env(THREADS, threads.to_string());
        }
        command
    }
}

/// A line of `cargo --message-format=json`.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// What `cargo test` with these options would run, which it has built: examples and binaries that
/// tests start are not among them.
pub fn built(workspace: &Workspace, options: &[&str]) -> Result<Vec<Program>, Failure> {
    let output = workspace
        .command(cargo())
        .args(["test", "--no-run", "--quiet"])
        .arg("--message-format=json-render-diagnostics")
        .args(options)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    if !output.status.success() {
        return Err("the tests do not compile".into());
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let programs = lines.lines().filter_map(|line| program(workspace, line));
    Ok(programs.collect())
}

/// The program of tests that a line of cargo tells of.
fn program(workspace: &Workspace, line: &str) -> Option<Program> {
    let message: Message = serde_json::from_str(line).ok()?;
    let is_test = message.reason == "compiler-artifact" && message.profile?.test;
    let (manifest, path) = (message.manifest_path?, message.executable?);
    let folder = manifest.parent()?.to_owned();
    let source = message.target?.src_path;
    let source = source.strip_prefix(&folder).unwrap_or(&source);
    let package = (workspace.packages.iter()).find(|package| package.manifest_path == manifest)?;
    is_test.then(|| Program {
        package: package.name.clone(),
        source: source.display().to_string(),
        folder,
        path,
    })
}

/// Runs all of them, and then what runs the examples of the documentation.
pub fn run(workspace: &Workspace, programs: Vec<Program>, documentation: Command) -> Counting {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let rank = |program: &Program| COMPUTING.iter().position(|name| *name == program.package);
    let (mut computing, mut waiting): (Vec<_>, Vec<_>) =
        (programs.into_iter()).partition(|program| rank(program).is_some());
    computing.sort_by_key(rank);
    // Cargo tells of them in the order in which they were built.
    waiting.sort_by_key(Program::name);
    let beside = |program: &Program| process::nice(&program.command(workspace, processors), BESIDE);
    let beside = (computing.iter()).map(|program| (program.name(), beside(program)));
    let end = Instant::now() + step::LIMIT;
    let mut sum = Counting::default();
    thread::scope(|scope| {
        let computed = scope.spawn(|| process::side_by_side(beside.collect(), end));
        for program in &waiting {
            let command = program.command(workspace, TESTS_A_PROCESSOR * processors);
            sum.add(in_sight(&program.name(), command, end));
        }
        sum.add(in_sight("documentation", documentation, end));
        println!("   the tests that only compute are waited for");
        let computed = computed.join().unwrap_or_else(|panic| resume_unwind(panic));
        computed
            .into_iter()
            .for_each(|told| sum.add(Counting::of(told)));
    });
    sum
}

/// Runs one, and prints what it says.
fn in_sight(name: &str, command: Command, end: Instant) -> Counting {
    println!("     Running {name}");
    let mut counting = Counting::default();
    let patience = Patience::of_tests(end.saturating_duration_since(Instant::now()));
    let print = |line: &str| println!("{line}");
    let how = process::watch_tests(command, patience, print, |of, line| counting.read(of, line));
    counting.ended(name, how);
    counting
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::step::Verdict;

    /// A program of a package that does what a script says.
    fn program(package: &str, script: &str) -> Program {
        let folder = std::env::temp_dir().join(format!("rackmem-programs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(package);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Program {
            package: package.into(),
            source: "tests/x.rs".into(),
            folder,
            path,
        }
    }

    #[test]
    fn those_that_compute_and_those_that_wait_are_counted_together() {
        let holds = "test -n \"$RUST_TEST_THREADS\" && test $PWD = $CARGO_MANIFEST_DIR && test -n \"$RACKMEM_TEST_DROPIN\" && ";
        let passed = format!("{holds} echo 'test result: ok. 2 passed; 0 failed'");
        let failed = "echo 'test a::b ... FAILED'; \
                      echo 'test result: FAILED. 1 passed; 1 failed'; exit 101";
        let programs = vec![
            program("rackmem-sim", &passed),
            program("rackmem-proto", failed),
            program("rackmem-cli", &passed),
            program("rackmem-kv", "kill -KILL $$"),
        ];
        let mut last = Command::new("sh");
        last.args(["-c", "echo 'test result: ok. 1 passed; 0 failed'"]);
        let verdict = run(&Workspace::load().unwrap(), programs, last).verdict(Ok(true));
        let Verdict::Told(tally, mut names, _) = verdict else {
            panic!("no failure is told");
        };
        names.sort();
        assert_eq!((tally.passed, tally.failed), (6, 2));
        assert_eq!(names[0], "a::b");
        assert!(
            names[1].starts_with("tests/x.rs of rackmem-kv signal: 9"),
            "{names:?}"
        );
    }

    #[test]
    fn a_line_of_cargo_tells_of_a_program() {
        let workspace = Workspace::load().unwrap();
        let folder = workspace.root.join("crates/sim");
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{0}/Cargo.toml",
                "target":{{"src_path":"{0}/tests/bi.rs"}},"profile":{{"test":{test}}},
                "executable":{executable}}}"#,
                folder.display()
            )
        };
        let found = super::program(&workspace, &line(true, "\"/x\"")).unwrap();
        assert_eq!(found.name(), "tests/bi.rs of rackmem-sim");
        assert_eq!(
            (found.path, found.folder),
            (PathBuf::from("/x"), folder.clone())
        );
        for line in [line(true, "null"), line(false, "\"/x\""), "x".into()] {
            assert!(super::program(&workspace, &line).is_none(), "{line}");
        }
    }

    #[test]
    fn what_computes_is_of_this_workspace() {
        let workspace = Workspace::load().unwrap();
        let has = |name: &&str| {
            workspace
                .packages
                .iter()
                .any(|package| package.name == *name)
        };
        assert!(COMPUTING.iter().all(has));
    }
}
