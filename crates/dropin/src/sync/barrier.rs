//! `pthread_barrier_t` in files of the rack: how many there are to come, how many have, and how
//! often all have.

use super::{is_ours, ours};
use crate::answer::{Done, Errno, number};
use crate::inside::Inside;
use crate::next::next;
use libc::{c_int, c_uint, pthread_barrier_t, pthread_barrierattr_t};
use rackmem::Wait;

const ALL: usize = 8;
const HERE: usize = 16;
const ROUND: usize = 24;

type One = unsafe extern "C" fn(*mut pthread_barrier_t) -> c_int;

/// Whether this thread is the one of all.
fn wait(barrier: *mut pthread_barrier_t) -> Done<bool> {
    let found = ours(barrier)?;
    let _inside = Inside::enter();
    let (file, object) = (found.file, &found.object);
    let round = file.change_object(object, |view| {
        let (here, round) = (view.u64(HERE) + 1, view.u64(ROUND));
        let last = here >= view.u64(ALL);
        view.set_u64(HERE, if last { 0 } else { here });
        view.set_u64(ROUND, round + u64::from(last));
        (!last).then_some(round)
    })?;
    let Some(round) = round else {
        return Ok(true);
    };
    file.await_object(object, Wait::Forever, |page| {
        (page.u64(ROUND) != round).then_some(())
    })?;
    Ok(false)
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_barrier_wait(barrier: *mut pthread_barrier_t) -> c_int {
    if !is_ours(barrier) {
        // SAFETY: the caller's.
        return unsafe { next!(pthread_barrier_wait: One)(barrier) };
    }
    let mut serial = false;
    let error = number(|| {
        serial = wait(barrier)?;
        Ok(())
    });
    match (error, serial) {
        (0, true) => libc::PTHREAD_BARRIER_SERIAL_THREAD,
        (error, _) => error,
    }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_barrier_init(
    barrier: *mut pthread_barrier_t,
    attributes: *const pthread_barrierattr_t,
    count: c_uint,
) -> c_int {
    if !is_ours(barrier) {
        type Init = unsafe extern "C" fn(
            *mut pthread_barrier_t,
            *const pthread_barrierattr_t,
            c_uint,
        ) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(pthread_barrier_init: Init)(barrier, attributes, count) };
    }
    number(|| {
        let found = ours(barrier)?;
        let _inside = Inside::enter();
        if count == 0 {
            return Err(Errno(libc::EINVAL));
        }
        found.file.change_object(&found.object, |view| {
            view.set_u64(ALL, count.into());
            view.set_u64(HERE, 0);
        })
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_barrier_destroy(barrier: *mut pthread_barrier_t) -> c_int {
    match is_ours(barrier) {
        true => 0,
        // SAFETY: the caller's.
        false => unsafe { next!(pthread_barrier_destroy: One)(barrier) },
    }
}
