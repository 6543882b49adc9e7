//! Blocks and locks on the same nodes, in seeded worlds.

use rackmem_proto::engine::Defect;
use rackmem_sim::driver::{Case, Ended, Limits, Report};
use rackmem_sim::gcp::Mutation as LockDefect;
use rackmem_sim::world::{Config, Failures, Faults, Mutation, Owners, SCENARIOS, World};

fn seeds() -> u64 {
    let given = std::env::var("RACKMEM_SEEDS").ok();
    given.and_then(|seeds| seeds.parse().ok()).unwrap_or(4)
}

fn played(name: &str, defect: Option<Mutation>) -> Report {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.unwrap_or_else(|| panic!("there is no scenario {name}"));
    let mut limits = Limits {
        states: 0,
        time: None,
        stop: &mut |_| false,
    };
    let defect = defect.map(Mutation::name);
    let report = scenario.explore(false, defect.as_deref(), &mut limits);
    report.unwrap_or_else(|why| panic!("{name}: {why}"))
}

#[test]
fn worlds_with_locks_keep_every_promise() {
    let failures = [
        Failures::NONE,
        Failures::NODE,
        Failures::SWITCH,
        Failures::LEAVE,
        Failures::PARTITION,
        Failures::ALL,
    ];
    let mut entries = 0;
    for rack in [Owners::HomeOnly, Owners::LARGE_SWITCH, Owners::TINY_SWITCH] {
        for failures in failures {
            for faults in [Faults::NONE, Faults::ALL] {
                let config = Config {
                    rack,
                    nodes: 4,
                    homes: 3,
                    locks: 2,
                    failures,
                    faults,
                    history: true,
                    ..Config::default()
                };
                for seed in 0..seeds() {
                    match World::run(seed, &config) {
                        Ok(report) => entries += report.locks.entries,
                        Err(violation) => panic!("{config:?}\n{violation}"),
                    }
                }
            }
        }
    }
    assert!(entries > 36 * 60 * seeds(), "{entries}");
}

/// What each is for happens in it, and every promise holds meanwhile.
#[test]
fn joint_scenarios_hold_and_show_what_they_are_for() {
    for scenario in SCENARIOS {
        let report = played(scenario.name, None);
        assert!(
            report.ended == Ended::Seeds && report.passed(),
            "{}: {:?}, never: {:?}",
            scenario.name,
            report.ended,
            report.missing
        );
    }
}

#[test]
fn a_world_with_locks_is_the_same_whenever_it_is_run() {
    let config = Config {
        locks: 2,
        nodes: 4,
        failures: Failures::ALL,
        faults: Faults::ALL,
        ..Config::default()
    };
    let run = |seed| World::run(seed, &config).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(run(3), run(3));
    assert_ne!(run(3).trace, run(4).trace);
}

const DEFECTS: usize = LockDefect::IN_WORLDS.len() + Mutation::OF_LOCKS.len();

/// A defect of locks, a scenario that shows it, and the promise that it breaks.
const CAUGHT: [(Mutation, &str, &str); DEFECTS] = [
    (
        Mutation::Lock(LockDefect::AckInside),
        "both-told",
        "mutual exclusion",
    ),
    (
        Mutation::Lock(LockDefect::SkipInstall),
        "both-told",
        "data of the last release",
    ),
    (
        Mutation::Lock(LockDefect::NeverRetry),
        "both-told",
        "liveness",
    ),
    (
        Mutation::Lock(LockDefect::ForgetDeath),
        "both-owners-die",
        "data of the last release",
    ),
    (
        Mutation::Lock(LockDefect::TokenRestarts),
        "both-close-epochs",
        "tokens rise",
    ),
    (
        Mutation::Node(Defect::EnterFirst),
        "both-told",
        "data of the last release",
    ),
    (
        Mutation::Node(Defect::ForgetOwnReport),
        "both-owners-die",
        "data of the last release",
    ),
];

#[test]
fn every_defect_of_locks_is_noticed_beside_blocks() {
    let noticed = CAUGHT.map(|(defect, name, _)| {
        let report = played(name, Some(defect));
        let promise = match report.violation() {
            Some(violation) => violation.invariant,
            None => "none",
        };
        (defect, name, promise)
    });
    assert_eq!(noticed, CAUGHT);
}
