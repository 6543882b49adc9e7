//! Random operations, one after the other, on the store and on a map: both must say the same, always.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rackmem::{Mode, Rack};
use rackmem_kv::memory::{HeapMemory, Memory};
use rackmem_kv::{
    Clock, Condition, Db, Error, ExpireIf, Expiry, Keys, Options, Plan, SetOptions, Store, Sweep,
    Values,
};

type Entry = (Vec<u8>, u64);

/// What the store should be.
#[derive(Default)]
struct Model {
    entries: BTreeMap<(u8, Vec<u8>), Entry>,
    now: u64,
}

impl Model {
    fn get(&self, db: u8, key: &[u8]) -> Option<&Entry> {
        self.entries
            .get(&(db, key.to_vec()))
            .filter(|(_, expiry)| *expiry == 0 || *expiry > self.now)
    }

    fn put(&mut self, db: u8, key: &[u8], value: Vec<u8>, expiry: u64) {
        self.entries.insert((db, key.to_vec()), (value, expiry));
    }

    fn remove(&mut self, db: u8, key: &[u8]) -> bool {
        let live = self.get(db, key).is_some();
        self.entries.remove(&(db, key.to_vec()));
        live
    }

    fn purge(&mut self) {
        let now = self.now;
        self.entries
            .retain(|_, (_, expiry)| *expiry == 0 || *expiry > now);
    }
}

struct Run<M: Memory> {
    stores: Vec<Store<M>>,
    time: Arc<AtomicU64>,
    model: Model,
    rng: fastrand::Rng,
    sizes: Vec<usize>,
}

