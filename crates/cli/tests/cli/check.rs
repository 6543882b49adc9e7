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
    for part in [
        "move-add",
        "switch-readers",
        "1 lost, 1 doubled",
        "dead-holder",
        "gcp",
    ] {
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
fn defects_are_listed_one_a_line() {
    let text = stdout(&run(&["check", "--list-defects", "bi"]));
    let names: Vec<&str> = text.lines().collect();
    assert!(names.contains(&"share-a-line") && names.contains(&"install-late-copy"));
    assert!(!names.contains(&"forget-reader"));
    let lines = stdout(&run(&["--json", "check", "--list-defects", "bi"]));
    let first: Value = serde_json::from_str(lines.lines().next().unwrap()).expect("an object");
    assert_eq!(first["of"], "bi");
    assert_eq!(first["defect"], names[0]);
}

#[test]
fn a_broken_promise_is_told_as_a_story_and_fails() {
    let output = run(&["check", "--scenario", "home-r", "--defect", "forget-reader"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    for part in [
        "BROKEN",
        "directory covers caches (§4) broken",
        "Turn of",
        "ReadMiss",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let why = stderr(&output);
    assert!(
        why.contains("forget-reader breaks a promise in home-readers"),
        "{why}"
    );

    let output = run(&[
        "--json",
        "check",
        "--scenario",
        "home-readers",
        "--defect",
        "forget-reader",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert_eq!(found["ended"], "BROKEN");
    assert_eq!(found["violation"]["promise"], "directory covers caches");
}

#[test]
fn scenarios_of_locks_have_the_same_options() {
    let output = run(&["--json", "check", "--of", "gcp", "--scenario", "calm-hand"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert_eq!(found["of"], "gcp");
    assert_eq!((&found["locks"], &found["blocks"]), (&1.into(), &0.into()));
    assert_eq!(found["ended"], "whole");
    assert_eq!(found["states"], 285);
    assert_eq!(found["requests"], found["entries_granted"]);

    let output = run(&["check", "--scenario", "calm-w", "--defect", "drop-queue"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    for part in ["BROKEN", "nobody is overtaken (GCP) broken", "arrives:"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    assert!(stderr(&output).contains("drop-queue breaks a promise in calm-writers"));

    // A defect of locks is not looked for in racks that have none.
    let output = run(&["check", "--scenario", "home-r", "--defect", "drop-queue"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no scenario \"home-r\" can have drop-queue"));
    let output = run(&["check", "--of", "nothing"]);
    assert!(stderr(&output).contains("the protocols are flowcc, gcp"));
}

#[test]
fn racks_with_blocks_and_locks_are_played_by_seeds() {
    let output = run(&[
        "--json",
        "check",
        "--of",
        "joint",
        "--scenario",
        "both-told",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert_eq!(
        (&found["of"], &found["scenario"]),
        (&"joint".into(), &"both-told".into())
    );
    assert_eq!(
        (&found["ended"], &found["violation"]),
        (&"by seeds".into(), &Value::Null)
    );
    // Blocks and locks on the same nodes, and what the scenario is for has happened.
    for part in ["blocks", "locks"] {
        assert!(found[part].as_u64() > Some(0), "{found}");
    }
    assert_eq!(
        found["missing"].as_array().map(Vec::len),
        Some(0),
        "{found}"
    );
    assert!(
        found["seen"]
            .as_array()
            .is_some_and(|seen| !seen.is_empty())
    );

    let told = stdout(&run(&["check", "--of", "joint", "--scenario", "both-told"]));
    assert!(told.contains("1 of 1 scenarios played by seeds"), "{told}");
    assert!(!told.contains("visited whole"), "{told}");

    let lines = stdout(&run(&["--json", "check", "--of", "joint", "--list"]));
    assert!(lines.lines().count() >= 6, "{lines}");
    for line in lines.lines() {
        let scenario: Value = serde_json::from_str(line).expect("an object");
        assert_eq!(scenario["of"], "joint", "{line}");
    }

    let defect = "enter-first";
    let planted = [
        "check",
        "--of",
        "joint",
        "--scenario",
        "both-told",
        "--defect",
        defect,
    ];
    let output = run(&planted);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("BROKEN"));
    let why = format!("{defect} breaks a promise in both-told");
    assert!(stderr(&output).contains(&why), "{}", stderr(&output));
}

#[test]
fn a_defect_that_a_scenario_does_not_show_is_said_to_go_unnoticed() {
    let output = run(&[
        "check",
        "--scenario",
        "home-rewrites",
        "--defect",
        "forget-reader",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("none of these scenarios notices forget-reader"));
    let output = run(&["check", "--defect", "nonsense"]);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("skip-write-back"));
}

#[test]
fn a_name_that_is_none_is_an_error_with_a_next_step() {
    let output = run(&["check", "--scenario", "nonsense"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("rackmem check --list"));
}
