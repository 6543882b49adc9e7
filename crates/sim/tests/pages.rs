//! Mapped memory: every state of small racks, and defects that must be noticed.

mod noticed;
mod verdicts;

use rackmem_proto::pages::Defect;
use rackmem_sim::driver::Report;
use rackmem_sim::pages::{SCENARIOS, Scenario};

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 3_000_000;

fn explored(scenario: &Scenario, defect: Option<Defect>) -> Report {
    verdicts::visited(scenario, defect, LIMIT)
}

/// States that there are.
const SIZES: &[(&str, usize)] = &[
    ("pages-calm", 877),
    ("pages-count", 3_738),
    ("pages-false-sharing", 526),
    ("pages-threads", 2_820),
    ("pages-store-buffering", 636),
    ("pages-no-fence", 4_072),
    ("pages-no-fence-apart", 587),
    ("pages-message-passing", 725),
    ("pages-iriw", 163_747),
    ("pages-coherence", 18_988),
    ("pages-write-order", 494),
    ("pages-dropped", 6_646),
    ("pages-calls", 7_958),
    ("pages-evict", 3_740),
    ("pages-pinned", 6_859),
    ("pages-pinned-twice", 1_030),
    ("pages-asked", 35_440),
    ("pages-asked-in-vain", 5_461),
    ("pages-closed", 5_062),
];

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    verdicts::all_keep(SCENARIOS, LIMIT, |scenario| verdicts::of(SIZES, scenario));
}

const LAST: &str = "a load is of the last store";
const ALONE: &str = "one node has a right to store, or several to load";
const COVERED: &str = "no right is more than the copy allows";
const LOST: &str = "no store is lost";
const FOUND: &str = "a system call finds what is pinned";
const MOMENT: &str = "a call sees a block at one moment";
const ALIVE: &str = "a node that cannot show that it is alive loads nothing";
const ENDS: &str = "every operation ends";

/// A defect, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Defect, &str, &str)] = &[
    (Defect::CopyBeforeTakingAway, "pages-count", LAST),
    (Defect::CopyBeforeTakingAway, "pages-false-sharing", LOST),
    (Defect::NoShootdown, "pages-calm", ALONE),
    (Defect::StoresGoOn, "pages-calm", COVERED),
    (Defect::OpenEarly, "pages-calm", COVERED),
    (Defect::ShowBeforeBytes, "pages-message-passing", COVERED),
    (Defect::PlaceOpen, "pages-calm", COVERED),
    (Defect::OpenByHabit, "pages-asked-in-vain", COVERED),
    (Defect::HoldForEver, "pages-count", ENDS),
    (Defect::TakePinned, "pages-pinned", FOUND),
    (Defect::PinForEver, "pages-pinned-twice", ENDS),
    (Defect::TrustTheRight, "pages-dropped", ENDS),
    (Defect::CallBeside, "pages-calls", MOMENT),
    (Defect::DiscardFirst, "pages-evict", LAST),
    (Defect::CloseUnlocked, "pages-closed", ALIVE),
];

#[test]
fn planted_defects_are_noticed() {
    noticed::all_noticed(NOTICED, |name, defect| {
        explored(verdicts::named(SCENARIOS, name), Some(defect))
    });
    let all: Vec<Defect> = NOTICED.iter().map(|row| row.0).collect();
    assert!(Defect::ALL.iter().all(|defect| all.contains(defect)));
}
