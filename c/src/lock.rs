//! Named locks.

use crate::handle::{Handle, give, name, of, opaque, take, tell};
use crate::rack::rm_node;
use crate::status::{Done, Failed, call, rm_status};
use rackmem::Wait;
use rackmem::locked::{Condvar, Content, Guard, Mutex, Writing};
use std::ffi::c_char;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

type Held = Guard<'static, u64, Writing>;

/// A lock, and who is in it through this handle.
pub struct Entrance {
    /// Ends before the lock does.
    held: std::sync::Mutex<Option<Held>>,
    lock: Arc<Mutex<u64>>,
}

impl Entrance {
    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What C has of a rack's lock that is held now.
    fn keep(&self, held: Guard<'_, u64, Writing>) -> rm_status {
        let status = status_of(held.content());
        // SAFETY: the guard borrows the lock, which is on the heap and ends after it (the order of
        // `Entrance`'s fields).
        let held: Held = unsafe { std::mem::transmute::<Guard<'_, u64, Writing>, Held>(held) };
        *self.held() = Some(held);
        status
    }

    /// Waits for a condition without it, and has it again then.
    pub fn wait(&self, condition: &Condvar, at_most: Wait) -> Done {
        let held = self.held().take().ok_or_else(not_held)?;
        match condition.wait_within(held, at_most)? {
            (held, true) => Ok(self.keep(held)),
            (held, false) => match self.keep(held) {
                rm_status::RM_OK => Ok(rm_status::RM_NOT_NOW),
                died => Ok(died),
            },
        }
    }

    /// The lock, for what takes it by itself.
    pub fn lock(&self) -> &Arc<Mutex<u64>> {
        &self.lock
    }
}

/// A lock is let go that is not held.
pub fn not_held() -> Failed {
    Failed::argument("the lock is not held by this handle")
}

/// How long C wants to wait.
pub fn wait_of(milliseconds: i64) -> Wait {
    match milliseconds {
        ..0 => Wait::Forever,
        0 => Wait::Never,
        _ => Wait::For(Duration::from_millis(milliseconds.unsigned_abs())),
    }
}

/// What there is to tell of a lock that is held.
pub fn status_of(content: Content) -> rm_status {
    match content {
        Content::Current => rm_status::RM_OK,
        Content::OwnerDied | Content::Lost => rm_status::RM_OWNER_DIED,
    }
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
        let Some(held) = entrance.lock.lock_within(wait_of(milliseconds))? else {
            return Ok(rm_status::RM_NOT_NOW);
        };
        // SAFETY: the caller's.
        unsafe { tell(token, held.token()) };
        Ok(entrance.keep(held))
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
        let held = entrance()?.held().take();
        drop(held.ok_or_else(not_held)?);
        Ok(rm_status::RM_OK)
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
