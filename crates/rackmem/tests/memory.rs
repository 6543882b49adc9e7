//! Memory is allocated and freed on changing nodes, in changing sizes,
//! and all of it can be used again.

use rackmem::diagnostics::{Faults, MemoryMetrics};
use rackmem::{AccessError, AllocError, Contract, Error, Fabric, Mode, Node, Rack};
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(30);
const MEMORY: u64 = 32 << 20;

fn rack(fabric: Fabric, nodes: usize) -> Rack {
    Rack::builder(nodes)
        .fabric(fabric)
        .cache(4 << 20)
        .memory(MEMORY)
        .build()
        .unwrap()
}

fn memory(rack: &Rack) -> Vec<MemoryMetrics> {
    // Whether free memory has been made zeros again is `tests/zeros.rs`'.
    let memory = |m: MemoryMetrics| MemoryMetrics { used: 0, ..m };
    let nodes = rack.metrics().nodes;
    nodes.iter().map(|node| memory(node.memory)).collect()
}

/// What nodes keep of one another's memory has gone home when they have not used it for a while.
fn eventually(rack: &Rack, expected: &[MemoryMetrics]) {
    let end = Instant::now() + LONG;
    while memory(rack) != expected {
        assert!(Instant::now() < end, "{:?}", memory(rack));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_another_node_frees_comes_back() {
    for (fabric, rounds) in [
        (Fabric::Inline, 100_000),
        (Fabric::Shm, 3_000),
        (Fabric::Udp, 3_000),
    ] {
        let rack = rack(fabric, 2);
        let before = memory(&rack);
        for round in 0..rounds {
            let addr = rack.node(0).alloc_bytes(64 << 10);
            let addr = addr.unwrap_or_else(|error| panic!("{fabric:?} {round}: {error}"));
            rack.node(1).free_bytes(addr, 64 << 10).unwrap();
        }
        eventually(&rack, &before);
    }
}

#[test]
fn a_node_that_freed_nothing_can_have_what_another_filled_and_a_third_freed() {
    let rack = rack(Fabric::Inline, 3);
    let before = memory(&rack);
    for (filler, freer, len) in [(0, 1, 100_000), (1, 2, 24), (2, 0, 5_000), (0, 2, 4096)] {
        let mut all = Vec::new();
        while let Ok(addr) = rack.node(filler).alloc_bytes_on(0, len) {
            all.push(addr);
        }
        assert!(all.len() as u64 * len as u64 > MEMORY / 2, "{len}");
        for addr in all {
            rack.node(freer).free_bytes(addr, len).unwrap();
        }
        eventually(&rack, &before);
    }
}

/// An object of a test: who its home is, how long it is, and what is written in it.
struct Object {
    len: usize,
    stamp: u64,
}

fn stamp(node: &Node, addr: u64, len: usize, stamp: u64) {
    node.write(addr, &stamp.to_le_bytes()).unwrap();
    if len >= 16 {
        let end = addr + len as u64 - 8;
        node.write(end, &stamp.to_le_bytes()).unwrap();
    }
}

fn check(node: &Node, addr: u64, object: &Object) {
    let mut bytes = [0; 8];
    let ends = [0, object.len.saturating_sub(8)];
    for at in ends.into_iter().filter(|at| *at == 0 || object.len >= 16) {
        node.read(addr + at as u64, &mut bytes).unwrap();
        assert_eq!(u64::from_le_bytes(bytes), object.stamp, "somebody else's");
    }
}

/// Nodes take turns at random to allocate of any home, with sizes that grow,
/// and to free what any of them has.
fn churn(rack: &Rack, rounds: u64, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let before = memory(rack);
    let nodes = rack.nodes().len();
    let most = MEMORY * nodes as u64 / 10 * 9;
    let (mut objects, mut live) = (BTreeMap::<u64, Object>::new(), 0);
    for round in 0..rounds {
        let node = rack.node(rng.usize(..nodes));
        let limit = 64 + 200_000 * round / rounds;
        let limit = if rng.bool() { limit } else { limit.min(5000) };
        let len = rng.usize(8..limit as usize);
        match node.alloc_bytes_on(rng.u16(..nodes as u16), len) {
            Ok(addr) => {
                stamp(&node, addr, len, round);
                let had = objects.insert(addr, Object { len, stamp: round });
                assert!(had.is_none(), "{addr:#x} is given out twice");
                live += len as u64;
            }
            Err(AllocError::OutOfMemory { .. }) => assert!(live > most / 2, "{live} live"),
            Err(error) => panic!("{error}"),
        }
        while live > most || objects.len() > 2000 {
            let any = rng.u64(..) >> 16 & 0x1_ffff_ffff_ffff;
            let next = objects.range(any..).next().or(objects.iter().next());
            let addr = *next.unwrap().0;
            let object = objects.remove(&addr).unwrap();
            let node = rack.node(rng.usize(..nodes));
            check(&node, addr, &object);
            node.free_bytes(addr, object.len).unwrap();
            live -= object.len as u64;
        }
    }
    for (addr, object) in objects {
        let node = rack.node(rng.usize(..nodes));
        check(&node, addr, &object);
        node.free_bytes(addr, object.len).unwrap();
    }
    eventually(rack, &before);
    for home in rack.nodes() {
        let rest = home.metrics().memory.longest_free as usize;
        let addr = home.alloc_bytes(rest).unwrap();
        home.free_bytes(addr, rest).unwrap();
    }
}

#[test]
fn churn_from_changing_nodes_leaves_nothing_behind() {
    churn(&rack(Fabric::Inline, 4), 30_000, 1);
    churn(&rack(Fabric::Shm, 3), 2_000, 2);
}

/// Packets are lost, doubled and late: every call takes effect once all the same.
#[test]
fn calls_for_memory_happen_once() {
    for (fabric, seed) in [(Fabric::Udp, 1), (Fabric::Shm, 2)] {
        let rack = Rack::builder(3)
            .fabric(fabric)
            .mode(Mode::HomeOnly)
            .cache(4 << 20)
            .memory(MEMORY)
            .faults(Faults {
                loss: 0.05,
                duplication: 0.1,
                delay: 0.1,
                seed,
                ..Faults::NONE
            })
            .build()
            .unwrap();
        churn(&rack, 1_500, seed);
    }
}

#[test]
fn threads_of_several_nodes_share_a_homes_memory() {
    let rack = rack(Fabric::Inline, 3);
    let before = memory(&rack);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let node = rack.node(thread % 3);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread as u64);
                let mut mine = Vec::new();
                for round in 0..4_000u64 {
                    let len = rng.usize(8..3000);
                    let addr = node.alloc_bytes_on(0, len).unwrap();
                    let unique = round * 6 + thread as u64;
                    stamp(&node, addr, len, unique);
                    mine.push((addr, Object { len, stamp: unique }));
                    if mine.len() > 40 {
                        let (addr, object) = mine.swap_remove(rng.usize(..mine.len()));
                        check(&node, addr, &object);
                        node.free_bytes(addr, object.len).unwrap();
                    }
                }
                for (addr, object) in mine {
                    check(&node, addr, &object);
                    node.free_bytes(addr, object.len).unwrap();
                }
            });
        }
    });
    eventually(&rack, &before);
}

