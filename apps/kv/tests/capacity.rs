//! A rack's memory is worth what it was: values of all sizes, written and removed at changing
//! nodes, leave nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use rackmem::Rack;
use rackmem_kv::memory::{HeapMemory, MemoryError};
use rackmem_kv::{Clock, Error, ExpireIf, Expiry, Options, SetOptions, Store, Sweep};

const NODES: usize = 4;
const MEMORY: u64 = 32 << 20;

struct World {
    stores: Vec<Store<rackmem::Node>>,
    rack: Rack,
}

fn world() -> World {
    let builder = Rack::builder(NODES).cache(2 << 20).memory(MEMORY);
    let rack = builder.build().unwrap();
    let options = Options {
        buckets: 64,
        // Addresses of locks stay given out when buckets have joined again.
        most_buckets: 64,
        ..Options::default()
    };
    let open = |node: &rackmem::Node| Store::open(node.clone(), options.clone()).unwrap();
    World {
        stores: rack.nodes().iter().map(open).collect(),
        rack,
    }
}

impl World {
    /// Bytes given out at all homes. Nodes keep some for their next allocations, and send it home
    /// when they are refused memory.
    fn given(&self) -> u64 {
        for node in self.rack.nodes() {
            for home in 0..NODES as u16 {
                let all = node.alloc_bytes_on(home, MEMORY as usize);
                assert!(matches!(all, Err(rackmem::AllocError::OutOfMemory { .. })));
            }
        }
        let nodes = self.rack.metrics().nodes;
        nodes.iter().map(|node| node.memory.given).sum()
    }

    /// Removes what is flushed from all buckets.
    fn sweep(&self) {
        for store in &self.stores {
            let mut sweep = Sweep::default();
            for _ in 0..8 {
                store.sweep(&mut sweep, 64).unwrap();
            }
        }
    }

    /// Sets keys at a node until its memory is full; how many it took.
    fn fill(&self, node: usize, value: &[u8]) -> usize {
        for nth in 0.. {
            match self.stores[node].set(format!("key {nth}").as_bytes(), value) {
                Ok(()) => {}
                Err(Error::Memory(MemoryError::OutOfMemory)) => return nth,
                Err(error) => panic!("{nth}: {error}"),
            }
        }
        unreachable!("memory is finite")
    }
}

#[test]
fn a_long_value_can_be_overwritten_from_every_node_in_turn() {
    let world = world();
    let value = vec![7; 100_000];
    // Memory that stayed with nodes which free would be used up after some 600.
    for round in 0..20_000 {
        let store = &world.stores[round % NODES];
        let set = store.set(b"key", &value);
        set.unwrap_or_else(|error| panic!("{round}: {error}"));
    }
    let mut found = Vec::new();
    assert!(world.stores[0].get(b"key", &mut found).unwrap());
    assert_eq!(found, value);
}

#[test]
fn keys_of_changing_sizes_from_random_nodes_do_not_use_memory_up() {
    let world = world();
    let mut rng = fastrand::Rng::with_seed(5);
    // Half a megabyte at most, in 100 keys: a quarter of the memory.
    let bytes = vec![9; 500_000];
    let mut sizes = vec![0; 100];
    for round in 0..3000 {
        let key = rng.usize(..100);
        let len = rng.usize(5_000..500_000);
        let store = &world.stores[rng.usize(..NODES)];
        let set = store.set(&[key as u8], &bytes[..len]);
        set.unwrap_or_else(|error| panic!("{round}: {error}"));
        sizes[key] = len;
    }
    for (key, size) in sizes.iter().enumerate() {
        let store = &world.stores[key % NODES];
        let meta = store.first().meta(&[key as u8]).unwrap();
        assert_eq!(meta.unwrap().len, *size, "{key}");
    }
}

#[test]
fn what_one_node_filled_and_another_deleted_can_be_filled_again() {
    let world = world();
    let value = vec![1; 100_000];
    let count = world.fill(0, &value);
    let given = world.given();
    for cycle in 0..3 {
        for nth in 0..count {
            let key = format!("key {nth}");
            assert!(world.stores[1].remove(key.as_bytes()).unwrap(), "{cycle}");
        }
        assert_eq!(world.stores[0].first().len().unwrap(), 0);
        assert_eq!(world.fill(0, &value), count, "{cycle}");
        assert_eq!(world.given(), given, "{cycle}");
    }
}

