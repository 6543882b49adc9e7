//! `pthread_cond_t` in files of the rack: a number that each signal changes. Who waits sleeps until
//! it is another one, so a signal wakes all who wait, and each looks again, as it has to anyway.

use super::mutex::{release_whole, take_again};
use super::{Found, as_done, is_ours, ours, until};
use crate::answer::{Done, Errno, number, refuse};
use crate::inside::Inside;
use crate::next::next;
use libc::{c_int, clockid_t, pthread_cond_t, pthread_condattr_t, pthread_mutex_t, timespec};
use rackmem::Wait;
use std::time::{Duration, Instant};

/// Where in the page the number is, and the clock.
const NUMBER: usize = 8;
const CLOCK: usize = 16;
/// A node that was to signal may have died with what it has changed: who waits looks again.
const PATIENCE: Duration = Duration::from_secs(1);

type One = unsafe extern "C" fn(*mut pthread_cond_t) -> c_int;
type Wait2 = unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t) -> c_int;
type Wait3 =
    unsafe extern "C" fn(*mut pthread_cond_t, *mut pthread_mutex_t, *const timespec) -> c_int;
type Wait4 = unsafe extern "C" fn(
    *mut pthread_cond_t,
    *mut pthread_mutex_t,
    clockid_t,
    *const timespec,
) -> c_int;

/// A mutex that is let go for a wait: the rack's, or the process' own.
enum Let {
    Ours(Found, u32),
    Own(*mut pthread_mutex_t),
}

impl Let {
    fn go(mutex: *mut pthread_mutex_t) -> Done<Let> {
        if is_ours(mutex) {
            let found = ours(mutex)?;
            let again = release_whole(&found)?;
            return Ok(Let::Ours(found, again));
        }
        // SAFETY: the caller of the wait has it locked.
        as_done(unsafe { super::mutex::pthread_mutex_unlock(mutex) })?;
        Ok(Let::Own(mutex))
    }

    fn back(self) -> Done {
        match self {
            Let::Ours(found, again) => take_again(&found, again),
            // SAFETY: the mutex of `go`.
            Let::Own(mutex) => as_done(unsafe { super::mutex::pthread_mutex_lock(mutex) }),
        }
    }
}

fn wait(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, wait: Wait) -> Done {
    let condition = ours(condition)?;
    let _inside = Inside::enter();
    let (file, object) = (condition.file, &condition.object);
    let was = file.await_object(object, Wait::Forever, |page| Some(page.u64(NUMBER)))?;
    let was = was.unwrap_or_default();
    let mutex = Let::go(mutex)?;
    let end = match wait {
        Wait::For(time) => Instant::now().checked_add(time),
        _ => None,
    };
    let changed = loop {
        let left = end.map_or(PATIENCE, |end| {
            end.saturating_duration_since(Instant::now())
        });
        let look = file.await_object(object, left.min(PATIENCE), |page| {
            (page.u64(NUMBER) != was).then_some(())
        });
        match look {
            Ok(None) if left > PATIENCE || (end.is_none()) => {}
            other => break other,
        }
    };
    mutex.back()?;
    match changed? {
        Some(()) => Ok(()),
        None => Err(Errno(libc::ETIMEDOUT)),
    }
}

fn signal(condition: *mut pthread_cond_t) -> Done {
    let found = ours(condition)?;
    let _inside = Inside::enter();
    found.file.change_object(&found.object, |view| {
        let number = view.u64(NUMBER).wrapping_add(1);
        view.set_u64(NUMBER, number);
    })
}

/// Only this library can let a mutex of the rack go.
fn own_condition(mutex: *mut pthread_mutex_t) -> Option<c_int> {
    is_ours(mutex).then(|| {
        number(|| {
            refuse(
                libc::EINVAL,
                "a mutex in a file of the rack, and its condition variable in memory of the \
                 process: put both into the file",
            )
        })
    })
}

/// The clock that was chosen when it was made.
fn clock(condition: *mut pthread_cond_t) -> Done<clockid_t> {
    let found = ours(condition)?;
    let _inside = Inside::enter();
    let look = |page: &rackmem::Window<'_>| Some(page.u64(CLOCK));
    let clock = found
        .file
        .await_object(&found.object, Wait::Forever, look)?;
    Ok(clock.unwrap_or_default() as clockid_t)
}

/// # Safety
/// That of the C library's, as of all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    if !is_ours(condition) {
        let refused = own_condition(mutex);
        // SAFETY: the caller's.
        return refused
            .unwrap_or_else(|| unsafe { next!(pthread_cond_wait: Wait2)(condition, mutex) });
    }
    number(|| wait(condition, mutex, Wait::Forever))
}

/// # Safety
/// See [`pthread_cond_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    if !is_ours(condition) {
        let refused = own_condition(mutex);
        return refused.unwrap_or_else(|| {
            // SAFETY: the caller's.
            unsafe { next!(pthread_cond_timedwait: Wait3)(condition, mutex, time) }
        });
    }
    number(|| wait(condition, mutex, until(clock(condition)?, time)?))
}

/// # Safety
/// See [`pthread_cond_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_clockwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    if !is_ours(condition) {
        let refused = own_condition(mutex);
        return refused.unwrap_or_else(|| {
            // SAFETY: the caller's.
            unsafe { next!(pthread_cond_clockwait: Wait4)(condition, mutex, clock, time) }
        });
    }
    number(|| wait(condition, mutex, until(clock, time)?))
}

/// # Safety
/// See [`pthread_cond_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(condition: *mut pthread_cond_t) -> c_int {
    if !is_ours(condition) {
        // SAFETY: the caller's.
        return unsafe { next!(pthread_cond_signal: One)(condition) };
    }
    number(|| signal(condition))
}

/// # Safety
/// See [`pthread_cond_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(condition: *mut pthread_cond_t) -> c_int {
    if !is_ours(condition) {
        // SAFETY: the caller's.
        return unsafe { next!(pthread_cond_broadcast: One)(condition) };
    }
    number(|| signal(condition))
}

/// # Safety
/// See [`pthread_cond_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_init(
    condition: *mut pthread_cond_t,
    attributes: *const pthread_condattr_t,
) -> c_int {
    if !is_ours(condition) {
        type Init = unsafe extern "C" fn(*mut pthread_cond_t, *const pthread_condattr_t) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(pthread_cond_init: Init)(condition, attributes) };
    }
    number(|| {
        let found = ours(condition)?;
        let _inside = Inside::enter();
        let mut clock = libc::CLOCK_REALTIME;
        if !attributes.is_null() {
            // SAFETY: attributes that the caller has initialized.
            unsafe { libc::pthread_condattr_getclock(attributes, &mut clock) };
        }
        // The number stays: who waits for what was here before sees that it is over.
        found.file.change_object(&found.object, |view| {
            let number = view.u64(NUMBER).wrapping_add(1);
            view.set_u64(NUMBER, number);
            view.set_u64(CLOCK, clock as u64);
        })
    })
}

/// # Safety
/// See [`pthread_cond_wait`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_destroy(condition: *mut pthread_cond_t) -> c_int {
    match is_ours(condition) {
        true => 0,
        // SAFETY: the caller's.
        false => unsafe { next!(pthread_cond_destroy: One)(condition) },
    }
}
