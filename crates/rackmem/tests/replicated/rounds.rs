//! Writes of one round: where they are made, and what becomes of them while members, requesters and
//! the switch die.

use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, MODES, eventually, history, rack};
use rackmem::diagnostics::{CopyCounts, Kind};
use rackmem::membership::{self, Store};
use rackmem::{AccessError, Mode, Node, Rack, RegionSpec, Replicated};
use rackmem_sim::history::{Call, Recorder, Reply};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const WRITES: u64 = 20;

fn received(rack: &Rack, kind: Kind) -> u64 {
    let received = rack.switch().map(|switch| switch.received().0);
    let rows = received.unwrap_or_default();
    rows.iter().find(|row| row.0 == kind).map_or(0, |row| row.1)
}

fn line(node: &Node, spec: &RegionSpec, line: usize) -> Replicated<u64> {
    node.open_region(spec).unwrap().replicated(line).unwrap()
}

/// Rounds and packets of writes to one line, from two nodes after each other, that `spec` makes.
fn rounds(rack: &Rack, spec: &RegionSpec) -> (CopyCounts, u64) {
    rack.node(0).create_region(spec).unwrap();
    let (before, asked) = (counts(rack), received(rack, Kind::AbdStamp));
    for node in [0, 1] {
        let value = line(&rack.node(node), spec, 0);
        for number in 0..WRITES {
            value.write(number).unwrap();
        }
        assert_eq!(value.read().unwrap(), WRITES - 1);
    }
    let now = counts(rack);
    let done = CopyCounts {
        reads: now.reads - before.reads,
        read_rounds: now.read_rounds - before.read_rounds,
        writes: now.writes - before.writes,
        write_rounds: now.write_rounds - before.write_rounds,
        interrupted: now.interrupted,
        ..CopyCounts::default()
    };
    (done, received(rack, Kind::AbdStamp) - asked)
}

fn counts(rack: &Rack) -> CopyCounts {
    let nodes = rack.nodes().iter().map(|node| node.metrics().copies);
    nodes.fold(CopyCounts::default(), |sum, one| CopyCounts {
        reads: sum.reads + one.reads,
        read_rounds: sum.read_rounds + one.read_rounds,
        writes: sum.writes + one.writes,
        write_rounds: sum.write_rounds + one.write_rounds,
        interrupted: sum.interrupted + one.interrupted,
        ..sum
    })
}

/// The switch learns a line's stamps by the first write of it, and then chooses for all nodes.
#[test]
fn a_write_takes_one_round_where_the_switch_knows_its_line() {
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let what = format!("{fabric:?} {mode:?}");
        let rack = rack(fabric, mode, 4);
        let once = RegionSpec::new("once", 640).copies(3);
        let twice = RegionSpec::new("twice", 640).copies(3).two_rounds();
        let (done, asked) = rounds(&rack, &once);
        assert_eq!((done.writes, done.reads), (2 * WRITES, 2), "{what}");
        match mode {
            // One try in vain and two rounds, then one round each.
            Mode::Switch => assert_eq!(done.write_rounds, 3 + 2 * WRITES - 1, "{what}"),
            Mode::HomeOnly => assert_eq!(done.write_rounds, 4 * WRITES, "{what}"),
        }
        let (done, asked_twice) = rounds(&rack, &twice);
        assert_eq!(done.write_rounds, 4 * WRITES, "{what}");
        assert_eq!(done.interrupted, 0, "{what}");
        if mode == Mode::Switch {
            // A question may have been sent again on a loaded machine, but not so often.
            assert!(asked < 5 && asked_twice >= 2 * WRITES, "{what}: {asked}");
        }
        let groups = rack.node(2).groups();
        let told: Vec<bool> = groups.iter().map(|group| group.one_round).collect();
        assert_eq!(told, [mode == Mode::Switch, false], "{what}");
    }
}

/// A switch that holds lines carries out both rounds from the first write on: one request and one
/// answer an operation. Without a switch the region is as any other.
#[test]
fn an_operation_is_one_request_and_one_answer_where_the_switch_holds_lines() {
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let what = format!("{fabric:?} {mode:?}");
        let rack = rack(fabric, mode, 4);
        let (done, asked) = rounds(&rack, &RegionSpec::new("held", 640).copies(3).line64());
        assert_eq!((done.writes, done.reads), (2 * WRITES, 2), "{what}");
        let taken = (done.write_rounds, done.read_rounds);
        match mode {
            Mode::Switch => {
                assert_eq!(taken, (2 * WRITES, 2), "{what}");
                let carried =
                    [Kind::AbdLineWrite, Kind::AbdLineRead].map(|kind| received(&rack, kind));
                assert!(
                    carried[0] >= 2 * WRITES && carried[1] >= 2,
                    "{what}: {carried:?}"
                );
                assert_eq!(asked, 0, "{what}");
            }
            Mode::HomeOnly => assert_eq!(taken.0, 4 * WRITES, "{what}"),
        }
        let group = &rack.node(2).groups()[0];
        assert_eq!(group.one_round, mode == Mode::Switch, "{what}");
    }
}

