//! The cost model of accesses: runs repeat, nothing gets lost, and what the protocols are known for
//! shows at small size.

use rackmem_sim::model::{
    AccessFigures, Accesses, Experiment, Network, System, Workload, simulate,
};

type Outcome = rackmem_sim::model::Outcome<AccessFigures>;

/// A quarter of the threads' contention for shared blocks comes from the small scale,
/// so no test asks for more than a shape.
const SCALE: u32 = 128;

fn experiment(system: System, sharing: u8) -> Experiment<Accesses> {
    let workload = Workload {
        program: Accesses {
            sharing,
            scale: SCALE,
            ..Accesses::default()
        },
        ..Workload::default()
    };
    Experiment {
        warm_up: 100_000,
        measured: 30_000,
        ..Experiment::<Accesses>::new(system, workload, 1)
    }
}

fn run(system: System, sharing: u8) -> Outcome {
    simulate(&experiment(system, sharing))
}

fn home_packets(outcome: &Outcome) -> f64 {
    outcome.per_operation(outcome.home_packets)
}

#[test]
fn a_seed_decides_a_run() {
    for (system, _) in System::ALL {
        let first = Experiment {
            warm_up: 5_000,
            measured: 5_000,
            ..experiment(system, 60)
        };
        let other = Experiment { seed: 2, ..first };
        assert_eq!(simulate(&first), simulate(&first));
        assert_ne!(simulate(&first).digest, simulate(&other).digest);
    }
}

#[test]
fn everything_ends_and_no_packet_disappears() {
    for (system, name) in System::ALL {
        for (nodes, sharing, reads, locality) in [
            (1, 0, 50, 0),
            (2, 100, 0, 50),
            (8, 60, 50, 0),
            (32, 100, 90, 0),
        ] {
            let workload = Workload {
                nodes,
                reads,
                program: Accesses {
                    sharing,
                    locality,
                    scale: 512,
                    ..Accesses::default()
                },
                ..Workload::default()
            };
            let outcome = simulate(&Experiment {
                warm_up: 5_000,
                measured: 20_000,
                ..Experiment::<Accesses>::new(system, workload, 3)
            });
            let case = format!("{name}, {nodes} nodes: {outcome:?}");
            assert!(outcome.operations >= 20_000, "{case}");
            assert_eq!((outcome.unfinished, outcome.failures), (0, 0), "{case}");
            let traffic = outcome.traffic;
            assert_eq!(traffic.sent, traffic.received + outcome.in_flight, "{case}");
            assert_eq!(outcome.in_flight, 0, "{case}");
            assert!(outcome.of.hits <= outcome.operations, "{case}");
        }
    }
}

#[test]
fn the_switch_takes_shared_data_off_the_home_agents() {
    let (private, shared) = (run(System::Switch, 0), run(System::Switch, 100));
    let (base_private, base_shared) = (run(System::HomeOnly, 0), run(System::HomeOnly, 100));
    assert!(home_packets(&shared) < home_packets(&private));
    assert!(home_packets(&base_shared) > 2.0 * home_packets(&base_private));
    assert!(home_packets(&base_shared) > 4.0 * home_packets(&shared));
    assert!(shared.mops() > 1.1 * base_shared.mops());
}

#[test]
fn gathering_at_home_suffers_most_from_sharing() {
    let falls = |system| run(system, 0).mops() / run(system, 100).mops();
    let (directory, base) = (falls(System::Directory), falls(System::HomeOnly));
    assert!(directory > 2.0 * base, "{directory} {base}");
    // Without a cache nothing can get worse by sharing.
    let delegate = falls(System::Delegate);
    assert!((0.95..1.05).contains(&delegate), "{delegate}");
}

#[test]
fn a_full_cache_has_hits_only_where_any_block_may_be_anywhere() {
    let (directory, base) = (run(System::Directory, 0), run(System::HomeOnly, 0));
    assert!(directory.hit_rate() > 0.98, "{}", directory.hit_rate());
    assert!((0.7..0.9).contains(&base.hit_rate()), "{}", base.hit_rate());
}

