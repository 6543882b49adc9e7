//! A fence in two unequal halves: one side passes it millions of times a second, and the other once
//! in a while.
//!
//! The cheap half keeps the compiler's order and costs nothing. The dear one has the kernel put a
//! whole fence into every running thread of this process (`membarrier`). So what a thread has done
//! before a cheap half is visible after the dear one, or what it does after the cheap half sees all
//! that was done before the dear one. Where the kernel has no such call, both are whole fences.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, compiler_fence, fence};

/// Whether the cheap half may be cheap. Said before the first section, and never taken back.
static UNEQUAL: AtomicBool = AtomicBool::new(false);

/// The cheap half.
#[inline]
pub(crate) fn light_fence() {
    match UNEQUAL.load(Relaxed) {
        true => compiler_fence(SeqCst),
        false => fence(SeqCst),
    }
}

/// The dear half. Whether it has been through every thread: where it was not, nothing is known of
/// them.
pub(crate) fn heavy_fence() -> bool {
    fence(SeqCst);
    !UNEQUAL.load(Relaxed) || membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
}

/// Has the kernel know of this process, once. From then on cheap halves are cheap.
pub(crate) fn use_unequal_fences() {
    static ASKED: OnceLock<()> = OnceLock::new();
    ASKED.get_or_init(|| {
        let there = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        UNEQUAL.store(there, SeqCst);
        // A thread that has passed a whole fence instead has lost nothing.
    });
}

fn membarrier(command: libc::c_int) -> bool {
    if cfg!(miri) {
        return false;
    }
    // SAFETY: the call takes numbers and touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_work_before_and_after_the_kernel_knows_of_it() {
        light_fence();
        assert!(heavy_fence());
        use_unequal_fences();
        use_unequal_fences();
        light_fence();
        assert!(heavy_fence());
    }
}
