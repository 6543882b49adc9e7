//! Regions of objects are removed: their objects are gone, and their memory is there for others.

use crate::{FABRICS, rack, region};
use rackmem::object::Object;
use rackmem::{AccessError, AllocError, Contract, Mode, RegionError, RegionSpec};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// More objects than one call of a removal frees.
const MANY: usize = 2500;

#[test]
fn objects_of_a_removed_region_are_gone() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let kept = region(&rack, 0, "kept").alloc(7u64).unwrap();
        let objects = region(&rack, 0, "objects");
        let made: Vec<Object<u64>> = (0..MANY as u64)
            .map(|nth| objects.alloc(nth).unwrap())
            .collect();
        let far: Object<u64> = rack.node(1).attach_object(made[9].at()).unwrap();
        assert_eq!(far.read(), Ok(9));
        // By a node that is not its home.
        rack.node(1).remove_region("objects").unwrap();
        let addr = far.addr();
        assert_eq!(far.read(), Err(AccessError::Gone { addr }), "{fabric:?}");
        assert_eq!(far.write(&1), Err(AccessError::Gone { addr }));
        for object in &made {
            let addr = object.addr();
            assert_eq!(object.read(), Err(AccessError::Gone { addr }));
        }
        let error = rack.node(0).remove_region("objects").unwrap_err();
        assert!(matches!(error, RegionError::NotFound { .. }), "{error}");
        // A handle that somebody still has puts nothing anywhere.
        assert!(matches!(objects.check(), Err(RegionError::Removed { .. })));
        let error = objects.alloc(7u64).unwrap_err();
        let none = AccessError::BadAddress {
            addr: objects.addr(),
        };
        assert_eq!(error, AllocError::Access(none));
        // The name is free, and places are used again without anything of what was there.
        let again = region(&rack, 0, "objects");
        assert!(again.is_new() && again.addr() != objects.addr());
        let next: Object<u64> = again.alloc(0).unwrap();
        assert_eq!((next.read(), kept.read()), (Ok(0), Ok(7)));
        assert_eq!(far.read(), Err(AccessError::Gone { addr }));
        assert_eq!(rack.node(0).metrics().objects.live, 2);
    }
}

/// As many regions one after the other as there is no memory for beside each other.
#[test]
fn memory_of_removed_regions_is_used_again() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let spec = RegionSpec::new("half", 40 << 20)
            .contract(Contract::Object)
            .on(0);
        for nth in 0..40u64 {
            let region = rack.node(1).create_region(&spec).unwrap();
            let beside = RegionSpec::new("beside", 40 << 20).contract(Contract::Object);
            let error = rack.node(0).create_region(&beside).unwrap_err();
            assert!(error.to_string().contains("memory"), "{error}");
            let some: Object<u64> = region.alloc(nth).unwrap();
            let long = region.alloc_bytes(&vec![nth as u8; 5000], 0).unwrap();
            assert_eq!(
                (some.read(), long.read().unwrap()[4999]),
                (Ok(nth), nth as u8)
            );
            rack.node(nth as usize % 2).remove_region("half").unwrap();
        }
        let counts = rack.node(0).metrics().objects;
        assert_eq!((counts.live, counts.slabs), (0, 2), "{fabric:?}");
    }
}

/// Writers and readers everywhere meet the removal, and are told.
#[test]
fn who_uses_objects_while_their_region_goes_is_told() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let region = region(&rack, 0, "objects");
        let first: Object<[u64; 40]> = region.alloc([0; 40]).unwrap();
        let begun: [AtomicBool; 3] = Default::default();
        std::thread::scope(|scope| {
            for (node, begun) in rack.nodes().iter().zip(&begun) {
                let mine: Object<[u64; 40]> = node.attach_object(first.at()).unwrap();
                scope.spawn(move || {
                    let error = (1..).find_map(|nth| {
                        let written = mine.write(&[nth; 40]).and_then(|_| mine.read());
                        begun.store(true, Relaxed);
                        written
                            .map(|all| assert!(all.iter().all(|word| *word == all[0])))
                            .err()
                    });
                    let addr = mine.addr();
                    assert_eq!(error, Some(AccessError::Gone { addr }));
                });
            }
            crate::until("all write", || {
                begun.iter().all(|begun| begun.load(Relaxed))
            });
            rack.node(2).remove_region("objects").unwrap();
        });
        assert_eq!(rack.node(0).metrics().objects.live, 0, "{fabric:?}");
    }
}
