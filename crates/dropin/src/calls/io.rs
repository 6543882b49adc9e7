//! Reading and writing: files of the rack, and from or to mapped ones.
//!
//! The system fails on pages of a mapping that are not there, and the rack's own calls must not be
//! given them at all. So bytes of a mapping come and go through memory of the process.

use crate::answer::{Done, Errno, answer, refuse};
use crate::fds::{self, Open};
use crate::next::next;
use crate::ranges;
use libc::{c_int, c_void, iovec, off_t, size_t, sockaddr, socklen_t, ssize_t};
use std::sync::PoisonError;

/// Bytes of a mapping that one call takes or brings, at most: calls may do less than is asked for,
/// and a datagram is shorter.
pub const MOST: usize = 1 << 20;
/// As the system has it.
const MOST_PIECES: c_int = 1024;

/// Copies bytes of the program's by loads, each of which may be a fault that the rack handles.
pub fn bring(from: *const u8, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    // SAFETY: the caller of the function that we stand for says that so many bytes may be read
    // there. The vector has room for them.
    unsafe {
        std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), len);
        bytes.set_len(len);
    }
    bytes
}

/// The other way round.
pub fn give(bytes: &[u8], to: *mut u8) {
    // SAFETY: the caller of the function that we stand for says that so many bytes may be written
    // there.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
}

/// Where in the file a call begins: at a place, or where the last one has ended.
#[derive(Clone, Copy)]
pub enum At {
    Place(off_t),
    Next,
}

/// Reads from a file of the rack.
pub fn read_ours(open: &Open, to: *mut u8, len: usize, at: At) -> Done<usize> {
    open.reads()?;
    let len = len.min(isize::MAX as usize);
    let read = |at: u64| {
        if !ranges::meets(to as usize, len) {
            // SAFETY: the caller's: so many bytes may be written.
            let into = unsafe { std::slice::from_raw_parts_mut(to, len) };
            return open.file.read(at, into);
        }
        let mut bytes = vec![0; len.min(MOST)];
        let n = open.file.read(at, &mut bytes)?;
        give(&bytes[..n], to);
        Ok(n)
    };
    match at {
        At::Place(at) => read(u64::try_from(at).map_err(|_| Errno(libc::EINVAL))?),
        At::Next => {
            let mut at = open.at.lock().unwrap_or_else(PoisonError::into_inner);
            let n = read(*at)?;
            *at += n as u64;
            Ok(n)
        }
    }
}

/// Writes to a file of the rack.
pub fn write_ours(open: &Open, from: *const u8, len: usize, at: At) -> Done<usize> {
    open.writes()?;
    let len = len.min(isize::MAX as usize);
    let brought;
    let from = if ranges::meets(from as usize, len) {
        brought = bring(from, len.min(MOST));
        &brought
    } else {
        // SAFETY: the caller's: so many bytes may be read.
        unsafe { std::slice::from_raw_parts(from, len) }
    };
    match at {
        At::Place(at) => {
            let at = u64::try_from(at).map_err(|_| Errno(libc::EINVAL))?;
            open.file.write(at, from)
        }
        At::Next => {
            let mut at = open.at.lock().unwrap_or_else(PoisonError::into_inner);
            if open.flags() & libc::O_APPEND != 0 && !from.is_empty() {
                *at = open.file.append(from)?;
                return Ok(from.len());
            }
            let n = open.file.write(*at, from)?;
            *at += n as u64;
            Ok(n)
        }
    }
}

/// A call of the system's that brings bytes to a mapping.
fn through_in(
    to: *mut c_void,
    len: usize,
    call: impl FnOnce(*mut c_void, usize) -> ssize_t,
) -> ssize_t {
    let mut bytes = vec![0u8; len.min(MOST)];
    let n = call(bytes.as_mut_ptr().cast(), bytes.len());
    if let Ok(n) = usize::try_from(n) {
        give(&bytes[..n.min(bytes.len())], to.cast());
    }
    n
}

/// A call of the system's that takes bytes of a mapping.
fn through_out(
    from: *const c_void,
    len: usize,
    call: impl FnOnce(*const c_void, usize) -> ssize_t,
) -> ssize_t {
    let bytes = bring(from.cast(), len.min(MOST));
    call(bytes.as_ptr().cast(), bytes.len())
}

fn counted(done: impl FnOnce() -> Done<usize>) -> ssize_t {
    answer(-1, || done().map(|n| n as ssize_t))
}

/// # Safety
/// That of the C library's, as of all functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, to: *mut c_void, len: size_t) -> ssize_t {
    if let Some(open) = fds::get(fd) {
        return counted(|| read_ours(&open, to.cast(), len, At::Next));
    }
    // SAFETY: the caller's.
    let call = |to, len| unsafe {
        next!(read: unsafe extern "C" fn(c_int, *mut c_void, size_t) -> ssize_t)(fd, to, len)
    };
    match ranges::meets(to as usize, len) {
        false => call(to, len),
        true => through_in(to, len, call),
    }
}

