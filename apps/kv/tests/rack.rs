//! Servers at every node of a rack: what one is told, all know.

mod support;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use rackmem::{Fabric, Mode, Rack};
use rackmem_kv::{Options, Server, ServerConfig, Store};
use support::Client;

struct World {
    servers: Vec<Server>,
    _rack: Rack,
}

fn world(mode: Mode, fabric: Fabric) -> World {
    let builder = Rack::builder(3).mode(mode).fabric(fabric).block_size(1024);
    let rack = builder.cache(4 << 20).memory(1 << 30).build().unwrap();
    let serve = |node: &rackmem::Node| {
        let store = Store::open(
            node.clone(),
            Options {
                buckets: 64,
                ..Options::default()
            },
        )
        .unwrap();
        let addr = SocketAddr::from(([127, 0, 0, 1], 0));
        Server::bind(
            store,
            ServerConfig {
                addr,
                ..ServerConfig::default()
            },
        )
        .unwrap()
    };
    World {
        servers: rack.nodes().iter().map(serve).collect(),
        _rack: rack,
    }
}

impl World {
    fn client(&self, node: usize) -> Client {
        Client::new(self.servers[node % self.servers.len()].local_addr())
    }
}

fn number(reply: &str) -> u64 {
    reply
        .trim_matches(['"', ':'])
        .parse()
        .unwrap_or_else(|_| panic!("not a number: {reply}"))
}

/// A write that has been answered is what every read that begins later sees, at any node.
fn last_write_wins(world: &World, rounds: u64) {
    let (written, done) = (AtomicU64::new(0), AtomicBool::new(false));
    assert_eq!(world.client(0).say("SET register 0"), "+OK");
    std::thread::scope(|scope| {
        for node in 0..3 {
            let (written, done) = (&written, &done);
            scope.spawn(move || {
                let mut client = world.client(node);
                while !done.load(SeqCst) {
                    let before = written.load(SeqCst);
                    let seen = number(&client.say("GET register"));
                    assert!(
                        seen >= before,
                        "node {node} saw {seen} after {before} was written"
                    );
                }
            });
        }
        let mut clients: Vec<_> = (0..3).map(|node| world.client(node)).collect();
        for value in 1..=rounds {
            let client = &mut clients[value as usize % 3];
            assert_eq!(client.say(&format!("SET register {value}")), "+OK");
            written.store(value, SeqCst);
        }
        done.store(true, SeqCst);
    });
}

/// Every increment is answered with a number of its own, and a later one with a higher one.
fn counters_count(world: &World, rounds: u64) {
    let totals: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|node| {
                scope.spawn(move || {
                    let mut client = world.client(node);
                    let mut last = 0;
                    let mut sum = 0;
                    for _ in 0..rounds {
                        let now = number(&client.say("INCR counter"));
                        assert!(now > last);
                        sum += now;
                        last = now;
                    }
                    sum
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let n = 3 * rounds;
    assert_eq!(
        totals.iter().sum::<u64>(),
        n * (n + 1) / 2,
        "a number was given twice"
    );
}

/// Transactions at all nodes move amounts between keys; no reader ever sees one missing.
fn transactions_are_whole(world: &World, rounds: u64) {
    let done = AtomicBool::new(false);
    assert_eq!(world.client(0).say("MSET a 100 b 100 c 100 d 100"), "+OK");
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..3)
            .map(|node| {
                scope.spawn(move || {
                    let mut client = world.client(node);
                    let names = ["a", "b", "c", "d"];
                    for round in 0..rounds as usize {
                        client.say("MULTI");
                        client.say(&format!("DECRBY {} 7", names[(round + node) % 4]));
                        client.say(&format!("INCRBY {} 7", names[(round * 3 + node + 1) % 4]));
                        assert!(client.say("EXEC").starts_with("[:"));
                    }
                })
            })
            .collect();
        let done = &done;
        scope.spawn(move || {
            let mut client = world.client(1);
            while !done.load(SeqCst) {
                let reply = client.say("MGET a b c d");
                let sum: i64 = reply
                    .trim_matches(['[', ']'])
                    .split(' ')
                    .map(|n| n.trim_matches('"').parse::<i64>().unwrap())
                    .sum();
                assert_eq!(sum, 400, "{reply}");
            }
        });
        let results: Vec<_> = movers.into_iter().map(|mover| mover.join()).collect();
        done.store(true, SeqCst);
        results.into_iter().for_each(|result| result.unwrap());
    });
}

