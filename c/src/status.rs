//! What functions return, and the text of the last failure.

use rackmem::ErrorKind;
use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The version of the binary interface: a program that was compiled with another
/// `RM_ABI_VERSION` than `rm_abi_version()` returns must not go on.
pub const RM_ABI_VERSION: u32 = 0;

/// What a function has done.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rm_status {
    /// What was asked for.
    RM_OK = 0,
    /// Nothing: the time was over before the lock was free, the word had another value, or the
    /// object had another version.
    RM_NOT_NOW = 1,
    /// The lock is held, and who had it last died with it: look at what it protects.
    RM_OWNER_DIED = 2,
    /// Nothing has this name.
    RM_NOT_FOUND = -1,
    /// What is there is something else: of another size, type or contract.
    RM_MISMATCH = -2,
    /// What was asked for cannot be, or a pointer is NULL.
    RM_ARGUMENT = -3,
    /// The rack has no room left for this.
    RM_FULL = -4,
    /// A node or a majority has not answered in the rack's patience.
    RM_NO_ANSWER = -5,
    /// It has died with the node that had it, or has been removed or freed.
    RM_LOST = -6,
    /// The rack is closed here, or goes on without this process.
    RM_CLOSED = -7,
    /// The system does not let this process map memory of the rack.
    RM_NO_PAGING = -8,
    /// The process is a child by fork() of the one that the handle is of.
    RM_FORKED = -9,
    /// Anything else: rm_why_code() says which.
    RM_OTHER = -10,
    /// A fault of the library. What the handle is of may be in any state: close the rack.
    RM_FAULT = -11,
    /// What was read may be older than was promised: throw it away.
    RM_STALE = -12,
}

use rm_status::*;

/// A failure, or what there is to tell beside success.
pub struct Failed {
    status: rm_status,
    code: &'static str,
    text: String,
}

/// A result of what functions do.
pub type Done<T = rm_status> = Result<T, Failed>;

/// Bytes of a text or a code, with the zero at its end.
const ROOM: usize = 512;

struct Why {
    text: [u8; ROOM],
    code: [u8; 64],
}

thread_local! {
    static WHY: RefCell<Why> = const { RefCell::new(Why { text: [0; ROOM], code: [0; 64] }) };
}

fn put(into: &mut [u8], text: &str) {
    let most = into.len() - 1;
    let mut len = text.len().min(most);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    into[..len].copy_from_slice(&text.as_bytes()[..len]);
    into[len] = 0;
}

impl Failed {
    /// One that only this library has.
    pub fn new(status: rm_status, code: &'static str, text: impl Into<String>) -> Failed {
        let text = text.into();
        Failed { status, code, text }
    }

    /// An argument that cannot be.
    pub fn argument(what: &str) -> Failed {
        let text = format!("{what}; nothing has changed; correct the call");
        Failed::new(RM_ARGUMENT, "bad-argument", text)
    }
}

impl<E: Into<rackmem::Error>> From<E> for Failed {
    fn from(error: E) -> Failed {
        let error = error.into();
        let status = match error.kind() {
            ErrorKind::NotFound => RM_NOT_FOUND,
            ErrorKind::Mismatch => RM_MISMATCH,
            ErrorKind::Argument => RM_ARGUMENT,
            ErrorKind::Full => RM_FULL,
            ErrorKind::NoAnswer => RM_NO_ANSWER,
            ErrorKind::Lost => RM_LOST,
            ErrorKind::Closed => RM_CLOSED,
            ErrorKind::NoPaging => RM_NO_PAGING,
            ErrorKind::Stale => RM_STALE,
            _ => RM_OTHER,
        };
        Failed::new(status, error.code(), error.to_string())
    }
}

/// Runs what a function does: a panic ends here.
pub fn call(f: impl FnOnce() -> Done) -> rm_status {
    let failed = match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(status)) => return status,
        Ok(Err(failed)) => failed,
        Err(_) => {
            let text = "a fault of the library, whose text is on the standard error; \
                        it may or may not have happened; close the rack and report it";
            Failed::new(RM_FAULT, "fault", text)
        }
    };
    // A thread that ends has no text any more.
    let _ = WHY.try_with(|why| {
        let mut why = why.borrow_mut();
        put(&mut why.text, &failed.text);
        put(&mut why.code, failed.code);
    });
    failed.status
}

/// The version of the binary interface that the library has: RM_ABI_VERSION of its header.
#[unsafe(no_mangle)]
pub extern "C" fn rm_abi_version() -> u32 {
    RM_ABI_VERSION
}

/// The text of this thread's last failure: what has happened; whether anything has changed; what to
/// do. It lasts until the thread's next failure. Empty: there was none.
#[unsafe(no_mangle)]
pub extern "C" fn rm_why() -> *const c_char {
    let at = WHY.try_with(|why| why.borrow().text.as_ptr().cast());
    at.unwrap_or(c"the thread ends".as_ptr())
}

/// The cause of this thread's last failure in a word that stays the same in later versions.
#[unsafe(no_mangle)]
pub extern "C" fn rm_why_code() -> *const c_char {
    let at = WHY.try_with(|why| why.borrow().code.as_ptr().cast());
    at.unwrap_or(c"fault".as_ptr())
}

/// What a status is called.
#[unsafe(no_mangle)]
pub extern "C" fn rm_status_name(status: c_int) -> *const c_char {
    const NAMES: &[(rm_status, &std::ffi::CStr)] = &[
        (RM_OK, c"RM_OK"),
        (RM_NOT_NOW, c"RM_NOT_NOW"),
        (RM_OWNER_DIED, c"RM_OWNER_DIED"),
        (RM_NOT_FOUND, c"RM_NOT_FOUND"),
        (RM_MISMATCH, c"RM_MISMATCH"),
        (RM_ARGUMENT, c"RM_ARGUMENT"),
        (RM_FULL, c"RM_FULL"),
        (RM_NO_ANSWER, c"RM_NO_ANSWER"),
        (RM_LOST, c"RM_LOST"),
        (RM_CLOSED, c"RM_CLOSED"),
        (RM_NO_PAGING, c"RM_NO_PAGING"),
        (RM_FORKED, c"RM_FORKED"),
        (RM_OTHER, c"RM_OTHER"),
        (RM_FAULT, c"RM_FAULT"),
        (RM_STALE, c"RM_STALE"),
    ];
    let row = NAMES.iter().find(|row| row.0 as c_int == status);
    row.map_or(c"no status".as_ptr(), |row| row.1.as_ptr())
}
