//! Opening files, and taking their names away.

use crate::answer::{Done, answer, refuse};
use crate::files::{self, How};
use crate::inside::is_inside;
use crate::next::next;
use crate::{fds, settings};
use libc::{c_char, c_int, mode_t};
use std::ffi::CStr;
use std::path::{Component, PathBuf};

/// A string of the program's.
///
/// # Safety
/// It ends with a zero, and lasts; or it is null.
pub unsafe fn text<'a>(at: *const c_char) -> Option<&'a str> {
    if at.is_null() {
        return None;
    }
    // SAFETY: the caller's.
    unsafe { CStr::from_ptr(at) }.to_str().ok()
}

/// The path, from the root on and without detours, if it is the rack's.
pub fn the_racks(path: &str) -> Option<String> {
    let settings = settings::get();
    if !settings.rack || is_inside() {
        return None;
    }
    let whole = match path.starts_with('/') {
        true => PathBuf::from(path),
        false => std::env::current_dir().ok()?.join(path),
    };
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    settings
        .has(&plain)
        .then(|| plain.to_str().map(Into::into))
        .flatten()
}

/// The same of a path beside a folder that is open.
///
/// # Safety
/// That of [`text`].
pub unsafe fn the_racks_at(folder: c_int, path: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    let path = unsafe { text(path) }?;
    if path.starts_with('/') || folder == libc::AT_FDCWD {
        return the_racks(path);
    }
    if !settings::get().rack || path.is_empty() {
        return None;
    }
    let folder = std::fs::read_link(format!("/proc/self/fd/{folder}")).ok()?;
    the_racks(folder.join(path).to_str()?)
}

/// # Safety
/// That of [`text`].
pub unsafe fn the_racks_named(path: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    the_racks(unsafe { text(path) }?)
}

/// Opens a file of the rack.
pub fn open_ours(path: &str, flags: c_int, mode: mode_t) -> Done<c_int> {
    if flags & libc::O_DIRECT != 0 {
        let text = format!(
            "{path}: O_DIRECT asks for a disk, and a file of the rack is memory; leave the flag out"
        );
        return refuse(libc::EINVAL, &text);
    }
    if flags & libc::O_DIRECTORY != 0 {
        return refuse(
            libc::ENOTDIR,
            &format!("{path}: it is a file of the rack, and no folder"),
        );
    }
    let how = How {
        create: flags & libc::O_CREAT != 0,
        exclusive: flags & libc::O_EXCL != 0,
        truncate: flags & libc::O_TRUNC != 0,
        mode: mode & 0o7777,
    };
    fds::open(files::open(path, how)?, flags)
}

/// Functions that open a path.
macro_rules! opens {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's. The mode is there where a file may be made; where it is not,
        /// what is in its place is not looked at.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller's.
            match unsafe { the_racks_named(path) } {
                Some(path) => answer(-1, || open_ours(&path, flags, mode)),
                None => {
                    type Open = unsafe extern "C" fn(*const c_char, c_int, mode_t) -> c_int;
                    // SAFETY: the caller's.
                    unsafe { next!($name: Open)(path, flags, mode) }
                }
            }
        }
    )*};
}
opens!(open, open64);

/// Functions that open a path beside a folder.
macro_rules! opens_at {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of [`open`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            folder: c_int,
            path: *const c_char,
            flags: c_int,
            mode: mode_t,
        ) -> c_int {
            // SAFETY: the caller's.
            match unsafe { the_racks_at(folder, path) } {
                Some(path) => answer(-1, || open_ours(&path, flags, mode)),
                None => {
                    type Open = unsafe extern "C" fn(c_int, *const c_char, c_int, mode_t) -> c_int;
                    // SAFETY: the caller's.
                    unsafe { next!($name: Open)(folder, path, flags, mode) }
                }
            }
        }
    )*};
}
opens_at!(openat, openat64);

/// Functions that make a file.
macro_rules! makes {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, mode: mode_t) -> c_int {
            // SAFETY: the caller's.
            match unsafe { the_racks_named(path) } {
                Some(path) => {
                    let flags = libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY;
                    answer(-1, || open_ours(&path, flags, mode))
                }
                None => {
                    type Make = unsafe extern "C" fn(*const c_char, mode_t) -> c_int;
                    // SAFETY: the caller's.
                    unsafe { next!($name: Make)(path, mode) }
                }
            }
        }
    )*};
}
makes!(creat, creat64);

/// The path of a name of shared memory.
///
/// # Safety
/// That of [`text`].
unsafe fn shared(name: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    let name = unsafe { text(name) }?;
    the_racks(&format!(
        "/dev/shm/{}",
        name.strip_prefix('/').unwrap_or(name)
    ))
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shm_open(name: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the caller's.
    match unsafe { shared(name) } {
        Some(path) => answer(-1, || open_ours(&path, flags | libc::O_CLOEXEC, mode)),
        None => {
            type Open = unsafe extern "C" fn(*const c_char, c_int, mode_t) -> c_int;
            // SAFETY: the caller's.
            unsafe { next!(shm_open: Open)(name, flags, mode) }
        }
    }
}

/// Functions that take a name away.
macro_rules! unlinks {
    ($($name:ident, $find:ident;)*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(name: *const c_char) -> c_int {
            // SAFETY: the caller's.
            match unsafe { $find(name) } {
                Some(path) => answer(-1, || files::unlink(&path).map(|()| 0)),
                // SAFETY: the caller's.
                None => unsafe { next!($name: unsafe extern "C" fn(*const c_char) -> c_int)(name) },
            }
        }
    )*};
}
unlinks! {
    unlink, the_racks_named;
    remove, the_racks_named;
    shm_unlink, shared;
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn unlinkat(folder: c_int, path: *const c_char, flags: c_int) -> c_int {
    // SAFETY: the caller's.
    match unsafe { the_racks_at(folder, path) } {
        Some(path) => answer(-1, || files::unlink(&path).map(|()| 0)),
        None => {
            type Unlink = unsafe extern "C" fn(c_int, *const c_char, c_int) -> c_int;
            // SAFETY: the caller's.
            unsafe { next!(unlinkat: Unlink)(folder, path, flags) }
        }
    }
}
