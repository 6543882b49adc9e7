//! Page faults of a mapped region, beside plain reads and writes of lines of the same length.

use super::{Options, Progress, Result, add, lines, rack, timed};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use rackmem::{Fabric, Mapped, Mode, RegionError, RegionSpec};
use std::sync::atomic::Ordering::Relaxed;

const PAGE: usize = 4096;
/// Pages of the region, and of the buffer: each page has left when its turn comes again.
const PAGES: usize = 64;
const BUFFER: usize = 8;
const WARM_UP: usize = 2 * PAGES;

/// Over each fabric. What was left out, and why.
pub fn run(
    options: &Options,
    report: &mut Report,
    progress: Progress<'_>,
    missing: &mut Vec<String>,
) -> Result<()> {
    for &fabric in &options.fabrics {
        progress(&format!("pages, {}", fabric.name()));
        if let Err(why) = faults(fabric, options, report)? {
            missing.push(format!("pages of a mapped region are left out: {why}"));
            return Ok(());
        }
    }
    Ok(())
}

/// A region's pages, in turn.
struct Pages {
    mapped: Mapped,
    next: usize,
}

impl Pages {
    fn word(&mut self) -> usize {
        self.next = (self.next + 1) % PAGES;
        self.next * PAGE / 8
    }

    fn load(&mut self) {
        let word = self.word();
        std::hint::black_box(self.mapped.words()[word].load(Relaxed));
    }

    fn store(&mut self, number: u64) {
        let word = self.word();
        self.mapped.words()[word].store(number, Relaxed);
    }

    fn touch(&mut self) -> Result<()> {
        let at = self.word() * 8;
        Ok(self.mapped.touch(at, 1).map_err(rackmem::Error::from)?)
    }
}

fn faults(
    fabric: Fabric,
    options: &Options,
    report: &mut Report,
) -> Result<std::result::Result<(), String>> {
    let rack = rack(fabric, Mode::HomeOnly, PAGE)?;
    let node = rack.node(0);
    let spec = |name: &str| {
        let spec = RegionSpec::new(name, PAGES * PAGE).line(PAGE as u32);
        spec.copies(3).on(1)
    };
    let lines = lines(&node, &spec("lines"), PAGE)?;
    let pages = |name: &str| -> Result<std::result::Result<Pages, String>> {
        let region = node.create_region(&spec(name))?;
        match region.map_exclusive(BUFFER) {
            Ok(mapped) => Ok(Ok(Pages { mapped, next: 0 })),
            Err(why @ RegionError::NoPaging { .. }) => Ok(Err(why.to_string())),
            Err(why) => Err(rackmem::Error::from(why).into()),
        }
    };
    let mut clean = match pages("clean")? {
        Ok(pages) => pages,
        Err(why) => return Ok(Err(why)),
    };
    let (Ok(mut dirty), Ok(mut called)) = (pages("dirty")?, pages("called")?) else {
        return Ok(Ok(()));
    };
    let mut times: [Histogram; 5] = std::array::from_fn(|_| Histogram::new());
    let [reads, writes, touches, loads, stores] = &mut times;
    for nth in 0..WARM_UP + options.operations {
        if stop::requested() {
            return Err(super::BenchError::Stopped);
        }
        let (line, counted, number) = (&lines[nth % PAGES], nth >= WARM_UP, nth as u64);
        timed(reads, counted, || line.read())?;
        timed(writes, counted, || line.write(number))?;
        timed(touches, counted, || called.touch())?;
        timed(loads, counted, || {
            clean.load();
            Ok(())
        })?;
        timed(stores, counted, || {
            dirty.store(number);
            Ok(())
        })?;
    }
    let case = |what: &str| format!("{}/{what}/{PAGE}", fabric.name());
    let (read, write) = (case("pages/line/read"), case("pages/line/write"));
    add(report, &read, reads, None)?;
    add(report, &write, writes, None)?;
    add(report, &case("pages/touch"), touches, Some(&read))?;
    add(report, &case("pages/load"), loads, Some(&read))?;
    // A dirty page has to be written back before another one comes.
    add(report, &case("pages/store"), stores, Some(&write))?;
    Ok(Ok(()))
}
