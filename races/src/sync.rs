//! The checker's atomics under the names that the shipped files import.
//!
//! The checker takes an access that is sequentially consistent for one that acquires and releases,
//! which is less than it is, but knows fences. So such a load has a fence before it here. That is
//! one of the ways in which processors are told to keep these accesses in one order; it cannot show
//! that a store or an exchange has to be one of them as well. And such a store is an exchange here:
//! of a store beside an exchange of another thread the checker does not always know which came
//! last.
//!
//! To know which orders differ, the checker remembers of each atomic only who came last. A thread
//! that looks and then exchanges hides so who looked before it, and the orders in which that one
//! comes between are left out. So every access here is preceded by a [`Turn`], in which any two
//! accesses of one atomic meet.

use crate::steps;
pub use loom::hint::spin_loop;
pub use loom::sync::atomic::fence;
pub use loom::sync::{Mutex, MutexGuard};
pub use loom::thread::yield_now;
pub use std::sync::atomic::Ordering;

/// Both halves are whole fences here: what the kernel puts into running threads is no order of
/// steps that the checker knows. So it cannot show that the cheap half suffices.
pub fn light_fence() {
    fence(Ordering::SeqCst);
}

/// See [`light_fence`].
pub fn heavy_fence() -> bool {
    fence(Ordering::SeqCst);
    true
}

/// A point at which the checker may go on with another thread, and which has no effect on what a
/// thread sees: a condition that nobody waits for.
#[derive(Debug)]
struct Turn(loom::sync::Condvar);

impl Turn {
    fn new() -> Self {
        Turn(loom::sync::Condvar::new())
    }

    fn come(&self) {
        self.0.notify_one();
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        /// See the module.
        #[derive(Debug)]
        pub struct $name {
            inner: loom::sync::atomic::$name,
            turn: Turn,
            number: usize,
        }

        impl Default for $name {
            fn default() -> Self {
                $name::new(0)
            }
        }

        #[allow(missing_docs)]
        impl $name {
            pub fn new(value: $value) -> Self {
                $name {
                    inner: loom::sync::atomic::$name::new(value),
                    turn: Turn::new(),
                    number: steps::object(),
                }
            }

            fn access(&self, what: &'static str, access: impl FnOnce() -> $value) -> $value {
                self.turn.come();
                let value = access();
                steps::note(self.number, what, value as u64);
                value
            }

            pub fn load(&self, order: Ordering) -> $value {
                self.access("loads", || {
                    if order == Ordering::SeqCst {
                        fence(order);
                    }
                    self.inner.load(order)
                })
            }

            pub fn store(&self, value: $value, order: Ordering) {
                self.access("stores", || {
                    match order {
                        Ordering::SeqCst => {
                            self.inner.swap(value, Ordering::Release);
                        }
                        _ => self.inner.store(value, order),
                    }
                    value
                });
            }

            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.access("swaps", || self.inner.swap(value, order))
            }

            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.access("ors", || self.inner.fetch_or(value, order))
            }

            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.access("adds to", || self.inner.fetch_add(value, order))
            }

            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.access("takes from", || self.inner.fetch_sub(value, order))
            }

            pub fn fetch_xor(&self, value: $value, order: Ordering) -> $value {
                self.access("xors", || self.inner.fetch_xor(value, order))
            }

            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                order: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let mut result = Err(current);
                self.access("compares", || {
                    result = self.inner.compare_exchange(current, new, order, failure);
                    result.unwrap_or_else(|seen| seen)
                });
                result
            }

            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                order: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, order, failure)
            }

            pub fn fetch_update(
                &self,
                order: Ordering,
                fetch: Ordering,
                next: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                self.turn.come();
                self.inner.fetch_update(order, fetch, next)
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
