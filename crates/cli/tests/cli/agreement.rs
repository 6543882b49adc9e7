//! That all nodes agree, as clients see it: a value set on one is what every other then returns,
//! and what concurrent clients are told could have come from one memory.

use crate::resp::{Answer, Client};
use rackmem_sim::history::{Call, Operation, Recorder, Reply};
use rackmem_sim::linear::{Limits, Verdict, check};
use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// Clients of each node.
const CLIENTS: usize = 2;
/// Operations of each client.
const OPERATIONS: usize = 400;
/// Few keys, so that clients meet.
const KEYS: [&str; 3] = ["a", "b", "c"];
/// Times that a value is set on every node and read on every other.
const ROUNDS: usize = 20;

/// Clients of all nodes read and write the same few keys at once;
/// what they were told must be linearizable.
pub fn concurrent_clients_see_one_memory(addrs: &[SocketAddr]) {
    let history = record(addrs);
    assert_eq!(history.len(), addrs.len() * CLIENTS * OPERATIONS);
    assert!(
        overlap(&history),
        "no two operations met: this shows nothing"
    );
    let verdict = check(&history, Limits::default());
    assert!(verdict.is_linearizable(), "{verdict}");
}

/// The proof that the demand can be missed: nodes that have nothing to do with each other do miss
/// it.
pub fn concurrent_clients_see_several_memories(addrs: &[SocketAddr]) {
    let verdict = check(&record(addrs), Limits::default());
    assert!(matches!(verdict, Verdict::Violation(_)), "{verdict}");
}

/// What clients of all nodes did and were told.
fn record(addrs: &[SocketAddr]) -> Vec<Operation> {
    let recorder = Recorder::new(OPERATIONS);
    let start = Barrier::new(addrs.len() * CLIENTS);
    std::thread::scope(|scope| {
        for number in 0..addrs.len() * CLIENTS {
            let (recorder, start, addr) = (&recorder, &start, addrs[number / CLIENTS]);
            scope.spawn(move || {
                let mut client = Client::connect(addr);
                let mut log = recorder.client(number as u32);
                let mut rng = fastrand::Rng::with_seed(number as u64);
                start.wait();
                for _ in 0..OPERATIONS {
                    let key = KEYS[rng.usize(..KEYS.len())];
                    let call = draw(&mut rng);
                    let ticket = log.begin(key, call.clone()).expect("room");
                    let reply = perform(&mut client, key, &call);
                    log.ok(ticket, reply);
                }
            });
        }
    });
    recorder.into_history()
}

fn draw(rng: &mut fastrand::Rng) -> Call {
    let value = rng.u32(..1_000_000).to_string();
    match rng.u8(..100) {
        0..40 => Call::Get,
        40..60 => Call::Set { value },
        60..75 => Call::Incr { by: 3 },
        75..85 => Call::Swap { value },
        85..92 => Call::Cas {
            expected: None,
            value,
        },
        _ => Call::Del,
    }
}

fn perform(client: &mut Client, key: &str, call: &Call) -> Reply {
    let answer = match call {
        Call::Get => client.call(&["GET", key]),
        Call::Set { value } => client.call(&["SET", key, value]),
        Call::Swap { value } => client.call(&["GETSET", key, value]),
        Call::Incr { by } => client.call(&["INCRBY", key, &by.to_string()]),
        Call::Cas { value, .. } => client.call(&["SETNX", key, value]),
        Call::Del | Call::Clear => client.call(&["DEL", key]),
        Call::Append { value } => client.call(&["APPEND", key, value]),
    };
    match (call, answer) {
        (Call::Set { .. }, Answer::Text(ok)) if ok == "OK" => Reply::Nil,
        (Call::Get | Call::Swap { .. }, Answer::Text(value)) => Reply::Text(value),
        (Call::Get | Call::Swap { .. }, Answer::Nil) => Reply::Nil,
        (Call::Incr { .. } | Call::Append { .. }, Answer::Int(number)) => Reply::Int(number),
        (Call::Cas { .. } | Call::Del, Answer::Int(done)) => Reply::Bool(done == 1),
        (Call::Clear, Answer::Int(_)) => Reply::Nil,
        (call, answer) => panic!("{call} is answered with {answer:?}"),
    }
}

fn overlap(history: &[Operation]) -> bool {
    let meets = |a: &Operation, b: &Operation| a.returned().is_some_and(|end| end > b.invoke);
    history.windows(2).any(|pair| meets(&pair[0], &pair[1]))
}

/// While other clients write as fast as they can, a value set on any node is at once what every
/// other returns.
pub fn what_one_sets_all_return(addrs: &[SocketAddr]) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for &addr in addrs {
            let stop = &stop;
            scope.spawn(move || disturb(addr, stop));
        }
        let mut clients: Vec<Client> = addrs.iter().map(|&addr| Client::connect(addr)).collect();
        for round in 0..ROUNDS {
            for setter in 0..clients.len() {
                let value = format!("round {round}, node {setter}");
                let done = clients[setter].call(&["SET", "message", &value]);
                assert_eq!(done, Answer::Text("OK".into()));
                for (reader, client) in clients.iter_mut().enumerate() {
                    let found = client.call(&["GET", "message"]);
                    assert_eq!(found, Answer::Text(value.clone()), "at node {reader}");
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// Writes keys that share pages with those that are looked at.
fn disturb(addr: SocketAddr, stop: &AtomicBool) {
    let mut client = Client::connect(addr);
    let mut rng = fastrand::Rng::with_seed(u64::from(addr.port()));
    while !stop.load(Ordering::Relaxed) {
        let key = format!("other:{}", rng.u16(..200));
        let done = client.call(&["SET", &key, "x"]);
        assert_eq!(done, Answer::Text("OK".into()));
    }
}

/// A value that needs many blocks, and commands on several keys.
pub fn large_values_and_many_keys(addrs: &[SocketAddr]) {
    let mut first = Client::connect(addrs[0]);
    let mut last = Client::connect(addrs[addrs.len() - 1]);
    let large = "0123456789abcdef".repeat(16 * 1024);
    assert_eq!(
        first.call(&["SET", "large", &large]),
        Answer::Text("OK".into())
    );
    assert_eq!(last.call(&["GET", "large"]), Answer::Text(large));
    let stored = first.call(&["MSET", "x", "1", "y", "2"]);
    assert_eq!(stored, Answer::Text("OK".into()));
    let both = vec![Answer::Text("1".into()), Answer::Text("2".into())];
    assert_eq!(last.call(&["MGET", "x", "y"]), Answer::List(both));
    assert_eq!(last.call(&["DEL", "large", "x", "y"]), Answer::Int(3));
    assert_eq!(first.call(&["EXISTS", "large", "x", "y"]), Answer::Int(0));
}
