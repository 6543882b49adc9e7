//! Slices are moved in bulk: what comes is what the last writers left, whatever caches,
//! networks and other threads do.

use rackmem::diagnostics::{End, Faults, Kind};
use rackmem::{AccessError, Fabric, Mode, Node, Rack, RackError, SharedSlice};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const BLOCK: usize = 1024;
const FABRICS: [Fabric; 3] = [Fabric::Inline, Fabric::Udp, Fabric::Shm];
const MODES: [Mode; 2] = [Mode::Switch, Mode::HomeOnly];

/// Loses, doubles and delays packets.
const ROUGH: Faults = Faults::rough(0.03);

/// A rack of three whose caches hold a part of what is moved.
fn rack(fabric: Fabric, mode: Mode, faults: Option<Faults>) -> Rack {
    let rack = Rack::builder(3)
        .fabric(fabric)
        .mode(mode)
        .block_size(BLOCK)
        .cache(256 * BLOCK)
        .memory(64 << 20);
    let rack = match faults {
        Some(faults) => rack.faults(faults),
        None => rack,
    };
    rack.build().expect("the rack starts")
}

fn sent(node: &Node) -> u64 {
    let metrics = node.metrics();
    metrics.sent.0.iter().map(|(_, count)| count).sum()
}

fn sent_of(node: &Node, kind: Kind) -> u64 {
    let metrics = node.metrics();
    let of_kind = |(sent, count): &(Kind, u64)| (*sent == kind).then_some(*count);
    metrics.sent.0.iter().filter_map(of_kind).sum()
}

fn fetches(node: &Node) -> u64 {
    sent_of(node, Kind::Fetch)
}

/// Ranges of a slice of all lengths and places are written and read on changing nodes, beside a
/// vector that has the same done to it. Some blocks are changed through caches meanwhile,
/// so that homes do not have them.
fn agrees(rack: &Rack, rounds: usize, seed: u64) {
    const LEN: usize = 40_000;
    let slices: Vec<SharedSlice<u32>> = {
        let first = rack.node(0).alloc_slice::<u32>(LEN).unwrap();
        let attach = |n: usize| rack.node(n).attach_slice(first.addr(), LEN).unwrap();
        (0..3).map(attach).collect()
    };
    let (mut model, mut rng) = (vec![0u32; LEN], fastrand::Rng::with_seed(seed));
    for round in 0..rounds {
        let slice = &slices[rng.usize(..3)];
        let from = rng.usize(..LEN);
        let len = rng.usize(..=(LEN - from).min(20_000));
        let range = from..from + len;
        match rng.u8(..4) {
            0 => {
                let values: Vec<u32> = range.clone().map(|_| rng.u32(..)).collect();
                slice.write_from(from, &values).unwrap();
                model[range].copy_from_slice(&values);
            }
            1 => {
                let value = rng.u32(..);
                slice.set(from, value).unwrap();
                model[from] = value;
            }
            2 => assert_eq!(slice.get(from).unwrap(), model[from], "round {round}"),
            _ => {
                let read = slice.to_vec(range.clone()).unwrap();
                assert!(read == model[range], "round {round}");
            }
        }
    }
    for slice in &slices {
        let mut next = 0;
        let whole = slice.for_each_part(|at, part| {
            assert_eq!(at, next);
            assert!(part == &model[at..at + part.len()]);
            next += part.len();
        });
        whole.unwrap();
        assert_eq!(next, LEN);
    }
}

#[test]
fn ranges_agree_with_a_vector() {
    for fabric in FABRICS {
        for mode in MODES {
            agrees(&rack(fabric, mode, None), 150, 1);
        }
    }
}

#[test]
fn ranges_agree_with_a_vector_where_packets_are_lost_and_come_twice() {
    for fabric in [Fabric::Udp, Fabric::Shm] {
        let rack = rack(fabric, Mode::HomeOnly, Some(ROUGH));
        agrees(&rack, 60, 2);
        let counts = rack.faults().unwrap().counts();
        assert!(counts.lost > 0 && counts.doubled > 0, "{counts:?}");
    }
}

