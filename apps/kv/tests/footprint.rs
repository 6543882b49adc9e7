//! What nodes keep of buckets, counted in bytes: no more than is used, and nothing after a flush.

use rackmem::{Fabric, Mode, Node, Rack};
use rackmem_kv::{Options, Store, Sweep};

const KEYS: usize = 2000;
const BUCKETS: usize = 1024;

/// Bytes that a node keeps for locks whose home it is, and for the others.
fn kept(node: &Node) -> [usize; 2] {
    let metrics = node.lock_metrics();
    [metrics.kept_home, metrics.kept]
}

fn sweep_all(stores: &[Store<Node>], sweeps: &mut [Sweep]) {
    for (store, sweep) in stores.iter().zip(sweeps) {
        while store.sweep(sweep, 64).unwrap().looked != 0 {}
    }
    stores.iter().for_each(|store| store.shed().unwrap());
}

#[test]
fn nodes_keep_what_is_used_and_nothing_after_a_flush() {
    for (fabric, mode) in [
        (Fabric::Inline, Mode::HomeOnly),
        (Fabric::Inline, Mode::Switch),
        (Fabric::Udp, Mode::Switch),
    ] {
        let builder = Rack::builder(3).mode(mode).fabric(fabric).mtu(1500);
        let rack = builder.cache(4 << 20).memory(64 << 20).build().unwrap();
        let open = |node: &Node| {
            let options = Options {
                buckets: BUCKETS,
                ..Options::default()
            };
            Store::open(node.clone(), options).unwrap()
        };
        let stores: Vec<_> = rack.nodes().iter().map(open).collect();
        let mut sweeps = [(); 3].map(|()| Sweep::default());
        sweep_all(&stores, &mut sweeps);
        let idle = rack.nodes().iter().map(kept).collect::<Vec<_>>();
        for round in 0..2 {
            for key in 0..KEYS {
                let (name, value) = (format!("key{key}"), format!("{round}{key}"));
                let store = &stores[key % 3];
                store
                    .db(0)
                    .unwrap()
                    .set(name.as_bytes(), value.as_bytes())
                    .unwrap();
            }
            for store in &stores {
                for key in 0..KEYS {
                    let mut value = Vec::new();
                    let name = format!("key{key}");
                    assert!(
                        store
                            .db(0)
                            .unwrap()
                            .get(name.as_bytes(), &mut value)
                            .unwrap()
                    );
                    assert_eq!(value, format!("{round}{key}").into_bytes());
                }
            }
            // A lock, and two records of 48 bytes in a page that grows.
            for node in rack.nodes() {
                let bytes = kept(node).iter().sum::<usize>();
                assert!(bytes <= BUCKETS * (432 + 256), "{bytes}");
            }
            stores[round].db(0).unwrap().flush_all().unwrap();
            sweep_all(&stores, &mut sweeps);
            sweep_all(&stores, &mut sweeps);
            for (node, idle) in rack.nodes().iter().zip(&idle) {
                let [home, abroad] = kept(node);
                assert!(abroad <= idle[1] + 2048, "{abroad} bytes, not {}", idle[1]);
                assert!(home <= idle[0] + 2048, "{home} bytes, not {}", idle[0]);
                // A number for each lock, until the epoch ends.
                let remembered = node.lock_memory().remembered;
                assert!(remembered <= BUCKETS * 8, "{remembered} bytes");
            }
        }
    }
}

/// What WATCH remembers of an absent key in a bucket that has no page is that it has none, and
/// which flush was the newest. The page may come and go between.
#[test]
fn a_key_that_came_and_went_with_its_page_has_changed() {
    let rack = Rack::local(1).unwrap();
    let node = &rack.nodes()[0];
    let store = Store::open(node.clone(), Options::default()).unwrap();
    let (db, mut sweep) = (store.db(0).unwrap(), Sweep::default());
    let (stores, sweep) = (
        std::slice::from_ref(&store),
        std::slice::from_mut(&mut sweep),
    );
    sweep_all(stores, sweep);
    let idle = kept(node)[0];
    let watched = db.mark(b"key").unwrap();
    db.set(b"key", b"value").unwrap();
    assert_ne!(watched, db.mark(b"key").unwrap());
    assert!(db.remove(b"key").unwrap());
    // Of another database: this one's keys are what they were.
    store.db(1).unwrap().flush().unwrap();
    sweep_all(stores, sweep);
    assert!(kept(node)[0] <= idle + 1024, "the page is there");
    assert_ne!(watched, db.mark(b"key").unwrap());
    let absent = db.mark(b"key").unwrap();
    assert!(db.mark(b"other").is_ok());
    assert_eq!(absent, db.mark(b"key").unwrap());
}

/// Bytes that a pair takes, at its home and at a node that reads everything: no more than twice
/// what Redis takes (104 bytes for a key and a value of 7 bytes each, some 200 for 16 and 100).
#[test]
fn a_pair_takes_twice_what_redis_takes_at_most() {
    const PAIRS: usize = 50_000;
    for (key_len, value_len, most) in [(7, 7, 208), (16, 100, 400)] {
        let builder = Rack::builder(2).fabric(Fabric::Inline).mode(Mode::HomeOnly);
        let rack = builder.cache(256 << 20).memory(256 << 20).build().unwrap();
        let open = |node: &Node| Store::open(node.clone(), Options::default()).unwrap();
        let stores: Vec<_> = rack.nodes().iter().map(open).collect();
        let mut sweeps = [(); 2].map(|()| Sweep::default());
        let name = |n: usize| format!("{n:0key_len$}").into_bytes();
        sweep_all(&stores, &mut sweeps);
        let idle = stores[0].used_bytes();
        for n in 0..PAIRS {
            stores[n % 2]
                .set(&name(n), &vec![n as u8; value_len])
                .unwrap();
        }
        let mut value = Vec::new();
        for (n, store) in (0..PAIRS).flat_map(|n| stores.iter().map(move |store| (n, store))) {
            assert!(store.get(&name(n), &mut value).unwrap());
            assert_eq!(value, vec![n as u8; value_len]);
        }
        let sums = rack.nodes().iter().map(kept);
        let [home, reader] = sums.fold([0, 0], |sum, kept| [sum[0] + kept[0], sum[1] + kept[1]]);
        let [home, reader] = [home, reader].map(|bytes| bytes / PAIRS);
        assert!(home <= most && reader <= most, "{home}, {reader} of {most}");
        let used = stores[0].used_bytes();
        stores[0].first().flush_all().unwrap();
        (0..4).for_each(|_| sweep_all(&stores, &mut sweeps));
        let left = stores[0].used_bytes();
        assert!(left < idle + (used - idle) / 10, "{left}: {idle}, {used}");
    }
}
