//! The one answer to a poisoned lock.

use std::sync::LockResult;

/// What a lock protects is whole between statements in these packages: where a thread has panicked
/// with a guard in its hands, the others go on.
///
/// ```
/// use rackmem_fabric::Whole;
/// use std::sync::{Arc, Mutex};
///
/// let count = Arc::new(Mutex::new(7));
/// let other = Arc::clone(&count);
/// let panicked = std::thread::spawn(move || {
///     let _held = other.lock().whole();
///     panic!("with the guard");
/// });
/// assert!(panicked.join().is_err() && count.is_poisoned());
/// assert_eq!(*count.lock().whole(), 7);
/// ```
pub trait Whole {
    /// The guard, or what else a lock has given.
    type Held;

    /// Takes it, poisoned or not.
    fn whole(self) -> Self::Held;
}

impl<T> Whole for LockResult<T> {
    type Held = T;

    #[inline]
    fn whole(self) -> T {
        self.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
