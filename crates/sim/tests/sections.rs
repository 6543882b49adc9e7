//! Locks in virtual time: what acquisitions cost, in transactions and in time, at the paper's
//! parameters (Soul, §5). Orders are asked for, and factors with room: the figures themselves are
//! in `docs/simulation.md`.

use rackmem_baselines::locks::Algorithm;
use rackmem_sim::model::{
    Experiment, Platform, Scheme, SectionFigures, Sections, Workload, simulate,
};

type Outcome = rackmem_sim::model::Outcome<SectionFigures>;

fn experiment(workload: Workload<Sections>) -> Experiment<Sections> {
    Experiment {
        platform: Platform::ETHERNET,
        workload,
        warm_up: 500,
        measured: 4_000,
        seed: 1,
    }
}

/// A thread a blade, one lock.
fn contended(scheme: Scheme, nodes: u16, reads: u8) -> Outcome {
    simulate(&experiment(Workload::contended(scheme, nodes, reads)))
}

fn store(scheme: Scheme, nodes: u16, reads: u8) -> Outcome {
    simulate(&Experiment {
        warm_up: 20_000,
        measured: 20_000,
        ..experiment(Workload::store(scheme, nodes, reads))
    })
}

fn above_memory() -> impl Iterator<Item = Scheme> {
    let locks = Algorithm::ALL.map(|row| row.0).into_iter();
    let locks = locks.filter(|&algorithm| algorithm != Algorithm::Service);
    locks.map(Scheme::Compared)
}

#[test]
fn a_seed_decides_a_run() {
    for scheme in Scheme::all() {
        let first = experiment(Workload::contended(scheme, 4, 50));
        let other = Experiment { seed: 2, ..first };
        assert_eq!(simulate(&first), simulate(&first));
        assert_ne!(simulate(&first).digest, simulate(&other).digest);
    }
}

#[test]
fn writers_are_alone_everything_ends_and_no_packet_disappears() {
    for platform in [Platform::ETHERNET, Platform::GATHERED, Platform::CXL] {
        for scheme in Scheme::all() {
            for (nodes, threads, locks, reads) in [(1, 1, 1, 0), (3, 4, 2, 50), (8, 1, 1, 95)] {
                if scheme == Scheme::Evicted && threads > 1 {
                    continue;
                }
                let mut workload = Workload::contended(scheme, nodes, reads);
                workload.threads = threads;
                (workload.program.locks, workload.program.keys) = (locks, locks);
                let outcome = simulate(&Experiment {
                    platform,
                    ..experiment(workload)
                });
                let case = format!("{} on {}, {nodes} blades", scheme.name(), platform.name);
                assert_eq!(outcome.operations, 4_000, "{case}");
                assert_eq!((outcome.unfinished, outcome.in_flight), (0, 0), "{case}");
                assert_eq!((outcome.failures, outcome.overlaps), (0, 0), "{case}");
            }
        }
    }
}

#[test]
fn gcp_needs_one_transaction_for_lock_and_data_whatever_the_load() {
    for nodes in [2, 4, 8] {
        for reads in [0, 50, 95, 99] {
            let outcome = contended(Scheme::Gcp, nodes, reads);
            let case = format!("{nodes} blades, {reads}% reads");
            let (least, most) = (outcome.of.least_transactions, outcome.of.most_transactions);
            assert_eq!((least, most), (1, 1), "{case}");
            assert!(outcome.of.remote > 0, "{case}");
            // Over the whole run: nothing is asked for that lets nobody in.
            assert_eq!(outcome.requests, outcome.granted, "{case}");
        }
    }
    let separate = contended(Scheme::Separate, 8, 0);
    let (least, most) = (
        separate.of.least_transactions,
        separate.of.most_transactions,
    );
    assert_eq!((least, most), (2, 2), "the data is one more");
}

#[test]
fn a_database_is_written_by_one_at_a_time_block_by_block() {
    for scheme in [Scheme::Separate, Scheme::Compared(Algorithm::Cohort)] {
        for warehouses in [1, 10] {
            let outcome = simulate(&experiment(Workload::database(scheme, 3, warehouses)));
            let case = format!("{}, {warehouses} warehouses", scheme.name());
            assert_eq!((outcome.failures, outcome.overlaps), (0, 0), "{case}");
            assert_eq!((outcome.unfinished, outcome.in_flight), (0, 0), "{case}");
            assert!(outcome.of.remote > 0, "{case}");
            if scheme == Scheme::Separate {
                let most = outcome.of.most_transactions;
                assert_eq!(most, 17, "{case}: the lock, and each block of a warehouse");
            }
        }
    }
}

