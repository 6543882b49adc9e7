//! What threads of several nodes were told of bounded memory, recorded and judged: every value was
//! current within the bound before it was read, and no node's reads of a value go back.

use crate::mapped::{ArenaFile, arenas, replace};
use crate::{FABRICS, LONG, domains, rack};
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec};
use rackmem::diagnostics::Faults;
use rackmem::{AccessError, ArenaError, Fabric, Mode, Rack};
use rackmem_sim::history::{Call, Operation, Recorder, Reply};
use rackmem_sim::staleness::{AgePromise, Ages, check};
use std::time::{Duration, Instant};

pub const BOUND: Duration = Duration::from_millis(20);
/// Items that all nodes read and write.
pub const ITEMS: usize = 3;
/// Operations of a thread.
const OPERATIONS: usize = 4000;

/// Does one operation of a thread: of an item, writes this value or reads. Nothing: it was refused.
type Operate<'a> = &'a (dyn Fn(usize, Option<u64>) -> Option<u64> + Sync);

/// Two threads a node do operations, until something old was read.
fn recorded(nodes: &[Operate<'_>]) -> Vec<Operation> {
    let recorder = Recorder::new(1 << 20);
    std::thread::scope(|scope| {
        for nth in 0..2 * nodes.len() {
            let (node, recorder) = (nth % nodes.len(), &recorder);
            scope.spawn(move || {
                let mut log = recorder.client(node as u32);
                let mut random = fastrand::Rng::with_seed(nth as u64);
                for done in 0..OPERATIONS {
                    let item = random.usize(..ITEMS);
                    let value =
                        (random.usize(..50) == 0).then(|| (nth * OPERATIONS + done + 1) as u64);
                    let call = match value {
                        Some(value) => Call::Set {
                            value: value.to_string(),
                        },
                        None => Call::Get,
                    };
                    let ticket = log.begin(&item.to_string(), call).unwrap();
                    match (nodes[node](item, value), value) {
                        (Some(read), None) if read > 0 => {
                            log.ok(ticket, Reply::Text(read.to_string()));
                        }
                        (Some(_), _) => log.ok(ticket, Reply::Nil),
                        (None, _) => log.fail(ticket),
                    }
                    // Over several ticks.
                    if done % 100 == 0 {
                        std::thread::sleep(BOUND / 10);
                    }
                }
            });
        }
    });
    recorder.into_history()
}

pub fn judged(history: &[Operation]) -> Ages {
    let promise = AgePromise {
        bound: BOUND.as_nanos() as u64,
        section: None,
        onward: true,
    };
    let ages = check(history, promise);
    ages.unwrap_or_else(|why| panic!("{why}"))
}

/// Histories until one has a read of what was superseded: others show little.
fn all_is_within_the_bound(what: &str, nodes: &[Operate<'_>]) {
    let end = Instant::now() + LONG;
    while judged(&recorded(nodes)).old == 0 {
        assert!(Instant::now() < end, "{what}: nothing old is read");
    }
}

/// Packets that are lost, come twice and overtake each other.
pub const ROUGH: Faults = Faults {
    delay: 0.05,
    ..Faults::rough(0.02)
};

#[test]
fn what_threads_read_of_items_was_current_within_the_bound() {
    let rough = Rack::builder(3).fabric(Fabric::Udp).mode(Mode::HomeOnly);
    let rough = rough.patience(LONG).faults(ROUGH).build().unwrap();
    let racks = FABRICS.map(|fabric| (format!("{fabric:?}"), rack(fabric, 3)));
    for (what, rack) in racks
        .into_iter()
        .chain([("a bad network".to_owned(), rough)])
    {
        let all = domains(&rack, ITEMS, BOUND);
        let operate = all.iter().map(|domain| {
            move |item, value: Option<u64>| match value {
                Some(value) => {
                    domain.writer().unwrap().set(item, &value).unwrap();
                    Some(value)
                }
                None => match domain.read(item) {
                    Ok(value) => Some(value),
                    Err(AccessError::Stale { .. }) => None,
                    Err(error) => panic!("{error}"),
                },
            }
        });
        let operate: Vec<_> = operate.collect();
        let nodes: Vec<Operate<'_>> = operate.iter().map(|one| one as Operate<'_>).collect();
        all_is_within_the_bound(&what, &nodes);
    }
}

#[test]
fn what_threads_read_in_arenas_was_current_within_the_bound() {
    let (rack, file) = (Rack::local(3).unwrap(), ArenaFile::new("history"));
    let spec = ArenaSpec::new(&file.0, 3 << 20).bound(BOUND).emulated();
    let (all, lock) = arenas(&rack, &spec);
    let read = |arena: &Arena, slot: ArenaSlot<u64>| {
        let section = arena.enter()?;
        let value = section.get(slot)?;
        section.finish()?;
        Ok(value.unwrap_or_default())
    };
    let lock = &lock;
    let operate = all.iter().map(|arena| {
        move |item: usize, value: Option<u64>| {
            let slot: ArenaSlot<u64> = arena.slot(item as u64).unwrap();
            match value {
                Some(value) => {
                    replace(arena, lock, slot, &value).unwrap();
                    Some(value)
                }
                None => match read(arena, slot) {
                    Ok(value) => Some(value),
                    Err(ArenaError::Late { .. }) => None,
                    Err(error) => panic!("{error}"),
                },
            }
        }
    });
    let operate: Vec<_> = operate.collect();
    let nodes: Vec<Operate<'_>> = operate.iter().map(|one| one as Operate<'_>).collect();
    all_is_within_the_bound("arenas", &nodes);
}