#[test]
fn what_is_not_allocated_cannot_be_freed() {
    let rack = rack(Fabric::Inline, 2);
    let (home, other) = (rack.node(0), rack.node(1));
    let refused = |told: Result<(), AllocError>, at: u64| {
        assert!(
            matches!(told, Err(AllocError::NotAllocated { addr }) if addr == at),
            "{told:?}"
        );
    };
    let addr = home.alloc_bytes(100).unwrap();
    refused(home.free_bytes(addr, 5000), addr);
    refused(home.free_bytes(addr + 16, 100), addr + 16);
    refused(home.free_bytes(addr, usize::MAX), addr);
    home.free_bytes(addr, 100).unwrap();
    refused(home.free_bytes(addr, 100), addr);
    refused(home.free_bytes(1 << 44, 100), 1 << 44);
    assert!(matches!(
        home.free_bytes(9 << 48, 100),
        Err(AllocError::Access(AccessError::BadAddress { .. }))
    ));
    // On another node the second time is noticed at once, or else when it gets home;
    // it is never given out twice.
    let addr = home.alloc_bytes(100).unwrap();
    other.free_bytes(addr, 100).unwrap();
    refused(other.free_bytes(addr, 100), addr);
    let before = home.metrics().memory.given;
    eventually_given(&home, before - 112);
    other.free_bytes(addr, 100).unwrap();
    let mut told = Vec::new();
    for _ in 0..200 {
        let more = home.alloc_bytes(16).unwrap();
        told.extend(other.free_bytes(more, 16).err());
        if !told.is_empty() {
            break;
        }
    }
    // The keeper may have brought it home before a thread could be told; if not, one was.
    for error in told {
        refused(Err(error), addr);
    }
}

