//! The same claims over every fabric and mode: what one node writes, every other node reads.

use rackmem::locked::BlockLock;
use rackmem::{
    AccessError, AllocError, Builder, Fabric, LockError, Mode, OpenError, Rack, RackError,
    RegionError, Shared,
};
use rackmem_baselines::gather;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

/// What keeps memory coherent: the rack's own protocols, and a baseline.
#[derive(Clone, Copy, Debug)]
enum Homes {
    Switch,
    Only,
    Gather,
}

impl Homes {
    const ALL: [Homes; 3] = [Homes::Switch, Homes::Only, Homes::Gather];

    fn builder(self) -> Builder {
        let rack = Rack::builder(4);
        match self {
            Homes::Switch => rack,
            Homes::Only => rack.mode(Mode::HomeOnly),
            Homes::Gather => rack.mode(Mode::HomeOnly).answering(gather::answering),
        }
    }
}

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Shm, Fabric::Udp];

/// Blocks, and packets that carry a whole one or a part of it.
fn sizes(fabric: Fabric) -> &'static [(usize, usize)] {
    match fabric {
        // Its packets are as large as blocks, up to half the largest.
        Fabric::Shm => &[(256, 65_535), (65_536, 65_535)],
        _ => &[(4096, 65_535), (256, 1500), (16_384, 1500)],
    }
}

/// Runs a claim on a small rack of every kind: little cache, so that blocks are evicted all the
/// time.
fn everywhere(claim: impl Fn(&Rack)) {
    let racks = FABRICS.map(|fabric| Homes::ALL.map(|homes| (fabric, homes)));
    for (fabric, homes) in racks.into_iter().flatten() {
        for &(block, mtu) in sizes(fabric) {
            eprintln!("{fabric:?} {homes:?} block {block} mtu {mtu}");
            let builder = homes
                .builder()
                .fabric(fabric)
                .block_size(block)
                .cache(16 * block)
                .memory(64 << 20);
            claim(
                &builder
                    .mtu(mtu)
                    .switch_entries(64)
                    .build()
                    .expect("the rack starts"),
            );
        }
    }
}

#[test]
fn a_write_is_seen_by_every_node() {
    everywhere(|rack| {
        let n: Shared<u64> = rack.node(0).alloc(0).unwrap();
        let handles: Vec<Shared<u64>> = (0..4)
            .map(|id| rack.node(id).attach(n.addr()).unwrap())
            .collect();
        for round in 1..20u64 {
            handles[round as usize % 4].write(round).unwrap();
            for handle in &handles {
                assert_eq!(handle.read().unwrap(), round);
            }
        }
        assert_eq!(handles[1].fetch_add(1).unwrap(), 19);
        assert_eq!(handles[2].compare_exchange(20, 9).unwrap(), Ok(20));
        assert_eq!(handles[3].compare_exchange(20, 10).unwrap(), Err(9));
    });
}

#[test]
fn additions_from_all_nodes_add_up() {
    everywhere(|rack| {
        let n: Shared<u64> = rack.node(1).alloc(0).unwrap();
        let each = 100;
        std::thread::scope(|scope| {
            for id in 0..4 {
                for _ in 0..2 {
                    let handle: Shared<u64> = rack.node(id).attach(n.addr()).unwrap();
                    scope.spawn(move || {
                        (0..each).for_each(|_| assert!(handle.fetch_add(1).is_ok()))
                    });
                }
            }
        });
        assert_eq!(n.read().unwrap(), 8 * each);
    });
}

#[test]
fn byte_ranges_cross_blocks_and_survive_eviction() {
    everywhere(|rack| {
        let len = 40 * rack.node(0).block_size().min(1024) + 77;
        let addr = rack.node(2).alloc_bytes(len + 16).unwrap() + 5;
        let model: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
        rack.node(0).write(addr, &model).unwrap();
        for id in [1, 2, 3, 0] {
            let mut seen = vec![0; len];
            rack.node(id).read(addr, &mut seen).unwrap();
            assert!(seen == model, "node {id}");
        }
    });
}

