//! What several nodes do to the same memory.

use super::{Called, Mapped, Options, PAGE, Plain, Progress, Result, Site, WORDS, Words};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::{stop, timing};
use rackmem::Fabric;
use std::time::{Duration, Instant};

/// Blocks that miss one after the other.
const BLOCKS: usize = 64;
/// Pages of each kind in the mix.
const MIXED: usize = 64;
/// Accesses between two looks whether the time is over.
const RUN: usize = 64;

/// What a node does with a block that the other one has stored to.
#[derive(Clone, Copy)]
enum Miss {
    Read,
    Write,
}

/// Bytes that are gone through over each fabric, at most.
const GONE_THROUGH: u64 = 32 << 20;

/// Node 1 goes through memory of node 0 for the first time: by calls of a page each, which keep
/// nothing, and by loads. Microseconds a page.
pub fn first_pass(
    options: &Options,
    fabric: Fabric,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    let pages = (options.scan.min(GONE_THROUGH) / PAGE as u64).max(1) as usize;
    let site = Site::new(options, fabric)?;
    let case = format!("{}/{}/first-pass", fabric.name(), options.mode.name());
    progress(&case);
    let [by_call, by_fault] = [0, 1].map(|half| -> Result<f64> {
        let [region, _] = site.region(&format!("pass-{half}"), pages * PAGE)?;
        let mapped = Mapped::of(&region)?;
        let (mut page, mut sum) = ([0; PAGE], 0_u64);
        let began = Instant::now();
        for nth in 0..pages {
            sum = sum.wrapping_add(match half {
                0 => {
                    region.read(nth * PAGE, &mut page)?;
                    u64::from(page[0])
                }
                _ => mapped.load(nth * WORDS).unwrap_or_default(),
            });
        }
        std::hint::black_box(sum);
        Ok(began.elapsed().as_secs_f64() * 1e6 / pages as f64)
    });
    let baseline = format!("{case}/calls");
    report.add(&baseline, by_call?, "us")?;
    report.add_against(&format!("{case}/mapped"), by_fault?, "us", &baseline)?;
    Ok(())
}

/// A miss of node 1 on what node 2 has stored: by a call, and by an instruction.
pub fn misses(
    options: &Options,
    fabric: Fabric,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    let site = Site::new(options, fabric)?;
    let [region, other] = site.region("misses", 2 * BLOCKS * PAGE)?;
    let (called, theirs) = (site.called(1, &region), site.called(2, &other));
    let mapped = Mapped::of(&region)?;
    for (what, miss) in [("read-miss", Miss::Read), ("write-miss", Miss::Write)] {
        let case = format!("{}/{}/{what}", fabric.name(), options.mode.name());
        progress(&case);
        let mut times = [Histogram::new(), Histogram::new()];
        let began = Instant::now();
        // The first round is not counted: pages get their places then.
        let mut round = 0;
        while round < 2 || began.elapsed() < options.duration && !stop::requested() {
            // The halves take turns, so that none is measured by itself.
            for (half, times) in times.iter_mut().enumerate() {
                for block in (0..BLOCKS).map(|block| (half * BLOCKS + block) * WORDS) {
                    theirs.store(block, round);
                }
                for block in scattered().map(|block| (half * BLOCKS + block) * WORDS) {
                    let start = Instant::now();
                    match half {
                        0 => once(&called, block, miss),
                        _ => once(&mapped, block, miss),
                    }
                    if round > 0 {
                        times.record(start.elapsed().as_nanos() as u64);
                    }
                }
            }
            round += 1;
        }
        let [by_call, by_fault] = times.map(|times| times.percentile(50.0) as f64 / 1e3);
        let baseline = format!("{case}/call");
        report.add(&baseline, by_call, "us")?;
        report.add_against(&format!("{case}/mapped"), by_fault, "us", &baseline)?;
    }
    Ok(())
}

/// The blocks, none behind the one before: what follows a miss would come with it.
fn scattered() -> impl Iterator<Item = usize> {
    (0..BLOCKS).map(|nth| nth * 23 % BLOCKS)
}

fn once(words: &impl Words, at: usize, miss: Miss) {
    match miss {
        Miss::Read => drop(std::hint::black_box(words.load(at))),
        Miss::Write => drop(words.store(at, 7)),
    }
}

/// Two nodes in strict turns on one word.
pub fn turns(
    options: &Options,
    fabric: Fabric,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    let site = Site::new(options, fabric)?;
    let regions = site.region("turns", PAGE)?;
    let case = format!("{}/{}/turns", fabric.name(), options.mode.name());
    progress(&case);
    let called = [0, 1].map(|nth| site.called(1 + nth, &regions[nth]));
    let by_call = in_turns(&called, options.duration);
    let mapped = [Mapped::of(&regions[0])?, Mapped::of(&regions[1])?];
    let by_fault = in_turns(&mapped, options.duration);
    let baseline = format!("{case}/call");
    report.add(&baseline, by_call, "us")?;
    report.add_against(&format!("{case}/mapped"), by_fault, "us", &baseline)?;
    Ok(())
}

