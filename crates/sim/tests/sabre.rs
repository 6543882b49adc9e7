//! Objects: every state of small racks, and defects that must be noticed.

mod noticed;
mod verdicts;

use rackmem_proto::sabre::Defect;
use rackmem_sim::driver::Report;
use rackmem_sim::sabre::{SCENARIOS, Scenario};

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 400_000;

fn explored(scenario: &Scenario, defect: Option<Defect>) -> Report {
    verdicts::visited(scenario, defect, LIMIT)
}

fn named(name: &str) -> &'static Scenario {
    verdicts::named(SCENARIOS, name)
}

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    verdicts::all_keep(SCENARIOS, LIMIT, |scenario| scenario.states);
}

const TORN: &str = "a read is of one write";
const CURRENT: &str = "a read was current during it";
const ONCE: &str = "a write takes effect once";
const RISE: &str = "versions rise, and stay where nothing has changed";

/// A defect, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Defect, &str, &str)] = &[
    (Defect::AcceptOdd, "object-beside-a-writer", TORN),
    (Defect::CheckBeforeCopyOnly, "object-beside-a-writer", TORN),
    (Defect::MixAttempts, "object-two-attempts", TORN),
    (Defect::CheckBeforeCopyOnly, "object-by-granules", TORN),
    (Defect::MixAttempts, "object-by-granules", TORN),
    (Defect::KeepGenerationOnFree, "object-reused", CURRENT),
    (Defect::ResetVersionOnReuse, "object-reused", RISE),
    // Its bytes are gone with the first time: the second one has those of the copy only.
    (Defect::WriteTwiceOnCopy, "object-doubled", TORN),
    (Defect::RefuseForNow, "object-two-attempts", ONCE),
    (Defect::WriteInPart, "object-lossy", TORN),
    (Defect::MixTwoWrites, "object-doubled", TORN),
    (
        Defect::IgnoreExpected,
        "object-conditional",
        "a conditional write follows its version",
    ),
    (Defect::LockedReadMoves, "object-kept-from-writers", RISE),
];

#[test]
fn planted_defects_are_noticed() {
    noticed::all_noticed(NOTICED, |name, defect| explored(named(name), Some(defect)));
    // Those behind it are of transactions (`tests/transactions.rs`).
    let last = Defect::ALL
        .iter()
        .position(|it| *it == Defect::LockedReadMoves);
    let mut own = Defect::ALL.iter().take(last.unwrap() + 1);
    assert!(own.all(|defect| NOTICED.iter().any(|row| row.0 == *defect)));
}
