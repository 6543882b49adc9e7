//! Defects put into roles on purpose: the invariants must notice every one, or they would notice nothing.

use rackmem_sim::world::{Config, Faults, Mutation, Rack, World};
use std::collections::BTreeSet;

/// Seeds tried for each defect.
const SEEDS: u64 = 40;

/// A defect, the rack and the network it shows on, and an invariant that notices it.
const CAUGHT: [(Mutation, Rack, Faults, &str); Mutation::ALL.len()] = [
    (
        Mutation::AcceptStaleData,
        Rack::HomeOnly,
        Faults::ALL,
        "data value",
    ),
    (
        Mutation::ForgetReader,
        Rack::LARGE_SWITCH,
        Faults::NONE,
        "directory covers caches",
    ),
    (
        Mutation::SkipWriteBack,
        Rack::LARGE_SWITCH,
        Faults::NONE,
        "home is current",
    ),
    (
        Mutation::DontRetain,
        Rack::HomeOnly,
        Faults::LOSS,
        "a granted event is served",
    ),
    (
        Mutation::ForgetExecuted,
        Rack::HomeOnly,
        Faults::ALL,
        "directory covers caches",
    ),
    (
        Mutation::StoreStaleData,
        Rack::HomeOnly,
        Faults::ALL,
        "home is current",
    ),
    (
        Mutation::KeepInvalidated,
        Rack::HomeOnly,
        Faults::NONE,
        "single writer",
    ),
    (
        Mutation::DropSilently,
        Rack::TINY_SWITCH,
        Faults::NONE,
        "directory covers caches",
    ),
    (
        Mutation::EvictWithoutWriteBack,
        Rack::HomeOnly,
        Faults::NONE,
        "home is current",
    ),
    (
        Mutation::UnlockOnce,
        Rack::LARGE_SWITCH,
        Faults::LOSS,
        "liveness",
    ),
];

fn config(rack: Rack, faults: Faults, mutation: Option<Mutation>) -> Config {
    Config {
        rack,
        faults,
        mutation,
        nodes: 4,
        blocks: 4,
        cache: 2,
        ..Config::default()
    }
}

#[test]
fn every_defect_is_noticed_by_its_invariant() {
    for (mutation, rack, faults, invariant) in CAUGHT {
        let config = config(rack, faults, Some(mutation));
        let noticed: BTreeSet<&str> = (0..SEEDS)
            .filter_map(|seed| World::run(seed, &config).err())
            .map(|violation| violation.invariant)
            .collect();
        assert!(noticed.contains(invariant), "{mutation:?}: {noticed:?}");
    }
}

#[test]
fn every_defect_is_in_the_catalogue() {
    for mutation in Mutation::ALL {
        assert!(CAUGHT.iter().any(|row| row.0 == mutation), "{mutation:?}");
    }
}

#[test]
fn without_a_defect_the_same_worlds_are_sound() {
    for (_, rack, faults, _) in CAUGHT {
        for seed in 0..SEEDS / 4 {
            if let Err(violation) = World::run(seed, &config(rack, faults, None)) {
                panic!("{violation}");
            }
        }
    }
}

#[test]
fn a_violation_names_its_seed_and_shows_what_led_to_it() {
    let (mutation, rack, faults, invariant) = CAUGHT[1];
    let config = config(rack, faults, Some(mutation));
    let violation = World::run(5, &config).expect_err("every seed shows this defect");
    let text = violation.to_string();
    assert!(text.starts_with(&format!("seed 5: {invariant}")), "{text}");
    assert!(text.contains("Unlock"), "{text}");
    let again = World::run(5, &config).expect_err("a seed decides everything");
    assert_eq!(again.to_string(), text);
}