#[test]
fn a_flush_returns_all_memory_cycle_after_cycle() {
    let world = world();
    let empty = world.given();
    let lens = [100_000, 5000, 250_000, 30_000, 17_000];
    let mut counts = Vec::new();
    for cycle in 0..10 {
        let node = cycle % NODES;
        let value = vec![2; lens[cycle % lens.len()]];
        let mut count = vec![world.fill(node, &value)];
        world.stores[(node + 1) % NODES]
            .first()
            .flush_all()
            .unwrap();
        world.sweep();
        assert_eq!(world.given(), empty, "{cycle}");
        // The same again, whatever was there before.
        count.push(world.fill(0, &vec![3; 50_000]));
        counts.push(count[1]);
        world.stores[(node + 2) % NODES]
            .first()
            .flush_all()
            .unwrap();
        world.sweep();
        assert_eq!(world.given(), empty, "{cycle}");
    }
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

/// A store whose time the test has in hand, and who sweeps it.
struct Swept {
    time: Arc<AtomicU64>,
    store: Store<HeapMemory>,
    sweep: Sweep,
}

fn swept(options: Options) -> Swept {
    let time = Arc::new(AtomicU64::new(1_000_000));
    let clock = Clock::manual(time.clone());
    let options = Options { clock, ..options };
    let store = Store::open(HeapMemory::new(4096, 16 << 20, 1), options).unwrap();
    Swept {
        time,
        store,
        sweep: Sweep::default(),
    }
}

impl Swept {
    fn set(&self, key: &[u8], from_now: u64) {
        let expiry = Expiry::At(self.time.load(SeqCst) + from_now);
        let options = SetOptions {
            expiry,
            ..SetOptions::default()
        };
        self.store.first().set_with(key, b"value", options).unwrap();
    }

    /// All that there is to look at just now; how many buckets it cleaned.
    fn look(&mut self) -> usize {
        let mut cleaned = 0;
        while let Ok(swept) = self.store.sweep(&mut self.sweep, 64)
            && swept.looked != 0
        {
            cleaned += swept.cleaned;
        }
        cleaned
    }

    /// Ten looks a second.
    fn pass(&mut self, time: u64) -> usize {
        let mut cleaned = 0;
        for _ in 0..time / 100 {
            self.time.fetch_add(100, SeqCst);
            cleaned += self.look();
        }
        cleaned
    }

    fn keys(&self) -> usize {
        self.store.first().len().unwrap()
    }
}

fn few_buckets() -> Options {
    Options {
        buckets: 16,
        ..Options::default()
    }
}

#[test]
fn a_key_that_expires_again_and_again_is_removed_each_time() {
    // Also when the next one comes before anybody has looked.
    for between in [2000, 100, 0] {
        let mut world = swept(few_buckets());
        for round in 0..5 {
            world.set(b"key", 100);
            assert_eq!(world.pass(100), 1, "{round}, {between}");
            assert_eq!(world.keys(), 0);
            world.pass(between);
        }
    }
}

#[test]
fn an_expiry_that_comes_nearer_is_seen() {
    let mut world = swept(few_buckets());
    for nth in 0..40u8 {
        world.set(&[b'k', nth], 1_000_000);
    }
    world.pass(1000);
    // As many keys expire as before: one sooner, and one in another's place.
    let at = world.time.load(SeqCst) + 300;
    assert!(
        world
            .store
            .first()
            .expire(b"k\x03", at, ExpireIf::default())
            .unwrap()
    );
    assert_eq!(world.pass(400), 1);
    assert!(world.store.first().remove(b"k\x04").unwrap());
    world.set(b"another", 300);
    assert_eq!(world.pass(400), 1);
    assert_eq!(world.keys(), 38);
    // Later than before: nothing is done before its time.
    world.set(b"k\x05", 2_000_000);
    assert_eq!(world.pass(10_000), 0);
}

#[test]
fn what_a_split_has_moved_is_removed_when_its_time_comes() {
    let mut world = swept(few_buckets());
    let value = [7; 200];
    world.set(b"first", 5000);
    world.pass(200);
    let buckets = world.store.buckets();
    for nth in 0..2000u32 {
        let options = SetOptions {
            expiry: Expiry::At(world.time.load(SeqCst) + 5000),
            ..SetOptions::default()
        };
        let key = nth.to_le_bytes();
        world.store.first().set_with(&key, &value, options).unwrap();
    }
    assert!(world.store.buckets() > 4 * buckets);
    world.pass(6000);
    assert_eq!(world.keys(), 0);
}
