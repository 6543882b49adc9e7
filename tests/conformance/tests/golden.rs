//! The golden packets in the tree: readable, fresh, and what the Rust program does.

use rackmem_conformance::quorum::{self, QuorumReference};
use rackmem_conformance::reads::{self, Became, Event, ReadsReference};
use rackmem_conformance::text::{read, write};
use rackmem_conformance::{
    Case, Reference, Setup, generate, replay, replay_loaded, scenarios::TOPICS,
};
use rackmem_proto::{abd::Defect, sabre};
use std::collections::BTreeSet;
use std::path::Path;

fn files() -> Vec<(&'static str, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let text = |name: &str| std::fs::read_to_string(folder.join(format!("{name}.txt")));
    (TOPICS.iter())
        .map(|topic| (topic.name, text(topic.name).unwrap()))
        .collect()
}

fn cases() -> Vec<Case> {
    let files = files();
    let read = |(name, text): &(&str, String)| match read(text) {
        Ok(cases) => cases,
        Err(error) => panic!("{name}.txt: {error}"),
    };
    files.iter().flat_map(read).collect()
}

#[test]
fn what_is_generated_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let stale: Vec<String> = generate::stale(&root).into_iter().map(|f| f.path).collect();
    assert!(stale.is_empty(), "`cargo xtask golden` writes {stale:?}");
}

#[test]
fn no_file_is_left_over_from_a_case_that_is_gone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let generated: BTreeSet<String> = generate::all().into_iter().map(|f| f.path).collect();
    for folder in [
        "tests/conformance/golden",
        "switch/p4/tests/stf",
        "switch/generated",
    ] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let path = format!("{folder}/{name}");
            assert!(generated.contains(&path), "nothing makes {path} any more");
        }
    }
}

#[test]
fn the_rust_program_does_what_its_golden_packets_say() {
    let mut rust = Reference::new(&Setup::default());
    for case in cases() {
        replay(&mut rust, &case).unwrap_or_else(|difference| panic!("{difference}"));
        replay_loaded(&mut rust, &case).unwrap_or_else(|difference| panic!("{difference}"));
        assert_eq!(rust.program().counters().violations, 0, "{}", case.name);
    }
}

#[test]
fn golden_packets_of_replicated_memory_are_what_the_rust_program_does() {
    let mut rust = QuorumReference::default();
    let mut cases = quorum::scenarios::all();
    for file in [&cases, &quorum::held()] {
        let names: BTreeSet<&str> = file.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), file.len());
    }
    cases.extend(quorum::held());
    for case in cases.iter().chain([&quorum::sequence(1, 2000)]) {
        quorum::replay(&mut rust, case).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

/// A rule that is broken shows in a golden packet.
#[test]
fn a_switch_that_counts_wrong_is_found() {
    let mut cases = quorum::scenarios::all();
    cases.extend(quorum::held());
    for defect in [
        Defect::ChooseAgain,
        Defect::HoldFirstLine,
        Defect::ElideHeld,
        Defect::CountOtherStamps,
        Defect::CountOn,
        Defect::LearnStampFromWrite,
        Defect::ChooseForLastLife,
        Defect::ChooseInLastLife,
    ] {
        let mut broken = QuorumReference::breaking(defect);
        let mut found = cases.iter().map(|case| quorum::replay(&mut broken, case));
        assert!(found.any(|found| found.is_err()), "{defect:?}");
    }
}

#[test]
fn golden_packets_of_reads_are_what_the_home_does() {
    let mut rust = ReadsReference::default();
    let cases = reads::scenarios::all();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len());
    for case in cases.iter().chain([&reads::sequence(1, 2000)]) {
        reads::replay(&mut rust, case).unwrap_or_else(|difference| panic!("{difference}"));
        // Each case shows what is answered, or that the rest is not.
        let became = |event: &Event| matches!(event, Event::Packet(_, Became::Answer(_)));
        let answers = case.events.iter().filter(|event| became(event)).count();
        let none = ["a-writer-is-in", "other-kinds"];
        assert_eq!(
            answers == 0,
            none.contains(&case.name.as_str()),
            "{}",
            case.name
        );
    }
    let mut broken = ReadsReference::breaking(sabre::Defect::AcceptOdd);
    let mut found = cases.iter().map(|case| reads::replay(&mut broken, case));
    assert!(found.any(|found| found.is_err()));
}

#[test]
fn text_says_all_that_a_case_has() {
    for topic in TOPICS {
        let cases = topic.cases();
        assert_eq!(read(&write(topic.about, &cases)), Ok(cases));
    }
}

#[test]
fn names_are_of_one_case_of_a_topic() {
    for topic in TOPICS {
        let cases = topic.cases();
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len(), "{}", topic.name);
    }
}

#[test]
fn a_file_that_is_none_gets_the_line_and_the_reason() {
    let with = |line: &str| {
        read(&format!(
            "{}\ncase a\n{line}\n",
            rackmem_conformance::text::HEAD
        ))
    };
    for line in [
        "what is this",
        "in 52",
        "packets\n in 5",
        "packets\n in zz",
        "packets\n out agent 1 52",
        "packets\n in 52\n out agent x 52",
        "packets\n in 52\n to the control plane\n out agent 1 52",
        "switch ways=x",
        "switch colour=1",
        "before\n TAG at 1 = 2",
        "before\n LOCK way 1 at 1 = x",
        "= 3",
        "TAG way 0 at 1 = 2",
    ] {
        let error = with(line).unwrap_err();
        assert!(error.line >= 3, "{line}: {error}");
    }
    assert!(read("rackmem golden packets, version 0\n").is_err());
    assert!(read("").is_err());
    assert_eq!(with("about it").map(|cases| cases.len()), Ok(1));
}
