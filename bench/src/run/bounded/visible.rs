//! How old what is read is: from a change until another node reads it.

use super::super::{BenchError, Result};
use super::arenas::{Pair, read, replace};
use super::{Options, time};
use crate::histogram::Histogram;
use crate::report::Report;
use rackmem::bounded::Domain;
use rackmem::{AccessError, Contract, Fabric, Mode, Rack, RegionSpec};
use std::time::{Duration, Instant};

/// How long it may take until a change is read, on a machine that does other things as well.
const SEEN: Duration = Duration::from_secs(60);

/// Times of many changes.
struct Seen {
    /// Until it is read by a thread that does nothing else.
    seen: Histogram,
    /// What a read that asks for the latest takes.
    asked: Histogram,
}

/// Changes a value, and reads it elsewhere until it is there.
fn watch(
    options: &Options,
    mut change: impl FnMut(u64) -> Result<()>,
    read: impl Fn() -> Result<Option<u64>>,
    ask: impl Fn() -> Result<()>,
) -> Result<Seen> {
    let mut times = Seen {
        seen: Histogram::new(),
        asked: Histogram::new(),
    };
    let (begin, mut value) = (Instant::now(), 0);
    while begin.elapsed() < options.duration.max(Duration::from_millis(200)) {
        value += 1;
        change(value)?;
        let changed = Instant::now();
        while read()? != Some(value) {
            if changed.elapsed() > SEEN {
                let what = format!("what was changed is not read within {SEEN:?}");
                return Err(BenchError::Missing(what));
            }
        }
        times.seen.record(changed.elapsed().as_nanos() as u64);
        let asked = Instant::now();
        ask()?;
        times.asked.record(asked.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

fn tell(
    case: &str,
    (times, asked): (&Seen, &str),
    bound: Duration,
    report: &mut Report,
) -> Result<()> {
    let beside = format!("{case}/bound");
    report.add(&beside, bound.as_nanos() as f64, "ns")?;
    for (name, part) in [("p50", 50.0), ("p99", 99.0)] {
        let figure = times.seen.percentile(part) as f64;
        report.add_against(&format!("{case}/{name}"), figure, "ns", &beside)?;
    }
    let median = times.asked.percentile(50.0) as f64;
    report.add_against(&format!("{case}/{asked}"), median, "ns", &beside)?;
    Ok(())
}

/// Objects of an arena, and reads past the cache.
pub(super) fn arenas(options: &Options, bound: Duration, report: &mut Report) -> Result<()> {
    let pair = Pair::new("visible", bound)?;
    let (here, there, slot, lock) = (&pair.here, &pair.there, pair.slot, &pair.lock);
    let times = watch(
        options,
        |value| Ok(replace(here, lock, slot, &value)?),
        || read(there, slot),
        || {
            let section = there.enter()?;
            section.lookup_lazily(|section| section.get(slot))?;
            Ok(())
        },
    )?;
    let case = format!("visible/arena/{}", time(bound));
    tell(&case, (&times, "lazily"), bound, report)
}

/// Items of a region, and quiescences on demand.
pub(super) fn items(
    options: &Options,
    (bound, fabric): (Duration, Fabric),
    report: &mut Report,
) -> Result<()> {
    let rack = Rack::builder(2).fabric(fabric).mode(Mode::HomeOnly);
    let rack = rack.build()?;
    let spec = RegionSpec::new("bench/visible", 64 * 8).contract(Contract::Bounded);
    let here = Domain::<u64>::of(&rack.node(0).create_region(&spec)?, bound)?;
    let there = Domain::<u64>::of(&rack.node(1).open_region(&spec)?, bound)?;
    let times = watch(
        options,
        |value| Ok(here.set(0, &value)?),
        || match there.read(0) {
            Err(AccessError::Stale { .. }) => Ok(None),
            read => Ok(Some(read?)),
        },
        || Ok(there.quiesce()?),
    )?;
    let case = format!("visible/items/{}/{}", fabric.name(), time(bound));
    tell(&case, (&times, "asked"), bound, report)
}
