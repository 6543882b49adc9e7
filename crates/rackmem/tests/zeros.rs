//! Memory is handed out as zeros, whoever had it before.

use rackmem::{Fabric, Mode, Node, Rack, RegionSpec};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const MEMORY: u64 = 32 << 20;
const SIZES: [usize; 8] = [8, 24, 100, 1000, 2048, 4096, 20_000, 300_000];

fn everywhere(test: impl Fn(&Rack)) {
    for fabric in [Fabric::Inline, Fabric::Shm, Fabric::Udp] {
        // With a small cache what was written goes home, and with a large one it stays.
        for cache in [256 << 10, 16 << 20] {
            let rack = Rack::builder(3).fabric(fabric).memory(MEMORY).cache(cache);
            test(&rack.mode(Mode::Switch).build().unwrap());
        }
    }
}

fn zeros(node: &Node, addr: u64, len: usize) {
    let mut bytes = vec![1; len];
    node.read(addr, &mut bytes).unwrap();
    let old = bytes.iter().position(|byte| *byte != 0);
    assert_eq!(old, None, "{len} bytes at {addr:#x}");
}

#[test]
fn what_others_have_written_and_freed_is_handed_out_as_zeros() {
    everywhere(|rack| {
        let nodes: Vec<Node> = (0..3).map(|id| rack.node(id)).collect();
        let mut kept = VecDeque::new();
        let mut random = 1u64;
        for _ in 0..400 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let dice = (random >> 33) as usize;
            let (len, home) = (SIZES[dice % SIZES.len()], (dice >> 3) as u16 % 3);
            let [asks, reads, writes, frees] = [5, 7, 9, 11].map(|bit| &nodes[(dice >> bit) % 3]);
            let addr = asks.alloc_bytes_on(home, len).unwrap();
            zeros(reads, addr, len);
            writes.write(addr, &vec![0xab; len]).unwrap();
            kept.push_back((addr, len));
            if kept.len() > 20 {
                let at = dice % kept.len();
                let (addr, len) = kept.swap_remove_back(at).unwrap();
                frees.free_bytes(addr, len).unwrap();
            }
        }
    });
}

/// All of a home's memory is written, freed, and had again in other sizes.
#[test]
fn all_of_memory_is_zeros_the_second_time() {
    everywhere(|rack| {
        let (home, far) = (rack.node(1), rack.node(2));
        for len in [1 << 20, 4096, 1000, 1 << 20] {
            let mut all = Vec::new();
            for node in [&home, &far] {
                // The larger part on the home's own threads: the others' way is longer.
                let most = if node.id() == 1 { MEMORY } else { 1 << 20 };
                let mut had = 0;
                while had < most
                    && let Ok(addr) = node.alloc_bytes_on(1, len)
                {
                    zeros(node, addr, len);
                    node.write(addr, &vec![0xcd; len]).unwrap();
                    all.push(addr);
                    had += len as u64;
                }
            }
            for addr in all {
                home.free_bytes(addr, len).unwrap();
            }
        }
    });
}

#[test]
fn values_and_regions_are_zeros_where_others_were() {
    everywhere(|rack| {
        let (one, two) = (rack.node(1), rack.node(2));
        for round in 0..3u64 {
            let spec = RegionSpec::new("r", 100_000).on(1);
            let region = two.create_region(&spec).unwrap();
            zeros(&one, region.addr(), region.bytes());
            two.write(region.addr(), &vec![0xef; 100_000]).unwrap();
            one.remove_region("r").unwrap();
            let value = two.alloc::<[u64; 4]>([round; 4]).unwrap();
            value.write([u64::MAX; 4]).unwrap();
            value.free().unwrap();
            let small = two.alloc::<u32>(round as u32).unwrap();
            let mut word = [1; 8];
            one.read(small.addr(), &mut word).unwrap();
            assert_eq!(
                u64::from_le_bytes(word),
                round,
                "what is behind it is zeros"
            );
            one.write(small.addr(), &[0xff; 8]).unwrap();
            small.free().unwrap();
        }
    });
}

/// A home cleans what is free, so that its next users find zeros without making them,
/// and the system has the pages.
#[test]
fn free_memory_is_cleaned_in_the_background() {
    everywhere(|rack| {
        let node = rack.node(1);
        let before = node.metrics().memory.used;
        let large = node.alloc_bytes(20 << 20).unwrap();
        let kept = node.alloc_bytes(5000).unwrap();
        let small: Vec<u64> = (0..2000).map(|_| node.alloc_bytes(1000).unwrap()).collect();
        node.write(large, &vec![1; 20 << 20]).unwrap();
        node.write(kept, &[2; 5000]).unwrap();
        small
            .iter()
            .for_each(|at| node.write(*at, &[3; 1000]).unwrap());
        assert!(node.metrics().memory.used > before + (21 << 20));
        node.free_bytes(large, 20 << 20).unwrap();
        small
            .iter()
            .for_each(|at| node.free_bytes(*at, 1000).unwrap());
        // What stays: what is kept, and one block cut up for the next small object.
        let began = Instant::now();
        while node.metrics().memory.used > before + 3 * 4096 {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut bytes = [0; 5000];
        node.read(kept, &mut bytes).unwrap();
        assert_eq!(bytes, [2; 5000]);
        let again = node.alloc_bytes(20 << 20).unwrap();
        zeros(&rack.node(2), again, 20 << 20);
    });
}
