//! Closing and copying descriptors, and what `fcntl` does about them.

use super::lock;
use crate::answer::{Done, Errno, answer};
use crate::fds::{self, Open};
use crate::inside::Inside;
use crate::member;
use crate::next::next;
use libc::{c_int, c_long};
use std::sync::Arc;

/// The number is not ours any more.
pub fn forget(fd: c_int) -> Done {
    let Some((open, last)) = fds::remove(fd) else {
        return Ok(());
    };
    let _inside = Inside::enter();
    // As of all files: the process' locks go with any descriptor, others with their last one.
    let locks = lock::close(&open, last);
    match last {
        true => open.file.close().and(locks),
        false => locks,
    }
}

/// Whether this is the process that has the descriptors: a child by `vfork` has its parent's
/// memory, until it is another program.
fn is_own_process() -> bool {
    member::get().is_none_or(|member| member.is_process())
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    if fds::has(fd) && is_own_process() {
        let forgotten = answer(-1, || forget(fd).map(|()| 0));
        fds::close_number(fd);
        return forgotten;
    }
    // SAFETY: the caller's.
    unsafe { next!(close: unsafe extern "C" fn(c_int) -> c_int)(fd) }
}

/// What a call has made of a descriptor of ours is one, too.
fn copied(from: Option<Arc<Open>>, to: c_int) -> c_int {
    if let (Some(open), true) = (from, to >= 0) {
        fds::add(to, open);
    }
    to
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    let open = fds::get(fd);
    // SAFETY: the caller's.
    let to = unsafe { next!(dup: unsafe extern "C" fn(c_int) -> c_int)(fd) };
    copied(open, to)
}

/// Functions that copy a descriptor to a number, which is closed before.
fn replaced(fd: c_int, to: c_int, copy: impl FnOnce() -> c_int) -> c_int {
    if !(fds::has(fd) || fds::has(to)) || !is_own_process() || fd == to {
        return copy();
    }
    let open = fds::get(fd);
    if answer(-1, || forget(to).map(|()| 0)) != 0 {
        return -1;
    }
    copied(open, copy())
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    replaced(fd, to, || {
        // SAFETY: the caller's.
        unsafe { next!(dup2: unsafe extern "C" fn(c_int, c_int) -> c_int)(fd, to) }
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    replaced(fd, to, || {
        // SAFETY: the caller's.
        unsafe { next!(dup3: unsafe extern "C" fn(c_int, c_int, c_int) -> c_int)(fd, to, flags) }
    })
}

type Fcntl = unsafe extern "C" fn(c_int, c_int, c_long) -> c_int;

/// # Safety
/// That of `fcntl`.
unsafe fn ours(open: &Arc<Open>, (fd, command): (c_int, c_int), argument: c_long) -> Done<c_int> {
    match command {
        // SAFETY: the caller's.
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => unsafe {
            let to = next!(fcntl: Fcntl)(fd, command, argument);
            Ok(copied(Some(open.clone()), to))
        },
        libc::F_GETFL => Ok(open.flags() & !libc::O_CLOEXEC & !libc::O_CREAT),
        libc::F_SETFL => {
            open.set_appends(argument & c_long::from(libc::O_APPEND) != 0);
            Ok(0)
        }
        // SAFETY: the caller's.
        libc::F_GETFD | libc::F_SETFD => Ok(unsafe { next!(fcntl: Fcntl)(fd, command, argument) }),
        _ => match lock::command(command) {
            // SAFETY: the caller's: the argument is a lock's.
            Some(command) => unsafe { lock::act(open, command, argument as *mut libc::flock) },
            None => Err(Errno(libc::EINVAL)),
        },
    }
}

/// Both names of `fcntl`.
macro_rules! fcntls {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's. The argument is there where the command takes one; where it
        /// takes none, what is in its place is not looked at.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, command: c_int, argument: c_long) -> c_int {
            match fds::get(fd) {
                // SAFETY: the caller's.
                Some(open) => answer(-1, || unsafe { ours(&open, (fd, command), argument) }),
                // SAFETY: the caller's.
                None => unsafe { next!($name: Fcntl)(fd, command, argument) },
            }
        }
    )*};
}
fcntls!(fcntl, fcntl64);