#[test]
fn a_network_whose_packets_hold_no_block_moves_ranges_block_by_block() {
    let rack = Rack::builder(3).fabric(Fabric::Udp).mtu(1500);
    let rack = rack.memory(64 << 20).build().unwrap();
    agrees(&rack, 60, 3);
    assert_eq!(fetches(&rack.node(1)), 0);
    assert_eq!(sent_of(&rack.node(1), Kind::Store), 0);
}

#[test]
fn memory_of_this_node_that_no_other_uses_costs_no_packet() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::Switch, None);
        let (home, other) = (rack.node(0), rack.node(1));
        let slice = home.alloc_slice::<u64>(100_000).unwrap();
        let there = other
            .attach_slice::<u64>(slice.addr(), slice.len())
            .unwrap();
        // What was looked at there is in a cache now; so the first and the last block are left
        // alone.
        let inside = 1_000..99_000;
        let before = sent(&home);
        let values: Vec<u64> = (0..inside.len() as u64).collect();
        slice.write_from(inside.start, &values).unwrap();
        assert!(slice.to_vec(inside.clone()).unwrap() == values);
        assert_eq!(sent(&home) - before, 0, "{fabric:?}");
        // Another node reads whole blocks of it, and keeps nothing: it costs no packet once more.
        let blocks = 1_024..98_944;
        assert!(there.to_vec(blocks.clone()).unwrap() == values[24..97_944]);
        assert!(fetches(&other) > 0);
        let before = sent(&home);
        slice.write_from(inside.start, &values).unwrap();
        assert_eq!(sent(&home) - before, 0, "{fabric:?}");
    }
}

#[test]
fn many_blocks_come_by_one_request() {
    for fabric in [Fabric::Udp, Fabric::Shm] {
        let rack = rack(fabric, Mode::Switch, None);
        let slice = rack.node(0).alloc_slice::<u8>(4 << 20).unwrap();
        let there = rack
            .node(1)
            .attach_slice::<u8>(slice.addr(), slice.len())
            .unwrap();
        let before = sent(&rack.node(1));
        there.to_vec(0..slice.len()).unwrap();
        // 32 KiB a packet; what is lost in sockets is asked for again,
        // and the blocks at the ends have been read before.
        let after = sent(&rack.node(1)) - before;
        assert!(
            (126..400).contains(&after),
            "{fabric:?}: {after} packets for 4 MiB"
        );
        // In a cache of 256 KiB nothing has moved.
        let kept = rack.node(1).metrics().events;
        assert!(kept.read_miss <= 4 && kept.evict_shared == 0, "{kept:?}");
    }
}

#[test]
fn many_blocks_go_by_one_request_and_no_copy_stays() {
    for fabric in [Fabric::Udp, Fabric::Shm] {
        let rack = rack(fabric, Mode::Switch, None);
        let slice = rack.node(0).alloc_slice::<u8>(4 << 20).unwrap();
        let there = rack.node(1).attach_slice::<u8>(slice.addr(), slice.len());
        let there = there.unwrap();
        let values: Vec<u8> = (0..slice.len()).map(|at| (at / 7) as u8).collect();
        let before = sent(&rack.node(1));
        there.write_from(0, &values).unwrap();
        let after = sent(&rack.node(1)) - before;
        assert!(
            (126..400).contains(&after),
            "{fabric:?}: {after} packets for 4 MiB"
        );
        let events = rack.node(1).metrics().events;
        assert!(events.write_miss <= 4, "{events:?}");
        assert!(slice.to_vec(0..slice.len()).unwrap() == values);
        // Nobody has a copy: the home goes on alone.
        let inside = BLOCK..slice.len() - BLOCK;
        let misses = || rack.node(0).metrics().events.misses();
        let before = misses();
        slice.write_from(inside.start, &values[inside]).unwrap();
        assert_eq!(misses(), before);
    }
}

