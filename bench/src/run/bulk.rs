//! `bench bulk`: a large slice is created, written at its home, and read at its home and elsewhere,
//! beside `memcpy`.

use super::{BenchError, Progress, Result};
use crate::report::Report;
use crate::stop;
use crate::system::System;
use rackmem::{Fabric, Rack, SharedSlice};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Over which fabrics.
    pub fabrics: Vec<Fabric>,
    /// With a switch, or with home agents only.
    pub mode: System,
    /// Bytes of a block.
    pub block_size: usize,
    /// Bytes of the slice.
    pub size: usize,
    /// Bytes of a node's cache.
    pub cache: usize,
    /// Slices are measured, one after the other, for so long: at least one.
    pub duration: Duration,
}

/// Bytes that the program reads and writes with one call: what it has in hand fits no cache of the
/// processor.
const CALL: usize = 16 << 20;

/// Bytes that are read at once where copies are kept.
const BLOCKS: usize = 64 << 10;

/// Bytes that are moved block by block at most: how many there are does not change how fast it
/// goes.
const CACHED: usize = 64 << 20;

/// What is measured, in this order, each case beside the baseline that does the same to ordinary
/// memory.
const CASES: [(&str, Op, &str); 8] = [
    ("create", Op::Create, "memcpy/fresh"),
    ("write-home", Op::WriteHome, "memcpy/fresh"),
    ("write-home-again", Op::WriteHome, "memcpy"),
    ("read-home", Op::ReadHome, "memcpy"),
    ("read-elsewhere", Op::ReadElsewhere, "memcpy"),
    ("write-elsewhere", Op::WriteElsewhere, "memcpy"),
    // Block by block, by way of the cache.
    ("read-elsewhere/cached", Op::ReadCached, "memcpy"),
    // Blocks of which the writer's own cache has copies, as far as it has room.
    ("write-elsewhere/cached", Op::WriteCached, "memcpy"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Create,
    WriteHome,
    ReadHome,
    ReadElsewhere,
    ReadCached,
    WriteElsewhere,
    WriteCached,
}

impl Op {
    fn writes(self) -> bool {
        matches!(self, Op::WriteHome | Op::WriteElsewhere | Op::WriteCached)
    }
}

/// Runs it.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    progress("memcpy");
    memcpy(report, options)?;
    for &fabric in &options.fabrics {
        let mut rates = Rates::default();
        let measured = measure(fabric, options, &mut rates, progress);
        if stop::requested() {
            report.take_late();
        }
        for ((name, _, baseline), mut rates) in CASES.iter().zip(rates) {
            rates.sort_by(f64::total_cmp);
            let case = format!("{}/{}/{name}", fabric.name(), options.mode.name());
            if let Some(&rate) = rates.get(rates.len() / 2) {
                report.add_against(&case, rate, "MB/s", baseline)?;
            }
        }
        measured?;
    }
    Ok(())
}

/// Of each case, slice by slice.
type Rates = [Vec<f64>; CASES.len()];

/// Measures slices. When it is stopped, `rates` has what was measured.
fn measure(
    fabric: Fabric,
    options: &Options,
    rates: &mut Rates,
    progress: Progress<'_>,
) -> Result<()> {
    let started = Instant::now();
    while rates[0].is_empty() || started.elapsed() < options.duration {
        progress(&format!("{}, slice {}", fabric.name(), rates[0].len() + 1));
        let rack = rack(fabric, options)?;
        let mut slice = Slice::new(&rack, options);
        for ((_, op, _), rates) in CASES.iter().zip(rates.iter_mut()) {
            slice.prepare(*op);
            let began = Instant::now();
            slice.run(*op)?;
            rates.push(rate(slice.bytes(*op), began));
            slice.check()?;
        }
    }
    Ok(())
}

fn rate(bytes: usize, began: Instant) -> f64 {
    bytes as f64 / 1e6 / began.elapsed().as_secs_f64()
}

