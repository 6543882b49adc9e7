//! A violation is made small enough to read, and stays the same violation.

use rackmem_proto::engine::Defect;
use rackmem_sim::world::{Config, Failures, Faults, Mutation, Owners, World, shrink};

/// Worlds that a search may run.
const RUNS: u64 = 1500;

fn shrunk(config: &Config, invariant: &str) -> (Config, u64) {
    let violation = (0..200)
        .filter_map(|seed| World::run(seed, config).err())
        .find(|violation| violation.invariant == invariant)
        .expect("a seed shows this defect");
    let found = shrink(config, &violation, RUNS, &mut |_| false);
    assert!(found.runs <= RUNS);
    assert_eq!(found.violation.invariant, invariant);
    let again = World::run(found.violation.seed, &found.config);
    let again = again.expect_err("the smaller world breaks the same promise every time");
    assert_eq!(again.to_string(), found.violation.to_string());
    (found.config, found.runs)
}

#[test]
fn a_defect_in_one_epoch_shrinks_to_a_few_operations() {
    let config = Config {
        rack: Owners::LARGE_SWITCH,
        faults: Faults::ALL,
        mutation: Some(Mutation::Node(Defect::SkipWriteBack)),
        history: true,
        ..Config::default()
    };
    let (small, _) = shrunk(&config, "home is current");
    assert!(small.total() * 3 <= config.total(), "{small:?}");
    let faults = small.faults;
    let left = faults.loss + faults.duplication + faults.late + faults.one_way;
    assert_eq!(left, 0, "this defect needs no faults");
}

#[test]
fn failures_that_have_nothing_to_do_with_it_are_left_out() {
    let config = Config {
        nodes: 4,
        homes: 3,
        faults: Faults::ALL,
        failures: Failures::ALL,
        mutation: Some(Mutation::Node(Defect::KeepDeadCopies)),
        ..Config::default()
    };
    let (small, _) = shrunk(&config, "nothing of the dead");
    assert!(small.total() * 3 <= config.total(), "{small:?}");
    assert_eq!(small.failures.slow, 0);
    assert!(small.failures.any(), "this defect needs a death");
}

#[test]
fn a_search_ends_when_told_to() {
    let config = Config {
        mutation: Some(Mutation::Node(Defect::KeepInvalidated)),
        ..Config::default()
    };
    let violation = (0..50).find_map(|seed| World::run(seed, &config).err());
    let violation = violation.expect("a seed shows this defect");
    let found = shrink(&config, &violation, RUNS, &mut |_| true);
    assert_eq!((found.runs, found.config), (0, config));
}
