//! Named conditions.

use crate::handle::{Handle, give, name, of, opaque, take, tell};
use crate::lock::{rm_lock, wait_of};
use crate::rack::rm_node;
use crate::status::{Failed, call, rm_status};
use rackmem::locked::Condvar;
use std::ffi::c_char;

/// A condition that threads of all nodes wait for.
pub struct rm_condition(Handle<Condvar>);
opaque!(rm_condition, Condvar);

/// The condition of this name, made if there is none.
///
/// # Safety
/// `node` is a handle, `condition` a string that ends with a zero, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_condition_open(
    node: *const rm_node,
    condition: *const c_char,
    out: *mut *mut rm_condition,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, condition) = (of(node)?, name(condition)?);
        give(out, || Ok(Condvar::named(node, condition)?))
    })
}

/// Lets a lock go that is held, waits to be notified, at most so many milliseconds or RM_FOREVER,
/// and holds the lock again. RM_NOT_NOW: the time was over. RM_OWNER_DIED: a node that had the lock
/// died inside meanwhile. After a failure the lock is not held. A thread may wake without being
/// notified: look again at what it waits for. At most 255 threads of the rack wait for one
/// condition.
///
/// # Safety
/// Both are handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_condition_wait(
    condition: *const rm_condition,
    lock: *const rm_lock,
    milliseconds: i64,
) -> rm_status {
    // SAFETY: the caller's.
    let both = || unsafe { Ok::<_, Failed>((of(condition)?, of(lock)?)) };
    call(|| {
        let (condition, entrance) = both()?;
        entrance.wait(condition, wait_of(milliseconds))
    })
}

/// Wakes the thread that has waited longest. Whoever changes what it waits for holds the lock.
/// `woken`, unless NULL, says whether one waited.
///
/// # Safety
/// `condition` is a handle; `woken` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_condition_notify_one(
    condition: *const rm_condition,
    woken: *mut bool,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        tell(woken, of(condition)?.notify_one()?);
        Ok(rm_status::RM_OK)
    })
}

/// Wakes all who wait.
///
/// # Safety
/// `condition` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_condition_notify_all(condition: *const rm_condition) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        of(condition)?.notify_all()?;
        Ok(rm_status::RM_OK)
    })
}

/// Ends the handle, not the condition.
///
/// # Safety
/// `condition` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_condition_free(condition: *mut rm_condition) {
    // SAFETY: the caller's.
    drop(unsafe { take(condition) });
}
