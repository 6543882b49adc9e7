//! Regions of coherent memory with copies that are removed, in seeded worlds: under loss, delays
//! and deaths, while the next region has the number and each node hears of it by itself.

#[path = "support/copied.rs"]
mod copied;

use copied::{DEATHS, is_noticed, seeds};
use rackmem_proto::engine::Defect;
use rackmem_sim::world::{
    Config, CopiesSeen, Failures, Faults, Mutation, Owners, RemovalsSeen, World,
};

/// A world in which regions are removed.
fn config(rack: Owners, faults: Faults, failures: Failures) -> Config {
    Config {
        removals: 4,
        ..copied::config(rack, faults, failures)
    }
}

#[test]
fn regions_go_under_their_caches_whoever_dies() {
    let mut sum = CopiesSeen::default();
    let mut broken = Vec::new();
    for rack in [Owners::HomeOnly, Owners::LARGE_SWITCH] {
        for failures in [
            Failures::NONE,
            DEATHS,
            Failures::SLOW,
            Failures::PARTITION,
            Failures::ALL,
        ] {
            for faults in [Faults::NONE, Faults::ALL] {
                let config = config(rack, faults, failures);
                for seed in 0..seeds() {
                    match World::run(seed, &config) {
                        Ok(report) => sum.add(&report.copies),
                        Err(violation) => broken.push(format!("{config:?}\n{violation}")),
                    }
                }
            }
        }
    }
    println!("{sum:?}");
    let number = broken.len();
    assert!(broken.is_empty(), "{number} broken\n{}", broken[0]);
    let RemovalsSeen {
        removed,
        next,
        dirty,
        clean,
        both,
        refused,
        unheard,
    } = sum.removals;
    let seen = [removed, next, dirty, clean, both, refused, unheard];
    let others = [sum.came_home, sum.placed, sum.keepers_died, sum.replaced];
    assert!(seen.iter().chain(&others).all(|seen| *seen > 0), "{sum:?}");
}

/// A defect, the faults with which it shows, and the promise that it breaks.
const CAUGHT: [(Mutation, Faults, &str); Mutation::OF_REMOVALS_IN_WORLDS.len()] = [
    (
        Mutation::Node(Defect::KeepRemoved),
        Faults::NONE,
        "nothing of a removed region",
    ),
    (
        Mutation::Node(Defect::KeepComing),
        Faults::NONE,
        "nothing of a removed region",
    ),
    (
        Mutation::Node(Defect::KeepRefused),
        Faults::NONE,
        "a granted event is served",
    ),
    (
        Mutation::ReuseAddresses,
        Faults::NONE,
        "a write that survives is home when it is told",
    ),
];

#[test]
fn every_defect_of_removals_is_noticed() {
    for (mutation, faults, promise) in CAUGHT {
        let config = Config {
            mutation: Some(mutation),
            ..config(Owners::HomeOnly, faults, Failures::NONE)
        };
        println!("{}", is_noticed(&config, promise));
    }
    let missing = |defect| CAUGHT.iter().all(|(caught, ..)| *caught != defect);
    assert!(!Mutation::OF_REMOVALS_IN_WORLDS.into_iter().any(missing));
}
