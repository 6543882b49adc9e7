//! Items that all nodes read and write now and then, under the bounded contract, coherent, and by
//! messages. A write is one store in all of them; with a lock of its home's around it, too.

use super::super::{BenchError, Result};
use super::messages::Peers;
use super::{Options, time};
use crate::report::Report;
use crate::timing;
use rackmem::bounded::Domain;
use rackmem::locked::{Lock, Mutex};
use rackmem::{Contract, Fabric, Mode, Rack, RegionSpec, Shared};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Values that are shared.
const ITEMS: usize = 840; // Any number of nodes has equal parts.
/// Of so many operations one is a write.
const WRITE: usize = 100;
/// Operations between two looks at the clock.
const BATCH: u64 = 64;

/// Who writes an item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writers {
    /// Every node.
    All,
    /// The node that is its home (BI §3.3, partitioned).
    Owner,
}

/// One operation of a node: of that item, a write or a read.
type Operate<'a> = Box<dyn Fn(usize, bool) -> bool + Sync + 'a>;

/// Rates and packets of both, by a thread a node. What is refused because it is late counts as no
/// operation.
pub(super) fn run(
    options: &Options,
    (nodes, fabric, bound): (usize, Fabric, Duration),
    report: &mut Report,
) -> Result<()> {
    let rack = Rack::builder(nodes).fabric(fabric).mode(Mode::HomeOnly);
    let rack = rack.build()?;
    let shared: Vec<Shared<u64>> = (0..ITEMS)
        .map(|nth| rack.node(nth % nodes).alloc_isolated(0u64))
        .collect::<rackmem::Result<_, _>>()?;
    let mut here: Vec<Vec<Shared<u64>>> = Vec::new();
    let mut domains: Vec<Vec<Domain<u64>>> = Vec::new();
    let spec = |home: usize| {
        let bytes = 64 * ITEMS.div_ceil(nodes);
        let spec = RegionSpec::new(&format!("bench/items-{home}"), bytes);
        spec.contract(Contract::Bounded).on(home as u16)
    };
    for home in 0..nodes {
        rack.node(home).create_region(&spec(home))?;
    }
    for node in rack.nodes() {
        let all = shared.iter().map(|one| node.attach(one.addr()));
        here.push(all.collect::<rackmem::Result<_, _>>()?);
        let all = (0..nodes).map(|home| {
            let region = node.open_region(&spec(home))?;
            Domain::of(&region, bound)
        });
        domains.push(all.collect::<rackmem::Result<_, _>>()?);
    }
    let coherent = here.iter().map(|shared| -> Operate<'_> {
        Box::new(|nth, writes| match writes {
            true => shared[nth].write(1).is_ok(),
            false => shared[nth].read().is_ok(),
        })
    });
    let locks: Vec<Vec<Lock>> = rack
        .nodes()
        .iter()
        .map(|node| {
            let all =
                (0..nodes).map(|home| Mutex::renewed(node, &format!("bench/lock-{home}"), ()));
            all.collect::<rackmem::Result<_, _>>()
        })
        .collect::<rackmem::Result<_, _>>()?;
    let coherent_locked = here
        .iter()
        .zip(&locks)
        .map(|(shared, locks)| -> Operate<'_> {
            Box::new(move |nth, writes| match writes {
                true => locks[nth % nodes]
                    .lock()
                    .is_ok_and(|_held| shared[nth].write(1).is_ok()),
                false => shared[nth].read().is_ok(),
            })
        });
    let bounded = domains.iter().map(|domains| -> Operate<'_> {
        Box::new(move |nth, writes| {
            let (domain, item) = (&domains[nth % nodes], nth / nodes);
            match writes {
                true => domain.set(item, &1).is_ok(),
                false => domain.read(item).is_ok(),
            }
        })
    });
    let locked = domains.iter().map(|domains| -> Operate<'_> {
        Box::new(move |nth, writes| {
            let (domain, item) = (&domains[nth % nodes], nth / nodes);
            match writes {
                true => domain
                    .writer()
                    .is_ok_and(|mut writer| writer.set(item, &1).is_ok()),
                false => domain.read(item).is_ok(),
            }
        })
    });
    let peers = Peers::new(nodes, ITEMS, fabric)?;
    let messages = (0..nodes).map(|node| -> Operate<'_> {
        let peers = &peers;
        Box::new(move |nth, writes| match writes {
            true => peers.write(node, nth, 1),
            false => std::hint::black_box(peers.read(node, nth)) < 2,
        })
    });
    let (coherent, bounded): (Vec<_>, Vec<_>) = (coherent.collect(), bounded.collect());
    let coherent_locked: Vec<_> = coherent_locked.collect();
    let (locked, messages): (Vec<_>, Vec<_>) = (locked.collect(), messages.collect());
    let of_rack = || -> u64 {
        let metrics = rack.metrics();
        metrics.nodes.iter().map(|node| node.received.total()).sum()
    };
    let of_peers = || peers.sent();
    for (name, writers) in [
        ("all-write", Writers::All),
        ("owners-write", Writers::Owner),
    ] {
        let on = match fabric {
            Fabric::Inline => String::new(),
            fabric => format!("{}/", fabric.name()),
        };
        let case = format!("read-99/{on}nodes-{nodes}/{}/{name}", time(bound));
        let coherent = measure(options, &of_rack, (&coherent, writers))?;
        // Each beside the one that is coherent and has as many locks.
        type Way<'a> = (&'a str, &'a [Operate<'a>], &'a dyn Fn() -> u64, &'a str);
        let ways: [Way<'_>; 4] = [
            ("bounded", &bounded, &of_rack, "coherent"),
            ("messages", &messages, &of_peers, "coherent"),
            ("coherent-locked", &coherent_locked, &of_rack, "coherent"),
            ("bounded-locked", &locked, &of_rack, "coherent-locked"),
        ];
        report.add(&format!("{case}/coherent"), coherent.0, "ops/s")?;
        report.add(&format!("{case}/coherent/packets"), coherent.1, "per op")?;
        for (way, operate, packets, beside) in ways {
            let measured = measure(options, packets, (operate, writers))?;
            let (way, beside) = (format!("{case}/{way}"), format!("{case}/{beside}"));
            report.add_against(&way, measured.0, "ops/s", &beside)?;
            let (way, beside) = (format!("{way}/packets"), format!("{beside}/packets"));
            report.add_against(&way, measured.1, "per op", &beside)?;
        }
    }
    Ok(())
}

