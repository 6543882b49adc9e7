//! `pthread_rwlock_t` in files of the rack: a lock of the rack, entered to read or to write.

use super::objects::thread;
use super::{Found, TRY, is_ours, ours, until};
use crate::answer::{Done, Errno, number};
use crate::inside::Inside;
use crate::next::next;
use crate::settings;
use libc::{c_int, clockid_t, pthread_rwlock_t, pthread_rwlockattr_t, timespec};
use rackmem::Wait;
use rackmem::locked::{Reading, Writing};
use std::sync::atomic::Ordering::Relaxed;

type One = unsafe extern "C" fn(*mut pthread_rwlock_t) -> c_int;
type Timed = unsafe extern "C" fn(*mut pthread_rwlock_t, *const timespec) -> c_int;
type Clocked = unsafe extern "C" fn(*mut pthread_rwlock_t, clockid_t, *const timespec) -> c_int;

fn read(found: &Found, wait: Wait, busy: c_int) -> Done {
    let _inside = Inside::enter();
    let (locks, object) = (&found.file.locks, &found.object);
    if object.thread.load(Relaxed) == thread() {
        return Err(Errno(libc::EDEADLK));
    }
    let mut entered = locks.enter::<Reading>(object.index, wait)?;
    if entered.is_none() && wait == Wait::Never {
        entered = locks.enter::<Reading>(object.index, TRY)?;
    }
    object.held().readers.push(entered.ok_or(Errno(busy))?);
    Ok(())
}

fn write(found: &Found, wait: Wait, busy: c_int) -> Done {
    let _inside = Inside::enter();
    let (locks, object) = (&found.file.locks, &found.object);
    if object.thread.load(Relaxed) == thread() {
        return Err(Errno(libc::EDEADLK));
    }
    let mut entered = locks.enter::<Writing>(object.index, wait)?;
    if entered.is_none() && wait == Wait::Never {
        entered = locks.enter::<Writing>(object.index, TRY)?;
    }
    object.held().writer = Some(entered.ok_or(Errno(busy))?);
    object.thread.store(thread(), Relaxed);
    Ok(())
}

fn release(found: &Found) -> Done {
    let _inside = Inside::enter();
    let (locks, object) = (&found.file.locks, &found.object);
    let mut held = object.held();
    if let Some(entered) = held.readers.pop() {
        locks.leave(entered);
        return Ok(());
    }
    if settings::get().keep {
        found.file.keep()?;
    }
    let entered = held.writer.take().ok_or(Errno(libc::EPERM))?;
    object.thread.store(0, Relaxed);
    drop(held);
    locks.leave(entered);
    Ok(())
}

/// Functions of one argument.
macro_rules! ways {
    ($($name:ident: $what:expr;)*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: *mut pthread_rwlock_t) -> c_int {
            if !is_ours(lock) {
                // SAFETY: the caller's.
                return unsafe { next!($name: One)(lock) };
            }
            number(|| $what(&ours(lock)?))
        }
    )*};
}
ways! {
    pthread_rwlock_rdlock: |found: &Found| read(found, Wait::Forever, libc::EBUSY);
    pthread_rwlock_wrlock: |found: &Found| write(found, Wait::Forever, libc::EBUSY);
    pthread_rwlock_tryrdlock: |found: &Found| read(found, Wait::Never, libc::EBUSY);
    pthread_rwlock_trywrlock: |found: &Found| write(found, Wait::Never, libc::EBUSY);
    pthread_rwlock_unlock: release;
    pthread_rwlock_destroy: |_: &Found| Ok(());
}

/// Functions that wait until a time, by the clock of all or by one that is named.
macro_rules! timed {
    ($($name:ident, $clocked:ident: $what:ident;)*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: *mut pthread_rwlock_t, time: *const timespec) -> c_int {
            if !is_ours(lock) {
                // SAFETY: the caller's.
                return unsafe { next!($name: Timed)(lock, time) };
            }
            number(|| $what(&ours(lock)?, until(libc::CLOCK_REALTIME, time)?, libc::ETIMEDOUT))
        }

        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $clocked(
            lock: *mut pthread_rwlock_t,
            clock: clockid_t,
            time: *const timespec,
        ) -> c_int {
            if !is_ours(lock) {
                // SAFETY: the caller's.
                return unsafe { next!($clocked: Clocked)(lock, clock, time) };
            }
            number(|| $what(&ours(lock)?, until(clock, time)?, libc::ETIMEDOUT))
        }
    )*};
}
timed! {
    pthread_rwlock_timedrdlock, pthread_rwlock_clockrdlock: read;
    pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock: write;
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_init(
    lock: *mut pthread_rwlock_t,
    attributes: *const pthread_rwlockattr_t,
) -> c_int {
    if !is_ours(lock) {
        type Init =
            unsafe extern "C" fn(*mut pthread_rwlock_t, *const pthread_rwlockattr_t) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(pthread_rwlock_init: Init)(lock, attributes) };
    }
    number(|| ours(lock).map(drop))
}
