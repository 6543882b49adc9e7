//! `check` explores small racks.

use crate::process::{run, stderr, stdout};
use serde_json::Value;

#[test]
fn one_scenario_is_one_object() {
    let output = run(&["--json", "check", "--scenario", "home-locks"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let found: Value = serde_json::from_str(&text).expect("one object");
    assert_eq!(found["scenario"], "home-locks");
    assert_eq!(found["ended"], "whole");
    assert_eq!(found["violation"], Value::Null);
    assert!(found["states"].as_u64() > Some(10_000), "{found}");
    let seen = found["seen"].as_array().expect("a list");
    assert!(seen.contains(&Value::from("held-together")), "{found}");
}

#[test]
fn people_get_a_table_and_what_it_means() {
    let output = run(&["check", "--scenario", "home-r"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for part in [
        "home-readers",
        "home-rewrites",
        "whole",
        "2 of 2 scenarios visited whole",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn the_list_says_what_each_is_for() {
    let text = stdout(&run(&["check", "--list"]));
    for part in ["move-add", "switch-readers", "1 lost, 1 doubled"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let lines = stdout(&run(&["--json", "check", "--list", "--deep"]));
    for line in lines.lines() {
        let scenario: Value = serde_json::from_str(line).expect("an object");
        assert!(
            scenario["shows"]
                .as_str()
                .is_some_and(|text| text.len() > 10)
        );
    }
}

#[test]
fn a_name_that_is_none_is_an_error_with_a_next_step() {
    let output = run(&["check", "--scenario", "nonsense"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("rackmem check --list"));
}
