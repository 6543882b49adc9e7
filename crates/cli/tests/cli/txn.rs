//! `rackmem txn`.

use crate::process::{Running, run, skip, stderr, stdout};
use serde_json::Value;
use std::process::Command;

/// A small database, for a second.
const SMALL: [&str; 14] = [
    "--warehouses",
    "2",
    "--nodes",
    "2",
    "--threads",
    "2",
    "--seconds",
    "1",
    "--items",
    "100",
    "--customers",
    "30",
    "--remote",
    "50",
];

#[test]
fn engines_leave_a_consistent_database() {
    for engine in ["locks", "objects", "delegate"] {
        let more = ["--engine", engine, "--judge"];
        let output = run(&[&["txn", "--json"], &SMALL[..], &more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
        assert_eq!(
            (&told["engine"], &told["holds"]),
            (&engine.into(), &true.into())
        );
        assert!(told["tpmC"].as_f64() > Some(0.0), "{told}");
        assert_eq!(told["conditions"].as_array().map(Vec::len), Some(14));
        assert!(
            told["judged"]["transactions"].as_u64() > Some(0)
                && told["judged"]["disorder"].is_null(),
            "{told}"
        );
        let kinds = told["transactions"].as_array().expect("a list");
        assert_eq!(kinds.len(), 5);
        assert!(kinds[0]["p99_us"].as_f64() >= kinds[0]["p50_us"].as_f64());
    }
}

#[test]
fn nodes_are_processes() {
    for (engine, fabric) in [("locks", "udp"), ("objects", "shm"), ("delegate", "udp")] {
        let rack = ["--engine", engine, "--fabric", fabric];
        let more = [&rack[..], &["--processes", "--judge"]].concat();
        let output = run(&[&["txn", "--json"], &SMALL[..], &more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
        assert_eq!(
            (&told["processes"], &told["holds"]),
            (&true.into(), &true.into())
        );
        assert!(told["tpmC"].as_f64() > Some(0.0), "{told}");
        assert!(told["packets"].as_u64() > Some(0), "{told}");
        let judged = &told["judged"];
        assert!(judged["transactions"].as_u64() > Some(0), "{told}");
        assert!(judged["disorder"].is_null(), "{told}");
    }
}

#[test]
fn a_table_for_a_person() {
    let output = run(&[&["txn"], &SMALL[..]].concat());
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    for part in [
        "not the specification's: another benchmark",
        "new-order",
        "no TPC result",
        "W_YTD is the sum of D_YTD",
        "not judged (--judge)",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn what_cannot_be_is_said_before_anything_is_loaded() {
    let output = run(&["txn", "--warehouses", "64", "--nodes", "2"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("--memory"), "{text}");
    let output = run(&["txn", "--remote", "101"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_full_table_says_what_to_give() {
    let room = ["--room", "5", "--seconds", "60"];
    let args: Vec<&str> = SMALL
        .iter()
        .copied()
        .filter(|it| *it != "--seconds" && *it != "1")
        .collect();
    let output = run(&[&["txn"], &args[..], &room].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--room"), "{}", stderr(&output));
}

#[test]
fn sqlite_runs_the_same_mix() {
    let has = Command::new("python3")
        .args(["-c", "import sqlite3"])
        .status();
    if !has.is_ok_and(|status| status.success()) {
        return skip("python3 has no sqlite3");
    }
    let output = run(&[&["txn", "--json", "--vs", "sqlite"], &SMALL[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    let outside = &told["outside"];
    assert_eq!(outside["holds"], true, "{outside}");
    assert!(outside["tpmC"].as_f64() > Some(0.0), "{outside}");
    assert_eq!(outside["transactions"].as_array().map(Vec::len), Some(5));
}

/// A small database with copies.
const COPIED: [&str; 8] = [
    "--copies",
    "3",
    "--nodes",
    "4",
    "--items",
    "100",
    "--customers",
    "30",
];

#[test]
fn a_database_with_copies_outlives_processes() {
    let cases = [
        (["3", "4", "1"], &[][..]),
        (["5", "5", "2"], &[]),
        (["3", "4", "1"], &["--loss", "0.01"]),
    ];
    for ([copies, nodes, kill], loss) in cases {
        let size = ["--items", "100", "--customers", "30", "--seconds", "8"];
        let rack = ["--copies", copies, "--nodes", nodes, "--processes"];
        let kill_some = [&["--kill", kill, "--judge"], loss].concat();
        let output = run(&[&["txn", "--json"], &size[..], &rack, &kill_some].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
        assert_eq!(told["holds"], true, "{told}");
        assert_eq!(told["copies"].to_string(), copies, "{told}");
        let survived = &told["survived"];
        let killed = survived["killed"].as_array().map(Vec::len);
        assert_eq!(killed, kill.parse().ok(), "{told}");
        assert!(survived["gap_seconds"].as_f64() > Some(0.0), "{told}");
        assert!(survived["counted"]["orders"].as_u64() > Some(0), "{told}");
        let judged = &told["judged"];
        // How many there are is the machine's affair; all that survivors know of are judged.
        let kinds = told["transactions"].as_array().into_iter().flatten();
        let committed: u64 = kinds.filter_map(|kind| kind["committed"].as_u64()).sum();
        assert!(committed > 0, "{told}");
        assert!(judged["transactions"].as_u64() >= Some(committed), "{told}");
        assert!(
            judged["cut_off"].is_u64() && judged["disorder"].is_null(),
            "{told}"
        );
    }
}

/// Another node loads what the dead one had begun, and nothing is missing.
#[test]
fn loading_outlives_processes() {
    for [copies, nodes, kill] in [["3", "4", "1"], ["5", "5", "2"]] {
        let size = ["--items", "300", "--customers", "60", "--seconds", "4"];
        let rack = ["--copies", copies, "--nodes", nodes, "--processes"];
        let kill_some = ["--kill", kill, "--during", "loading", "--judge"];
        let output = run(&[&["txn", "--json"], &size[..], &rack, &kill_some].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let told: Value = serde_json::from_str(&stdout(&output)).expect("one object");
        assert_eq!(told["holds"], true, "{told}");
        assert!(told["judged"]["disorder"].is_null(), "{told}");
        let lost = &told["survived"]["lost_while_loading"];
        let lost = lost.as_array().map(Vec::len);
        assert_eq!(lost, kill.parse().ok(), "{told}");
        assert!(told["tpmC"].as_f64() > Some(0.0), "{told}");
    }
}

#[test]
fn what_copies_do_not_go_with_is_said() {
    for (more, says) in [
        (&["--engine", "objects"][..], "goes with --engine locks"),
        (&["--copies", "4"], "3, 5 or 7"),
        (&["--nodes", "2"], "take as many nodes"),
        (&["--mode", "directory"], "no memory with copies"),
        (&["--processes", "--kill", "3"], "a majority"),
    ] {
        let base = COPIED.chunks(2).filter(|it| it[0] != more[0]);
        let base: Vec<&str> = base.flatten().copied().collect();
        let output = run(&[&["txn"], &base[..], more].concat());
        assert_eq!(output.status.code(), Some(1), "{more:?}");
        let text = stderr(&output);
        assert!(text.contains(says), "{more:?}: {text}");
    }
    let output = run(&["txn", "--kill", "1"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_process_that_dies_ends_all() {
    let more = ["--processes", "--seconds", "600"];
    let args = SMALL.iter().filter(|it| !["--seconds", "1"].contains(*it));
    let args: Vec<&str> = ["txn"].iter().chain(args).chain(&more).copied().collect();
    let mut txn = Running::start(&args);
    // The switch and two nodes.
    txn.until("all processes run", |it| it.children().len() == 3);
    let last = txn.children().into_iter().max().expect("a process");
    let killed = Command::new("kill")
        .args(["-KILL", &last.to_string()])
        .status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert_eq!(txn.ended(), Some(1));
}
