//! What handles do.

use crate::{FABRICS, LONG, rack, region};
use rackmem::object::{MAX_OBJECT, Object, ObjectRef, Retry, Then};
use rackmem::window::Window;
use rackmem::{AccessError, AllocError, Contract, Mode, Rack, RegionSpec};

#[test]
fn what_one_node_writes_all_read() {
    for fabric in FABRICS {
        for mode in [Mode::HomeOnly, Mode::Switch] {
            let rack = rack(fabric, mode, 3);
            let objects = region(&rack, 0, "objects");
            let first: Object<[u64; 20]> = objects.alloc([0; 20]).unwrap();
            let (mut version, value) = first.read_versioned().unwrap();
            assert_eq!(value, [0; 20]);
            for (nth, node) in rack.nodes().iter().enumerate() {
                let mine: Object<[u64; 20]> = node.attach_object(first.at()).unwrap();
                let now = [nth as u64 + 7; 20];
                let next = mine.write(&now).unwrap();
                assert!(next > version, "{fabric:?} {mode:?}");
                for node in rack.nodes() {
                    let same: Object<[u64; 20]> = node.attach_object(first.at()).unwrap();
                    assert_eq!(same.read_versioned(), Ok((next, now)));
                    assert_eq!(same.read_if_newer(version), Ok(Some((next, now))));
                    assert_eq!(same.read_if_newer(next), Ok(None));
                    assert_eq!(same.write_if(version, &[9; 20]), Ok(Err(next)));
                    assert_eq!(same.with(|view: &Window<'_>| view.u64(8)), Ok(now[1]));
                }
                version = next;
            }
        }
    }
}

/// Objects of one packet and of many, and lengths that are no whole words.
#[test]
fn bytes_of_all_lengths_are_whole() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let objects = region(&rack, 0, "bytes");
        let far = rack
            .node(1)
            .open_region(&RegionSpec::new("bytes", 4 << 20).contract(Contract::Object));
        let far = far.unwrap();
        for len in [0, 1, 7, 8, 100, 1023, 1024, 1025, 5000, 33_000, MAX_OBJECT] {
            let bytes: Vec<u8> = (0..len).map(|nth| (nth % 251) as u8 + 1).collect();
            let near = objects.alloc_bytes(&bytes, 0).unwrap();
            let other: Object<[u8]> = rack.node(1).attach_object(near.at()).unwrap();
            assert_eq!(other.read().unwrap(), bytes, "{fabric:?} {len}");
            let more: Vec<u8> = bytes.iter().map(|byte| byte ^ 0x55).collect();
            other.write(&more).unwrap();
            assert_eq!(near.read().unwrap(), more, "{fabric:?} {len}");
            // A shorter one, and one that it has no room for.
            other.write(&more[..len / 2]).unwrap();
            assert_eq!(near.read().unwrap(), more[..len / 2]);
            let long = vec![1; (len + 1).next_multiple_of(64) * 2];
            for object in [&near, &other] {
                let error = object.write(&long).unwrap_err();
                assert!(matches!(error, AccessError::OtherSize { .. }), "{error}");
                assert_eq!(object.read().unwrap(), more[..len / 2]);
            }
            // Made from elsewhere.
            let made = far.alloc_bytes(&bytes, 0).unwrap();
            let near: Object<[u8]> = rack.node(0).attach_object(made.at()).unwrap();
            assert_eq!(near.read().unwrap(), bytes);
            made.free().unwrap();
        }
    }
}

/// Whoever has a handle on what was freed is told so, also when another object is there.
#[test]
fn what_is_freed_is_gone_for_all() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let objects = region(&rack, 0, "objects");
        let old: Object<u64> = objects.alloc(7).unwrap();
        let far: Object<u64> = rack.node(1).attach_object(old.at()).unwrap();
        let (before, _) = far.read_versioned().unwrap();
        let again = far.clone();
        far.free().unwrap();
        let addr = old.addr();
        let gone = AccessError::Gone { addr };
        let is_gone = |object: &Object<u64>| {
            assert_eq!(object.read(), Err(gone), "{fabric:?}");
            assert_eq!(object.read_if_newer(before), Err(gone));
            assert_eq!(object.write(&9), Err(gone));
            assert_eq!(object.write_if(before, &9), Err(gone));
            assert_eq!(object.update(|value| *value += 1), Err(gone));
            assert_eq!(object.with(|_| ()), Err(gone));
            assert_eq!(object.clone().free(), Err(gone));
        };
        is_gone(&old);
        is_gone(&again);
        let new: Object<u64> = objects.alloc(8).unwrap();
        assert_eq!(new.addr(), addr);
        assert_ne!(new.at(), old.at());
        is_gone(&old);
        is_gone(&again);
        let (after, value) = new.read_versioned().unwrap();
        assert!(after > before && value == 8);
        // One that was made with zeros has none of the old bytes.
        new.free().unwrap();
        assert_eq!(objects.alloc(0u64).unwrap().read(), Ok(0));
    }
}

