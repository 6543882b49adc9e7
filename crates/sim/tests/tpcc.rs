//! The cost model of TPC-C under two-phase locking: runs repeat, every lock is left,
//! writers are alone, and who is in nobody's way is never aborted.

use rackmem_sim::model::{
    Experiment, System, TransactionFigures, Transactions, Workload, simulate,
};

type Outcome = rackmem_sim::model::Outcome<TransactionFigures>;

const CACHED: [System; 3] = [System::Switch, System::HomeOnly, System::Directory];

fn run(system: System, remote: u8, patience: u64) -> Outcome {
    let workload = Workload {
        nodes: 3,
        threads: 2,
        reads: 0,
        program: Transactions {
            remote,
            patience,
            scale: 512,
        },
    };
    simulate(&Experiment::transactions(system, workload, 1))
}

#[test]
fn everything_ends_every_lock_is_left_and_a_seed_decides_it() {
    for system in CACHED {
        for patience in [0, Transactions::PATIENT] {
            let outcome = run(system, 60, patience);
            let case = format!("{}, patience {patience}", system.name());
            assert_eq!((outcome.unfinished, outcome.failures), (0, 0), "{case}");
            assert_eq!((outcome.overlaps, outcome.in_flight), (0, 0), "{case}");
            let traffic = outcome.traffic;
            assert_eq!(traffic.sent, traffic.received, "{case}");
            assert!(outcome.of.locks > 10 * outcome.operations, "{case}");
            assert_eq!(outcome, run(system, 60, patience), "{case}");
        }
    }
}

#[test]
fn terminals_of_their_own_warehouses_are_in_nobodys_way() {
    for system in CACHED {
        let outcome = run(system, 0, 0);
        assert_eq!(outcome.of.aborts, 0, "{}", system.name());
        // Blocks are fetched once, in the first pass.
        assert!(
            outcome.here() > 0.99,
            "{} {}",
            system.name(),
            outcome.here()
        );
    }
}

#[test]
fn sharing_costs_time_and_aborts_and_patience_saves_some() {
    for system in CACHED {
        let (alone, shared) = (run(system, 0, 0), run(system, 100, 0));
        let name = system.name();
        assert!(shared.mops() < alone.mops(), "{name}");
        assert!(shared.abort_ratio() > 0.0, "{name}");
        let patient = run(system, 100, Transactions::PATIENT);
        assert!(patient.of.aborts < shared.of.aborts, "{name}");
    }
}
