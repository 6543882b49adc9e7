//! Processes that are stopped, and keepers that run later than the threads of their processes:
//! what is told after a lease.

use rackmem_sim::world::{Config, Failures, Faults, Mutation, Owners, Report, World};
use std::collections::BTreeSet;

const RACKS: [(&str, Owners); 4] = [
    ("home only", Owners::HomeOnly),
    ("gather", Owners::Gather),
    ("tiny switch", Owners::TINY_SWITCH),
    ("large switch", Owners::LARGE_SWITCH),
];

/// Seeds of each. `RACKMEM_SEEDS` asks for more.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("RACKMEM_SEEDS").ok();
    0..asked.and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// Seeds tried for each defect, at most.
const TRIED: u64 = 400;

fn shape(rack: Owners, faults: Faults) -> Config {
    Config {
        rack,
        faults,
        failures: Failures::STOP,
        nodes: 4,
        homes: 3,
        blocks: 5,
        cache: 4,
        operations: 150,
        history: true,
        ..Config::default()
    }
}

fn all(faults: Faults) -> Vec<Report> {
    let (mut reports, mut broken) = (Vec::new(), String::new());
    for (name, rack) in RACKS {
        let mut failed = Vec::new();
        for seed in seeds() {
            match World::run(seed, &shape(rack, faults)) {
                Ok(report) => reports.push(report),
                Err(violation) => {
                    if failed.is_empty() {
                        broken += &format!("{name}: {violation}\n");
                    }
                    failed.push(seed);
                }
            }
        }
        if !failed.is_empty() {
            broken += &format!("{name}: {failed:?}\n");
        }
    }
    assert!(broken.is_empty(), "{broken}");
    reports
}

/// Every occasion that a defect would need has come: nodes were stopped until the others had gone
/// on, worked alone then, saw what was old, and told nobody; and leases came back.
fn had_occasions(reports: &[Report]) {
    let mut seen = [0; 8];
    for Report { broken, work, .. } in reports {
        let occasions = [
            broken.stopped,
            broken.starved,
            broken.excluded,
            broken.fenced,
            broken.regained,
            work.untold,
            work.alone,
            work.stale,
        ];
        seen.iter_mut()
            .zip(occasions)
            .for_each(|(sum, n)| *sum += n);
    }
    assert!(seen.iter().all(|sum| *sum > 0), "{seen:?}");
    eprintln!("{seen:?}");
}

#[test]
fn a_process_that_was_stopped_tells_nothing_of_what_the_rack_has_left_behind() {
    had_occasions(&all(Faults::NONE));
}

#[test]
fn nor_does_it_on_a_bad_network() {
    had_occasions(&all(Faults::ALL));
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    let config = shape(Owners::LARGE_SWITCH, Faults::ALL);
    let run = || World::run(3, &config).map_err(|violation| violation.to_string());
    assert_eq!(run(), run());
}

/// Each defect breaks both promises: that what is read is current,
/// and that whoever acknowledges is a member.
#[test]
fn each_way_to_tell_too_much_is_noticed_by_what_clients_are_promised() {
    let promises = ["no stale read is told", "no excluded member acknowledges"];
    for mutation in [
        Mutation::TellUnconfirmed,
        Mutation::ConfirmAtStart,
        Mutation::WrongClock,
        Mutation::ExtendEndedTerm,
    ] {
        let mut noticed = BTreeSet::new();
        let mut runs = 0;
        for seed in 0..TRIED {
            let (_, rack) = RACKS[seed as usize % RACKS.len()];
            let config = Config {
                mutation: Some(mutation),
                ..shape(rack, Faults::NONE)
            };
            runs += 1;
            if let Err(violation) = World::run(seed, &config) {
                noticed.insert(violation.invariant);
            }
            if promises.iter().all(|promise| noticed.contains(promise)) {
                break;
            }
        }
        eprintln!("{mutation:?}: {noticed:?} in {runs} runs");
        // Nothing else breaks: what is noticed is the defect and not the world.
        assert_eq!(noticed, BTreeSet::from(promises), "{mutation:?}");
    }
}