/// Operations a second, and packets that arrived anywhere for one.
fn measure(
    options: &Options,
    packets: &dyn Fn() -> u64,
    (nodes, writers): (&[Operate<'_>], Writers),
) -> Result<(f64, f64)> {
    let refused = AtomicU64::new(0);
    let go = |duration, part: u64| {
        timing::run(nodes.len(), duration, |node| {
            let (operate, refused) = (&nodes[node], &refused);
            let mut random = fastrand::Rng::with_seed(part << 8 | node as u64);
            move || {
                let mut done = 0;
                for _ in 0..BATCH {
                    let writes = random.usize(..WRITE) == 0;
                    let mut nth = random.usize(..ITEMS);
                    if writes && writers == Writers::Owner {
                        // Its own one of the same row.
                        nth = nth / nodes.len() * nodes.len() + node;
                    }
                    done += u64::from(operate(nth, writes));
                }
                refused.fetch_add(BATCH - done, Relaxed);
                done
            }
        })
    };
    // Warm copies.
    go(options.duration / 4, 0);
    let before = packets();
    let done = go(options.duration, 1);
    let sent = packets() - before;
    match done.operations() {
        0 => {
            let what = format!("all {refused:?} operations were refused");
            Err(BenchError::Missing(what))
        }
        operations => Ok((done.per_second(), sent as f64 / operations as f64)),
    }
}
