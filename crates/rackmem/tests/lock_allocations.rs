//! A lock that is here is taken again without any memory being asked for.

use rackmem::Rack;
use rackmem::locked::{Mutex, RwLock};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what each thread asks for.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is handed on to the system's allocator; the counter asks for no memory itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.with(|asked| asked.set(asked.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise; `at` is of the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_lock_that_is_here_asks_for_no_memory() {
    let rack = Rack::local(2).unwrap();
    let (home, node) = (rack.node(0), rack.node(1));
    let made: Mutex<[u64; 9]> = Mutex::create(&home, [0; 9]).unwrap();
    let mutex: Mutex<[u64; 9]> = Mutex::attach(&node, made.addr()).unwrap();
    let made: RwLock<u64> = RwLock::create(&home, 1).unwrap();
    let lock: RwLock<u64> = RwLock::attach(&node, made.addr()).unwrap();
    let asked = || ASKED.with(Cell::get);
    let before = asked();
    drop((mutex.lock().unwrap(), lock.read().unwrap()));
    assert!(asked() > before, "they come from the other node");
    let before = asked();
    for _ in 0..100 {
        mutex.lock().unwrap().update(|value| value.map(|n| n + 1));
        assert_eq!(lock.read().unwrap().get(), 1);
    }
    assert_eq!(asked(), before);
}
