//! `doctor --json` is for scripts.

use crate::process::{run, stdout};
use serde_json::Value;

#[test]
fn every_check_is_complete() {
    let output = run(&["doctor", "--json"]);
    assert!(output.status.success());
    let found: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    let checks = found["checks"].as_array().expect("a list");
    assert!(checks.len() >= 10);
    for name in [
        "cache operations",
        "mapped memory",
        "memory of several machines",
        "wake-ups",
    ] {
        assert!(checks.iter().any(|check| check["check"] == name), "{name}");
    }
    for check in checks {
        for field in ["check", "state", "detail", "enable", "without"] {
            let text = check[field].as_str();
            assert!(
                text.is_some_and(|text| !text.is_empty()),
                "{field}: {check}"
            );
        }
        let state = check["state"].as_str().unwrap_or_default();
        assert!(
            ["found", "limited", "denied", "missing"].contains(&state),
            "{check}"
        );
    }
    let loopback = checks.iter().find(|check| check["check"] == "loopback");
    assert_eq!(loopback.expect("a check")["state"], "found");
}

#[test]
fn people_are_told_how_to_enable_what_is_not_there() {
    let text = stdout(&run(&["doctor"]));
    assert!(text.contains("capability"), "{text}");
    assert!(
        text.contains("enable:") || text.contains("Everything is there."),
        "{text}"
    );
}