#[test]
fn many_blocks_written_from_everywhere_keep_their_last_values() {
    everywhere(|rack| {
        let block = rack.node(0).block_size();
        let count = 64;
        let base = rack.node(3).alloc_bytes(count * block).unwrap();
        std::thread::scope(|scope| {
            for id in 0..4usize {
                let node = rack.node(id);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(id as u64);
                    for _ in 0..150 {
                        let addr = base + (random.usize(..count) * block) as u64;
                        // Two words of a block that every update moves together.
                        node.update(addr, 16, |view| {
                            let n = view.u64(0) + 1;
                            view.set_u64(0, n);
                            view.set_u64(8, n * 3);
                        })
                        .unwrap();
                        let addr = base + (random.usize(..count) * block) as u64;
                        let pair = node
                            .snapshot(addr, 16, |view| (view.u64(0), view.u64(8)))
                            .unwrap();
                        assert_eq!(pair.0 * 3, pair.1, "torn");
                    }
                });
            }
        });
        let sum: u64 = (0..count)
            .map(|i| rack.node(0).load(base + (i * block) as u64).unwrap())
            .sum();
        assert_eq!(sum, 4 * 150);
    });
}

#[test]
fn regions_are_found_by_name_and_checked() {
    everywhere(|rack| {
        let (addr, created) = rack.node(1).region("tables/users", 10_000, 7).unwrap();
        assert!(created);
        assert_eq!(
            rack.node(2).region("tables/users", 10_000, 7).unwrap(),
            (addr, false)
        );
        assert_eq!(
            rack.node(3).find_region("tables/users", 7).unwrap(),
            (addr, 10_000)
        );
        assert!(matches!(
            rack.node(0).region("tables/users", 10_001, 7),
            Err(RegionError::Mismatch { .. })
        ));
        assert!(matches!(
            rack.node(0).find_region("tables/users", 8),
            Err(RegionError::Mismatch { .. })
        ));
        assert!(matches!(
            rack.node(0).find_region("tables/none", 7),
            Err(RegionError::NotFound { .. })
        ));
        let mut bytes = vec![1; 10_000];
        rack.node(2).read(addr, &mut bytes).unwrap();
        assert!(bytes.iter().all(|&b| b == 0), "a region begins as zeros");
    });
}

#[test]
fn two_creators_of_a_region_agree() {
    everywhere(|rack| {
        let found: Vec<(u64, bool)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|id| rack.node(id))
                .map(|node| scope.spawn(move || node.region("r", 5000, 1).unwrap()))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(found.iter().all(|f| f.0 == found[0].0));
        assert_eq!(found.iter().filter(|f| f.1).count(), 1);
    });
}

#[test]
fn block_locks_exclude() {
    everywhere(|rack| {
        let lock = BlockLock::create(&rack.node(0)).unwrap();
        let other = BlockLock::attach(&rack.node(1), lock.addr()).unwrap();
        let held = lock.write().unwrap();
        assert!(other.try_read().unwrap().is_none());
        drop(held);
        let first = lock.read().unwrap();
        let second = other.read().unwrap();
        assert!(
            other
                .write_within(Duration::from_millis(1))
                .unwrap()
                .is_none()
        );
        drop((first, second));
        drop(other.write().unwrap());

        let counter = rack.node(2).alloc_bytes(rack.node(0).block_size()).unwrap();
        rack.node(2).store(counter, 0).unwrap();
        std::thread::scope(|scope| {
            for id in 0..4 {
                let node = rack.node(id);
                let lock = BlockLock::attach(&node, lock.addr()).unwrap();
                scope.spawn(move || {
                    for _ in 0..25 {
                        let _held = lock.write().unwrap();
                        let n = node.load(counter).unwrap();
                        node.store(counter, n + 1).unwrap();
                    }
                });
            }
        });
        assert_eq!(rack.node(0).load(counter).unwrap(), 100);

        let held = other.read().unwrap();
        assert!(matches!(lock.clone().free(), Err(LockError::Busy { .. })));
        drop(held);
        let given = rack.node(0).metrics().memory.given;
        lock.clone().free().unwrap();
        let block = rack.node(0).block_size() as u64;
        assert_eq!(rack.node(0).metrics().memory.given, given - block);
        assert!(matches!(
            lock.free(),
            Err(LockError::Alloc(AllocError::NotAllocated { .. }))
        ));
    });
}

