//! Replicated memory: every state of small racks, seeded ways through larger ones, and defects that
//! must be noticed.

mod verdicts;

use rackmem_proto::abd::{Abd, Config, Defect, Layout, Member, Replica, Stamp, first_line, own};
use rackmem_proto::engine::{self, Change, Host, Protocols};
use rackmem_proto::flowcc::HomeConfig;
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, Header, Kind, Record, RequesterId, Seq, Tag};
use rackmem_sim::abd::{Beside, Bytes, Deed, Part, SCENARIOS, Scenario, WALKS, explore, walk};
use rackmem_sim::driver::{Ended, Limits, Report};
use rackmem_sim::site::{Bare, Cache, Site};
use verdicts::{Explored, Verdicts};

/// States at which an exploration gives up: more than any scenario has.
const LIMIT: usize = 200_000;

fn explored(scenario: &Scenario, defect: Option<Defect>) -> Report {
    let mut limits = Limits {
        states: LIMIT,
        time: None,
        stop: &mut |_| false,
    };
    explore(scenario, defect, &mut limits)
}

fn named(name: &str) -> &'static Scenario {
    let mut all = SCENARIOS.iter().chain(WALKS);
    let found = all.find(|scenario| scenario.name == name);
    found.unwrap_or_else(|| panic!("there is no scenario {name}"))
}

/// Those of every nth scenario from one on, so that two threads share the work.
fn all_hold(from: usize) {
    let mut verdicts = Verdicts::default();
    for scenario in SCENARIOS.iter().skip(from).step_by(2) {
        let report = explored(scenario, None);
        verdicts.add(Explored {
            name: scenario.name,
            broken: report.violation().map(ToString::to_string),
            whole: report.ended == Ended::Whole,
            missing: report.missing.join(", "),
            sizes: (scenario.states, report.states),
        });
    }
    if let Some(complaint) = verdicts.complaint() {
        panic!("{complaint}");
    }
}

#[test]
fn every_state_of_small_racks_keeps_every_promise() {
    all_hold(0);
}

#[test]
fn every_state_of_the_other_small_racks_keeps_every_promise() {
    all_hold(1);
}

#[test]
fn seeded_ways_through_larger_racks_are_linearizable() {
    for scenario in WALKS {
        for seed in 0..60 {
            if let Err(broken) = walk(scenario, seed, None) {
                let story = broken.story.join("\n");
                let name = scenario.name;
                panic!("{name}, seed {seed}: {:?}\n{story}", broken.complaint);
            }
        }
    }
}

/// A defect, a scenario that notices it, and the promise that is broken there.
const NOTICED: &[(Defect, &str, &str)] = &[
    (
        Defect::RestampRetransmission,
        "abd-early",
        "one stamp a write",
    ),
    (Defect::CountCopiesTwice, "abd-doubled", IN_QUORUM),
    (Defect::QuorumOfHalf, "abd-calm", IN_QUORUM),
    (Defect::ElideAlways, "abd-calm", IN_QUORUM),
    (Defect::AgreeOnOlder, "abd-calm", IN_QUORUM),
    (Defect::StoreLowerStamp, "abd-two-writers", IN_QUORUM),
    (
        Defect::AckHalfLine,
        "abd-segments",
        "a line is of one write",
    ),
    (Defect::MixTwoWrites, "abd-segments", "one value a stamp"),
    (
        Defect::MixTwoReads,
        "abd-segments",
        "a line is of one write",
    ),
    (Defect::FillingCounts, "abd-grow", IN_QUORUM),
    (
        Defect::ForgetfulCounts,
        "abd-crash",
        "what has completed is seen",
    ),
    (Defect::AckBeforeDurable, "abd-crash-durable", IN_QUORUM),
    (
        Defect::ReuseOwnStamp,
        "abd-crash-stamps",
        "one value a stamp",
    ),
    (
        Defect::LateStampCounts,
        "abd-read-writes-back",
        "what has completed is seen",
    ),
    (
        Defect::BytesOfOneStampOfAnother,
        "abd-calm",
        "one value a stamp",
    ),
    (
        Defect::CountOn,
        "abd-switch-restart",
        "every operation ends",
    ),
];

