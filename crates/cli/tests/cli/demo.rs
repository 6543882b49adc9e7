//! The demo, short.

use crate::process::{run, stderr, stdout};
use serde_json::Value;

#[test]
fn the_demo_tells_a_true_story() {
    for fabric in ["inline", "udp"] {
        let args = [
            "demo",
            "--json",
            "--nodes",
            "3",
            "--seconds",
            "1",
            "--fabric",
            fabric,
        ];
        let output = run(&args);
        assert!(output.status.success(), "{}", stderr(&output));
        let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
        check(&told);
    }
}

fn check(told: &Value) {
    let packages = told["graph"]["packages"].as_u64().expect("a number");
    assert!(packages > 1000, "{told}");
    let phases = told["phases"].as_array().expect("a list");
    for name in [
        "store packages",
        "read packages",
        "pagerank",
        "ycsb a",
        "ycsb b",
        "ycsb c",
    ] {
        let phase = phases.iter().find(|phase| phase["phase"] == name);
        let phase = phase.unwrap_or_else(|| panic!("no {name}: {told}"));
        assert!(phase["operations"].as_u64() > Some(0), "{phase}");
    }
    assert_eq!(told["history"]["linearizable"], true);
    assert!(told["history"]["overlapping"].as_u64() > Some(0), "{told}");
    let top = told["pagerank"]["top"].as_array().expect("a list");
    assert_eq!(top.len(), 10);
    assert!(top.iter().any(|row| row["package"] == "libc6"), "{top:?}");
    assert!(told["figures"]["events"]["read_miss"].as_u64() > Some(0));
    assert_eq!(told["figures"]["nodes"].as_array().map(Vec::len), Some(3));
    assert!(told["figures"]["switch"]["received"]["ReadMiss"].as_u64() > Some(0));
}
