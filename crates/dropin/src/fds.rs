//! File descriptors that stand for files of the rack. To the system each is a place without
//! content (`O_PATH`), so a call that this library does not know fails and does nothing wrong.

use crate::answer::{Done, Errno, errno};
use crate::files::File;
use crate::member;
use libc::c_int;
use std::collections::HashMap;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Descriptors with higher numbers are refused.
const MOST: usize = 1 << 16;

/// Which numbers are ours: for calls about all others, which are many.
static BITS: [AtomicU64; MOST / 64] = [const { AtomicU64::new(0) }; MOST / 64];
static OPEN: RwLock<Option<HashMap<c_int, Arc<Open>>>> = RwLock::new(None);
static NUMBERS: AtomicU32 = AtomicU32::new(1);

/// What descriptors have in common that are copies of each other.
pub struct Open {
    pub file: Arc<File>,
    /// Of `open`, and of what [`Open::set_appends`] was told since.
    flags: AtomicI32,
    /// Unique in the process.
    pub number: u32,
    /// The next byte that is read or written.
    pub at: Mutex<u64>,
}

impl Open {
    pub fn flags(&self) -> c_int {
        self.flags.load(Relaxed)
    }

    /// Whether each write goes behind what is there: the only flag that can be changed and is of
    /// use here.
    pub fn set_appends(&self, appends: bool) {
        match appends {
            true => self.flags.fetch_or(libc::O_APPEND, Relaxed),
            false => self.flags.fetch_and(!libc::O_APPEND, Relaxed),
        };
    }

    pub fn reads(&self) -> Done {
        let may = self.flags() & libc::O_ACCMODE != libc::O_WRONLY;
        may.then_some(()).ok_or(Errno(libc::EBADF))
    }

    pub fn writes(&self) -> Done {
        let may = self.flags() & libc::O_ACCMODE != libc::O_RDONLY;
        may.then_some(()).ok_or(Errno(libc::EBADF))
    }
}

fn bit(fd: c_int) -> Option<(&'static AtomicU64, u64)> {
    let fd = usize::try_from(fd).ok()?;
    Some((BITS.get(fd / 64)?, 1 << (fd % 64)))
}

/// Whether a descriptor is ours. A child by `fork` has none.
#[inline]
pub fn has(fd: c_int) -> bool {
    bit(fd).is_some_and(|(word, bit)| word.load(Relaxed) & bit != 0) && !member::is_forked()
}

pub fn get(fd: c_int) -> Option<Arc<Open>> {
    if !has(fd) {
        return None;
    }
    let open = OPEN.read().unwrap_or_else(PoisonError::into_inner);
    open.as_ref()?.get(&fd).cloned()
}

/// The same of a descriptor of which [`has`] says yes.
pub fn ours(fd: c_int) -> Done<Arc<Open>> {
    get(fd).ok_or(Errno(libc::EBADF))
}

/// A number that the system gives to nothing else.
fn place(flags: c_int) -> Done<c_int> {
    let flags = libc::O_PATH | flags & libc::O_CLOEXEC;
    // SAFETY: the path is a string that ends with a zero.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            c"/dev/null".as_ptr(),
            flags,
        )
    };
    let fd = fd as c_int;
    if fd < 0 {
        return Err(Errno(errno()));
    }
    if bit(fd).is_none() {
        close_number(fd);
        return Err(Errno(libc::EMFILE));
    }
    Ok(fd)
}

pub fn close_number(fd: c_int) {
    // SAFETY: it is this library's own.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}

/// A new descriptor.
pub fn open(file: Arc<File>, flags: c_int) -> Done<c_int> {
    let fd = match place(flags) {
        Ok(fd) => fd,
        Err(error) => return file.close().and(Err(error)),
    };
    let open = Open {
        file,
        flags: AtomicI32::new(flags),
        number: NUMBERS.fetch_add(1, Relaxed),
        at: Mutex::new(0),
    };
    add(fd, Arc::new(open));
    Ok(fd)
}

/// A number that the system has given is a descriptor of this.
pub fn add(fd: c_int, is: Arc<Open>) {
    let mut open = OPEN.write().unwrap_or_else(PoisonError::into_inner);
    open.get_or_insert_default().insert(fd, is);
    if let Some((word, bit)) = bit(fd) {
        word.fetch_or(bit, SeqCst);
    }
}

/// What a number stood for, which it does no more; and whether it was the last.
pub fn remove(fd: c_int) -> Option<(Arc<Open>, bool)> {
    let mut open = OPEN.write().unwrap_or_else(PoisonError::into_inner);
    let (word, bit) = bit(fd)?;
    word.fetch_and(!bit, SeqCst);
    let open = open.as_mut()?;
    let was = open.remove(&fd)?;
    let last = !open.values().any(|other| Arc::ptr_eq(other, &was));
    Some((was, last))
}
