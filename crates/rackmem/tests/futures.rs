//! Operations as futures.

#[path = "support/executor.rs"]
mod executor;

use executor::{block_on, join};
use rackmem::diagnostics::Faults;
use rackmem::locked::{BlockLock, Mutex, RwLock};
use rackmem::{AccessError, Fabric, LockError, Mode, Rack, RackError, Shared, SharedSlice};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
const NODES: usize = 3;
const BLOCK: usize = 512;
/// Loses, doubles and delays packets.
const ROUGH: Faults = Faults::rough(0.02);

fn rack(fabric: Fabric, mode: Mode, faults: Option<Faults>) -> Rack {
    let rack = Rack::builder(NODES).fabric(fabric).mode(mode);
    // Room for fewer blocks than are used.
    let rack = rack.block_size(BLOCK).cache(64 * BLOCK).patience(LONG);
    match faults {
        Some(faults) => rack.faults(faults).build().unwrap(),
        None => rack.build().unwrap(),
    }
}

fn poll_once<R>(future: impl Future<Output = R> + Unpin) -> Option<R> {
    executor::poll_once(future).0
}

fn everywhere(claim: impl Fn(&Rack)) {
    for fabric in [Fabric::Inline, Fabric::Shm, Fabric::Udp] {
        for mode in [Mode::Switch, Mode::HomeOnly] {
            for faults in [None, Some(ROUGH)] {
                if faults.is_some() && fabric == Fabric::Inline {
                    continue;
                }
                eprintln!("{fabric:?} {mode:?} {}", faults.is_some());
                claim(&rack(fabric, mode, faults));
            }
        }
    }
}

/// Values of all homes, each in a block of its own, as this node sees them.
fn values(rack: &Rack, addrs: &[u64], id: usize) -> Vec<Shared<u64>> {
    let node = rack.node(id);
    addrs
        .iter()
        .map(|addr| node.attach(*addr).unwrap())
        .collect()
}

fn addrs(rack: &Rack, count: usize) -> Vec<u64> {
    (0..count)
        .map(|nth| rack.node(nth % NODES).alloc_isolated(0u64).unwrap().addr())
        .collect()
}

/// A thread a node, all at once.
fn on_all(rack: &Rack, work: impl Fn(usize) + Sync) {
    let begin = Barrier::new(rack.nodes().len());
    std::thread::scope(|scope| {
        for id in 0..rack.nodes().len() {
            let (begin, work) = (&begin, &work);
            scope.spawn(move || {
                begin.wait();
                work(id);
            });
        }
    });
}

#[test]
fn tasks_of_all_nodes_count() {
    const VALUES: usize = 100;
    const TASKS: usize = 24;
    const ROUNDS: usize = 25;
    everywhere(|rack| {
        let addrs = addrs(rack, VALUES);
        on_all(rack, |id| {
            let values = values(rack, &addrs, id);
            let task = |nth: usize| {
                let values = &values;
                async move {
                    let mut seen = vec![0; VALUES];
                    for round in 0..ROUNDS {
                        // Some are everybody's, and all are used.
                        let at = [(nth * 7 + round * 13) % VALUES, round % 3][round % 2];
                        let before = values[at].update_async(|n| n + 1).await.unwrap();
                        assert!(before >= seen[at], "{before} after {}", seen[at]);
                        seen[at] = before + 1;
                        let at = (at + 1) % VALUES;
                        let now = values[at].read_async().await.unwrap();
                        assert!(now >= seen[at], "{now} after {}", seen[at]);
                        seen[at] = now;
                    }
                }
            };
            join((0..TASKS).map(task));
        });
        let sum: u64 = values(rack, &addrs, 0)
            .iter()
            .map(|value| value.read().unwrap())
            .sum();
        assert_eq!(sum, (NODES * TASKS * ROUNDS) as u64);
    });
}

/// Bytes of which some elements lie in two blocks.
type Wide = [u32; 3];

