//! Freed objects whose memory waits until no cache can hold them, by rate and bound, and what a
//! thread that stays in its section takes of the others' reads.

use super::super::Result;
use super::arenas::{ArenaFile, Pair, read, replace};
use super::{Options, time};
use crate::report::Report;
use crossbeam_epoch::Collector;
use rackmem::Rack;
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec};
use rackmem::locked::Lock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two changes.
const PAUSES: [Duration; 3] = [
    Duration::from_micros(50),
    Duration::from_micros(200),
    Duration::from_millis(1),
];
/// Ticks that a freed object waits for, at most: K + 5.
const TICKS: f64 = 8.0;
/// Ticks of a bound.
const BOUND: f64 = 5.0;

/// The most that waited, and how many were freed a second.
struct Freed {
    most: u64,
    rate: f64,
}

/// Changes something at a rate.
fn at_a_rate(
    (pause, during): (Duration, Duration),
    mut change: impl FnMut(u64) -> Result<()>,
    waiting: impl Fn() -> u64,
) -> Result<Freed> {
    let (begin, mut freed, mut most) = (Instant::now(), 0u64, 0);
    while begin.elapsed() < during {
        change(freed)?;
        (freed, most) = (freed + 1, most.max(waiting()));
        std::thread::sleep(pause);
    }
    let rate = freed as f64 / begin.elapsed().as_secs_f64();
    Ok(Freed { most, rate })
}

/// Memory that waits in an arena of two nodes, beside epochs of two threads of one process.
pub(super) fn memory(options: &Options, bound: Duration, report: &mut Report) -> Result<()> {
    let during = options.duration.max(bound * 10);
    for pause in PAUSES {
        let pair = Pair::new("waiting", bound)?;
        let freed = at_a_rate(
            (pause, during),
            |value| Ok(replace(&pair.here, &pair.lock, pair.slot, &value)?),
            || pair.here.counts().waiting,
        )?;
        let epochs = of_epochs((pause, during))?;
        let case = format!("reclaim/{}/every-{}", time(bound), time(pause));
        let may = format!("{case}/may-wait");
        let ticks = TICKS * bound.as_secs_f64() / BOUND;
        report.add(&may, freed.rate * ticks, "objects")?;
        let held = freed.most as f64;
        report.add_against(&format!("{case}/waiting"), held, "objects", &may)?;
        let epochs = epochs.most as f64;
        report.add_against(&format!("{case}/epochs"), epochs, "objects", &may)?;
    }
    Ok(())
}

/// The same rate where epochs say what is read no more: one thread frees, another reads.
fn of_epochs(rate: (Duration, Duration)) -> Result<Freed> {
    let (collector, over) = (Collector::new(), AtomicBool::new(false));
    let (retired, dropped) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reader = collector.register();
            while !over.load(Relaxed) {
                drop(std::hint::black_box(reader.pin()));
            }
        });
        let writer = collector.register();
        let freed = at_a_rate(
            rate,
            |_| {
                let dropped = dropped.clone();
                retired.fetch_add(1, Relaxed);
                writer.pin().defer(move || dropped.fetch_add(1, Relaxed));
                Ok(())
            },
            || retired.load(Relaxed) - dropped.load(Relaxed),
        );
        over.store(true, Relaxed);
        freed
    })
}

/// A thread that stays in its section, beside others that read.
pub(super) fn thread(options: &Options, bound: Duration, report: &mut Report) -> Result<()> {
    let (rack, file) = (Rack::local(1)?, ArenaFile::new("section"));
    let spec = ArenaSpec::new(&file.0, 1 << 20).bound(bound).emulated();
    let arena = Arena::create(&rack.node(0), &spec)?;
    let slot: ArenaSlot<u64> = arena.slot(0)?;
    replace(&arena, &Lock::create(&rack.node(0), ())?, slot, &7)?;
    let during = options.duration.max(bound * 10);
    let reads = || reads(&arena, slot, during);
    report.add("stopped-thread/none", reads()?, "sections/s")?;
    let stopped = arena.enter()?;
    let (case, beside) = ("stopped-thread/one", "stopped-thread/none");
    report.add_against(case, reads()?, "sections/s", beside)?;
    drop(stopped);
    Ok(())
}

/// Sections a second of this thread.
pub(super) fn reads(arena: &Arena, slot: ArenaSlot<u64>, during: Duration) -> Result<f64> {
    let (begin, mut count) = (Instant::now(), 0u64);
    while begin.elapsed() < during {
        count += u64::from(read(arena, slot)?.is_some());
    }
    Ok(count as f64 / begin.elapsed().as_secs_f64())
}
