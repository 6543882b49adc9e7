//! Defects put into roles on purpose: the invariants must notice every one,
//! or they would notice nothing.

use rackmem_proto::engine::Defect;
use rackmem_sim::gcp;
use rackmem_sim::world::{Config, Failures, Faults, Mix, Mutation, Owners, World};
use std::collections::BTreeSet;

/// Seeds tried for each defect, at most.
const SEEDS: u64 = 1500;

/// A defect, where it shows, and an invariant that notices it.
struct Case(Mutation, Owners, Faults, Failures, &'static str);

/// The catalogue.
const CAUGHT: [Case; Mutation::ALL.len()] = [
    Case(
        Mutation::AcceptStaleData,
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "data value",
    ),
    Case(
        Mutation::ForgetReader,
        Owners::LARGE_SWITCH,
        Faults::NONE,
        Failures::NONE,
        "directory covers caches",
    ),
    Case(
        Mutation::Node(Defect::SkipWriteBack),
        Owners::LARGE_SWITCH,
        Faults::NONE,
        Failures::NONE,
        "home is current",
    ),
    Case(
        Mutation::Node(Defect::DontRetain),
        Owners::HomeOnly,
        Faults::LOSS,
        Failures::NONE,
        "a granted event is served",
    ),
    Case(
        Mutation::Node(Defect::ForgetExecuted),
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "directory covers caches",
    ),
    Case(
        Mutation::Node(Defect::StoreStaleData),
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "home is current",
    ),
    Case(
        Mutation::Node(Defect::KeepInvalidated),
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NONE,
        "single writer",
    ),
    Case(
        Mutation::DropSilently,
        Owners::TINY_SWITCH,
        Faults::NONE,
        Failures::NONE,
        "directory covers caches",
    ),
    Case(
        Mutation::Node(Defect::EvictWithoutWriteBack),
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NONE,
        "home is current",
    ),
    Case(
        Mutation::UnlockOnce,
        Owners::LARGE_SWITCH,
        Faults::LOSS,
        Failures::NONE,
        "liveness",
    ),
    Case(
        Mutation::Node(Defect::ForgetGiven),
        Owners::LARGE_SWITCH,
        Faults::ALL,
        Failures::SWITCH,
        "no dirty data is lost in silence",
    ),
    Case(
        Mutation::Node(Defect::ForgetDowngraded),
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NODE,
        "home is current",
    ),
    Case(
        Mutation::Node(Defect::ForgetRead),
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NODE,
        "home is current",
    ),
    Case(
        Mutation::Node(Defect::SettleEarly),
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NODE,
        "directory covers caches",
    ),
    Case(
        Mutation::Node(Defect::KeepDeadCopies),
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NODE,
        "nothing of the dead",
    ),
    Case(
        Mutation::Node(Defect::SkipRestore),
        Owners::LARGE_SWITCH,
        Faults::ALL,
        Failures::SWITCH,
        "no dirty data is lost in silence",
    ),
    Case(
        Mutation::ServeFenced,
        Owners::HomeOnly,
        Faults::NONE,
        Failures::PARTITION,
        "no dirty data is lost in silence",
    ),
    Case(
        Mutation::TellUnconfirmed,
        Owners::HomeOnly,
        Faults::NONE,
        Failures::STOP,
        "no stale read is told",
    ),
    Case(
        Mutation::ConfirmAtStart,
        Owners::HomeOnly,
        Faults::NONE,
        Failures::STOP,
        "no excluded member acknowledges",
    ),
    Case(
        Mutation::WrongClock,
        Owners::HomeOnly,
        Faults::NONE,
        Failures::STOP,
        "no stale read is told",
    ),
    Case(
        Mutation::ExtendEndedTerm,
        Owners::HomeOnly,
        Faults::NONE,
        Failures::STOP,
        "no excluded member acknowledges",
    ),
    Case(
        Mutation::OverwriteCopyset,
        Owners::LARGE_SWITCH,
        Faults::NONE,
        Failures::NONE,
        "directory covers caches",
    ),
    Case(
        Mutation::AcceptLateRefusal,
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "locks of live events",
    ),
    Case(
        Mutation::UnlockAnyOwner,
        Owners::LARGE_SWITCH,
        Faults::NONE,
        Failures::NONE,
        "locks of live events",
    ),
    Case(
        Mutation::ForgetEpoch,
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NODE,
        "home is current",
    ),
    Case(
        Mutation::AddAgain,
        Owners::TINY_SWITCH,
        Faults::ALL,
        Failures::NONE,
        "one owner",
    ),
    Case(
        Mutation::FreeInFirstStep,
        Owners::TINY_SWITCH,
        Faults::ALL,
        Failures::NONE,
        "directory covers caches",
    ),
    Case(
        Mutation::KeepDeadLocks,
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NODE,
        "locks of live events",
    ),
    Case(
        Mutation::DemoteAlone,
        Owners::TINY_SWITCH,
        Faults::NONE,
        Failures::NONE,
        "one owner",
    ),
    Case(
        Mutation::LeaveAnyEpoch,
        Owners::HomeOnly,
        Faults::NONE,
        Failures::ALL,
        "liveness",
    ),
    Case(
        Mutation::ForgetIncarnation,
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NODE,
        "no dirty data is lost in silence",
    ),
    Case(
        Mutation::NeverBackOff,
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "no starvation",
    ),
    Case(
        Mutation::RefuseOne,
        Owners::LARGE_SWITCH,
        Faults::NONE,
        Failures::NONE,
        "no starvation",
    ),
    Case(
        Mutation::ForgetCalls,
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "memory is given out once",
    ),
    Case(
        Mutation::RenumberCalls,
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NODE,
        "memory is given out once",
    ),
    Case(
        Mutation::Node(Defect::ForgetTold),
        Owners::LARGE_SWITCH,
        Faults::ALL,
        Failures::NODE,
        "no dirty data is lost in silence",
    ),
    Case(
        Mutation::Node(Defect::MoveOn),
        Owners::LARGE_SWITCH,
        Faults::ALL,
        Failures::SWITCH,
        "no entry moves where there is no switch",
    ),
    Case(
        Mutation::Node(Defect::InstallInPart),
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "data value",
    ),
    Case(
        Mutation::Node(Defect::UnlockFirst),
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NONE,
        "directory covers caches",
    ),
    Case(
        Mutation::Node(Defect::TakeRefusal),
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NONE,
        "directory covers caches",
    ),
    Case(
        Mutation::Node(Defect::TakeFenced),
        Owners::LARGE_SWITCH,
        Faults::ALL,
        Failures::SWITCH,
        "data value",
    ),
    Case(
        Mutation::Node(Defect::LeaveLate),
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NONE,
        "home is current",
    ),
    Case(
        Mutation::Node(Defect::FetchLocked),
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NONE,
        "linearizable",
    ),
    Case(
        Mutation::Node(Defect::StoreShared),
        Owners::HomeOnly,
        Faults::NONE,
        Failures::NONE,
        "data value",
    ),
    Case(
        Mutation::Node(Defect::ForgetStores),
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "linearizable",
    ),
    Case(
        Mutation::Node(Defect::ForgetOld),
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NONE,
        "linearizable",
    ),
    Case(
        Mutation::StoreAnew,
        Owners::HomeOnly,
        Faults::ALL,
        Failures::NODE,
        "linearizable",
    ),
];

impl Case {
    fn config(&self, mutation: Option<Mutation>) -> Config {
        let Case(about, rack, faults, failures, _) = *self;
        let calls = matches!(about, Mutation::ForgetCalls | Mutation::RenumberCalls);
        let long = u32::from(about.is_of_long_ranges());
        let usual = Config {
            mix: Mix {
                alloc: if calls { 10 } else { 0 },
                fetch: 3 * long,
                store: 3 * long,
                operate: 3 * long,
                ..Config::default().mix
            },
            history: long > 0,
            segment: match long {
                0 => Config::default().segment,
                _ => Config::WHOLE_BLOCKS,
            },
            rack,
            faults,
            failures,
            mutation,
            nodes: 4,
            blocks: 4,
            cache: 2,
            ..Config::default()
        };
        if failures.any() {
            let operations = if failures.stop > 0 { 150 } else { 60 };
            let homes = 3;
            return Config {
                homes,
                operations,
                ..usual
            };
        }
        usual
    }
}

#[test]
fn every_defect_is_noticed_by_its_invariant() {
    for case in &CAUGHT {
        let Case(mutation, .., invariant) = *case;
        let config = case.config(Some(mutation));
        let mut noticed = BTreeSet::new();
        for seed in 0..SEEDS {
            if let Err(violation) = World::run(seed, &config) {
                noticed.insert(violation.invariant);
            }
            if noticed.contains(invariant) {
                break;
            }
        }
        assert!(noticed.contains(invariant), "{mutation:?}: {noticed:?}");
    }
}

#[test]
fn every_defect_is_in_the_catalogue() {
    for mutation in Mutation::ALL {
        assert!(CAUGHT.iter().any(|case| case.0 == mutation), "{mutation:?}");
    }
}

#[test]
fn every_rule_of_the_engine_is_broken_in_some_checker() {
    let blocks = Mutation::played().chain(Mutation::explored());
    let locks = gcp::Mutation::explored().filter_map(gcp::Mutation::in_engine);
    let played: BTreeSet<Defect> = blocks
        .filter_map(Mutation::in_engine)
        .chain(locks)
        .collect();
    for defect in Defect::ALL {
        assert!(played.contains(defect), "{defect:?}");
    }
}

#[test]
fn without_a_defect_the_same_worlds_are_sound() {
    for case in &CAUGHT {
        for seed in 0..5 {
            if let Err(violation) = World::run(seed, &case.config(None)) {
                panic!("{:?}: {violation}", case.0);
            }
        }
    }
}

#[test]
fn a_violation_names_its_seed_and_shows_what_led_to_it() {
    let Case(mutation, .., invariant) = CAUGHT[1];
    let config = CAUGHT[1].config(Some(mutation));
    let violation = World::run(5, &config).expect_err("every seed shows this defect");
    let text = violation.to_string();
    assert!(text.starts_with(&format!("seed 5: {invariant}")), "{text}");
    assert!(text.contains("Unlock"), "{text}");
    let again = World::run(5, &config).expect_err("a seed decides everything");
    assert_eq!(again.to_string(), text);
}
