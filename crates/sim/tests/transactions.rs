//! Transactions over objects: every state of small racks, and defects that must be noticed.

mod noticed;
mod verdicts;

use rackmem_proto::sabre::Defect;
use rackmem_sim::driver::Report;
use rackmem_sim::sabre::transaction::{SCENARIOS, Scenario};

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 100_000;

fn explored(scenario: &Scenario, defect: Option<Defect>) -> Report {
    verdicts::visited(scenario, defect, LIMIT)
}

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    verdicts::all_keep(SCENARIOS, LIMIT, |scenario| scenario.states);
}

const ORDER: &str = "there is one order of all transactions";
const ALL: &str = "a transaction takes effect with all of its writes, or with none";
const TOLD: &str = "what is said of a transaction is so";
const RISE: &str = "versions rise, and stay where nothing has changed";
const LOCKED: &str = "no object stays locked";

/// A defect, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Defect, &str, &str)] = &[
    (Defect::SkipValidation, "object-write-skew", ORDER),
    (Defect::ValidateLocked, "object-write-skew", ORDER),
    (Defect::IgnoreExpected, "object-transfer", ORDER),
    (Defect::IgnoreExpected, "object-skew-beside-copies", ORDER),
    (
        Defect::LeaveReadsUnlocked,
        "object-skew-beside-copies",
        ORDER,
    ),
    (
        Defect::KeepDeadLocks,
        "object-together-coordinator-dies",
        LOCKED,
    ),
    (Defect::LockInPart, "object-of-one-home", TOLD),
    (Defect::CommitOwnFirst, "object-coordinator-is-a-home", ALL),
    (Defect::ForgetRelease, "object-late-lock", LOCKED),
    (Defect::UnlockTwice, "object-two-releases", RISE),
    (Defect::KeepDeadLocks, "object-coordinator-dies", LOCKED),
    (Defect::CommitAtOneHome, "object-coordinator-dies", ALL),
    (Defect::ReleaseInDoubt, "object-mixed-coordinator-dies", ALL),
    (Defect::CommitInDoubt, "object-mixed-coordinator-dies", ALL),
];

#[test]
fn planted_defects_are_noticed() {
    noticed::all_noticed(NOTICED, |name, defect| {
        explored(verdicts::named(SCENARIOS, name), Some(defect))
    });
    let first = Defect::ALL
        .iter()
        .position(|it| *it == Defect::SkipValidation);
    let mut own = Defect::ALL.iter().skip(first.unwrap());
    assert!(own.all(|defect| NOTICED.iter().any(|row| row.0 == *defect)));
}
