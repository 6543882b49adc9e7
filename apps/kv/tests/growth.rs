//! Buckets split and are merged while threads of several nodes use the store.

use rackmem::Rack;
use rackmem_kv::memory::{HeapMemory, Memory};
use rackmem_kv::{Error, Keys, Options, Plan, Store, Sweep};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn options(buckets: usize) -> Options {
    Options {
        buckets,
        ..Options::default()
    }
}

fn on_heap(block: usize, nodes: u16) -> Vec<Store<HeapMemory>> {
    let memory = HeapMemory::new(block, 512 << 20, usize::from(nodes));
    (0..nodes)
        .map(|node| Store::open(memory.node(node), options(1)).unwrap())
        .collect()
}

/// All keys of database 0 as a scan finds them, and how many it found.
fn scan<M: Memory>(store: &Store<M>) -> (BTreeSet<Vec<u8>>, usize) {
    let (mut found, mut count, mut cursor) = (BTreeSet::new(), 0, 0);
    loop {
        let mut keys = Keys::default();
        cursor = store.first().scan(cursor, 10, &mut keys).unwrap();
        count += keys.len();
        found.extend(keys.iter().map(<[u8]>::to_vec));
        if cursor == 0 {
            return (found, count);
        }
    }
}

/// Threads write, remove and read keys of their own, move amounts between two keys at a time, and
/// look for keys that are there all the time.
fn crowd<M: Memory>(stores: &[Store<M>], keys: usize, rounds: usize) {
    const ACCOUNTS: usize = 20;
    const STAYING: usize = 200;
    let over = AtomicBool::new(false);
    let account = |n: usize| format!("account:{n}").into_bytes();
    let staying = |n: usize| format!("staying:{n}").into_bytes();
    for n in 0..ACCOUNTS {
        stores[0].increment(&account(n), 100).unwrap();
    }
    for n in 0..STAYING {
        stores[n % stores.len()].set(&staying(n), b"here").unwrap();
    }
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        for (node, store) in stores.iter().enumerate() {
            workers.push(scope.spawn(move || {
                let (mut rng, mut value) = (fastrand::Rng::with_seed(node as u64), Vec::new());
                for round in 0..rounds {
                    for n in 0..keys {
                        let key = format!("{node}:{n}").into_bytes();
                        let len = rng.usize(0..200);
                        store.set(&key, &vec![n as u8; len]).unwrap();
                        assert!(store.get(&key, &mut value).unwrap());
                        assert_eq!(value, vec![n as u8; len]);
                    }
                    // The last round stays.
                    for n in 0..keys * usize::from(round + 1 < rounds) {
                        let key = format!("{node}:{n}").into_bytes();
                        assert!(store.remove(&key).unwrap(), "{node}:{n}");
                    }
                }
            }));
            let over = &over;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(77 + node as u64);
                while !over.load(Relaxed) {
                    let (from, to) = (
                        account(rng.usize(..ACCOUNTS)),
                        account(rng.usize(..ACCOUNTS)),
                    );
                    let plan = Plan::default();
                    let held = store.transaction([&from[..], &to[..]], plan).unwrap();
                    let db = held.db(0).unwrap();
                    db.increment(&from, -1).unwrap();
                    db.increment(&to, 1).unwrap();
                    drop(held);
                    let names: Vec<_> = (0..ACCOUNTS).map(account).collect();
                    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                    let mut values = rackmem_kv::Values::default();
                    store
                        .first()
                        .get_many(&names, 1 << 20, &mut values)
                        .unwrap();
                    let number = |text: &[u8]| std::str::from_utf8(text).unwrap().parse::<i64>();
                    let sum: i64 = values.iter().map(|v| number(v.unwrap()).unwrap()).sum();
                    assert_eq!(sum, 100 * ACCOUNTS as i64);
                }
            });
        }
        let over = &over;
        scope.spawn(move || {
            while !over.load(Relaxed) {
                for store in stores {
                    let (found, _) = scan(store);
                    let missing: Vec<_> = (0..STAYING)
                        .map(staying)
                        .filter(|key| !found.contains(key))
                        .collect();
                    assert!(missing.is_empty(), "{missing:?}");
                    assert!(store.first().random_key().unwrap().is_some());
                }
            }
        });
        let ends = workers.into_iter().map(|worker| worker.join());
        let ends: Vec<_> = ends.collect();
        over.store(true, Relaxed);
        ends.into_iter().for_each(|end| end.unwrap());
    });
    let all = ACCOUNTS + STAYING + keys * stores.len();
    for store in stores {
        let (found, count) = scan(store);
        assert_eq!((found.len(), count), (all, all));
        assert_eq!(store.first().len().unwrap(), all);
    }
    // A transaction over all keys sees them all.
    let whole = Plan {
        whole: true,
        ..Plan::default()
    };
    let held = stores[0].transaction([], whole).unwrap();
    let mut keys = Keys::default();
    let mut cursor = held.db(0).unwrap().scan(0, all, &mut keys).unwrap();
    while cursor != 0 {
        cursor = held.db(0).unwrap().scan(cursor, all, &mut keys).unwrap();
    }
    assert_eq!(keys.len(), all);
}

