//! The paper's controller for SABRes: every state of small chips, and faults that must be noticed.

mod verdicts;

use rackmem_proto::sabre::controller::Defect;
use rackmem_sim::driver::Report;
use rackmem_sim::sabre::controller::{Fault, SCENARIOS, Scenario};

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 400_000;

fn explored(scenario: &Scenario, fault: Option<Fault>) -> Report {
    verdicts::visited(scenario, fault, LIMIT)
}

fn named(name: &str) -> &'static Scenario {
    verdicts::named(SCENARIOS, name)
}

#[test]
fn every_state_of_small_chips_keeps_every_promise() {
    verdicts::all_keep(SCENARIOS, LIMIT, |scenario| scenario.states);
}

const TORN: &str = "a SABRe that succeeds is of one write";
const ENDS: &str = "every SABRe and every write ends";

const fn rule(defect: Defect) -> Fault {
    Fault::Controller(defect)
}

/// A fault, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Fault, &str, &str)] = &[
    (
        rule(Defect::OverlapWithoutWindow),
        "sabre-controller-two-blocks",
        TORN,
    ),
    (
        rule(Defect::IgnoreSnoopInWindow),
        "sabre-controller-two-blocks",
        TORN,
    ),
    (
        rule(Defect::TrustBaseInvalidation),
        "sabre-controller-alone",
        "only writers, and evictions in the window, abort a SABRe",
    ),
    (
        rule(Defect::SkipValidation),
        "sabre-controller-serial",
        TORN,
    ),
    (rule(Defect::AcceptLocked), "sabre-controller-serial", TORN),
    (
        rule(Defect::ReaderLockLeaksOnAbort),
        "sabre-controller-locks",
        "readers give back the locks that they took",
    ),
    (rule(Defect::CrossPages), "sabre-controller-pages", TORN),
    (
        rule(Defect::AnswerUnasked),
        "sabre-controller-long",
        "each request has one reply",
    ),
    (
        rule(Defect::SilentAfterAbort),
        "sabre-controller-long",
        ENDS,
    ),
    (Fault::StoresOutOfOrder, "sabre-controller-two-blocks", TORN),
    (Fault::OneQueue, "sabre-controller-crowded", ENDS),
];

#[test]
fn planted_faults_are_noticed() {
    let mut wrong = Vec::new();
    for (fault, name, promise) in NOTICED {
        let report = explored(named(name), Some(*fault));
        match report.violation() {
            Some(violation) if violation.invariant == *promise => {}
            Some(other) => wrong.push(format!("{fault:?} in {name}: {other}")),
            None => wrong.push(format!("{fault:?} is not noticed in {name}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all: Vec<Fault> = NOTICED.iter().map(|row| row.0).collect();
    assert!(Fault::all().all(|fault| all.contains(&fault)));
}