/// # Safety
/// See [`read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, from: *const c_void, len: size_t) -> ssize_t {
    if let Some(open) = fds::get(fd) {
        return counted(|| write_ours(&open, from.cast(), len, At::Next));
    }
    // SAFETY: the caller's.
    let call = |from, len| unsafe {
        next!(write: unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t)(fd, from, len)
    };
    match ranges::meets(from as usize, len) {
        false => call(from, len),
        true => through_out(from, len, call),
    }
}

/// Functions that read or write at a place.
macro_rules! at_places {
    ($($read:ident, $write:ident;)*) => {$(
        /// # Safety
        /// See [`read`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $read(fd: c_int, to: *mut c_void, len: size_t, at: off_t) -> ssize_t {
            if let Some(open) = fds::get(fd) {
                return counted(|| read_ours(&open, to.cast(), len, At::Place(at)));
            }
            type Read = unsafe extern "C" fn(c_int, *mut c_void, size_t, off_t) -> ssize_t;
            // SAFETY: the caller's.
            let call = |to, len| unsafe { next!($read: Read)(fd, to, len, at) };
            match ranges::meets(to as usize, len) {
                false => call(to, len),
                true => through_in(to, len, call),
            }
        }

        /// # Safety
        /// See [`read`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $write(
            fd: c_int,
            from: *const c_void,
            len: size_t,
            at: off_t,
        ) -> ssize_t {
            if let Some(open) = fds::get(fd) {
                return counted(|| write_ours(&open, from.cast(), len, At::Place(at)));
            }
            type Write = unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
            // SAFETY: the caller's.
            let call = |from, len| unsafe { next!($write: Write)(fd, from, len, at) };
            match ranges::meets(from as usize, len) {
                false => call(from, len),
                true => through_out(from, len, call),
            }
        }
    )*};
}
at_places! {
    pread, pwrite;
    pread64, pwrite64;
}

/// The pieces that a call is given.
///
/// # Safety
/// That of `readv`.
unsafe fn pieces<'a>(pieces: *const iovec, count: c_int) -> &'a [iovec] {
    match count > 0 && count <= MOST_PIECES && !pieces.is_null() {
        // SAFETY: the caller's.
        true => unsafe { std::slice::from_raw_parts(pieces, count as usize) },
        false => &[],
    }
}

pub fn meets(pieces: &[iovec]) -> bool {
    pieces
        .iter()
        .any(|piece| ranges::meets(piece.iov_base as usize, piece.iov_len))
}

/// One piece after the other, until one is not done whole.
fn each(pieces: &[iovec], mut one: impl FnMut(&iovec, off_t) -> ssize_t) -> ssize_t {
    let mut done = 0;
    for piece in pieces.iter().filter(|piece| piece.iov_len > 0) {
        let n = one(piece, done as off_t);
        if n < 0 {
            return if done > 0 { done } else { n };
        }
        done += n;
        if (n as usize) < piece.iov_len {
            break;
        }
    }
    done
}

/// Functions of several pieces: a file of the rack, or memory of it, has them one by one.
macro_rules! of_pieces {
    ($($name:ident, $one:ident;)*) => {$(
        /// # Safety
        /// See [`read`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, of: *const iovec, count: c_int) -> ssize_t {
            // SAFETY: the caller's.
            let parts = unsafe { pieces(of, count) };
            if fds::has(fd) || meets(parts) {
                // SAFETY: the caller's.
                return each(parts, |piece, _| unsafe { $one(fd, piece.iov_base, piece.iov_len) });
            }
            type Pieces = unsafe extern "C" fn(c_int, *const iovec, c_int) -> ssize_t;
            // SAFETY: the caller's.
            unsafe { next!($name: Pieces)(fd, of, count) }
        }
    )*};
}
of_pieces! {
    readv, read;
    writev, write;
}

/// The same at a place.
macro_rules! of_pieces_at {
    ($($name:ident, $one:ident;)*) => {$(
        /// # Safety
        /// See [`read`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            fd: c_int,
            of: *const iovec,
            count: c_int,
            at: off_t,
        ) -> ssize_t {
            // SAFETY: the caller's.
            let parts = unsafe { pieces(of, count) };
            if fds::has(fd) || meets(parts) {
                return each(parts, |piece, done| {
                    // SAFETY: the caller's.
                    unsafe { $one(fd, piece.iov_base, piece.iov_len, at + done) }
                });
            }
            type Pieces = unsafe extern "C" fn(c_int, *const iovec, c_int, off_t) -> ssize_t;
            // SAFETY: the caller's.
            unsafe { next!($name: Pieces)(fd, of, count, at) }
        }
    )*};
}
of_pieces_at! {
    preadv, pread;
    pwritev, pwrite;
    preadv64, pread64;
    pwritev64, pwrite64;
}

