//! Whether a thread is in this library, or in the rack's: then the functions that it calls are the
//! system's.

use std::cell::Cell;

thread_local! {
    // Without a destructor: it is there as long as the thread is, and in handlers of signals.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// As long as it lives, this thread is.
pub struct Inside(());

impl Inside {
    pub fn enter() -> Inside {
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        Inside(())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

pub fn is_inside() -> bool {
    DEPTH.with(Cell::get) > 0
}