/// Two nodes write, one reads; one of those that write dies in the middle, then a member that keeps
/// a copy, which is replaced, then the switch, which comes again. What has been acknowledged is not
/// lost, what has not may have happened, and nothing happens twice.
#[test]
fn writes_of_one_round_outlive_a_requester_a_member_and_the_switch() {
    outlive("rounds", |spec| spec);
}

/// Likewise where the switch carries out both rounds of writes and reads.
#[test]
fn what_a_switch_carries_out_outlives_a_requester_a_member_and_the_switch() {
    outlive("held", RegionSpec::line64);
}

fn outlive(name: &str, asks: fn(RegionSpec) -> RegionSpec) {
    for fabric in NETWORKS {
        let more = "lease = '1500ms'\npatience = '60s'\nreplace_after = '0s'\nswitch = SWITCH\n";
        let cluster = Cluster::new(name, fabric, 5, more);
        let mut switch = Some(Rack::serve_switch(&cluster.config).unwrap());
        let (mut racks, nodes) = cluster.nodes(5);
        // Node 3 and 4 keep no copy.
        let spec = asks(RegionSpec::new("history", 64 * history::LINES).copies(3));
        nodes[0].create_region(&spec).unwrap();
        assert!(nodes[0].groups()[0].one_round, "{fabric}");
        let (stop, dead) = (AtomicBool::new(false), AtomicBool::new(false));
        let recorder = Recorder::new(MOST);
        std::thread::scope(|scope| {
            for (client, node) in [0, 1, 3].into_iter().enumerate() {
                let (node, spec, recorder) = (&nodes[node], &spec, &recorder);
                let ends = if client == 2 { &dead } else { &stop };
                scope.spawn(move || work(node, spec, (client as u32, recorder), ends));
            }
            std::thread::sleep(Duration::from_millis(60));
            // The writes of its threads end in the middle, wherever they are.
            racks[3] = None;
            dead.store(true, SeqCst);
            racks[2] = None;
            let store = cluster.store();
            let wait = Duration::from_secs(5);
            membership::replace(&store, "history", (2, 4), wait).unwrap();
            eventually("the spare has filled, and counts", || {
                let group = &nodes[0].groups()[0];
                let counts = group
                    .copies
                    .iter()
                    .any(|copy| copy.node == 4 && copy.counts);
                counts && group.one_round
            });
            drop(switch.take());
            eventually("it goes past the switch", || {
                !nodes[0].groups()[0].through_switch
            });
            switch = Some(Rack::serve_switch(&cluster.config).unwrap());
            eventually("another life of the switch chooses", || {
                nodes[0].groups()[0].one_round
            });
            let before = nodes[0].metrics().copies;
            // A slot whose write was interrupted makes none of one round any more.
            eventually("it has chosen, unless for whom it may not", || {
                let now = nodes[0].metrics().copies;
                let rounds = now.write_rounds - before.write_rounds;
                let writes = now.writes - before.writes;
                writes >= 20 && (rounds < 2 * writes || now.interrupted > 0)
            });
            stop.store(true, SeqCst);
        });
        let recorded = recorder.into_history();
        history::judge(fabric, &recorded);
        let roster = cluster.store().load(crate::LONG).unwrap().roster.unwrap();
        assert!(roster.view.switch.is_some_and(|life| life > 1), "{fabric}");
        drop(switch);
    }
}

/// Operations of a client at most.
const MOST: usize = 20_000;

/// Reads and writes until it is to end, or its rack has gone. What is interrupted may have
/// happened.
fn work(node: &Node, spec: &RegionSpec, (client, recorder): (u32, &Recorder), ends: &AtomicBool) {
    let mut log = recorder.client(client);
    let lines: Vec<Replicated<u64>> = (0..history::LINES).map(|at| line(node, spec, at)).collect();
    let mut rng = fastrand::Rng::with_seed(client.into());
    for number in 1..MOST as u64 {
        if ends.load(SeqCst) {
            return;
        }
        // Not so fast that the record is full before all have died.
        std::thread::sleep(Duration::from_micros(500));
        let at = rng.usize(..history::LINES);
        if rng.u8(..4) == 0 {
            let ticket = log.begin(&at.to_string(), Call::Get).expect("room");
            match lines[at].read() {
                Ok(0) => log.ok(ticket, Reply::Nil),
                Ok(value) => log.ok(ticket, Reply::Text(value.to_string())),
                Err(_) => log.fail(ticket),
            }
            continue;
        }
        let fresh = u64::from(client + 1) << 32 | number;
        let value = fresh.to_string();
        let ticket = log.begin(&at.to_string(), Call::Set { value });
        let ticket = ticket.expect("room");
        match lines[at].write(fresh) {
            Ok(()) => log.ok(ticket, Reply::Nil),
            Err(AccessError::Interrupted { .. } | AccessError::Rack(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
