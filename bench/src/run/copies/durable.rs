//! Durable copies, beside bare syncs of as many bytes on the same disk.

use super::{Options, PLACES, Progress, Result, add, lines, timed};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use crate::timing;
use rackmem::{Durability, Fabric, Mode, Rack, RegionSpec};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a record with a line of 64.
const RECORD: usize = 112;
/// Writers at a time: their records share batches.
const WRITERS: usize = 8;
/// Syncs take long.
const SHARE: usize = 8;

/// A folder on the disk of temporary files, which is removed.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One write at a time, and as many as writers, for memory, page cache and disk.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    let name = format!("rackmem-bench-copies-{:016x}", fastrand::u64(..));
    let place = Place(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&place.0)?;
    let rounds = (options.operations / SHARE).max(16);
    let time = options.phase.min(Duration::from_secs(1));
    let mut file = appended(&place.0)?;
    for durability in [Durability::Memory, Durability::File, Durability::Sync] {
        let name = durability.name();
        progress(&format!("durability {name}"));
        let rack = Rack::builder(4).fabric(Fabric::Udp).mode(Mode::HomeOnly);
        let rack = rack.cache(8 << 20).memory(64 << 20);
        let rack = rack.store(place.0.join(name)).build()?;
        let spec = RegionSpec::new("durable", PLACES * 64).copies(3).on(1);
        let spec = spec.durability(durability);
        let each = lines(&rack.node(0), &spec, 64)?;
        let (mut times, mut plain) = (Histogram::new(), Histogram::new());
        for nth in 0..rounds {
            if stop::requested() {
                return Err(super::BenchError::Stopped);
            }
            // In turn: what a sync takes is the disk's mood.
            if durability == Durability::Sync {
                timed(&mut plain, nth > 4, || Ok(sync(&mut file, 1)?))?;
            }
            timed(&mut times, nth > 4, || each[nth % PLACES].write(nth as u64))?;
        }
        let node = rack.node(0);
        let ours = timing::run(WRITERS, time, |writer| {
            let region = node.open_region(&spec).ok();
            let line = region.and_then(|region| region.replicated::<[u64; 8]>(writer).ok());
            let mut number = 0;
            move || {
                number += 1;
                let written = line.as_ref().map(|line| line.write([number; 8]));
                u64::from(matches!(written, Some(Ok(()))))
            }
        });
        let case = |what: &str| format!("durable/{name}/{what}");
        let (write, writers) = (case("write/64"), case(&format!("writers-{WRITERS}")));
        if durability != Durability::Sync {
            let memory = (durability == Durability::File).then_some("durable/memory");
            let of = |what: &str| memory.map(|memory| format!("{memory}/{what}"));
            add(report, &write, &times, of("write/64").as_deref())?;
            match of(&format!("writers-{WRITERS}")) {
                Some(memory) => {
                    report.add_against(&writers, ours.per_second(), "ops/s", &memory)?;
                }
                None => report.add(&writers, ours.per_second(), "ops/s")?,
            }
            continue;
        }
        let batches = timing::run(1, time, |_| {
            let mut file = appended(&place.0).ok();
            move || match file.as_mut().map(|file| sync(file, WRITERS)) {
                Some(Ok(())) => WRITERS as u64,
                _ => 0,
            }
        });
        add(report, "plain/fdatasync", &plain, None)?;
        add(report, &write, &times, Some("plain/fdatasync"))?;
        let plain = format!("plain/fdatasync/batches-of-{WRITERS}");
        report.add(&plain, batches.per_second(), "ops/s")?;
        report.add_against(&writers, ours.per_second(), "ops/s", &plain)?;
    }
    Ok(())
}

fn appended(folder: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).open(folder.join("plain"))
}

/// So many records, made durable together.
fn sync(file: &mut File, records: usize) -> std::io::Result<()> {
    file.write_all(&[7; RECORD * WRITERS][..RECORD * records])?;
    file.sync_data()
}
