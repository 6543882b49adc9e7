//! `sim` runs seeded worlds and tells what broke in them.

use crate::process::{run, stderr, stdout};
use serde_json::{Value, json};

#[test]
fn worlds_are_run_and_counted() {
    let output = run(&["--json", "sim", "--seeds", "3..9", "--rack", "tiny-switch"]);
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    assert_eq!(found["worlds"], 6);
    for name in [
        "packets_lost",
        "switches_died",
        "nodes_died",
        "packets_late",
        "packets_partitioned",
        "partitions",
        "rebuilds",
    ] {
        assert!(
            found[name].as_u64().is_some_and(|n| n > 0),
            "{name}: {found}"
        );
    }
}

/// More of the block came to its home while what it was before went to a majority, and its keeper
/// died: a judge that looks at home must not take that for what the majority has.
#[test]
fn what_comes_home_meanwhile_is_not_what_a_majority_has() {
    let world = ["--rack", "replicated-home-switch", "--seed", "5000"];
    let output = run(&[&["--json", "sim"], &world[..]].concat());
    assert!(output.status.success(), "{}", stdout(&output));
}

#[test]
fn groups_keep_homes_in_racks_that_are_asked_for_it() {
    for rack in ["replicated-home", "replicated-home-switch"] {
        let output = run(&["--json", "sim", "--seeds", "0..3", "--rack", rack]);
        assert!(output.status.success(), "{output:?}");
        let found: Value = serde_json::from_str(&stdout(&output)).expect("one object");
        for name in ["copied_blocks_placed", "copied_blocks_home"] {
            assert!(found[name].as_u64().is_some_and(|n| n > 0), "{found}");
        }
    }
}

#[test]
fn seeds_that_are_none_are_refused() {
    assert_eq!(run(&["sim", "--seeds", "9..3"]).status.code(), Some(2));
}

/// A world that does everything and is over soon.
const SMALL: [&str; 6] = ["sim", "--seed", "3", "--rack", "tiny-switch", "--trace"];

#[test]
fn a_story_tells_of_packets_caches_operations_and_the_rack() {
    let whole = run(&SMALL);
    assert!(whole.status.success(), "{whole:?}");
    let whole = stdout(&whole);
    for part in [
        "Arrived ReadMiss",
        "Lost    ",
        "installed",
        "begins: Add",
        "* failure 0 is due",
        "* view 2, epoch 2",
        "settles its entries",
        "serves in epoch 3",
        "the network calms down",
    ] {
        assert!(whole.contains(part), "{part}");
    }
    let of_one = stdout(&run(&[&SMALL[..], &["--block", "2"]].concat()));
    let lines = |text: &str| text.lines().count();
    assert!(lines(&of_one) * 2 < lines(&whole));
    assert!(of_one.contains("block 2") && !of_one.contains("block 1"));
    assert!(of_one.contains("* view 2"));
    // Home 2's first block is block 2.
    let address = stdout(&run(&[&SMALL[..], &["--block", "0x2000000000010"]].concat()));
    assert!(address.contains("block 2") && !address.contains("block 1"));
}

#[test]
fn a_capture_has_every_packet_that_was_on_the_wire() {
    let file = std::env::temp_dir().join(format!("rackmem-sim-{}.pcap", std::process::id()));
    let path = file.to_str().expect("a path of text");
    let output = run(&["--json", "sim", "--seed", "5", "--pcap", path]);
    assert!(output.status.success(), "{output:?}");
    let found: Value = serde_json::from_str(&stdout(&output)).expect("one object");
    let figure = |name: &str| found[name].as_u64().expect("a figure");
    let gone = ["packets_lost", "packets_partitioned", "packets_cut_off"].map(figure);
    let wire = figure("packets") + figure("packets_duplicated") - gone.iter().sum::<u64>();
    let bytes = std::fs::read(&file).expect("a capture");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
    let (mut packets, mut at, mut last) = (0, 24, (0, 0));
    while at < bytes.len() {
        let time = (word(at), word(at + 4));
        assert!(time >= last, "time goes back");
        (packets, last) = (packets + 1, time);
        at += 16 + word(at + 8) as usize;
    }
    assert_eq!((packets, at), (wire, bytes.len()));
    let tcpdump = std::process::Command::new("tcpdump")
        .args(["-nvv", "-r", path])
        .output();
    std::fs::remove_file(&file).expect("it was there");
    if let Ok(tcpdump) = tcpdump {
        let text = stdout(&tcpdump);
        assert_eq!(text.matches("udp sum ok").count() as u64, wire);
        assert!(
            text.contains("10.82.77.254.7400"),
            "the switch has its address"
        );
    }
}

#[test]
fn a_broken_promise_ends_with_a_smaller_world_and_the_command_that_shows_it() {
    let output = run(&["sim", "--defect", "skip-write-back"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    let sizes = text.lines().find(|line| line.contains(" instead of "));
    let sizes: Vec<u64> = sizes
        .expect("a smaller world")
        .split_whitespace()
        .filter_map(|word| word.trim_end_matches(',').parse().ok())
        .collect();
    assert!(sizes[0] * 3 <= sizes[1], "{sizes:?}");
    let command = text
        .lines()
        .find_map(|line| line.split_once("next: rackmem "));
    let (_, command) = command.expect("a command");
    let again = run(&command.split_whitespace().collect::<Vec<_>>());
    assert_eq!(again.status.code(), Some(1));
    let broken = text.lines().find(|line| line.starts_with("error: "));
    assert!(stderr(&again).contains(broken.expect("a cause")), "{text}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    for bad in [
        &["sim", "--trace"][..],
        &["sim", "--seed", "1", "--block", "1"],
        &["sim", "--seed", "1", "--trace", "--block", "one"],
        &["sim", "--defect", "none"],
        &["sim", "--omit", "64"],
    ] {
        assert_eq!(run(bad).status.code(), Some(2), "{bad:?}");
    }
    let nowhere = run(&["sim", "--seed", "1", "--pcap", "/nonexistent/world.pcap"]);
    assert_eq!(nowhere.status.code(), Some(1));
}

#[test]
fn members_of_bounded_memory_are_judged_by_ages() {
    let output = run(&["sim", "--json", "--bounded", "--seeds", "0..12"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told: Value = serde_json::from_str(&stdout(&output)).expect("an object");
    assert_eq!(
        (&told["worlds"], &told["violations"]),
        (&json!(12), &json!(0))
    );
    assert!(told["old"].as_u64() > Some(0), "{told}");
}