#[test]
fn caches_lose_what_another_node_writes_in_bulk() {
    const WORDS: usize = BLOCK / 8;
    const BLOCKS: usize = 100;
    for fabric in FABRICS {
        for mode in MODES {
            let rack = rack(fabric, mode, None);
            let slice = rack.node(0).alloc_slice::<u64>(BLOCKS * WORDS).unwrap();
            let at = |n: usize| {
                let slice = rack.node(n).attach_slice::<u64>(slice.addr(), slice.len());
                slice.unwrap()
            };
            let (writer, other) = (at(1), at(2));
            // Some blocks have copies elsewhere, some are changed there, and some are the writer's
            // own.
            for block in (0..BLOCKS).step_by(9) {
                other.get(block * WORDS).unwrap();
                other.set((block + 3) % BLOCKS * WORDS, 5).unwrap();
                writer.set((block + 5) % BLOCKS * WORDS, 6).unwrap();
            }
            let values: Vec<u64> = (1..=slice.len() as u64).collect();
            writer.write_from(0, &values).unwrap();
            for reader in [&other, &slice, &writer] {
                for block in 0..BLOCKS {
                    let found = reader.get(block * WORDS).unwrap();
                    assert_eq!(found, values[block * WORDS], "{fabric:?}, {mode:?}");
                }
                assert!(reader.to_vec(0..slice.len()).unwrap() == values);
            }
        }
    }
}

/// Which requesters of node 1 have sent such requests, by a rack's trace.
fn requesters(trace: &str, kind: Kind) -> BTreeSet<&str> {
    let of_kind = |line: &&str| line.contains(kind.name()) && line.contains(" from 1 ");
    let lines = trace.lines().filter(of_kind);
    let words = lines.filter_map(|line| line.split(" of ").nth(1)?.split('#').next());
    words.filter(|who| who.starts_with("1.")).collect()
}

#[test]
fn clean_copies_become_writable_several_at_a_time() {
    const WORDS: usize = BLOCK / 8;
    const BLOCKS: usize = 64;
    for fabric in [Fabric::Udp, Fabric::Shm] {
        let name = format!("rackmem-bulk-{fabric:?}-{}.trace", std::process::id());
        let file = std::env::temp_dir().join(name);
        let rack = Rack::builder(2).fabric(fabric).block_size(BLOCK);
        let rack = rack.memory(64 << 20).trace(&file).build().unwrap();
        let slice = rack.node(0).alloc_slice::<u64>(BLOCKS * WORDS).unwrap();
        let there = rack.node(1).attach_slice::<u64>(slice.addr(), slice.len());
        let there = there.unwrap();
        for block in 0..BLOCKS {
            there.get(block * WORDS).unwrap();
        }
        let before = rack.node(1).metrics().events;
        let values: Vec<u64> = (1..=slice.len() as u64).collect();
        there.write_from(0, &values).unwrap();
        let after = rack.node(1).metrics().events;
        assert_eq!(after.write_shared - before.write_shared, BLOCKS as u64);
        assert_eq!(sent_of(&rack.node(1), Kind::Store), 0);
        for reader in [&there, &slice] {
            assert!(
                reader.to_vec(0..slice.len()).unwrap() == values,
                "{fabric:?}"
            );
        }
        drop(rack);
        let trace = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let several = requesters(&trace, Kind::WriteShared);
        assert!(several.len() >= 4, "{fabric:?}: {several:?}");
    }
}

/// Node 2 reads a range that node 1 has written by way of its cache, and writes it, and back: each
/// block is where the other node has changed it.
#[test]
fn what_other_nodes_have_changed_is_read_and_written_several_blocks_at_a_time() {
    const WORDS: usize = BLOCK / 8;
    const BLOCKS: usize = 64;
    for fabric in [Fabric::Udp, Fabric::Shm] {
        for home in 0..2 {
            let name = format!(
                "rackmem-handed-{fabric:?}-{home}-{}.trace",
                std::process::id()
            );
            let file = std::env::temp_dir().join(name);
            let rack = Rack::builder(3).fabric(fabric).block_size(BLOCK);
            let rack = rack.memory(64 << 20).trace(&file).build().unwrap();
            let slice = rack.node(home).alloc_slice::<u64>(BLOCKS * WORDS);
            let addr = slice.unwrap().addr();
            let of = |node: usize| rack.node(node).attach_slice::<u64>(addr, BLOCKS * WORDS);
            let nodes = [of(1).unwrap(), of(2).unwrap()];
            // So that it has each of them, whichever home could have taken it.
            for block in 0..BLOCKS {
                nodes[0].set(block * WORDS, 1).unwrap();
            }
            for round in 1..=4_u64 {
                let [writer, reader] = [1, 0].map(|more| (round as usize + more) % 2);
                let values = vec![round; BLOCKS * WORDS];
                nodes[writer].write_from(0, &values).unwrap();
                assert!(nodes[reader].to_vec(0..BLOCKS * WORDS).unwrap() == values);
            }
            // Nobody has read it meanwhile: who writes has no copy, and the other one the newest.
            for round in 5..=8_u64 {
                let values = vec![round; BLOCKS * WORDS];
                nodes[round as usize % 2].write_from(0, &values).unwrap();
            }
            assert!(nodes[1].to_vec(0..BLOCKS * WORDS).unwrap() == vec![8; BLOCKS * WORDS]);
            drop((nodes, rack));
            let trace = std::fs::read_to_string(&file).unwrap();
            std::fs::remove_file(&file).unwrap();
            let several = [Kind::ReadMiss, Kind::WriteMiss, Kind::WriteShared]
                .map(|kind| requesters(&trace, kind).len());
            // One that another thread looks after just then is passed over, and another one taken.
            let enough = several
                .iter()
                .zip([8, 4, 4])
                .all(|(is, least)| *is >= least);
            assert!(enough, "{fabric:?}, home {home}: {several:?}");
        }
    }
}

