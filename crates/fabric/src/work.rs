//! What moving packets over sockets costs a process: system calls, datagrams, and how often its
//! threads slept.

use std::cell::Cell;
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A process's figures since it began. Calls of the fabric only; sleeps are those of all its
/// threads, whatever they waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Calls that sent datagrams.
    pub sends: u64,
    /// Calls that looked for datagrams, or waited for one.
    pub receives: u64,
    /// Of those, looks in vain.
    pub in_vain: u64,
    /// Calls that gave the processor away between two looks.
    pub yields: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Datagrams received.
    pub datagrams_in: u64,
    /// How often a thread has slept and was woken, for a datagram or anything else.
    pub sleeps: u64,
}

impl Work {
    /// Of this process, now.
    pub fn now() -> Work {
        let sum = |what: What| {
            let each = COUNTS
                .iter()
                .map(|counts| counts.0[what as usize].load(Relaxed));
            each.fold(0, u64::wrapping_add)
        };
        Work {
            sends: sum(What::Sends),
            receives: sum(What::Receives),
            in_vain: sum(What::InVain),
            yields: sum(What::Yields),
            datagrams_out: sum(What::Out),
            datagrams_in: sum(What::In),
            sleeps: sleeps(),
        }
    }

    /// System calls of the fabric.
    pub fn system_calls(&self) -> u64 {
        self.sends + self.receives + self.yields
    }
}

impl Sub for Work {
    type Output = Work;
    fn sub(self, before: Work) -> Work {
        Work {
            sends: self.sends - before.sends,
            receives: self.receives - before.receives,
            in_vain: self.in_vain - before.in_vain,
            yields: self.yields - before.yields,
            datagrams_out: self.datagrams_out - before.datagrams_out,
            datagrams_in: self.datagrams_in - before.datagrams_in,
            sleeps: self.sleeps - before.sleeps,
        }
    }
}

/// What is counted.
#[derive(Clone, Copy)]
pub(crate) enum What {
    Sends,
    Receives,
    InVain,
    Yields,
    Out,
    In,
}

/// Figures; threads share one only where there are many.
#[repr(align(128))]
struct Counts([AtomicU64; 6]);

static COUNTS: [Counts; 16] = [const { Counts([const { AtomicU64::new(0) }; 6]) }; 16];
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<Option<&'static Counts>> = const { Cell::new(None) };
}

/// Adds to a figure.
#[inline]
pub(crate) fn count(what: What, more: u64) {
    let mine = MINE.get().unwrap_or_else(|| {
        let mine = &COUNTS[THREADS.fetch_add(1, Relaxed) % COUNTS.len()];
        MINE.set(Some(mine));
        mine
    });
    mine.0[what as usize].fetch_add(more, Relaxed);
}

/// Voluntary context switches of all threads of this process, those that have ended included.
fn sleeps() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a local of the type that the call fills, and all zeros is a value
    // of it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_nvcsw).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn figures_of_all_threads_add_up_and_sleeps_are_seen() {
        let before = Work::now();
        count(What::Out, 2);
        let other = std::thread::spawn(|| {
            count(What::Out, 3);
            count(What::Sends, 1);
            std::thread::sleep(Duration::from_millis(1));
        });
        other.join().unwrap();
        let done = Work::now() - before;
        // Other tests of this process send as well.
        assert!(done.datagrams_out >= 5 && done.sends >= 1, "{done:?}");
        assert!(done.sleeps >= 1, "{done:?}");
        assert!(done.system_calls() >= 1);
    }
}
