//! Page faults that this process handles itself, and memory whose pages are absent, read-only or
//! there as it says: all that is unsafe about both.
//!
//! | what | where |
//! |---|---|
//! | the system's calls | `userfault.rs` |
//! | a file whose pages come and go | `page_file.rs` |
//! | the same mapped twice: for a program, and for who copies its bytes | `view.rs` |
//! | faults as signals to the threads that have them | `signal.rs` |

pub(crate) mod page_file;
pub(crate) mod signal;
pub(crate) mod userfault;
pub(crate) mod view;

/// Bytes of a page of the system's.
pub(crate) fn system_page() -> usize {
    // SAFETY: a question without arguments.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).unwrap_or(4096)
}
