//! What programs do at the edges of mapped memory: children, blocked signals, words over two pages,
//! addresses that are not the mapping's any more.

use super::{A_WHILE, BLOCK, FABRICS, as_a_child, mapped, mapped_with, rack};
use rackmem::{AccessError, CoherentPages, Fabric, FaultMode, Mode, RegionError};
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Instant;

/// A child by `fork` has no mapping: it ends by a signal where it loads, also what is here, and
/// ends as it likes where it does not. The parent loses nothing.
#[test]
fn a_child_does_not_have_the_mapping() {
    for mode in FaultMode::ALL {
        let rack = rack(Fabric::Udp, Mode::HomeOnly, 1 << 20);
        let all = mapped_with(&rack, 2 * BLOCK, mode);
        all[1].words()[0].store(7, SeqCst);
        let word = |at: usize| all[1].words()[at].as_ptr();
        for at in [0, BLOCK / 8] {
            let address = word(at);
            let ended = forked(|| {
                // SAFETY: there is no such memory in the child, which is what is shown.
                let found = unsafe { address.read_volatile() };
                100 + found as i32
            });
            assert_eq!(ended, Err(libc::SIGSEGV), "{mode:?}");
        }
        assert_eq!(forked(|| 3), Ok(3));
        assert_eq!(all[2].words()[0].fetch_add(1, SeqCst), 7);
        assert_eq!(all[1].words()[0].load(SeqCst), 8);
    }
}

/// What a child ends with: a number, or a signal.
fn forked(child: impl FnOnce() -> i32) -> Result<i32, libc::c_int> {
    // SAFETY: the child calls nothing but what ends it, and allocates nothing.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // SAFETY: both take numbers. What the program does about the signal the child has not.
        unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
        let ended = child();
        // SAFETY: the same.
        unsafe { libc::_exit(ended) };
    }
    let mut status = 0;
    // SAFETY: the pointer is to a local.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    match libc::WIFSIGNALED(status) {
        true => Err(libc::WTERMSIG(status)),
        false => Ok(libc::WEXITSTATUS(status)),
    }
}

const BLOCKED: &str = "RACKMEM_TEST_BLOCKED_SIGNALS";

/// A thread that blocks all signals dies of a miss where faults are signals, as the system has it,
/// and does not where threads of the library handle them. The children are this test again.
#[test]
fn a_thread_may_block_signals_where_threads_handle_faults() {
    let Some(mode) = std::env::var_os(BLOCKED) else {
        for mode in FaultMode::ALL {
            let test = "edges::a_thread_may_block_signals_where_threads_handle_faults";
            let ended = as_a_child(test, (BLOCKED, mode.name()));
            let told = String::from_utf8_lossy(&ended.stderr);
            let (lives, signal) = match mode {
                FaultMode::Thread => (true, None),
                FaultMode::Mprotect => (false, Some(libc::SIGSEGV)),
                FaultMode::Signal => (false, Some(libc::SIGBUS)),
            };
            assert_eq!(ended.status.success(), lives, "{mode:?} {told}");
            assert_eq!(ended.status.signal(), signal, "{mode:?} {told}");
        }
        return;
    };
    let mode = FaultMode::ALL.into_iter().find(|of| mode == of.name());
    let rack = rack(Fabric::Shm, Mode::HomeOnly, 1 << 20);
    let all = mapped_with(&rack, BLOCK, mode.unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: a set of signals of this frame.
            let blocked = unsafe {
                let mut all: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut())
            };
            assert_eq!(blocked, 0);
            all[1].words()[0].store(1, SeqCst);
        });
    });
    assert_eq!(all[2].words()[0].load(SeqCst), 1);
}

