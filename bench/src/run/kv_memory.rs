//! `bench kv`: the memory that small pairs take, beside redis-server. Resident bytes,
//! as the system counts them.

use super::kv::{Redis, stopped, store_error as kv};
use super::resp::Client;
use super::{BenchError, Progress, Result};
use crate::report::Report;
use rackmem::{Node, Rack};
use rackmem_kv::{Store, Sweep};

/// Pairs: a key and a value of seven bytes each.
const PAIRS: usize = 100_000;
/// Commands under way at a time.
const PIPELINE: usize = 256;
/// Buckets that a step of a sweep looks at.
const SWEEP: usize = 1024;
const MIB: f64 = (1 << 20) as f64;

fn pair(number: usize) -> ([u8; 7], [u8; 7]) {
    let text = |first: char| {
        let text = format!("{first}{number:06}");
        std::array::from_fn(|at| text.as_bytes()[at])
    };
    (text('k'), text('v'))
}

/// Bytes of a process that are in memory.
fn resident(process: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map(|kib| kib * 1024.0)
        .ok_or_else(|| BenchError::Missing("this system does not tell what is resident".into()))
}

fn here() -> Result<f64> {
    resident("self")
}

/// Measures it, before anything else of this process has taken memory.
pub(super) fn run(
    report: &mut Report,
    nodes: usize,
    redis: bool,
    progress: Progress<'_>,
) -> Result<()> {
    let mut baseline = None;
    if redis {
        progress("memory of redis");
        let redis = Redis::start()?;
        let before = resident(&redis.pid().to_string())?;
        let mut client = Client::connect(redis.addr())?;
        for first in (0..PAIRS).step_by(PIPELINE) {
            for number in first..PAIRS.min(first + PIPELINE) {
                let (key, value) = pair(number);
                client.command(&[b"SET", &key, &value]);
            }
            stopped()?;
            client.flush(|_| ())?;
        }
        let full = resident(&redis.pid().to_string())?;
        report.add("redis/memory/pair", (full - before) / PAIRS as f64, "bytes")?;
        report.add("redis/memory/all", full / MIB, "MiB")?;
        baseline = Some("redis/memory/pair");
    }
    progress("memory of rackmem");
    let add = |report: &mut Report, case: &str, bytes: f64| match baseline {
        Some(baseline) => report.add_against(case, bytes, "bytes", baseline),
        None => report.add(case, bytes, "bytes"),
    };
    let rack = Rack::local(nodes)?;
    let open = |node: &Node| Store::open(node.clone(), Default::default()).map_err(kv);
    let stores = rack.nodes().iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut sweeps: Vec<_> = stores.iter().map(|_| Sweep::default()).collect();
    sweep(&stores, &mut sweeps)?;
    let idle = here()?;
    // Every node writes a share, and the last reads all: then homes have what is theirs.
    for number in 0..PAIRS {
        if number % PIPELINE == 0 {
            stopped()?;
        }
        let (key, value) = pair(number);
        stores[number % nodes]
            .first()
            .set(&key, &value)
            .map_err(kv)?;
    }
    let written = here()?;
    let mut value = Vec::new();
    for store in &stores {
        for number in 0..PAIRS {
            if number % PIPELINE == 0 {
                stopped()?;
            }
            let (key, expected) = pair(number);
            value.clear();
            let found = store.first().get(&key, &mut value).map_err(kv)?;
            if !found || value != expected {
                return Err(BenchError::Missing("a pair that was written".into()));
            }
        }
    }
    let read = here()?;
    let kept: usize = rack
        .nodes()
        .iter()
        .map(|node| node.lock_memory().kept)
        .sum();
    let home: usize = rack.nodes().iter().map(|n| n.lock_memory().kept_home).sum();
    stores[0].first().flush_all().map_err(kv)?;
    // What was at other nodes is dropped when the homes have told them.
    (0..2).try_for_each(|_| sweep(&stores, &mut sweeps))?;
    let flushed = here()?;
    let pairs = PAIRS as f64;
    add(
        report,
        "rackmem/memory/pair/all-nodes",
        (read - idle) / pairs,
    )?;
    add(report, "rackmem/memory/pair/home", home as f64 / pairs)?;
    let readers = (nodes - 1).max(1) as f64;
    add(
        report,
        "rackmem/memory/pair/reader",
        kept as f64 / readers / pairs,
    )?;
    for (case, bytes) in [
        ("idle", idle),
        ("written", written),
        ("read", read),
        ("flushed", flushed),
    ] {
        report.add(
            &format!("rackmem/memory/{case}/nodes-{nodes}"),
            bytes / MIB,
            "MiB",
        )?;
    }
    Ok(())
}

fn sweep(stores: &[Store<Node>], sweeps: &mut [Sweep]) -> Result<()> {
    for (store, sweep) in stores.iter().zip(sweeps) {
        while store.sweep(sweep, SWEEP).map_err(kv)?.looked != 0 {}
    }
    stores.iter().try_for_each(|store| store.shed().map_err(kv))
}
