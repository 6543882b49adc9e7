//! All nodes write and read; a member that keeps a copy dies in the middle.

use crate::rig::{HOSTS, Rig, eventually};
use rackmem::diagnostics::CopyCounts;
use rackmem::{RegionSpec, Replicated};
use rackmem_hosts::Place;
use rackmem_sim::history::{Call, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const LINES: usize = 3;
/// A line takes several packets.
const WORDS: usize = 300;
const OPERATIONS: u64 = 150;

pub fn story(rig: &mut Rig) {
    let mode = rig.mode;
    let (writes, rounds) = work(rig);
    let figures = rig.end_switch();
    let (answers, busy) = (figures.answers, figures.answers / 2);
    assert!(rounds < 2 * writes, "{mode}: {rounds} rounds of {writes}");
    assert!(answers >= 2 * writes, "{mode}: {answers} of {writes}");
    // Beside pings and what came before the switch had heard of the group, nothing of it
    // went through the switch's process.
    let few = figures.control < busy && figures.orders < busy;
    assert!(few, "{mode}: {figures:?}");
}

/// Writes that have been done, and their rounds.
fn work(rig: &Rig) -> (u64, u64) {
    let mode = rig.mode;
    let spec = RegionSpec::new("history", 4096 * LINES)
        .copies(3)
        .line(4096);
    let recorder = Recorder::new(2 * OPERATIONS as usize);
    let (made, done) = (Barrier::new(HOSTS), Barrier::new(HOSTS - 1));
    let dies = AtomicBool::new(false);
    let (made, done, dies) = (&made, &done, &dies);
    let (spec, record) = (&spec, &recorder);
    let lives = &|host: usize| {
        let (rack, node) = rig.join(host);
        if host == 0 {
            node.create_region(spec).expect("a region");
        }
        made.wait();
        if host == 2 {
            // It keeps a copy, and asks for nothing.
            eventually("it is to die", || dies.load(SeqCst));
            return CopyCounts::default();
        }
        let region = node.open_region(spec).expect("the region");
        let lines: Vec<Replicated<[u64; WORDS]>> = (0..LINES)
            .map(|line| region.replicated(line).expect("a line"))
            .collect();
        let mut log = record.client(host as u32);
        for number in 1..=2 * OPERATIONS {
            if number == OPERATIONS {
                dies.store(true, SeqCst);
            }
            let at = (number as usize * 7 + host) % LINES;
            let name = at.to_string();
            if number % 3 == 0 {
                let ticket = log.begin(&name, Call::Get).expect("room");
                let read = lines[at].read().expect("a majority");
                // Never a part of one write and a part of another.
                assert!(read.iter().all(|word| *word == read[0]), "torn: {read:?}");
                log.ok(
                    ticket,
                    match read[0] {
                        0 => Reply::Nil,
                        value => Reply::Text(value.to_string()),
                    },
                );
            } else {
                let fresh = (host as u64 + 1) << 32 | number;
                let value = fresh.to_string();
                let ticket = log.begin(&name, Call::Set { value }).expect("room");
                lines[at].write([fresh; WORDS]).expect("a majority");
                log.ok(ticket, Reply::Nil);
            }
        }
        assert!(node.groups()[0].one_round, "{mode}");
        // Of two members that keep copies and live, both are needed.
        done.wait();
        rack.metrics().nodes[0].copies
    };
    let counts: Vec<CopyCounts> = std::thread::scope(|scope| {
        let thread =
            |host| scope.spawn(move || rig.hosts.within(Place::Host(host), || lives(host)));
        let threads: Vec<_> = (0..HOSTS).map(thread).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().expect("it ends"));
        ended.map(|counts| counts.expect("a namespace")).collect()
    });
    let history = recorder.into_history();
    match check(&history, Limits::default()) {
        Verdict::Linearizable(summary) => assert_eq!(summary.keys, LINES, "{mode}"),
        verdict => panic!("{mode}: {verdict}"),
    }
    let sum = |of: fn(&CopyCounts) -> u64| counts.iter().map(of).sum();
    (sum(|c| c.writes), sum(|c| c.write_rounds))
}
