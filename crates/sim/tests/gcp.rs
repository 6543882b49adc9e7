//! Locks that are coherence: every state of small racks, seeded ways through larger ones, and
//! defects that must be noticed.

mod verdicts;

use rackmem_proto::engine::Defect;
use rackmem_sim::driver::{Ended, Report};
use rackmem_sim::gcp::{
    Failure, Mutation, Place, SCENARIOS, STORM, Scenario, Settling, Walk, WalkConfig, forge, walk,
};
use verdicts::Verdicts;

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 400_000;

fn named(name: &str) -> &'static Scenario {
    verdicts::named(SCENARIOS, name)
}

fn explored(scenario: &Scenario, mutation: Option<Mutation>) -> Report {
    verdicts::visited(scenario, mutation, LIMIT)
}

fn holds(scenario: &Scenario) -> Report {
    let report = explored(scenario, None);
    if let Some(violation) = report.violation() {
        panic!("{}: {violation}", scenario.name);
    }
    assert_eq!(report.ended, Ended::Whole, "{}", scenario.name);
    assert!(report.passed(), "{} shows nothing", scenario.name);
    report
}

/// What is wrong with scenarios: a broken promise, then whatever else.
fn complaint<'a>(cases: impl Iterator<Item = (&'a Scenario, Option<Mutation>)>) -> Option<String> {
    let mut verdicts = Verdicts::default();
    for (scenario, mutation) in cases {
        let report = explored(scenario, mutation);
        let sizes = (scenario.states, report.states);
        verdicts.add(scenario.name, &report, sizes);
    }
    verdicts.complaint()
}

/// Every scenario whose name begins so holds, shows what it is for,
/// and is as large as it is known to be.
fn all_hold(group: &str) {
    let cases = SCENARIOS.iter().filter(|s| s.name.starts_with(group));
    if let Some(complaint) = complaint(cases.map(|scenario| (scenario, None))) {
        panic!("{complaint}");
    }
}

#[test]
fn a_broken_promise_is_reported_before_a_size_that_has_changed() {
    let resized = Scenario {
        states: 1,
        ..*named("calm-hand-over")
    };
    let broken = (named("calm-writers"), Some(Mutation::DropQueue));
    let text = complaint([(&resized, None), broken].into_iter()).expect("a defect");
    let promise = text.find("calm-writers: nobody is overtaken");
    let size = text.find("calm-hand-over: 285 and not 1");
    assert!(promise.is_some() && size.is_some(), "{text}");
    assert!(
        promise < size && text.starts_with("broken promises"),
        "{text}"
    );
}

#[test]
fn calm_racks_keep_every_promise() {
    all_hold("calm-");
}

#[test]
fn racks_with_a_switch_keep_every_promise() {
    all_hold("switch-");
}

#[test]
fn racks_that_lose_packets_keep_every_promise() {
    all_hold("faulty-");
}

#[test]
fn racks_in_which_something_dies_keep_every_promise() {
    all_hold("dead-");
    all_hold("fenced-");
}

#[test]
fn epochs_that_follow_each_other_closely_keep_every_promise() {
    all_hold("close-");
}

#[test]
fn racks_whose_nodes_forget_keep_every_promise() {
    all_hold("forgetting-");
}

#[test]
fn racks_that_free_the_lock_and_make_it_anew_keep_every_promise() {
    all_hold("freed-");
}

#[test]
fn racks_whose_nodes_give_locks_up_keep_every_promise() {
    all_hold("giving-up");
}

#[test]
fn racks_whose_home_keeps_no_more_than_a_number_keep_every_promise() {
    all_hold("resting");
}

/// The first way to a broken promise that a scenario finds.
fn noticed(mutation: Mutation, scenario: &str) -> &'static str {
    match explored(named(scenario), Some(mutation)).ended {
        Ended::Broken(violation) => violation.invariant,
        other => panic!("{mutation:?} in {scenario}: {other:?}"),
    }
}