#[test]
fn slices_are_read_written_and_changed() {
    // More blocks than the cache has.
    const LEN: usize = 4000;
    const ROUNDS: usize = 20;
    everywhere(|rack| {
        let first: SharedSlice<Wide> = rack.node(0).alloc_slice(LEN).unwrap();
        let of = |id: usize| {
            let node = rack.node(id);
            node.attach_slice::<Wide>(first.addr(), LEN).unwrap()
        };
        let values: Vec<Wide> = (0..LEN as u32).map(|n| [n, !n, n ^ 7]).collect();
        block_on(of(1).write_async(0, values.clone())).unwrap();
        assert_eq!(block_on(of(2).read_async(0..LEN)).unwrap(), values);
        assert_eq!(
            block_on(of(2).read_async(39..1501)).unwrap(),
            values[39..1501]
        );
        assert_eq!(of(0).to_vec(0..LEN).unwrap(), values);
        // Of all blocks some, one by one and changed in place, by all nodes.
        let blocks: Vec<_> = first.blocks().step_by(9).collect();
        on_all(rack, |id| {
            let slice = of(id);
            join(blocks.iter().map(|block| {
                let (slice, block) = (&slice, block.clone());
                async move {
                    for _ in 0..ROUNDS {
                        let add = |part: &mut [Wide]| part.iter_mut().for_each(|n| n[0] += 1);
                        slice.update_async(block.clone(), add).await.unwrap();
                    }
                }
            }));
        });
        for at in [0, 1, 41, 42, 43, LEN - 1] {
            let changed = blocks.iter().any(|block| block.contains(&at));
            let more = if changed { NODES * ROUNDS } else { 0 } as u32;
            let [n, others @ ..] = values[at];
            let now = [n + more, others[0], others[1]];
            assert_eq!(block_on(of(1).get_async(at)).unwrap(), now, "{at}");
            block_on(of(2).set_async(at, [9; 3])).unwrap();
            assert_eq!(of(0).get(at).unwrap(), [9; 3]);
        }
    });
}

#[test]
fn a_range_that_is_none_is_refused_and_changes_nothing() {
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let slice: SharedSlice<Wide> = rack.node(0).alloc_slice(100).unwrap();
    let outside = |error| matches!(error, AccessError::OutOfBounds { of: 100, .. });
    assert!(outside(block_on(slice.get_async(100)).unwrap_err()));
    assert!(outside(block_on(slice.get_async(usize::MAX)).unwrap_err()));
    let read = block_on(slice.read_async(99..102)).unwrap_err();
    assert!(outside(read.error) && read.done == 0);
    let written = block_on(slice.write_async(98, vec![[1; 3]; 3])).unwrap_err();
    assert!(outside(written.error) && written.done == 0);
    let changed = block_on(slice.update_async(90..101, |_| ())).unwrap_err();
    assert!(outside(changed));
    let two_blocks = block_on(slice.update_async(40..45, |part| part.fill([1; 3]))).unwrap_err();
    assert!(matches!(two_blocks, AccessError::BadRange { .. }));
    assert_eq!(slice.to_vec(0..100).unwrap(), [[0; 3]; 100]);
    assert!(block_on(slice.read_async(7..7)).unwrap().is_empty());
    // What is dropped before it was polled is not done.
    drop(slice.write_async(0, vec![[1; 3]; 100]));
    assert_eq!(slice.get(0).unwrap(), [0; 3]);
}

#[test]
fn tasks_and_threads_stand_in_one_line() {
    const TASKS: usize = 8;
    const ROUNDS: usize = 20;
    everywhere(|rack| {
        let count = Mutex::create(&rack.node(0), 0u64).unwrap();
        let pair = RwLock::create(&rack.node(1), [0u64; 2]).unwrap();
        on_all(rack, |id| {
            let node = rack.node(id);
            let count: Mutex<u64> = Mutex::attach(&node, count.addr()).unwrap();
            let pair: RwLock<[u64; 2]> = RwLock::attach(&node, pair.addr()).unwrap();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        *count.lock().unwrap() += 1;
                    }
                });
                let task = |nth: usize| {
                    let (count, pair) = (&count, &pair);
                    async move {
                        for round in 0..ROUNDS {
                            *count.lock_async().await.unwrap() += 1;
                            if (nth + round).is_multiple_of(4) {
                                let mut held = pair.write_async().await.unwrap();
                                held.update(|[a, b]| [a + 1, b + 1]);
                            } else {
                                let held = pair.read_async().await.unwrap();
                                assert_eq!(held[0], held[1]);
                            }
                        }
                    }
                };
                join((0..TASKS).map(task));
            });
        });
        assert_eq!(
            *count.lock().unwrap(),
            (NODES * (TASKS + 1) * ROUNDS) as u64
        );
        assert_eq!(pair.read().unwrap()[0], (NODES * TASKS * ROUNDS / 4) as u64);
    });
}

