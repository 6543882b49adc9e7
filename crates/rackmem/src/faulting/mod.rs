//! Page faults that this process handles itself, and memory whose pages are absent, read-only or
//! there as it says: all that is unsafe about both.
//!
//! | what | where |
//! |---|---|
//! | the system's calls | `userfault.rs` |
//! | a file whose pages come and go | `page_file.rs` |
//! | the same mapped twice: for a program, and for who copies its bytes | `view.rs` |
//! | faults as signals to the threads that have them | `signal.rs` |
//! | threads that handle the faults of others | `handlers.rs` |
//! | rights by `mprotect`, without userfaultfd | `protection.rs` |

mod handlers;
pub(crate) mod page_file;
mod protection;
pub(crate) mod signal;
pub(crate) mod userfault;
pub(crate) mod view;

use crate::error::RegionError;

/// How faults of mapped memory come to the library ([`Region::map_with`](crate::Region::map_with)).
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{FaultMode, Rack, RegionSpec};
/// use std::sync::atomic::Ordering::SeqCst;
///
/// let rack = Rack::local(1)?;
/// let region = rack.node(0).create_region(&RegionSpec::new("words", 4096))?;
/// let allowed = FaultMode::ALL.iter().find(|mode| mode.is_allowed().is_ok());
/// if let Some(mode) = allowed {
///     let pages = region.map_with(*mode)?;
///     assert_eq!(pages.words()[0].fetch_add(1, SeqCst), 0);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum FaultMode {
    /// As `SIGBUS` to the thread that has loaded or stored, which brings the page itself: the
    /// fastest. It takes userfaultfd (Linux 5.19) and no privilege. A thread must not block the
    /// signal, and system calls find pinned pages only.
    #[default]
    Signal,
    /// To threads of the library. Threads may block signals, and where the process may have the
    /// faults of system calls (root, `CAP_SYS_PTRACE`, a readable `/dev/userfaultfd`) these wait
    /// for pages that are not there. A fault takes two switches of threads more, some 40 µs where
    /// processors sleep.
    Thread,
    /// As `SIGSEGV`, with rights by `mprotect(2)`: for systems without userfaultfd. What
    /// [`FaultMode::Signal`] asks of threads and system calls holds here. Each run of pages with
    /// one right is a mapping for the system, of which a process may have 65,530
    /// (`vm.max_map_count`): where it has, all pages are hidden and come again
    /// ([`FaultCounts::crowded`](crate::FaultCounts::crowded)).
    Mprotect,
}

impl FaultMode {
    /// All of them, the fastest first.
    pub const ALL: [FaultMode; 3] = [FaultMode::Signal, FaultMode::Mprotect, FaultMode::Thread];

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            FaultMode::Signal => "signal",
            FaultMode::Thread => "thread",
            FaultMode::Mprotect => "mprotect",
        }
    }

    /// Whether this process may have such faults.
    ///
    /// # Errors
    /// [`RegionError::NoPaging`] says what the system refuses.
    pub fn is_allowed(self) -> Result<(), RegionError> {
        view::View::new(system_page(), self).map(drop)
    }

    /// Whether system calls wait for pages that are not there.
    pub fn serves_system_calls(self) -> bool {
        let faults = (self == FaultMode::Thread).then(userfault::Faults::open);
        faults.is_some_and(|faults| faults.is_ok_and(|faults| faults.of_system_calls))
    }

    /// How long a page stays that was just shown, in nanoseconds: long enough for the instruction
    /// that asked, and for some more, where nodes take a page from each other.
    pub(crate) const fn hold(self) -> u64 {
        match self {
            FaultMode::Signal | FaultMode::Mprotect => 10_000,
            // Who has asked sleeps, and may take that long to wake up.
            FaultMode::Thread => 100_000,
        }
    }
}

/// Bytes of a page of the system's.
pub(crate) fn system_page() -> usize {
    // SAFETY: a question without arguments.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).unwrap_or(4096)
}
