//! `freopen` of a stream or a path that is the rack's.
//!
//! | the stream | the path | what becomes of it |
//! |---|---|---|
//! | the rack's | the rack's, or none | its descriptor is of the new file |
//! | the rack's | of this host | the C library has it from then on |
//! | `stdin`, `stdout`, `stderr` | the rack's | the variable is a new stream, which is returned |
//! | another one of this host | the rack's | refused: its functions are the C library's, and the program has its address |

use super::descriptor;
use super::open::{open_ours, text, the_racks_named};
use super::stream::{flags, leave, number, stream};
use crate::answer::{Done, Errno, answer, refuse};
use crate::fds;
use crate::next::next;
use libc::{FILE, c_char, c_int};

/// The beginning of the C library's `struct _IO_FILE`, which programs are compiled with.
#[repr(C)]
struct Head {
    flags: c_int,
    pointers: [*mut c_char; 13],
    fileno: c_int,
    more: [u64; 5],
    /// What it has for wide characters. Of a stream of `fopencookie` it is no address, which the
    /// C library's `freopen` follows.
    wide: *mut c_char,
}

/// Its flags that a mode says.
const NO_READS: c_int = 0x4;
const NO_WRITES: c_int = 0x8;
const APPENDS: c_int = 0x1000;

unsafe extern "C" {
    fn __fpurge(stream: *mut FILE);
    static mut stdin: *mut FILE;
    static mut stdout: *mut FILE;
    static mut stderr: *mut FILE;
}

/// The flags of a stream whose descriptor is open so.
fn told(open: c_int) -> c_int {
    let access = match open & libc::O_ACCMODE {
        libc::O_RDONLY => NO_WRITES,
        libc::O_WRONLY => NO_READS,
        _ => 0,
    };
    let appends = open & libc::O_APPEND != 0;
    access | if appends { APPENDS } else { 0 }
}

/// A stream of the rack's is one of another of its files. Whatever becomes of it, the file that it
/// was of is closed.
///
/// # Safety
/// The stream is open, and nobody else uses it meanwhile.
unsafe fn again(of: *mut FILE, fd: c_int, (path, flags): (&str, c_int)) -> Done<*mut FILE> {
    // SAFETY: the caller's. What cannot be written has been told to nobody, as elsewhere.
    unsafe { libc::fflush(of) };
    let new = open_ours(path, flags, 0o666).inspect_err(|_| {
        // SAFETY: the caller's.
        unsafe { libc::fclose(of) };
    })?;
    // SAFETY: two descriptors, the first of which is ours alone.
    unsafe {
        descriptor::dup2(new, fd);
        descriptor::close(new);
    }
    let end = match flags & libc::O_APPEND {
        0 => libc::SEEK_SET,
        _ => libc::SEEK_END,
    };
    // SAFETY: the caller's; a stream begins with its head.
    unsafe {
        __fpurge(of);
        let head = of.cast::<Head>();
        (*head).flags = (*head).flags & !(NO_READS | NO_WRITES | APPENDS) | told(flags);
        libc::fseek(of, 0, end);
        libc::clearerr(of);
    }
    Ok(of)
}

/// A stream of this host that the program knows by a variable: a new one has its place.
///
/// # Safety
/// The mode is a string; nobody else uses the stream meanwhile.
unsafe fn stands_in(
    of: *mut FILE,
    (path, flags): (&str, c_int),
    mode: *const c_char,
) -> Done<*mut FILE> {
    // SAFETY: variables of the C library, which programs may set.
    let all = [&raw mut stdin, &raw mut stdout, &raw mut stderr];
    // SAFETY: the same.
    let Some(variable) = all.into_iter().find(|at| unsafe { **at } == of) else {
        let text = format!(
            "{path}: freopen() of a stream of this host gives it no file of the rack, but for stdin, \
             stdout and stderr; fclose() it and fopen() the file"
        );
        return refuse(libc::ENOTSUP, &text);
    };
    // SAFETY: the caller's.
    unsafe {
        libc::fflush(of);
        let new = stream(open_ours(path, flags, 0o666)?, mode)?;
        *variable = new;
        Ok(new)
    }
}

/// Both names of `freopen`.
macro_rules! opens_again {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            path: *const c_char,
            mode: *const c_char,
            of: *mut FILE,
        ) -> *mut FILE {
            type Open = unsafe extern "C" fn(*const c_char, *const c_char, *mut FILE) -> *mut FILE;
            // SAFETY: the caller's.
            let ours = unsafe { the_racks_named(path) };
            let fd = number(of);
            if ours.is_none() && fd.is_none() {
                // SAFETY: the caller's.
                return unsafe { next!($name: Open)(path, mode, of) };
            }
            // SAFETY: the caller's.
            let asked = || unsafe { text(mode) }.and_then(flags).ok_or(Errno(libc::EINVAL));
            match (fd, ours) {
                // SAFETY: the caller's.
                (Some(fd), Some(path)) => answer(std::ptr::null_mut(), || unsafe {
                    again(of, fd, (&path, asked()?))
                }),
                (Some(fd), None) if path.is_null() => answer(std::ptr::null_mut(), || {
                    let name = fds::ours(fd)?.file.name.clone();
                    let flags = asked()? & !libc::O_EXCL;
                    // SAFETY: the caller's.
                    unsafe { again(of, fd, (&name, flags)) }
                }),
                (Some(fd), None) => {
                    // SAFETY: the caller's. Its number is the new file's: the C library replaces
                    // what it stands for, as of its own streams.
                    unsafe {
                        libc::fflush(of);
                        __fpurge(of);
                        let head = of.cast::<Head>();
                        (*head).fileno = fd;
                        (*head).wide = std::ptr::null_mut();
                        leave(fd);
                        let _ = answer(-1, || descriptor::forget(fd).map(|()| 0));
                        next!($name: Open)(path, mode, of)
                    }
                }
                // SAFETY: the caller's.
                (None, Some(path)) => answer(std::ptr::null_mut(), || unsafe {
                    stands_in(of, (&path, asked()?), mode)
                }),
                // SAFETY: the caller's.
                (None, None) => unsafe { next!($name: Open)(path, mode, of) },
            }
        }
    )*};
}
opens_again!(freopen, freopen64);
