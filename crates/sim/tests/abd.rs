//! Replicated memory: every state of small racks, seeded ways through larger ones, and defects that
//! must be noticed.

mod verdicts;

use rackmem_proto::abd::Defect;
use rackmem_sim::abd::{SCENARIOS, Scenario, WALKS, walk};
use rackmem_sim::driver::{Ended, Report};

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 200_000;

fn explored(scenario: &Scenario, defect: Option<Defect>) -> Report {
    verdicts::visited(scenario, defect, LIMIT)
}

fn named(name: &str) -> &'static Scenario {
    verdicts::named(SCENARIOS.iter().chain(WALKS), name)
}

/// Those of every nth scenario from one on, so that two threads share the work.
fn all_hold(from: usize) {
    let own = SCENARIOS.iter().skip(from).step_by(2);
    verdicts::all_keep(own, LIMIT, |scenario| scenario.states);
}

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    all_hold(0);
}

#[test]
fn every_state_of_the_other_small_racks_keeps_every_promise() {
    all_hold(1);
}

#[test]
fn seeded_ways_through_larger_racks_are_linearizable() {
    for scenario in WALKS {
        let seeds = if scenario.at_once { 600 } else { 60 };
        for seed in 0..seeds {
            if let Err(broken) = walk(scenario, seed, None) {
                let story = broken.story.join("\n");
                let name = scenario.name;
                panic!("{name}, seed {seed}: {:?}\n{story}", broken.complaint);
            }
        }
    }
}

/// A defect, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Defect, &str, &str)] = &[
    (
        Defect::RestampRetransmission,
        "abd-early",
        "one stamp a write",
    ),
    (Defect::CountCopiesTwice, "abd-doubled", IN_QUORUM),
    (Defect::QuorumOfHalf, "abd-calm", IN_QUORUM),
    (Defect::ElideAlways, "abd-calm", IN_QUORUM),
    (Defect::AgreeOnOlder, "abd-calm", IN_QUORUM),
    (Defect::StoreLowerStamp, "abd-two-writers", IN_QUORUM),
    (
        Defect::AckHalfLine,
        "abd-segments",
        "a line is of one write",
    ),
    (Defect::MixTwoWrites, "abd-segments", "one value a stamp"),
    (
        Defect::MixTwoReads,
        "abd-segments",
        "a line is of one write",
    ),
    (Defect::FillingCounts, "abd-grow", IN_QUORUM),
    (
        Defect::ForgetfulCounts,
        "abd-crash",
        "what has completed is seen",
    ),
    (Defect::AckBeforeDurable, "abd-crash-durable", IN_QUORUM),
    (
        Defect::ReuseOwnStamp,
        "abd-crash-stamps",
        "one value a stamp",
    ),
    (
        Defect::LateStampCounts,
        "abd-read-writes-back",
        "what has completed is seen",
    ),
    (
        Defect::BytesOfOneStampOfAnother,
        "abd-calm",
        "one value a stamp",
    ),
    (
        Defect::CountOn,
        "abd-switch-restart",
        "every operation ends",
    ),
    (Defect::ReplayInOrder, "abd-durable-order", IN_QUORUM),
    (
        Defect::CheckpointWithoutStamps,
        "abd-durable-order",
        IN_QUORUM,
    ),
    (Defect::CountAfterDamage, "abd-durable-damage", IN_QUORUM),
    (Defect::TrustSecondSync, "abd-durable-fails", IN_QUORUM),
    (
        Defect::MixFetches,
        "abd-fill-lines",
        "a line is of one write",
    ),
    (Defect::KeepTheSecond, "abd-grow-back", IN_QUORUM),
    (Defect::KeepRemoved, "abd-remove", "one value a stamp"),
    (Defect::CarryOver, "abd-remove", "one stamp a write"),
    (Defect::OldHomeWrites, "abd-home-fails-over", OF_OLD_EPOCHS),
    (
        Defect::AskFewAgain,
        "abd-quorum-first-die",
        "every operation ends",
    ),
    (Defect::ForgetFate, "abd-one-round-cut", "one stamp a write"),
    (
        Defect::ChooseForLastLife,
        "abd-one-round-crash-writer",
        "one value a stamp",
    ),
    (
        Defect::ChooseInLastLife,
        "abd-one-round-cut",
        "one stamp a write",
    ),
    (Defect::ChooseAgain, "abd-line64-again", "one stamp a write"),
    (Defect::HoldFirstLine, "abd-line64", "one value a stamp"),
];

const IN_QUORUM: &str = "what has completed is in every quorum";
const OF_OLD_EPOCHS: &str = "no write of an old epoch lands";

/// Those that take a rack larger than is explored.
const NOTICED_ON_THE_WAY: &[(Defect, &str, &str)] = &[
    (Defect::TakeUnwritten, "walk-homes", OF_OLD_EPOCHS),
    (Defect::AcceptOldConfig, "walk-live", IN_QUORUM),
    (Defect::FillFromOne, "walk-live", IN_QUORUM),
    (
        Defect::LearnStampFromWrite,
        "walk-one-round",
        "what has completed is seen",
    ),
    (Defect::ForgetConfig, "walk-durable-config", IN_QUORUM),
    (Defect::FillBeforeDurable, "walk-durable-config", IN_QUORUM),
    (Defect::ElideHeld, "walk-line64", IN_QUORUM),
    (
        Defect::AskCountingOnly,
        "walk-one-round-fill",
        "one stamp a write",
    ),
];

/// Those that no way has met of many thousands: proto's tests plant what they take,
/// packet by packet (`switch/held.rs`: two writes, and a read that comes twice,
/// each cut off at its right place).
const NOTICED_BY_HAND: &[Defect] = &[Defect::CountOtherStamps];

#[test]
fn every_defect_is_noticed() {
    for (defect, name, promise) in NOTICED {
        match explored(named(name), Some(*defect)).ended {
            Ended::Broken(violation) => {
                assert_eq!(violation.invariant, *promise, "{defect:?}: {violation}");
            }
            other => panic!("{defect:?} in {name}: {other:?}"),
        }
    }
    for (defect, name, promise) in NOTICED_ON_THE_WAY {
        let scenario = named(name);
        let found = (0..3_000).find_map(|seed| walk(scenario, seed, Some(*defect)).err());
        let broken = found.unwrap_or_else(|| panic!("{defect:?} in {name}"));
        assert_eq!(
            broken.complaint.0, *promise,
            "{defect:?}: {:?}",
            broken.complaint
        );
    }
    let listed = NOTICED.iter().chain(NOTICED_ON_THE_WAY);
    let listed = listed
        .map(|row| row.0)
        .chain(NOTICED_BY_HAND.iter().copied());
    let listed: Vec<Defect> = listed.collect();
    let missing = Defect::ALL.iter().filter(|defect| !listed.contains(defect));
    assert_eq!(missing.count(), 0);
}