#[test]
fn nothing_is_lost_or_seen_twice_while_buckets_split() {
    crowd(&on_heap(256, 3), 1500, 3);
    crowd(&on_heap(4096, 2), 3000, 3);
}

#[test]
fn nor_over_a_rack() {
    let rack = Rack::builder(3).memory(256 << 20).build().unwrap();
    let open = |node: &rackmem::Node| Store::open(node.clone(), options(4)).unwrap();
    let stores: Vec<_> = rack.nodes().iter().map(open).collect();
    crowd(&stores, 1000, 2);
    let before = stores[0].buckets();
    assert!(before > 4, "{before}");
}

/// Keys are removed or flushed: few buckets are left, and another node finds what comes then.
#[test]
fn an_empty_store_is_small_again() {
    for flushes in [false, true] {
        let stores = on_heap(4096, 2);
        let name = |n: usize| format!("key:{n}").into_bytes();
        for n in 0..20_000 {
            stores[n % 2].set(&name(n), &[1; 40]).unwrap();
        }
        match flushes {
            true => stores[0].first().flush().unwrap(),
            false => (0..20_000).for_each(|n| assert!(stores[1].remove(&name(n)).unwrap())),
        }
        let mut sweeps = [(); 2].map(|()| Sweep::default());
        for round in 0..40 {
            let sweep = &mut sweeps[round % 2];
            stores[round % 2].sweep(sweep, 1 << 20).unwrap();
        }
        // A step of a scan for one key looks at a thousand buckets at most.
        let mut keys = Keys::default();
        stores[1].set(b"one", b"").unwrap();
        assert_eq!(
            stores[0].first().scan(0, 1, &mut keys).unwrap(),
            0,
            "{flushes}"
        );
        assert_eq!(keys.iter().collect::<Vec<_>>(), [b"one"]);
        for n in 0..5_000 {
            stores[n % 2].set(&name(n), &[2; 40]).unwrap();
        }
        for n in 0..5_000 {
            let mut value = Vec::new();
            assert!(stores[(n + 1) % 2].get(&name(n), &mut value).unwrap());
            assert_eq!(value, [2; 40]);
        }
        assert_eq!(stores[0].first().len().unwrap(), 5_001);
    }
}

/// What WATCH remembers holds through splits: of keys that are there, that are not,
/// and that came and went.
#[test]
fn splits_change_no_key() {
    let stores = on_heap(4096, 2);
    let db = stores[0].first();
    for n in 0..10u8 {
        db.set(&[b'k', n], &[n; 10]).unwrap();
    }
    let name = |kind: u8, n: usize| [&[kind][..], &n.to_le_bytes()].concat();
    let mark = |kind, n| stores[1].first().mark(&name(kind, n)).unwrap();
    (0..100).for_each(|n| db.set(&name(b'p', n), &[7; 10]).unwrap());
    let present: Vec<_> = (0..100).map(|n| mark(b'p', n)).collect();
    let absent: Vec<_> = (0..100).map(|n| mark(b'a', n)).collect();
    let came: Vec<_> = (0..100).map(|n| mark(b'c', n)).collect();
    (0..5_000).for_each(|n| db.set(&name(b'x', n), &[8; 50]).unwrap());
    for n in 0..100 {
        assert_eq!(present[n], mark(b'p', n));
        assert_eq!(absent[n], mark(b'a', n));
    }
    for n in 0..100 {
        db.set(&name(b'c', n), b"").unwrap();
        db.remove(&name(b'c', n)).unwrap();
        db.set(&name(b'p', n), &[7; 10]).unwrap();
    }
    (5_000..20_000).for_each(|n| db.set(&name(b'x', n), &[8; 50]).unwrap());
    for n in 0..100 {
        assert_ne!(came[n], mark(b'c', n));
        assert_ne!(present[n], mark(b'p', n));
    }
}

/// Where there is no memory for another bucket the ones that there are take more pages.
#[test]
fn a_full_memory_still_serves() {
    let memory = HeapMemory::new(256, 64 << 10, 1);
    let store = Store::open(memory, options(1)).unwrap();
    let (mut stored, mut value) = (0u32, Vec::new());
    while stored < 100_000 {
        match store.set(&stored.to_le_bytes(), &[1; 30]) {
            Ok(()) => stored += 1,
            Err(Error::Memory(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(stored > 200, "{stored}");
    for n in 0..stored {
        assert!(store.get(&n.to_le_bytes(), &mut value).unwrap());
    }
    assert_eq!(scan(&store).1, stored as usize);
    for n in 0..stored {
        assert!(store.remove(&n.to_le_bytes()).unwrap());
    }
    assert_eq!(store.first().len().unwrap(), 0);
}
