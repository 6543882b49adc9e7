//! `bench kv`: the memory that small pairs take, beside redis-server. Resident bytes,
//! as the system counts them.

use super::kv::{Redis, store_error as kv};
use super::resp::Client;
use super::{BenchError, Progress, Result, stopped};
use crate::report::Report;
use rackmem::{Node, Rack};
use rackmem_kv::{Store, Sweep};

/// Pairs of one kind.
struct Pairs {
    /// In the names of rows.
    name: &'static str,
    count: usize,
    key: usize,
    value: usize,
}

/// Small ones, and more of a usual length.
const KINDS: [Pairs; 2] = [
    Pairs {
        name: "pair",
        count: 100_000,
        key: 7,
        value: 7,
    },
    Pairs {
        name: "pair-116",
        count: 1_000_000,
        key: 16,
        value: 100,
    },
];
/// Commands under way at a time.
const PIPELINE: usize = 256;
/// Buckets that a step of a sweep looks at.
const SWEEP: usize = 1024;
const MIB: f64 = (1 << 20) as f64;

impl Pairs {
    fn pair(&self, number: usize) -> (Vec<u8>, Vec<u8>) {
        let text = |first: char, len: usize| format!("{first}{number:0len$}", len = len - 1);
        (text('k', self.key).into(), text('v', self.value).into())
    }
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
    for pairs in &KINDS {
        let baseline = format!("redis/memory/{}", pairs.name);
        if redis {
            progress("memory of redis");
            let (pair, all) = of_redis(pairs)?;
            report.add(&baseline, pair, "bytes")?;
            report.add(
                &format!("redis/memory/all/{}", pairs.name),
                all / MIB,
                "MiB",
            )?;
        }
        progress("memory of rackmem");
        let rack = Rack::local(nodes)?;
        let open = |node: &Node| Store::open(node.clone(), Default::default()).map_err(kv);
        let stores = rack.nodes().iter().map(open).collect::<Result<Vec<_>>>()?;
        let mut add = |case: &str, bytes: f64| {
            let case = format!("rackmem/memory/{}/{case}", pairs.name);
            match redis {
                true => report.add_against(&case, bytes, "bytes", &baseline),
                false => report.add(&case, bytes, "bytes"),
            }
        };
        let found = of_stores(pairs, &rack, &stores)?;
        add("all-nodes", found.all)?;
        add("home", found.home)?;
        add("reader", found.reader)?;
        for (case, bytes) in found.resident {
            let name = format!("rackmem/memory/{case}/{}/nodes-{nodes}", pairs.name);
            report.add(&name, bytes / MIB, "MiB")?;
        }
    }
    Ok(())
}

/// Bytes a pair, and in all.
fn of_redis(pairs: &Pairs) -> Result<(f64, f64)> {
    let redis = Redis::start()?;
    let before = resident(&redis.pid().to_string())?;
    let mut client = Client::connect(redis.addr())?;
    for first in (0..pairs.count).step_by(PIPELINE) {
        for number in first..pairs.count.min(first + PIPELINE) {
            let (key, value) = pairs.pair(number);
            client.command(&[b"SET", &key, &value]);
        }
        stopped()?;
        client.flush(|_| ())?;
    }
    let full = resident(&redis.pid().to_string())?;
    Ok(((full - before) / pairs.count as f64, full))
}

/// Bytes a pair.
struct Found {
    all: f64,
    home: f64,
    reader: f64,
    /// Of the process, one moment after the other.
    resident: [(&'static str, f64); 4],
}

fn of_stores(pairs: &Pairs, rack: &Rack, stores: &[Store<Node>]) -> Result<Found> {
    let mut sweeps: Vec<_> = stores.iter().map(|_| Sweep::default()).collect();
    sweep(stores, &mut sweeps)?;
    let idle = here()?;
    // Every node writes a share, and the last reads all: then homes have what is theirs.
    for number in 0..pairs.count {
        if number % PIPELINE == 0 {
            stopped()?;
        }
        let (key, value) = pairs.pair(number);
        let store = &stores[number % stores.len()];
        store.first().set(&key, &value).map_err(kv)?;
    }
    let written = here()?;
    let mut value = Vec::new();
    for store in stores {
        for number in 0..pairs.count {
            if number % PIPELINE == 0 {
                stopped()?;
            }
            let (key, expected) = pairs.pair(number);
            value.clear();
            let found = store.first().get(&key, &mut value).map_err(kv)?;
            if !found || value != expected {
                return Err(BenchError::Missing("a pair that was written".into()));
            }
        }
    }
    let read = here()?;
    let locks = rack.nodes().iter().map(|node| node.lock_memory());
    let (home, kept) = locks.fold((0, 0), |(home, kept), locks| {
        (home + locks.kept_home, kept + locks.kept)
    });
    stores[0].first().flush_all().map_err(kv)?;
    // What was at other nodes is dropped when the homes have told them.
    (0..2).try_for_each(|_| sweep(stores, &mut sweeps))?;
    let flushed = here()?;
    let (count, readers) = (pairs.count as f64, (stores.len() - 1).max(1) as f64);
    Ok(Found {
        all: (read - idle) / count,
        home: home as f64 / count,
        reader: kept as f64 / readers / count,
        resident: [
            ("idle", idle),
            ("written", written),
            ("read", read),
            ("flushed", flushed),
        ],
    })
}

fn sweep(stores: &[Store<Node>], sweeps: &mut [Sweep]) -> Result<()> {
    for (store, sweep) in stores.iter().zip(sweeps) {
        while store.sweep(sweep, SWEEP).map_err(kv)?.looked != 0 {}
    }
    stores.iter().try_for_each(|store| store.shed().map_err(kv))
}
