//! Every state of small racks: the quick scenarios whole, and that seeded faults are found.

mod verdicts;

use rackmem_proto::engine::Defect;
use rackmem_sim::explore::{
    Budget, Ended, Limits, MAX_STATES, Op, Program, Report, SCENARIOS, Scenario, Witness, explore,
};
use rackmem_sim::world::{Mutation, Owners};
use std::collections::BTreeSet;
use verdicts::Verdicts;

fn whole(scenario: &Scenario) -> Report {
    verdicts::visited(scenario, None, MAX_STATES)
}

fn named(name: &str) -> &'static Scenario {
    verdicts::named(SCENARIOS, name)
}

/// What is wrong with scenarios: a broken promise, then whatever else.
fn complaint<'a>(scenarios: impl Iterator<Item = &'a Scenario>) -> Option<String> {
    let mut verdicts = Verdicts::default();
    for scenario in scenarios {
        let report = whole(scenario);
        let known = scenario.size.map(|size| (size.states, size.transitions));
        let found = Some((report.states, report.transitions));
        verdicts.add(scenario.name, &report, (known, found));
    }
    verdicts.complaint()
}

/// Every scenario whose name begins so holds, shows what it is for,
/// and is as large as it is known to be.
fn all_hold(group: &str) {
    let scenarios = SCENARIOS.iter().filter(|s| s.name.starts_with(group));
    if let Some(complaint) = complaint(scenarios) {
        panic!("{complaint}");
    }
}

#[test]
fn a_broken_promise_is_reported_before_a_size_that_has_changed() {
    // A defect that is found, behind a scenario whose size is not the one in the catalogue and that
    // shows nothing.
    let calm = Scenario {
        programs: &[Program {
            node: 1,
            ops: &[Op::Read(0)],
        }],
        ..*named("home-writers")
    };
    let (mutation, name, invariant) = CAUGHT[0];
    let broken = Scenario {
        mutation: Some(mutation),
        ..*named(name)
    };
    let text = complaint([&calm, &broken].into_iter()).expect("a defect");
    let place = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("no {part}: {text}"))
    };
    let promise = place(&format!("{name}: {invariant}"));
    assert!(promise < place("home-writers never shows"));
    assert!(promise < place("sizes that the catalogue does not know"));
    assert!(text.starts_with("broken promises"), "{text}");
}

#[test]
fn home_agents_keep_every_promise() {
    all_hold("home-");
}

#[test]
fn gathering_homes_keep_every_promise() {
    all_hold("gather-");
}

#[test]
fn the_switch_keeps_every_promise() {
    all_hold("switch-");
}

#[test]
fn entries_on_the_move_keep_every_promise() {
    all_hold("move-");
}

#[test]
fn what_dies_takes_no_promise_with_it() {
    all_hold("epoch-");
}

#[test]
fn kernels_that_answer_for_agents_keep_every_promise() {
    all_hold("kernel-");
}

#[test]
fn removed_regions_keep_every_promise() {
    all_hold("removed-");
}

#[test]
fn rebuilds_keep_every_promise_packet_by_packet() {
    all_hold("inside-");
}

#[test]
fn scenarios_have_names_of_their_own_and_say_what_they_show() {
    let names: BTreeSet<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    assert_eq!(names.len(), SCENARIOS.len());
    for scenario in SCENARIOS {
        assert!(!scenario.shows.is_empty() && !scenario.sometimes.is_empty());
    }
}

#[test]
fn everything_worth_seeing_is_asked_for_by_some_scenario() {
    for witness in Witness::ALL {
        let asked = SCENARIOS.iter().any(|s| s.sometimes.contains(&witness));
        assert!(asked, "{}", witness.name());
    }
}

#[test]
fn a_scenario_that_shows_nothing_fails() {
    let scenario = Scenario {
        programs: &[Program {
            node: 1,
            ops: &[Op::Read(0)],
        }],
        ..*named("home-writers")
    };
    let report = whole(&scenario);
    assert_eq!(report.ended, Ended::Whole);
    assert!(report.missing.contains(&Witness::RefusedLocked.name()));
    assert!(!report.passed());
}

