//! What threads are told through locks, all together, is what one memory could have told them.

use crate::{FABRICS, MODES, NODES, ROUGH, rack};
use rackmem::locked::RwLock;
use rackmem::{Fabric, Rack};
use rackmem_sim::history::{Call, Operation, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};

const LOCKS: usize = 4;
const THREADS: usize = 6;
const OPERATIONS: usize = 150;

fn record(rack: &Rack) -> Vec<Operation> {
    let recorder = Recorder::new(OPERATIONS);
    let made = |_| {
        RwLock::<u64>::create(&rack.node(0), 0)
            .expect("a lock")
            .addr()
    };
    let addrs: Vec<u64> = (0..LOCKS).map(made).collect();
    std::thread::scope(|scope| {
        for client in 0..THREADS {
            let node = rack.node(client % NODES);
            let (recorder, addrs) = (&recorder, &addrs);
            scope.spawn(move || {
                let attach = |addr: &u64| RwLock::<u64>::attach(&node, *addr).unwrap();
                let locks: Vec<RwLock<u64>> = addrs.iter().map(attach).collect();
                let mut log = recorder.client(client as u32);
                let mut rng = fastrand::Rng::with_seed(client as u64);
                for number in 1..=OPERATIONS {
                    let at = rng.usize(..LOCKS);
                    let fresh = (client * 1_000_000 + number * 100) as u64 + 1_000_000_000;
                    let mut begin = |call| log.begin(&at.to_string(), call).expect("room");
                    let (ticket, reply) = match rng.u8(..3) {
                        0 => {
                            let ticket = begin(Call::Get);
                            let seen = match locks[at].read().unwrap().get() {
                                0 => Reply::Nil,
                                value => Reply::Text(value.to_string()),
                            };
                            (ticket, seen)
                        }
                        1 => {
                            let value = fresh.to_string();
                            let ticket = begin(Call::Set { value });
                            locks[at].write().unwrap().set(fresh);
                            (ticket, Reply::Nil)
                        }
                        _ => {
                            let ticket = begin(Call::Incr { by: 1 });
                            let old = locks[at].write().unwrap().update(|n| n + 1);
                            (ticket, Reply::Int(old as i64 + 1))
                        }
                    };
                    log.ok(ticket, reply);
                }
            });
        }
    });
    recorder.into_history()
}

#[test]
fn histories_are_linearizable() {
    let on = |mode| FABRICS.map(|fabric| (fabric, mode));
    for (fabric, mode) in MODES.map(on).into_iter().flatten() {
        let faults = (fabric != Fabric::Inline).then_some(ROUGH);
        let history = record(&rack(fabric, mode, faults));
        assert_eq!(history.len(), THREADS * OPERATIONS);
        match check(&history, Limits::default()) {
            Verdict::Linearizable(summary) => assert_eq!(summary.keys, LOCKS),
            verdict => panic!("{fabric:?}: {verdict}"),
        }
    }
}
