//! Outcomes that two or four threads may see of plain loads and stores, on two nodes: those of one
//! machine's memory (x86-TSO), and no others. Atomic instructions of Rust's `SeqCst` order are
//! instructions of the processor; so are its `Release` and `Acquire`.

use super::{BLOCK, FABRICS, mapped, mapped_with, rack};
use rackmem::{CoherentPages, Fabric, FaultMode, Mode};
use std::sync::Barrier;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

/// Where nodes are processors, rounds are many and faults are what takes time.
const ROUNDS: u64 = 400;
/// So many in each mode, when somebody asks for them.
const MANY: u64 = 1_000_000;

/// The words of a test lie in two blocks, or in one.
fn words(pages: &CoherentPages, apart: bool) -> (&AtomicU64, &AtomicU64) {
    let y = if apart { BLOCK / 8 } else { 64 };
    (&pages.words()[0], &pages.words()[y])
}

/// Runs a round of each thread at the same time, and looks at what they have seen.
fn rounds<const THREADS: usize>(
    rounds: u64,
    threads: [&(dyn Fn(u64) -> (u64, u64) + Sync); THREADS],
    look: impl Fn(u64, [(u64, u64); THREADS]) + Sync,
) {
    let seen: [(AtomicU64, AtomicU64); THREADS] = std::array::from_fn(|_| Default::default());
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for (nth, thread) in threads.iter().enumerate() {
            let (barrier, seen, look) = (&barrier, &seen, &look);
            scope.spawn(move || {
                for round in 1..=rounds {
                    barrier.wait();
                    let (first, second) = thread(round);
                    seen[nth].0.store(first, SeqCst);
                    seen[nth].1.store(second, SeqCst);
                    if barrier.wait().is_leader() {
                        let all = std::array::from_fn(|nth| {
                            let (first, second) = &seen[nth];
                            (first.load(SeqCst), second.load(SeqCst))
                        });
                        look(round, all);
                    }
                }
            });
        }
    });
}

/// Each test on every fabric, with its words in two blocks and in one; and in the other modes.
fn each(run: impl Fn(&[CoherentPages], bool, u64)) {
    for fabric in FABRICS {
        for mode in [Mode::HomeOnly, Mode::Switch] {
            let rack = rack(fabric, mode, 1 << 20);
            let all = mapped(&rack, 2 * BLOCK);
            run(&all, true, ROUNDS);
            all[0].words().iter().for_each(|word| word.store(0, SeqCst));
            run(&all, false, ROUNDS);
        }
    }
    for mode in [FaultMode::Thread, FaultMode::Mprotect] {
        each_in(mode, ROUNDS, &run);
    }
}

fn each_in(mode: FaultMode, rounds: u64, run: &impl Fn(&[CoherentPages], bool, u64)) {
    for apart in [true, false] {
        let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
        run(&mapped_with(&rack, 2 * BLOCK, mode), apart, rounds);
    }
}

/// Each stores one word and loads the other: with fences between, one sees the other's.
#[test]
fn store_buffering() {
    each(store_buffering_of);
}

fn store_buffering_of(all: &[CoherentPages], apart: bool, count: u64) {
    let run = |nth: usize, mirrored: bool| {
        let (x, y) = words(&all[nth], apart);
        let (mine, other) = if mirrored { (y, x) } else { (x, y) };
        move |round| {
            mine.store(round, SeqCst);
            (other.load(SeqCst), 0)
        }
    };
    rounds(
        count,
        [&run(1, false), &run(2, true)],
        |round, [one, two]| {
            assert!(one.0 == round || two.0 == round, "{round}: {one:?} {two:?}");
        },
    );
}

/// Whoever sees the second store sees the first.
#[test]
fn message_passing() {
    each(message_passing_of);
}

fn message_passing_of(all: &[CoherentPages], apart: bool, count: u64) {
    let (x, y) = words(&all[1], apart);
    let send = |round| {
        x.store(round, Release);
        y.store(round, Release);
        (0, 0)
    };
    let (x, y) = words(&all[2], apart);
    let receive = |_| (y.load(Acquire), x.load(Acquire));
    rounds(count, [&send, &receive], |round, [_, (second, first)]| {
        assert!(first >= second, "{round}: {second} before {first}");
    });
}

/// Two see two stores of two others in one order.
#[test]
fn independent_reads_of_independent_writes() {
    each(independent_reads_of_independent_writes_of);
}

fn independent_reads_of_independent_writes_of(all: &[CoherentPages], apart: bool, count: u64) {
    let store = |nth: usize, second: bool| {
        let (x, y) = words(&all[nth], apart);
        let word = if second { y } else { x };
        move |round| {
            word.store(round, SeqCst);
            (0, 0)
        }
    };
    let load = |nth: usize, mirrored: bool| {
        let (x, y) = words(&all[nth], apart);
        let (first, second) = if mirrored { (y, x) } else { (x, y) };
        move |_| {
            let first = first.load(SeqCst);
            (first, second.load(SeqCst))
        }
    };
    let (one, two) = (store(0, false), store(1, true));
    let (three, four) = (load(1, false), load(2, true));
    rounds(
        count,
        [&one, &two, &three, &four],
        |round, [_, _, three, four]| {
            let x_first = three.0 == round && three.1 < round;
            let y_first = four.0 == round && four.1 < round;
            assert!(!(x_first && y_first), "{round}: {three:?} {four:?}");
        },
    );
}

/// One word has one order for all: nobody sees it go back.
#[test]
fn coherence() {
    each(coherence_of);
}

fn coherence_of(all: &[CoherentPages], _: bool, count: u64) {
    let store = |round| {
        all[0].words()[0].store(round, SeqCst);
        (0, 0)
    };
    let load = |nth: usize| {
        let word = &all[nth].words()[0];
        move |_| {
            let first = word.load(Acquire);
            (first, word.load(Acquire))
        }
    };
    rounds(
        count,
        [&store, &load(1), &load(2)],
        |round, [_, one, two]| {
            assert!(one.0 <= one.1 && two.0 <= two.1, "{round}: {one:?} {two:?}");
        },
    );
}

/// `cargo test -p rackmem --release --test mapped -- --ignored`: minutes a mode.
#[test]
#[ignore = "a million rounds a mode take many minutes"]
fn a_million_rounds_in_each_mode() {
    for mode in FaultMode::ALL {
        each_in(mode, MANY / 2, &store_buffering_of);
        each_in(mode, MANY / 2, &message_passing_of);
        each_in(mode, MANY / 2, &independent_reads_of_independent_writes_of);
        each_in(mode, MANY / 2, &coherence_of);
    }
}
