//! Threads that wait for what others bring about, wherever they are.

use crate::{FABRICS, MODES, NODES, ROUGH, check_switch, rack, until};
use rackmem::locked::{Condvar, MAX_WAITERS, Mutex};
use rackmem::{Fabric, LockError, Node, Rack};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// A queue of so many places, and what has gone through it: put, taken, sum of what was taken.
type Pipe = [u64; 3];
const PLACES: u64 = 4;

struct End {
    pipe: Mutex<Pipe>,
    filled: Condvar,
    emptied: Condvar,
}

impl End {
    fn at(node: &Node, addrs: [u64; 3]) -> End {
        End {
            pipe: Mutex::attach(node, addrs[0]).unwrap(),
            filled: Condvar::attach(node, addrs[1]).unwrap(),
            emptied: Condvar::attach(node, addrs[2]).unwrap(),
        }
    }

    fn put(&self) {
        let held = self.pipe.lock().unwrap();
        let full = |[put, taken, _]: Pipe| put - taken == PLACES;
        let mut held = self.emptied.wait_while(held, full).unwrap();
        held.update(|[put, taken, sum]| [put + 1, taken, sum]);
        drop(held);
        self.filled.notify_one().unwrap();
    }

    fn take(&self) {
        let held = self.pipe.lock().unwrap();
        let empty = |[put, taken, _]: Pipe| put == taken;
        let mut held = self.filled.wait_while(held, empty).unwrap();
        held.update(|[put, taken, sum]| [put, taken + 1, sum + taken]);
        drop(held);
        self.emptied.notify_one().unwrap();
    }
}

/// With one notification lost, somebody would wait without end.
fn through_a_pipe(rack: &Rack, each: usize) {
    let addrs = [
        Mutex::<Pipe>::create(&rack.node(0), [0; 3]).unwrap().addr(),
        Condvar::create(&rack.node(1)).unwrap().addr(),
        Condvar::create(&rack.node(2)).unwrap().addr(),
    ];
    std::thread::scope(|scope| {
        for id in 0..NODES {
            let [one, other] = [(); 2].map(|()| End::at(&rack.node(id), addrs));
            scope.spawn(move || (0..each).for_each(|_| one.put()));
            scope.spawn(move || (0..each).for_each(|_| other.take()));
        }
    });
    let all = (NODES * each) as u64;
    let end = End::at(&rack.node(0), addrs);
    let held = end.pipe.lock().unwrap();
    assert_eq!(held.get(), [all, all, all * (all - 1) / 2]);
    assert!(!end.filled.notify_one().unwrap());
}

#[test]
fn nothing_is_notified_in_vain() {
    for mode in MODES {
        for fabric in FABRICS {
            let rack = rack(fabric, mode, None);
            through_a_pipe(&rack, if fabric == Fabric::Inline { 500 } else { 100 });
            check_switch(&rack);
        }
        for fabric in [Fabric::Udp, Fabric::Shm] {
            through_a_pipe(&rack(fabric, mode, Some(ROUGH)), 30);
        }
    }
}

#[test]
fn all_that_wait_are_woken_once_and_in_their_turn() {
    let rack = Rack::local(NODES).unwrap();
    let made: Mutex<u64> = Mutex::create(&rack.node(0), 0).unwrap();
    let condition = Condvar::create(&rack.node(0)).unwrap();
    let (waiting, woken) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let node = rack.node(thread % NODES);
            let (waiting, woken) = (&waiting, &woken);
            let (mutex, condition) = (made.addr(), condition.addr());
            scope.spawn(move || {
                let mutex: Mutex<u64> = Mutex::attach(&node, mutex).unwrap();
                let condition = Condvar::attach(&node, condition).unwrap();
                let held = mutex.lock().unwrap();
                waiting.fetch_add(1, SeqCst);
                drop(condition.wait(held).unwrap());
                woken.fetch_add(1, SeqCst);
            });
        }
        until(|| waiting.load(SeqCst) == 6);
        // Who holds the mutex knows that all who have said so wait.
        drop(made.lock().unwrap());
        assert!(condition.notify_one().unwrap());
        until(|| woken.load(SeqCst) == 1);
        // Others have looked, and sleep on.
        assert_eq!(woken.load(SeqCst), 1);
        assert_eq!(condition.notify_all().unwrap(), 5);
        until(|| woken.load(SeqCst) == 6);
    });
    assert_eq!(condition.notify_all().unwrap(), 0);
}

#[test]
fn who_is_not_notified_in_time_waits_no_more() {
    let rack = Rack::local(2).unwrap();
    let made: Mutex<u64> = Mutex::create(&rack.node(0), 0).unwrap();
    let condition = Condvar::create(&rack.node(1)).unwrap();
    let held = made.lock().unwrap();
    let (held, notified) = condition
        .wait_within(held, Duration::from_millis(1))
        .unwrap();
    assert!(!notified);
    drop(held);
    assert!(!condition.notify_one().unwrap());
}

#[test]
fn more_than_there_is_room_for_are_told() {
    let rack = Rack::local(1).unwrap();
    let made: Mutex<u64> = Mutex::create(&rack.node(0), 0).unwrap();
    let condition = Condvar::create(&rack.node(0)).unwrap();
    let waiting = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..MAX_WAITERS {
            scope.spawn(|| {
                let held = made.lock().unwrap();
                waiting.fetch_add(1, SeqCst);
                drop(condition.wait(held).unwrap());
            });
        }
        until(|| waiting.load(SeqCst) == MAX_WAITERS);
        let held = made.lock().unwrap();
        let refused = condition.wait(held).err();
        assert!(matches!(
            refused,
            Some(LockError::TooManyWaiting { most: MAX_WAITERS })
        ));
        assert_eq!(condition.notify_all().unwrap(), MAX_WAITERS);
    });
}
