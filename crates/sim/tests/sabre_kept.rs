//! Objects with copies: every state of small racks, and defects that must be noticed.

mod noticed;
mod verdicts;

use rackmem_proto::sabre::Defect;
use rackmem_sim::driver::Report;
use rackmem_sim::sabre::kept::{SCENARIOS, Scenario};

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 200_000;

fn explored(scenario: &Scenario, defect: Option<Defect>) -> Report {
    verdicts::visited(scenario, defect, LIMIT)
}

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    verdicts::all_keep(SCENARIOS, LIMIT, |scenario| scenario.states);
}

const CURRENT: &str = "a read is of what a majority had during it";
const ONCE: &str = "a call takes effect once";
const TOGETHER: &str = "what a transaction has read is of one moment";
const PLACES: &str = "no place is given to two, and none is lost";

/// A defect, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Defect, &str, &str)] = &[
    (Defect::PublishBeforeQuorum, "object-keeper-dies", CURRENT),
    (Defect::ForgetCalls, "object-keeper-dies-writers", ONCE),
    (Defect::ForgetCalls, "object-keeper-dies-places", PLACES),
    (Defect::OverwriteUnheard, "object-keeper-dies-writers", ONCE),
    (Defect::ForgetCalls, "object-together-keeper-dies", ONCE),
    (Defect::ForgetRecord, "object-together-keeper-dies", CURRENT),
    (Defect::OverwriteUnheard, "object-together-two-calls", ONCE),
    (
        Defect::AnswerBeforeRecord,
        "object-together-keeper-dies",
        ONCE,
    ),
    (
        Defect::IgnoreExpected,
        "object-together-two-calls",
        TOGETHER,
    ),
    (Defect::SkipValidation, "object-together-skew", TOGETHER),
    (
        Defect::LowestFirst,
        "object-several-keeper-dies-other",
        CURRENT,
    ),
    (Defect::TrustOpen, "object-several-keeper-dies-other", ONCE),
    (
        Defect::ForgetOpen,
        "object-several-keeper-dies-call",
        "versions rise with every change",
    ),
    (Defect::LeaveOpen, "object-several-keeper-dies", ONCE),
    (Defect::PublishApart, "object-several", CURRENT),
    (Defect::ForgetRecord, "object-several-keeper-dies", CURRENT),
    (
        Defect::IgnoreExpected,
        "object-keeper-dies-conditional",
        "a conditional write follows its version",
    ),
    (Defect::SkipValidation, "object-keeper-dies-audit", TOGETHER),
    (Defect::AnswerUnheard, "object-region-removed", CURRENT),
    (
        Defect::StoreInNext,
        "object-region-removed-unasked",
        CURRENT,
    ),
    (Defect::ReuseAddresses, "object-region-removed", PLACES),
];

#[test]
fn planted_defects_are_noticed() {
    noticed::all_noticed(NOTICED, |name, defect| {
        explored(verdicts::named(SCENARIOS, name), Some(defect))
    });
    let at = |defect| Defect::ALL.iter().position(|it| *it == defect).unwrap();
    let own = &Defect::ALL[at(Defect::PublishBeforeQuorum)..at(Defect::SkipValidation)];
    let noticed = |defect: &Defect| NOTICED.iter().any(|row| row.0 == *defect);
    // Where lines are so short that a record's objects do not fit into one: proto's `together`.
    let elsewhere = |defect: &Defect| *defect == Defect::OneStretch;
    assert!(
        own.iter()
            .all(|defect| noticed(defect) || elsewhere(defect))
    );
}
