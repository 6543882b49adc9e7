//! Races made certain: another node acts at one exact moment of an operation, between its first look at
//! the memory and whatever it does next.

use std::sync::{Arc, Mutex};

use rackmem::view::{View, ViewMut};
use rackmem_kv::memory::{HeapMemory, Memory, MemoryError};
use rackmem_kv::{Options, Plan, Store, Sweep};

type Act = Box<dyn FnOnce() + Send>;

/// Memory that lets somebody else act after one of its snapshots.
#[derive(Clone)]
struct Interrupted {
    inner: HeapMemory,
    /// How many snapshots to let pass, and what then happens.
    act: Arc<Mutex<Option<(usize, Act)>>>,
}

impl Interrupted {
    fn passed_a_snapshot(&self) {
        let mut slot = self.act.lock().unwrap();
        match slot.take() {
            Some((0, act)) => {
                drop(slot);
                act();
            }
            Some((n, act)) => *slot = Some((n - 1, act)),
            None => {}
        }
    }
}

type Result<T> = std::result::Result<T, MemoryError>;

impl Memory for Interrupted {
    fn block_size(&self) -> usize {
        self.inner.block_size()
    }

    fn id(&self) -> u16 {
        self.inner.id()
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn snapshot<R>(&self, addr: u64, len: usize, f: impl FnMut(&View<'_>) -> R) -> Result<R> {
        let result = self.inner.snapshot(addr, len, f);
        self.passed_a_snapshot();
        result
    }

    fn update<R>(&self, addr: u64, len: usize, f: impl FnOnce(&mut ViewMut<'_>) -> R) -> Result<R> {
        self.inner.update(addr, len, f)
    }

    fn read(&self, addr: u64, out: &mut [u8]) -> Result<()> {
        self.inner.read(addr, out)
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<()> {
        self.inner.write(addr, bytes)
    }

    fn alloc(&self, len: usize) -> Result<u64> {
        self.inner.alloc(len)
    }

    fn alloc_on(&self, home: u16, len: usize) -> Result<u64> {
        self.inner.alloc_on(home, len)
    }

    fn free(&self, addr: u64, len: usize) -> Result<()> {
        self.inner.free(addr, len)
    }

    fn region(&self, name: &str, len: usize, type_hash: u64) -> Result<u64> {
        self.inner.region(name, len, type_hash)
    }
}

struct World {
    /// Operations here are interrupted.
    slow: Store<Interrupted>,
    /// By operations here.
    other: Store<HeapMemory>,
}

impl World {
    fn new() -> Self {
        let memory = HeapMemory::new(256, 1 << 20, 2);
        let options = Options {
            buckets: 4,
            ..Options::default()
        };
        let inner = memory.node(1);
        let slow = Interrupted {
            inner,
            act: Arc::default(),
        };
        Self {
            other: Store::open(memory, options.clone()).unwrap(),
            slow: Store::open(slow, options).unwrap(),
        }
    }

    /// Lets the other store act once `snapshots` more have passed, and runs `f` on the slow one.
    fn during<R>(
        &self,
        snapshots: usize,
        f: impl FnOnce(&Store<Interrupted>) -> R,
        act: impl FnOnce(Store<HeapMemory>) + Send + 'static,
    ) -> R {
        let other = self.other.clone();
        let act: Act = Box::new(move || act(other));
        *self.slow.memory().act.lock().unwrap() = Some((snapshots, act));
        let result = f(&self.slow);
        assert!(
            self.slow.memory().act.lock().unwrap().is_none(),
            "the moment never came"
        );
        result
    }
}

fn get<M: Memory>(store: &Store<M>, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    store.get(key, &mut value).unwrap().then_some(value)
}

/// Sets `k` and flushes, as one step.
fn set_and_flush(store: &Store<HeapMemory>) {
    let plan = Plan {
        whole: false,
        flush: true,
    };
    let transaction = store.transaction([b"k".as_slice()], plan).unwrap();
    let db = transaction.db(0).unwrap();
    db.set(b"k", b"middle").unwrap();
    db.flush_all().unwrap();
}

#[test]
fn a_reader_that_missed_a_flush_does_not_see_the_middle_of_its_transaction() {
    let world = World::new();
    world.other.set(b"k", b"before").unwrap();
    let seen = world.during(0, |store| get(store, b"k"), |other| set_and_flush(&other));
    assert_ne!(seen.as_deref(), Some(b"middle".as_slice()));
}

#[test]
fn a_reader_that_missed_a_flush_does_not_bring_a_key_back() {
    let world = World::new();
    world.other.set(b"k", b"before").unwrap();
    let act = |other: Store<HeapMemory>| {
        other.first().flush_all().unwrap();
        other.set(b"k", b"after").unwrap();
    };
    let seen = world.during(0, |store| get(store, b"k"), act);
    assert_eq!(seen.as_deref(), Some(b"after".as_slice()));
}

#[test]
fn a_writer_that_missed_a_flush_does_not_lose_its_change() {
    let world = World::new();
    world.other.set(b"k", b"41").unwrap();
    let act = |other: Store<HeapMemory>| {
        other.first().flush_all().unwrap();
        assert_eq!(other.increment(b"k", 1).unwrap(), 1);
    };
    let sum = world.during(0, |store| store.increment(b"k", 1).unwrap(), act);
    assert_eq!(sum, 2);
    assert_eq!(get(&world.other, b"k").as_deref(), Some(b"2".as_slice()));
    assert_eq!(world.other.first().len().unwrap(), 1);
}

#[test]
fn a_long_value_replaced_under_its_reader_is_read_again() {
    let world = World::new();
    world.other.set(b"k", &[1; 700]).unwrap();
    let act = |other: Store<HeapMemory>| {
        other.set(b"k", &[2; 900]).unwrap();
        // The memory of the old value comes back as that of another key.
        other.set(b"other", &[3; 700]).unwrap();
    };
    let seen = world.during(1, |store| get(store, b"k"), act);
    assert_eq!(seen, Some(vec![2; 900]));
}

#[test]
fn keys_read_together_are_from_one_moment() {
    let world = World::new();
    let pairs = |value: &'static [u8]| {
        [
            (b"a".as_slice(), value),
            (b"b".as_slice(), value),
            (b"c".as_slice(), value),
        ]
    };
    world.other.first().set_many(&pairs(b"1"), false).unwrap();
    for snapshots in 0..4 {
        let read = |store: &Store<Interrupted>| {
            let mut values = rackmem_kv::Values::default();
            let keys = [b"a".as_slice(), b"b", b"c"];
            store.first().get_many(&keys, 1000, &mut values).unwrap();
            values
                .iter()
                .map(|v| v.map(<[u8]>::to_vec))
                .collect::<Vec<_>>()
        };
        let act = move |other: Store<HeapMemory>| {
            other.first().flush_all().unwrap();
            other.sweep(&mut Sweep::default(), 100).unwrap();
            other.first().set_many(&pairs(b"2"), false).unwrap();
        };
        world.other.first().set_many(&pairs(b"1"), false).unwrap();
        let seen = world.during(snapshots, read, act);
        assert!(
            seen.iter().all(|v| *v == seen[0]),
            "after {snapshots}: {seen:?}"
        );
    }
}

#[test]
fn a_watched_key_that_came_and_went_counts_as_changed() {
    let world = World::new();
    let db = world.other.first();
    for (set_before, change) in [(false, 0), (false, 1), (true, 1), (true, 2), (true, 3)] {
        db.flush_all().unwrap();
        if set_before {
            db.set(b"k", b"v").unwrap();
        }
        let mark = db.mark(b"k").unwrap();
        match change {
            0 => {
                db.set(b"k", b"v").unwrap();
                db.flush().unwrap();
            }
            1 => {
                db.set(b"k", b"v").unwrap();
                db.remove(b"k").unwrap();
                if set_before {
                    db.set(b"k", b"v").unwrap();
                }
            }
            2 => db.set(b"k", b"v").unwrap(),
            _ => assert!(db.expire(b"k", u64::MAX, Default::default()).unwrap()),
        }
        let transaction = world
            .other
            .transaction([b"k".as_slice()], Plan::default())
            .unwrap();
        assert!(
            !transaction.unchanged(0, b"k", &mark).unwrap(),
            "{set_before} {change}"
        );
    }
}

/// Two keys in different buckets, and a third in the bucket of the second.
fn keys_apart(store: &Store<HeapMemory>) -> [Vec<u8>; 3] {
    let bucket = |key: &[u8]| {
        // A scan that starts one bucket further on no longer finds the key.
        let holds = |cursor| {
            let mut keys = rackmem_kv::Keys::default();
            let end = store
                .first()
                .scan(cursor, usize::MAX / 64, &mut keys)
                .unwrap();
            assert_eq!(end, 0);
            keys.iter().any(|k| k == key)
        };
        store.set(key, b"").unwrap();
        let last = (0..store.buckets() as u64)
            .rev()
            .find(|cursor| holds(*cursor))
            .unwrap();
        store.remove(key).unwrap();
        last
    };
    let names: Vec<_> = (0..40).map(|i| format!("name{i}").into_bytes()).collect();
    let apart = names
        .iter()
        .find(|n| bucket(n) != bucket(&names[0]))
        .unwrap();
    let beside = names[1..]
        .iter()
        .find(|n| *n != apart && bucket(n) == bucket(apart))
        .unwrap();
    [names[0].clone(), apart.clone(), beside.clone()]
}

#[test]
fn a_flush_does_not_fall_between_two_keys_read_together() {
    let world = World::new();
    let [a, b, _] = keys_apart(&world.other);
    for snapshots in 0..3 {
        world.other.set(&a, b"1").unwrap();
        world.other.set(&b, b"1").unwrap();
        let read = |store: &Store<Interrupted>| {
            let mut values = rackmem_kv::Values::default();
            store
                .first()
                .get_many(&[&a, &b], 1000, &mut values)
                .unwrap();
            values
                .iter()
                .map(|v| v.map(<[u8]>::to_vec))
                .collect::<Vec<_>>()
        };
        let key = b.clone();
        let act = move |other: Store<HeapMemory>| {
            other.first().flush_all().unwrap();
            other.set(&key, b"2").unwrap();
        };
        let seen = world.during(snapshots, read, act);
        assert!(
            seen[1].as_deref() != Some(b"2") || seen[0].is_none(),
            "{snapshots}: {seen:?}"
        );
    }
}

#[test]
fn a_writer_that_missed_a_flush_counts_its_key() {
    let world = World::new();
    let [_, b, beside] = keys_apart(&world.other);
    let act = move |other: Store<HeapMemory>| {
        other.first().flush_all().unwrap();
        other.set(&beside, b"there").unwrap();
    };
    world.during(0, |store| store.set(&b, b"new").unwrap(), act);
    assert_eq!(get(&world.other, &b).as_deref(), Some(b"new".as_slice()));
    assert_eq!(world.other.first().len().unwrap(), 2);
}
