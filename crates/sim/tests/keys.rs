//! The cost model of a key-value store: runs repeat, nothing gets lost, and what Zipf's law and the
//! systems are known for shows at small size.

use rackmem_sim::model::{AccessFigures, Experiment, Keys, System, Workload, simulate};

type Outcome = rackmem_sim::model::Outcome<AccessFigures>;

fn experiment(system: System, nodes: u16, reads: u8) -> Experiment<Keys> {
    let workload = Workload {
        nodes,
        threads: 4,
        reads,
        program: Keys { scale: 512 },
    };
    Experiment::store(system, workload, 1)
}

fn run(system: System, nodes: u16, reads: u8) -> Outcome {
    simulate(&experiment(system, nodes, reads))
}

#[test]
fn everything_ends_and_a_seed_decides_it() {
    for (system, name) in System::ALL {
        for reads in [50, 95] {
            let outcome = run(system, 3, reads);
            let case = format!("{name}, {reads}% reads");
            assert_eq!((outcome.unfinished, outcome.failures), (0, 0), "{case}");
            assert_eq!(outcome.in_flight, 0, "{case}");
            let traffic = outcome.traffic;
            assert_eq!(traffic.sent, traffic.received, "{case}");
            assert_eq!(outcome, run(system, 3, reads), "{case}");
        }
    }
}

#[test]
fn a_lone_reader_pays_three_calls_and_finds_what_is_popular() {
    let mut experiment = experiment(System::Switch, 1, 100);
    experiment.workload.threads = 1;
    let outcome = simulate(&experiment);
    // Its cache has a quarter of the blocks, and those are most of the accesses.
    assert!(
        (0.6..0.9).contains(&outcome.hit_rate()),
        "{}",
        outcome.hit_rate()
    );
    let costs = experiment.platform.costs;
    let calls = (costs.cold + 2 * costs.hit) as f64;
    assert!(outcome.of.mean_wait > calls);
}

#[test]
fn writes_to_popular_keys_hurt_a_directory_most() {
    let falls = |system| run(system, 6, 95).mops() / run(system, 6, 50).mops();
    let [directory, switch, delegate] =
        [System::Directory, System::Switch, System::Delegate].map(falls);
    assert!(directory > switch, "{directory} {switch}");
    // A question is a question.
    assert!((0.95..1.05).contains(&delegate), "{delegate}");
}

#[test]
fn the_core_that_has_the_most_popular_key_bounds_delegation() {
    let tasks = |nodes| simulate(&experiment(System::Delegate, nodes, 95).with_tasks());
    let (two, eight) = (tasks(2), tasks(8));
    for outcome in [&two, &eight] {
        assert_eq!((outcome.unfinished, outcome.failures), (0, 0));
        assert_eq!((outcome.in_flight, outcome.of.hits), (0, 0));
    }
    assert_eq!(eight.used.bound(), "home agent");
    assert!(eight.mops() > 5.0 * run(System::Delegate, 8, 95).mops());
    // Four times the nodes are not four times as fast.
    let grows = eight.mops() / two.mops();
    assert!((1.0..3.8).contains(&grows), "{grows}");
}