#[test]
fn every_defect_is_noticed() {
    let table = [
        (
            Mutation::IgnoreVersion,
            "calm-writers",
            "nobody is overtaken",
        ),
        (
            Mutation::ForgetTenure,
            "faulty-writers",
            "the queue exists once",
        ),
        (Mutation::AckInside, "faulty-readers", "mutual exclusion"),
        (Mutation::ForgetSharer, "faulty-readers", "mutual exclusion"),
        (
            Mutation::SkipInstall,
            "calm-writers",
            "data of the last release",
        ),
        (
            Mutation::ApproveItself,
            "calm-writers",
            "the queue exists once",
        ),
        (
            Mutation::NeverRetry,
            "faulty-handover",
            "every waiter is served",
        ),
        (Mutation::DropQueue, "calm-writers", "nobody is overtaken"),
        (
            // Blades know numbers of another epoch besides; directories are fooled.
            Mutation::ForgetEpoch,
            "fenced-holder",
            "every waiter is served",
        ),
        (
            Mutation::ForgetDeath,
            "dead-holder",
            "data of the last release",
        ),
        (
            Mutation::SettleOldest,
            "dead-holder",
            "data of the last release",
        ),
        (
            Mutation::NeverLeave,
            "calm-cohort",
            "others have their turn",
        ),
        (Mutation::TokenRestarts, "fenced-holder", "tokens rise"),
        (
            Mutation::StaleReport,
            "close-epochs",
            "the queue exists once",
        ),
        (
            Mutation::StalePassing,
            "close-release",
            "data of the last release",
        ),
        (
            Mutation::ForgetTold,
            "close-told",
            "a death is told until a writer has left",
        ),
        (
            Mutation::ForgetUntold,
            "close-switch",
            "data of the last release",
        ),
        (
            Mutation::DropLate,
            "forgetting-late",
            "every waiter is served",
        ),
        (Mutation::SameLife, "freed-calm", "lives do not go back"),
        (
            Mutation::SkipLife,
            "freed-calm",
            "a freed lock admits nobody",
        ),
        (
            Mutation::MakeUnasked,
            "freed-calm",
            "a lock is made where none is",
        ),
        (
            Mutation::Node(Defect::DropSole),
            "giving-up",
            "data of the last release",
        ),
        (Mutation::WakeOld, "resting", "data of the last release"),
        (
            Mutation::Node(Defect::DismissUnseen),
            "giving-up-late",
            "every waiter is served",
        ),
        (
            Mutation::Node(Defect::ForgetOwnReport),
            "dead-holder",
            "the queue exists once",
        ),
        (
            Mutation::Node(Defect::EnterFirst),
            "calm-writers",
            "data is in place when a thread enters",
        ),
        (
            Mutation::Node(Defect::ForgetGone),
            "dead-switch-and-holder",
            "data of the last release",
        ),
        (
            Mutation::Node(Defect::SettleEarly),
            "dead-reader",
            "the queue exists once",
        ),
        (
            Mutation::Node(Defect::ForgetNext),
            "calm-cohort",
            "every waiter is served",
        ),
        (
            Mutation::Node(Defect::ForgetWaiting),
            "dead-reader",
            "every waiter is served",
        ),
    ];
    // That one shows when packets are forged: see below.
    assert_eq!(table.len() + 1, Mutation::ALL.len());
    let noticed =
        table.map(|(mutation, scenario, _)| (mutation, scenario, noticed(mutation, scenario)));
    assert_eq!(noticed, table);
}

const WALK: WalkConfig = WalkConfig {
    seed: 0,
    nodes: 4,
    operations: 6,
    reads: 40,
    faults: 0,
    cohort: 2,
    place: Place::Home,
    failures: &[],
};

fn unbroken(config: WalkConfig) -> Walk {
    let walk = walk(&config, None);
    if let Some(broken) = &walk.broken {
        panic!("{config:?}: {broken}");
    }
    walk
}

#[test]
fn seeded_ways_keep_every_promise() {
    for seed in 0..200 {
        let place = [Place::Home, Place::Switch][seed as usize % 2];
        for faults in [0, 30, 200] {
            unbroken(WalkConfig {
                seed,
                place,
                faults,
                ..WALK
            });
        }
        let failures: &[Failure] = match seed % 8 {
            0 => &[Failure::Node(2)],
            1 => &[Failure::Fenced(1)],
            2 => &[Failure::Switch(None)],
            3 => &[Failure::Switch(Some(3))],
            4 => &[Failure::Nothing, Failure::Node(1), Failure::Nothing],
            5 => &[Failure::Node(3), Failure::Node(1)],
            6 => &[Failure::Nothing, Failure::Switch(Some(2)), Failure::Nothing],
            _ => &[Failure::Fenced(2), Failure::Nothing, Failure::Node(1)],
        };
        let switch = |failure: &Failure| matches!(failure, Failure::Switch(_));
        let place = match failures.iter().any(switch) {
            true => Place::Switch,
            false => place,
        };
        unbroken(WalkConfig {
            seed,
            place,
            failures,
            faults: 100,
            ..WALK
        });
    }
}

