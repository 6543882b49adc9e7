//! Arenas: how old what is read is, how much memory waits, and a reader that stays in its section.
//! With a cache of its own for each node, which compares nothing in speed.

use super::super::{BenchError, Result};
use super::Options;
use crate::histogram::Histogram;
use crate::report::Report;
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec};
use rackmem::locked::Lock;
use rackmem::{ArenaError, Rack};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long it may take until an assignment is read, on a machine that does other things as well.
const SEEN: Duration = Duration::from_secs(60);

/// A file in memory that goes with this value.
pub(super) struct ArenaFile(pub PathBuf);

impl ArenaFile {
    pub fn new(name: &str) -> Self {
        let shm = PathBuf::from("/dev/shm");
        let folder = if shm.is_dir() {
            shm
        } else {
            std::env::temp_dir()
        };
        let path = folder.join(format!("rackmem-bench-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        ArenaFile(path)
    }
}

impl Drop for ArenaFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub(super) fn replace<T: rackmem::Value>(
    arena: &Arena,
    lock: &Lock,
    slot: ArenaSlot<T>,
    value: &T,
) -> std::result::Result<(), ArenaError> {
    let mut writer = arena.writer(lock)?;
    let new = writer.alloc(value)?;
    match writer.assign(slot, new)? {
        Some(old) => writer.free(old),
        None => Ok(()),
    }
}

/// From an assignment until another node reads what was assigned.
pub(super) fn visible(options: &Options, report: &mut Report) -> Result<()> {
    let (rack, file) = (Rack::local(2)?, ArenaFile::new("visible"));
    let spec = ArenaSpec::new(&file.0, 8 << 20)
        .bound(options.bound)
        .emulated();
    let here = Arena::create(&rack.node(0), &spec)?;
    let there = Arena::open(&rack.node(1), &spec)?;
    let slot: ArenaSlot<u64> = here.slot(0)?;
    let lock = Lock::create(&rack.node(0), ())?;
    let (mut seen, mut lazy, begin) = (Histogram::new(), Histogram::new(), Instant::now());
    let mut value = 0;
    while begin.elapsed() < options.duration.max(Duration::from_millis(200)) {
        value += 1;
        replace(&here, &lock, slot, &value)?;
        let assigned = Instant::now();
        while read(&there, slot)? != Some(value) {
            if assigned.elapsed() > SEEN {
                let what = format!("what was assigned is not read within {SEEN:?}");
                return Err(BenchError::Missing(what));
            }
        }
        seen.record(assigned.elapsed().as_nanos() as u64);
        let section = there.enter()?;
        let began = Instant::now();
        section.lookup_lazily(|section| section.get(slot))?;
        lazy.record(began.elapsed().as_nanos() as u64);
    }
    report.add("visible/bound", options.bound.as_nanos() as f64, "ns")?;
    for (name, part) in [("p50", 50.0), ("p99", 99.0)] {
        let name = format!("visible/{name}");
        report.add_against(&name, seen.percentile(part) as f64, "ns", "visible/bound")?;
    }
    let lazy = lazy.percentile(50.0) as f64;
    report.add_against("visible/lazily", lazy, "ns", "visible/bound")?;
    Ok(())
}

/// What a section of its own reads; nothing where it was too late.
fn read(arena: &Arena, slot: ArenaSlot<u64>) -> Result<Option<u64>> {
    let once = || {
        let section = arena.enter()?;
        let value = section.get(slot)?;
        section.finish()?;
        Ok(value)
    };
    match once() {
        Err(ArenaError::Late { .. }) => Ok(None),
        read => Ok(read?),
    }
}

/// Objects that are freed and whose memory others may read, and what a thread that stays in its
/// section takes of the others' reads.
pub(super) fn waiting(options: &Options, report: &mut Report) -> Result<()> {
    let (rack, file) = (Rack::local(2)?, ArenaFile::new("waiting"));
    let spec = ArenaSpec::new(&file.0, 16 << 20)
        .bound(options.bound)
        .emulated();
    let here = Arena::create(&rack.node(0), &spec)?;
    let there = Arena::open(&rack.node(1), &spec)?;
    let slot: ArenaSlot<u64> = here.slot(0)?;
    let lock = Lock::create(&rack.node(0), ())?;
    let pause = Duration::from_micros(200);
    let (begin, mut freed, mut most) = (Instant::now(), 0u64, 0u64);
    let time = options.duration.max(options.bound * 10);
    while begin.elapsed() < time {
        replace(&here, &lock, slot, &freed)?;
        (freed, most) = (freed + 1, most.max(here.counts().waiting));
        std::thread::sleep(pause);
    }
    let rate = freed as f64 / begin.elapsed().as_secs_f64();
    let tick = options.bound.as_secs_f64() / 5.0;
    report.add("reclaim/most-that-may-wait", rate * 8.0 * tick, "objects")?;
    let held = "reclaim/memory-held";
    report.add_against(held, most as f64, "objects", "reclaim/most-that-may-wait")?;

    let reads = || {
        let (begin, mut count) = (Instant::now(), 0u64);
        while begin.elapsed() < time {
            count += u64::from(read(&there, slot)?.is_some());
        }
        Result::Ok(count as f64 / begin.elapsed().as_secs_f64())
    };
    report.add("stopped-reader/none", reads()?, "sections/s")?;
    let stopped = there.enter()?;
    report.add_against(
        "stopped-reader/one",
        reads()?,
        "sections/s",
        "stopped-reader/none",
    )?;
    drop(stopped);
    Ok(())
}
