//! Worlds in which groups keep the homes of blocks.

use rackmem_sim::world::{Config, Failures, Faults, Mix, Owners, World};

/// Seeds tried for each defect, at most.
const SEEDS: u64 = 400;

/// Seeds of each configuration.
pub fn seeds() -> u64 {
    let given = std::env::var("RACKMEM_SEEDS").ok();
    given.and_then(|seeds| seeds.parse().ok()).unwrap_or(6)
}

/// A world of five nodes.
pub fn config(rack: Owners, faults: Faults, failures: Failures) -> Config {
    Config {
        rack,
        nodes: 5,
        copies: 3,
        homes: 4,
        blocks: 8,
        locks: 2,
        mix: Mix {
            hold: 1,
            ..Config::default().mix
        },
        faults,
        failures,
        history: true,
        ..Config::default()
    }
}

/// Nodes die, one after the other, and come back.
pub const DEATHS: Failures = Failures {
    node: 5,
    ..Failures::NODE
};

/// The defect of these worlds is noticed, by this invariant; in which of them.
pub fn is_noticed(config: &Config, invariant: &str) -> String {
    let name = config.mutation.expect("a defect").name();
    let found = (0..SEEDS).find_map(|seed| World::run(seed, config).err());
    let violation = found.unwrap_or_else(|| panic!("nothing notices {name}"));
    assert_eq!(violation.invariant, invariant, "{name}: {violation}");
    format!("{name}: seed {}, {}", violation.seed, violation.invariant)
}
