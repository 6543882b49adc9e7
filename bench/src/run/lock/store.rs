//! YCSB's workloads A, B and C on a hash table with a lock over each bucket's 4 KiB, which come
//! with the lock under GCP (Soul's Fig. 7): a thread at each node draws keys by Zipf's law.

use super::super::{Progress, Result};
use super::contended::cost;
use super::{DATA, Options};
use crate::locks::{self, AnyLock, LockKind};
use crate::report::Report;
use crate::stop;
use crate::ycsb::Mix;
use crate::zipf::{YCSB_THETA, Zipf};
use rackmem::{Fabric, Node};
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

/// Buckets of the table.
const BUCKETS: usize = 256;
/// Bytes of a value, as many of them as a bucket has room for.
const VALUE: usize = 128;
const EACH: u64 = (DATA / VALUE) as u64;

pub fn run(
    options: &Options,
    fabric: Fabric,
    report: &mut Report,
    progress: Progress<'_>,
) -> Result<()> {
    for &nodes in &options.nodes {
        for &kind in &options.kinds {
            let rack = options.rack(fabric, nodes, kind)?;
            let create = || AnyLock::create(&rack.node(0), DATA).map(|lock| lock.addr());
            let buckets = (0..BUCKETS).map(|_| create());
            let buckets = buckets.collect::<locks::Result<Vec<u64>>>()?;
            let attached = |node: &Node| -> locks::Result<Vec<AnyLock>> {
                let attach = |addr: &u64| AnyLock::attach(node, *addr);
                buckets.iter().map(attach).collect()
            };
            let tables = rack.nodes().iter().map(attached);
            let tables = tables.collect::<locks::Result<Vec<_>>>()?;
            for mix in Mix::ALL {
                options.go_on()?;
                let case = name(options, fabric, kind, nodes, mix);
                progress(&case);
                let before = cost(&rack).0;
                let (rate, operations) = measure(options, &tables, mix.read_percent())?;
                let moved = (cost(&rack).0 - before) as f64;
                report.add(&case, rate, "ops/s")?;
                let each = moved / operations.max(1) as f64;
                report.add(&format!("{case}/transactions"), each, "per operation")?;
            }
        }
    }
    Ok(())
}

/// What a case is called.
pub fn name(options: &Options, fabric: Fabric, kind: LockKind, nodes: usize, mix: Mix) -> String {
    let (of, kind, reads) = (options.name(fabric), kind.name(), mix.read_percent());
    format!("{of}/store/{kind}/nodes-{nodes}/reads-{reads}")
}

/// Operations a second, and how many they were.
fn measure(options: &Options, tables: &[Vec<AnyLock>], reads: u8) -> Result<(f64, u64)> {
    let (barrier, over) = (Barrier::new(tables.len() + 1), AtomicBool::new(false));
    let done = std::thread::scope(|scope| {
        let spawn = |nth: usize| {
            let (barrier, over, table) = (&barrier, &over, &tables[nth]);
            scope.spawn(move || {
                barrier.wait();
                let done = work(table, reads, nth as u64, over);
                // One that has failed ends the others.
                over.fetch_or(done.is_err(), Relaxed);
                done
            })
        };
        let threads: Vec<_> = (0..tables.len()).map(spawn).collect();
        barrier.wait();
        stop::sleep(options.duration);
        over.store(true, Relaxed);
        let join = |thread: std::thread::ScopedJoinHandle<'_, locks::Result<(f64, u64)>>| {
            let told = thread.join();
            told.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let done = threads.into_iter().map(join);
        done.collect::<locks::Result<Vec<_>>>()
    })?;
    let rate = done.iter().map(|done| done.0).sum();
    Ok((rate, done.iter().map(|done| done.1).sum()))
}

fn work(table: &[AnyLock], reads: u8, seed: u64, over: &AtomicBool) -> locks::Result<(f64, u64)> {
    let mut random = fastrand::Rng::with_seed(seed + 1);
    let keys = Zipf::new(table.len() as u64 * EACH, YCSB_THETA);
    let mut value = [0; VALUE];
    let (began, mut operations) = (Instant::now(), 0);
    while !over.load(Relaxed) {
        let key = keys.scrambled(&mut random);
        let (bucket, place) = ((key / EACH) as usize, (key % EACH) as usize * VALUE);
        if random.u8(0..100) < reads {
            table[bucket].read()?.read(place, &mut value)?;
        } else {
            table[bucket].write()?.write(place, &value)?;
        }
        operations += 1;
    }
    Ok((
        operations as f64 / began.elapsed().as_secs_f64(),
        operations,
    ))
}