fn eventually_given(node: &Node, given: u64) {
    let end = Instant::now() + LONG;
    while node.metrics().memory.given != given {
        assert!(Instant::now() < end, "{:?}", node.metrics().memory);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_value_that_grows_by_copying_reaches_half_of_memory() {
    let rack = rack(Fabric::Inline, 2);
    let (mut len, mut addr) = (40_000, rack.node(0).alloc_bytes(40_000).unwrap());
    for round in 1usize.. {
        let node = rack.node(round % 2);
        let more = len + 40_000;
        let Ok(next) = node.alloc_bytes_on(0, more) else {
            break;
        };
        node.free_bytes(addr, len).unwrap();
        (len, addr) = (more, next);
    }
    assert!(len as u64 > MEMORY / 20 * 9, "{len}");
}

#[test]
fn small_objects_of_another_home_are_asked_for_together() {
    let rack = rack(Fabric::Inline, 2);
    let (node, began) = (rack.node(1), Instant::now());
    let objects: Vec<u64> = (0..3200)
        .map(|_| node.alloc_bytes_on(0, 64).unwrap())
        .collect();
    for addr in objects {
        node.free_bytes(addr, 64).unwrap();
    }
    let sent = node.metrics().sent;
    let count = |kind: rackmem::diagnostics::Kind| {
        let of_kind = sent.0.iter().find(|(k, _)| *k == kind);
        of_kind.map_or(0, |(_, count)| *count)
    };
    // What this thread does not use for 50 ms goes home, and is asked for again: on a busy machine
    // it may not have run for longer.
    let rests = began.elapsed().as_millis() as u64 / 50;
    let asked = count(rackmem::diagnostics::Kind::Alloc);
    assert!((100..=100 + rests).contains(&asked), "{asked} {rests}");
    let given = count(rackmem::diagnostics::Kind::Free);
    assert!(given <= 101 + 2 * rests, "{given} {rests}");
    // A home needs nobody for its own.
    let home = rack.node(0);
    for _ in 0..100 {
        let addr = home.alloc_bytes(64).unwrap();
        home.free_bytes(addr, 64).unwrap();
    }
    let sent = home.metrics().sent;
    assert!(sent.0.iter().all(|(kind, n)| *n == 0
        || !matches!(
            kind,
            rackmem::diagnostics::Kind::Alloc | rackmem::diagnostics::Kind::Free
        )));
}

#[test]
fn memory_under_another_contract_is_not_reached_by_its_address() {
    let rack = Rack::builder(2).memory(MEMORY).build().unwrap();
    let (node, other) = (rack.node(0), rack.node(1));
    let addr = node.alloc_bytes(64).unwrap();
    node.write(addr, &[7; 64]).unwrap();
    for contract in Contract::ALL.into_iter().skip(1) {
        let same = Tag(addr).under(contract).0;
        let wrong = |told: Option<Error>, what: &str| {
            let as_it_should = matches!(
                told.as_ref().and_then(Error::access),
                Some(AccessError::WrongContract { addr, wanted: Contract::Coherent, is })
                    if Tag(addr).offset() / 4096 == Tag(same).offset() / 4096 && is == contract
            );
            assert!(as_it_should, "{what}: {told:?}");
        };
        for node in [&node, &other] {
            wrong(node.load(same).err().map(Error::from), "a load");
            wrong(node.store(same, 1).err().map(Error::from), "a store");
            let read = node.read(same, &mut [0; 16]);
            wrong(read.err().map(Error::from), "a read");
            let written = node.write(same, &[1; 16]);
            wrong(written.err().map(Error::from), "a write");
            let freed = node.free_bytes(same, 64);
            wrong(freed.err().map(Error::from), "a free");
            wrong(node.accept_loss(same).err().map(Error::from), "a loss");
        }
    }
    let none = 7 << Tag::OFFSET_BITS;
    assert!(matches!(
        node.load(none),
        Err(AccessError::BadAddress { .. })
    ));
    let mut bytes = [0; 64];
    other.read(addr, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 64]);
    node.free_bytes(addr, 64).unwrap();
}

/// What one thread is given may lie in a chunk that another has begun to make known to all parts of
/// the home.
#[test]
fn memory_is_there_for_all_as_soon_as_it_is_given_out() {
    const PIECE: usize = 256 << 10;
    for fabric in [Fabric::Inline, Fabric::Udp] {
        let rack = Rack::builder(2).fabric(fabric).memory(512 << 20);
        let rack = rack.home_shards(16).cache(4 << 20).build().unwrap();
        assert_eq!(rack.node(0).metrics().home_shards, 16);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (own, other) = (rack.node(thread % 2), rack.node(1));
                scope.spawn(move || {
                    for _ in 0..400 {
                        let addr = own.alloc_bytes_on(0, PIECE).unwrap();
                        // Neighbours are in different parts.
                        for at in [0, 4096, PIECE / 2 + 8192, PIECE - 4096] {
                            other.store(addr + at as u64, addr).unwrap();
                        }
                    }
                });
            }
        });
        assert!(rack.node(0).metrics().chunks >= 12);
    }
}
