//! Blocks leave full sets of the cache before their room is needed, where that is worth it.

use rackmem::diagnostics::EventCounts;
use rackmem::{Builder, Fabric, Mode, Node, Rack};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);
const BLOCK: usize = 512;
/// Blocks of a cache: eight sets of eight.
const CACHE: usize = 64;
/// Where packets are no calls.
const NETWORKS: [Fabric; 2] = [Fabric::Shm, Fabric::Udp];
const MODES: [Mode; 2] = [Mode::Switch, Mode::HomeOnly];

fn builder(fabric: Fabric, mode: Mode) -> Builder {
    let rack = Rack::builder(2).fabric(fabric).mode(mode);
    rack.block_size(BLOCK).cache(CACHE * BLOCK).patience(LONG)
}

fn everywhere(claim: impl Fn(Rack)) {
    for (fabric, mode) in NETWORKS
        .iter()
        .flat_map(|fabric| MODES.map(|mode| (*fabric, mode)))
    {
        eprintln!("{fabric:?} {mode:?}");
        claim(builder(fabric, mode).build().unwrap());
    }
}

/// The first words of so many blocks of node 0.
fn blocks(rack: &Rack, count: usize) -> Vec<u64> {
    let base = rack.node(0).alloc_bytes(count * BLOCK).unwrap();
    (0..count).map(|nth| base + (nth * BLOCK) as u64).collect()
}

fn scan(node: &Node, addrs: &[u64], writes: bool) {
    for addr in addrs {
        match writes {
            true => node.fetch_update(*addr, |old| Some(old + 1)).map(drop),
            false => node.load(*addr).map(drop),
        }
        .unwrap();
    }
}

/// What has happened since.
fn since(node: &Node, before: EventCounts) -> EventCounts {
    node.metrics().events - before
}

#[test]
fn a_scan_of_twice_the_cache_finds_room() {
    everywhere(|rack| {
        let (addrs, reader) = (blocks(&rack, 2 * CACHE), rack.node(1));
        for writes in [false, true] {
            (0..3).for_each(|_| scan(&reader, &addrs, writes));
            let before = reader.metrics().events;
            (0..4).for_each(|_| scan(&reader, &addrs, writes));
            let did = since(&reader, before);
            let evicted = did.evict_shared + did.evict_modified;
            assert_eq!(
                evicted,
                did.evicted_ahead + did.evicted_in_the_way,
                "{did:?}"
            );
            assert!(evicted > 3 * CACHE as u64, "{did:?}");
            assert!(did.evicted_in_the_way * 10 < evicted, "{did:?}");
            let dirty = if writes { evicted } else { 0 };
            assert!(did.evict_modified >= dirty / 2, "{did:?}");
        }
        for addr in addrs {
            assert_eq!(rack.node(0).load(addr).unwrap(), 7);
        }
    });
}

#[test]
fn what_fits_stays() {
    everywhere(|rack| {
        let (addrs, reader) = (blocks(&rack, CACHE / 2), rack.node(1));
        (0..4).for_each(|_| scan(&reader, &addrs, false));
        let did = reader.metrics().events;
        assert_eq!((did.misses(), did.total()), (32, 32), "{did:?}");
    });
}

/// A set that had to evict, and whose blocks fit now, is left alone after few blocks.
#[test]
fn what_fits_again_stays() {
    everywhere(|rack| {
        let (addrs, reader) = (blocks(&rack, 4 * CACHE), rack.node(1));
        (0..4).for_each(|_| scan(&reader, &addrs, false));
        assert!(reader.metrics().events.evicted_ahead > 0);
        let few = &addrs[..CACHE / 2];
        (0..8).for_each(|_| scan(&reader, few, false));
        let before = reader.metrics().events;
        (0..8).for_each(|_| scan(&reader, few, false));
        assert_eq!(since(&reader, before).total(), 0);
    });
}

#[test]
fn calls_and_racks_that_do_not_want_it_evict_when_they_must() {
    for rack in [
        builder(Fabric::Inline, Mode::Switch),
        builder(Fabric::Shm, Mode::Switch).evict_ahead(false),
    ] {
        let rack = rack.build().unwrap();
        let (addrs, reader) = (blocks(&rack, 2 * CACHE), rack.node(1));
        (0..4).for_each(|_| scan(&reader, &addrs, true));
        let did = reader.metrics().events;
        assert_eq!(did.evicted_ahead, 0);
        assert_eq!(did.evicted_in_the_way, did.evict_modified);
    }
}

#[test]
fn a_program_that_panics_leaves_nothing_locked() {
    everywhere(|rack| {
        let (addrs, reader) = (blocks(&rack, 2 * CACHE), rack.node(1));
        (0..3).for_each(|_| scan(&reader, &addrs, true));
        for addr in &addrs {
            let panics = || reader.fetch_update(*addr, |_| panic!("for the test"));
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        }
        assert!(reader.metrics().events.evicted_ahead > 0);
        scan(&rack.node(0), &addrs, true);
        for addr in addrs {
            assert_eq!(reader.load(addr).unwrap(), 4);
        }
    });
}

/// Threads of both nodes add to more words than there is room for.
#[test]
fn no_addition_is_lost() {
    const ADDED: usize = 2_000;
    everywhere(|rack| {
        let addrs = blocks(&rack, 2 * CACHE);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (node, addrs) = (rack.node(thread % 2), &addrs);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(thread as u64);
                    for _ in 0..ADDED {
                        let addr = addrs[random.usize(..addrs.len())];
                        node.fetch_update(addr, |old| Some(old + 1)).unwrap();
                    }
                });
            }
        });
        assert!(rack.metrics().events().evicted_ahead > 0);
        let words = addrs.iter().map(|addr| rack.node(0).load(*addr).unwrap());
        assert_eq!(words.sum::<u64>(), 4 * ADDED as u64);
    });
}

/// Who closes a rack while others wait for room leaves nobody behind.
#[test]
fn racks_close_in_the_middle_of_it() {
    everywhere(|rack| {
        let (addrs, reader) = (blocks(&rack, 2 * CACHE), rack.node(1));
        (0..2).for_each(|_| scan(&reader, &addrs, true));
        std::thread::scope(|scope| {
            let scans = scope.spawn(|| {
                let add = |addr: &u64| reader.fetch_update(*addr, |old| Some(old + 1));
                while addrs.iter().all(|addr| add(addr).is_ok()) {}
            });
            while reader.metrics().events.evicted_ahead < 200 && !scans.is_finished() {
                std::thread::yield_now();
            }
            drop(rack);
        });
    });
}
