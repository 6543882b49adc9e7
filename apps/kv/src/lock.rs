//! Mutexes whose holders leave what they guard whole, also where they panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Holds it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
