//! Streams (`fopen`) of files of the rack: the C library's buffers, whose bytes come and go by
//! calls of this library (`fopencookie`).

use super::descriptor;
use super::io::{At, read_ours, seek, write_ours};
use super::open::{open_ours, text, the_racks_named};
use crate::answer::{Done, Errno, answer, refuse};
use crate::fds;
use crate::next::next;
use libc::{FILE, c_char, c_int, c_void, off_t, size_t, ssize_t};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `cookie_io_functions_t`.
#[repr(C)]
struct Functions {
    read: extern "C" fn(*mut c_void, *mut c_char, size_t) -> ssize_t,
    write: extern "C" fn(*mut c_void, *const c_char, size_t) -> ssize_t,
    seek: extern "C" fn(*mut c_void, *mut off_t, c_int) -> c_int,
    close: extern "C" fn(*mut c_void) -> c_int,
}

unsafe extern "C" {
    fn fopencookie(cookie: *mut c_void, mode: *const c_char, does: Functions) -> *mut FILE;
}

/// Streams that there are, with their descriptors.
static STREAMS: Mutex<Vec<(usize, c_int)>> = Mutex::new(Vec::new());
/// How many.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn streams() -> MutexGuard<'static, Vec<(usize, c_int)>> {
    STREAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn changed(streams: &[(usize, c_int)]) {
    COUNT.store(streams.len(), Relaxed);
}

/// The descriptor of a stream, if it is the rack's. `cookie`: the descriptor as well.
pub fn number(stream: *mut FILE) -> Option<c_int> {
    if COUNT.load(Relaxed) == 0 {
        return None;
    }
    let found = streams().iter().find(|is| is.0 == stream as usize).copied();
    found.map(|found| found.1)
}

/// What a stream's cookie is: its descriptor, which is no address.
fn cookie(fd: c_int) -> *mut c_void {
    std::ptr::without_provenance_mut(fd as usize)
}

fn fd_of(cookie: *mut c_void) -> c_int {
    cookie.addr() as c_int
}

extern "C" fn read(cookie: *mut c_void, to: *mut c_char, len: size_t) -> ssize_t {
    answer(-1, || {
        let open = fds::ours(fd_of(cookie))?;
        read_ours(&open, to.cast(), len, At::Next).map(|n| n as ssize_t)
    })
}

/// As the C library has it: what fails writes nothing.
extern "C" fn write(cookie: *mut c_void, from: *const c_char, len: size_t) -> ssize_t {
    answer(0, || {
        let open = fds::ours(fd_of(cookie))?;
        write_ours(&open, from.cast(), len, At::Next).map(|n| n as ssize_t)
    })
}

extern "C" fn seek_to(cookie: *mut c_void, to: *mut off_t, from: c_int) -> c_int {
    answer(-1, || {
        let open = fds::ours(fd_of(cookie))?;
        // SAFETY: the C library's: it may be read and written.
        let to = unsafe { &mut *to };
        *to = seek(&open, *to, from)?;
        Ok(0)
    })
}

/// A descriptor has no stream any more that is the rack's.
pub fn leave(fd: c_int) {
    let mut streams = streams();
    streams.retain(|is| is.1 != fd);
    changed(&streams);
}

extern "C" fn close(cookie: *mut c_void) -> c_int {
    let fd = fd_of(cookie);
    leave(fd);
    // SAFETY: a descriptor that was the stream's.
    unsafe { descriptor::close(fd) }
}

/// What `open` is told for a mode of `fopen`.
pub fn flags(mode: &str) -> Option<c_int> {
    let mode = mode.split(',').next()?;
    let mut rest = mode.chars();
    let (first, all) = (rest.next()?, rest.as_str());
    let access = match (all.contains('+'), first) {
        (true, _) => libc::O_RDWR,
        (false, 'r') => libc::O_RDONLY,
        (false, _) => libc::O_WRONLY,
    };
    let more = match first {
        'r' => 0,
        'w' => libc::O_CREAT | libc::O_TRUNC,
        'a' => libc::O_CREAT | libc::O_APPEND,
        _ => return None,
    };
    let alone = if all.contains('x') { libc::O_EXCL } else { 0 };
    let exec = if all.contains('e') {
        libc::O_CLOEXEC
    } else {
        0
    };
    Some(access | more | alone | exec)
}

/// A stream of a descriptor of the rack.
///
/// # Safety
/// The mode is a string.
pub unsafe fn stream(fd: c_int, mode: *const c_char) -> Done<*mut FILE> {
    let does = Functions {
        read,
        write,
        seek: seek_to,
        close,
    };
    let mut streams = streams();
    if streams.iter().any(|is| is.1 == fd) {
        return refuse(
            libc::EINVAL,
            "a file of the rack has a stream a descriptor, and not two",
        );
    }
    // SAFETY: the functions take this cookie, and the mode is the caller's.
    let stream = unsafe { fopencookie(cookie(fd), mode, does) };
    if stream.is_null() {
        return Err(Errno(libc::EINVAL));
    }
    streams.push((stream as usize, fd));
    changed(&streams);
    Ok(stream)
}

/// Functions that open a path as a stream.
macro_rules! opens {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: *const c_char) -> *mut FILE {
            // SAFETY: the caller's.
            if let Some(path) = unsafe { the_racks_named(path) } {
                return answer(std::ptr::null_mut(), || {
                    // SAFETY: the caller's.
                    let flags = unsafe { text(mode) }.and_then(flags).ok_or(Errno(libc::EINVAL))?;
                    let fd = open_ours(&path, flags, 0o666)?;
                    // SAFETY: the caller's.
                    unsafe { stream(fd, mode) }
                });
            }
            type Open = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut FILE;
            // SAFETY: the caller's.
            unsafe { next!($name: Open)(path, mode) }
        }
    )*};
}
opens!(fopen, fopen64);

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE {
    if fds::has(fd) {
        return answer(std::ptr::null_mut(), || {
            // SAFETY: the caller's.
            let flags = unsafe { text(mode) }
                .and_then(flags)
                .ok_or(Errno(libc::EINVAL))?;
            // SAFETY: the caller's.
            let stream = unsafe { stream(fd, mode) }?;
            if flags & libc::O_APPEND != 0 {
                fds::ours(fd)?.set_appends(true);
            }
            Ok(stream)
        });
    }
    type Open = unsafe extern "C" fn(c_int, *const c_char) -> *mut FILE;
    // SAFETY: the caller's.
    unsafe { next!(fdopen: Open)(fd, mode) }
}

/// Both names of `fileno`.
macro_rules! numbers {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(of: *mut FILE) -> c_int {
            number(of).unwrap_or_else(|| {
                // SAFETY: the caller's.
                unsafe { next!($name: unsafe extern "C" fn(*mut FILE) -> c_int)(of) }
            })
        }
    )*};
}
numbers!(fileno, fileno_unlocked);

/// What streams have in their buffers is written, as the C library does at the end of a process,
/// which is too late for the rack.
pub fn flush() {
    let all: Vec<usize> = streams().iter().map(|is| is.0).collect();
    for stream in all {
        // SAFETY: a stream that is open; who closes it meanwhile does so while the process ends.
        unsafe { libc::fflush(stream as *mut FILE) };
    }
}
