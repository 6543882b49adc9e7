//! What threads read and write in lines, all together, is what one memory could have told them.

use crate::executor::block_on;
use crate::{FABRICS, LONG, MODES};
use rackmem::diagnostics::Faults;
use rackmem::{Fabric, Node, Rack, Region, RegionSpec, Replicated};
use rackmem_sim::history::{Call, ClientLog, Operation, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};

pub const LINES: usize = 3;
/// A line takes several packets where these are small.
pub const WORDS: usize = 300;

/// A thread's reads and writes, recorded. What was not answered may have happened.
pub fn work(node: &Node, spec: &RegionSpec, client: u32, log: &mut ClientLog<'_>, most: usize) {
    work_on(&node.open_region(spec).unwrap(), client, log, most);
}

/// The same in a region that is open.
pub fn work_on(region: &Region, client: u32, log: &mut ClientLog<'_>, most: usize) {
    let lines = (0..LINES).map(|line| region.replicated::<[u64; WORDS]>(line).unwrap());
    let lines: Vec<Replicated<[u64; WORDS]>> = lines.collect();
    let read = |at: usize| lines[at].read().ok();
    let write = |at: usize, words| lines[at].write(words).is_ok();
    record(LINES, (client, log, most), read, write);
}

/// Reads and writes of a thread to so many registers, recorded.
pub fn record<const WORDS: usize>(
    registers: usize,
    of: (u32, &mut ClientLog<'_>, usize),
    read: impl Fn(usize) -> Option<[u64; WORDS]>,
    write: impl Fn(usize, [u64; WORDS]) -> bool,
) {
    let write = async |at, words| write(at, words);
    block_on(record_task(registers, of, async |at| read(at), write));
}

/// The same of a task.
pub async fn record_task<const WORDS: usize>(
    registers: usize,
    (client, log, most): (u32, &mut ClientLog<'_>, usize),
    read: impl AsyncFn(usize) -> Option<[u64; WORDS]>,
    write: impl AsyncFn(usize, [u64; WORDS]) -> bool,
) {
    let mut rng = fastrand::Rng::with_seed(client.into());
    for number in 1..=most as u64 {
        let at = rng.usize(..registers);
        let name = at.to_string();
        if rng.bool() {
            let ticket = log.begin(&name, Call::Get).expect("room");
            let Some(read) = read(at).await else {
                log.fail(ticket);
                continue;
            };
            // Never a part of one write and a part of another.
            assert!(read.iter().all(|word| *word == read[0]), "torn: {read:?}");
            let seen = match read[0] {
                0 => Reply::Nil,
                value => Reply::Text(value.to_string()),
            };
            log.ok(ticket, seen);
        } else {
            let fresh = u64::from(client + 1) << 32 | number;
            let value = fresh.to_string();
            let ticket = log.begin(&name, Call::Set { value }).expect("room");
            if write(at, [fresh; WORDS]).await {
                log.ok(ticket, Reply::Nil);
            }
        }
    }
}

pub fn judge(what: &str, history: &[Operation]) {
    match check(history, Limits::default()) {
        Verdict::Linearizable(summary) => assert_eq!(summary.keys, LINES, "{what}"),
        verdict => panic!("{what}: {verdict}"),
    }
}

pub fn spec() -> RegionSpec {
    RegionSpec::new("history", 4096 * LINES)
        .copies(3)
        .line(4096)
}

#[test]
fn histories_are_linearizable() {
    const CLIENTS: usize = 6;
    const OPERATIONS: usize = 120;
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let rack = Rack::builder(4).fabric(fabric).mode(mode).patience(LONG);
        let rack = match fabric {
            Fabric::Inline => rack,
            _ => rack.mtu(1500).faults(Faults {
                loss: 0.02,
                duplication: 0.02,
                delay: 0.05,
                ..Faults::NONE
            }),
        };
        let rack = rack.build().unwrap();
        rack.node(0).create_region(&spec()).unwrap();
        let recorder = Recorder::new(OPERATIONS);
        std::thread::scope(|scope| {
            for client in 0..CLIENTS as u32 {
                let (node, recorder) = (rack.node(client as usize % 4), &recorder);
                scope.spawn(move || {
                    let mut log = recorder.client(client);
                    work(&node, &spec(), client, &mut log, OPERATIONS);
                });
            }
        });
        let history = recorder.into_history();
        assert_eq!(history.len(), CLIENTS * OPERATIONS);
        judge(&format!("{fabric:?} {mode:?}"), &history);
    }
}
