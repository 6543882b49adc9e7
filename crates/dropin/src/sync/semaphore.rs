//! `sem_t` in files of the rack: a number in the page of a lock of the rack. Those with a name are
//! files of their own.

use super::{Found, is_ours, ours, until};
use crate::answer::{Done, Errno, answer};
use crate::calls::{map, open};
use crate::files::{self, How};
use crate::inside::Inside;
use crate::next::next;
use crate::ranges;
use libc::{c_char, c_int, c_uint, clockid_t, mode_t, sem_t, timespec};
use rackmem::Wait;
use std::time::Instant;

/// Where in the page the number is, and that it has been given one.
const VALUE: usize = 8;
const MADE: usize = 16;
/// As the C library has it.
const MOST: u64 = i32::MAX as u64;

type One = unsafe extern "C" fn(*mut sem_t) -> c_int;

fn down(found: &Found, wait: Wait, busy: c_int) -> Done {
    let _inside = Inside::enter();
    let (file, object) = (found.file, &found.object);
    let take = || {
        file.change_object(object, |view| {
            let value = view.u64(VALUE);
            value
                .checked_sub(1)
                .is_some_and(|less| view.set_u64(VALUE, less))
        })
    };
    let began = Instant::now();
    loop {
        if take()? {
            return Ok(());
        }
        let left = match wait {
            Wait::For(time) => Wait::For(time.saturating_sub(began.elapsed())),
            Wait::Never => return Err(Errno(busy)),
            other => other,
        };
        let some = file.await_object(object, left, |page| (page.u64(VALUE) > 0).then_some(()))?;
        some.ok_or(Errno(busy))?;
    }
}

fn up(found: &Found) -> Done {
    let _inside = Inside::enter();
    let posted = found.file.change_object(&found.object, |view| {
        let value = view.u64(VALUE);
        value < MOST && view.set_u64(VALUE, value + 1)
    })?;
    posted.then_some(()).ok_or(Errno(libc::EOVERFLOW))
}

fn value(found: &Found, out: *mut c_int) -> Done {
    let _inside = Inside::enter();
    let look = |page: &rackmem::Window<'_>| Some(page.u64(VALUE));
    let value = found
        .file
        .await_object(&found.object, Wait::Forever, look)?;
    // SAFETY: the caller of `sem_getvalue` has said that it may be written.
    unsafe { *out = value.unwrap_or_default() as c_int };
    Ok(())
}

/// Functions of one argument.
macro_rules! ways {
    ($($name:ident: $what:expr;)*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(semaphore: *mut sem_t) -> c_int {
            if !is_ours(semaphore) {
                // SAFETY: the caller's.
                return unsafe { next!($name: One)(semaphore) };
            }
            answer(-1, || $what(&ours(semaphore)?).map(|()| 0))
        }
    )*};
}
ways! {
    sem_wait: |found: &Found| down(found, Wait::Forever, libc::EAGAIN);
    sem_trywait: |found: &Found| down(found, Wait::Never, libc::EAGAIN);
    sem_post: up;
    sem_destroy: |_: &Found| Ok(());
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_timedwait(semaphore: *mut sem_t, time: *const timespec) -> c_int {
    if !is_ours(semaphore) {
        type Timed = unsafe extern "C" fn(*mut sem_t, *const timespec) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(sem_timedwait: Timed)(semaphore, time) };
    }
    answer(-1, || {
        down(
            &ours(semaphore)?,
            until(libc::CLOCK_REALTIME, time)?,
            libc::ETIMEDOUT,
        )?;
        Ok(0)
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_clockwait(
    semaphore: *mut sem_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    if !is_ours(semaphore) {
        type Timed = unsafe extern "C" fn(*mut sem_t, clockid_t, *const timespec) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(sem_clockwait: Timed)(semaphore, clock, time) };
    }
    answer(-1, || {
        down(&ours(semaphore)?, until(clock, time)?, libc::ETIMEDOUT)?;
        Ok(0)
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_getvalue(semaphore: *mut sem_t, out: *mut c_int) -> c_int {
    if !is_ours(semaphore) {
        type Get = unsafe extern "C" fn(*mut sem_t, *mut c_int) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(sem_getvalue: Get)(semaphore, out) };
    }
    answer(-1, || value(&ours(semaphore)?, out).map(|()| 0))
}

/// Gives it a number, the first time, or again.
fn begin(found: &Found, value: c_uint, again: bool) -> Done {
    let _inside = Inside::enter();
    if u64::from(value) > MOST {
        return Err(Errno(libc::EINVAL));
    }
    found.file.change_object(&found.object, |view| {
        if again || view.u64(MADE) == 0 {
            view.set_u64(VALUE, value.into());
            view.set_u64(MADE, 1);
        }
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_init(semaphore: *mut sem_t, shared: c_int, value: c_uint) -> c_int {
    if !is_ours(semaphore) {
        type Init = unsafe extern "C" fn(*mut sem_t, c_int, c_uint) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(sem_init: Init)(semaphore, shared, value) };
    }
    answer(-1, || begin(&ours(semaphore)?, value, true).map(|()| 0))
}

/// The path that a semaphore's name stands for.
unsafe fn path(name: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    let name = unsafe { open::text(name) }?;
    open::the_racks(&format!(
        "/dev/shm/sem.{}",
        name.strip_prefix('/').unwrap_or(name)
    ))
}

/// # Safety
/// That of the C library's. Its last arguments are there where it may be made; where they are not,
/// what is in their place is not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_open(
    name: *const c_char,
    flags: c_int,
    mode: mode_t,
    value: c_uint,
) -> *mut sem_t {
    // SAFETY: the caller's.
    let Some(path) = (unsafe { path(name) }) else {
        type Open = unsafe extern "C" fn(*const c_char, c_int, mode_t, c_uint) -> *mut sem_t;
        // SAFETY: the caller's.
        return unsafe { next!(sem_open: Open)(name, flags, mode, value) };
    };
    answer(libc::SEM_FAILED, || {
        let create = flags & libc::O_CREAT != 0;
        let how = How {
            create,
            exclusive: flags & libc::O_EXCL != 0,
            mode,
            ..How::default()
        };
        let file = files::open(&path, how)?;
        let at = file.reach(size_of::<sem_t>() as u64);
        let at = at.and_then(|()| file.map(0, size_of::<sem_t>(), 0));
        file.close()?;
        let semaphore = at? as *mut sem_t;
        if create {
            begin(&ours(semaphore)?, value, false)?;
        }
        Ok(semaphore)
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_close(semaphore: *mut sem_t) -> c_int {
    match ranges::has(semaphore as usize) {
        true => answer(-1, || map::end(semaphore as usize).map(|()| 0)),
        // SAFETY: the caller's.
        false => unsafe { next!(sem_close: One)(semaphore) },
    }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_unlink(name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    match unsafe { path(name) } {
        Some(path) => answer(-1, || files::unlink(&path).map(|()| 0)),
        None => {
            type Unlink = unsafe extern "C" fn(*const c_char) -> c_int;
            // SAFETY: the caller's.
            unsafe { next!(sem_unlink: Unlink)(name) }
        }
    }
}
