//! Seeded worlds of 8 to 32 members of bounded memory, whose histories are judged, and defects that
//! the judge must notice.

use rackmem_proto::bi::cached::Defect;
use rackmem_sim::bi::crowd::{CrowdConfig, CrowdFailure, CrowdReport, run};
use rackmem_sim::staleness::NoVerdict;

/// Worlds that are run of each kind.
const SEEDS: u64 = 60;

#[test]
fn what_many_members_read_was_current_within_the_bound() {
    let (mut all, mut old, mut oldest) = (CrowdReport::default(), 0, 0);
    for seed in 0..SEEDS {
        let config = CrowdConfig::of(seed);
        let (report, ages) = run(seed, &config)
            .unwrap_or_else(|failure| panic!("seed {seed}, {config:?}: {failure}"));
        let threads = u32::from(config.nodes) * u32::from(config.threads);
        assert_eq!(report.history.len() as u32, threads * config.operations);
        (old, oldest) = (old + ages.old, oldest.max(ages.oldest));
        all.hits += report.hits;
        all.refused += report.refused;
        all.everything += report.everything;
        all.slept += report.slept;
        all.died += report.died;
    }
    // Each thing that may happen does.
    assert!(
        all.hits > 0 && all.everything > 0 && all.slept > 0 && all.died > 0,
        "{all:?}"
    );
    assert!(all.refused > 0 && old > 0 && oldest > 5_000_000, "{oldest}");
}

#[test]
fn a_seed_decides_a_world() {
    let world = |seed| run(seed, &CrowdConfig::of(seed)).unwrap().0.history;
    assert_eq!(world(7), world(7));
    assert_ne!(world(7), world(8));
}

/// The first seed in which the judge notices a defect.
fn noticed(defect: Defect) -> Option<u64> {
    (0..SEEDS).find(|seed| {
        let config = CrowdConfig {
            broken: Some(defect),
            ..CrowdConfig::of(*seed)
        };
        matches!(
            run(*seed, &config),
            Err(CrowdFailure::Judged(NoVerdict::Broken(_)))
        )
    })
}

#[test]
fn planted_defects_are_noticed_by_the_judge() {
    let missed = Defect::ALL
        .iter()
        .filter(|defect| noticed(**defect).is_none());
    let missed: Vec<_> = missed.collect();
    assert!(missed.is_empty(), "{missed:?}");
}
