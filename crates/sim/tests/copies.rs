//! Blocks whose homes groups keep, in seeded worlds: the rack's keeper dies, copies are replaced,
//! and what is home stays.

#[path = "support/copied.rs"]
mod copied;

use copied::{DEATHS, config, is_noticed, seeds};
use rackmem_proto::engine::Defect;
use rackmem_sim::world::{Config, CopiesSeen, Failures, Faults, Mutation, Owners, World};

#[test]
fn what_is_home_stays_whoever_dies() {
    let mut sum = CopiesSeen::default();
    for rack in [Owners::HomeOnly, Owners::LARGE_SWITCH] {
        for failures in [Failures::NONE, DEATHS, Failures::PARTITION, Failures::ALL] {
            for faults in [Faults::NONE, Faults::ALL] {
                let config = config(rack, faults, failures);
                for seed in 0..seeds() {
                    match World::run(seed, &config) {
                        Ok(report) => sum.add(&report.copies),
                        Err(violation) => panic!("{config:?}\n{violation}"),
                    }
                }
            }
        }
    }
    println!("{sum:?}");
    let CopiesSeen {
        placed,
        came_home,
        side_by_side,
        keepers_died,
        replaced,
        reverted,
        untold,
        removals: _,
    } = sum;
    let homes = [placed, came_home, side_by_side];
    for seen in homes
        .into_iter()
        .chain([keepers_died, replaced, reverted, untold])
    {
        assert!(seen > 0, "{sum:?}");
    }
}

/// In this world a node comes back as a member of two groups and fills in both at once. What it
/// fetched of their lines was put together in the same places: copies with the stamps of the
/// others' and other bytes.
#[test]
fn a_node_that_fills_in_two_groups_keeps_them_apart() {
    let config = config(Owners::HomeOnly, Faults::NONE, DEATHS);
    if let Err(violation) = World::run(145, &config) {
        panic!("{violation}");
    }
}

#[test]
fn racks_of_two_to_thirty_two_nodes_have_homes_with_copies() {
    for (nodes, copies) in [(2, 1), (3, 3), (8, 5), (32, 7)] {
        let config = Config {
            nodes,
            copies,
            homes: nodes - 1,
            threads: 1,
            operations: 20,
            ..config(Owners::HomeOnly, Faults::ALL, Failures::ALL)
        };
        for seed in 0..seeds().div_ceil(6) {
            if let Err(violation) = World::run(seed, &config) {
                panic!("{config:?}\n{violation}");
            }
        }
    }
}

/// A defect, the faults and failures with which it shows, and the invariant that notices it.
const CAUGHT: [(Mutation, Faults, Failures, &str); Mutation::OF_COPIES.len()] = [
    (
        Mutation::Node(Defect::ServeUnplaced),
        Faults::NONE,
        DEATHS,
        "data value",
    ),
    (
        Mutation::Node(Defect::StayInPlace),
        Faults::NONE,
        DEATHS,
        "data value",
    ),
    (
        Mutation::Node(Defect::SayHomeEarly),
        Faults::NONE,
        Failures::NONE,
        "home is current",
    ),
    (
        Mutation::Node(Defect::TakeTurnsTogether),
        Faults::NONE,
        DEATHS,
        "home is current",
    ),
    (
        Mutation::TellOverEpochs,
        Faults::ALL,
        DEATHS,
        "a write that survives is home when it is told",
    ),
];

#[test]
fn every_defect_of_homes_with_copies_is_noticed() {
    for (mutation, faults, failures, invariant) in CAUGHT {
        let config = Config {
            mutation: Some(mutation),
            ..config(Owners::HomeOnly, faults, failures)
        };
        println!("{}", is_noticed(&config, invariant));
    }
    let missing = |defect| CAUGHT.iter().all(|(caught, ..)| *caught != defect);
    assert!(!Mutation::OF_COPIES.into_iter().any(missing));
}
