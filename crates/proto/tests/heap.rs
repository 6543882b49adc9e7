//! What of a home's memory is given out, against a model that knows every object.

use rackmem_proto::CHUNK;
use rackmem_proto::heap::{Heap, MAX_OBJECTS, NotAllocated, batch, class};
use std::collections::BTreeMap;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % end
    }
}

/// A heap, and every object that is given out of it: where, and how long.
struct Checked {
    block: u64,
    heap: Heap,
    objects: BTreeMap<u64, u64>,
    /// The same in no order, to draw from.
    drawn: Vec<u64>,
    live: u64,
}

impl Checked {
    fn new(block: u64, bytes: u64) -> Self {
        Checked {
            block,
            heap: Heap::new(block, bytes / block),
            objects: BTreeMap::new(),
            drawn: Vec::new(),
            live: 0,
        }
    }

    /// Takes objects, and holds that they are where they may be, and nobody else's.
    fn alloc(&mut self, len: u64, most: u32) -> Option<u64> {
        let given = self.heap.alloc(len, most)?;
        let class = class(len, self.block).expect("it was given out");
        assert!(given.objects & 1 == 1 && given.objects.count_ones() <= most);
        for nth in (0..MAX_OBJECTS).filter(|nth| given.objects >> nth & 1 == 1) {
            let first = given.first + u64::from(nth) * class;
            let end = first + class;
            assert!(end <= self.heap.size());
            let before = self.objects.range(..end).next_back();
            assert!(before.is_none_or(|(at, have)| at + have <= first), "{len}");
            let one_block = first / self.block == (end - 1) / self.block;
            assert!(one_block || first.is_multiple_of(self.block), "{len}");
            self.objects.insert(first, class);
            self.drawn.push(first);
            self.live += class;
        }
        assert_eq!(self.heap.live(), self.live);
        Some(given.first)
    }

    fn free(&mut self, first: u64) {
        let class = self.objects.remove(&first).expect("it is given out");
        assert_eq!(self.heap.free(first, class), Ok(()));
        self.live -= class;
        assert_eq!(self.heap.live(), self.live);
    }

    /// Frees any one.
    fn free_any(&mut self, random: &mut Random) {
        let at = random.below(self.drawn.len() as u64) as usize;
        let first = self.drawn.swap_remove(at);
        self.free(first);
    }

    fn free_all(&mut self) {
        for first in std::mem::take(&mut self.drawn) {
            self.free(first);
        }
    }
}

#[test]
fn a_class_is_close_to_what_was_asked_and_never_less() {
    for block in [256, 4096, 65_536] {
        for len in (0..200_000).step_by(37) {
            let class = class(len, block).unwrap();
            assert!(class >= len && class >= 16);
            let close = (len * 5 / 4 + 16).max(len.next_multiple_of(block));
            assert!(class <= close, "{len} in {class}");
            let whole = class <= block / 2 || class.is_multiple_of(block);
            assert!(whole, "{len} in {class} crosses blocks");
        }
        assert_eq!(class(u64::MAX, block), None);
        assert_eq!(class(u64::MAX - block, block), None);
        assert_eq!(class(1 << 48, block), None);
        assert_eq!(class(CHUNK + 1, block), Some(CHUNK + block));
    }
}

/// A million objects, their sizes growing from words to half a megabyte: nine tenths of memory can
/// be used whenever one looks, and at the end it is one run again.
#[test]
fn churn_with_sizes_that_grow_leaves_memory_usable() {
    const SIZE: u64 = 64 << 20;
    const ROUNDS: u64 = 1_000_000;
    let mut random = Random(0x5eed);
    let mut memory = Checked::new(4096, SIZE);
    for round in 0..ROUNDS {
        let limit = 64 + 500_000 * round / ROUNDS;
        // Three of four are small beside the largest, as values are.
        let len = match random.below(4) {
            0 => 1 + random.below(limit),
            _ => 1 + random.below(limit.min(6000)),
        };
        let most = batch(class(len, 4096).unwrap()).min(1 + random.below(4) as u32);
        while memory.live > SIZE / 10 * 9 || memory.alloc(len, most).is_none() {
            // The longest wants an unbroken run; still none is refused while two fifths are free.
            assert!(
                memory.live > SIZE / 5 * 3,
                "{} live at {round}",
                memory.live
            );
            memory.free_any(&mut random);
        }
        if round % 100_000 == 99_999 {
            let mine = memory.drawn.len();
            while memory.alloc(4096, 1).is_some() {}
            let used = memory.live;
            assert!(used >= SIZE / 10 * 9, "{used} of {SIZE} in use at {round}");
            for first in memory.drawn.split_off(mine) {
                memory.free(first);
            }
        }
    }
    memory.free_all();
    let all = memory.alloc(SIZE, 1);
    assert_eq!(all, Some(0), "nothing is left cut up");
}

#[test]
fn one_size_after_the_other_can_have_all_memory() {
    let mut memory = Checked::new(4096, 1 << 20);
    for len in [16, 100_000, 24, 2048, 4096, 5000, 16, 1 << 20, 1000] {
        while memory.alloc(len, MAX_OBJECTS).is_some() {}
        assert!(memory.live > (1 << 20) / 10 * 9, "{len}: {}", memory.live);
        memory.free_all();
        assert_eq!(memory.heap.live(), 0);
    }
}

