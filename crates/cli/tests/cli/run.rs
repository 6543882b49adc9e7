//! `rackmem run`: programs as nodes, and how they end.

use crate::process::{Running, TempFile, run, stderr, stdout};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// Whether a process sleeps so long.
fn runs(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("the kernel tells");
    let lines = processes
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let mut lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.any(|line| line == format!("sleep\0{word}\0"))
}

/// Waits until that is so.
fn until(word: &str, wanted: bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while runs(word) != wanted {
        assert!(Instant::now() < end, "{word}: never {wanted}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Seconds that no other test sleeps, nor this one in another process.
fn seconds(nth: u32) -> String {
    format!("{}.{nth}", 100_000 + std::process::id())
}

#[test]
fn a_program_finds_its_place_in_the_environment() {
    let script = "cat $RACKMEM_CONFIG | grep -c 127.64; echo $RACKMEM_NODE; ls $RACKMEM_CONFIG";
    let output = run(&["run", "-n", "3", "--label", "--", "sh", "-c", script]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for node in 0..3 {
        assert!(text.contains(&format!("{node}: 1\n")), "{text}");
        assert!(text.contains(&format!("{node}: {node}\n")), "{text}");
    }
    let file = text.lines().find_map(|line| line.split_once(": /"));
    let file = format!("/{}", file.expect("its name").1);
    assert!(!std::fs::exists(&file).unwrap(), "{file}");
}

#[test]
fn what_programs_say_is_told_as_json() {
    let output = run(&[
        "--json",
        "run",
        "-n",
        "1",
        "--",
        "sh",
        "-c",
        "echo hi; exit 4",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let lines = lines.expect("JSON");
    assert!(
        lines.iter().any(|it| it["node"] == 0 && it["out"] == "hi"),
        "{text}"
    );
    assert!(lines.iter().any(|it| it["ended"]["code"] == 4), "{text}");
}

#[test]
fn all_end_when_one_fails_unless_they_are_to_go_on() {
    let word = seconds(1);
    let script = format!("[ $RACKMEM_NODE = 1 ] && exit 3; trap '' INT; sleep {word}; echo late");
    let output = run(&["run", "-n", "3", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.contains("node 1's `sh` has failed (exit status: 3)"),
        "{told}"
    );
    assert!(!runs(&word));

    let script = "[ $RACKMEM_NODE = 1 ] && exit 3; sleep 0.3; echo late";
    let options = ["run", "-n", "3", "--keep-going", "--", "sh", "-c", script];
    let output = run(&options);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "late\nlate\n");
}

#[test]
fn programs_end_with_the_command_however_that_ends() {
    for (nth, signal) in [(2, "INT"), (3, "TERM"), (4, "KILL")] {
        let word = seconds(nth);
        let command = env!("CARGO_BIN_EXE_rackmem");
        let script = format!("exec {command} run -n 2 -- sleep {word}");
        let mut running = Running::of_shell(&script);
        until(&word, true);
        running.send(signal);
        let code = running.ended();
        assert_eq!(code, (signal != "KILL").then_some(130), "{signal}");
        until(&word, false);
    }
}

#[test]
fn a_launcher_says_which_node_of_a_file_it_is() {
    let file = TempFile::new("nodes = ['127.0.0.1:7401', '127.0.0.1:7402']");
    let of = |rank: &str| {
        Command::new(env!("CARGO_BIN_EXE_rackmem"))
            .args(["run", "--rack", file.path(), "--", "sh", "-c"])
            .arg("echo $RACKMEM_NODE $RACKMEM_CONFIG")
            .env_remove("RACKMEM_NODE")
            .env("OMPI_COMM_WORLD_RANK", rank)
            .output()
            .expect("the command starts")
    };
    assert_eq!(stdout(&of("1")), format!("1 {}\n", file.path()));
    let output = of("2");
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("nodes 0 to 1"), "{told}");
    assert!(stderr(&of("none")).contains("OMPI_COMM_WORLD_RANK"));
    let script = "echo $RACKMEM_NODE";
    let options = [
        "run",
        "--rack",
        file.path(),
        "--all",
        "--",
        "sh",
        "-c",
        script,
    ];
    let output = run(&options);
    let mut lines: Vec<String> = stdout(&output).lines().map(String::from).collect();
    lines.sort();
    assert_eq!(lines, ["0", "1"]);
}

#[test]
fn a_program_that_is_not_there_is_told_once() {
    let output = run(&["run", "-n", "3", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.contains("there is no program `no-such-program`"),
        "{told}"
    );
    assert_eq!(told.matches("error:").count(), 1, "{told}");
    assert_eq!(run(&["run", "-n", "3"]).status.code(), Some(2));
}

/// Two processes of Python's standard library: one makes shared memory, the other finds it.
const SHARES: &str = "
import os, time
from multiprocessing import resource_tracker, shared_memory
first = os.environ['RACKMEM_NODE'] == '1'
while True:
    try:
        memory = shared_memory.SharedMemory(name='rack.run', create=first, size=4096)
        break
    except (FileNotFoundError, ValueError):
        time.sleep(0.01)
mine, theirs = (0, 1) if first else (1, 0)
memory.buf[mine] = 7
while memory.buf[theirs] != 7:
    time.sleep(0.001)
print('both\\n', end='')
resource_tracker.unregister(memory._name, 'shared_memory')
";

#[test]
fn programs_that_know_no_racks_share_files() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return;
    }
    // The library is beside the binary, where a build of all puts it.
    if std::env::var_os("RACKMEM_TEST_DROPIN").is_none() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "-q", "-p", "rackmem-dropin"])
            .status();
        assert!(built.unwrap().success());
    }
    let output = run(&["run", "-n", "2", "--drop-in", "--", "python3", "-c", SHARES]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "both\nboth\n", "{}", stderr(&output));
}

#[test]
fn a_library_that_is_not_there_is_told() {
    let output = run(&["run", "--drop-in=/nowhere/library.so", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    for part in ["there is no /nowhere/library.so", "rackmem-dropin"] {
        assert!(said.contains(part), "{said}");
    }
}
