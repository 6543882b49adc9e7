//! Addresses of homes that no node of the rack serves: typed errors at every way in,
//! and nothing else changes.

use rackmem::locked::{BlockLock, Condvar, Mutex, RangesLock, RwLock, RwLockArray};
use rackmem::{
    AccessError, Error, HomeId, Mode, Node, Rack, RackError, RegionError, RegionSpec, Result,
    Shared,
};
use rackmem_proto::wire::{Contract, Tag};
use std::time::{Duration, Instant};

const NODES: u16 = 2;
/// The first that is none, the last that could be a node's, the first and the last that a group
/// could keep, the first that could be neither, the last there is.
const NOBODYS: [u16; 6] = [NODES, 31, 32, 63, 64, u16::MAX];
const LONG: Duration = Duration::from_secs(60);

type Entry = (&'static str, fn(&Node, u64) -> Result<()>);

/// Everything that takes an address of coherent memory.
const COHERENT: &[Entry] = &[
    ("read", |node, at| Ok(node.read(at, &mut [0])?)),
    ("write", |node, at| Ok(node.write(at, &[1])?)),
    ("load", |node, at| Ok(node.load(at).map(drop)?)),
    ("store", |node, at| Ok(node.store(at, 1)?)),
    ("fetch_add", |node, at| {
        Ok(node.fetch_add(at, 1).map(drop)?)
    }),
    ("fetch_update", |node, at| {
        Ok(node.fetch_update(at, |word| Some(word + 1)).map(drop)?)
    }),
    ("snapshot", |node, at| Ok(node.snapshot(at, 8, |_| ())?)),
    ("update", |node, at| Ok(node.update(at, 8, |_| ())?)),
    ("free_bytes", |node, at| Ok(node.free_bytes(at, 8)?)),
    ("evict", |node, at| Ok(node.evict(at).map(drop)?)),
    ("accept_loss", |node, at| Ok(node.accept_loss(at)?)),
    ("accept_empty", |node, at| Ok(node.accept_empty(at)?)),
    ("attach", |node, at| Ok(node.attach::<u64>(at)?.write(1)?)),
    ("BlockLock", |node, at| {
        Ok(BlockLock::attach(node, at)?.write().map(drop)?)
    }),
    ("RwLockArray", |node, at| {
        let array = RwLockArray::attach(node, at, 1, 64)?;
        Ok(array.write_within(0, LONG).map(drop)?)
    }),
];

/// Everything that takes a lock's.
const LOCKED: &[Entry] = &[
    ("Mutex", |node, at| {
        Ok(Mutex::<u64>::attach(node, at).map(drop)?)
    }),
    ("RwLock", |node, at| {
        Ok(RwLock::<u64>::attach(node, at).map(drop)?)
    }),
    ("RangesLock", |node, at| {
        Ok(RangesLock::attach(node, at).map(drop)?)
    }),
    ("Condvar", |node, at| {
        Ok(Condvar::attach(node, at).map(drop)?)
    }),
];

#[test]
fn memory_of_a_home_that_no_node_serves_is_a_bad_address_at_every_way_in() {
    for mode in [Mode::HomeOnly, Mode::default()] {
        let rack = Rack::builder(NODES.into()).mode(mode).build().unwrap();
        let node = rack.node(0);
        let words: [Shared<u64>; 2] = [0, 1].map(|home| {
            let word = rack.node(home).alloc(7).unwrap();
            node.attach(word.addr()).unwrap()
        });
        let lock = Mutex::named(&rack.node(1), "kept", 7_u64).unwrap();
        let ways = [(COHERENT, Contract::Coherent), (LOCKED, Contract::Locked)];
        for ((name, way), contract) in ways
            .iter()
            .flat_map(|(ways, contract)| ways.iter().map(move |way| (way, contract)))
        {
            for home in NOBODYS {
                // As if it were the word's neighbour, and were the home not what it is.
                let own = Tag(words[0].addr()).offset();
                let addr = Tag(HomeId(home).start().0 | own).under(*contract).0;
                let began = Instant::now();
                let told = way(&node, addr);
                let why = told.as_ref().err().and_then(Error::access);
                assert!(
                    matches!(why, Some(AccessError::BadAddress { .. })),
                    "{name} of home {home}: {told:?}"
                );
                assert!(began.elapsed() < LONG, "{name} has waited");
                assert_eq!(node.host_of(addr), None);
                assert_eq!(node.inspect(addr), None, "home {home}");
            }
        }
        let spec = RegionSpec::new("nowhere", 64);
        for home in NOBODYS {
            let told = node.create_region(&spec.clone().on(home)).map(drop);
            assert!(
                matches!(
                    told,
                    Err(RegionError::Rack(RackError::NoSuchNode { .. })
                        | RegionError::Access(AccessError::BadAddress { .. }))
                ),
                "{told:?}"
            );
            assert!(matches!(
                node.open_region(&spec),
                Err(RegionError::NotFound { .. })
            ));
        }
        assert!(words.iter().all(|word| word.fetch_add(1).unwrap() == 7));
        assert_eq!(lock.lock().unwrap().get(), 7);
        for (home, word) in words.iter().enumerate() {
            assert_eq!(node.host_of(word.addr()), Some(home as u16));
        }
    }
}
