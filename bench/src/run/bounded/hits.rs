//! What a section with one read costs, beside a load and a coherent hit.

use super::super::Result;
use super::Options;
use super::arenas::{ArenaFile, replace};
use crate::report::Report;
use crate::timing;
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec, Domain};
use rackmem::locked::Lock;
use rackmem::{AccessError, ArenaError, Contract, Rack, RegionSpec};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// Operations between two looks at the clock.
const BATCH: u64 = 1024;
/// Places of the ring that dependent loads walk.
const RING: usize = 64;

/// A section with one read of eight bytes, in both back ends, beside a load that waits for the one
/// before.
pub(super) fn run(options: &Options, report: &mut Report) -> Result<()> {
    let ring: Vec<AtomicUsize> = (1..=RING)
        .map(|next| AtomicUsize::new(next % RING))
        .collect();
    let load = time(options, || {
        let (ring, mut at) = (&ring, 0);
        move || {
            at = ring[at & (RING - 1)].load(Relaxed);
            at as u64
        }
    });
    report.add("hit/dependent-load", load, "ns")?;

    let rack = Rack::local(2)?;
    let shared = rack.node(0).alloc_isolated(7u64)?;
    let coherent = time(options, || || shared.read().unwrap_or_default());
    report.add_against("hit/coherent", coherent, "ns", "hit/dependent-load")?;

    let long = Duration::from_secs(1);
    let file = ArenaFile::new("hit");
    let arena = Arena::create(&rack.node(0), &ArenaSpec::new(&file.0, 1 << 20).bound(long))?;
    let slot: ArenaSlot<u64> = arena.slot(0)?;
    let lock = Lock::create(&rack.node(0), ())?;
    replace(&arena, &lock, slot, &7)?;
    // From now on it is older than a quiescence, as most objects are that are read.
    std::thread::sleep(arena.bound());
    arena.quiesce()?;
    let once = || {
        let section = arena.enter()?;
        let value = section.get(slot)?;
        section.finish()?;
        Ok::<_, ArenaError>(value.unwrap_or_default())
    };
    let mapped = time(options, || || once().unwrap_or_default());
    report.add_against("hit/mapped", mapped, "ns", "hit/dependent-load")?;

    let spec = RegionSpec::new("bench/bounded", 64 * 8).contract(Contract::Bounded);
    let domain = Domain::<u64>::of(&rack.node(0).create_region(&spec)?, long)?;
    let once = || {
        let section = domain.enter()?;
        let value = section.get(3)?;
        section.finish()?;
        Ok::<_, AccessError>(value)
    };
    let cached = time(options, || || once().unwrap_or_default());
    report.add_against("hit/cached", cached, "ns", "hit/dependent-load")?;
    Ok(())
}

/// Nanoseconds that it takes.
fn time<W: FnMut() -> u64>(options: &Options, prepare: impl Fn() -> W + Sync) -> f64 {
    let done = timing::run(1, options.duration, |_| {
        let mut work = prepare();
        move || {
            for _ in 0..BATCH {
                black_box(work());
            }
            BATCH
        }
    });
    done.ns_per_operation()
}
