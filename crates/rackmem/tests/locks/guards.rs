//! Guards are the value, where it lies; and a lock over one type is no lock over another.

use super::{FABRICS, rack};
use rackmem::locked::{Condvar, Mutex, RwLock};
use rackmem::zerocopy::{FromBytes, Immutable, IntoBytes};
use rackmem::{LockError, Mode, RegionError};

#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable)]
#[zerocopy(crate = "rackmem::zerocopy")]
#[repr(C)]
struct Account {
    balance: i64,
    limit: f64,
    name: [u8; 16],
}

/// As long and as aligned as [`Account`].
#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable)]
#[zerocopy(crate = "rackmem::zerocopy")]
#[repr(C)]
struct Other([u64; 4]);

const EMPTY: Account = Account {
    balance: 0,
    limit: -1.5,
    name: [b'x'; 16],
};

#[test]
fn a_guard_is_the_value_that_the_last_writer_left() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::Switch, None);
        let count = Mutex::create(&rack.node(0), 0u64).unwrap();
        let account = RwLock::create(&rack.node(1), EMPTY).unwrap();
        for round in 1..=30 {
            let node = rack.node(round % 3);
            let count = Mutex::<u64>::attach(&node, count.addr()).unwrap();
            *count.lock().unwrap() += 1;
            let account = RwLock::<Account>::attach(&node, account.addr()).unwrap();
            let mut held = account.write().unwrap();
            held.balance -= 2;
            held.name[round % 16] = round as u8;
            assert_eq!(held.get(), *held);
            drop(held);
            let seen = account.read().unwrap();
            assert_eq!((seen.balance, seen.limit), (-2 * round as i64, -1.5));
            assert_eq!(seen.name[round % 16], round as u8);
            assert_eq!(format!("{seen:?}"), format!("{:?}", seen.get()));
        }
        assert_eq!(*count.lock().unwrap(), 30);
    }
}

#[test]
fn a_long_value_is_changed_in_place() {
    const LEN: usize = 8191;
    let rack = rack(FABRICS[0], Mode::Switch, None);
    let all = Mutex::create(&rack.node(0), [0u64; LEN]).unwrap();
    let far = Mutex::<[u64; LEN]>::attach(&rack.node(1), all.addr()).unwrap();
    for at in 0..LEN {
        far.lock().unwrap()[at] = at as u64;
    }
    let held = all.lock().unwrap();
    assert!(held.iter().copied().eq(0..LEN as u64));
    // What does not end with a word, and what is nothing.
    let odd = Mutex::create(&rack.node(0), [7u8; 5]).unwrap();
    odd.lock().unwrap().reverse();
    assert_eq!(*odd.lock().unwrap(), [7; 5]);
    let nothing = Mutex::create(&rack.node(0), ()).unwrap();
    *nothing.lock().unwrap() = ();
}

#[test]
fn a_condition_is_of_the_value() {
    let rack = rack(FABRICS[1], Mode::HomeOnly, None);
    let queue = Mutex::create(&rack.node(0), [0u64; 4]).unwrap();
    let filled = Condvar::create(&rack.node(0)).unwrap();
    std::thread::scope(|scope| {
        let (node, at) = (rack.node(1), (queue.addr(), filled.addr()));
        scope.spawn(move || {
            let queue = Mutex::<[u64; 4]>::attach(&node, at.0).unwrap();
            queue.lock().unwrap()[2] = 9;
            Condvar::attach(&node, at.1).unwrap().notify_all().unwrap();
        });
        let held = queue.lock().unwrap();
        let held = filled.wait_while(held, |queue| queue[2] == 0).unwrap();
        assert_eq!(held[2], 9);
    });
}

#[test]
fn a_lock_over_another_type_of_the_same_size_is_refused() {
    let rack = rack(FABRICS[0], Mode::Switch, None);
    let (here, there) = (rack.node(0), rack.node(1));
    let named = Mutex::named(&here, "n", 7u64).unwrap();
    let mismatch =
        |error: RegionError| assert!(matches!(error, RegionError::Mismatch { .. }), "{error}");
    mismatch(Mutex::<f64>::named(&there, "n", 0.0).unwrap_err());
    mismatch(Mutex::<i64>::named(&here, "n", 0).unwrap_err());
    mismatch(Mutex::<[u8; 8]>::renewed(&there, "n", [0; 8]).unwrap_err());
    mismatch(RwLock::<u64>::named(&there, "n", 0).unwrap_err());
    assert_eq!(
        *Mutex::<u64>::named(&there, "n", 0).unwrap().lock().unwrap(),
        7
    );
    let wrong = |error: LockError| assert!(matches!(error, LockError::WrongType { .. }), "{error}");
    wrong(Mutex::<f64>::attach(&there, named.addr()).unwrap_err());
    let account = RwLock::create(&there, EMPTY).unwrap();
    wrong(RwLock::<Other>::attach(&here, account.addr()).unwrap_err());
    wrong(RwLock::<[u64; 4]>::attach(&there, account.addr()).unwrap_err());
    let no_lock = |error: LockError| assert!(matches!(error, LockError::NoLock { .. }), "{error}");
    no_lock(RwLock::<u64>::attach(&here, account.addr()).unwrap_err());
    no_lock(Mutex::<Account>::attach(&here, account.addr()).unwrap_err());
    let same = RwLock::<Account>::attach(&here, account.addr()).unwrap();
    assert_eq!(*same.read().unwrap(), EMPTY);
}
