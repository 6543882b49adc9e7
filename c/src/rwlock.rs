//! Named locks for many readers or one writer.

use crate::handle::{Handle, give, name, of, opaque, take, tell};
use crate::lock::{not_held, status_of, wait_of};
use crate::rack::rm_node;
use crate::status::{call, rm_status};
use rackmem::locked::{Guard, Reading, RwLock, Writing};
use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError};

/// Who is in by one handle, as the lock allows it: readers, or one writer.
#[derive(Default)]
struct Inside {
    readers: Vec<Guard<'static, u64, Reading>>,
    writer: Option<Guard<'static, u64, Writing>>,
}

/// A lock, and who is in it through this handle.
pub struct Door {
    /// Ends before the lock does.
    inside: Mutex<Inside>,
    lock: Arc<RwLock<u64>>,
}

impl Door {
    fn inside<R>(&self, f: impl FnOnce(&mut Inside) -> R) -> R {
        f(&mut self.inside.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A lock that many threads of all nodes have for reading, or one for writing.
pub struct rm_rwlock(Handle<Door>);
opaque!(rm_rwlock, Door);

/// The lock of this name, made if there is none.
///
/// # Safety
/// `node` is a handle, `lock` a string that ends with a zero, `out` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_rwlock_open(
    node: *const rm_node,
    lock: *const c_char,
    out: *mut *mut rm_rwlock,
) -> rm_status {
    // SAFETY: the caller's.
    call(|| unsafe {
        let (node, lock) = (of(node)?, name(lock)?);
        give(out, || {
            let lock = Arc::new(RwLock::named(node, lock, 0u64)?);
            let inside = Mutex::default();
            Ok(Door { inside, lock })
        })
    })
}

/// Waits to read beside other readers, at most so many milliseconds, or RM_FOREVER. Several threads
/// may, by one handle. RM_NOT_NOW and RM_OWNER_DIED as of rm_lock_acquire.
///
/// # Safety
/// `lock` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_rwlock_read(lock: *const rm_rwlock, milliseconds: i64) -> rm_status {
    // SAFETY: the caller's.
    let door = || unsafe { of(lock) };
    call(|| {
        let door = door()?;
        let Some(held) = door.lock.read_within(wait_of(milliseconds))? else {
            return Ok(rm_status::RM_NOT_NOW);
        };
        let status = status_of(held.content());
        // SAFETY: the guard borrows the lock, which is on the heap and ends after it (the order of
        // `Door`'s fields).
        let held = unsafe {
            std::mem::transmute::<Guard<'_, u64, Reading>, Guard<'static, u64, Reading>>(held)
        };
        door.inside(|inside| inside.readers.push(held));
        Ok(status)
    })
}

/// Waits to be alone in it, at most so many milliseconds, or RM_FOREVER. RM_NOT_NOW, RM_OWNER_DIED
/// and `token` as of rm_lock_acquire.
///
/// # Safety
/// `lock` is a handle; `token` is NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_rwlock_write(
    lock: *const rm_rwlock,
    milliseconds: i64,
    token: *mut u64,
) -> rm_status {
    // SAFETY: the caller's.
    let door = || unsafe { of(lock) };
    call(|| {
        let door = door()?;
        let Some(held) = door.lock.write_within(wait_of(milliseconds))? else {
            return Ok(rm_status::RM_NOT_NOW);
        };
        // SAFETY: the caller's.
        unsafe { tell(token, held.token()) };
        let status = status_of(held.content());
        // SAFETY: as in `rm_rwlock_read`.
        let held = unsafe {
            std::mem::transmute::<Guard<'_, u64, Writing>, Guard<'static, u64, Writing>>(held)
        };
        door.inside(|inside| inside.writer = Some(held));
        Ok(status)
    })
}

/// Ends what this handle has begun: the writing, or one of the readings. Any thread of the process
/// may.
///
/// # Safety
/// `lock` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_rwlock_release(lock: *const rm_rwlock) -> rm_status {
    // SAFETY: the caller's.
    let door = || unsafe { of(lock) };
    call(|| {
        let (writer, reader) = door()?.inside(|inside| match inside.writer.take() {
            Some(writer) => (Some(writer), None),
            None => (None, inside.readers.pop()),
        });
        match writer.is_some() || reader.is_some() {
            true => Ok(rm_status::RM_OK),
            false => Err(not_held()),
        }
    })
}

/// Ends the handle; what is held by it is released.
///
/// # Safety
/// `lock` is NULL or of this library, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_rwlock_free(lock: *mut rm_rwlock) {
    // SAFETY: the caller's.
    drop(unsafe { take(lock) });
}
