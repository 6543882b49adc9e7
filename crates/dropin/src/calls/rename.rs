//! Renaming files of the rack.

use super::open::{the_racks_at, the_racks_named};
use crate::answer::{Done, Errno, answer, refuse};
use crate::files;
use crate::next::next;
use libc::{c_char, c_int, c_uint};

/// `names`: of both the one that is the rack's. `None`: neither is.
fn ours([from, to]: [Option<String>; 2], flags: c_uint) -> Option<c_int> {
    let both = match (from, to) {
        (None, None) => return None,
        (Some(from), Some(to)) => Ok((from, to)),
        (Some(one), None) | (None, Some(one)) => Err(one),
    };
    let rename = || -> Done<c_int> {
        let (from, to) = both.or_else(|one| {
            let text = format!(
                "{one}: it is renamed to or from a name that is not the rack's; copy it, or name \
                 both with {}",
                crate::settings::FILES
            );
            refuse(libc::EXDEV, &text)
        })?;
        match flags {
            0 => files::rename(&from, &to, false),
            libc::RENAME_NOREPLACE => files::rename(&from, &to, true),
            _ => Err(Errno(libc::EINVAL)),
        }?;
        Ok(0)
    };
    Some(answer(-1, rename))
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller's.
    let names = unsafe { [the_racks_named(from), the_racks_named(to)] };
    ours(names, 0).unwrap_or_else(|| {
        type Rename = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
        // SAFETY: the caller's.
        unsafe { next!(rename: Rename)(from, to) }
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat(
    folder: c_int,
    from: *const c_char,
    other: c_int,
    to: *const c_char,
) -> c_int {
    // SAFETY: the caller's.
    let names = unsafe { [the_racks_at(folder, from), the_racks_at(other, to)] };
    ours(names, 0).unwrap_or_else(|| {
        type Rename = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char) -> c_int;
        // SAFETY: the caller's.
        unsafe { next!(renameat: Rename)(folder, from, other, to) }
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn renameat2(
    folder: c_int,
    from: *const c_char,
    other: c_int,
    to: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller's.
    let names = unsafe { [the_racks_at(folder, from), the_racks_at(other, to)] };
    ours(names, flags).unwrap_or_else(|| {
        type Rename =
            unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, c_uint) -> c_int;
        // SAFETY: the caller's.
        unsafe { next!(renameat2: Rename)(folder, from, other, to, flags) }
    })
}
