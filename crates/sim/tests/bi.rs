//! Bounded Incoherence: every state of small racks, and defects that must be noticed.

mod noticed;
mod verdicts;

use rackmem_proto::bi::Defect;
use rackmem_sim::bi::{SCENARIOS, Scenario};
use rackmem_sim::driver::Report;

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 2_000_000;

fn explored(scenario: &Scenario, defect: Option<Defect>) -> Report {
    verdicts::visited(scenario, defect, LIMIT)
}

/// States that there are.
const SIZES: &[(&str, usize)] = &[
    ("bi-calm", 28_987),
    ("bi-stale", 197_474),
    ("bi-long-section", 219_402),
    ("bi-pause", 859_590),
    ("bi-reuse", 422_215),
    ("bi-order", 196_886),
    ("bi-prefetch", 222_533),
    ("bi-preempted-writer", 136_816),
    ("bi-skew", 124_689),
    ("bi-ring-full", 388_540),
    ("bi-news-lost", 467_957),
    ("bi-two-writers-one-line", 559_581),
    ("bi-death", 57_634),
    ("bi-expel", 152_463),
    ("bi-join", 455_073),
    ("bi-leave", 146_780),
    ("bi-lazy", 30_429),
    ("bi-own-tracking", 12_198),
    ("bi-own-freed", 61_677),
    ("bi-own-prefetch", 252_627),
    ("bi-writer-dies", 96_706),
];

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    verdicts::all_keep(SCENARIOS, LIMIT, |scenario| verdicts::of(SIZES, scenario));
}

const CURRENT: &str = "what a section reads was current within the bound";
const REUSE: &str = "no memory is reused that a reader can reach";
const WHOLE: &str = "an object is whole when its pointer is seen";
const AT_ONCE: &str = "a lookup past the cache sees what was there";
const STAYS: &str = "no store is undone by another one to its line";
const KEPT: &str = "no memory is lost";
const ENDS: &str = "every operation ends";

/// A defect, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Defect, &str, &str)] = &[
    (Defect::StampBeforeVisible, "bi-reuse", REUSE),
    (Defect::NoIntent, "bi-preempted-writer", CURRENT),
    (Defect::ForgetPending, "bi-preempted-writer", CURRENT),
    (Defect::NewsGapIgnored, "bi-news-lost", WHOLE),
    (Defect::RingOverwrites, "bi-ring-full", KEPT),
    (Defect::ShareALine, "bi-two-writers-one-line", STAYS),
    (Defect::KeepOldLine, "bi-two-writers-one-line", STAYS),
    (Defect::FreedBeforeStale, "bi-order", REUSE),
    (Defect::NoMargin, "bi-skew", REUSE),
    (Defect::PublishQAtEnd, "bi-reuse", REUSE),
    (Defect::BornUntold, "bi-own-prefetch", WHOLE),
    (Defect::FreeUntold, "bi-own-freed", REUSE),
    (Defect::ForgetOwn, "bi-own-tracking", AT_ONCE),
    (Defect::SkipOwnThreads, "bi-reuse", REUSE),
    (Defect::NoBirth, "bi-prefetch", WHOLE),
    (Defect::JoinUncounted, "bi-join", REUSE),
    (Defect::CountTheDead, "bi-death", ENDS),
    (Defect::ForgetLateReader, "bi-reuse", REUSE),
    (Defect::NoGrace, "bi-expel", REUSE),
    (Defect::AssignBeforeWriteBack, "bi-calm", WHOLE),
    (Defect::LazyThroughCache, "bi-lazy", AT_ONCE),
    (Defect::EnterWithoutClock, "bi-preempted-writer", CURRENT),
    (Defect::ExitWithoutClock, "bi-expel", REUSE),
];

#[test]
fn planted_defects_are_noticed() {
    noticed::all_noticed(NOTICED, |name, defect| {
        explored(verdicts::named(SCENARIOS, name), Some(defect))
    });
    let all: Vec<Defect> = NOTICED.iter().map(|row| row.0).collect();
    assert!(Defect::ALL.iter().all(|defect| all.contains(defect)));
}