#[test]
fn updates_of_all_nodes_count_once() {
    const EACH: u64 = 300;
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let first: Object<[u64; 16]> = region(&rack, 1, "objects").alloc([0; 16]).unwrap();
        std::thread::scope(|scope| {
            for node in rack.nodes() {
                let mine: Object<[u64; 16]> = node.attach_object(first.at()).unwrap();
                scope.spawn(move || {
                    for _ in 0..EACH {
                        mine.update(|all| all.iter_mut().for_each(|n| *n += 1))
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(first.read(), Ok([EACH * 3; 16]), "{fabric:?}");
    }
}

/// Lost, doubled and late packets change nothing.
#[test]
fn a_bad_network_neither_loses_nor_doubles_a_write() {
    let faults = rackmem::diagnostics::Faults {
        loss: 0.05,
        duplication: 0.1,
        delay: 0.1,
        ..rackmem::diagnostics::Faults::NONE
    };
    let rack = Rack::builder(2).fabric(rackmem::Fabric::Udp);
    let rack = rack
        .mtu(1500)
        .patience(LONG)
        .faults(faults)
        .build()
        .unwrap();
    let objects = region(&rack, 0, "objects");
    let near: Object<[u64; 500]> = objects.alloc([0; 500]).unwrap();
    let far: Object<[u64; 500]> = rack.node(1).attach_object(near.at()).unwrap();
    for nth in 1..=100 {
        far.update(|all| all.iter_mut().for_each(|n| *n += 1))
            .unwrap();
        assert_eq!(near.read(), Ok([nth; 500]));
        assert_eq!(far.read(), Ok([nth; 500]));
    }
}

#[test]
fn what_cannot_be_had_is_said() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let small = RegionSpec::new("small", 64 << 10).contract(Contract::Object);
        let small = rack.node(0).create_region(&small).unwrap();
        let error = small.alloc_bytes(&[], MAX_OBJECT + 1).unwrap_err();
        let (len, most) = (MAX_OBJECT + 1, MAX_OBJECT);
        assert_eq!(error, AllocError::TooLarge { len, most });
        let only: Object<[u64; 8]> = small.alloc([1; 8]).unwrap();
        // Another size has no slab left.
        for node in rack.nodes() {
            let same =
                node.open_region(&RegionSpec::new("small", 64 << 10).contract(Contract::Object));
            let error = same.unwrap().alloc([1u64; 80]).unwrap_err();
            assert_eq!(error, AllocError::OutOfMemory { node: 0 });
        }
        let all = RegionSpec::new("all", 1 << 40).contract(Contract::Object);
        for node in rack.nodes() {
            let error = node.create_region(&all.clone().on(0)).unwrap_err();
            assert!(error.to_string().contains("memory"), "{error}");
        }
        for node in rack.nodes() {
            // Another type's size.
            let other: Object<[u64; 9]> = node.attach_object(only.at()).unwrap();
            let error = other.read().unwrap_err();
            let other_size = |error| matches!(error, AccessError::OtherSize { len: 72, .. });
            assert!(other_size(error), "{error}");
            // Addresses that nobody has given out, and another life of this one.
            let forged = |addr: u64, generation| {
                let at = ObjectRef::new(addr, generation);
                let object: Object<u64> = node.attach_object(at).unwrap();
                let read = object.read().unwrap_err();
                assert_eq!(object.write(&1), Err(read), "{addr:x}");
                assert_eq!(object.clone().free(), Err(read), "{addr:x}");
                read
            };
            for addr in [only.addr() + 64, only.addr() + (1 << 20), only.addr() + 8] {
                assert_eq!(forged(addr, 0), AccessError::BadAddress { addr });
            }
            let gone = AccessError::Gone { addr: only.addr() };
            assert_eq!(forged(only.addr(), 1), gone);
            assert_eq!(forged(only.addr(), u32::MAX), gone);
            // A place that no object has been in.
            let addr = only.addr() + 80;
            assert_eq!(forged(addr, 0), AccessError::BadAddress { addr });
        }
        assert_eq!(only.read(), Ok([1; 8]));
        let retry = Retry {
            tries: 1,
            then: Then::Abort,
        };
        assert_eq!(only.read_with(retry), Ok([1; 8]));
    }
}

#[test]
fn a_closed_rack_says_so() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let near: Object<u64> = region(&rack, 0, "objects").alloc(7).unwrap();
        let far: Object<u64> = rack.node(1).attach_object(near.at()).unwrap();
        drop(rack);
        for object in [near, far] {
            assert!(object.read().is_err() && object.write(&1).is_err());
        }
    }
}
