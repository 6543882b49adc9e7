//! Coherent memory that is mapped: plain loads, stores and atomics of several nodes on the same
//! addresses, on every fabric, beside calls.

mod ahead;
mod edges;
mod litmus;
mod lost;
mod modes;
mod pins;
mod refused;

use rackmem::{
    AccessError, CoherentPages, Contract, Fabric, FaultMode, Mode, Rack, RegionError, RegionSpec,
};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Shm, Fabric::Udp];
const BLOCK: usize = 4096;
/// Long enough for another thread to begin something. What is shown does not depend on it.
const A_WHILE: Duration = Duration::from_millis(100);
/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

fn rack(fabric: Fabric, mode: Mode, cache: usize) -> Rack {
    let rack = Rack::builder(3).fabric(fabric).mode(mode).patience(LONG);
    rack.memory(64 << 20).cache(cache).build().unwrap()
}

/// This program again, which runs one of its tests with a variable that says that it is a child.
fn as_a_child(test: &str, (variable, value): (&str, &str)) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]);
    child.env(variable, value).output().unwrap()
}

fn spec(bytes: usize) -> RegionSpec {
    RegionSpec::new("mapped", bytes)
}

/// A region of the first node, mapped at each.
fn mapped(rack: &Rack, bytes: usize) -> Vec<CoherentPages> {
    mapped_with(rack, bytes, FaultMode::Signal)
}

fn mapped_with(rack: &Rack, bytes: usize, mode: FaultMode) -> Vec<CoherentPages> {
    rack.node(0).create_region(&spec(bytes)).unwrap();
    let each = rack.nodes().iter();
    let regions = each.map(|node| node.open_region(&spec(bytes)).unwrap());
    regions
        .map(|region| region.map_with(mode).unwrap())
        .collect()
}

#[test]
fn what_one_node_stores_another_loads() {
    for fabric in FABRICS {
        for mode in [Mode::HomeOnly, Mode::Switch] {
            let rack = rack(fabric, mode, 1 << 20);
            let all = mapped(&rack, 10 * BLOCK + 24);
            assert_eq!(all[0].words().len(), (10 * BLOCK + 24) / 8);
            for (at, round) in [(0, 1), (511, 2), (512, 3), (5122, 4)] {
                all[2].words()[at].store(round, SeqCst);
                for pages in &all {
                    assert_eq!(pages.words()[at].load(SeqCst), round, "{fabric:?} {mode:?}");
                }
            }
            all[1].bytes()[8 * 511 + 1].store(7, SeqCst);
            assert_eq!(all[0].words()[511].load(SeqCst), 2 | 7 << 8);
        }
    }
}

/// Two nodes load a word and store to it, in turns: a load comes for both once that is known.
#[test]
fn a_load_asks_for_stores_where_stores_have_followed() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, BLOCK);
    let faults = |node: usize| all[node].counts().faults;
    let mut turns: Vec<[u64; 2]> = Vec::new();
    for turn in 0..18 {
        let before = [faults(1), faults(2)];
        for pages in &all[1..] {
            let word = pages.words()[7].load(SeqCst);
            pages.words()[7].store(word + 1, SeqCst);
        }
        assert_eq!(all[0].words()[9].load(SeqCst), 0, "turn {turn}");
        turns.push([faults(1) - before[0], faults(2) - before[1]]);
    }
    // A load and a store, twice; one of both, seven times; and one that looks, and a store.
    let twice = |turn: usize| turn < 2 || (turn - 1).is_multiple_of(8);
    let expected = (0..18).map(|turn| [1 + u64::from(twice(turn)); 2]);
    assert_eq!(turns, expected.collect::<Vec<_>>());
    assert_eq!(all[0].words()[7].load(SeqCst), 36);
}

/// Two nodes store to two words of a page: which ones each of them tells.
#[test]
fn who_shares_a_page_and_no_word_is_told() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, 2 * BLOCK);
    for round in 0..100 {
        all[1].words()[0].store(round, SeqCst);
        all[2].words()[256].store(round, SeqCst);
        // What another node stores is none of this one's.
        let last = region_of(&rack) + 8 * 511;
        rack.node(0).store(last, round).unwrap();
    }
    let written = |node: usize| {
        let hot = rack.node(node).hot_blocks();
        hot.first().map(|hot| (hot.addr, hot.written))
    };
    let addr = region_of(&rack);
    assert_eq!(written(1), Some((addr, 1)));
    assert_eq!(written(2), Some((addr, 1 << 32)));
}

