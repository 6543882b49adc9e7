//! The end of the lease, as a word that any thread compares with a clock before it tells others
//! what it has read or written.

use rackmem_proto::membership::{self, Telling};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

/// To when this process may serve.
#[derive(Debug, Default)]
pub(crate) struct Term {
    /// By [`now`], ns; 0 for not at all.
    until: AtomicU64,
}

impl Term {
    /// Sets to when.
    pub fn set(&self, until: u64) {
        self.until.store(until, SeqCst);
    }

    /// Whether the lease holds now. No other thread of the process has to run for the answer to be
    /// right.
    #[inline]
    pub fn holds(&self) -> bool {
        membership::Term(self.until.load(SeqCst)).holds(now)
    }

    /// What to do now with what this thread has read and written.
    pub fn telling(&self, fenced: bool) -> Telling {
        membership::Term(self.until.load(SeqCst)).telling(fenced, now)
    }
}

/// The clock of the membership, ns. It goes on while the machine is suspended,
/// where the system has a clock that does.
#[cfg(target_os = "linux")]
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of this frame, which the call fills.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    debug_assert_eq!(failed, 0, "Linux has this clock since 2.6.39");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock of the membership, ns.
#[cfg(not(target_os = "linux"))]
pub(crate) fn now() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_ends_without_anybody_who_ends_it() {
        let term = Term::default();
        assert!(!term.holds());
        term.set(now() + 3_600_000_000_000);
        assert!(term.holds());
        let soon = now() + 5_000_000;
        term.set(soon);
        while now() < soon {
            std::thread::yield_now();
        }
        assert!(!term.holds());
        term.set(membership::Term::ENDLESS.0);
        assert!(term.holds());
    }
}
