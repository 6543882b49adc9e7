//! FaRM's local reads (Fig. 10): cores, the channels of memory, and no network.

use super::chip::CHIP;
use super::cores::CORES;
use super::{BLOCK, Layout, NS, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What a core sees of memory: as an R2P2 does (§5.1).
const MEMORY: Time = 90 * NS;
/// Bytes that are stripped with as many misses at once as there can be (§7.3).
const CHUNK: u32 = 1024;
/// From one block's loads to those of the next: ten instructions, three a cycle (Table 2).
const ISSUE: Time = 1_700;

/// A thread between two loads.
#[derive(Clone, Default)]
struct Thread {
    /// Blocks of this object that it has asked memory for.
    blocks: u16,
    /// When those that are under way have been read, in order.
    under_way: VecDeque<Time>,
    ended: u32,
}

/// Reads a microsecond, of threads that look objects up and read them, `each` times.
pub fn local(layout: Layout, bytes: u32, threads: u8, each: u32) -> f64 {
    let blocks = layout.blocks(bytes);
    let chunk = layout.blocks(CHUNK);
    let lookup = CORES.application;
    let mut channels: [Time; 4] = [0; 4];
    let mut load = |address: u64, now: Time| {
        let channel = &mut channels[(address % 4) as usize];
        *channel = now.max(*channel) + CHIP.channel;
        *channel + MEMORY - CHIP.channel
    };
    let mut state = vec![Thread::default(); usize::from(threads)];
    let start = |thread: usize| Reverse((lookup + thread as Time * 17 * NS, thread));
    let mut agenda: BinaryHeap<_> = (0..state.len()).map(start).collect();
    let mut last = 0;
    while let Some(Reverse((now, thread))) = agenda.pop() {
        let at = &mut state[thread];
        let first = thread as u64 * 3 + u64::from(at.ended) * 7 + u64::from(at.blocks);
        let mut next = match layout {
            // A chunk at once, whose lines are made clean as they come.
            Layout::Versions => {
                let some = chunk.min(blocks - at.blocks);
                at.blocks += some;
                let clean = |clean: Time, nth: u16| {
                    clean.max(load(first + u64::from(nth), now)) + CORES.strip + CORES.fill
                };
                (0..some).fold(now + CORES.chunk / 2, clean)
            }
            // As many blocks as a core has in flight; the oldest leaves when it has been read.
            Layout::Clean => {
                at.blocks += 1;
                let before = at.under_way.back().copied().unwrap_or(0);
                at.under_way
                    .push_back(before.max(load(first, now)) + CORES.block);
                match at.under_way.len() >= CORES.in_flight as usize {
                    true => at.under_way.pop_front().unwrap_or(0).max(now + ISSUE),
                    false => now + ISSUE,
                }
            }
        };
        if at.blocks == blocks {
            next = next.max(at.under_way.back().copied().unwrap_or(0));
            if layout == Layout::Versions {
                // The application reads what was made clean.
                next += Time::from(bytes.div_ceil(BLOCK)) * CORES.block;
            }
            last = last.max(next);
            next += lookup;
            at.under_way.clear();
            (at.blocks, at.ended) = (0, at.ended + 1);
        }
        if at.ended < each {
            agenda.push(Reverse((next, thread)));
        }
    }
    f64::from(each) * f64::from(threads) * 1e6 / last.max(1) as f64
}
