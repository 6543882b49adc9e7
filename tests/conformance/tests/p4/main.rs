//! The P4 program on BMv2 against the golden packets and random sequences, where the P4 compiler
//! and BMv2 are on the PATH.

mod bmv2;
mod carrier;
mod cli;
mod pcap;
mod quorum;
mod registers;
mod tools;

use bmv2::Bmv2;
use rackmem_conformance::{
    Case, Setup, again, golden, replay, replay_loaded, sequence, shrink, text,
};
use std::io::Write;
use std::path::PathBuf;
use tools::Tools;

/// What is wrong with the program when it is compiled with `-DPLANT=n`, from 1.
const PLANTS: [&str; 9] = [
    "a second read unlock overwrites what the first one has said",
    "an unlock leaves its score as it is, so that a second one releases again",
    "a copy of a granted request keeps the lock that it has taken",
    "any number that is not newer by less than half of them all is taken for old",
    "the shadow node is told of no move",
    "the provider is always the lowest member",
    "a holder that asks again for its lock is told a new number",
    "a lock that is passed on keeps its holder",
    "a release of an earlier tenure is taken for one that has not heard of all requests",
];

/// The tools, or a line that says which is missing.
fn tools() -> Option<Tools> {
    let found = Tools::find();
    if let Err(reason) = &found {
        let _ = writeln!(std::io::stdout(), "skipped: P4 on BMv2: {reason}");
    }
    found.ok()
}

fn folder(name: &str) -> PathBuf {
    let name = format!("rackmem-p4-{}-{name}", std::process::id());
    std::env::temp_dir().join(name)
}

#[test]
fn golden_packets() {
    let Some(tools) = tools() else { return };
    let mut bmv2 = Bmv2::new(&tools, folder("golden"), None);
    let cases = golden();
    assert!(cases.len() > 50);
    let mut differences = Vec::new();
    for case in &cases {
        let played = replay(&mut bmv2, case).and_then(|()| replay_loaded(&mut bmv2, case));
        if let Err(difference) = played {
            differences.push(difference.to_string());
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {} cases differ:\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
}

#[test]
fn random_sequences() {
    let Some(tools) = tools() else { return };
    let mut bmv2 = Bmv2::new(&tools, folder("random"), None);
    for seed in 0..4 {
        let case = sequence(seed, 2_000);
        if let Err(difference) = replay(&mut bmv2, &case) {
            let (case, difference) = shrink(&mut bmv2, &case, difference);
            panic!("{difference}\n{}", text::write("random", &[case]));
        }
    }
}

/// The same packets to a switch of the default size, where fewer tags collide.
#[test]
fn full_size() {
    let Some(tools) = tools() else { return };
    let mut bmv2 = Bmv2::new(&tools, folder("full"), None);
    let small = sequence(1, 1_000);
    let packets: Vec<_> = small.steps.iter().map(|step| step.packet.clone()).collect();
    let setup = Setup {
        ways: 8,
        sets: 32_768,
        nodes: 32,
        requesters: 64,
        lock_ways: 4,
        lock_sets: 4_096,
        ..small.setup
    };
    let case = again(&Case { setup, ..small }, &packets);
    if let Err(difference) = replay(&mut bmv2, &case) {
        panic!("{difference}");
    }
}

#[test]
fn planted_differences() {
    let Some(tools) = tools() else { return };
    for (plant, what) in (1..).zip(PLANTS) {
        let mut bmv2 = Bmv2::new(&tools, folder("plant"), Some(plant));
        let caught = golden()
            .iter()
            .find_map(|case| replay(&mut bmv2, case).err());
        assert!(caught.is_some(), "no golden packet shows that {what}");
    }
}