#[test]
fn misuse_gets_a_typed_error() {
    everywhere(|rack| {
        let node = rack.node(0);
        let mut byte = [0];
        assert!(matches!(
            node.read(9 << 48, &mut byte),
            Err(AccessError::BadAddress { .. })
        ));
        assert!(matches!(
            node.read(1 << 40, &mut byte),
            Err(AccessError::BadAddress { .. })
        ));
        assert!(matches!(node.load(4), Err(AccessError::BadRange { .. })));
        assert!(matches!(
            node.alloc_bytes(1 << 40),
            Err(AllocError::OutOfMemory { node: 0 })
        ));
        for len in [usize::MAX, usize::MAX - 4095, isize::MAX as usize, 1 << 48] {
            for home in [0, 1] {
                let asked = node.alloc_bytes_on(home, len);
                assert!(
                    matches!(asked, Err(AllocError::OutOfMemory { node }) if node == home),
                    "{len}: {asked:?}"
                );
            }
        }
        assert!(matches!(
            node.alloc_bytes_on(9, 8),
            Err(AllocError::Rack(RackError::NoSuchNode { node: 9 }))
        ));
        assert!(matches!(
            rack.try_node(4),
            Err(RackError::NoSuchNode { node: 4 })
        ));
        assert!(matches!(
            node.attach::<u64>(1 << 40),
            Err(AccessError::BadAddress { .. })
        ));
        assert!(node.alloc(1u64).is_ok(), "an error leaves the node usable");
    });
    assert!(matches!(Rack::local(0), Err(OpenError::Config(_))));
    assert!(matches!(Rack::local(33), Err(OpenError::Config(_))));
}

#[test]
fn memory_runs_out_and_nothing_is_lost() {
    let rack = Rack::builder(2).memory(32 << 20).build().unwrap();
    let node = rack.node(1);
    let mut addrs = Vec::new();
    let error = loop {
        match node.alloc_bytes(1 << 20) {
            Ok(addr) => addrs.push(addr),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, AllocError::OutOfMemory { node: 1 }));
    assert_eq!(addrs.len(), 32);
    node.free_bytes(addrs[3], 1 << 20).unwrap();
    assert_eq!(node.alloc_bytes(1 << 20).unwrap(), addrs[3]);
}

#[test]
fn a_closed_rack_says_so() {
    let rack = Rack::local(2).unwrap();
    let n: Shared<u64> = rack.node(0).alloc(1).unwrap();
    drop(rack);
    assert!(matches!(
        n.read(),
        Err(AccessError::Rack(RackError::Closed))
    ));
    assert!(matches!(
        n.fetch_add(1),
        Err(AccessError::Rack(RackError::Closed))
    ));
}

#[test]
fn a_dead_switch_is_a_timeout_and_not_a_hang() {
    let config = "nodes = ['127.0.0.1:7499']\nswitch = '127.0.0.1:7498'\npatience_ms = 200";
    let rack = Rack::join(&rackmem::Config::parse(config).unwrap(), 0).unwrap();
    assert!(matches!(
        rack.node(0).load(0),
        Err(AccessError::Rack(RackError::Timeout { node: 0 }))
    ));
}

#[test]
fn structs_are_shared_whole() {
    let rack = Rack::local(3).unwrap();
    let point: Shared<[f64; 3]> = rack.node(0).alloc([1.0, 2.0, 3.0]).unwrap();
    let same: Shared<[f64; 3]> = rack.node(2).attach(point.addr()).unwrap();
    assert_eq!(
        same.update(|p| p.map(|x| x * 2.0)).unwrap(),
        [1.0, 2.0, 3.0]
    );
    assert_eq!(point.read().unwrap(), [2.0, 4.0, 6.0]);
}

/// Adds by way of the block, which no home does.
fn add(word: &Shared<u64>) -> u64 {
    let added = word.fetch_update(|old| Some(old + 1));
    added.unwrap().unwrap()
}