impl<M: Memory> Run<M> {
    fn new(seed: u64, memories: &[M], buckets: usize) -> Self {
        let time = Arc::new(AtomicU64::new(1_000_000));
        let clock = Clock::manual(time.clone());
        let name = format!("model{seed}");
        let options = Options {
            name,
            buckets,
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

    fn set(&mut self, db: Db<'_, M>, key: &[u8]) {
        let value = self.value();
        let condition =
            [Condition::Always, Condition::IfAbsent, Condition::IfPresent][self.rng.usize(..3)];
        let later = self.model.now + self.rng.u64(1..300);
        let expiry = [
            Expiry::Never,
            Expiry::Never,
            Expiry::Keep,
            Expiry::At(later),
        ][self.rng.usize(..4)];
        let options = SetOptions { condition, expiry };
        let old = self.model.get(db.number(), key).cloned();
        let outcome = if self.rng.bool() {
            let mut was = vec![1, 2, 3];
            let outcome = db.swap(key, &value, options, &mut was).unwrap();
            assert_eq!(was, old.clone().unwrap_or_default().0);
            outcome
        } else {
            db.set_with(key, &value, options).unwrap()
        };
        let applies = match condition {
            Condition::Always => true,
            Condition::IfAbsent => old.is_none(),
            Condition::IfPresent => old.is_some(),
        };
        assert_eq!((outcome.applied, outcome.existed), (applies, old.is_some()));
        if applies {
            let until = match expiry {
                Expiry::Never => 0,
                Expiry::At(at) => at,
                Expiry::Keep => old.map_or(0, |o| o.1),
            };
            self.model.put(db.number(), key, value, until);
        }
    }

    fn check(&self, db: Db<'_, M>, key: &[u8]) {
        let mut value = vec![9];
        let found = db.get(key, &mut value).unwrap();
        let want = self.model.get(db.number(), key);
        assert_eq!(found.then_some(&value), want.map(|w| &w.0));
        let meta = db.meta(key).unwrap();
        assert_eq!(
            meta.map(|m| (m.len, m.expiry)),
            want.map(|(v, e)| (v.len(), *e))
        );
    }

    fn increment(&mut self, db: Db<'_, M>, key: &[u8]) {
        let by = self.rng.i64(-50..50);
        let old = self
            .model
            .get(db.number(), key)
            .cloned()
            .unwrap_or((b"0".to_vec(), 0));
        let number = std::str::from_utf8(&old.0)
            .ok()
            .and_then(|t| t.parse::<i64>().ok());
        let canonical = number.filter(|n| n.to_string().as_bytes() == old.0);
        match canonical {
            Some(n) => {
                assert_eq!(db.increment(key, by).unwrap(), n + by);
                self.model
                    .put(db.number(), key, (n + by).to_string().into_bytes(), old.1);
            }
            None => assert!(matches!(db.increment(key, by), Err(Error::NotAnInteger))),
        }
    }

    fn splice(&mut self, db: Db<'_, M>, key: &[u8]) {
        let bytes = self.value();
        let old = self.model.get(db.number(), key).cloned();
        let (mut value, expiry) = old.clone().unwrap_or_default();
        if value.len() > 1 << 20 {
            return;
        }
        let len = if self.rng.bool() {
            value.extend_from_slice(&bytes);
            db.append(key, &bytes).unwrap()
        } else {
            let at = self.rng.usize(..value.len() + 50);
            if bytes.is_empty() {
                assert_eq!(db.set_range(key, at, &bytes).unwrap(), value.len());
                return;
            }
            value.resize(value.len().max(at + bytes.len()), 0);
            value[at..at + bytes.len()].copy_from_slice(&bytes);
            db.set_range(key, at, &bytes).unwrap()
        };
        assert_eq!(len, value.len());
        self.model.put(db.number(), key, value, expiry);
    }

    fn expire(&mut self, db: Db<'_, M>, key: &[u8]) {
        let at = self.model.now + self.rng.u64(..300) - 20;
        let only = ExpireIf {
            none: self.rng.u32(..4) == 0,
            later: self.rng.u32(..4) == 0,
            ..ExpireIf::default()
        };
        let old = self.model.get(db.number(), key).map(|e| e.1);
        let applies = old.is_some_and(|old| {
            let end = if old == 0 { u64::MAX } else { old };
            !(only.none && old != 0 || only.later && at <= end)
        });
        assert_eq!(db.expire(key, at, only).unwrap(), applies);
        if applies {
            let value = self.model.get(db.number(), key).unwrap().0.clone();
            self.model.put(db.number(), key, value, at);
            self.model.purge();
        }
    }

    fn persist(&mut self, db: Db<'_, M>, key: &[u8]) {
        let old = self.model.get(db.number(), key).cloned();
        assert_eq!(
            db.persist(key).unwrap(),
            old.as_ref().is_some_and(|o| o.1 != 0)
        );
        if let Some((value, _)) = old {
            self.model.put(db.number(), key, value, 0);
        }
    }

    fn take(&mut self, db: Db<'_, M>, key: &[u8]) {
        let mut value = Vec::new();
        let old = self.model.get(db.number(), key).cloned();
        let found = if self.rng.bool() {
            let found = db.take(key, &mut value).unwrap();
            self.model.remove(db.number(), key);
            found
        } else {
            let at = self.model.now + 100;
            let found = db.get_and_expire(key, at, &mut value).unwrap();
            if let Some((value, _)) = old.clone() {
                self.model.put(db.number(), key, value, at);
            }
            found
        };
        assert_eq!(found.then_some(value), old.map(|o| o.0));
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

    fn range(&mut self, db: Db<'_, M>, key: &[u8]) {
        let (first, last) = (self.rng.i64(-40..400), self.rng.i64(-40..400));
        let mut part = Vec::new();
        let found = db.get_range(key, first, last, &mut part).unwrap();
        let want = self.model.get(db.number(), key).map(|(value, _)| {
            let len = value.len() as i64;
            let from = if first < 0 {
                (len + first).max(0)
            } else {
                first
            };
            // As Redis does it: an end before the start of the value means its first byte.
            let to = if last < 0 { (len + last).max(0) } else { last }.min(len - 1);
            let crossed = first < 0 && last < 0 && first > last;
            if crossed || from > to {
                Vec::new()
            } else {
                value[from as usize..=to as usize].to_vec()
            }
        });
        assert_eq!(found, want.is_some());
        assert_eq!(part, want.unwrap_or_default());
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
    fn finish(mut self) {
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
    }
}

fn run<M: Memory>(seed: u64, memories: &[M], buckets: usize, steps: usize) {
    let mut run = Run::new(seed, memories, buckets);
    for step in 0..steps {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.step()));
        assert!(
            result.is_ok(),
            "seed {seed}, step {step}, {buckets} buckets"
        );
    }
    run.finish();
}

/// Over memory that keeps books, so that leaks show.
fn run_on_heap(seeds: std::ops::Range<u64>, block: usize, buckets: usize, steps: usize) {
    for seed in seeds {
        let memory = HeapMemory::new(block, 256 << 20, 2);
        run(seed, &[memory.node(0), memory.node(1)], buckets, steps);
        assert_eq!(
            memory.live_bytes(),
            buckets * block,
            "memory leaked, seed {seed}"
        );
    }
}

#[test]
fn smallest_pages_in_one_chain() {
    run_on_heap(0..12, 256, 1, 4000);
}

#[test]
fn small_pages_in_chains() {
    run_on_heap(100..115, 512, 4, 4000);
}

#[test]
fn pages_of_the_usual_size() {
    run_on_heap(200..206, 4096, 16, 4000);
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
        run(seed, rack.nodes(), 8, 4000);
    }
}
