//! Bounded Incoherence where members ask homes: every state of small racks, and defects that must
//! be noticed.

mod noticed;
mod verdicts;

use rackmem_proto::bi::cached::Defect;
use rackmem_sim::bi::cached::{SCENARIOS, Scenario};
use rackmem_sim::driver::Report;

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 2_000_000;

fn explored(scenario: &Scenario, defect: Option<Defect>) -> Report {
    verdicts::visited(scenario, defect, LIMIT)
}

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    verdicts::all_keep(SCENARIOS, LIMIT, |scenario| scenario.states);
}

const CURRENT: &str = "what a section reads was current within the bound";
const ONCE: &str = "a write takes effect once";
const ONWARD: &str = "what a member reads never goes back";

/// A defect, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Defect, &str, &str)] = &[
    (Defect::InstallLateCopy, "bi-cached-two", CURRENT),
    (Defect::CountFromAnswer, "bi-cached", CURRENT),
    (Defect::NameTheRest, "bi-cached-forgotten", CURRENT),
    (Defect::WriteTwice, "bi-cached-lost", ONCE),
    (Defect::KeepOwnOld, "bi-cached-own", ONWARD),
    (Defect::EndWithPart, "bi-cached-parts", CURRENT),
    (Defect::RefreshOwnNew, "bi-cached-refreshed", ONWARD),
    (Defect::BeginLate, "bi-cached", CURRENT),
    (Defect::BelieveLate, "bi-cached", CURRENT),
];

#[test]
fn planted_defects_are_noticed() {
    noticed::all_noticed(NOTICED, |name, defect| {
        explored(verdicts::named(SCENARIOS, name), Some(defect))
    });
    let all: Vec<Defect> = NOTICED.iter().map(|row| row.0).collect();
    assert!(Defect::ALL.iter().all(|defect| all.contains(defect)));
}
