//! What one thread does that nobody disturbs: hits, faults, and reading from end to end.

use super::{Mapped, Options, PAGE, Plain, Progress, Result, Site, WORDS, Words};
use crate::report::Report;
use crate::timing;
use rackmem::{Fabric, Region};
use std::hint::black_box;
use std::time::Instant;

/// Pages of a set that fits into a processor's cache.
const PAGES: usize = 8;

/// Loads and atomic additions of words that are here, beside those of plain memory.
pub fn hits(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let words = PAGES * WORDS;
    let site = Site::new(options, Fabric::Inline)?;
    let [region, _] = site.region("hits", PAGES * PAGE)?;
    let (plain, called) = (Plain::new(words), site.called(1, &region));
    let mapped = Mapped::of(&region)?;
    for page in 0..PAGES {
        mapped.store(page * WORDS, 1);
    }
    let mut pass = |case: &str, baseline: Option<&str>, each: &(dyn Fn() + Sync)| -> Result<()> {
        progress(case);
        let done = timing::run(1, options.duration, |_| {
            || {
                each();
                words as u64
            }
        });
        let ns = done.ns_per_operation();
        match baseline {
            Some(baseline) => report.add_against(case, ns, "ns", baseline)?,
            None => report.add(case, ns, "ns")?,
        }
        Ok(())
    };
    let (plainly, mapped) = (&plain.0[..], mapped.0.words());
    pass("hit/plain-load", None, &|| read(&plainly, words))?;
    pass("hit/mapped-load", Some("hit/plain-load"), &|| {
        read(&mapped, words)
    })?;
    pass("hit/call", Some("hit/plain-load"), &|| read(&called, words))?;
    pass("hit/plain-add", None, &|| add(&plainly, words))?;
    pass("hit/mapped-add", Some("hit/plain-add"), &|| {
        add(&mapped, words)
    })?;
    // What a fault consists of at least, and what the kernel's own cost.
    pass("fault/getppid", None, &|| {
        for _ in 0..words {
            black_box(std::os::unix::process::parent_id());
        }
    })?;
    Ok(())
}

#[inline(always)]
fn read(words: &impl Words, count: usize) {
    for at in 0..count {
        black_box(words.load(at));
    }
}

#[inline(always)]
fn add(words: &impl Words, count: usize) {
    for at in 0..count {
        black_box(words.add(at));
    }
}

/// Sums all words of memory of another node, the first time and again, and of plain memory.
pub fn scan(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let bytes = usize::try_from(options.scan).unwrap_or(usize::MAX) / PAGE * PAGE;
    let site = Site::new(options, Fabric::Inline)?;
    let [region, other] = site.region("scan", bytes)?;
    let mapped = Mapped::of(&region)?;
    let plain = Plain::new(bytes / 8);
    let mut case =
        |name: &str, baseline: Option<&str>, sum: &mut dyn FnMut() -> u64| -> Result<()> {
            progress(name);
            let began = Instant::now();
            black_box(sum());
            let rate = bytes as f64 / began.elapsed().as_secs_f64() / 1e6;
            match baseline {
                Some(baseline) => report.add_against(name, rate, "MB/s", baseline)?,
                None => report.add(name, rate, "MB/s")?,
            }
            Ok(())
        };
    let plainly = Some("scan/plain");
    // Written, so that all of it is there.
    let mut copy = vec![2_u8; bytes];
    let bytes_of = vec![1_u8; bytes];
    case("scan/memcpy", None, &mut || {
        copy.copy_from_slice(black_box(&bytes_of));
        u64::from(black_box(&copy)[bytes / 2])
    })?;
    drop((copy, bytes_of));
    let (of_process, of_rack) = (&plain.0[..], mapped.0.words());
    case("scan/plain", None, &mut || sum(&of_process, bytes / 8))?;
    case("scan/mapped/first", plainly, &mut || {
        sum(&of_rack, bytes / 8)
    })?;
    case("scan/mapped/again", plainly, &mut || {
        sum(&of_rack, bytes / 8)
    })?;
    // A page at a time, which is how a program that knows would do it.
    case("scan/calls/first", plainly, &mut || by_pages(&other, bytes))?;
    // The kernel's own faults: memory that nobody has touched.
    let fresh = vec![0_u8; bytes];
    let began = Instant::now();
    let touched: u64 = (0..bytes)
        .step_by(PAGE)
        .map(|at| u64::from(black_box(&fresh)[at]))
        .sum();
    black_box(touched);
    let pages = (bytes / PAGE) as f64;
    report.add(
        "fault/kernel-minor",
        began.elapsed().as_nanos() as f64 / pages,
        "ns",
    )?;
    Ok(())
}

fn sum(words: &impl Words, count: usize) -> u64 {
    (0..count).fold(0, |sum, at| {
        sum.wrapping_add(words.load(at).unwrap_or_default())
    })
}

fn by_pages(region: &Region, bytes: usize) -> u64 {
    let mut page = [0; PAGE];
    (0..bytes).step_by(PAGE).fold(0_u64, |sum, at| {
        let read = region.read(at, &mut page);
        sum.wrapping_add(read.map_or(0, |()| u64::from(page[0])))
    })
}
