//! Random operations, one after the other, on the store and on a map: both must say the same,
//! always.

mod reference;
mod single;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rackmem::{Mode, Rack};
use rackmem_kv::memory::{HeapMemory, Memory, PAGE_STRIDE};
use rackmem_kv::{Clock, Db, Error, Keys, Options, Plan, Store, Sweep, Values};
use reference::Model;

struct Run<M: Memory> {
    stores: Vec<Store<M>>,
    time: Arc<AtomicU64>,
    model: Model,
    rng: fastrand::Rng,
    sizes: Vec<usize>,
}

impl<M: Memory> Run<M> {
    fn new(seed: u64, memories: &[M], (buckets, most_buckets): (usize, usize)) -> Self {
        let time = Arc::new(AtomicU64::new(1_000_000));
        let clock = Clock::manual(time.clone());
        let name = format!("model{seed}");
        let options = Options {
            name,
            buckets,
            most_buckets,
            clock,
            ..Options::default()
        };
        let open = |memory: &M| Store::open(memory.clone(), options.clone()).unwrap();
        let stores = memories.iter().map(open).collect();
        let model = Model {
            now: 1_000_000,
            ..Model::default()
        };
        let block = memories[0].block_size();
        let sizes = vec![
            0,
            1,
            7,
            8,
            9,
            20,
            block / 4 - 1,
            block / 4,
            block / 4 + 1,
            block,
            3 * block + 5,
        ];
        Self {
            stores,
            time,
            model,
            rng: fastrand::Rng::with_seed(seed),
            sizes,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let mut key = format!("k{}", self.rng.u32(..40)).into_bytes();
        if key.len() == 2 {
            key.resize(60, b'x');
        }
        key
    }

    fn value(&mut self) -> Vec<u8> {
        if self.rng.u32(..3) == 0 {
            return self.rng.i64(-1000..1000).to_string().into_bytes();
        }
        let len = self.sizes[self.rng.usize(..self.sizes.len())];
        (0..len).map(|_| self.rng.u8(..)).collect()
    }

    fn step(&mut self) {
        let db = self.rng.u8(..3);
        let store = self.stores[self.rng.usize(..self.stores.len())].clone();
        let here = store.db(db).unwrap();
        let key = self.key();
        match self.rng.u32(..24) {
            0..4 => self.set(here, &key),
            4..7 => self.check(here, &key),
            7 => assert_eq!(here.remove(&key).unwrap(), self.model.remove(db, &key)),
            8 => self.increment(here, &key),
            9..12 => self.splice(here, &key),
            12 => self.expire(here, &key),
            13 => self.take(here, &key),
            14 => self.rename(here, &key),
            15 => self.copy(here, &key),
            16 => self.many(here),
            17 => self.range(here, &key),
            18 => self.transaction(&store, db),
            19 => {
                self.model.now += self.rng.u64(..200);
                self.time.store(self.model.now, Ordering::Relaxed);
            }
            20 => self.persist(here, &key),
            21 if self.rng.u32(..20) == 0 => self.flush(here),
            22 if self.rng.u32(..10) == 0 => {
                store.sweep(&mut Sweep::default(), 1000).unwrap();
            }
            _ => self.scan(here),
        }
    }

    fn rename(&mut self, db: Db<'_, M>, key: &[u8]) {
        let (to, replace) = (self.key(), self.rng.bool());
        let Some((value, expiry)) = self.model.get(db.number(), key).cloned() else {
            assert!(matches!(
                db.rename(key, &to, replace),
                Err(Error::NoSuchKey)
            ));
            return;
        };
        let applies = replace || self.model.get(db.number(), &to).is_none();
        assert_eq!(db.rename(key, &to, replace).unwrap(), applies);
        if applies {
            self.model.remove(db.number(), key);
            self.model.put(db.number(), &to, value, expiry);
        }
    }

    fn copy(&mut self, db: Db<'_, M>, key: &[u8]) {
        let (to, target, replace) = (self.key(), self.rng.u8(..3), self.rng.bool());
        if to == key && target == db.number() {
            return;
        }
        let source = self.model.get(db.number(), key).cloned();
        let applies = source.is_some() && (replace || self.model.get(target, &to).is_none());
        assert_eq!(db.copy(key, target, &to, replace).unwrap(), Some(applies));
        if let Some((value, expiry)) = source.filter(|_| applies) {
            self.model.put(target, &to, value, expiry);
        }
    }

    fn many(&mut self, db: Db<'_, M>) {
        let pairs: Vec<_> = (0..self.rng.usize(1..5))
            .map(|_| (self.key(), self.value()))
            .collect();
        let keys: Vec<&[u8]> = pairs.iter().map(|(k, _)| k.as_slice()).collect();
        let mut values = Values::default();
        db.get_many(&keys, usize::MAX, &mut values).unwrap();
        for (key, value) in keys.iter().zip(values.iter()) {
            assert_eq!(
                value,
                self.model.get(db.number(), key).map(|e| e.0.as_slice())
            );
        }
        let present = keys
            .iter()
            .filter(|k| self.model.get(db.number(), k).is_some())
            .count();
        assert_eq!(db.count_present(&keys).unwrap(), present);
        if self.rng.bool() {
            let removed = keys
                .iter()
                .filter(|k| self.model.remove(db.number(), k))
                .count();
            assert_eq!(db.remove_many(&keys).unwrap(), removed);
            return;
        }
        let borrowed: Vec<_> = pairs
            .iter()
            .map(|(k, v)| (k.as_slice(), v.as_slice()))
            .collect();
        let only_new = self.rng.bool();
        let applies = !only_new || present == 0;
        assert_eq!(db.set_many(&borrowed, only_new).unwrap(), applies);
        if applies {
            for (key, value) in &pairs {
                self.model.put(db.number(), key, value.clone(), 0);
            }
        }
    }

    fn transaction(&mut self, store: &Store<M>, number: u8) {
        let keys: Vec<_> = (0..3).map(|_| self.key()).collect();
        let plan = Plan {
            whole: self.rng.u32(..8) == 0,
            flush: self.rng.u32(..8) == 0,
        };
        let marks: Vec<_> = keys
            .iter()
            .map(|k| store.db(number).unwrap().mark(k).unwrap())
            .collect();
        let transaction = store
            .transaction(keys.iter().map(Vec::as_slice), plan)
            .unwrap();
        for (key, mark) in keys.iter().zip(&marks) {
            assert!(transaction.unchanged(number, key, mark).unwrap());
        }
        let db = transaction.db(number).unwrap();
        self.set(db, &keys[0]);
        self.splice(db, &keys[1]);
        if plan.flush {
            self.flush(db);
        } else {
            assert!(matches!(db.flush(), Err(Error::BadOption(_))));
        }
        self.check(db, &keys[1]);
        self.set(db, &keys[2]);
        self.increment(db, &keys[0]);
    }

    fn flush(&mut self, db: Db<'_, M>) {
        if self.rng.bool() {
            db.flush_all().unwrap();
            self.model.entries.clear();
        } else {
            db.flush().unwrap();
            self.model
                .entries
                .retain(|(number, _), _| *number != db.number());
        }
    }

    fn scan(&mut self, db: Db<'_, M>) {
        let (mut keys, mut cursor, mut found) = (Keys::default(), 0, Vec::new());
        loop {
            keys.clear();
            cursor = db.scan(cursor, 3, &mut keys).unwrap();
            found.extend(keys.iter().map(<[u8]>::to_vec));
            if cursor == 0 {
                break;
            }
        }
        found.sort();
        self.model.purge();
        let of_db = self
            .model
            .entries
            .keys()
            .filter(|(number, _)| *number == db.number());
        let want: Vec<_> = of_db.map(|(_, key)| key.clone()).collect();
        assert_eq!(found, want);
        let random = db.random_key().unwrap();
        assert_eq!(random.is_some(), !want.is_empty());
        assert!(random.is_none_or(|key| want.contains(&key)));
    }

    /// Ends everything, and finds no key counted and no byte lost.
    fn finish(mut self) -> usize {
        for store in &self.stores {
            store.sweep(&mut Sweep::default(), usize::MAX).unwrap();
            let mut sweep = Sweep::default();
            store.sweep(&mut sweep, 1 << 20).unwrap();
        }
        self.model.purge();
        for number in 0..3u8 {
            let want = self
                .model
                .entries
                .keys()
                .filter(|(n, _)| *n == number)
                .count();
            let expiring = self
                .model
                .entries
                .iter()
                .filter(|((n, _), (_, e))| *n == number && *e != 0)
                .count();
            let db = self.stores[0].db(number).unwrap();
            assert_eq!(
                (db.len().unwrap(), db.expiring().unwrap()),
                (want, expiring)
            );
        }
        self.stores[1].first().flush_all().unwrap();
        for store in &self.stores {
            store.sweep(&mut Sweep::default(), 1 << 20).unwrap();
        }
        assert_eq!(self.stores[0].first().len().unwrap(), 0);
        self.stores[0].lock_bytes().unwrap()
    }
}

/// As many buckets as keys need.
const GROWING: usize = 1 << 20;

/// With so many buckets at first and at most. How many bytes their locks have at the end.
fn run<M: Memory>(seed: u64, memories: &[M], buckets: (usize, usize), steps: usize) -> usize {
    let mut run = Run::new(seed, memories, buckets);
    for step in 0..steps {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.step()));
        assert!(
            result.is_ok(),
            "seed {seed}, step {step}, {buckets:?} buckets"
        );
    }
    run.finish()
}

