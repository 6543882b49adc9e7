//! What handles promise.

use crate::{MODES, NODES, rack, until};
use rackmem::locked::{BlockLock, Lock, Mutex, RangesLock, RwLock, Waiting};
use rackmem::{AccessError, Contract, Error, Fabric, LockError, Mode, RackError, Wait};
use rackmem_proto::wire::Tag;
use std::sync::Mutex as Local;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(5);

#[test]
fn a_wait_ends_in_time_and_disturbs_nobody() {
    for fabric in [Fabric::Inline, Fabric::Udp] {
        let rack = rack(fabric, Mode::Switch, None);
        let made: Mutex<u64> = Mutex::create(&rack.node(0), 1).unwrap();
        let far: Mutex<u64> = Mutex::attach(&rack.node(2), made.addr()).unwrap();
        let held = made.lock().unwrap();
        assert!(far.lock_within(SHORT).unwrap().is_none());
        assert!(made.lock_within(SHORT).unwrap().is_none());
        assert!(made.try_lock().unwrap().is_none());
        drop(held);
        // The lock has gone to who waited in vain, or will; whoever wants it gets it.
        assert_eq!(made.lock().unwrap().update(|n| n + 1), 1);
        assert_eq!(far.lock().unwrap().update(|n| n + 1), 2);
        assert_eq!(made.lock().unwrap().get(), 3);
    }
}

#[test]
fn trying_takes_what_is_here_and_nothing_else() {
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let near: RwLock<u64> = RwLock::create(&rack.node(0), 1).unwrap();
    let far: RwLock<u64> = RwLock::attach(&rack.node(1), near.addr()).unwrap();
    assert!(far.try_write().unwrap().is_none() && far.try_read().unwrap().is_none());
    near.try_write().unwrap().unwrap().set(2);
    assert_eq!(far.read().unwrap().get(), 2);
    let together = (far.try_read().unwrap(), near.try_read().unwrap());
    assert!(together.0.is_some() && together.1.is_some());
    assert!(near.try_write().unwrap().is_none());
}

#[test]
fn names_and_addresses_lead_every_node_to_the_same_lock() {
    let rack = rack(Fabric::Udp, Mode::Switch, None);
    std::thread::scope(|scope| {
        for node in rack.nodes() {
            scope.spawn(move || {
                let mutex: Mutex<u64> = Mutex::named(node, "the one", 0).unwrap();
                mutex.lock().unwrap().update(|n| n + 1);
            });
        }
    });
    let node = rack.node(1);
    let mutex: Mutex<u64> = Mutex::named(&node, "the one", 7).unwrap();
    assert_eq!(mutex.lock().unwrap().get(), NODES as u64);
    let no_lock = |error: Option<LockError>| matches!(error, Some(LockError::NoLock { .. }));
    let addr = mutex.addr();
    assert!(no_lock(RwLock::<u64>::attach(&node, addr).err()));
    assert!(no_lock(Mutex::<u32>::attach(&node, addr).err()));
    assert!(no_lock(RangesLock::attach(&node, addr).err()));
    assert!(no_lock(Mutex::<u64>::attach(&node, addr + 8).err()));
    let elsewhere = node.alloc_bytes(64).unwrap();
    let beside = Tag(elsewhere).under(Contract::Locked).0;
    assert!(no_lock(Mutex::<u64>::attach(&node, beside).err()));
    assert!(matches!(
        Mutex::<u64>::attach(&node, elsewhere).err(),
        Some(LockError::Access(AccessError::WrongContract { addr, wanted: Contract::Locked, is: Contract::Coherent }))
            if addr == elsewhere
    ));
}

#[test]
fn what_reads_bytes_cannot_reach_a_lock_by_its_address() {
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let (home, other) = (rack.node(0), rack.node(1));
    let mutex = Mutex::create(&home, 7u64).unwrap();
    let addr = mutex.addr();
    let wrong = |error: Option<Error>| {
        matches!(
            error.as_ref().and_then(Error::access),
            Some(AccessError::WrongContract { addr: at, wanted: Contract::Coherent, is: Contract::Locked })
                if Tag(at).offset() / 4096 == Tag(addr).offset() / 4096
        )
    };
    for node in [&home, &other] {
        assert!(wrong(node.load(addr).err().map(Error::from)));
        assert!(wrong(node.store(addr, 0).err().map(Error::from)));
        assert!(wrong(node.write(addr, &[0; 32]).err().map(Error::from)));
        assert!(wrong(node.free_bytes(addr, 32).err().map(Error::from)));
        assert!(wrong(node.accept_loss(addr).err().map(Error::from)));
    }
    let same = Mutex::<u64>::attach(&other, addr).unwrap();
    assert_eq!(same.lock().unwrap().get(), 7);
}

#[test]
fn a_lock_over_ranges_moves_them_together() {
    for fabric in [Fabric::Inline, Fabric::Udp] {
        let rack = rack(fabric, Mode::Switch, None);
        let node = rack.node(0);
        let (near, far) = (
            node.alloc_bytes(4096).unwrap(),
            rack.node(1).alloc_bytes(64).unwrap(),
        );
        node.write(near + 3, &[7; 3000]).unwrap();
        let ranges = [(near + 3, 3000), (far, 5)];
        let made = RangesLock::create(&node, &ranges).unwrap();
        let other = RangesLock::attach(&rack.node(2), made.addr()).unwrap();
        assert!(other.ranges().eq(ranges));
        let mut held = other.write().unwrap();
        let mut bytes = [0; 2];
        held.read(near + 3001, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 7]);
        held.write(near + 3002, &[8]).unwrap();
        held.write(far, &[1, 2, 3, 4, 5]).unwrap();
        assert!(held.write(far + 4, &[0; 2]).is_err());
        assert!(held.read(near, &mut bytes).is_err());
        drop(held);
        let held = made.read().unwrap();
        held.read(near + 3001, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 8]);
        let mut five = [0; 5];
        held.read(far, &mut five).unwrap();
        assert_eq!(five, [1, 2, 3, 4, 5]);
    }
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let bad = |list: &[(u64, usize)]| RangesLock::create(&rack.node(0), list).is_err();
    assert!(bad(&[(0, 8), (4, 8)]) && bad(&[(0, 0)]) && bad(&[(0, 65_537)]));
}

