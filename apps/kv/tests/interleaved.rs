//! Races made certain: another node acts at one exact moment of an operation, when the operation is
//! about to enter a lock, has just entered one, or has just looked at the memory. Where the
//! operation is inside of what the other wants, the other waits for it.

#[path = "support/interrupted.rs"]
mod interrupted;

use std::ops::Range;

use interrupted::Interruptions;
use rackmem_kv::memory::{HeapMemory, Memory};
use rackmem_kv::{Options, Plan, Store, Sweep};

type Side = Store<HeapMemory>;

struct World {
    interruptions: Interruptions,
    /// Operations here are interrupted.
    slow: Side,
    /// By operations here.
    other: Side,
}

impl World {
    fn new() -> Self {
        let memory = HeapMemory::new(256, 1 << 20, 2);
        let (interruptions, slow, other) = Interruptions::of(&memory);
        let options = Options {
            buckets: 4,
            most_buckets: 4,
            ..Options::default()
        };
        Self {
            interruptions,
            other: Store::open(other, options.clone()).unwrap(),
            slow: Store::open(slow, options).unwrap(),
        }
    }

    /// Lets the other store act at a moment of `f` on the slow one. `None`: `f` has fewer moments.
    fn during<R, A: Send + 'static>(
        &self,
        moment: usize,
        f: impl FnOnce(&Side) -> R,
        act: impl FnOnce(&Side) -> A + Send + 'static,
    ) -> Option<(R, A)> {
        let other = self.other.clone();
        let act = move || act(&other);
        self.interruptions.during(moment, || f(&self.slow), act)
    }
}

/// Does something in a world for every moment that it has; there are as many as `expected`,
/// at least.
fn at_every_moment(expected: Range<usize>, each: impl Fn(&World, usize) -> Option<()>) {
    let moments = (0..expected.end).take_while(|moment| each(&World::new(), *moment).is_some());
    let count = moments.count();
    assert!(expected.contains(&count), "{count} moments");
}

fn get<M: Memory>(store: &Store<M>, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    store.get(key, &mut value).unwrap().then_some(value)
}

fn get_together<M: Memory>(store: &Store<M>, keys: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    let mut values = rackmem_kv::Values::default();
    store.first().get_many(keys, 1000, &mut values).unwrap();
    values.iter().map(|v| v.map(<[u8]>::to_vec)).collect()
}

/// Sets `k` and flushes, as one step.
fn set_and_flush(store: &Side) {
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
fn a_reader_does_not_see_the_middle_of_a_transaction_that_flushes() {
    at_every_moment(3..60, |world, moment| {
        world.other.set(b"k", b"before").unwrap();
        let (seen, ()) = world.during(moment, |store| get(store, b"k"), set_and_flush)?;
        assert_ne!(seen.as_deref(), Some(b"middle".as_slice()), "{moment}");
        assert_eq!(get(&world.slow, b"k"), None, "{moment}");
        Some(())
    });
}

#[test]
fn a_reader_does_not_miss_what_was_written_before_it_looked() {
    at_every_moment(3..60, |world, moment| {
        world.other.set(b"k", b"before").unwrap();
        let act = |other: &Side| {
            other.first().flush_all().unwrap();
            other.set(b"k", b"after").unwrap();
        };
        let (seen, ()) = world.during(moment, |store| get(store, b"k"), act)?;
        if moment == 0 {
            assert_eq!(seen.as_deref(), Some(b"after".as_slice()));
        }
        assert_eq!(
            get(&world.slow, b"k").as_deref(),
            Some(b"after".as_slice()),
            "{moment}"
        );
        Some(())
    });
}

#[test]
fn a_writer_and_a_flush_come_one_after_the_other() {
    at_every_moment(3..60, |world, moment| {
        world.other.set(b"k", b"41").unwrap();
        let act = |other: &Side| {
            other.first().flush_all().unwrap();
            other.increment(b"k", 1).unwrap()
        };
        let (mine, theirs) =
            world.during(moment, |store| store.increment(b"k", 1).unwrap(), act)?;
        // Before the flush, between it and the other's increment, or after both.
        let expected = match (mine, theirs) {
            (42, 1) => "1",
            (1, 2) | (2, 1) => "2",
            sums => panic!("{moment}: {sums:?}"),
        };
        let found = get(&world.other, b"k");
        assert_eq!(found.as_deref(), Some(expected.as_bytes()), "{moment}");
        assert_eq!(world.other.first().len().unwrap(), 1, "{moment}");
        Some(())
    });
}

#[test]
fn a_long_value_is_not_replaced_under_its_reader() {
    at_every_moment(3..60, |world, moment| {
        world.other.set(b"k", &[1; 700]).unwrap();
        let act = |other: &Side| {
            other.set(b"k", &[2; 900]).unwrap();
            // The memory of the old value comes back as that of another key.
            other.set(b"other", &[3; 700]).unwrap();
        };
        let (seen, ()) = world.during(moment, |store| get(store, b"k"), act)?;
        assert!(
            seen == Some(vec![1; 700]) || seen == Some(vec![2; 900]),
            "{moment}: {seen:?}"
        );
        Some(())
    });
}

#[test]
fn keys_read_together_are_from_one_moment() {
    const KEYS: [&[u8]; 3] = [b"a", b"b", b"c"];
    let pairs = |value: &'static [u8]| KEYS.map(|key| (key, value));
    at_every_moment(3..80, |world, moment| {
        world.other.first().set_many(&pairs(b"1"), false).unwrap();
        let act = move |other: &Side| {
            other.first().flush_all().unwrap();
            other.sweep(&mut Sweep::default(), 100).unwrap();
            other.first().set_many(&pairs(b"2"), false).unwrap();
        };
        let (seen, ()) = world.during(moment, |store| get_together(store, &KEYS), act)?;
        assert!(seen.iter().all(|v| *v == seen[0]), "{moment}: {seen:?}");
        Some(())
    });
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
fn keys_apart(store: &Side) -> [Vec<u8>; 3] {
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
        // Cursors are counted from the highest bit down.
        let buckets = store.buckets() as u64;
        let cursors = (0..buckets).map(|n| n.reverse_bits() >> (64 - buckets.ilog2()));
        let last = cursors.rev().find(|cursor| holds(*cursor)).unwrap();
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
    at_every_moment(4..80, |world, moment| {
        let [a, b, _] = keys_apart(&world.other);
        world.other.set(&a, b"1").unwrap();
        world.other.set(&b, b"1").unwrap();
        let key = b.clone();
        let act = move |other: &Side| {
            other.first().flush_all().unwrap();
            other.set(&key, b"2").unwrap();
        };
        let (seen, ()) = world.during(moment, |store| get_together(store, &[&a, &b]), act)?;
        assert!(
            seen[1].as_deref() != Some(b"2") || seen[0].is_none(),
            "{moment}: {seen:?}"
        );
        Some(())
    });
}

#[test]
fn a_writer_counts_its_key_whenever_a_flush_comes() {
    at_every_moment(3..60, |world, moment| {
        let [_, b, beside] = keys_apart(&world.other);
        let act = move |other: &Side| {
            other.first().flush_all().unwrap();
            other.set(&beside, b"there").unwrap();
        };
        world.during(moment, |store| store.set(&b, b"new").unwrap(), act)?;
        let present = 1 + usize::from(get(&world.other, &b).is_some());
        assert_eq!(world.other.first().len().unwrap(), present, "{moment}");
        if moment == 0 {
            assert_eq!(present, 2);
        }
        Some(())
    });
}
