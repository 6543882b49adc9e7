//! The protocol's roles in hundreds of seeded worlds, over every kind of network.

use rackmem_sim::world::{Config, Faults, Mix, Owners, World};

const RACKS: [(&str, Owners); 4] = [
    ("home only", Owners::HomeOnly),
    ("gather", Owners::Gather),
    ("tiny switch", Owners::TINY_SWITCH),
    ("large switch", Owners::LARGE_SWITCH),
];

const NETWORKS: [(&str, Faults); 7] = [
    ("no faults", Faults::NONE),
    ("loss", Faults::LOSS),
    ("duplication", Faults::DUPLICATION),
    ("reordering", Faults::REORDERING),
    ("one-way", Faults::ONE_WAY),
    ("all", Faults::ALL),
    ("storm", Faults::STORM),
];

/// Seeds of each rack over each network. `RACKMEM_SEEDS` asks for more.
fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("RACKMEM_SEEDS").ok();
    0..asked.and_then(|text| text.parse().ok()).unwrap_or(50)
}

/// Shapes that take turns: what is rare in one is common in another.
fn shape(seed: u64, rack: Owners, faults: Faults) -> Config {
    let usual = Config {
        rack,
        faults,
        ..Config::default()
    };
    match seed % 5 {
        0 => usual,
        // One block that everyone wants, and room to keep it: invalidations and upgrades.
        1 => Config {
            blocks: 1,
            nodes: 4,
            cache: 2,
            ..usual
        },
        // Tight caches: everything is evicted all the time.
        2 => Config {
            blocks: 4,
            cache: 1,
            timeout: 1_500,
            segment: 8,
            ..usual
        },
        // As many nodes as a copyset has bits.
        3 => Config {
            nodes: 32,
            threads: 1,
            blocks: 2,
            cache: 1,
            operations: 8,
            ..usual
        },
        // Whole blocks in a packet, mostly read, and memory asked for in between.
        _ => Config {
            nodes: 5,
            threads: 1,
            blocks: 3,
            cache: 2,
            segment: 64,
            mix: Mix {
                read: 6,
                write: 1,
                add: 2,
                hold: 1,
                alloc: 1,
                ..usual.mix
            },
            ..usual
        },
    }
}

/// Every seed that fails over any network, and the first violation of each.
fn over_every_network(rack: usize) {
    let (name, rack) = RACKS[rack];
    let mut failures = String::new();
    for (network, faults) in NETWORKS {
        let broken: Vec<_> = seeds()
            .filter_map(|seed| World::run(seed, &shape(seed, rack, faults)).err())
            .collect();
        if let Some(first) = broken.first() {
            let seeds: Vec<u64> = broken.iter().map(|violation| violation.seed).collect();
            failures += &format!("{name}, {network}: {seeds:?}\n{first}\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn home_only_keeps_every_promise() {
    over_every_network(0);
}

#[test]
fn gathering_homes_keep_every_promise() {
    over_every_network(1);
}

#[test]
fn a_tiny_switch_keeps_every_promise() {
    over_every_network(2);
}

#[test]
fn a_large_switch_keeps_every_promise() {
    over_every_network(3);
}

/// Long ranges beside everything else: whole blocks are read and written at their homes.
fn long_ranges(seed: u64, rack: Owners, faults: Faults) -> Config {
    let usual = shape(seed, rack, faults);
    Config {
        segment: Config::WHOLE_BLOCKS,
        history: true,
        mix: Mix {
            fetch: 3,
            store: 3,
            operate: 3,
            ..usual.mix
        },
        ..usual
    }
}

#[test]
fn long_ranges_keep_every_promise_over_every_network() {
    for (name, rack) in RACKS {
        let mut done = [0; 4];
        for (network, faults) in NETWORKS {
            for seed in seeds().take(10) {
                let config = long_ranges(seed, rack, faults);
                let work = World::run(seed, &config)
                    .unwrap_or_else(|violation| panic!("{name}, {network}: {violation}"))
                    .work;
                let more = [work.fetched, work.stored, work.operated, work.in_place];
                done.iter_mut().zip(more).for_each(|(sum, n)| *sum += n);
            }
        }
        assert!(done.iter().all(|n| *n > 0), "{name}: {done:?}");
    }
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    for (_, rack) in RACKS {
        let config = shape(4, rack, Faults::ALL);
        let first = World::run(11, &config).map_err(|v| v.to_string());
        let second = World::run(11, &config).map_err(|v| v.to_string());
        assert_eq!(first, second);
        assert_ne!(
            first.map(|report| report.trace),
            World::run(12, &config)
                .map(|report| report.trace)
                .map_err(|v| v.to_string())
        );
    }
}

#[test]
fn nothing_passes_for_want_of_an_occasion() {
    for (name, rack) in RACKS {
        let (mut work, mut seen) = (0, 0);
        for seed in 0..20 {
            let report = World::run(seed, &shape(seed, rack, Faults::ALL))
                .unwrap_or_else(|violation| panic!("{name}: {violation}"));
            work |= occasions(&[
                report.work.hits,
                report.work.refused,
                report.work.clean_evictions,
                report.work.dirty_evictions,
                report.work.upgrades,
                report.work.holds,
                report.work.objects,
                report.work.freed,
                report.traffic.lost,
                report.traffic.duplicated,
                report.traffic.reordered,
            ]);
            seen |= occasions(&[
                report.seen.locked,
                report.seen.invalid,
                report.seen.retransmissions,
                report.seen.recalled,
                report.seen.migrated,
                report.seen.collided,
                report.seen.returned,
                report.seen.displaced,
            ]);
        }
        assert_eq!(work, 0b111_1111_1111, "{name}: {work:b}");
        let expected = match rack {
            Owners::HomeOnly | Owners::Gather => 0b1111,
            Owners::TINY_SWITCH => 0b1111_1111,
            // Nothing collides, and what comes back was cold.
            Owners::Switch { .. } => 0b101_1111,
        };
        assert_eq!(seen, expected, "{name}: {seen:b}");
    }
}

/// A bit for each number that is not zero.
fn occasions(numbers: &[u64]) -> u32 {
    let bit = |(at, number): (usize, &u64)| u32::from(*number != 0) << at;
    numbers.iter().enumerate().map(bit).sum()
}