/// Where the region's first byte is in the rack's memory.
fn region_of(rack: &Rack) -> u64 {
    rack.node(0).open_region(&spec(2 * BLOCK)).unwrap().addr()
}

/// A hit is an instruction: nothing is asked, and nobody is interrupted.
#[test]
fn a_page_that_is_here_costs_no_fault_and_no_packet() {
    let rack = rack(Fabric::Udp, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, BLOCK);
    all[1].words()[3].store(1, SeqCst);
    let (faults, sent) = (all[1].counts(), rack.node(1).metrics().sent);
    for _ in 0..10_000 {
        all[1].words()[3].fetch_add(1, SeqCst);
    }
    assert_eq!(all[1].counts(), faults);
    assert_eq!(rack.node(1).metrics().sent, sent);
    assert_eq!(faults.faults, 1);
}

/// Threads of all nodes add to the same words, each to some alone as well, by plain instructions
/// and by calls.
#[test]
fn no_addition_is_lost() {
    const ROUNDS: u64 = 3_000;
    for fabric in FABRICS {
        for mode in [Mode::HomeOnly, Mode::Switch] {
            let rack = rack(fabric, mode, 1 << 20);
            let all = mapped(&rack, 2 * BLOCK);
            let region = rack.node(0).open_region(&spec(2 * BLOCK)).unwrap();
            let addr = region.addr();
            std::thread::scope(|scope| {
                for (nth, pages) in all.iter().enumerate() {
                    for thread in 0..2 {
                        let own = 1 + 2 * nth + thread;
                        scope.spawn(move || {
                            for _ in 0..ROUNDS {
                                pages.words()[0].fetch_add(1, SeqCst);
                                let plain = &pages.words()[own];
                                plain.store(plain.load(Relaxed) + 1, Relaxed);
                                pages.words()[512 + own].fetch_add(1, Relaxed);
                            }
                        });
                    }
                    let node = rack.node(nth);
                    scope.spawn(move || {
                        let word = node.attach::<u64>(addr).unwrap();
                        for _ in 0..ROUNDS / 10 {
                            word.fetch_add(1).unwrap();
                        }
                    });
                }
            });
            let words = all[0].words();
            let sum = 3 * (2 * ROUNDS + ROUNDS / 10);
            assert_eq!(words[0].load(SeqCst), sum, "{fabric:?} {mode:?}");
            for own in 1..7 {
                assert_eq!(words[own].load(SeqCst), ROUNDS, "{fabric:?} {mode:?}");
                assert_eq!(words[512 + own].load(SeqCst), ROUNDS);
            }
        }
    }
}

/// What a call sees of several words is of one moment, also while a program stores there.
#[test]
fn calls_see_mapped_memory_at_one_moment() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, BLOCK);
    let region = rack.node(0).open_region(&spec(BLOCK)).unwrap();
    let (addr, over) = (region.addr(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The second never overtakes the first, nor is it two behind.
            for round in 1.. {
                if over.load(Relaxed) {
                    break;
                }
                all[1].words()[0].store(round, SeqCst);
                all[1].words()[100].store(round, SeqCst);
            }
        });
        for node in [rack.node(1), rack.node(2)] {
            for _ in 0..2_000 {
                let both = node.snapshot(addr, BLOCK, |view| (view.u64(0), view.u64(800)));
                let (first, second) = both.unwrap();
                assert!(first == second || first == second + 1, "{first} {second}");
            }
        }
        over.store(true, Relaxed);
    });
}

#[test]
fn more_pages_than_there_is_room_for() {
    const BLOCKS: usize = 1000;
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 64 * BLOCK);
        let all = mapped(&rack, BLOCKS * BLOCK);
        for (round, pages) in (1..).zip(&all) {
            for nth in 0..BLOCKS {
                let word = &pages.words()[nth * 512 + nth % 512];
                word.fetch_add(round * nth as u64, SeqCst);
            }
            assert!(
                pages.counts().evicted >= (BLOCKS - 128) as u64,
                "{:?}",
                pages.counts()
            );
        }
        for nth in 0..BLOCKS {
            let word = all[1].words()[nth * 512 + nth % 512].load(SeqCst);
            assert_eq!(word, 6 * nth as u64, "{fabric:?}");
        }
    }
}

