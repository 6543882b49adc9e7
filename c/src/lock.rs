//! Named locks.

use crate::handle::{Handle, give, name, of, opaque, take, tell};
use crate::rack::rm_node;
use crate::status::{Failed, call, rm_status};
use rackmem::Wait;
use rackmem::locked::{Content, Guard, Mutex, Writing};
use std::ffi::c_char;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

type Held = Guard<'static, u64, Writing>;

/// A lock, and who is in it through this handle.
pub struct Entrance {
    /// Ends before the lock does.
    held: std::sync::Mutex<Option<Held>>,
    lock: Arc<Mutex<u64>>,
}

/// A lock that one thread of all nodes has at a time.
pub struct rm_lock(Handle<Entrance>);
opaque!(rm_lock, Entrance);

/// rm_lock_acquire waits as long as it takes.
pub const RM_FOREVER: i64 = -1;

/// The lock of this name, made if there is none.
///
/// # Safety
/// `node` is a handle, `lock` a string that ends with a zero, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_lock_open(
    node: *const rm_node,
    lock: *const c_char,
    out: *mut *mut rm_lock,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, lock) = (of(node)?, name(lock)?);
        give(out, || {
            Ok(Entrance {
                held: std::sync::Mutex::new(None),
                lock: Arc::new(Mutex::named(node, lock, 0u64)?),
            })
        })
    })
}

/// Waits for the lock at most so many milliseconds, or RM_FOREVER. RM_NOT_NOW: it is not free.
/// RM_OWNER_DIED: it is held, and a node that had it died inside. `token`, unless NULL, gets a
/// number that rises with each holder of another node: who has a lower one has lost the lock.
///
/// # Safety
/// `lock` is a handle; `token` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_lock_acquire(
    lock: *const rm_lock,
    milliseconds: i64,
    token: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    let entrance = || unsafe { of(lock) };
    call(|| {
        let entrance = entrance()?;
        let wait = match milliseconds {
            ..0 => Wait::Forever,
            0 => Wait::Never,
            _ => Wait::For(Duration::from_millis(milliseconds.unsigned_abs())),
        };
        let Some(held) = entrance.lock.lock_within(wait)? else {
            return Ok(rm_status::RM_NOT_NOW);
        };
        // SAFETY: the caller's.
        unsafe { tell(token, held.token()) };
        let status = match held.content() {
            Content::Current => rm_status::RM_OK,
            Content::OwnerDied | Content::Lost => rm_status::RM_OWNER_DIED,
        };
        // SAFETY: the guard borrows the lock, which is on the heap and ends after it (the order of
        // `Entrance`'s fields).
        let held: Held = unsafe { std::mem::transmute::<Guard<'_, u64, Writing>, Held>(held) };
        let mut inside = entrance.held.lock().unwrap_or_else(PoisonError::into_inner);
        *inside = Some(held);
        Ok(status)
    })
}

/// Lets the next one in. Any thread may, of the process that has it by this handle.
///
/// # Safety
/// `lock` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_lock_release(lock: *const rm_lock) -> rm_status {
    // SAFETY: the caller's.
    let entrance = || unsafe { of(lock) };
    call(|| {
        let held = entrance()?.held.lock();
        let held = held.unwrap_or_else(PoisonError::into_inner).take();
        match held {
            Some(held) => {
                drop(held);
                Ok(rm_status::RM_OK)
            }
            None => Err(Failed::argument("the lock is not held by this handle")),
        }
    })
}

/// Ends the handle; a lock that is held by it is released.
///
/// # Safety
/// `lock` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_lock_free(lock: *mut rm_lock) {
    // SAFETY: the caller's.
    drop(unsafe { take(lock) });
}