/// Over memory that keeps books, so that leaks show.
fn run_on_heap(seeds: std::ops::Range<u64>, block: usize, buckets: (usize, usize), steps: usize) {
    for seed in seeds {
        let memory = HeapMemory::new(block, 256 << 20, 2);
        let memories = [memory.node(0), memory.node(1)];
        let locks = run(seed, &memories, buckets, steps);
        assert_eq!(memory.live_bytes(), locks, "memory leaked, seed {seed}");
        let (first, most) = buckets;
        match first == most {
            // And that of those who flush.
            true => assert_eq!(locks, (first + 1) * PAGE_STRIDE),
            false => assert!(locks > 2 * first * PAGE_STRIDE, "no bucket was split"),
        }
    }
}

#[test]
fn smallest_pages_in_one_chain() {
    run_on_heap(0..12, 256, (1, 1), 4000);
}

#[test]
fn small_pages_in_chains() {
    run_on_heap(100..115, 512, (4, 4), 4000);
}

#[test]
fn pages_of_the_usual_size() {
    run_on_heap(200..206, 4096, (16, 16), 4000);
}

#[test]
fn buckets_that_split_and_are_merged() {
    run_on_heap(400..412, 256, (1, GROWING), 4000);
    run_on_heap(500..510, 512, (4, GROWING), 4000);
    run_on_heap(600..606, 4096, (1, GROWING), 4000);
}

/// Every operation from a random node, with a cache that holds only a part of the store.
#[test]
fn a_rack_of_nodes() {
    for (seed, mode) in [(300, Mode::Switch), (301, Mode::HomeOnly)] {
        let builder = Rack::builder(3)
            .block_size(512)
            .cache(64 * 512)
            .memory(1 << 30)
            .mode(mode);
        let rack = builder.build().unwrap();
        for most in [8, GROWING] {
            run(seed + most as u64, rack.nodes(), (8, most), 4000);
        }
    }
}
