//! The protocol's roles in seeded worlds in which switches, nodes and networks fail.

use rackmem_sim::world::{Config, Failures, Faults, Mix, Owners, Report, World};

const RACKS: [(&str, Owners); 4] = [
    ("home only", Owners::HomeOnly),
    ("gather", Owners::Gather),
    ("tiny switch", Owners::TINY_SWITCH),
    ("large switch", Owners::LARGE_SWITCH),
];

const FAILURES: [(&str, Failures); 7] = [
    ("switch", Failures::SWITCH),
    ("node", Failures::NODE),
    ("shadow", Failures::SHADOW),
    ("leave", Failures::LEAVE),
    ("partition", Failures::PARTITION),
    ("slow", Failures::SLOW),
    ("all", Failures::ALL),
];

/// Seeds of each. `RACKMEM_SEEDS` asks for more.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("RACKMEM_SEEDS").ok();
    0..asked.and_then(|text| text.parse().ok()).unwrap_or(9)
}

fn shape(seed: u64, rack: Owners, faults: Faults, failures: Failures) -> Config {
    let usual = Config {
        rack,
        faults,
        failures,
        nodes: 4,
        homes: 3,
        blocks: 5,
        cache: 3,
        operations: 50,
        history: true,
        mix: Mix {
            hold: 1,
            ..Config::default().mix
        },
        ..Config::default()
    };
    match seed % 3 {
        0 => usual,
        1 => Config {
            blocks: 1,
            homes: 1,
            cache: 2,
            ..usual
        },
        _ => Config {
            blocks: 4,
            cache: 1,
            timeout: 1_500,
            segment: 8,
            mix: Mix {
                alloc: 1,
                ..usual.mix
            },
            ..usual
        },
    }
}

/// Every seed that fails, the first violation of each kind, and the reports of the others.
fn all(rack: usize, faults: Faults) -> Vec<Report> {
    let (name, rack) = RACKS[rack];
    let (mut broken, mut reports) = (String::new(), Vec::new());
    for (what, failures) in FAILURES {
        let mut seeds_broken = Vec::new();
        for seed in seeds() {
            match World::run(seed, &shape(seed, rack, faults, failures)) {
                Ok(report) => reports.push(report),
                Err(violation) => {
                    if seeds_broken.is_empty() {
                        broken += &format!("{name}, {what}: {violation}\n");
                    }
                    seeds_broken.push(seed);
                }
            }
        }
        if !seeds_broken.is_empty() {
            broken += &format!("{name}, {what}: {seeds_broken:?}\n");
        }
    }
    assert!(broken.is_empty(), "{broken}");
    reports
}

#[test]
fn promises_are_kept_when_things_break() {
    for rack in 0..RACKS.len() {
        all(rack, Faults::NONE);
    }
}

#[test]
fn promises_are_kept_when_things_break_on_a_bad_network() {
    let mut seen = [0; 13];
    for rack in 0..RACKS.len() {
        for report in all(rack, Faults::ALL) {
            let (broken, work) = (report.broken, report.work);
            let occasions = [
                broken.switches,
                broken.nodes,
                broken.shadows,
                broken.left,
                broken.partitions,
                broken.fenced,
                broken.slow,
                report.seen.rebuilds,
                report.seen.rescued,
                report.seen.lost,
                work.lost,
                work.gone,
                work.cut_off,
            ];
            seen.iter_mut()
                .zip(occasions)
                .for_each(|(sum, n)| *sum += n);
        }
    }
    assert!(seen.iter().all(|&sum| sum > 0), "{seen:?}");
}

#[test]
fn long_ranges_keep_their_promises_when_things_break() {
    let mut done = [0; 5];
    for (name, rack) in RACKS {
        for (what, failures) in FAILURES {
            for (seed, faults) in seeds().zip([Faults::NONE, Faults::ALL].into_iter().cycle()) {
                let usual = shape(seed, rack, faults, failures);
                let config = Config {
                    segment: Config::WHOLE_BLOCKS,
                    mix: Mix {
                        fetch: 3,
                        store: 3,
                        operate: 3,
                        ..usual.mix
                    },
                    ..usual
                };
                let report = World::run(seed, &config)
                    .unwrap_or_else(|violation| panic!("{name}, {what}: {violation}"));
                let work = report.work;
                let more = [
                    work.fetched,
                    work.stored,
                    work.operated,
                    work.in_place,
                    work.lost,
                ];
                done.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
            }
        }
    }
    assert!(done.iter().all(|n| *n > 0), "{done:?}");
}

#[test]
fn a_seed_is_the_same_run_every_time_whatever_breaks() {
    let config = shape(5, Owners::LARGE_SWITCH, Faults::ALL, Failures::ALL);
    let run = || World::run(5, &config).map_err(|violation| violation.to_string());
    assert_eq!(run(), run());
}