/// A store of eight bytes over two pages needs both at once, of which others take each.
#[test]
fn stores_over_two_pages_finish() {
    const ROUNDS: u64 = 300;
    for mode in FaultMode::ALL {
        for fabric in FABRICS {
            let rack = rack(fabric, Mode::HomeOnly, 1 << 20);
            let all = mapped_with(&rack, 2 * BLOCK, mode);
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let across = |pages: &CoherentPages, value: u64| {
                    let at = pages.as_ptr().wrapping_add(BLOCK - 4).cast::<u64>();
                    // SAFETY: eight bytes of the mapping. Others change them by instructions that
                    // no compiler has in hand.
                    unsafe { at.write_volatile_unaligned(value) };
                };
                let others = [&all[0], &all[2]].map(|pages| {
                    let over = &over;
                    scope.spawn(move || {
                        while !over.load(Relaxed) {
                            pages.words()[0].fetch_add(1, SeqCst);
                            pages.words()[BLOCK / 8 + 5].fetch_add(1, SeqCst);
                        }
                    })
                });
                for round in 0..ROUNDS {
                    across(&all[1], round << 32 | round);
                }
                over.store(true, Relaxed);
                others.into_iter().for_each(|other| other.join().unwrap());
            });
            let mut bytes = [0; 8];
            for (byte, at) in bytes.iter_mut().zip(BLOCK - 4..) {
                *byte = all[0].bytes()[at].load(SeqCst);
            }
            let last = ROUNDS - 1;
            assert_eq!(
                u64::from_ne_bytes(bytes),
                last << 32 | last,
                "{mode:?} {fabric:?}"
            );
        }
    }
}

/// A store that the processor does as one instruction.
trait Unaligned {
    unsafe fn write_volatile_unaligned(self, value: u64);
}

impl Unaligned for *mut u64 {
    unsafe fn write_volatile_unaligned(self, value: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's.
        unsafe {
            std::arch::asm!("mov qword ptr [{at}], {value}", at = in(reg) self, value = in(reg) value);
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: the same.
        unsafe {
            self.write_unaligned(value);
        }
    }
}

/// For a second all nodes add to one word: each does, whatever the others do.
#[test]
fn all_nodes_add_to_a_word_for_a_second() {
    for mode in FaultMode::ALL {
        let rack = rack(Fabric::Shm, Mode::HomeOnly, 1 << 20);
        let all = mapped_with(&rack, BLOCK, mode);
        let counts: Vec<AtomicU64> = all.iter().map(|_| AtomicU64::new(0)).collect();
        let began = Instant::now();
        std::thread::scope(|scope| {
            for (pages, count) in all.iter().zip(&counts) {
                let few = || counts.iter().any(|count| count.load(Relaxed) < 10);
                scope.spawn(move || {
                    // However slow the machine is, all have their turns in the end.
                    while began.elapsed() < 10 * A_WHILE || few() {
                        pages.words()[0].fetch_add(1, SeqCst);
                        count.fetch_add(1, Relaxed);
                    }
                });
            }
        });
        let sum: u64 = counts.iter().map(|count| count.load(Relaxed)).sum();
        assert_eq!(all[0].words()[0].load(SeqCst), sum, "{mode:?} {counts:?}");
    }
}

const UNMAPS: &str = "RACKMEM_TEST_UNMAPS";
/// How that process says that all of it was so.
const UNMAPPED: i32 = 42;

/// Whoever unmaps what a handle is on hears of it, and waits for nothing. In a process of its own,
/// which ends with the handle: one that is dropped would unmap what the system has put there since.
#[test]
fn addresses_that_are_unmapped_are_an_error() {
    if std::env::var_os(UNMAPS).is_none() {
        let test = "edges::addresses_that_are_unmapped_are_an_error";
        let ended = as_a_child(test, (UNMAPS, "1"));
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(UNMAPPED), "{told}");
        return;
    }
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 1 << 20);
    let all = mapped(&rack, 2 * BLOCK);
    let second = all[1].as_ptr().wrapping_add(BLOCK);
    // SAFETY: a page of the mapping that nobody has touched, and nobody will by an instruction.
    assert_eq!(unsafe { libc::munmap(second.cast(), BLOCK) }, 0);
    for stores in [false, true] {
        let gone = all[1].touch(BLOCK..2 * BLOCK, stores).unwrap_err();
        let RegionError::Access(AccessError::NotShown { .. }) = gone else {
            panic!("{gone}");
        };
    }
    all[1].words()[0].store(1, SeqCst);
    all[2].words()[BLOCK / 8].store(2, SeqCst);
    assert_eq!(all[0].words()[0].load(SeqCst), 1);
    std::process::exit(UNMAPPED);
}