/// Two nodes write the same blocks, of which both have clean copies, from both ends: neither waits
/// for a block that the other has while it has one that the other waits for.
#[test]
fn writers_of_the_same_clean_copies_do_not_wait_for_each_other() {
    const WORDS: usize = BLOCK / 8;
    const BLOCKS: usize = 48;
    const HALF: usize = BLOCKS / 2 * WORDS;
    for (fabric, faults) in [
        (Fabric::Shm, None),
        (Fabric::Udp, None),
        (Fabric::Shm, Some(ROUGH)),
        (Fabric::Udp, Some(ROUGH)),
    ] {
        let rack = rack(fabric, Mode::Switch, faults);
        let slice = rack.node(0).alloc_slice::<u64>(BLOCKS * WORDS).unwrap();
        std::thread::scope(|scope| {
            for node in 1..3 {
                let slice = rack
                    .node(node)
                    .attach_slice::<u64>(slice.addr(), slice.len());
                let slice = slice.unwrap();
                scope.spawn(move || {
                    for round in 1..=20 {
                        for block in 0..BLOCKS {
                            let word = slice.get(block * WORDS + block).unwrap();
                            let last = slice.get(block * WORDS + WORDS - 1).unwrap();
                            // Other blocks may be newer, and each look is one of its own.
                            assert!(word <= 40 && last <= 40);
                        }
                        let values = vec![round * 2 - (node as u64 - 1); HALF];
                        let halves = if node == 1 { [0, HALF] } else { [HALF, 0] };
                        for from in halves {
                            slice.write_from(from, &values).unwrap();
                        }
                    }
                });
            }
        });
        let found = slice.to_vec(0..slice.len()).unwrap();
        for block in found.chunks(WORDS) {
            assert!(block.iter().all(|word| word == &block[0]), "{fabric:?}");
            assert!([39, 40].contains(&block[0]), "{fabric:?}: {}", block[0]);
        }
    }
}

/// Single blocks are written one after the other while a third node reads all of them in bulk.
#[test]
fn a_bulk_reader_finds_whole_blocks_that_only_grow_and_none_is_lost() {
    const WORDS: usize = BLOCK / 8;
    const BLOCKS: usize = 40;
    const ROUNDS: u64 = 25;
    for (fabric, faults) in [
        (Fabric::Inline, None),
        (Fabric::Shm, None),
        (Fabric::Udp, None),
        (Fabric::Shm, Some(ROUGH)),
        (Fabric::Udp, Some(ROUGH)),
    ] {
        let rack = rack(fabric, Mode::Switch, faults);
        let slice = rack.node(0).alloc_slice::<u64>(BLOCKS * WORDS).unwrap();
        let at = |n: usize| {
            let slice = rack.node(n).attach_slice::<u64>(slice.addr(), slice.len());
            slice.unwrap()
        };
        let (writer, reader) = (at(2), at(1));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    for range in writer.blocks() {
                        let add = |words: &mut [u64]| words.iter_mut().for_each(|word| *word += 1);
                        writer.update(range, add).unwrap();
                    }
                }
                over.store(true, Relaxed);
            });
            let mut before = vec![0; BLOCKS];
            loop {
                let last = over.load(Relaxed);
                let found = reader.to_vec(0..slice.len()).unwrap();
                for (block, before) in found.chunks(WORDS).zip(&mut before) {
                    assert!(block.iter().all(|word| word == &block[0]), "{fabric:?}");
                    assert!(block[0] >= *before && block[0] <= ROUNDS, "{fabric:?}");
                    *before = block[0];
                }
                if last {
                    assert_eq!(before, [ROUNDS; BLOCKS], "{fabric:?}");
                    break;
                }
            }
        });
    }
}

