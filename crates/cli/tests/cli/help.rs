//! `--help` teaches.

use crate::process::{run, stderr, stdout};
use std::process::Command;

const COMMANDS: [&str; 11] = [
    "demo", "kv", "graph", "txn", "switch", "node", "bench", "doctor", "members", "check", "soak",
];

#[test]
fn help_says_what_it_is_and_where_to_begin() {
    let output = run(&["--help"]);
    let text = stdout(&output);
    assert!(output.status.success());
    assert!(
        text.starts_with("One coherent memory for a rack of machines."),
        "{text}"
    );
    for line in [
        "First commands:",
        "rackmem demo",
        "redis-cli -p 7379",
        "Ctrl-C stops",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
    for command in COMMANDS {
        assert!(
            text.contains(&format!("\n  {command}")),
            "{command} is not in:\n{text}"
        );
    }
}

/// The commands inside a command, as its help lists them.
fn inner(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| line.starts_with("  "));
    let names = names.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Every command, by its words.
fn all(words: &[String], seen: &mut Vec<(Vec<String>, String)>) {
    let args: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
    let output = run(&args);
    assert!(output.status.success(), "{args:?}");
    let text = stdout(&output);
    let below = inner(&text);
    seen.push((words.to_vec(), text));
    for name in below {
        all(&[words, &[name]].concat(), seen);
    }
}

#[test]
fn every_command_has_help_of_one_form() {
    let mut seen = Vec::new();
    all(&[], &mut seen);
    // Itself, its commands, the benches, and those of history and members.
    assert!(seen.len() > 20, "{}", seen.len());
    for (words, text) in seen.iter().skip(1) {
        let path = format!("rackmem {}", words.join(" "));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with(char::is_uppercase), "{path}: {text}");
        assert!(
            !lines[0].ends_with('.') && lines[1].is_empty(),
            "{path}: {text}"
        );
        let at = |what: &str| {
            let found = lines.iter().position(|line| line.starts_with(what));
            found.unwrap_or_else(|| panic!("{path}: no {what} in\n{text}"))
        };
        let (usage, examples, exit) = (at("Usage: "), at("Examples:"), at("Exit codes: 0 done"));
        assert!(usage < examples && examples < exit, "{path}");
        let example = |line: &&str| {
            let mut said = line.split_whitespace();
            path.split(' ').all(|part| said.any(|word| word == part))
        };
        assert!(lines[examples..exit].iter().any(example), "{path}: {text}");
        for unit in ["SIZE", "TIME", "SECONDS", "MS", "PERCENT", "SHARE"] {
            if text.contains(&format!("<{unit}>")) {
                let told = lines[at("Units:")..].iter();
                let mut told = told.map(|line| line.trim_start());
                assert!(told.any(|line| line.starts_with(unit)), "{path}: {unit}");
            }
        }
        // The values that an option may have are listed behind what it is for.
        let length = |line: &str| {
            let said = line.split(" [possible values").next();
            said.unwrap_or_default().chars().count()
        };
        let wide = lines.iter().find(|line| length(line) > 120);
        assert_eq!(wide, None, "{path}");
    }
}

#[test]
fn no_command_is_answered_with_help() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("First commands:"));
}

#[test]
fn the_version_is_told() {
    let text = stdout(&run(&["--version"]));
    assert_eq!(
        text.trim(),
        format!(
            "rackmem {} (commit {})",
            env!("CARGO_PKG_VERSION"),
            env!("RACKMEM_COMMIT")
        )
    );
}

/// `rackmem doctor | head` ends as it would without `head`.
#[test]
fn output_that_nobody_reads_is_no_failure() {
    let script = format!(
        "{} doctor | true; echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_rackmem")
    );
    let output = Command::new("bash")
        .args(["-c", &script])
        .output()
        .expect("a shell");
    assert_eq!(stdout(&output).trim(), "0", "{}", stderr(&output));
    assert!(!stderr(&output).contains("panicked"));
}
