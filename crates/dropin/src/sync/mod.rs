//! Objects of pthreads and semaphores. Those in files of the rack are locks of the rack; all others
//! are the C library's, after a look at a few words.

mod barrier;
mod condition;
mod mutex;
pub mod objects;
mod rwlock;
mod semaphore;

use crate::answer::{Done, Errno, refuse};
use crate::files::File;
use crate::{member, ranges};
use libc::{c_int, clockid_t, timespec};
use objects::Object;
use rackmem::Wait;
use std::sync::Arc;
use std::time::Duration;

/// A lock that is free at another node is had in this time; who only tries waits no longer.
const TRY: Duration = Duration::from_millis(10);

/// An object of a file of the rack.
struct Found {
    file: &'static File,
    place: usize,
    object: Arc<Object>,
}

/// The object at an address, if that is the rack's.
fn found<T>(at: *const T) -> Done<Option<Found>> {
    let Some((file, place)) = ranges::find(at as usize) else {
        return Ok(None);
    };
    if member::is_forked() {
        return refuse(
            libc::EPERM,
            "a child by fork() uses a mutex or the like in a file of the rack: it has none of it",
        );
    }
    let object = file.object(place)?;
    Ok(Some(Found {
        file,
        place,
        object,
    }))
}

/// The same where it is known to be the rack's.
fn ours<T>(at: *const T) -> Done<Found> {
    found(at)?.ok_or(Errno(libc::EINVAL))
}

/// Whether an address is the rack's.
#[inline]
fn is_ours<T>(at: *const T) -> bool {
    ranges::has(at as usize)
}

/// How long it is until a time of a clock.
fn until(clock: clockid_t, time: *const timespec) -> Done<Wait> {
    // SAFETY: what the caller of a function that takes a time has given: it may be read, or is
    // null.
    let time = unsafe { time.as_ref() }.ok_or(Errno(libc::EINVAL))?;
    if !(0..1_000_000_000).contains(&time.tv_nsec) {
        return Err(Errno(libc::EINVAL));
    }
    let mut now = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` may be written.
    if unsafe { libc::clock_gettime(clock, &mut now) } != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let nanos =
        |time: &timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let left = (nanos(time) - nanos(&now)).clamp(0, i128::from(u64::MAX)) as u64;
    Ok(Wait::For(Duration::from_nanos(left)))
}

/// A number of an error as a failure, as functions of the C library return it.
fn as_done(number: c_int) -> Done {
    match number {
        0 => Ok(()),
        error => Err(Errno(error)),
    }
}
