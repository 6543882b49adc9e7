//! A replica dies while others work: how long the longest operation takes.
//!
//! The members are `Rack`s that joined one another over UDP in this process, with a folder for
//! their membership. One that is dropped says nothing to the others, as one that was killed does,
//! and the lease is longer than the bench: nothing here is helped by a death that was noticed.

use super::{Options, Progress, Result};
use crate::histogram::Histogram;
use crate::report::Report;
use crate::stop;
use rackmem::{Config, Rack, RegionSpec, Replicated};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

struct Place {
    config: Config,
    folder: PathBuf,
}

impl Place {
    fn new() -> Result<Place> {
        let name = format!("rackmem-bench-kill-{:016x}", fastrand::u64(..));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        let addresses = rackmem_hosts::addresses(4);
        let quoted: Vec<String> = addresses.iter().map(|addr| format!("\"{addr}\"")).collect();
        let text = format!(
            "nodes = [{}]\nmembership = \"dir:{}\"\nlease = \"60s\"\npatience = \"30s\"\n\
             cache = \"8M\"\nmemory = \"64M\"",
            quoted.join(", "),
            folder.display(),
        );
        let config = Config::parse(&text)?;
        Ok(Place { config, folder })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a thread does.
#[derive(Clone, Copy)]
enum Op {
    Read,
    Write,
}

/// Before the death, and after.
type Times = [Histogram; 2];

fn work(line: &Replicated<u64>, op: Op, (dead, over): (&AtomicBool, &AtomicBool)) -> Result<Times> {
    let mut times: Times = Default::default();
    let mut number = 0;
    while !over.load(Relaxed) {
        // An operation that is under way when the replica dies is one of after.
        let began = Instant::now();
        match op {
            Op::Read => drop(line.read().map_err(rackmem::Error::from)?),
            Op::Write => {
                number += 1;
                line.write(number).map_err(rackmem::Error::from)?;
            }
        }
        let after = usize::from(dead.load(Relaxed));
        times[after].record(began.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

/// Node 3 dies; node 0, which keeps no copy, has a thread that reads and one that writes.
pub fn run(options: &Options, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    progress("a replica dies while others work");
    let place = Place::new()?;
    let join = |node| Ok(Some(Rack::join(&place.config, node)?));
    let mut racks = (0..4).map(join).collect::<Result<Vec<_>>>()?;
    let Some(node) = racks[0].as_ref().map(|rack| rack.node(0)) else {
        return Ok(());
    };
    let region = node.create_region(&RegionSpec::new("kill", 640).copies(3).on(1))?;
    let (read, write) = (region.replicated::<u64>(0)?, region.replicated::<u64>(1)?);
    read.write(7).map_err(rackmem::Error::from)?;
    let (dead, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let [reads, writes] = std::thread::scope(|scope| {
        let flags = (&dead, &over);
        let reader = scope.spawn(move || work(&read, Op::Read, flags));
        let writer = scope.spawn(move || work(&write, Op::Write, flags));
        stop::sleep(options.phase);
        dead.store(true, Relaxed);
        racks[3] = None;
        stop::sleep(options.phase);
        over.store(true, Relaxed);
        [reader, writer].map(|thread| {
            let joined = thread.join();
            joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    for (name, times) in [("read", reads?), ("write", writes?)] {
        let us = |value: u64| value as f64 / 1e3;
        let [before, after] = &times;
        let case = |what: &str| format!("kill/{name}/{what}");
        report.add(&case("p50-before"), us(before.percentile(50.0)), "us")?;
        report.add(&case("p99-before"), us(before.percentile(99.0)), "us")?;
        report.add(&case("longest-before"), us(before.max()), "us")?;
        let p50 = us(after.percentile(50.0));
        report.add_against(&case("p50-after"), p50, "us", &case("p50-before"))?;
        let p99 = us(after.percentile(99.0));
        report.add_against(&case("p99-after"), p99, "us", &case("p99-before"))?;
        let longest = us(after.max());
        report.add_against(&case("longest-after"), longest, "us", &case("p99-before"))?;
    }
    Ok(())
}
