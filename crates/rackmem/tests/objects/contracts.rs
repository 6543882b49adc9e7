//! Objects are reached through handles on objects and nothing else, and these reach nothing else.

use crate::{FABRICS, rack, region};
use rackmem::locked::{BlockLock, Mutex, RangesLock, RwLock, RwLockArray};
use rackmem::object::{Object, ObjectRef};
use rackmem::{Contract, Error, Mode, Node, RegionSpec};

fn is_wrong<T>(what: &str, done: Result<T, impl Into<Error>>, wanted: Contract, is: Contract) {
    let error: Error = match done {
        Ok(_) => panic!("{what}: nothing is wrong"),
        Err(error) => error.into(),
    };
    let wrong = matches!(
        error.access(),
        Some(rackmem::AccessError::WrongContract { wanted: w, is: i, .. }) if (w, i) == (wanted, is)
    );
    assert!(wrong, "{what}: {error}");
}

#[test]
fn objects_are_not_reached_as_other_memory() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::Switch, 2);
        let objects = region(&rack, 0, "objects");
        let object: Object<[u64; 8]> = objects.alloc([7; 8]).unwrap();
        for node in rack.nodes() {
            coherent_operations(node, object.addr());
            others(node, object.addr());
        }
        let read = objects.read(0, &mut [0; 8]).map(drop);
        is_wrong("region", read, Contract::Coherent, Contract::Object);
        let written = objects.write(0, &[0; 8]);
        is_wrong("region", written, Contract::Coherent, Contract::Object);
        let line = objects.replicated::<u64>(0);
        is_wrong("line", line, Contract::Replicated, Contract::Object);
        assert_eq!(object.read(), Ok([7; 8]), "{fabric:?}");
    }
}

fn coherent_operations(node: &Node, addr: u64) {
    let (wanted, is) = (Contract::Coherent, Contract::Object);
    let mut bytes = [0; 32];
    is_wrong("load", node.load(addr), wanted, is);
    is_wrong("store", node.store(addr, 1), wanted, is);
    is_wrong("add", node.fetch_add(addr, 1), wanted, is);
    is_wrong("read", node.read(addr, &mut bytes), wanted, is);
    is_wrong("write", node.write(addr, &bytes), wanted, is);
    is_wrong("snapshot", node.snapshot(addr, 8, |_| ()), wanted, is);
    is_wrong("update", node.update(addr, 8, |_| ()), wanted, is);
    is_wrong("accept", node.accept_loss(addr), wanted, is);
    is_wrong("empty", node.accept_empty(addr), wanted, is);
    is_wrong("evict", node.evict(addr), wanted, is);
    is_wrong("free", node.free_bytes(addr, 64), wanted, is);
    is_wrong("shared", node.attach::<u64>(addr), wanted, is);
    is_wrong("block", BlockLock::attach(node, addr), wanted, is);
    let ranges = RangesLock::create(node, &[(addr, 32)]);
    is_wrong("ranges", ranges.map(drop), wanted, is);
}

fn others(node: &Node, addr: u64) {
    let is = Contract::Object;
    let line = node.attach_replicated::<u64>(addr);
    is_wrong("line", line, Contract::Replicated, is);
    let array = RwLockArray::attach(node, addr, 1, 64);
    is_wrong("array", array, Contract::Locked, is);
    let taken: [Result<(), Error>; 3] = [
        Mutex::<u64>::attach(node, addr)
            .map(drop)
            .map_err(Into::into),
        RwLock::<u64>::attach(node, addr)
            .map(drop)
            .map_err(Into::into),
        RangesLock::attach(node, addr).map(drop).map_err(Into::into),
    ];
    for taken in taken {
        let error = taken.unwrap_err();
        let wrong = matches!(
            error.access(),
            Some(rackmem::AccessError::WrongContract { .. })
        );
        assert!(wrong, "{error}");
    }
}

#[test]
fn other_memory_has_no_objects() {
    let rack = rack(rackmem::Fabric::Inline, Mode::HomeOnly, 3);
    let node = rack.node(0);
    let shared = node.alloc(7u64).unwrap();
    let lock = Mutex::create(&node, 7u64).unwrap();
    let copies = RegionSpec::new("copies", 640).copies(3);
    let copies = node.create_region(&copies).unwrap();
    for (addr, is) in [
        (shared.addr(), Contract::Coherent),
        (lock.addr(), Contract::Locked),
        (copies.addr(), Contract::Replicated),
    ] {
        let object = node.attach_object::<u64>(ObjectRef::new(addr, 0));
        is_wrong("attach", object, Contract::Object, is);
    }
    let bytes = RegionSpec::new("bytes", 640);
    let bytes = node.create_region(&bytes).unwrap();
    is_wrong(
        "alloc",
        bytes.alloc(7u64),
        Contract::Object,
        Contract::Coherent,
    );
    let made = copies.alloc_bytes(b"7", 0);
    is_wrong("alloc", made, Contract::Object, Contract::Replicated);
    // A home that the rack has not, and a contract that there is not.
    let objects = region(&rack, 0, "objects").addr();
    for addr in [objects | 9 << 48, objects | 7 << 45] {
        assert!(node.attach_object::<u64>(ObjectRef::new(addr, 0)).is_err());
    }
}

#[test]
fn a_name_is_under_one_contract() {
    let rack = rack(rackmem::Fabric::Inline, Mode::HomeOnly, 3);
    let (here, there) = (rack.node(0), rack.node(2));
    let bytes = RegionSpec::new("a", 1 << 20);
    let objects = bytes.clone().contract(Contract::Object);
    here.create_region(&bytes).unwrap();
    for made in [there.create_region(&objects), there.open_region(&objects)] {
        is_wrong("objects", made, Contract::Object, Contract::Coherent);
    }
    let objects = RegionSpec::new("b", 1 << 20).contract(Contract::Object);
    let made = here.create_region(&objects).unwrap();
    let same = there.create_region(&objects).unwrap();
    assert_eq!((same.addr(), same.is_new()), (made.addr(), false));
    let bytes = RegionSpec::new("b", 1 << 20);
    for made in [there.create_region(&bytes), there.open_region(&bytes)] {
        is_wrong("bytes", made, Contract::Coherent, Contract::Object);
    }
    let lock = Mutex::named(&there, "b", 7u64).map(drop);
    is_wrong("lock", lock, Contract::Locked, Contract::Object);
    // At another node, and listed.
    let elsewhere = RegionSpec::new("c", 1 << 20).contract(Contract::Object);
    let elsewhere = here.create_region(&elsewhere.on(2)).unwrap();
    assert_eq!(elsewhere.home(), rackmem::HomeId::of(2));
    let object: Object<u64> = elsewhere.alloc(5).unwrap();
    assert_eq!(object.read(), Ok(5));
    let names = there.regions().unwrap().into_iter();
    let names: Vec<_> = names
        .map(|info| (info.spec.name().to_owned(), info.spec.asks_contract()))
        .collect();
    let named = |name: &str, contract| (name.to_owned(), contract);
    assert_eq!(
        names,
        [
            named("a", Contract::Coherent),
            named("b", Contract::Object),
            named("c", Contract::Object)
        ]
    );
}