#[test]
fn another_node_has_its_turn_however_many_wait_here() {
    MODES.into_iter().for_each(a_turn);
}

fn a_turn(mode: Mode) {
    let rack = rack(Fabric::Inline, mode, None);
    let home: Lock = Mutex::create(&rack.node(0), ()).unwrap();
    let here: Lock = Mutex::attach(&rack.node(1), home.addr()).unwrap();
    let there: Lock = Mutex::attach(&rack.node(2), home.addr()).unwrap();
    let order = Local::new(Vec::new());
    let held = here.lock().unwrap();
    std::thread::scope(|scope| {
        let take = |lock: Lock, who: usize| {
            let order = &order;
            scope.spawn(move || {
                let _held = lock.lock().unwrap();
                order.lock().unwrap().push(who);
            });
        };
        take(there.clone(), 2);
        until(|| here.waiting().nodes == 1);
        (0..40).for_each(|_| take(here.clone(), 1));
        let all = Waiting {
            threads: 40,
            nodes: 1,
        };
        until(|| here.waiting() == all);
        drop(held);
    });
    let order = order.into_inner().unwrap();
    let turn = order.iter().position(|who| *who == 2);
    assert_eq!((order.len(), turn), (41, Some(16)));
}

#[test]
fn who_panics_inside_leaves() {
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let made: Mutex<u64> = Mutex::create(&rack.node(0), 1).unwrap();
    let other: Mutex<u64> = Mutex::attach(&rack.node(1), made.addr()).unwrap();
    let panics = std::thread::spawn(move || {
        let mut held = other.lock().unwrap();
        held.set(2);
        panic!("as the test wants");
    });
    assert!(panics.join().is_err());
    assert_eq!(made.lock().unwrap().get(), 2);
}

#[test]
fn the_end_of_a_rack_ends_every_wait() {
    for fabric in [Fabric::Inline, Fabric::Udp] {
        let rack = rack(fabric, Mode::Switch, None);
        let made: Mutex<u64> = Mutex::create(&rack.node(0), 1).unwrap();
        let far: Mutex<u64> = Mutex::attach(&rack.node(1), made.addr()).unwrap();
        let _held = made.lock().unwrap();
        std::thread::scope(|scope| {
            let waits = far.clone();
            let told = scope.spawn(move || waits.lock().err());
            until(|| far.waiting().threads == 1);
            drop(rack);
            assert!(matches!(
                told.join().unwrap(),
                Some(LockError::Rack(RackError::Closed))
            ));
        });
        assert!(matches!(
            far.lock().err(),
            Some(LockError::Rack(RackError::Closed))
        ));
    }
}

/// Every kind of lock waits as long as its caller says, in whichever way.
#[test]
fn a_wait_is_bounded_in_one_way_for_every_kind_of_lock() {
    let rack = rack(Fabric::Inline, Mode::Switch, None);
    let (near, far) = (rack.node(0), rack.node(1));
    let mutex = Mutex::create(&near, 1u64).unwrap();
    let there = Mutex::<u64>::attach(&far, mutex.addr()).unwrap();
    let lock = RwLock::create(&near, 1u64).unwrap();
    let other = RwLock::<u64>::attach(&far, lock.addr()).unwrap();
    let addr = near.alloc_bytes(8).unwrap();
    let ranges = RangesLock::create(&near, &[(addr, 8)]).unwrap();
    let same = RangesLock::attach(&far, ranges.addr()).unwrap();
    let block = BlockLock::create(&near).unwrap();
    let again = BlockLock::attach(&far, block.addr()).unwrap();
    let held = (
        mutex.lock().unwrap(),
        lock.write().unwrap(),
        ranges.write().unwrap(),
        block.write().unwrap(),
    );
    let enters = |wait: Wait| {
        [
            there.lock_within(wait).is_ok_and(|held| held.is_some()),
            other.read_within(wait).is_ok_and(|held| held.is_some()),
            other.write_within(wait).is_ok_and(|held| held.is_some()),
            same.read_within(wait).is_ok_and(|held| held.is_some()),
            same.write_within(wait).is_ok_and(|held| held.is_some()),
            again.read_within(wait).is_ok_and(|held| held.is_some()),
            again.write_within(wait).is_ok_and(|held| held.is_some()),
        ]
    };
    let soon = || Instant::now() + SHORT;
    for wait in [
        Wait::Never,
        SHORT.into(),
        soon().into(),
        Instant::now().into(),
    ] {
        assert_eq!(enters(wait), [false; 7], "{wait:?}");
    }
    drop(held);
    // What has been asked for meanwhile may be on its way: only waiting without end is certain.
    assert_eq!(enters(Wait::Forever), [true; 7]);
    assert_eq!(enters(Duration::from_secs(60).into()), [true; 7]);
    assert_eq!(
        enters((Instant::now() + Duration::from_secs(60)).into()),
        [true; 7]
    );
    // All of it is at this node now, but for the block's lock, which nobody keeps.
    assert_eq!(enters(Wait::Never), [true; 7]);
}
