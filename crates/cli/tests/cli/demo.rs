//! The demo, short.

use crate::process::{Running, run, stderr, stdout};
use crate::resp::{Answer, Client};
use serde_json::Value;

const BUILT_IN: &[&str] = &["--built-in"];

#[test]
fn the_demo_tells_a_true_story() {
    // The first with the packages of this machine, which are ten times as many.
    for (fabric, more) in [("inline", &[][..]), ("shm", BUILT_IN), ("udp", BUILT_IN)] {
        let args = [
            "demo",
            "--json",
            "--nodes",
            "3",
            "--seconds",
            "1",
            "--fabric",
            fabric,
            "--no-processes",
        ];
        let output = run(&[&args[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
        check(&told);
    }
}

#[test]
fn the_largest_rack_is_judged_too() {
    let output = run(&[
        "demo",
        "--json",
        "--nodes",
        "32",
        "--seconds",
        "1",
        "--no-processes",
        "--built-in",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert_eq!(told["history"]["linearizable"], true);
    assert!(told["history"]["overlapping"].as_u64() > Some(0), "{told}");
}

#[test]
fn a_rack_of_processes_runs_beside_it() {
    let args = ["demo", "--json", "--nodes", "2", "--seconds", "1"];
    let output = run(&[&args[..], BUILT_IN].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    let phases = told["processes"].as_array().expect("a list");
    let names: Vec<&str> = phases
        .iter()
        .filter_map(|it| it["phase"].as_str())
        .collect();
    assert_eq!(names, ["ycsb a", "ycsb b", "ycsb c"]);
    for phase in phases {
        assert!(phase["operations"].as_u64() > Some(0), "{phase}");
        assert!(phase["remote"].as_u64() > Some(0), "{phase}");
        assert!(phase["p50_ns"].as_u64() > Some(0), "{phase}");
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
        // Nothing that several nodes do with the same data is free of transactions.
        assert!(phase["remote"].as_u64() > Some(0), "{phase}");
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

#[test]
fn the_store_can_be_kept() {
    let args = ["demo", "--stay", "--nodes", "2", "--seconds", "1"];
    let mut demo = Running::start(&[&args[..], &["--no-processes"], BUILT_IN].concat());
    let told = demo.line();
    let top = &told["pagerank"]["top"][0];
    let name = top["package"].as_str().expect("a name");
    for addr in demo.listening() {
        let mut client = Client::connect(addr);
        let Answer::Text(rank) = client.call(&["GET", &format!("rank:{name}")]) else {
            panic!("no rank of {name}");
        };
        assert_eq!(rank.parse::<f64>().ok(), top["rank"].as_f64());
        let needs = client.call(&["GET", &format!("pkg:{name}")]);
        assert!(matches!(needs, Answer::Text(_)), "{needs:?}");
    }
    assert_eq!(demo.interrupt(), Some(130));
}