/// While nothing goes wrong, no node has two turns while another one waits of which the directory
/// has heard, unless the second is a reader's beside that of the other one. Every acquisition costs
/// one transaction, or none.
#[test]
fn nobody_waits_for_two_turns_of_another_node() {
    let mut together = 0;
    for seed in 0..200 {
        let reads = [0, 50][seed as usize % 2];
        let config = WalkConfig {
            seed,
            reads,
            operations: 10,
            ..WALK
        };
        let Walk {
            turns,
            cost,
            shares,
            ..
        } = unbroken(config);
        assert!(
            turns <= 1 + u64::from(reads > 0),
            "{turns} turns, seed {seed}"
        );
        together += u64::from(turns == 2);
        assert_eq!(shares, [20; 4], "everybody ends what it has to do");
        assert_eq!(cost.requests, cost.granted);
        assert_eq!(cost.local + cost.granted, 80);
    }
    assert!(together > 0, "readers go together");
}

/// Strict ping-pong: one request and one release a hand-over, and three packets on the way from
/// holder to holder.
#[test]
fn a_hand_over_is_one_transaction() {
    let scenario = named("calm-hand-over");
    let report = holds(scenario);
    let cost = |name| report.figure(name);
    let granted = cost("entries_granted");
    let acquisitions = scenario
        .threads
        .iter()
        .map(|(_, program)| program.len() as u64);
    assert_eq!(
        cost("entries_without_a_packet") + granted,
        acquisitions.sum::<u64>()
    );
    assert_eq!(cost("requests"), granted);
    assert!(cost("releases") <= granted);
    // Acquire, Wait, Release, Give, and the Grant to both.
    assert_eq!(cost("packets_to_the_end"), 6 * granted);
}

/// A defect, how racks are that show it, and the moves that its story may take.
const SHORT: [(Mutation, WalkConfig, usize); 8] = [
    (Mutation::DropQueue, WALK, 30),
    (Mutation::SkipInstall, WALK, 30),
    (Mutation::ApproveItself, WALK, 30),
    (Mutation::AckInside, WALK, 30),
    (Mutation::ForgetSharer, WALK, 30),
    (
        Mutation::ForgetTenure,
        WalkConfig {
            faults: 100,
            ..WALK
        },
        30,
    ),
    (
        Mutation::ForgetDeath,
        WalkConfig {
            failures: &[Failure::Node(1)],
            faults: 100,
            ..WALK
        },
        30,
    ),
    (Mutation::NeverRetry, WalkConfig { faults: 30, ..WALK }, 40),
];

#[test]
fn a_walk_that_breaks_a_promise_is_told_in_a_few_moves() {
    for (mutation, config, most) in SHORT {
        let broken =
            (0..200).find_map(|seed| walk(&WalkConfig { seed, ..config }, Some(mutation)).broken);
        let broken = broken.unwrap_or_else(|| panic!("no walk shows {mutation:?}"));
        let text = broken.to_string();
        assert!(broken.story.len() <= most, "{mutation:?}: {text}");
        assert!(
            broken.story.len() < broken.found_after,
            "{mutation:?}: {text}"
        );
        assert!(text.contains(broken.promise), "{text}");
        // It is the same one whenever it is looked for.
        let seed = broken.config.seed;
        let again = walk(&broken.config, Some(mutation)).broken;
        let again = again.unwrap_or_else(|| panic!("seed {seed}: {text}"));
        assert_eq!(again.promise, broken.promise);
    }
}

/// The most packets that racks of every shape needed to become quiet, over so many seeds.
fn forged(seeds: std::ops::Range<u64>, mutation: Option<Mutation>) -> Settling {
    let mut most = Settling::default();
    for seed in seeds {
        for (nodes, switch) in [(2, false), (3, true), (4, false)] {
            let Settling {
                after, again, last, ..
            } = forge(seed, nodes, switch, mutation);
            most.after = most.after.max(after);
            most.again = most.again.max(again);
            most.last = most.last.max(last);
        }
    }
    most
}

/// From any state that forged and repeated packets reach, traffic dies down: at once while nobody
/// asks again, and otherwise every time that nodes do.
#[test]
fn traffic_dies_down_whatever_packets_were_forged() {
    let most = forged(0..4_000, None);
    assert!(most.after < 500, "{most:?}");
    assert!(most.again < 100, "{most:?}");
    assert!(most.last < 40, "{most:?}");
}

#[test]
fn a_node_that_believes_what_it_has_heard_causes_a_storm() {
    let most = forged(0..2_000, Some(Mutation::BelieveHeard));
    assert_eq!(most.after.max(most.again), STORM, "{most:?}");
}
