//! What a wait that ends without the lock comes to, and addresses and ranges that are wrong.

use super::{layered, rack};
use rackmem::{Error as Cause, Fabric, LockError, RackError};
use rackmem_bench::locks::{AnyLock, Error, LockKind, Result};
use rackmem_bench::system::System;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

#[test]
fn who_gives_up_is_forgotten_where_queues_can_be_left() {
    for kind in [LockKind::Gcp, LockKind::Service] {
        let rack = rack(Fabric::Inline, System::Switch, kind);
        let made = AnyLock::create(&rack.node(0), 8).unwrap();
        let lock = AnyLock::attach(&rack.node(1), made.addr()).unwrap();
        let held = made.write().unwrap();
        assert!(lock.write_timeout(SOON).unwrap().is_none());
        assert!(lock.read_timeout(SOON).unwrap().is_none());
        drop(held);
        drop(lock.write().unwrap());
        assert!(
            made.write_timeout(LONG).unwrap().is_some(),
            "{}",
            kind.name()
        );
    }
}

#[test]
fn a_wait_that_cannot_be_given_up_ends_the_lock_for_its_node() {
    for kind in layered().filter(|kind| *kind != LockKind::Service) {
        let rack = rack(Fabric::Inline, System::Switch, kind);
        let made = AnyLock::create(&rack.node(0), 8).unwrap();
        let lock = AnyLock::attach(&rack.node(1), made.addr()).unwrap();
        let held = made.write().unwrap();
        let abandoned = |result: Result<_>| match result {
            Err(Error::Abandoned { addr }) => assert_eq!(addr, made.addr()),
            Err(other) => panic!("{}: {other}", kind.name()),
            Ok(_) => panic!("{}: inside together with a writer", kind.name()),
        };
        abandoned(lock.write_timeout(SOON).map(|_| ()));
        drop(held);
        abandoned(lock.read().map(|_| ()));
        let same = AnyLock::attach(&rack.node(1), made.addr()).unwrap();
        abandoned(same.write().map(|_| ()));
    }
}

#[test]
fn a_closed_rack_ends_waits() {
    for (kind, _) in LockKind::ALL {
        let rack = rack(Fabric::Udp, System::Switch, kind);
        let made = AnyLock::create(&rack.node(0), 8).unwrap();
        let lock = AnyLock::attach(&rack.node(1), made.addr()).unwrap();
        let held = made.write().unwrap();
        let waits = std::thread::spawn(move || lock.write().map(|_| ()));
        std::thread::sleep(SOON);
        drop(rack);
        let told = waits.join().unwrap();
        assert!(
            matches!(told, Err(Error::Rack(Cause::Rack(RackError::Closed)))),
            "{}: {told:?}",
            kind.name()
        );
        drop(held);
    }
}

#[test]
fn wrong_addresses_and_ranges_are_errors() {
    for (kind, _) in LockKind::ALL {
        let rack = rack(Fabric::Inline, System::Switch, kind);
        let node = rack.node(0);
        let lock = AnyLock::create_as(&node, kind, 100).unwrap();
        assert_eq!((lock.kind(), lock.size()), (kind, 100));
        for addr in [lock.addr() + 8, node.alloc_bytes(4096).unwrap()] {
            let found = AnyLock::attach(&rack.node(1), addr);
            assert!(
                matches!(
                    found,
                    Err(Error::Rack(Cause::Lock(LockError::NoLock { .. })))
                ),
                "{}",
                kind.name()
            );
        }
        let mut held = lock.write().unwrap();
        assert!(held.write(92, &[1; 8]).is_ok());
        let mut out = [0; 8];
        assert!(held.read(92, &mut out).is_ok() && out == [1; 8]);
        for offset in [93, 100, usize::MAX] {
            let bad = |result| matches!(result, Err(Cause::Lock(LockError::OutsideRanges { .. })));
            assert!(bad(held.write(offset, &[1; 8])) && bad(held.read(offset, &mut out)));
        }
        for len in [0, (64 << 10) + 1] {
            assert!(AnyLock::create_as(&node, kind, len).is_err());
        }
    }
}
