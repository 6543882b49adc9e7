//! Writes to a block of which a node of another host has a copy: by the kernel of that host, and by
//! the node's agent. The sharer looks at the block from time to time; the writer writes when it
//! has, and times what took the copy away.

use super::live::Scene;
use super::part::say;
use super::{BenchError, Progress, Result, missing};
use crate::report::Report;
use crate::run::objects_home::{HOME as SHARER, READER as WRITER};
use rackmem::{Config, Rack};
use rackmem_hosts::{Hosts, Place, UPLINK};
use std::path::Path;
use std::time::{Duration, Instant};

/// Upgrades over a sharer, of one measurement.
const ROUNDS: usize = 1_000;
/// Between two looks of the sharer, and two writes: all have gone to sleep.
const LOOK: Duration = Duration::from_micros(300);
const PAUSE: Duration = Duration::from_millis(1);
/// For all of a measurement.
const LONG: Duration = Duration::from_secs(120);

/// What an upgrade takes, and how often the sharer's agent is woken for each. Nothing where there
/// are no namespaces.
pub fn run(duration: Duration, report: &mut Report, progress: Progress<'_>) -> Result<()> {
    if let Err(why) = Hosts::probe() {
        progress(&format!("no copies invalidated in the kernel: {why}"));
        return Ok(());
    }
    let scene = Scene::without_switch()?;
    let file = scene.file.display().to_string();
    let kernel = format!("{UPLINK}/skb");
    for (what, unit) in [("time", "us"), ("wakes", "an upgrade")] {
        let name = |who: &str| format!("upgrade/{what}/{who}");
        for (who, reads) in [("agent", "agent"), ("kernel", &kernel[..])] {
            progress(&format!("upgrades over a sharer, {who}, {what}"));
            let figure = scene.median(duration, || {
                let (_writer, addr) = scene.start_at(WRITER, &["write", &file])?;
                let words = ["share", &file, reads, &addr, what];
                scene.measure_at(Place::Host(SHARER), &words)
            })?;
            match who {
                "agent" => report.add(&name(who), figure, unit)?,
                _ => report.add_against(&name(who), figure, unit, &name("agent"))?,
            };
        }
    }
    Ok(())
}

/// Plays a part of these benches, if the words name one.
pub fn play(words: &[&str]) -> Option<Result<()>> {
    Some(match words[..] {
        ["write", file] => write(Path::new(file)),
        ["share", file, reads, addr, what] => share(Path::new(file), reads, addr, what),
        _ => return None,
    })
}

/// The block's home and writer: says where the block is, and where it will say what it has
/// measured.
fn write(file: &Path) -> Result<()> {
    let rack = Rack::join(&Config::load(file)?, WRITER)?;
    let node = rack.node(WRITER);
    let (block, result) = (node.alloc_isolated(0u64)?, node.alloc_isolated(0u64)?);
    say(&format!("{},{}", block.addr(), result.addr()))?;
    let (mut times, mut value) = (Vec::with_capacity(ROUNDS), 0);
    let end = Instant::now() + LONG;
    while times.len() < ROUNDS && Instant::now() < end {
        std::thread::sleep(PAUSE);
        let upgrades = node.metrics().events.write_shared;
        value += 1;
        let began = Instant::now();
        node.store(block.addr(), value)?;
        let took = began.elapsed().as_nanos() as u64;
        if node.metrics().events.write_shared > upgrades {
            times.push(took);
        }
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or(1);
    node.store(result.addr(), median.max(1))?;
    super::part::stay()
}

/// The sharer: says what the writer has measured, or how often its own agent was woken.
fn share(file: &Path, reads: &str, addrs: &str, what: &str) -> Result<()> {
    let mut config = Config::load(file)?;
    if reads != "agent" {
        config.set_kernel_reads(reads)?;
        config.set_kernel_cache()?;
    }
    let rack = Rack::join(&config, SHARER)?;
    let node = rack.node(SHARER);
    let (block, result) = addrs
        .split_once(',')
        .ok_or_else(|| missing("no addresses"))?;
    let (block, result): (u64, u64) = (
        block.parse().map_err(missing)?,
        result.parse().map_err(missing)?,
    );
    let (first, woken) = (node.load(block)?, wakes()?);
    let mut last = first;
    let told = loop {
        std::thread::sleep(LOOK);
        last = last.max(node.load(block)?);
        match node.load(result)? {
            0 => {}
            told => break told,
        }
    };
    match what {
        "wakes" => say(&((wakes()? - woken) as f64 / (last - first).max(1) as f64).to_string()),
        _ => say(&(told as f64 / 1e3).to_string()),
    }
}

/// How often the thread of this process's agents has slept.
fn wakes() -> Result<u64> {
    let name = format!("rackmem-node-{SHARER}");
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.trim() != name {
            continue;
        }
        let status = std::fs::read_to_string(task.join("status"))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        if let Some(count) = line {
            return count.trim().parse().map_err(missing);
        }
    }
    Err(BenchError::Missing("the agents have no thread".into()))
}
