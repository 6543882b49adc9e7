//! Many threads at two nodes on few keys: nothing is lost, nothing is torn,
//! several keys change as one.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use rackmem_kv::memory::{HeapMemory, PAGE_STRIDE};
use rackmem_kv::{Db, Error, Options, Plan, Store, Sweep, Values};

fn stores(block: usize, buckets: usize) -> Vec<Store<HeapMemory>> {
    let options = Options {
        buckets,
        ..Options::default()
    };
    open(block, options)
}

fn open(block: usize, options: Options) -> Vec<Store<HeapMemory>> {
    let memory = HeapMemory::new(block, 256 << 20, 2);
    (0..2)
        .map(|i| Store::open(memory.node(i), options.clone()).unwrap())
        .collect()
}

/// Runs `work(thread)` in several threads while `watch` runs in others until they are done.
fn crowd(threads: usize, work: impl Fn(usize) + Sync, watch: impl Fn(usize) + Sync) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watchers: Vec<_> = (0..2)
            .map(|i| {
                let (done, watch) = (&done, &watch);
                scope.spawn(move || {
                    while !done.load(Relaxed) {
                        watch(i);
                    }
                })
            })
            .collect();
        let workers: Vec<_> = (0..threads)
            .map(|i| {
                let work = &work;
                scope.spawn(move || work(i))
            })
            .collect();
        let results: Vec<_> = workers.into_iter().map(|w| w.join()).collect();
        done.store(true, Relaxed);
        results.into_iter().for_each(|r| r.unwrap());
        watchers.into_iter().for_each(|w| w.join().unwrap());
    });
}

#[test]
fn no_increment_is_lost() {
    for (block, buckets) in [(256, 1), (4096, 8)] {
        let stores = stores(block, buckets);
        let keys: Vec<_> = (0..20).map(|i| format!("counter:{i}")).collect();
        let count = |i: usize| {
            for round in 0..2000 {
                stores[i % 2]
                    .increment(keys[round % 20].as_bytes(), 1)
                    .unwrap();
            }
        };
        crowd(4, count, |i| {
            let mut value = Vec::new();
            stores[i % 2].get(keys[3].as_bytes(), &mut value).unwrap();
            assert!(value.iter().all(u8::is_ascii_digit));
        });
        for key in &keys {
            assert_eq!(stores[0].increment(key.as_bytes(), 0).unwrap(), 400);
        }
        assert_eq!(stores[1].first().len().unwrap(), 20);
    }
}

/// A value that shows when it is torn: all bytes the same, and a length that goes with them.
fn uniform(byte: u8) -> Vec<u8> {
    vec![byte; 40 + usize::from(byte) * 37]
}

