//! The commands of docs/tutorial.md, run as they stand there. Its Rust programs are documentation
//! tests of `tests/outside`.
//!
//! Three things differ from a reader's shell: nothing is downloaded or compiled (the programs are
//! those that were built for the tests), and the addresses are the test's own.

use crate::process::{TempDir, has, run};
use rackmem_hosts::addresses;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");
const README: &str = include_str!("../../../../README.md");
const COUNTER: &str = include_str!("../../../../examples/counter.rs");
/// What a command prints stands behind this.
const PRINTS: &str = "# =>";
/// Seconds until the shell gives up, so that a command that waits for ever fails the test.
const PATIENCE: u32 = 400;

/// The blocks of a language, without their fences.
fn blocks(language: &str) -> Vec<String> {
    let fence = format!("```{language}");
    let mut found = Vec::new();
    let mut lines = TUTORIAL.lines();
    while let Some(line) = lines.next() {
        if line == fence {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push(block.join("\n"));
        }
    }
    found
}

/// What every script begins with: the first command that fails, or prints something else, ends it.
const PRELUDE: &str = r#"
set -e; exec 2>&1
trap 'kill -9 $(jobs -p) 2> /dev/null || true' EXIT
git() { [ "$1" = clone ] && mkdir rackmem && mv target rackmem; }
cargo() {
    case "$*" in
        "install --path crates/cli" | "build --release --example counter") ;;
        *) echo "cargo $*"; exit 1 ;;
    esac
}
expect() {
    case "$2" in
        *"$1"*) ;;
        *) echo "wanted: $1"; echo "printed: $2"; exit 1 ;;
    esac
}
"#;

/// A script of these lines, each of which may say what it prints.
fn compared(lines: &str) -> String {
    let mut text = PRELUDE.to_owned();
    for line in lines.lines() {
        match line.split_once(PRINTS) {
            Some((command, wanted)) => {
                let (command, wanted) = (command.trim_end(), wanted.trim());
                text += &format!("expect '{wanted}' \"$({command})\"\n");
            }
            None => text += &format!("{line}\n"),
        }
    }
    text
}

/// The tutorial, on addresses that no other process uses.
fn script() -> String {
    let mut text = compared(&blocks("sh").join("\n"));
    let at = addresses(24);
    for (port, addr) in [7400, 7401, 7402, 7403].iter().zip(&at) {
        text = text.replace(&format!("127.0.0.1:{port}"), &addr.to_string());
    }
    let clients = at[4..].iter().find(|addr| addr.port() % 10 == 0);
    let clients = clients.expect("ten ports in a row");
    let (ip, port) = (clients.ip(), clients.port() / 10);
    text = text.replace("127.0.0.1:638", &format!("{ip}:{port}"));
    text = text.replace("redis-cli -p 638", &format!("redis-cli -h {ip} -p {port}"));
    // A machine that runs all tests at once may be late with a heartbeat.
    text.replace("lease_ms = 1000", "lease_ms = 4000")
}

/// Runs a script in a folder of its own, with the programs that were built for the tests.
fn bash(script: &str) -> Output {
    let place = TempDir::new();
    let programs = place.path().join("target/release/examples");
    std::fs::create_dir_all(&programs).expect("a folder");
    symlink(example("counter"), programs.join("counter")).expect("a link");
    let bin = place.path().join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_rackmem"), bin.join("rackmem")).expect("a link");
    let path = std::env::var("PATH").unwrap_or_default();
    Command::new("timeout")
        .args([&PATIENCE.to_string(), "bash", "-c", script])
        .current_dir(place.path())
        .env("PATH", format!("{}:{path}", bin.display()))
        .stdin(Stdio::null())
        .output()
        .expect("a shell")
}

/// A program that was built with the tests.
fn example(name: &str) -> PathBuf {
    let command = Path::new(env!("CARGO_BIN_EXE_rackmem"));
    let folder = command.parent().expect("a folder");
    folder.join("examples").join(name)
}

#[test]
fn every_command_of_the_tutorial_works() {
    if !has("redis-cli") {
        return;
    }
    let output = bash(&script());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{:?}\n{text}",
        output.status.code()
    );
    let (before, after) = text.split_once("NODELOST").expect("keys of the dead node");
    assert!(
        before.contains("value-") || after.contains("value-"),
        "{text}"
    );
}

#[test]
fn a_command_that_prints_something_else_fails_the_script() {
    assert!(
        bash(&compared("sleep 600 &\necho one  # => one"))
            .status
            .success()
    );
    assert!(
        !bash(&compared("sleep 600 &\necho one  # => two"))
            .status
            .success()
    );
    assert!(!bash(&compared("cargo run\necho one")).status.success());
}

#[test]
fn the_program_that_is_shown_is_the_one_that_runs() {
    let shown = blocks("rust,ignore");
    assert_eq!(
        shown.len(),
        1,
        "every other program is a documentation test"
    );
    let unindented: Vec<&str> = COUNTER.lines().map(str::trim_start).collect();
    let unindented = unindented.join("\n");
    let block: Vec<&str> = shown[0].lines().map(str::trim_start).collect();
    assert!(unindented.contains(&block.join("\n")), "{}", shown[0]);
}

#[test]
fn every_command_of_the_readme_exists() {
    let commands = README
        .lines()
        .filter_map(|line| line.strip_prefix("rackmem "));
    let names: Vec<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        let output = run(&[name, "--help"]);
        assert!(output.status.success(), "{name}");
    }
}

/// A command whose output is not compared is run all the same; one that is not in a block is not.
#[test]
fn the_tutorial_has_the_parts_that_are_run() {
    let script = script();
    for part in [
        "rackmem switch",
        "counter rack.toml",
        "redis-cli",
        "kill -9",
        "rackmem check",
    ] {
        assert!(script.contains(part), "{part}");
    }
    assert!(
        !script.contains("127.0.0.1:74") && !script.contains(" -p 63"),
        "{script}"
    );
    let compared = script.lines().filter(|line| line.starts_with("expect '"));
    assert!(compared.count() >= 12);
}
