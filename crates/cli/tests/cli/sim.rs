//! `sim` runs seeded worlds and tells what broke in them.

use crate::process::{run, stdout};
use serde_json::Value;

#[test]
fn worlds_are_run_and_counted() {
    let output = run(&["--json", "sim", "--seeds", "3..9", "--rack", "tiny-switch"]);
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert_eq!(found["worlds"], 6);
    for name in [
        "packets_lost",
        "switches_died",
        "nodes_died_or_fenced",
        "rebuilds",
    ] {
        assert!(
            found[name].as_u64().is_some_and(|n| n > 0),
            "{name}: {found}"
        );
    }
}

#[test]
fn seeds_that_are_none_are_refused() {
    assert_eq!(run(&["sim", "--seeds", "9..3"]).status.code(), Some(2));
}