#[test]
fn long_and_short_values_are_whole() {
    // As many buckets at the end as now: what has ever been a bucket's lock stays one.
    let options = Options {
        buckets: 2,
        most_buckets: 2,
        ..Options::default()
    };
    let stores = open(512, options);
    let write = |i: usize| {
        let mut rng = fastrand::Rng::with_seed(i as u64);
        for _ in 0..1500 {
            let key = [b'k', rng.u8(..6)];
            match rng.u8(..8) {
                0 => {
                    stores[i % 2].remove(&key).unwrap();
                }
                1 => {
                    let to = [b'k', rng.u8(..6)];
                    match stores[i % 2].first().rename(&key, &to, true) {
                        Ok(_) | Err(Error::NoSuchKey) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                2 => {
                    stores[i % 2]
                        .first()
                        .copy(&key, 0, &[b'k', rng.u8(..6)], true)
                        .unwrap();
                }
                _ => stores[i % 2].set(&key, &uniform(rng.u8(..))).unwrap(),
            }
        }
    };
    crowd(4, write, |i| {
        let mut value = Vec::new();
        for key in 0..6 {
            if stores[i % 2].get(&[b'k', key], &mut value).unwrap() {
                assert_eq!(value, uniform(value[0]));
            }
        }
    });
    stores[0].first().flush_all().unwrap();
    for store in &stores {
        store.sweep(&mut Sweep::default(), 100).unwrap();
    }
    assert_eq!(stores[0].memory().live_bytes(), (2 + 1) * PAGE_STRIDE);
}

#[test]
fn appended_pieces_are_all_there() {
    let stores = stores(512, 1);
    let append = |i: usize| {
        for n in 0..800 {
            stores[i % 2]
                .first()
                .append(b"log", format!("<{i}:{n}>").as_bytes())
                .unwrap();
        }
    };
    crowd(3, append, |i| {
        let mut value = Vec::new();
        stores[i % 2].get(b"log", &mut value).unwrap();
        assert!(
            value.is_empty() || value.starts_with(b"<") && value.ends_with(b">"),
            "a piece was seen half"
        );
    });
    let mut log = Vec::new();
    stores[1].get(b"log", &mut log).unwrap();
    let log = String::from_utf8(log).unwrap();
    for i in 0..3 {
        let mine: Vec<usize> = log
            .split(['<', '>'])
            .filter_map(|p| p.strip_prefix(&format!("{i}:"))?.parse().ok())
            .collect();
        assert_eq!(mine, (0..800).collect::<Vec<_>>());
    }
}

fn number(value: &[u8]) -> i64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

/// Moves money between accounts; the sum never changes.
fn transfer(store: &Store<HeapMemory>, rng: &mut fastrand::Rng, accounts: &[String]) {
    let (from, to) = (
        &accounts[rng.usize(..accounts.len())],
        &accounts[rng.usize(..accounts.len())],
    );
    let amount = rng.i64(1..10);
    let keys = [from.as_bytes(), to.as_bytes()];
    let transaction = store.transaction(keys, Plan::default()).unwrap();
    let db = transaction.db(0).unwrap();
    db.increment(keys[0], -amount).unwrap();
    db.increment(keys[1], amount).unwrap();
}

#[test]
fn transactions_and_reads_of_many_keys_are_one_step() {
    let stores = stores(256, 4);
    let accounts: Vec<_> = (0..12).map(|i| format!("account:{i}")).collect();
    let pairs: Vec<_> = accounts
        .iter()
        .map(|a| (a.as_bytes(), b"100".as_slice()))
        .collect();
    stores[0].first().set_many(&pairs, false).unwrap();
    let keys: Vec<_> = accounts.iter().map(|a| a.as_bytes()).collect();
    let work = |i: usize| {
        let mut rng = fastrand::Rng::with_seed(i as u64);
        for round in 0..1500 {
            transfer(&stores[i % 2], &mut rng, &accounts);
            if round % 50 == 0 {
                stores[i % 2].first().set_many(&pairs, false).unwrap();
            }
        }
    };
    crowd(3, work, |i| {
        let mut values = Values::default();
        stores[i % 2]
            .first()
            .get_many(&keys, 1 << 20, &mut values)
            .unwrap();
        let sum: i64 = values.iter().map(|v| number(v.unwrap())).sum();
        assert_eq!(sum, 1200);
    });
}

#[test]
fn a_flush_is_one_step() {
    // Addresses of locks stay given out when buckets have joined again.
    let options = Options {
        buckets: 4,
        most_buckets: 4,
        ..Options::default()
    };
    let stores = open(256, options);
    let keys: Vec<_> = (0..9u8).map(|i| [b'f', i]).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|k| k.as_slice()).collect();
    let pairs: Vec<_> = keys.iter().map(|k| (*k, b"1".as_slice())).collect();
    let work = |i: usize| {
        for _ in 0..800 {
            let db: Db<'_, _> = stores[i % 2].first();
            if i == 0 {
                db.flush().unwrap();
            } else {
                db.set_many(&pairs, false).unwrap();
                let plan = Plan {
                    whole: false,
                    flush: true,
                };
                let transaction = stores[i % 2]
                    .transaction(keys.iter().copied(), plan)
                    .unwrap();
                let db = transaction.db(0).unwrap();
                db.set(keys[0], b"2").unwrap();
                db.flush_all().unwrap();
                assert_eq!(db.count_present(&keys).unwrap(), 0);
                db.set_many(&pairs, false).unwrap();
            }
        }
    };
    crowd(3, work, |i| {
        let present = stores[i % 2].first().count_present(&keys).unwrap();
        assert!(
            present == 0 || present == keys.len(),
            "{present} of {} keys",
            keys.len()
        );
    });
    stores[0].first().flush_all().unwrap();
    for store in &stores {
        store.sweep(&mut Sweep::default(), 100).unwrap();
    }
    assert_eq!(stores[0].memory().live_bytes(), (4 + 1) * PAGE_STRIDE);
}

#[test]
fn whoever_waits_for_a_bucket_does_not_wait_for_ever() {
    let memory = HeapMemory::new(256, 1 << 20, 1);
    let options = Options {
        buckets: 2,
        patience: Duration::from_millis(30),
        ..Options::default()
    };
    let store = Store::open(memory, options).unwrap();
    store.set(b"k", b"v").unwrap();
    let held = store
        .transaction([b"k".as_slice()], Plan::default())
        .unwrap();
    assert!(matches!(
        store.get(b"k", &mut Vec::new()),
        Err(Error::Busy(_))
    ));
    assert!(matches!(store.set(b"k", b"w"), Err(Error::Busy(_))));
    assert!(matches!(
        store.transaction([b"k".as_slice()], Plan::default()),
        Err(Error::Busy(_))
    ));
    drop(held);
    store.set(b"k", b"w").unwrap();
}

#[test]
fn memory_that_runs_out_loses_nothing() {
    let memory = HeapMemory::new(256, 64 << 10, 1);
    let store = Store::open(
        memory,
        Options {
            buckets: 2,
            most_buckets: 2,
            ..Options::default()
        },
    )
    .unwrap();
    let mut stored = 0;
    let full = loop {
        match store.set(
            format!("key:{stored}").as_bytes(),
            &uniform(stored as u8 % 8),
        ) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full.code(), "OOM");
    assert!(stored > 50);
    let mut value = Vec::new();
    for i in 0..stored {
        assert!(
            store
                .get(format!("key:{i}").as_bytes(), &mut value)
                .unwrap()
        );
        assert_eq!(value, uniform(i as u8 % 8));
    }
    assert_eq!(store.first().len().unwrap(), stored);
    store.first().flush().unwrap();
    store.sweep(&mut Sweep::default(), 100).unwrap();
    assert_eq!(store.memory().live_bytes(), (2 + 1) * PAGE_STRIDE);
    store.set(b"again", &[1; 200]).unwrap();
}

#[test]
fn settings_must_agree() {
    let memory = HeapMemory::new(256, 8 << 20, 1);
    Store::open(
        memory.clone(),
        Options {
            buckets: 64,
            ..Options::default()
        },
    )
    .unwrap();
    for buckets in [32, 1024] {
        let other = Store::open(
            memory.clone(),
            Options {
                buckets,
                ..Options::default()
            },
        );
        assert!(
            matches!(other.err(), Some(Error::Settings { have: 64, .. })),
            "{buckets}"
        );
    }
    assert!(matches!(
        Store::open(
            memory.clone(),
            Options {
                buckets: 3,
                ..Options::default()
            }
        )
        .err(),
        Some(Error::BadOption(_))
    ));
    let huge = Options {
        buckets: 1 << 20,
        name: "huge".into(),
        ..Options::default()
    };
    assert_eq!(
        Store::open(memory.clone(), huge.clone())
            .err()
            .map(|e| e.code()),
        Some("OOM")
    );
    assert_eq!(
        Store::open(memory.clone(), huge).err().map(|e| e.code()),
        Some("OOM"),
        "and again"
    );
    assert_eq!(memory.live_bytes(), (64 + 1) * PAGE_STRIDE);
    let store = Store::open(
        memory,
        Options {
            buckets: 64,
            ..Options::default()
        },
    )
    .unwrap();
    assert!(matches!(
        store.set(&[0; 65], b""),
        Err(Error::KeyTooLong { len: 65, limit: 64 })
    ));
    assert!(matches!(
        store.set(b"k", &vec![0; (64 << 20) + 1]),
        Err(Error::ValueTooLong)
    ));
}

#[test]
fn several_keys_are_set_together_or_not_at_all_when_memory_runs_out() {
    for pages in 2..40 {
        let memory = HeapMemory::new(256, pages * 256, 1);
        let options = Options {
            buckets: 1,
            ..Options::default()
        };
        let Ok(store) = Store::open(memory, options) else {
            continue;
        };
        let keys: Vec<_> = (0..12u8).map(|i| [b'm', i]).collect();
        let pairs: Vec<_> = keys
            .iter()
            .map(|k| (k.as_slice(), [7; 60].as_slice()))
            .collect();
        let names: Vec<_> = keys.iter().map(|k| k.as_slice()).collect();
        let before = usize::from(store.set(&keys[3], b"old").is_ok());
        let set = store.first().set_many(&pairs, false).is_ok();
        let present = store.first().count_present(&names).unwrap();
        assert_eq!(present, if set { 12 } else { before }, "{pages} pages");
        assert!(set || pages < 35, "{pages} pages are enough");
    }
}