/// One writer at home, one elsewhere, each by whole blocks of one value: whoever reads in bulk
/// finds blocks of one value.
#[test]
fn no_block_is_torn_while_others_write() {
    const BLOCKS: usize = 64;
    const WORDS: usize = BLOCK / 8;
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::Switch, None);
        let slice = rack.node(0).alloc_slice::<u64>(BLOCKS * WORDS).unwrap();
        let over = AtomicBool::new(false);
        let attach = |n: usize| {
            let slice = rack.node(n).attach_slice::<u64>(slice.addr(), slice.len());
            slice.unwrap()
        };
        std::thread::scope(|scope| {
            let (over, attach) = (&over, &attach);
            for (node, odd) in [(0, 0), (2, 1)] {
                scope.spawn(move || {
                    let (slice, mut rng) = (attach(node), fastrand::Rng::with_seed(node as u64));
                    let mut value = odd;
                    while !over.load(Relaxed) {
                        value += 2;
                        let (from, count) = (rng.usize(..BLOCKS - 8), rng.usize(1..8));
                        let values = vec![value; count * WORDS];
                        slice.write_from(from * WORDS, &values).unwrap();
                    }
                });
            }
            let reader = attach(1);
            for _ in 0..60 {
                let values = reader.to_vec(0..BLOCKS * WORDS).unwrap();
                for block in values.chunks(WORDS) {
                    assert!(block.iter().all(|value| value == &block[0]), "{fabric:?}");
                }
            }
            over.store(true, Relaxed);
        });
    }
}

#[test]
fn a_bulk_operation_that_fails_says_how_far_it_has_come() {
    let rack = Rack::builder(2)
        .fabric(Fabric::Udp)
        .mode(Mode::HomeOnly)
        .faults(Faults::NONE)
        .memory(64 << 20)
        .cache(4 << 20)
        .patience(Duration::from_millis(300))
        .build()
        .unwrap();
    const LEN: usize = 1 << 20;
    let slice = rack.node(0).alloc_slice::<u64>(LEN).unwrap();
    let values: Vec<u64> = (0..LEN as u64).collect();
    slice.write_from(0, &values).unwrap();
    let there = rack.node(1).attach_slice::<u64>(slice.addr(), LEN).unwrap();
    // Its first half is in this node's cache, partly; then the home is not to be reached.
    let mut first = vec![0; 100_000];
    for (at, value) in first.iter_mut().enumerate() {
        *value = there.get(at).unwrap();
    }
    rack.faults()
        .unwrap()
        .part(&[End::Node(0)], &[End::Node(1)]);
    let mut out = vec![u64::MAX; LEN];
    let why = there.read_into(0, &mut out).unwrap_err();
    assert!(
        matches!(why.error, AccessError::Rack(RackError::Timeout { node: 0 })),
        "{why}"
    );
    assert!(why.done >= first.len() && why.done < LEN, "{why}");
    assert!(out[..why.done] == values[..why.done]);
    let why = there.write_from(LEN / 2, &values[LEN / 2..]).unwrap_err();
    assert!(
        matches!(why.error, AccessError::Rack(RackError::Timeout { node: 0 })),
        "{why}"
    );
    assert_eq!(why.done, 0);
    rack.faults().unwrap().heal();
    there.read_into(0, &mut out).unwrap();
    assert!(out == values);
}

