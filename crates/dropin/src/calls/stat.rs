//! What a file is, and how long it shall be.

use super::open::{the_racks, the_racks_at};
use crate::answer::{Done, Errno, answer};
use crate::fds;
use crate::files::{self, How};
use crate::next::next;
use crate::table::{Row, State};
use libc::{c_char, c_int, c_uint, gid_t, mode_t, off_t, stat as Stat, uid_t};

/// The device that all files of the rack are on.
const DEVICE: u64 = 0x7261_636b;
const BLOCK: i64 = 4096;

fn told(row: &Row) -> Stat {
    // SAFETY: numbers, for all of which zero is one.
    let mut stat: Stat = unsafe { std::mem::zeroed() };
    stat.st_dev = DEVICE;
    stat.st_ino = row.number;
    stat.st_mode = libc::S_IFREG | row.mode;
    stat.st_nlink = u64::from(row.state == State::Named);
    // SAFETY: questions without arguments.
    (stat.st_uid, stat.st_gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    stat.st_size = row.size as i64;
    stat.st_blksize = BLOCK;
    stat.st_blocks = row.size.div_ceil(512) as i64;
    let (seconds, nanos) = (row.changed / 1_000_000_000, row.changed % 1_000_000_000);
    stat.st_mtime = seconds as i64;
    stat.st_mtime_nsec = nanos as i64;
    (stat.st_ctime, stat.st_ctime_nsec) = (stat.st_mtime, stat.st_mtime_nsec);
    (stat.st_atime, stat.st_atime_nsec) = (stat.st_mtime, stat.st_mtime_nsec);
    stat
}

/// Puts what is told of a row where the program wants it.
///
/// # Safety
/// It may be written.
unsafe fn tell(row: Done<Row>, into: *mut Stat) -> c_int {
    answer(-1, || {
        let stat = told(&row?);
        // SAFETY: the caller's.
        unsafe { into.write(stat) };
        Ok(0)
    })
}

fn row_of(fd: c_int) -> Done<Row> {
    fds::ours(fd)?.file.row()
}

/// # Safety
/// That of [`the_racks_at`].
unsafe fn named(path: *const c_char) -> Option<String> {
    // SAFETY: the caller's.
    unsafe { the_racks_at(libc::AT_FDCWD, path) }
}

/// Functions about a descriptor; the older ones are told a version first.
macro_rules! of_descriptors {
    ($($name:ident($($version:ident)?);)*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($version: c_int,)? fd: c_int, into: *mut Stat) -> c_int {
            match fds::has(fd) {
                // SAFETY: the caller's.
                true => unsafe { tell(row_of(fd), into) },
                // SAFETY: the caller's.
                false => unsafe { next!($name: of_descriptors!(@type $($version)?))($($version,)? fd, into) },
            }
        }
    )*};
    (@type version) => { unsafe extern "C" fn(c_int, c_int, *mut Stat) -> c_int };
    (@type) => { unsafe extern "C" fn(c_int, *mut Stat) -> c_int };
}
of_descriptors! {
    fstat();
    fstat64();
    __fxstat(version);
    __fxstat64(version);
}

/// Functions about a path.
macro_rules! of_paths {
    ($($name:ident($($version:ident)?);)*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($version: c_int,)?
            path: *const c_char,
            into: *mut Stat,
        ) -> c_int {
            // SAFETY: the caller's.
            unsafe {
                match named(path) {
                    Some(path) => tell(files::look_up(&path), into),
                    None => next!($name: of_paths!(@type $($version)?))($($version,)? path, into),
                }
            }
        }
    )*};
    (@type version) => { unsafe extern "C" fn(c_int, *const c_char, *mut Stat) -> c_int };
    (@type) => { unsafe extern "C" fn(*const c_char, *mut Stat) -> c_int };
}
of_paths! {
    stat();
    stat64();
    lstat();
    lstat64();
    __xstat(version);
    __xstat64(version);
    __lxstat(version);
    __lxstat64(version);
}