const IN_QUORUM: &str = "what has completed is in every quorum";

/// Those that take a rack larger than is explored.
const NOTICED_ON_THE_WAY: &[(Defect, &str, &str)] = &[
    (Defect::AcceptOldConfig, "walk-live", IN_QUORUM),
    (Defect::FillFromOne, "walk-live", IN_QUORUM),
];

#[test]
fn every_defect_is_noticed() {
    for (defect, name, promise) in NOTICED {
        match explored(named(name), Some(*defect)).ended {
            Ended::Broken(violation) => {
                assert_eq!(violation.invariant, *promise, "{defect:?}: {violation}");
            }
            other => panic!("{defect:?} in {name}: {other:?}"),
        }
    }
    for (defect, name, promise) in NOTICED_ON_THE_WAY {
        let scenario = named(name);
        let found = (0..3_000).find_map(|seed| walk(scenario, seed, Some(*defect)).err());
        let broken = found.unwrap_or_else(|| panic!("{defect:?} in {name}"));
        assert_eq!(
            broken.complaint.0, *promise,
            "{defect:?}: {:?}",
            broken.complaint
        );
    }
    let listed = NOTICED.iter().chain(NOTICED_ON_THE_WAY);
    let listed: Vec<Defect> = listed.map(|row| row.0).collect();
    let missing = Defect::ALL.iter().filter(|defect| !listed.contains(defect));
    assert_eq!(missing.count(), 0);
}

/// A node of a rack in epoch 1 that speaks all three protocols and keeps copies.
fn beside() -> Site<(), Beside> {
    let view = View::first(Copyset(0b11), false);
    let config = HomeConfig {
        node: 0,
        epoch: view.epoch,
        block: 4096,
        chunks: 1,
        incarnation: 1,
        migration: None,
        answering: None,
        seed: 0,
    };
    let part = Part {
        abd: Abd::new(0, 1),
        bytes: Bytes::default(),
    };
    let deeds = Vec::new();
    let mut site = Site::new(
        config,
        (1, 0, 2),
        view,
        Cache::new(1),
        Beside { part, deeds },
    );
    let member = Member { node: 0, life: 1 };
    let group = Config::first(&[member]).unwrap();
    let layout = Layout::new(64, 4096).unwrap();
    site.part.part.section((1, None), None, |abd, fx| {
        abd.keep(0, 1, Replica::new(false));
        abd.learn(0, layout, &group, fx);
    });
    site
}

/// Whether a site answers a question of an epoch, and a death's rebuild does not stop it.
fn answers(site: &mut Site<(), Beside>, epoch: u32) -> bool {
    let who = RequesterId { node: 1, slot: 0 };
    let header = Header::request(Kind::AbdStamp, epoch, first_line(0), who, Seq(1));
    let own = own(Stamp::NONE, 1);
    let body = Bare::of(vec![Record {
        tag: Tag(own.a),
        word: own.b,
    }]);
    site.take(&header, body);
    let sent = std::mem::take(&mut site.part.deeds);
    let ack = |deed: &Deed| matches!(deed, Deed::Sent(_, h, ..) if h.kind == Kind::AbdStampAck);
    sent.iter().any(ack)
}

#[test]
fn a_node_that_speaks_three_protocols_answers_in_every_epoch_and_while_one_begins() {
    type Three = Site<(), Beside>;
    let table = <<Three as Host>::Protocols as Protocols<Three>>::table();
    let names: Vec<(&str, u8)> = table.iter().map(|row| (row.0, row.1)).collect();
    assert_eq!(names, [("FlowCC", 0), ("GCP", 1), ("ABD", 4)]);
    let mut site = beside();
    assert!(answers(&mut site, 1) && answers(&mut site, 7) && answers(&mut site, 0));
    let view = View {
        epoch: 2,
        live: Copyset(1),
        founders: Copyset(1),
        ..site.view
    };
    let change = Change::between(&site.settled, &view);
    site.stop(view, &change);
    site.begin(change, Vec::new());
    assert!(answers(&mut site, 1) && answers(&mut site, 2));
    engine::tick(&mut site, false);
}