/// The same bytes by calls of the same length, to untouched memory, and once more.
fn memcpy(report: &mut Report, options: &Options) -> Result<()> {
    let from = vec![1u8; CALL.min(options.size)];
    let copy = |to: &mut [u8]| {
        let began = Instant::now();
        for part in to.chunks_mut(from.len()) {
            part.copy_from_slice(black_box(&from[..part.len()]));
        }
        black_box(to);
        rate(options.size, began)
    };
    let fresh = copy(&mut vec![0; options.size]);
    report.add("memcpy/fresh", fresh, "MB/s")?;
    let again = copy(&mut vec![1; options.size]);
    report.add("memcpy", again, "MB/s")?;
    Ok(())
}

/// Node 0 is the slice's home; node 1 reads it.
fn rack(fabric: Fabric, options: &Options) -> Result<Rack> {
    let builder = options.mode.builder(2).fabric(fabric);
    let builder = builder.block_size(options.block_size).cache(options.cache);
    // Room for the slice, and for what the rack itself has at the beginning of node 0.
    let memory = (options.size as u64 + (64 << 20)).next_multiple_of(32 << 20);
    Ok(builder.memory(memory).build()?)
}

struct Slice<'a> {
    rack: &'a Rack,
    slices: Option<[SharedSlice<u64>; 2]>,
    len: usize,
    /// The first value of each call's.
    base: u64,
    values: Vec<u64>,
}

impl<'a> Slice<'a> {
    fn new(rack: &'a Rack, options: &Options) -> Self {
        let call = CALL.min(options.size) / 8;
        Slice {
            rack,
            slices: None,
            len: options.size / 8,
            base: 0,
            values: (0..call as u64).collect(),
        }
    }

    /// So that what is read shows, and what is written.
    fn prepare(&mut self, op: Op) {
        if op.writes() {
            self.base += 1;
            (self.values.iter_mut().zip(self.base..)).for_each(|(value, new)| *value = new);
        } else if op != Op::Create {
            self.values.fill(0);
        }
    }

    /// Bytes that are moved.
    fn bytes(&self, op: Op) -> usize {
        match op {
            Op::ReadCached | Op::WriteCached => CACHED.min(self.len * 8),
            _ => self.len * 8,
        }
    }

    fn run(&mut self, op: Op) -> Result<()> {
        let Some([here, there]) = self.slices.clone() else {
            let here = self.rack.node(0).alloc_slice(self.len)?;
            let there = self.rack.node(1).attach_slice(here.addr(), self.len)?;
            self.slices = Some([here, there]);
            return Ok(());
        };
        match op {
            Op::Create => Ok(()),
            Op::WriteHome => self.each(op, |at, values| Ok(here.write_from(at, values)?)),
            Op::ReadHome => self.each(op, |at, values| Ok(here.read_into(at, values)?)),
            Op::ReadElsewhere => self.each(op, |at, values| Ok(there.read_into(at, values)?)),
            Op::WriteElsewhere | Op::WriteCached => {
                self.each(op, |at, values| Ok(there.write_from(at, values)?))
            }
            Op::ReadCached => {
                let (node, addr) = (self.rack.node(1), there.addr());
                let mut bytes = vec![0; BLOCKS];
                self.each(op, |at, values| {
                    for (nth, values) in values.chunks_mut(BLOCKS / 8).enumerate() {
                        let part = &mut bytes[..values.len() * 8];
                        node.read(addr + (at * 8 + nth * BLOCKS) as u64, part)?;
                        for (value, bytes) in values.iter_mut().zip(part.as_chunks().0) {
                            *value = u64::from_ne_bytes(*bytes);
                        }
                    }
                    Ok(())
                })
            }
        }
    }

    fn each(
        &mut self,
        op: Op,
        mut f: impl FnMut(usize, &mut [u64]) -> rackmem::Result<()>,
    ) -> Result<()> {
        let (mut done, end) = (0, self.bytes(op) / 8);
        while done < end {
            if stop::requested() {
                return Err(BenchError::Stopped);
            }
            let len = self.values.len().min(end - done);
            f(done, &mut self.values[..len])?;
            done += len;
        }
        Ok(())
    }

    /// What was measured has moved what it should have.
    fn check(&self) -> Result<()> {
        let expected = self.base..self.base + self.values.len() as u64;
        match self.values.iter().copied().eq(expected) {
            true => Ok(()),
            false => Err(BenchError::Missing("the values that were written".into())),
        }
    }
}