#[test]
fn a_scenario_that_is_no_rack_is_refused() {
    let scenario = Scenario {
        homes: &[7],
        ..*named("home-writers")
    };
    let mut limits = Limits {
        states: 1,
        time: None,
        stop: &mut |_| false,
    };
    assert!(explore(&scenario, &mut limits).is_err());
}

const CASES: usize = Mutation::IN_ONE_EPOCH.len()
    + Mutation::OF_EPOCHS.len()
    + Mutation::OF_REBUILDS.len()
    + Mutation::OF_THE_NODE.len()
    + Mutation::OF_THE_KERNEL.len()
    + Mutation::OF_REMOVALS.len()
    + Mutation::OF_AN_ACCESS.len();

/// A defect, a scenario that shows it, and the promise that it breaks.
const CAUGHT: [(Mutation, &str, &str); CASES] = [
    (Mutation::AcceptStaleData, "home-segments", "data value"),
    (
        Mutation::ForgetReader,
        "switch-readers",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::SkipWriteBack),
        "home-dirty-reads",
        "home is current",
    ),
    (
        Mutation::Node(Defect::DontRetain),
        "home-writers",
        "a granted event is served",
    ),
    (
        Mutation::Node(Defect::ForgetExecuted),
        "home-upgrades",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::StoreStaleData),
        "home-rewrites",
        "home is current",
    ),
    (
        Mutation::Node(Defect::KeepInvalidated),
        "switch-writers",
        "single writer",
    ),
    (
        Mutation::DropSilently,
        "home-evictions",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::EvictWithoutWriteBack),
        "switch-evictions",
        "home is current",
    ),
    (Mutation::UnlockOnce, "home-neighbours", "liveness"),
    (
        Mutation::Node(Defect::ForgetDowngraded),
        "epoch-evictions",
        "home is current",
    ),
    (
        Mutation::Node(Defect::ForgetRead),
        "epoch-twice",
        "home is current",
    ),
    (
        Mutation::Node(Defect::ForgetGiven),
        "epoch-switch-dies",
        "home is current",
    ),
    (
        Mutation::Node(Defect::TrustMoving),
        "epoch-move-dies",
        "home is current",
    ),
    (
        Mutation::FreeLockOnAccept,
        "epoch-accepts-loss",
        "locks exclude",
    ),
    (
        Mutation::Node(Defect::SettleEarly),
        "inside-pair",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::KeepDeadCopies),
        "epoch-home-dies",
        "nothing of the dead",
    ),
    (
        Mutation::ForgetEpoch,
        "epoch-node-returns",
        "nothing of the past",
    ),
    (
        Mutation::Node(Defect::LetGoEarly),
        "inside-again",
        "home is current",
    ),
    (
        Mutation::Node(Defect::ForgetRescued),
        "inside-node-dies",
        "no data is lost",
    ),
    (
        Mutation::Node(Defect::HideModified),
        "epoch-twice",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::HideClean),
        "epoch-twice",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::ForgetOwnCopies),
        "inside-node-dies",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::ForgetOwnEvents),
        "epoch-accepts-loss",
        "locks exclude",
    ),
    (
        Mutation::Node(Defect::RescueNothing),
        "epoch-accepts-loss",
        "home is current",
    ),
    (
        Mutation::Node(Defect::DropRescue),
        "epoch-twice",
        "home is current",
    ),
    (
        Mutation::Node(Defect::DowngradeUnnoted),
        "epoch-twice",
        "home is current",
    ),
    (
        Mutation::Node(Defect::KeepExecuted),
        "epoch-node-restarts",
        "single writer",
    ),
    (
        Mutation::Node(Defect::GoOnAlone),
        "inside-again",
        "nobody goes on alone",
    ),
    (
        Mutation::Node(Defect::ForgetGone),
        "epoch-twice",
        "home is current",
    ),
    (
        Mutation::Node(Defect::RescueInPart),
        "inside-node-dies",
        "home is current",
    ),
    (
        Mutation::AnswerAnyEpoch,
        "kernel-epoch",
        "nothing of the past",
    ),
    (
        Mutation::AnswerAgain,
        "kernel-upgrade",
        "directory covers caches",
    ),
    (
        Mutation::AnswerUnnoted,
        "kernel-upgrade",
        "directory covers caches",
    ),
    (Mutation::AnswerAndKeep, "kernel-upgrade", "single writer"),
    (Mutation::GiveUnnoted, "kernel-rewrites", "home is current"),
    (Mutation::ProvideOld, "kernel-provides", "data value"),
    (
        Mutation::Node(Defect::ShowReturned),
        "kernel-moves",
        "data value",
    ),
    (
        Mutation::Node(Defect::ShowInNext),
        "kernel-provides-later",
        "data value",
    ),
    (
        Mutation::Node(Defect::KeepRemoved),
        "removed-under-copies",
        "nothing of a removed region",
    ),
    (
        Mutation::Node(Defect::KeepComing),
        "removed-under-copies",
        "nothing of a removed region",
    ),
    (
        Mutation::Node(Defect::KeepRefused),
        "removed-on-the-way-home",
        "a granted event is served",
    ),
    (Mutation::AwaitGone, "removed-under-copies", "liveness"),
    (
        Mutation::ReuseAddresses,
        "removed-under-copies",
        "data value",
    ),
    (
        Mutation::Node(Defect::InstallInPart),
        "home-segments",
        "data value",
    ),
    (
        Mutation::Node(Defect::UnlockFirst),
        "home-writers",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::TakeRefusal),
        "home-writers",
        "directory covers caches",
    ),
    (
        Mutation::Node(Defect::TakeFenced),
        "epoch-switch-dies",
        "data value",
    ),
    (
        Mutation::Node(Defect::LeaveLate),
        "home-evict-neighbours",
        "home is current",
    ),
    (
        Mutation::Node(Defect::SkipRestore),
        "epoch-evictions",
        "home is current",
    ),
    (
        Mutation::Node(Defect::FetchLocked),
        "home-fetches",
        "data value",
    ),
    (
        Mutation::Node(Defect::StoreShared),
        "home-stores",
        "data value",
    ),
    (
        Mutation::Node(Defect::ForgetStores),
        "home-stores",
        "a write happens once",
    ),
    (
        Mutation::Node(Defect::ForgetOld),
        "home-swaps",
        "a write happens once",
    ),
    (Mutation::StoreAnew, "epoch-stores", "a write happens once"),
];