/// # Safety
/// See [`read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
) -> ssize_t {
    type Send = unsafe extern "C" fn(c_int, *const c_void, size_t, c_int) -> ssize_t;
    // SAFETY: the caller's.
    let call = |from, len| unsafe { next!(send: Send)(fd, from, len, flags) };
    match ranges::meets(from as usize, len) {
        false => call(from, len),
        true => through_out(from, len, call),
    }
}

/// # Safety
/// See [`read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, to: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    type Recv = unsafe extern "C" fn(c_int, *mut c_void, size_t, c_int) -> ssize_t;
    // SAFETY: the caller's.
    let call = |to, len| unsafe { next!(recv: Recv)(fd, to, len, flags) };
    match ranges::meets(to as usize, len) {
        false => call(to, len),
        true => through_in(to, len, call),
    }
}

/// # Safety
/// See [`read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    from: *const c_void,
    len: size_t,
    flags: c_int,
    whom: *const sockaddr,
    whose: socklen_t,
) -> ssize_t {
    type Send = unsafe extern "C" fn(
        c_int,
        *const c_void,
        size_t,
        c_int,
        *const sockaddr,
        socklen_t,
    ) -> ssize_t;
    // SAFETY: the caller's.
    let call = |from, len| unsafe { next!(sendto: Send)(fd, from, len, flags, whom, whose) };
    match ranges::meets(from as usize, len) {
        false => call(from, len),
        true => through_out(from, len, call),
    }
}

/// # Safety
/// See [`read`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    to: *mut c_void,
    len: size_t,
    flags: c_int,
    who: *mut sockaddr,
    whose: *mut socklen_t,
) -> ssize_t {
    type Recv = unsafe extern "C" fn(
        c_int,
        *mut c_void,
        size_t,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t;
    // SAFETY: the caller's.
    let call = |to, len| unsafe { next!(recvfrom: Recv)(fd, to, len, flags, who, whose) };
    match ranges::meets(to as usize, len) {
        false => call(to, len),
        true => through_in(to, len, call),
    }
}

pub fn seek(open: &Open, by: off_t, from: c_int) -> Done<off_t> {
    let mut at = open.at.lock().unwrap_or_else(PoisonError::into_inner);
    let base = match from {
        libc::SEEK_SET => 0,
        libc::SEEK_CUR => *at as i64,
        libc::SEEK_END => open.file.row()?.size as i64,
        _ => return Err(Errno(libc::EINVAL)),
    };
    let to = base
        .checked_add(by)
        .filter(|to| *to >= 0)
        .ok_or(Errno(libc::EINVAL))?;
    *at = to as u64;
    Ok(to)
}

/// Both names of `lseek`.
macro_rules! seeks {
    ($($name:ident),*) => {$(
        /// # Safety
        /// See [`read`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, by: off_t, from: c_int) -> off_t {
            if let Some(open) = fds::get(fd) {
                return answer(-1, || seek(&open, by, from));
            }
            // SAFETY: the caller's.
            unsafe { next!($name: unsafe extern "C" fn(c_int, off_t, c_int) -> off_t)(fd, by, from) }
        }
    )*};
}
seeks!(lseek, lseek64);

/// Both names of `fsync`: what this node has written goes where it outlives the node.
macro_rules! syncs {
    ($($name:ident),*) => {$(
        /// # Safety
        /// See [`read`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int) -> c_int {
            if let Some(open) = fds::get(fd) {
                return answer(-1, || open.file.sync(0..u64::MAX).map(|()| 0));
            }
            // SAFETY: the caller's.
            unsafe { next!($name: unsafe extern "C" fn(c_int) -> c_int)(fd) }
        }
    )*};
}
syncs!(fsync, fdatasync);

/// Both names of `sendfile`: the system would look for bytes where there are none.
macro_rules! sends_files {
    ($($name:ident),*) => {$(
        /// # Safety
        /// See [`read`].
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(to: c_int, from: c_int, at: *mut off_t, len: size_t) -> ssize_t {
            if let Some(open) = fds::get(from).or_else(|| fds::get(to)) {
                let text = format!("{}: no sendfile() of a file of the rack: read() and write() it", open.file.name);
                return answer(-1, || refuse(libc::EINVAL, &text));
            }
            type Send = unsafe extern "C" fn(c_int, c_int, *mut off_t, size_t) -> ssize_t;
            // SAFETY: the caller's.
            unsafe { next!($name: Send)(to, from, at, len) }
        }
    )*};
}
sends_files!(sendfile, sendfile64);
