//! Coherent memory with copies as its home, beside memory that one node serves: a miss, a block
//! that goes home, and a write that survives.
//!
//! Node 3 asks. Node 0 serves both: the homes that groups keep, as the lowest live node, and its
//! own memory. A write that survives is beside a write miss without copies: what it adds is an
//! eviction and a majority's round.

use super::{Options, Plain, Progress, Result, add, timed};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use rackmem::{Fabric, Mode, Node, Rack, RegionSpec, Survives};

/// The cases, in the order of their times.
const CASES: [&str; 3] = ["read-miss", "write-back", "write-through"];
const BLOCK: usize = 4096;
const PLACES: usize = 64;
/// Operations for each of a line's.
const SHARE: usize = 2;

/// The same three on every fabric that has packets: inline, all of it is one thread's work.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    for &fabric in options.fabrics.iter().filter(|f| **f != Fabric::Inline) {
        progress(&format!("{}: homes with copies", fabric.name()));
        let rack = Rack::builder(4).fabric(fabric).mode(Mode::HomeOnly);
        let rack = rack.block_size(BLOCK).cache(8 << 20).memory(64 << 20);
        let rack = rack.build()?;
        let node = rack.node(3);
        let region = |name: &str, survives| {
            let spec = RegionSpec::new(name, PLACES * BLOCK).copies(3).on(0);
            node.create_region(&spec.survives(survives))
        };
        let (rest, writes) = (
            region("rest", Survives::Rest)?,
            region("writes", Survives::Writes)?,
        );
        let own = rack.node(0).alloc_bytes(PLACES * BLOCK)?;
        let mut none: [Histogram; 3] = Default::default();
        let mut copies: [Histogram; 3] = Default::default();
        let rounds = (options.operations / SHARE).max(2 * PLACES);
        // Once through all places first: a block's first use in an epoch puts it in place.
        for nth in 0..PLACES + rounds {
            if stop::requested() {
                return Err(super::BenchError::Stopped);
            }
            let (at, counted) = ((nth % PLACES * BLOCK) as u64, nth >= PLACES);
            let place = |base: u64| block(&node, base + at, nth as u8);
            at_rest(place(own), counted, &mut none)?;
            at_rest(place(rest.addr()), counted, &mut copies)?;
            let mut plain = place(own);
            timed(&mut none[2], counted, || plain.write())?;
            plain.leave()?;
            let mut through = place(writes.addr());
            timed(&mut copies[2], counted, || through.write())?;
            through.leave()?;
        }
        for (what, (none, copies)) in CASES.iter().zip(none.iter().zip(&copies)) {
            let case = |of: &str| format!("{}/home/{what}/{of}", fabric.name());
            add(report, &case("none"), none, None)?;
            add(report, &case("copies-3"), copies, Some(&case("none")))?;
        }
    }
    Ok(())
}

fn block(node: &Node, addr: u64, byte: u8) -> Plain {
    Plain {
        node: node.clone(),
        addr,
        bytes: vec![byte; 64],
    }
}

/// A miss, and a block that goes home.
fn at_rest(mut block: Plain, counted: bool, times: &mut [Histogram; 3]) -> Result<()> {
    let [misses, homeward, _] = times;
    timed(misses, counted, || block.read())?;
    block.write()?;
    timed(homeward, counted, || block.leave())
}