/// Producers, consumers, and those who move elements from one list to another between them, at all
/// nodes: each element is taken once, and a consumer gets those of a producer in their order.
fn queues_deliver_once_and_in_order(world: &World, rounds: usize) {
    let (taken, all) = (AtomicU64::new(0), 3 * rounds as u64);
    let consume = &|node: usize| {
        let (mut client, mut got) = (world.client(node), Vec::new());
        while taken.load(SeqCst) != all {
            let reply = client.say("RPOP ready");
            if reply == "nil" {
                continue;
            }
            taken.fetch_add(1, SeqCst);
            let (from, i) = reply.trim_matches('"').split_once(':').unwrap();
            got.push((number(from), number(i)));
        }
        got
    };
    let got: Vec<Vec<_>> = std::thread::scope(|scope| {
        for node in 0..3 {
            let mut client = world.client(node);
            scope.spawn(move || {
                for i in 0..rounds {
                    client.say(&format!("LPUSH raw {node}:{i}"));
                }
            });
        }
        let consumers: Vec<_> = (0..3)
            .map(|node| scope.spawn(move || consume(node)))
            .collect();
        for node in 0..2 {
            let (mut client, taken) = (world.client(node), &taken);
            scope.spawn(move || {
                while taken.load(SeqCst) != all {
                    client.say("LMOVE raw ready RIGHT LEFT");
                }
            });
        }
        consumers.into_iter().map(|c| c.join().unwrap()).collect()
    });
    for got in &got {
        for from in 0..3 {
            assert!(
                got.iter().filter(|(f, _)| *f == from).is_sorted(),
                "a producer's elements came out of order"
            );
        }
    }
    let mut all: Vec<_> = got.into_iter().flatten().collect();
    all.sort_unstable();
    let each = (0..3).flat_map(|from| (0..rounds as u64).map(move |i| (from, i)));
    assert!(
        all.into_iter().eq(each),
        "an element was lost, or taken twice"
    );
}

fn everything(mode: Mode, fabric: Fabric, rounds: u64) {
    let world = world(mode, fabric);
    last_write_wins(&world, rounds);
    counters_count(&world, rounds);
    transactions_are_whole(&world, rounds / 2);
    queues_deliver_once_and_in_order(&world, rounds as usize / 10);
    let mut clients: Vec<_> = (0..3).map(|node| world.client(node)).collect();
    let long = "x".repeat(5000);
    assert_eq!(clients[0].say(&format!("SET long {long}")), "+OK");
    assert_eq!(clients[1].say("APPEND long y"), ":5001");
    assert_eq!(clients[2].say("GETRANGE long 4998 -1"), "\"xxy\"");
    assert_eq!(clients[1].say("DBSIZE"), ":7");
    assert_eq!(clients[2].say("FLUSHALL"), "+OK");
    assert_eq!(clients[0].say("GET long"), "nil");
    assert_eq!(clients[0].say("DBSIZE"), ":0");
    world.servers.into_iter().for_each(Server::shutdown);
}

#[test]
fn with_a_switch_inline() {
    everything(Mode::Switch, Fabric::Inline, 2000);
}

#[test]
fn without_a_switch_inline() {
    everything(Mode::HomeOnly, Fabric::Inline, 2000);
}

#[test]
fn with_a_switch_through_shared_memory() {
    everything(Mode::Switch, Fabric::Shm, 300);
}

#[test]
fn without_a_switch_through_shared_memory() {
    everything(Mode::HomeOnly, Fabric::Shm, 300);
}

#[test]
fn with_a_switch_over_udp() {
    everything(Mode::Switch, Fabric::Udp, 100);
}

#[test]
fn without_a_switch_over_udp() {
    everything(Mode::HomeOnly, Fabric::Udp, 100);
}
