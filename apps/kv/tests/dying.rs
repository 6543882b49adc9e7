//! A node dies at every moment of an operation that splits a bucket or joins two, in memory that
//! outlives it: no key is lost or there twice, the split is finished or has not been, and later
//! ones go on.

#[path = "support/mortal.rs"]
mod mortal;

use mortal::Mortal;
use rackmem_kv::memory::HeapMemory;
use rackmem_kv::{Clock, Keys, Options, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

type MortalStore = Store<Mortal>;

/// More moments than any operation has.
const MOST: usize = 3000;

/// Keys and their values.
type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// The stores of a node that dies and of one that lives on.
struct World {
    memory: Mortal,
    dies: MortalStore,
    lives: MortalStore,
    /// What has been acknowledged.
    there: Content,
}

fn key(n: usize) -> Vec<u8> {
    format!("key:{n}").into_bytes()
}

/// Short ones, and some that take an extent of their own.
fn value(n: usize) -> Vec<u8> {
    vec![b'a' + (n % 26) as u8; if n % 5 == 4 { 700 } else { 30 + n % 7 }]
}

impl World {
    /// A store of one bucket, the same every time, with so many keys.
    fn new(keys: usize) -> World {
        fastrand::seed(5);
        let memory = HeapMemory::new(1024, 8 << 20, 2);
        let options = Options {
            buckets: 1,
            clock: Clock::manual(Arc::new(AtomicU64::new(1_000_000_000_000))),
            ..Options::default()
        };
        let (first, second) = (memory.clone(), memory.node(1));
        let lives = Store::open(Mortal::new(first), options.clone()).unwrap();
        let memory = Mortal::new(second);
        let dies = Store::open(memory.clone(), options).unwrap();
        let mut world = World {
            memory,
            dies,
            lives,
            there: Content::new(),
        };
        for n in 0..keys {
            world.set(n);
        }
        world
    }

    fn set(&mut self, n: usize) {
        self.lives.set(&key(n), &value(n)).unwrap();
        self.there.insert(key(n), value(n));
    }

    fn remove(&mut self, n: usize) {
        assert!(self.lives.remove(&key(n)).unwrap());
        self.there.remove(&key(n));
    }

    /// What is there as a node sees it: by a scan, each key once, and by its name.
    fn seen(&self, store: &MortalStore) -> Content {
        let (mut all, mut cursor) = (Content::new(), 0);
        loop {
            let mut keys = Keys::default();
            cursor = store.first().scan(cursor, 10, &mut keys).unwrap();
            for key in keys.iter() {
                let mut value = Vec::new();
                assert!(store.get(key, &mut value).unwrap(), "scanned, not there");
                let twice = all.insert(key.to_vec(), value);
                assert!(twice.is_none(), "twice: {}", String::from_utf8_lossy(key));
            }
            if cursor == 0 {
                return all;
            }
        }
    }
}

/// Lets a node die at each moment of what it does, beside which keys may come or go that others do
/// not know; how many moments that were.
fn at_every_moment(
    make: impl Fn() -> World,
    does: impl Fn(&MortalStore),
    touched: &[usize],
) -> usize {
    for moment in 0..MOST {
        let mut world = make();
        world.memory.dies_after(moment);
        does(&world.dies);
        if world.memory.lives() {
            return moment;
        }
        let mut seen = world.seen(&world.lives);
        for n in touched {
            let now = seen.remove(&key(*n));
            assert!(now.is_none_or(|now| now == value(*n)), "{moment}: torn");
            world.there.remove(&key(*n));
        }
        assert!(seen == world.there, "{moment}: keys are lost or strange");
        // Splits go on, and so do joins.
        for n in 1000..1060 {
            world.set(n);
        }
        for n in touched {
            world.set(*n);
        }
        assert!(world.seen(&world.lives) == world.there, "{moment}: later");
        for name in world.there.keys() {
            assert!(world.lives.remove(name).unwrap(), "{moment}");
        }
        assert!(world.seen(&world.lives).is_empty(), "{moment}");
    }
    panic!("more than {MOST} moments");
}

#[test]
fn a_split_is_finished_or_has_not_been() {
    let mut moments = Vec::new();
    for keys in 0..60 {
        let does = |store: &MortalStore| {
            let _ = store.set(&key(keys), &value(keys));
        };
        moments.push(at_every_moment(|| World::new(keys), does, &[keys]));
    }
    // Most sets split nothing; those that do take several times as long.
    let (least, most) = (moments.iter().min(), moments.iter().max());
    assert!(most > least.map(|least| least * 3).as_ref(), "{moments:?}");
}

#[test]
fn so_is_a_join() {
    const KEYS: usize = 60;
    let mut moments = Vec::new();
    for left in 0..KEYS {
        let make = || {
            let mut world = World::new(KEYS);
            for n in left + 1..KEYS {
                world.remove(n);
            }
            world
        };
        let does = |store: &MortalStore| {
            let _ = store.remove(&key(left));
        };
        moments.push(at_every_moment(make, does, &[left]));
    }
    let (least, most) = (moments.iter().min(), moments.iter().max());
    assert!(most > least.map(|least| least * 3).as_ref(), "{moments:?}");
}

#[test]
fn and_so_are_several_in_a_row() {
    let keys: Vec<usize> = (30..60).collect();
    let does = |store: &MortalStore| {
        for n in &keys {
            let _ = store.set(&key(*n), &value(*n));
        }
        for n in &keys {
            let _ = store.remove(&key(*n));
        }
    };
    let moments = at_every_moment(|| World::new(30), does, &keys);
    assert!(moments > 300, "{moments}");
}
