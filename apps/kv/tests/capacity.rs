//! A rack's memory is worth what it was: values of all sizes, written and removed at changing
//! nodes, leave nothing behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use rackmem::Rack;
use rackmem_kv::memory::{HeapMemory, MemoryError};
use rackmem_kv::{Clock, Error, Expiry, Options, SetOptions, Store, Sweep};

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

#[test]
fn a_key_that_expires_again_and_again_is_removed_each_time() {
    let time = Arc::new(AtomicU64::new(1_000_000));
    let options = Options {
        buckets: 16,
        clock: Clock::manual(time.clone()),
        ..Options::default()
    };
    let store = Store::open(HeapMemory::new(4096, 16 << 20, 1), options).unwrap();
    let mut sweep = Sweep::default();
    for round in 0..3 {
        let options = SetOptions {
            expiry: Expiry::At(time.load(SeqCst) + 100),
            ..SetOptions::default()
        };
        store.first().set_with(b"key", b"value", options).unwrap();
        let mut cleaned = 0;
        // Ten looks a second, and all that there is to look at each time.
        for _ in 0..20 {
            time.fetch_add(100, SeqCst);
            while let Ok(swept) = store.sweep(&mut sweep, 64)
                && swept.looked != 0
            {
                cleaned += swept.cleaned;
            }
        }
        assert_eq!(cleaned, 1, "{round}");
    }
}
