//! Whatever a transaction does: undone, everything is as before,
//! and nothing is lost or freed twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::layout::counters::Counts;
use crate::layout::kind::Kind;
use crate::memory::HeapMemory;
use crate::store::{Condition, ExpireIf, Expiry, Mark, Plan, SetOptions, Transaction};
use crate::{Clock, DATABASES, Keys, Options, Store};

const KEYS: usize = 24;
const NOW: u64 = 1_000_000;

#[derive(Debug, PartialEq)]
struct Key {
    /// Its database and name.
    name: (u8, Vec<u8>),
    kind: Kind,
    expiry: u64,
    content: Vec<u8>,
    mark: Mark,
}

/// All there is.
#[derive(Debug, PartialEq)]
struct All {
    keys: Vec<Key>,
    counts: Vec<Counts>,
    bytes: usize,
}

struct World {
    store: Store<HeapMemory>,
    memory: HeapMemory,
    time: Arc<AtomicU64>,
    random: fastrand::Rng,
}

impl World {
    /// Small pages, of which few buckets have several.
    fn new(seed: u64) -> Self {
        let memory = HeapMemory::new(256, 64 << 20, 1);
        let time = Arc::new(AtomicU64::new(NOW));
        let options = Options {
            buckets: 2,
            most_buckets: 2,
            clock: Clock::manual(time.clone()),
            ..Options::default()
        };
        World {
            store: Store::open(memory.clone(), options).unwrap(),
            memory,
            time,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    fn all(&self) -> All {
        let mut keys = Vec::new();
        for number in 0..DATABASES as u8 {
            let (db, mut found) = (self.store.db(number).unwrap(), Keys::default());
            assert_eq!(db.scan(0, 1000, &mut found).unwrap(), 0);
            for (key, kind) in found.with_kinds() {
                let mut content = Vec::new();
                match kind {
                    Kind::String => drop(db.get(key, &mut content).unwrap()),
                    kind => drop(db.view(key, kind, |found| {
                        content.clear();
                        found.walk(0, 0, |key, value| {
                            content.extend_from_slice(key);
                            content.extend_from_slice(value);
                            true
                        })
                    })),
                }
                let meta = db.meta(key).unwrap().unwrap();
                keys.push(Key {
                    name: (number, key.to_vec()),
                    kind,
                    expiry: meta.expiry,
                    content,
                    mark: db.mark(key).unwrap(),
                });
            }
        }
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        let core = &self.store.first().core;
        let flushed = |db| core.newest_era(db).unwrap().flushed;
        All {
            keys,
            // That an expiry came nearer is not taken back.
            counts: (0..DATABASES as u8)
                .map(|db| Counts {
                    nearer: 0,
                    ..core.counted(db, flushed(db)).unwrap()
                })
                .collect(),
            bytes: self.memory.live_bytes(),
        }
    }

    fn begin(&self) -> Transaction<'_, HeapMemory> {
        let whole = Plan {
            whole: true,
            flush: true,
        };
        let mut transaction = self.store.transaction([], whole).unwrap();
        transaction.keep_journal();
        transaction
    }
}

/// Does something to some keys.
fn deed(random: &mut fastrand::Rng, transaction: &Transaction<'_, HeapMemory>) {
    let mut key = || format!("key:{}", random.usize(..KEYS)).into_bytes();
    let (key, other) = (key(), key());
    let db = transaction.db(random.u8(..2)).unwrap();
    let value = vec![random.u8(..); random.usize(..400)];
    let at = random.usize(..300);
    let outcome = match random.u8(..14) {
        0..=2 => db.set(&key, &value),
        3 => {
            let condition = Condition::Always;
            let expiry = Expiry::At(NOW + random.u64(1..4));
            db.set_with(&key, &value, SetOptions { condition, expiry })
                .map(drop)
        }
        4 => db.append(&key, &value).map(drop),
        5 => db
            .set_range(&key, at, &value[..value.len().min(40)])
            .map(drop),
        6 => db.remove(&key).map(drop),
        7 => db.rename(&key, &other, true).map(drop),
        8 => db.copy(&key, random.u8(..2), &other, true).map(drop),
        9 => db.move_to(&key, 1).map(drop),
        10 => db
            .expire(&key, NOW + random.u64(..4), ExpireIf::default())
            .map(drop),
        11 => db.replace(&key, Kind::List, |list| {
            (0..random.u64(..8)).try_for_each(|_| list.insert(0, 0, &value))
        }),
        12 => db
            .set_many(&[(&key, &value), (&other, &value)], false)
            .map(drop),
        _ => db.change(&key, Kind::Set, |set| {
            for _ in 0..random.usize(..12) {
                let member = [random.u8(..); 30];
                match random.bool() {
                    true => drop(set.put(0, &member, b"")?),
                    false => drop(set.remove(0, &member)?),
                }
            }
            Ok(())
        }),
    };
    // What fails has done nothing, or a part, as any command that fails.
    drop(outcome);
}

#[test]
fn what_is_undone_was_never_there() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        // The first flush makes the lock of those who flush.
        world.store.first().flush_all().unwrap();
        let begun = world.memory.live_bytes();
        for round in 0..20 {
            let (before, undone) = (world.all(), world.random.bool());
            let mut random = world.random.fork();
            let transaction = world.begin();
            for _ in 0..random.usize(..30) {
                deed(&mut random, &transaction);
            }
            if undone {
                assert!(transaction.undo().unwrap(), "{seed} {round}");
            }
            drop(transaction);
            if undone {
                assert_eq!(world.all(), before, "{seed} {round}");
            }
            if round % 5 == 4 {
                world.time.fetch_add(1, Relaxed);
            }
        }
        // The books of the memory have panicked if anything was freed twice; nothing is left.
        world.store.first().flush_all().unwrap();
        drop(world.begin().db(0).unwrap().flush_all());
        let mut sweep = crate::Sweep::default();
        while world.store.sweep(&mut sweep, 64).unwrap().looked != 0 {}
        assert_eq!(world.memory.live_bytes(), begun, "{seed}");
    }
}

#[test]
fn what_is_written_over_in_place_comes_back_within_bounds() {
    let memory = HeapMemory::new(4096, 512 << 20, 1);
    let store = Store::open(memory, Options::default()).unwrap();
    let (long, mut value) = (vec![b'a'; 40 << 20], Vec::new());
    store.set(b"long", &long).unwrap();
    for times in [1, 2] {
        let mut transaction = store.transaction([&b"long"[..]], Plan::default()).unwrap();
        transaction.keep_journal();
        let db = transaction.db(0).unwrap();
        for _ in 0..times {
            db.set_range(b"long", 3, &vec![b'b'; (40 << 20) - 3])
                .unwrap();
        }
        // Two such changes are more than is kept for an undoing.
        assert_eq!(transaction.can_undo(), times == 1);
        assert_eq!(transaction.undo().unwrap(), times == 1);
        drop(transaction);
        assert!(store.get(b"long", &mut value).unwrap());
        assert_eq!(value == long, times == 1);
    }
}

#[test]
fn a_flush_is_not_undone() {
    let world = World::new(0);
    world.store.set(b"key", b"value").unwrap();
    let transaction = world.begin();
    transaction.db(0).unwrap().set(b"key", b"other").unwrap();
    transaction.db(1).unwrap().flush().unwrap();
    assert!(!transaction.undo().unwrap());
    drop(transaction);
    let mut value = Vec::new();
    world.store.get(b"key", &mut value).unwrap();
    assert_eq!(value, b"other");
}
