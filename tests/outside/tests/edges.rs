//! What a program gets wrong at the edges is an error, and neither a panic nor somebody's memory.

use rackmem::locked::{BlockLock, Mutex, RwLockArray};
use rackmem::object::MapSpec;
use rackmem::{
    AccessError, AllocError, Contract, Error, LockError, OpenError, Rack, RackError, RegionSpec,
    Shared, Survives,
};
use std::time::Duration;

fn rack(nodes: usize) -> Rack {
    Rack::builder(nodes).memory(64 << 20).build().unwrap()
}

#[test]
fn values_without_bytes_are_counted_as_well() {
    let rack = rack(1);
    let units = rack.node(0).alloc_slice::<()>(10).unwrap();
    assert_eq!(units.blocks().collect::<Vec<_>>(), vec![0..10]);
    let huge = rack.node(0).alloc_slice::<()>(usize::MAX);
    assert!(matches!(huge, Err(AllocError::TooLarge { .. })), "{huge:?}");
}

#[test]
fn a_map_of_any_size_has_some_number_of_buckets() {
    for bytes in [0, 100, usize::MAX - 14, usize::MAX - 7, usize::MAX] {
        for entries in [0, 10, usize::MAX] {
            assert!(MapSpec::new(entries, bytes).buckets() > 0);
        }
    }
}

#[test]
fn patience_has_an_end() {
    for wrong in [Duration::ZERO, Duration::from_secs(3601), Duration::MAX] {
        let refused = Rack::builder(2).patience(wrong).build();
        assert!(matches!(refused, Err(OpenError::Config(_))), "{wrong:?}");
    }
}

#[test]
fn a_region_of_a_node_that_is_none_names_the_node() {
    let rack = rack(2);
    let spec = RegionSpec::new("far", 64).on(9);
    let refused = Error::from(rack.node(0).create_region(&spec).unwrap_err());
    assert!(
        matches!(refused, Error::Rack(RackError::NoSuchNode { node: 9 })),
        "{refused}"
    );
    assert!(rack.node(0).create_region(&spec.on(1)).is_ok());
}

#[test]
fn an_array_is_not_laid_over_a_lock() {
    let rack = rack(2);
    let lock = Mutex::create(&rack.node(0), [7u64; 3]).unwrap();
    for node in rack.nodes() {
        let array = RwLockArray::attach(node, lock.addr(), 1, 64);
        assert!(matches!(array, Err(LockError::NoLock { .. })), "{array:?}");
    }
    assert_eq!(*lock.lock().unwrap(), [7; 3]);
    let spec = RegionSpec::new("pages", 4096).contract(Contract::Locked);
    let pages = rack.node(0).create_region(&spec).unwrap();
    let array = RwLockArray::attach(&rack.node(1), pages.addr(), 4, 64).unwrap();
    assert_eq!(array.read(3).unwrap().view().u64(0), 0);
}

#[test]
fn a_block_lock_ends_with_its_rack() {
    let rack = rack(2);
    let lock = BlockLock::create(&rack.node(0)).unwrap();
    drop(rack);
    let refused = Error::from(lock.write().unwrap_err());
    assert!(
        matches!(refused, Error::Rack(RackError::Closed)),
        "{refused}"
    );
}

#[test]
fn coherent_memory_with_copies_is_removed() {
    let rack = rack(3);
    let spec = RegionSpec::new("kept", 4096).copies(3);
    let spec = spec.survives(Survives::Writes);
    let region = rack.node(0).create_region(&spec).unwrap();
    let word: Shared<u64> = region.shared(0).unwrap();
    word.write(7).unwrap();
    rack.node(1).remove_region("kept").unwrap();
    let refused = word.read().unwrap_err();
    let addr = region.addr();
    assert_eq!(refused, AccessError::BadAddress { addr });
    let next = rack.node(2).create_region(&spec).unwrap();
    assert!(next.is_new() && next.addr() != addr);
}

#[test]
fn the_switch_of_an_embedded_rack_can_be_printed() {
    let rack = rack(2);
    assert!(format!("{:?}", rack.switch().unwrap()).starts_with("SoftSwitch"));
}
