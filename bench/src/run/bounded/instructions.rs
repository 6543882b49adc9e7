//! The instructions that write lines back and drop them (BI Figs. 2 and 7), and what dropping costs
//! a thread that reads (Figs. 8 and 9).

use super::super::Result;
use super::{Options, size};
use crate::report::Report;
use rackmem::bounded::{FoundOp, LineOp};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const LINE: usize = 64;
/// Words of a line.
const WORDS: usize = LINE / 8;
/// Periods of Figs. 8 and 9.
const PERIODS: [u64; 3] = [1, 10, 100];

fn lines(bytes: usize) -> Vec<AtomicU64> {
    (0..bytes / 8)
        .map(|nth| AtomicU64::new(nth as u64))
        .collect()
}

fn touch(words: &[AtomicU64]) -> u64 {
    words
        .iter()
        .step_by(WORDS)
        .map(|word| word.load(Relaxed))
        .sum()
}

fn dirty(words: &[AtomicU64]) {
    for word in words.iter().step_by(WORDS) {
        word.store(1, Relaxed);
    }
}

/// Nanoseconds a line of `measured`, each after `prepare`, which is not counted.
fn each(
    words: &[AtomicU64],
    duration: Duration,
    prepare: impl Fn(&[AtomicU64]),
    measured: impl Fn(&[AtomicU64]),
) -> f64 {
    let (begin, mut spent, mut rounds) = (Instant::now(), Duration::ZERO, 0u32);
    while rounds == 0 || begin.elapsed() < duration {
        prepare(words);
        let before = Instant::now();
        measured(words);
        spent += before.elapsed();
        rounds += 1;
    }
    spent.as_nanos() as f64 / f64::from(rounds) / (words.len() / WORDS) as f64
}

/// Figs. 2 and 7: lines that were read, were stored to, or are not there.
pub(super) fn ops(options: &Options, bytes: usize, report: &mut Report) -> Result<()> {
    let (words, size) = (lines(bytes), size(bytes));
    let read = |words: &[AtomicU64]| {
        black_box(touch(words));
    };
    let case = format!("ops/read/{size}");
    let time = each(&words, options.duration, read, read);
    report.add(&case, time, "ns")?;
    for op in [LineOp::Clflush, LineOp::ClflushOpt, LineOp::Clwb] {
        let Some(found) = op.find() else {
            continue;
        };
        let run = |words: &[AtomicU64]| found.run(words);
        let name = op.name();
        for (state, prepare) in [
            ("read", &read as &dyn Fn(&[AtomicU64])),
            ("modified", &dirty),
            ("invalid", &drop_lines(found)),
        ] {
            let time = each(&words, options.duration, prepare, run);
            report.add_against(&format!("ops/{name}-{state}/{size}"), time, "ns", &case)?;
        }
        if op != LineOp::Clwb {
            let again = |words: &[AtomicU64]| {
                black_box(touch(words));
            };
            let time = each(&words, options.duration, run, again);
            report.add_against(&format!("ops/{name}-then-read/{size}"), time, "ns", &case)?;
        }
    }
    Ok(())
}

/// Makes lines absent, if the operation can.
fn drop_lines(found: FoundOp) -> impl Fn(&[AtomicU64]) {
    let drop = [LineOp::ClflushOpt, LineOp::Clflush];
    let drop = drop.into_iter().find_map(LineOp::find).unwrap_or(found);
    move |words| drop.run(words)
}

/// Figs. 8 and 9: reads of a set of lines while all of it is dropped each period, by the thread
/// that reads and by another one.
pub(super) fn periodic(options: &Options, bytes: usize, report: &mut Report) -> Result<()> {
    let drop = [LineOp::ClflushOpt, LineOp::Clflush];
    let Some(drop) = drop.into_iter().find_map(LineOp::find) else {
        return Ok(());
    };
    let (words, size) = (lines(bytes), size(bytes));
    let read = |period: Option<Duration>| {
        let (begin, mut last, mut count) = (Instant::now(), Instant::now(), 0u64);
        // A part at a time, so that the clock is looked at often enough.
        for part in words.chunks(512 * WORDS).cycle() {
            black_box(touch(part));
            count += (part.len() / WORDS) as u64;
            if period.is_some_and(|period| last.elapsed() >= period) {
                drop.run(&words);
                last = Instant::now();
            }
            if begin.elapsed() >= options.duration {
                break;
            }
        }
        count as f64 / begin.elapsed().as_secs_f64()
    };
    let none = format!("periodic/noflush/{size}");
    report.add(&none, read(None), "lines/s")?;
    let case = |report: &mut Report, name: &str, rate: f64| {
        report.add_against(&format!("periodic/{name}/{size}"), rate, "lines/s", &none)
    };
    for period in PERIODS {
        let rate = read(Some(Duration::from_millis(period)));
        case(report, &format!("same-core/{period}ms"), rate)?;
    }
    case(report, "aggressive", read(Some(Duration::ZERO)))?;
    for period in PERIODS {
        let stop = AtomicBool::new(false);
        let rate = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    std::thread::sleep(Duration::from_millis(period));
                    drop.run(&words);
                }
            });
            let rate = read(None);
            stop.store(true, Relaxed);
            rate
        });
        case(report, &format!("other-core/{period}ms"), rate)?;
    }
    Ok(())
}