#[test]
fn a_home_that_is_cut_off_while_it_is_written_has_what_was_done() {
    let rack = Rack::builder(2)
        .fabric(Fabric::Udp)
        .mode(Mode::HomeOnly)
        .faults(Faults::NONE)
        .memory(64 << 20)
        .cache(4 << 20)
        .patience(Duration::from_millis(300))
        .build()
        .unwrap();
    const LEN: usize = 1 << 20;
    let slice = rack.node(0).alloc_slice::<u64>(LEN).unwrap();
    let there = rack.node(1).attach_slice::<u64>(slice.addr(), LEN).unwrap();
    let faults = rack.faults().unwrap();
    let round = AtomicU64::new(0);
    let (why, value) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while round.load(Relaxed) < 3 {
                std::thread::yield_now();
            }
            faults.part(&[End::Node(0)], &[End::Node(1)]);
        });
        loop {
            let value = 1 + round.fetch_add(1, Relaxed);
            if let Err(why) = there.write_from(0, &vec![value; LEN]) {
                break (why, value);
            }
        }
    });
    assert!(
        matches!(why.error, AccessError::Rack(RackError::Timeout { node: 0 })),
        "{why}"
    );
    faults.heal();
    let found = slice.to_vec(0..LEN).unwrap();
    assert!(found[..why.done].iter().all(|found| *found == value));
    assert!(found.iter().all(|found| [value - 1, value].contains(found)));
    // What is written next is what stays: nothing of before comes late.
    there.write_from(0, &vec![value + 1; LEN]).unwrap();
    assert!(slice.to_vec(0..LEN).unwrap() == vec![value + 1; LEN]);
}

#[test]
fn what_is_not_in_the_slice_is_refused_and_changes_nothing() {
    let rack = Rack::local(2).unwrap();
    let slice = rack.node(0).alloc_slice::<u16>(100).unwrap();
    let bad = |error: AccessError| {
        assert!(
            matches!(error, AccessError::OutOfBounds { of: 100, .. }),
            "{error}"
        )
    };
    bad(slice.get(100).unwrap_err());
    bad(slice.set(usize::MAX, 1).unwrap_err().error);
    bad(slice.read_into(99, &mut [0; 2]).unwrap_err().error);
    bad(slice.write_from(1, &[1; 100]).unwrap_err().error);
    bad(slice.to_vec(0..usize::MAX).unwrap_err().error);
    bad(slice.update(99..101, |_| ()).unwrap_err());
    assert!(
        slice
            .to_vec(0..100)
            .unwrap()
            .iter()
            .all(|value| *value == 0)
    );
    assert!(rack.node(0).alloc_slice::<u64>(usize::MAX / 2).is_err());
    assert!(rack.node(1).attach_slice::<u64>(3, 1).is_err());
    slice.free().unwrap();
}

#[test]
fn blocks_are_where_one_step_changes_all_of_them() {
    let rack = Rack::builder(2)
        .block_size(256)
        .memory(32 << 20)
        .build()
        .unwrap();
    // Elements of 24 bytes: some cross the border of two blocks, and are in none.
    let slice = rack.node(0).alloc_slice::<[u64; 3]>(100).unwrap();
    let blocks: Vec<_> = slice.blocks().collect();
    assert_eq!(blocks.len(), 2400usize.div_ceil(256));
    assert_eq!(&blocks[..3], &[0..10, 11..21, 22..32]);
    for range in blocks {
        let sum = slice.update(range.clone(), |values| {
            values.iter_mut().for_each(|value| value[1] = 7);
            values.len()
        });
        assert_eq!(sum.unwrap(), range.len());
    }
    assert!(matches!(
        slice.update(0..20, |_| ()),
        Err(AccessError::BadRange { .. })
    ));
    assert_eq!(slice.get(21).unwrap(), [0; 3]);
    assert_eq!(slice.get(22).unwrap(), [0, 7, 0]);
}

#[test]
fn a_large_slice_costs_nothing_before_it_is_used() {
    let rack = Rack::builder(2).memory(8 << 30).build().unwrap();
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let before = resident();
    let slice = rack.node(0).alloc_slice::<f64>(4 << 27).unwrap();
    let grown = resident().saturating_sub(before);
    // Entries of the directory, eight bytes a block of 4 KiB, and what other tests of this process
    // do.
    assert!(grown < 256 << 20, "{grown} bytes");
    assert_eq!(slice.get(slice.len() - 1).unwrap(), 0.0);
    slice.write_from(slice.len() - 1000, &[1.0; 1000]).unwrap();
    let there = rack
        .node(1)
        .attach_slice::<f64>(slice.addr(), slice.len())
        .unwrap();
    let tail = there.to_vec(slice.len() - 2000..slice.len()).unwrap();
    assert_eq!(tail.iter().sum::<f64>(), 1000.0);
}