#[test]
fn a_transaction_takes_as_long_as_the_paper_says() {
    // Two blades that seldom meet.
    let wait = |platform, scheme| {
        let mut workload = Workload::contended(scheme, 2, 0);
        workload.program.think = 47_000;
        let experiment = experiment(workload);
        simulate(&Experiment {
            platform,
            ..experiment
        })
        .remote_mean()
    };
    for (platform, lock_takes, data_takes) in [
        (Platform::ETHERNET, 7_500.0, 8_500.0),
        (Platform::GATHERED, 5_500.0, 10_500.0),
    ] {
        let (lock, both) = (
            wait(platform, Scheme::Gcp),
            wait(platform, Scheme::Separate),
        );
        for (ours, takes) in [(lock, lock_takes), (both - lock, data_takes)] {
            let case = format!("{}: {ours}, not {takes}", platform.name);
            assert!((ours / takes - 1.0).abs() < 0.1, "{case}");
        }
    }
}

#[test]
fn other_locks_need_more() {
    let each = |algorithm, nodes, reads| {
        contended(Scheme::Compared(algorithm), nodes, reads).transactions_each()
    };
    // A hand-over is 5 (§2.2), and the data one more, however many blades there are.
    for nodes in [2, 4, 8] {
        assert_eq!(each(Algorithm::Mcs, nodes, 0), 6.0, "{nodes} blades");
    }
    // Those whose waiting threads all look again, and whose writers visit every blade,
    // need more with every blade.
    for (algorithm, reads) in [(Algorithm::Central, 50), (Algorithm::PerNode, 95)] {
        let (few, many) = (each(algorithm, 2, reads), each(algorithm, 8, reads));
        assert!(many > 2.0 * few, "{}: {few} {many}", algorithm.name());
    }
}

#[test]
fn gcp_is_there_first() {
    for (platform, least) in [(Platform::ETHERNET, 2.5), (Platform::GATHERED, 3.5)] {
        let run = |scheme, reads| {
            let workload = Workload::contended(scheme, 8, reads);
            simulate(&Experiment {
                platform,
                ..experiment(workload)
            })
        };
        for reads in [0, 50, 95] {
            let ours = run(Scheme::Gcp, reads);
            for scheme in above_memory() {
                let theirs = run(scheme, reads);
                // Where one blade keeps the lock, the others' time is no figure.
                if theirs.fairness > 0.1 {
                    let factor = theirs.remote_mean() / ours.remote_mean();
                    let case = format!("{} on {}", scheme.name(), platform.name);
                    assert!(factor > least, "{case}, {reads}% reads: {factor}");
                }
            }
            let service = run(Scheme::Compared(Algorithm::Service), reads);
            let factor = service.mean() / ours.mean();
            assert!(factor > 2.0, "service, {reads}% reads: {factor}");
        }
    }
}

#[test]
fn no_blade_is_left_behind_by_gcp() {
    for reads in [0, 50, 95] {
        let outcome = contended(Scheme::Gcp, 8, reads);
        assert!(outcome.fairness > 0.8, "{reads}%: {}", outcome.fairness);
    }
}

#[test]
fn reads_are_linear() {
    for of in [contended, store] {
        let one = of(Scheme::Gcp, 1, 100);
        for nodes in [2, 4, 8] {
            let many = of(Scheme::Gcp, nodes, 100);
            let linear = f64::from(nodes) * one.mops();
            assert!((many.mops() / linear - 1.0).abs() < 0.02, "{nodes}");
        }
        // Locks that are written to be read are not.
        let mcs = Scheme::Compared(Algorithm::Mcs);
        assert!(of(mcs, 8, 100).mops() < 1.5 * of(mcs, 1, 100).mops());
    }
}

#[test]
fn both_optimizations_count() {
    let [all, separate, evicted] =
        [Scheme::Gcp, Scheme::Separate, Scheme::Evicted].map(|scheme| contended(scheme, 8, 99));
    assert!(all.percentile(50.0) < 1_000, "it is here");
    assert!(evicted.percentile(10.0) > 5_000, "it never is");
    assert!(separate.remote_mean() > 1.5 * all.remote_mean());
}

#[test]
fn what_is_slow_is_the_network() {
    let on = |platform, nodes, reads| {
        let workload = Workload::contended(Scheme::Gcp, nodes, reads);
        simulate(&Experiment {
            platform,
            ..experiment(workload)
        })
        .mops()
    };
    assert!(on(Platform::CXL, 8, 0) > 4.0 * on(Platform::ETHERNET, 8, 0));
    // Near-linear where there is little to write (§6).
    assert!(on(Platform::CXL, 8, 99) > 5.0 * on(Platform::CXL, 1, 99));
    assert!(on(Platform::ETHERNET, 8, 99) < 5.0 * on(Platform::ETHERNET, 1, 99));
}