#[test]
fn shared_blocks_hit_as_often_as_chance_has_it() {
    // A read hits when this node's last access is younger than any other's last write,
    // a write when its last write is younger than any other's last access.
    let (mine, others, writes) = (1.0 / 8.0, 7.0 / 8.0, 0.5);
    let reads_hit = mine / (mine + others * writes);
    let writes_hit = mine * writes / (mine * writes + others);
    let expected = (reads_hit + writes_hit) / 2.0;
    for system in [System::Switch, System::HomeOnly, System::Directory] {
        let hits = run(system, 100).hit_rate();
        assert!((hits - expected).abs() < 0.02, "{hits}, not {expected}");
    }
}

#[test]
fn staying_on_a_block_costs_a_hit() {
    let mut experiment = experiment(System::Switch, 0);
    experiment.workload.program.locality = 100;
    let outcome = simulate(&experiment);
    let threads = f64::from(experiment.workload.nodes * experiment.workload.threads);
    let expected = threads * 1e3 / experiment.platform.costs.hit as f64;
    assert!((outcome.mops() / expected - 1.0).abs() < 0.02);
    assert_eq!(outcome.used.bound(), "threads' own work");
}

#[test]
fn what_is_made_slow_becomes_the_bottleneck() {
    let mut slow_network = experiment(System::Switch, 100);
    slow_network.workload.threads = 16;
    slow_network.platform.network = Network {
        gigabits: 2.0,
        ..Network::ETHERNET
    };
    let mut slow_agents = experiment(System::HomeOnly, 100);
    slow_agents.platform.costs.handle *= 4;
    for (experiment, bound) in [(slow_network, "link"), (slow_agents, "home agent")] {
        let outcome = simulate(&experiment);
        assert_eq!(outcome.used.bound(), bound, "{outcome:?}");
    }
}

#[test]
fn a_switch_owns_what_is_hot_and_no_more_than_it_has_room_for() {
    let mut experiment = experiment(System::Switch, 60);
    let shared = experiment.workload.program.shared() as usize;
    assert!(simulate(&experiment).in_switch > shared * 95 / 100);
    experiment.workload.program.halvings = 4;
    let places = experiment.workload.program.switch_sets() * 8;
    assert!(places * 3 < shared);
    let small = simulate(&experiment);
    assert!(
        (places / 2..=places).contains(&small.in_switch),
        "{small:?}"
    );
    assert_eq!(
        (small.unfinished, small.failures, small.in_flight),
        (0, 0, 0)
    );
}

#[test]
fn no_thread_starves() {
    for system in [System::Switch, System::HomeOnly, System::Directory] {
        let outcome = run(system, 100);
        assert!(outcome.fairness > 0.8, "{outcome:?}");
        let longest = outcome.of.longest_wait as f64;
        assert!(longest < 50.0 * outcome.of.mean_wait, "{outcome:?}");
    }
}

/// Millions of operations a second by what they are without, where blocks leave beside misses.
fn gain(system: System, sharing: u8, (reads, cache_halvings): (u8, u32)) -> f64 {
    let base = experiment(system, sharing);
    let [before, now] = [false, true].map(|evicts_ahead| {
        let mut experiment = base;
        experiment.workload.reads = reads;
        let program = &mut experiment.workload.program;
        (program.cache_halvings, program.evicts_ahead) = (cache_halvings, evicts_ahead);
        let outcome = simulate(&experiment);
        assert_eq!((outcome.unfinished, outcome.failures), (0, 0));
        assert_eq!(outcome.in_flight, 0);
        outcome.mops()
    });
    now / before
}

#[test]
fn what_leaves_ahead_of_need_is_not_waited_for() {
    // Ten times as many blocks as the cache has room for: nearly every operation evicts.
    for reads in [100, 0] {
        let gain = gain(System::HomeOnly, 0, (reads, 3));
        assert!(gain > 1.03, "{reads}% reads: {gain}");
    }
}

#[test]
fn what_almost_fits_is_not_slower() {
    for (system, sharing) in [(System::Switch, 20), (System::HomeOnly, 0)] {
        let gain = gain(system, sharing, (50, 0));
        assert!(gain > 0.97, "{system:?}, {sharing}%: {gain}");
    }
}