/// Functions about a path beside a folder, or about a descriptor where the path is empty.
macro_rules! beside {
    ($($name:ident($($version:ident)?);)*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($version: c_int,)?
            folder: c_int,
            path: *const c_char,
            into: *mut Stat,
            flags: c_int,
        ) -> c_int {
            // SAFETY: the caller's.
            unsafe {
                if flags & libc::AT_EMPTY_PATH != 0 && fds::has(folder) {
                    return tell(row_of(folder), into);
                }
                match the_racks_at(folder, path) {
                    Some(path) => tell(files::look_up(&path), into),
                    None => next!($name: beside!(@type $($version)?))($($version,)? folder, path, into, flags),
                }
            }
        }
    )*};
    (@type version) => {
        unsafe extern "C" fn(c_int, c_int, *const c_char, *mut Stat, c_int) -> c_int
    };
    (@type) => { unsafe extern "C" fn(c_int, *const c_char, *mut Stat, c_int) -> c_int };
}
beside! {
    fstatat();
    fstatat64();
    __fxstatat(version);
    __fxstatat64(version);
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn statx(
    folder: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    into: *mut libc::statx,
) -> c_int {
    let row = match flags & libc::AT_EMPTY_PATH != 0 && fds::has(folder) {
        true => Some(row_of(folder)),
        // SAFETY: the caller's.
        false => unsafe { the_racks_at(folder, path) }.map(|path| files::look_up(&path)),
    };
    let Some(row) = row else {
        type Statx =
            unsafe extern "C" fn(c_int, *const c_char, c_int, c_uint, *mut libc::statx) -> c_int;
        // SAFETY: the caller's.
        return unsafe { next!(statx: Statx)(folder, path, flags, mask, into) };
    };
    answer(-1, || {
        let stat = told(&row?);
        // SAFETY: numbers, for all of which zero is one.
        let mut told: libc::statx = unsafe { std::mem::zeroed() };
        told.stx_mask = libc::STATX_BASIC_STATS;
        told.stx_blksize = stat.st_blksize as u32;
        told.stx_nlink = stat.st_nlink as u32;
        (told.stx_uid, told.stx_gid) = (stat.st_uid, stat.st_gid);
        told.stx_mode = stat.st_mode as u16;
        told.stx_ino = stat.st_ino;
        told.stx_size = stat.st_size as u64;
        told.stx_blocks = stat.st_blocks as u64;
        told.stx_mtime.tv_sec = stat.st_mtime;
        told.stx_mtime.tv_nsec = stat.st_mtime_nsec as u32;
        told.stx_dev_minor = DEVICE as u32;
        // SAFETY: the caller's.
        unsafe { into.write(told) };
        Ok(0)
    })
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(path: *const c_char, how: c_int) -> c_int {
    // SAFETY: the caller's.
    match unsafe { named(path) } {
        Some(path) => answer(-1, || files::look_up(&path).map(|_| 0)),
        // SAFETY: the caller's.
        None => unsafe {
            next!(access: unsafe extern "C" fn(*const c_char, c_int) -> c_int)(path, how)
        },
    }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn faccessat(
    folder: c_int,
    path: *const c_char,
    how: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's.
    match unsafe { the_racks_at(folder, path) } {
        Some(path) => answer(-1, || files::look_up(&path).map(|_| 0)),
        None => {
            type Access = unsafe extern "C" fn(c_int, *const c_char, c_int, c_int) -> c_int;
            // SAFETY: the caller's.
            unsafe { next!(faccessat: Access)(folder, path, how, flags) }
        }
    }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fchmod(fd: c_int, mode: mode_t) -> c_int {
    if let Some(open) = fds::get(fd) {
        return answer(-1, || open.file.set_mode(mode).map(|()| 0));
    }
    // SAFETY: the caller's.
    unsafe { next!(fchmod: unsafe extern "C" fn(c_int, mode_t) -> c_int)(fd, mode) }
}

/// # Safety
/// That of the C library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fchown(fd: c_int, user: uid_t, group: gid_t) -> c_int {
    // Who may use the rack may use all of it.
    if fds::has(fd) {
        return 0;
    }
    // SAFETY: the caller's.
    unsafe { next!(fchown: unsafe extern "C" fn(c_int, uid_t, gid_t) -> c_int)(fd, user, group) }
}

fn set_size(fd: c_int, size: off_t) -> Done {
    let open = fds::ours(fd)?;
    open.writes().map_err(|_| Errno(libc::EINVAL))?;
    open.file
        .set_size(u64::try_from(size).map_err(|_| Errno(libc::EINVAL))?)
}

/// Both names of `ftruncate`.
macro_rules! cuts {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, size: off_t) -> c_int {
            match fds::has(fd) {
                true => answer(-1, || set_size(fd, size).map(|()| 0)),
                // SAFETY: the caller's.
                false => unsafe { next!($name: unsafe extern "C" fn(c_int, off_t) -> c_int)(fd, size) },
            }
        }
    )*};
}
cuts!(ftruncate, ftruncate64);

fn set_size_of(path: &str, size: off_t) -> Done {
    let size = u64::try_from(size).map_err(|_| Errno(libc::EINVAL))?;
    let file = files::open(path, How::default())?;
    let done = file.set_size(size);
    file.close().and(done)
}

/// Both names of `truncate`.
macro_rules! cuts_named {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(path: *const c_char, size: off_t) -> c_int {
            // SAFETY: the caller's.
            match unsafe { crate::calls::open::text(path) }.and_then(the_racks) {
                Some(path) => answer(-1, || set_size_of(&path, size).map(|()| 0)),
                None => {
                    type Cut = unsafe extern "C" fn(*const c_char, off_t) -> c_int;
                    // SAFETY: the caller's.
                    unsafe { next!($name: Cut)(path, size) }
                }
            }
        }
    )*};
}
cuts_named!(truncate, truncate64);

fn reserve(fd: c_int, at: off_t, len: off_t) -> Done {
    let open = fds::ours(fd)?;
    open.writes()?;
    let end = at.checked_add(len).filter(|_| at >= 0 && len > 0);
    let end = end.ok_or(Errno(libc::EINVAL))?;
    let _inside = crate::inside::Inside::enter();
    open.file.reach(end as u64)
}

/// Both names of `posix_fallocate`, which returns the error's number.
macro_rules! reserves {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, at: off_t, len: off_t) -> c_int {
            match fds::has(fd) {
                true => crate::answer::number(|| reserve(fd, at, len)),
                false => {
                    type Reserve = unsafe extern "C" fn(c_int, off_t, off_t) -> c_int;
                    // SAFETY: the caller's.
                    unsafe { next!($name: Reserve)(fd, at, len) }
                }
            }
        }
    )*};
}
reserves!(posix_fallocate, posix_fallocate64);

/// Both names of `fallocate`.
macro_rules! reserves_how {
    ($($name:ident),*) => {$(
        /// # Safety
        /// That of the C library's.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(fd: c_int, how: c_int, at: off_t, len: off_t) -> c_int {
            match fds::has(fd) {
                true if how == 0 => answer(-1, || reserve(fd, at, len).map(|()| 0)),
                true => answer(-1, || Err(Errno(libc::EOPNOTSUPP))),
                false => {
                    type Reserve = unsafe extern "C" fn(c_int, c_int, off_t, off_t) -> c_int;
                    // SAFETY: the caller's.
                    unsafe { next!($name: Reserve)(fd, how, at, len) }
                }
            }
        }
    )*};
}
reserves_how!(fallocate, fallocate64);