#[test]
fn what_is_dropped_leaves_nothing_locked() {
    const ROUNDS: u64 = 60;
    everywhere(|rack| {
        let addrs = addrs(rack, 5);
        let lock = Mutex::create(&rack.node(0), 0u64).unwrap();
        let (begun, done, entered) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        on_all(rack, |id| {
            let node = rack.node(id);
            let values = values(rack, &addrs, id);
            let lock: Mutex<u64> = Mutex::attach(&node, lock.addr()).unwrap();
            for round in 0..ROUNDS {
                let value = &values[round as usize % addrs.len()];
                begun.fetch_add(1, SeqCst);
                let update = value.update_async(|n| n + 1);
                match round % 3 {
                    0 => drop(update),
                    1 => {
                        let now = poll_once(update);
                        done.fetch_add(u64::from(now.is_some()), SeqCst);
                    }
                    _ => {
                        block_on(update).unwrap();
                        done.fetch_add(1, SeqCst);
                    }
                }
                if round % 3 == 0 {
                    *block_on(lock.lock_async()).unwrap() += 1;
                    entered.fetch_add(1, SeqCst);
                } else if let Some(held) = poll_once(lock.lock_async()) {
                    *held.unwrap() += 1;
                    entered.fetch_add(1, SeqCst);
                }
            }
        });
        // Whoever had left something locked would stop these.
        assert_eq!(*lock.lock().unwrap(), entered.into_inner());
        let sum: u64 = values(rack, &addrs, 2)
            .iter()
            .map(|value| value.update(|n| n).unwrap())
            .sum();
        let (begun, done) = (begun.into_inner(), done.into_inner());
        assert!((done..=begun).contains(&sum), "{sum} of {done} to {begun}");
    });
}

#[test]
fn what_was_dropped_before_it_began_is_not_done() {
    everywhere(|rack| {
        let addr = addrs(rack, 1)[0];
        let value: Shared<u64> = rack.node(1).attach(addr).unwrap();
        rack.node(0).store(addr, 9).unwrap();
        let lock = BlockLock::attach(&rack.node(0), addr).unwrap();
        let held = lock.write().unwrap();
        let mut update = value.update_async(|n| n + 1);
        assert!(poll_once(&mut update).is_none());
        drop(update);
        drop(held);
        // Its order is looked at again within a millisecond or two, and there have been others
        // since.
        for _ in 0..5 {
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!(block_on(value.update_async(|n| n)), Ok(9));
        }
    });
}

/// A turn that came just when nobody wanted it any more goes on to the next one.
#[test]
fn a_turn_that_nobody_takes_goes_on() {
    everywhere(|rack| {
        let lock = Mutex::create(&rack.node(0), 0u64).unwrap();
        let there: Mutex<u64> = Mutex::attach(&rack.node(1), lock.addr()).unwrap();
        for _ in 0..5 {
            let inside = lock.lock().unwrap();
            let mut turn = there.lock_async();
            let (entered, woken) = executor::poll_once(&mut turn);
            assert!(entered.is_none());
            drop(inside);
            let began = Instant::now();
            while !woken.is.load(SeqCst) {
                assert!(began.elapsed() < LONG, "it is never let in");
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(turn);
            assert!(lock.lock_within(LONG).unwrap().is_some(), "it stays there");
        }
    });
}

#[test]
fn as_many_as_may_be_are_under_way_and_no_more() {
    let rack = rack(Fabric::Shm, Mode::HomeOnly, None);
    let addr = addrs(&rack, 1)[0];
    let lock = BlockLock::attach(&rack.node(0), addr).unwrap();
    let here = rack.node(1).alloc_isolated(3u64).unwrap();
    let shut: Shared<u64> = rack.node(1).attach(addr).unwrap();
    rack.node(0).store(addr, 9).unwrap();
    let held = lock.write().unwrap();
    let mut waiting: Vec<_> = (0..4096).map(|_| shut.read_async()).collect();
    for future in &mut waiting {
        assert!(poll_once(future).is_none());
    }
    let refused = poll_once(shut.read_async());
    assert_eq!(refused, Some(Err(AccessError::TooManyAsked { most: 4096 })));
    // What is here needs nobody.
    assert_eq!(poll_once(here.read_async()), Some(Ok(3)));
    drop(held);
    assert!(join(waiting).into_iter().all(|read| read == Ok(9)));
    assert_eq!(block_on(shut.read_async()), Ok(9));
}

#[test]
fn a_panic_is_its_futures() {
    everywhere(|rack| {
        let addr = addrs(rack, 1)[0];
        let value: Shared<u64> = rack.node(1).attach(addr).unwrap();
        rack.node(0).store(addr, 1).unwrap();
        let panics = value.update_async(|_| std::panic::resume_unwind(Box::new("meant")));
        let other = value.update_async(|n| n + 1);
        let panicked = catch_unwind(AssertUnwindSafe(|| block_on(panics)));
        let panic = panicked.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"meant"));
        assert_eq!(block_on(other), Ok(1));
        assert_eq!(rack.node(2).load(addr), Ok(2));
    });
}