#[test]
fn every_defect_is_found_with_a_story() {
    for (mutation, name, invariant) in CAUGHT {
        let scenario = Scenario {
            mutation: Some(mutation),
            // Nothing comes in part where a block is one packet.
            segments: if mutation == Mutation::Node(Defect::RescueInPart) {
                2
            } else {
                named(name).segments
            },
            ..*named(name)
        };
        let report = whole(&scenario);
        let Some(violation) = report.violation() else {
            panic!("{mutation:?} goes unnoticed in {name}");
        };
        assert_eq!(violation.invariant, invariant, "{mutation:?}: {violation}");
        assert!(violation.story.len() > 3, "{violation}");
    }
}

#[test]
fn a_story_is_short_and_in_the_words_of_the_protocol() {
    let scenario = Scenario {
        mutation: Some(Mutation::ForgetReader),
        rack: Owners::HomeOnly,
        in_switch: &[],
        budget: Budget::default(),
        ..*named("switch-readers")
    };
    let report = whole(&scenario);
    let text = report
        .violation()
        .expect("a reader is forgotten")
        .to_string();
    for line in ["Turn of", "ReadMiss", "Arrived", "Unlock", "installed"] {
        assert!(text.contains(line), "{text}");
    }
    assert!(text.lines().count() < 16, "{text}");
}

#[test]
fn the_same_scenario_is_explored_the_same_way() {
    let (first, second) = (whole(named("home-locks")), whole(named("home-locks")));
    assert_eq!(first.states, second.states);
    assert_eq!(first.transitions, second.transitions);
    assert_eq!(first.figures, second.figures);
}

#[test]
fn an_exploration_can_be_stopped() {
    let mut asked = 0;
    let mut limits = Limits {
        states: MAX_STATES,
        time: None,
        stop: &mut |progress| {
            asked += 1;
            progress.expanded > 10_000
        },
    };
    let report = explore(named("home-writers"), &mut limits).expect("a rack");
    assert_eq!(report.ended, Ended::Stopped);
    assert!(report.expanded > 10_000 && report.expanded < report.states);
    assert!(asked > 1);
}