/// What is copied into something larger each time, like a value that is appended to.
#[test]
fn a_block_that_grows_reaches_half_of_memory() {
    const SIZE: u64 = 256 << 20;
    let mut memory = Checked::new(4096, SIZE);
    // The host's own, as at node 0.
    memory.heap.reserve(256 << 10);
    memory.live = memory.heap.live();
    let (mut have, mut len) = (memory.alloc(40_000, 1).unwrap(), 40_000);
    while let Some(more) = memory.alloc(len + 40_000, 1) {
        memory.free(have);
        (have, len) = (more, len + 40_000);
    }
    assert!(len > SIZE / 20 * 9, "{len}");
    // Freed before, it can have all.
    memory.free(have);
    while let Some(more) = memory.alloc(len, 1) {
        memory.free(more);
        len += 40_000;
    }
    assert!(len > SIZE / 100 * 99, "{len}");
}

#[test]
fn what_is_not_given_out_cannot_be_freed() {
    let mut heap = Heap::new(4096, 64);
    let small = heap.alloc(100, 1).unwrap().first;
    let run = heap.alloc(10_000, 1).unwrap().first;
    for (first, len) in [
        (small + 8, 100),
        (small + 112, 100),
        (small, 16),
        (small, 4096),
        (run, 100),
        (run, 4096),
        (run, 20_000),
        (run + 4096, 8192),
        (run + 1, 10_000),
        (63 * 4096, 4096),
        (1 << 40, 4096),
        (1 << 40, 100),
        (u64::MAX, 100),
        (run, u64::MAX),
        (run, 0),
    ] {
        assert_eq!(heap.free(first, len), Err(NotAllocated), "{first} {len}");
    }
    // Any length of its class is the object's.
    assert_eq!(heap.free(small, 97), Ok(()));
    assert_eq!(heap.free(run, 12_000), Ok(()));
    assert_eq!(heap.free(small, 97), Err(NotAllocated));
    assert_eq!(heap.free(run, 12_000), Err(NotAllocated));
    assert_eq!(heap.live(), 0);
}

#[test]
fn impossible_sizes_are_refused() {
    for blocks in [0, 1, 64] {
        let mut heap = Heap::new(4096, blocks);
        for len in [
            u64::MAX,
            u64::MAX - 4095,
            1 << 63,
            1 << 48,
            blocks * 4096 + 1,
        ] {
            assert_eq!(heap.alloc(len, u32::MAX), None, "{len}");
        }
        assert_eq!(heap.reserve(blocks * 4096 + 1), None);
        assert_eq!(heap.alloc(1, 0).is_some(), blocks != 0, "at least one");
    }
}

#[test]
fn what_is_reserved_is_never_freed() {
    let mut heap = Heap::new(4096, 64);
    assert_eq!(heap.reserve(3 * 4096), Some(0));
    assert_eq!(heap.reserve_aligned(8 * 4096, 8 * 4096), Some(8 * 4096));
    assert_eq!(heap.free(0, 3 * 4096), Err(NotAllocated));
    assert_eq!(heap.free(8 * 4096, 8 * 4096), Err(NotAllocated));
    assert_eq!(heap.live(), 11 * 4096);
    // What is between them is free.
    let between = heap.alloc(5 * 4096, 1).unwrap();
    assert_eq!(between.first, 3 * 4096);
    assert_eq!(heap.longest(), 48 * 4096);
    assert_eq!(heap.reserve_aligned(64 * 4096, 4096), None);
}

/// Whoever is given memory writes all of it. What is given as zeros must be memory that nobody has
/// written since it was zeros.
#[test]
fn what_is_said_to_be_zeros_was_not_used_since_it_was() {
    const BLOCKS: u64 = 96;
    let mut heap = Heap::new(4096, BLOCKS);
    let mut written = vec![false; (BLOCKS * 4096 / 8) as usize];
    let mut given: Vec<(u64, u64)> = Vec::new();
    let words = |at: u64, len: u64| (at / 8) as usize..((at + len) / 8) as usize;
    let (mut random, mut zeros, mut used, mut cleaned) = (7u64, 0, 0, 0);
    for step in 0..60_000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let dice = random >> 33;
        let len = [16, 24, 100, 700, 2048, 4096, 12_000][(dice % 7) as usize];
        let wants = given.is_empty() || dice >> 20 & 1 == 0;
        let some = wants.then(|| heap.alloc(len, 1 + (dice >> 8) as u32 % 8));
        match some.flatten() {
            Some(some) => {
                let class = class(len, 4096).unwrap();
                for nth in (0..32).filter(|nth| some.objects >> nth & 1 == 1) {
                    let at = some.first + nth * class;
                    let range = words(at, class);
                    if some.zeros {
                        assert!(!written[range.clone()].contains(&true), "{step}: {len}");
                    }
                    written[range].fill(true);
                    given.push((at, len));
                }
                zeros += u64::from(some.zeros);
                used += u64::from(!some.zeros);
            }
            None => {
                let victim = (dice >> 4) as usize % given.len();
                let (at, len) = given.swap_remove(victim);
                heap.free(at, len).unwrap();
            }
        }
        // The host cleans a bit, sometimes, and says so of more than is free.
        if dice >> 24 & 15 == 0
            && let Some(run) = heap.used_from(dice % BLOCKS, 4)
        {
            assert!(run.end - run.start <= 4 && run.end <= BLOCKS);
            // It may say so of what is given out as well: that counts for nothing.
            let all = run.start..(run.end + 3).min(BLOCKS);
            for at in all.clone() {
                let overlaps = |(start, len): &(u64, u64)| {
                    (*start / 4096..(*start + *len).div_ceil(4096)).contains(&at)
                };
                if !given.iter().any(overlaps) {
                    written[words(at * 4096, 4096)].fill(false);
                } else {
                    assert!(!run.contains(&at));
                }
            }
            heap.cleaned(all);
            cleaned += 1;
        }
    }
    assert!(
        zeros > 100 && used > 100 && cleaned > 100,
        "{zeros} {used} {cleaned}"
    );
}