/// µs a turn.
fn in_turns(words: &[impl Words; 2], duration: Duration) -> f64 {
    const OVER: u64 = u64::MAX;
    words[0].store(0, 0);
    let began = Instant::now();
    let mut turns = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                match words[1].load(0) {
                    Some(OVER) => return,
                    Some(turn) if turn % 2 == 1 => drop(words[1].store(0, turn + 1)),
                    _ => std::thread::yield_now(),
                }
            }
        });
        while began.elapsed() < duration && !stop::requested() {
            match words[0].load(0) {
                Some(turn) if turn % 2 == 0 => {
                    turns = turn + 1;
                    words[0].store(0, turns);
                }
                _ => std::thread::yield_now(),
            }
        }
        // The other one stores once at most after it has seen its turn.
        while words[0].load(0).is_some_and(|turn| turn % 2 == 1) {
            std::thread::yield_now();
        }
        words[0].store(0, OVER);
    });
    began.elapsed().as_secs_f64() * 1e6 / turns.max(1) as f64
}

/// Two nodes add to words of one page, and to words of pages of their own.
pub fn one_page(
    options: &Options,
    fabric: Fabric,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    let site = Site::new(options, fabric)?;
    let regions = site.region("one-page", 2 * PAGE)?;
    let name = format!("{}/{}/adds", fabric.name(), options.mode.name());
    let called = [0, 1].map(|nth| site.called(1 + nth, &regions[nth]));
    let mapped = [Mapped::of(&regions[0])?, Mapped::of(&regions[1])?];
    let words = [mapped[0].0.words(), mapped[1].0.words()];
    for (how, apart) in [("page-each", WORDS), ("one-page", 8)] {
        let baseline = format!("{name}/{how}/calls");
        progress(&baseline);
        report.add(&baseline, adds(&called, apart, options.duration), "ops/s")?;
        let case = format!("{name}/{how}/mapped");
        progress(&case);
        let rate = adds(&words, apart, options.duration);
        report.add_against(&case, rate, "ops/s", &baseline)?;
    }
    // What one node does that nobody disturbs: more is not to be had of one page.
    let case = format!("{name}/one-node/mapped");
    progress(&case);
    let rate = adds(&words[..1], 8, options.duration);
    report.add(&case, rate, "ops/s")?;
    // Words of one page that different nodes write: how long the page stays with who has got it.
    let baseline = format!("{name}/one-page/mapped");
    for hold in [0, 200, 1000] {
        let case = format!("{baseline}/hold-{hold}us");
        progress(&case);
        for pages in &mapped {
            pages.0.set_hold(Duration::from_micros(hold));
        }
        let rate = adds(&words, 8, options.duration);
        report.add_against(&case, rate, "ops/s", &baseline)?;
    }
    Ok(())
}

/// A thread for each of these.
fn adds(words: &[impl Words], apart: usize, duration: Duration) -> f64 {
    let done = timing::run(words.len(), duration, |thread| {
        let words = &words[thread];
        move || {
            let all = (0..RUN).filter_map(|_| words.add(thread * apart));
            all.count() as u64
        }
    });
    done.per_second()
}

/// Words of eight bytes at random, half of them read: some of memory that both nodes use,
/// the others of a part of a node's own (ArgoDSM's workload).
pub fn mix(
    options: &Options,
    fabric: Fabric,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    let site = Site::new(options, fabric)?;
    let regions = site.region("mix", 3 * MIXED * PAGE)?;
    let called: [Called; 2] = [0, 1].map(|nth| site.called(1 + nth, &regions[nth]));
    let mapped = [Mapped::of(&regions[0])?, Mapped::of(&regions[1])?];
    let words = [mapped[0].0.words(), mapped[1].0.words()];
    let plain = [Plain::new(3 * MIXED * WORDS), Plain::new(3 * MIXED * WORDS)];
    for sharing in [20, 60, 100] {
        let name = format!(
            "{}/{}/mix/sharing-{sharing}",
            fabric.name(),
            options.mode.name()
        );
        let baseline = format!("{name}/calls");
        progress(&baseline);
        let (by_call, slower) = at_random(&called, sharing, options.duration);
        report.add(&baseline, by_call, "ops/s")?;
        report.add(&format!("{baseline}/slower-node"), slower, "ops/s")?;
        let case = format!("{name}/mapped");
        progress(&case);
        let (rate, slower) = at_random(&words, sharing, options.duration);
        report.add_against(&case, rate, "ops/s", &baseline)?;
        let against = format!("{baseline}/slower-node");
        report.add_against(&format!("{case}/slower-node"), slower, "ops/s", &against)?;
        let case = format!("{name}/one-machine");
        let (rate, _) = at_random(&plain, sharing, options.duration);
        report.add_against(&case, rate, "ops/s", &baseline)?;
    }
    Ok(())
}

/// Of both nodes, and of the slower one: who happens to have nearly all pages hits, and the other
/// one misses for each, so that the sum says as much of luck.
fn at_random(words: &[impl Words; 2], sharing: u32, duration: Duration) -> (f64, f64) {
    let done = timing::run(2, duration, |thread| {
        let words = &words[thread];
        let mut random = fastrand::Rng::with_seed(thread as u64 + 1);
        move || {
            let all = (0..RUN).filter_map(|_| {
                let part = match random.u32(0..100) < sharing {
                    true => 0,
                    false => 1 + thread,
                };
                let at = part * MIXED * WORDS + random.usize(0..MIXED * WORDS);
                match random.bool() {
                    true => words.load(at),
                    false => words.store(at, 1).map(|()| 0),
                }
            });
            all.count() as u64
        }
    });
    (done.per_second(), done.least_per_second())
}
