//! `--help` teaches.

use crate::process::{run, stderr, stdout};
use std::process::Command;

const COMMANDS: [&str; 9] = [
    "demo", "kv", "switch", "node", "bench", "doctor", "members", "check", "soak",
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

#[test]
fn every_command_has_examples_and_fits_a_window() {
    for command in COMMANDS {
        let output = run(&[command, "--help"]);
        let text = stdout(&output);
        assert!(output.status.success());
        assert!(text.contains("Examples:"), "{text}");
        assert!(text.contains(&format!("rackmem {command}")), "{text}");
        let wide = text.lines().find(|line| line.chars().count() > 120);
        assert_eq!(wide, None, "{command}");
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
        format!("rackmem {}", env!("CARGO_PKG_VERSION"))
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