#[test]
fn a_closed_rack_ends_what_waits() {
    everywhere_closed(|rack, wait| {
        let lock = Mutex::create(&rack.node(0), 0u64).unwrap();
        let there: Mutex<u64> = Mutex::attach(&rack.node(1), lock.addr()).unwrap();
        let addr = addrs(&rack, 1)[0];
        let value: Shared<u64> = rack.node(1).attach(addr).unwrap();
        rack.node(0).store(addr, 9).unwrap();
        let shut = BlockLock::attach(&rack.node(0), addr).unwrap();
        let (inside, held) = (lock.lock().unwrap(), shut.write().unwrap());
        let mut turn = there.lock_async();
        let mut read = value.read_async();
        assert!(poll_once(&mut turn).is_none() && poll_once(&mut read).is_none());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                std::thread::sleep(wait);
                drop(rack);
            });
            let closed = RackError::Closed;
            assert_eq!(block_on(read), Err(AccessError::Rack(closed)));
            let error = block_on(turn).err();
            assert_eq!(error, Some(LockError::Rack(closed)));
            assert_eq!(
                block_on(value.read_async()).err(),
                Some(AccessError::Rack(closed))
            );
        });
        drop((inside, held));
    });
}

fn everywhere_closed(claim: impl Fn(Rack, Duration)) {
    for fabric in [Fabric::Inline, Fabric::Shm, Fabric::Udp] {
        for wait in [0, 30] {
            let rack = rack(fabric, Mode::Switch, None);
            claim(rack, Duration::from_millis(wait));
        }
    }
}

#[test]
fn a_future_may_go_to_another_thread() {
    fn sent<F: Future + Send + Unpin>(future: F) -> F {
        future
    }
    let rack = rack(Fabric::Udp, Mode::Switch, None);
    let addr = addrs(&rack, 1)[0];
    let value: Shared<u64> = rack.node(1).attach(addr).unwrap();
    let lock = Mutex::create(&rack.node(0), 5u64).unwrap();
    let there: Mutex<u64> = Mutex::attach(&rack.node(1), lock.addr()).unwrap();
    rack.node(0).store(addr, 9).unwrap();
    let inside = lock.lock().unwrap();
    let (mut read, mut turn) = (sent(value.read_async()), sent(there.lock_async()));
    // Woken by another waker than the one it has begun with.
    assert!(poll_once(&mut turn).is_none());
    let first = poll_once(&mut read);
    std::thread::scope(|scope| {
        let read = scope.spawn(move || first.unwrap_or_else(|| block_on(read)));
        let turn = scope.spawn(move || block_on(turn).map(|held| *held));
        drop(inside);
        assert_eq!(read.join().unwrap(), Ok(9));
        assert_eq!(turn.join().unwrap(), Ok(5));
    });
}

/// Tasks of all nodes leave the line of a lock at any moment, or leave the lock itself in the
/// middle: whoever waits has its turn, also where what the lock protects has come for a task that
/// was dropped, and before the grant.
#[test]
fn turns_that_are_dropped_at_any_moment_keep_nobody_waiting() {
    everywhere(|rack| {
        let locks: Vec<Mutex<u64>> = (0..NODES)
            .map(|home| Mutex::create(&rack.node(home), 0).unwrap())
            .collect();
        let done: Vec<AtomicU64> = locks.iter().map(|_| AtomicU64::new(0)).collect();
        on_all(rack, |id| {
            let moment = || std::thread::sleep(Duration::from_micros(fastrand::u64(0..300)));
            for (lock, done) in locks.iter().zip(&done) {
                let here: Mutex<u64> = Mutex::attach(&rack.node(id), lock.addr()).unwrap();
                for nth in 0..150 {
                    let mut turn = here.lock_async();
                    if nth % 3 == 0 {
                        let mut inside = block_on(turn).unwrap();
                        *inside += 1;
                        done.fetch_add(1, SeqCst);
                        continue;
                    }
                    for _ in 0..3 {
                        let inside = poll_once(&mut turn);
                        moment();
                        if inside.is_some() {
                            break;
                        }
                    }
                }
            }
        });
        for (lock, done) in locks.iter().zip(&done) {
            assert_eq!(*lock.lock().unwrap(), done.load(SeqCst));
        }
    });
}
