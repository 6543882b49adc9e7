//! Memory under one contract is not reached through handles of another, at no entry point.

use rackmem::locked::{BlockLock, Mutex, RangesLock, RwLock, RwLockArray};
use rackmem::{
    AccessError, Contract, Error, Node, Rack, RegionError, RegionSpec, Replicated, Shared,
    SharedSlice,
};

fn is_wrong(what: &str, done: Result<(), impl Into<Error>>, wanted: Contract, is: Contract) {
    let error: Error = match done {
        Ok(()) => panic!("{what}: nothing is wrong"),
        Err(error) => error.into(),
    };
    let wrong = matches!(
        error.access(),
        Some(AccessError::WrongContract { wanted: w, is: i, .. }) if (w, i) == (wanted, is)
    );
    assert!(wrong, "{what}: {error}");
}

/// A region with copies whose group has the number of a node that there is, and one whose group
/// has not.
fn lines(rack: &Rack) -> [u64; 2] {
    let spec = |nth: usize| RegionSpec::new(&format!("region {nth}"), 64).copies(3);
    let made = |nth| rack.node(1).create_region(&spec(nth)).unwrap().addr();
    let all: Vec<u64> = (0..5).map(made).collect();
    [all[1], all[4]]
}

#[test]
fn lines_are_not_reached_as_coherent_memory() {
    let rack = Rack::local(4).unwrap();
    for addr in lines(&rack) {
        for node in rack.nodes() {
            coherent_operations(node, addr);
        }
        let line: Replicated<u64> = rack.node(0).attach_replicated(addr).unwrap();
        assert_eq!(line.read().unwrap(), 0);
    }
}

fn coherent_operations(node: &Node, addr: u64) {
    use Contract::{Coherent, Replicated};
    let wrong = |what, done: Result<(), Error>| is_wrong(what, done, Coherent, Replicated);
    let mut bytes = [0; 32];
    wrong("load", node.load(addr).map(drop).map_err(Into::into));
    wrong("store", node.store(addr, 1).map_err(Into::into));
    wrong("add", node.fetch_add(addr, 1).map(drop).map_err(Into::into));
    wrong("read", node.read(addr, &mut bytes).map_err(Into::into));
    wrong("write", node.write(addr, &bytes).map_err(Into::into));
    let seen = node.snapshot(addr, 8, |_| ());
    wrong("snapshot", seen.map_err(Into::into));
    let changed = node.update(addr, 8, |_| ());
    wrong("update", changed.map_err(Into::into));
    wrong("accept", node.accept_loss(addr).map_err(Into::into));
    wrong("empty", node.accept_empty(addr).map_err(Into::into));
    wrong("evict", node.evict(addr).map(drop).map_err(Into::into));
    wrong("free", node.free_bytes(addr, 64).map_err(Into::into));
    let shared = node.attach::<u64>(addr);
    let shared = shared.and_then(|shared: Shared<u64>| shared.read());
    wrong("shared", shared.map(drop).map_err(Into::into));
    let slice: Result<SharedSlice<u64>, Error> =
        node.attach_slice::<u64>(addr, 4).map_err(Into::into);
    let slice = slice.and_then(|slice| Ok(slice.get(0).map(drop)?));
    wrong("slice", slice);
}

#[test]
fn lines_are_no_locks() {
    let rack = Rack::local(4).unwrap();
    for addr in lines(&rack) {
        for node in rack.nodes() {
            let block = BlockLock::attach(node, addr).map(drop).map_err(Error::from);
            let replicated = Contract::Replicated;
            is_wrong("block", block, Contract::Coherent, replicated);
            let array = RwLockArray::attach(node, addr, 1, 64);
            let array = array.map(drop).map_err(Error::from);
            is_wrong("array", array, Contract::Locked, replicated);
            let ranges = RangesLock::create(node, &[(addr, 32)]);
            let ranges = ranges.map(drop).map_err(Error::from);
            is_wrong("ranges", ranges, Contract::Coherent, replicated);
            let taken: [Result<(), Error>; 3] = [
                Mutex::<u64>::attach(node, addr)
                    .map(drop)
                    .map_err(Into::into),
                RwLock::<u64>::attach(node, addr)
                    .map(drop)
                    .map_err(Into::into),
                RangesLock::attach(node, addr).map(drop).map_err(Into::into),
            ];
            for (nth, taken) in taken.into_iter().enumerate() {
                let error = taken.unwrap_err();
                let told = matches!(error.access(), Some(AccessError::WrongContract { .. }));
                assert!(told, "{nth}: {error}");
            }
        }
    }
}

#[test]
fn other_memory_has_no_lines() {
    let rack = Rack::local(3).unwrap();
    let node = rack.node(0);
    let shared = node.alloc(7u64).unwrap();
    let lock = Mutex::create(&node, 7u64).unwrap();
    for (addr, is) in [
        (shared.addr(), Contract::Coherent),
        (lock.addr(), Contract::Locked),
    ] {
        let line = node.attach_replicated::<u64>(addr).map(drop);
        is_wrong("attach", line, Contract::Replicated, is);
    }
    let region = node.create_region(&RegionSpec::new("bytes", 640)).unwrap();
    let line = region.replicated::<u64>(0).map(drop);
    is_wrong("line", line, Contract::Replicated, Contract::Coherent);
    // A group that there is not, and behind the end of one that there is.
    let copied = RegionSpec::new("copied", 640).copies(3);
    let end = node.create_region(&copied).unwrap().addr() + 640;
    for addr in [end, end + (9 << 48)] {
        let error = node.attach_replicated::<u64>(addr).unwrap_err();
        assert_eq!(error, AccessError::BadAddress { addr });
    }
}

#[test]
fn a_name_is_under_one_contract() {
    let rack = Rack::local(3).unwrap();
    let (here, there) = (rack.node(0), rack.node(2));
    let bytes = RegionSpec::new("a", 640);
    let copies = bytes.clone().copies(3);
    here.create_region(&bytes).unwrap();
    for made in [there.create_region(&copies), there.open_region(&copies)] {
        let made = made.map(drop);
        is_wrong("copies", made, Contract::Replicated, Contract::Coherent);
    }
    let copies = RegionSpec::new("b", 640).copies(3);
    here.create_region(&copies).unwrap();
    let bytes = RegionSpec::new("b", 640);
    for made in [there.create_region(&bytes), there.open_region(&bytes)] {
        let made = made.map(drop);
        is_wrong("bytes", made, Contract::Coherent, Contract::Replicated);
    }
    let made = Mutex::named(&there, "b", 7u64).map(drop);
    is_wrong("lock", made, Contract::Locked, Contract::Replicated);
    let found = there.find_region("b", 0).map(drop);
    is_wrong("find", found, Contract::Coherent, Contract::Replicated);
    let locks = there.create_region(&bytes.contract(Contract::Locked));
    is_wrong(
        "locks",
        locks.map(drop),
        Contract::Locked,
        Contract::Replicated,
    );
    // All of them are listed.
    let names = there.regions().unwrap().into_iter();
    let names: Vec<_> = names
        .map(|info| (info.spec.name().to_owned(), info.spec.asks_copies()))
        .collect();
    assert_eq!(names, [("a".to_owned(), 0), ("b".to_owned(), 3)]);
    let locked = RegionSpec::new("c", 640)
        .copies(3)
        .contract(Contract::Locked);
    let error = here.create_region(&locked).unwrap_err();
    assert!(matches!(error, RegionError::ContractNotBuilt { .. }));
}
