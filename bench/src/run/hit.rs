//! `bench hit`: what a hit costs, beside a plain atomic load and a memcpy.

use super::{Progress, Result};
use crate::report::Report;
use crate::timing;
use rackmem::{Rack, Shared};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of a block.
    pub block_size: usize,
    /// Time of one case.
    pub duration: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            block_size: 4096,
            duration: Duration::from_millis(300),
        }
    }
}

/// Operations between two looks at the clock.
const BATCH: u64 = 4096;
/// Values in the ring that a dependent read walks.
const RING: usize = 8;

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let rack = Rack::builder(2).block_size(options.block_size).build()?;
    let bench = Bench {
        options,
        rack: &rack,
    };
    for threads in [1usize, 2] {
        progress(&format!("hits, {threads} threads"));
        bench.words(report, threads)?;
        bench.scaling(report, threads)?;
    }
    progress("dependent reads");
    bench.dependent(report)?;
    progress("memory");
    bench.memory(report)?;
    progress("whole blocks");
    bench.blocks(report)
}

struct Bench<'a> {
    options: &'a Options,
    rack: &'a Rack,
}

impl Bench<'_> {
    /// Nanoseconds an operation takes a thread, of `threads` that do it at once.
    fn time<W: FnMut(u64)>(&self, threads: usize, prepare: impl Fn(usize) -> W + Sync) -> f64 {
        timing::run(threads, self.options.duration, |index| {
            let mut work = prepare(index);
            move || {
                // A loop, which the compiler inlines the work into; `for_each` it does not
                // always.
                for nth in 0..BATCH {
                    work(nth);
                }
                BATCH
            }
        })
        .ns_per_operation()
    }

    /// Every thread its own value: what is measured is the hit, not a fight over a cache line.
    fn values(&self) -> Result<Vec<Shared<u64>>> {
        let node = self.rack.node(0);
        Ok((0..2)
            .map(|i| node.alloc_isolated(i))
            .collect::<rackmem::Result<_, rackmem::AllocError>>()?)
    }

    fn words(&self, report: &mut Report, threads: usize) -> Result<()> {
        let name = |case: &str| format!("{case}/threads-{threads}");
        let values = self.values()?;
        let load = self.time(threads, |_| {
            let cell = AtomicU64::new(1);
            move |_| {
                black_box(black_box(&cell).load(Ordering::Acquire));
            }
        });
        report.add(&name("atomic-load"), load, "ns")?;
        let read = self.time(threads, |i| {
            let value = values[i].clone();
            move |_| {
                let _ = black_box(black_box(&value).read());
            }
        });
        report.add_against(&name("read-hit"), read, "ns", &name("atomic-load"))?;
        let add = self.time(threads, |_| {
            let cell = AtomicU64::new(1);
            move |_| {
                black_box(black_box(&cell).fetch_add(1, Ordering::AcqRel));
            }
        });
        report.add(&name("atomic-fetch-add"), add, "ns")?;
        let write = self.time(threads, |i| {
            let value = values[i].clone();
            move |n| {
                let _ = black_box(black_box(&value).write(n));
            }
        });
        report.add_against(&name("write-hit"), write, "ns", &name("atomic-fetch-add"))?;
        Ok(())
    }

    /// All threads read one value: the throughput of two beside that of one.
    fn scaling(&self, report: &mut Report, threads: usize) -> Result<()> {
        let value = self.rack.node(0).alloc_isolated(7u64)?;
        let each = self.time(threads, |_| {
            let value = value.clone();
            move |_| {
                let _ = black_box(black_box(&value).read());
            }
        });
        let rate = threads as f64 * 1e3 / each;
        let name = format!("read-hit-rate/one-value/threads-{threads}");
        match threads {
            1 => report.add(&name, rate, "Mops/s")?,
            _ => report.add_against(&name, rate, "Mops/s", "read-hit-rate/one-value/threads-1")?,
        }
        Ok(())
    }

    /// Every read's result is the next read's address: latency, where the other cases show
    /// throughput.
    fn dependent(&self, report: &mut Report) -> Result<()> {
        let next = |i: usize| ((i + 1) % RING) as u64;
        let cells: [AtomicU64; RING] = std::array::from_fn(|i| AtomicU64::new(next(i)));
        let load = self.time(1, |_| {
            let mut at = 0;
            let cells = &cells;
            move |_| at = cells[at % RING].load(Ordering::Acquire) as usize
        });
        report.add("dependent/atomic-load", load, "ns")?;
        let node = self.rack.node(0);
        let ring: Vec<Shared<u64>> = (0..RING)
            .map(|i| node.alloc(next(i)))
            .collect::<rackmem::Result<_, rackmem::AllocError>>()?;
        let read = self.time(1, |_| {
            let mut at = 0;
            let ring = &ring;
            move |_| at = ring[at % RING].read().unwrap_or_default() as usize
        });
        report.add_against("dependent/read-hit", read, "ns", "dependent/atomic-load")?;
        Ok(())
    }

    /// Memory of this node and of another, beside the process's own.
    fn memory(&self, report: &mut Report) -> Result<()> {
        for len in [64, self.options.block_size] {
            let own = self.time(1, |_| {
                move |_| drop(black_box(Vec::<u8>::with_capacity(black_box(len))))
            });
            let malloc = format!("malloc-free/{len}");
            report.add(&malloc, own, "ns")?;
            for home in 0..self.rack.nodes().len().min(2) as u16 {
                let pair = self.time(1, |_| {
                    let node = self.rack.node(0);
                    move |_| {
                        let addr = node.alloc_bytes_on(home, len);
                        let _ = addr.and_then(|addr| node.free_bytes(addr, len));
                    }
                });
                let whose = if home == 0 { "own" } else { "other" };
                let name = format!("alloc-free/{whose}/{len}");
                report.add_against(&name, pair, "ns", &malloc)?;
            }
        }
        Ok(())
    }

    fn blocks(&self, report: &mut Report) -> Result<()> {
        let len = self.options.block_size;
        let node = self.rack.node(0);
        let addr = node.alloc_bytes(len)?;
        node.write(addr, &vec![1; len])?;
        let from = vec![1u8; len];
        let copy = self.time(1, |_| {
            let mut to = vec![0u8; len];
            let from = &from;
            move |_| black_box(&mut to).copy_from_slice(black_box(from))
        });
        report.add("memcpy/block", copy, "ns")?;
        let read = self.time(1, |_| {
            let (node, mut to) = (node.clone(), vec![0u8; len]);
            move |_| {
                let _ = node.read(addr, black_box(&mut to));
            }
        });
        report.add_against("read-hit/block", read, "ns", "memcpy/block")?;
        let write = self.time(1, |_| {
            let (node, from) = (node.clone(), &from);
            move |_| {
                let _ = node.write(addr, black_box(from));
            }
        });
        report.add_against("write-hit/block", write, "ns", "memcpy/block")?;
        Ok(())
    }
}