#[test]
fn hot_entries_move_to_the_switch_and_stay_coherent() {
    let rack = Rack::local(4).unwrap();
    let n: Shared<u64> = rack.node(0).alloc(0).unwrap();
    let handles: Vec<Shared<u64>> = (1..4)
        .map(|id| rack.node(id).attach(n.addr()).unwrap())
        .collect();
    let mut adds = 0;
    let deadline = Instant::now() + LONG;
    // Entries go home again while this thread has no processor, and the shadow is told a moment
    // later.
    let there = || {
        let metrics = rack.metrics();
        let switch = metrics.switch.expect("there is one");
        let shadow = metrics.nodes[0].shadow.expect("node 0 keeps it");
        assert_eq!(switch.counters.violations, 0);
        let granted = switch.counters.granted >= 100;
        granted && switch.entries >= 1 && shadow.blocks == switch.entries
    };
    while !there() {
        assert!(Instant::now() < deadline, "{:?}", rack.metrics());
        for handle in &handles {
            add(handle);
            adds += 1;
        }
    }
    assert_eq!(n.read().unwrap(), adds);
}

#[test]
fn cold_entries_come_home_again() {
    let migration = rackmem::Migration {
        period: Duration::from_millis(2),
        patience: 5,
        ..rackmem::Migration::default()
    };
    for fabric in [Fabric::Inline, Fabric::Shm, Fabric::Udp] {
        let rack = Rack::builder(2)
            .fabric(fabric)
            .migration(migration)
            .build()
            .unwrap();
        let n: Shared<u64> = rack.node(0).alloc(0).unwrap();
        let other: Shared<u64> = rack.node(1).attach(n.addr()).unwrap();
        let deadline = Instant::now() + LONG;
        let mut adds = 0;
        while rack.metrics().nodes[0].home.migrated == 0 && Instant::now() < deadline {
            add(&n);
            add(&other);
            adds += 2;
        }
        while rack.metrics().nodes[0].home.returned == 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(rack.metrics().nodes[0].home.returned, 1, "{fabric:?}");
        assert_eq!(add(&other), adds, "{fabric:?}");
        assert_eq!(n.read().unwrap(), adds + 1, "{fabric:?}");
    }
}

#[test]
fn threads_that_miss_together_make_one_request() {
    everywhere(|rack| {
        let block = rack.node(0).block_size();
        let base = rack.node(0).alloc_bytes(8 * block).unwrap();
        let before = rack.node(1).metrics().events;
        let barrier = std::sync::Barrier::new(6);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                let node = rack.node(1);
                let barrier = &barrier;
                scope.spawn(move || {
                    for i in 0..8 {
                        barrier.wait();
                        node.load(base + (i * block) as u64).unwrap();
                    }
                });
            }
        });
        let events = rack.node(1).metrics().events - before;
        assert_eq!((events.read_miss, events.misses()), (8, 8));
    });
}

#[test]
fn what_is_no_packet_is_counted_and_dropped() {
    let [agent, switch] = rackmem_hosts::addresses(2)[..] else {
        panic!("two addresses");
    };
    let config = format!("nodes = ['{agent}']\nswitch = '{switch}'");
    let config = rackmem::Config::parse(&config).unwrap();
    let served = Rack::serve_switch(&config).unwrap();
    let rack = Rack::join(&config, 0).unwrap();
    let n: Shared<u64> = rack.node(0).alloc(5).unwrap();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for len in [0, 1, 47, 48, 49, 1400] {
        stranger.send_to(&vec![0xa5; len], agent).unwrap();
        stranger.send_to(&vec![0xa5; len], switch).unwrap();
    }
    let deadline = Instant::now() + LONG;
    while rack.metrics().malformed < 6 || served.metrics().malformed < 6 {
        assert!(Instant::now() < deadline, "{:?}", rack.metrics());
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(n.fetch_add(1).unwrap(), 5);
}

#[test]
fn a_panic_in_an_operation_leaves_the_rack_whole() {
    everywhere(|rack| {
        let block = rack.node(0).block_size();
        let addr = rack.node(0).alloc_bytes(block).unwrap();
        rack.node(0).store(addr, 41).unwrap();
        // A miss that takes the only copy away from node 0, then an upgrade, then a hit:
        // each panics.
        for round in 0..3 {
            if round == 1 {
                rack.node(2).load(addr).unwrap();
            }
            let node = rack.node(1);
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                node.update(addr, 8, |_| panic!("the caller's own"))
            }));
            assert!(panicked.is_err());
        }
        assert_eq!(rack.node(3).fetch_add(addr, 1).unwrap(), 41);
        assert_eq!(rack.node(0).load(addr).unwrap(), 42);
    });
}
