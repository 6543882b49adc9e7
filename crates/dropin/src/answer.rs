//! How functions of C answer: by a value and `errno`, or by an error's number. No panic leaves
//! them.

use crate::say;
use libc::c_int;
use rackmem::{AccessError, AllocError, LockError, RegionError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A number of an error; what there is to say has been said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub c_int);

pub type Done<T = ()> = Result<T, Errno>;

/// Says why once, and is the error.
pub fn refuse<T>(errno: c_int, why: &str) -> Done<T> {
    say::once(why);
    Err(Errno(errno))
}

/// What the rack has refused is an error of the device.
macro_rules! of_the_rack {
    ($($error:ty),*) => {$(
        impl From<$error> for Errno {
            fn from(error: $error) -> Errno {
                say::once(&error.to_string());
                Errno(libc::EIO)
            }
        }
    )*};
}
of_the_rack!(AccessError, AllocError, LockError, RegionError);

pub fn errno() -> c_int {
    // SAFETY: each thread has its own.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(errno: c_int) {
    // SAFETY: the same.
    unsafe { *libc::__errno_location() = errno };
}

fn caught<T>(body: impl FnOnce() -> Done<T>) -> Done<T> {
    let before = errno();
    let done = catch_unwind(AssertUnwindSafe(body));
    let done = done.unwrap_or_else(|_| refuse(libc::EIO, "a fault of this library; see above"));
    set_errno(before);
    done
}

/// For functions that return `fail` and set `errno`.
pub fn answer<T>(fail: T, body: impl FnOnce() -> Done<T>) -> T {
    caught(body).unwrap_or_else(|error| {
        set_errno(error.0);
        fail
    })
}

/// For functions of pthreads, which return the error's number.
pub fn number(body: impl FnOnce() -> Done) -> c_int {
    match caught(body) {
        Ok(()) => 0,
        Err(error) => error.0,
    }
}
