//! Regions with copies, as the commands show and change them.

use crate::process::{TempFile, run, stderr, stdout};
use rackmem::{Config, Rack, RegionSpec};
use rackmem_hosts::addresses;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn inspect(file: &TempFile) -> Value {
    let output = run(&["inspect", "--json", "--groups", "--rack", file.path()]);
    serde_json::from_str(&stdout(&output))
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

fn eventually(file: &TempFile, what: &str, mut done: impl FnMut(&Value) -> bool) {
    let began = Instant::now();
    loop {
        let shown = inspect(file);
        if done(&shown["groups"][0]) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: {shown}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The program of the README's section: three processes, of which one is killed.
#[test]
fn three_processes_survive_the_death_of_one() {
    let program = env!("CARGO_BIN_EXE_rackmem");
    let folder = std::path::Path::new(program).parent().unwrap();
    let output = std::process::Command::new(folder.join("examples/survive")).output();
    let output = output.expect("`cargo test` builds the examples of this package");
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(
        text.contains("nothing is lost: 100 accounts hold 100100"),
        "{text}"
    );
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains("cargo run --release --example survive"));
}

/// The program of the README's section: three processes, of which one is stopped.
#[test]
fn a_process_that_was_stopped_reads_nothing_old() {
    let program = env!("CARGO_BIN_EXE_rackmem");
    let folder = std::path::Path::new(program).parent().unwrap();
    let output = std::process::Command::new(folder.join("examples/prices")).output();
    let output = output.expect("`cargo test` builds the examples of this package");
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    for node in [1, 2] {
        let line = format!("node {node} throws away what it has read (stale), reads 1000;");
        assert!(text.contains(&line), "{text}");
    }
    let readme = include_str!("../../../../README.md");
    assert!(readme.contains("cargo run --release --example prices"));
}

#[test]
fn a_dead_members_copies_are_given_to_another_node() {
    let folder = std::env::temp_dir().join(format!("rackmem-cli-copies-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let nodes: Vec<String> = addresses(4).iter().map(|a| format!("'{a}'")).collect();
    let file = TempFile::new(&format!(
        "nodes = [{}]\nmembership = 'dir:{}'\nlease = '1s'\nreplace_after = '0s'\nmemory = '64M'\npatience = '60s'\n",
        nodes.join(", "),
        folder.display()
    ));
    assert_eq!(inspect(&file), json!({"groups": []}));
    let config = Config::parse(&file.text()).unwrap();
    let join = |node| Some(Rack::join(&config, node).unwrap());
    let mut racks: Vec<Option<Rack>> = (0..4).map(join).collect();
    let node = racks[0].as_ref().unwrap().node(0);
    let spec = RegionSpec::new("ledger", 640).copies(3);
    let ledger = node.create_region(&spec).unwrap();
    for line in 0..10 {
        ledger.replicated::<u64>(line).unwrap().write(7).unwrap();
    }
    // One that heard late of the region may lack lines: a majority has each.
    eventually(&file, "copies say what they have", |group| {
        let copies = group["copies"].as_array().unwrap();
        copies.iter().filter(|copy| copy["lines"] == 10).count() >= 1
    });
    let group = &inspect(&file)["groups"][0];
    let found = [&group["region"], &group["config"], &group["majority"]];
    assert_eq!(found, [&json!("ledger"), &json!(1), &json!(2)]);
    let replace = |more: [&str; 3]| {
        let all = ["members", "--rack", file.path(), "replace"];
        run(&[&all[..], &more[..]].concat())
    };
    for (wrong, why) in [
        (["log", "2", "3"], "no region with copies is named `log`"),
        (["ledger", "3", "0"], "keeps no copy"),
        (["ledger", "2", "1"], "keeps no copy"),
        (["ledger", "2", "9"], "no live member"),
    ] {
        let refused = replace(wrong);
        assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
        assert_eq!(refused.status.code(), Some(1));
    }
    racks[2] = None;
    eventually(&file, "the death is noticed", |group| {
        group["copies"][2]["live"] == json!(false)
    });
    let text = stdout(&run(&["inspect", "--groups", "--rack", file.path()]));
    for part in [
        "1 regions with copies",
        "ledger",
        "counts, 10 lines",
        "dead:",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let done = replace(["ledger", "2", "3"]);
    assert!(
        stdout(&done).contains("node 3 fills in place of node 2"),
        "{}",
        stderr(&done)
    );
    eventually(&file, "node 3 has filled", |group| {
        let spare = &group["copies"][2];
        group["config"] == 3 && spare["node"] == 3 && spare["counts"] == json!(true)
    });
    eventually(&file, "it has all lines", |group| {
        group["copies"][2]["lines"] == 10
    });
    let _ = std::fs::remove_dir_all(folder);
}
