//! Mapping files.

use crate::answer::{Done, Errno, answer, errno, refuse};
use crate::fds::Open;
use crate::next::next;
use crate::{fds, ranges, settings};
use libc::{c_int, c_long, c_void, off_t, size_t};

/// Of the system's: what mappings and their parts begin at.
const PAGE: usize = 4096;

type Map = unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;

/// Maps a file of the rack. What is mapped may be loaded and stored, whatever is asked for.
fn ours(open: &Open, (len, access, kind): (usize, c_int, c_int), at: off_t) -> Done<usize> {
    let name = &open.file.name;
    if len == 0 || at < 0 || at % PAGE as off_t != 0 {
        return Err(Errno(libc::EINVAL));
    }
    if kind & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0 {
        let text = format!(
            "{name}: a file of the rack is mapped where the rack has room for it, and not at an \
             address that is given (MAP_FIXED)"
        );
        return refuse(libc::EINVAL, &text);
    }
    if kind & libc::MAP_TYPE == libc::MAP_PRIVATE {
        return private(open, (len, access), at as u64);
    }
    if access & libc::PROT_WRITE != 0 {
        open.writes().map_err(|_| Errno(libc::EACCES))?;
    }
    open.reads().map_err(|_| Errno(libc::EACCES))?;
    open.file.map(at as u64, len, settings::get().room)
}

/// A copy for the process alone, as the file is now.
fn private(open: &Open, (len, access): (usize, c_int), at: u64) -> Done<usize> {
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let both = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new memory, anywhere.
    let place = unsafe { next!(mmap: Map)(std::ptr::null_mut(), len, both, kind, -1, 0) };
    if place == libc::MAP_FAILED {
        return Err(Errno(errno()));
    }
    // SAFETY: so many bytes were mapped, as zeros, and nobody knows of them yet.
    let bytes = unsafe { std::slice::from_raw_parts_mut(place.cast::<u8>(), len) };
    let read = open.file.read(at, bytes);
    // SAFETY: the same memory, which nobody uses yet.
    let done = unsafe { libc::mprotect(place, len, access) };
    if read.is_err() || done != 0 {
        // SAFETY: the same.
        unsafe { libc::syscall(libc::SYS_munmap, place, len) };
        return Err(read.err().unwrap_or(Errno(libc::ENOMEM)));
    }
    Ok(place as usize)
}

/// Both names of `mmap`.
macro_rules! maps {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: *mut c_void,
            len: size_t,
            access: c_int,
            kind: c_int,
            fd: c_int,
            from: off_t,
        ) -> *mut c_void {
            match fds::get(fd).filter(|_| kind & libc::MAP_ANONYMOUS == 0) {
                Some(open) => answer(libc::MAP_FAILED as usize, || {
                    ours(&open, (len, access, kind), from)
                }) as *mut c_void,
                // SAFETY: the caller's.
                None => unsafe { next!($name: Map)(at, len, access, kind, fd, from) },
            }
        }
    )*};
}
maps!(mmap, mmap64);

/// Ends a mapping that begins there.
pub fn end(at: usize) -> Done {
    let (file, _) = ranges::find(at).ok_or(Errno(libc::EINVAL))?;
    file.unmap(at)
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, len: size_t) -> c_int {
    if ranges::has(at as usize) && !crate::inside::is_inside() {
        return answer(-1, || end(at as usize).map(|()| 0));
    }
    type Unmap = unsafe extern "C" fn(*mut c_void, size_t) -> c_int;
    // SAFETY: the caller's.
    unsafe { next!(munmap: Unmap)(at, len) }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    at: *mut c_void,
    len: size_t,
    new: size_t,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    if ranges::has(at as usize) {
        return answer(libc::MAP_FAILED as usize, || {
            let (file, offset) = ranges::find(at as usize).ok_or(Errno(libc::EFAULT))?;
            if new <= len {
                return Ok(at as usize);
            }
            // More of the file may be here already.
            match flags & libc::MREMAP_FIXED == 0 && (offset + new) as u64 <= file.row()?.room {
                true => Ok(at as usize),
                false => refuse(
                    libc::ENOMEM,
                    &format!(
                        "{}: its mapping has no room to grow to {new} bytes",
                        file.name
                    ),
                ),
            }
        }) as *mut c_void;
    }
    type Remap =
        unsafe extern "C" fn(*mut c_void, size_t, size_t, c_int, *mut c_void) -> *mut c_void;
    // SAFETY: the caller's.
    unsafe { next!(mremap: Remap)(at, len, new, flags, to) }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msync(at: *mut c_void, len: size_t, flags: c_int) -> c_int {
    // What was stored is what all nodes load, and there is no disk: it is kept where it outlives
    // this node.
    if let Some((file, offset)) = ranges::find(at as usize) {
        return answer(-1, || {
            if !(at as usize).is_multiple_of(PAGE) {
                return Err(Errno(libc::EINVAL));
            }
            match flags & libc::MS_SYNC {
                0 => Ok(0),
                _ => file
                    .sync(offset as u64..offset as u64 + len as u64)
                    .map(|()| 0),
            }
        });
    }
    type Sync = unsafe extern "C" fn(*mut c_void, size_t, c_int) -> c_int;
    // SAFETY: the caller's.
    unsafe { next!(msync: Sync)(at, len, flags) }
}

/// # Safety
/// That of the C library's. Further arguments are there where the number's call takes them; where
/// it does not, what is in their places is not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if number == libc::SYS_futex && ranges::has(a as usize) {
        return answer(-1, || {
            refuse(
                libc::ENOSYS,
                "a futex in a file of the rack wakes nobody on another host: use pthread mutexes \
                 and conditions, or semaphores (std::atomic::wait is a futex, too)",
            )
        });
    }
    type Call =
        unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;
    // SAFETY: the caller's.
    unsafe { next!(syscall: Call)(number, a, b, c, d, e, f) }
}