#[test]
fn what_was_stored_is_there_after_the_mapping() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, 8 * BLOCK);
    for (at, word) in all[1].words().iter().enumerate() {
        word.store(at as u64, Relaxed);
    }
    drop(all);
    let region = rack.node(2).open_region(&spec(8 * BLOCK)).unwrap();
    let mut bytes = vec![0; 8 * BLOCK];
    region.read(0, &mut bytes).unwrap();
    for (at, word) in bytes.chunks_exact(8).enumerate() {
        assert_eq!(word, (at as u64).to_ne_bytes());
    }
    // And again, with what calls have left in the cache.
    let again = region.map().unwrap();
    assert_eq!(again.words()[9].fetch_add(1, SeqCst), 9);
    region.read(72, &mut bytes[..8]).unwrap();
    assert_eq!(bytes[..8], 10u64.to_ne_bytes());
}

/// The system may take pages out of a mapping, and so may a program: they come back.
#[test]
fn pages_that_a_program_drops_lose_nothing() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, 4 * BLOCK);
    for round in 1..100 {
        all[1].words()[0].store(round, SeqCst);
        let at = all[1].as_ptr().cast();
        // SAFETY: pages of a mapping that lives; nobody has references to plain memory there.
        let done = unsafe { libc::madvise(at, 4 * BLOCK, libc::MADV_DONTNEED) };
        assert_eq!(done, 0);
        assert_eq!(all[1].words()[0].load(SeqCst), round);
        all[1].words()[1].store(round, SeqCst);
        assert_eq!(all[2].words()[1].load(SeqCst), round);
    }
}

#[test]
fn every_node_gets_on() {
    const LEAST: u64 = 200;
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
        let all = mapped(&rack, BLOCK);
        let done: Vec<AtomicU64> = all.iter().map(|_| AtomicU64::new(0)).collect();
        let enough = || done.iter().all(|done| done.load(Relaxed) >= LEAST);
        std::thread::scope(|scope| {
            for (pages, done) in all.iter().zip(&done) {
                scope.spawn(|| {
                    while !enough() {
                        pages.words()[0].fetch_add(1, SeqCst);
                        done.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        let sum: u64 = done.iter().map(|done| done.load(Relaxed)).sum();
        assert_eq!(all[2].words()[0].load(SeqCst), sum, "{fabric:?}");
    }
}

#[test]
fn what_cannot_be_mapped_says_so() {
    let rack = Rack::builder(1).block_size(256).build().unwrap();
    let region = rack.node(0).create_region(&spec(BLOCK)).unwrap();
    let small = region.map().unwrap_err();
    assert!(matches!(small, RegionError::NotMappable { .. }), "{small}");

    let rack = Rack::local(1).unwrap();
    let node = rack.node(0);
    let objects = node.create_region(&spec(BLOCK).contract(Contract::Object));
    let wrong = objects.unwrap().map().unwrap_err();
    let RegionError::Access(AccessError::WrongContract { .. }) = wrong else {
        panic!("{wrong}");
    };
    let region = node
        .create_region(&RegionSpec::new("other", BLOCK))
        .unwrap();
    let pages = region.map().unwrap();
    for bytes in [0..BLOCK + 1, BLOCK + 1..BLOCK + 1, 2..usize::MAX] {
        let outside = pages.touch(bytes, false).unwrap_err();
        assert!(
            matches!(outside, RegionError::OutOfBounds { .. }),
            "{outside}"
        );
    }
    pages.touch(0..BLOCK, true).unwrap();
    assert_eq!(pages.counts().faults, 0);
    node.remove_region("other").unwrap();
    assert!(matches!(region.map(), Err(RegionError::Removed { .. })));
}

/// Two regions may share a block; neither is another's.
#[test]
fn small_regions_share_a_page() {
    let rack = Rack::local(2).unwrap();
    let names = ["one", "two", "three"];
    let open = |nth: usize, name| {
        let (node, spec) = (rack.node(nth), RegionSpec::new(name, 64));
        let region = match nth {
            0 => node.create_region(&spec),
            _ => node.open_region(&spec),
        };
        region.unwrap().map().unwrap()
    };
    let here = names.map(|name| open(0, name));
    let there = names.map(|name| open(1, name));
    for (nth, pages) in here.iter().enumerate() {
        pages.words()[7].store(nth as u64 + 1, SeqCst);
    }
    for (nth, pages) in there.iter().enumerate() {
        assert_eq!(pages.words().len(), 8);
        assert_eq!(pages.words()[7].load(SeqCst), nth as u64 + 1);
    }
}
