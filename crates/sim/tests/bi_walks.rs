//! Seeded ways through arenas of 8 to 32 nodes, and defects that they notice.

use rackmem_proto::bi::Defect;
use rackmem_sim::bi::walk::{of, walk};
use std::collections::BTreeSet;

/// Ways of each kind.
const SEEDS: u64 = 60;

#[test]
fn many_nodes_keep_every_promise() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let walked = walk(&of(seed), seed, None);
        let walked = walked.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        seen.extend(walked.seen);
    }
    // Each thing that may happen does.
    for sight in [
        "hit",
        "stale-read",
        "reused",
        "young-dropped",
        "own-dropped",
        "section-too-long",
        "waited-to-enter",
        "waited-for-memory",
        "pending-seen",
        "everything-dropped",
    ] {
        assert!(seen.contains(sight), "{sight} was not seen: {seen:?}");
    }
}

#[test]
fn a_seed_decides_a_way() {
    let moves = |seed| walk(&of(seed), seed, None).unwrap().moves;
    assert_eq!(moves(7), moves(7));
    assert_ne!(moves(7), moves(8));
}

/// What takes a coincidence that a few hundred ways do not meet; small racks, visited whole, notice
/// them.
const SELDOM: [Defect; 4] = [
    Defect::NewsGapIgnored,
    Defect::JoinUncounted,
    Defect::NoGrace,
    Defect::ExitWithoutClock,
];

#[test]
fn planted_defects_are_noticed() {
    let noticed =
        |defect: Defect| (0..4 * SEEDS).any(|seed| walk(&of(seed), seed, Some(defect)).is_err());
    let often = Defect::ALL.iter().filter(|defect| !SELDOM.contains(defect));
    let missed: Vec<_> = often.filter(|defect| !noticed(**defect)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
