//! What the processor does with its cache when a program says so: lines are written back, and
//! dropped.
//!
//! | for | instruction | ordered by |
//! |---|---|---|
//! | write back, the line stays | `clwb`; else as for dropping | `sfence` |
//! | drop, written back if need be | `clflushopt`, else `clflush` | `mfence`, once a batch |
//!
//! `clflush` waits for itself; `clflushopt` and `clwb` of different lines run side by side, so a
//! batch has one fence. The manuals order them with earlier stores to the same line.

use rackmem_proto::bi::LINE;
use std::sync::atomic::AtomicU64;

/// An instruction that drops lines, or writes them back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineOp {
    /// Writes back, and may keep the line.
    Clwb,
    /// Writes back and drops.
    ClflushOpt,
    /// The same, one after the other.
    Clflush,
}

impl LineOp {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            LineOp::Clwb => "clwb",
            LineOp::ClflushOpt => "clflushopt",
            LineOp::Clflush => "clflush",
        }
    }

    /// Whether this processor has it.
    pub fn is_there(self) -> bool {
        self.find().is_some()
    }

    /// The operation, if this processor has it. Asking takes long where a machine is virtual.
    pub fn find(self) -> Option<FoundOp> {
        there(self).then_some(FoundOp(self))
    }
}

/// An operation that this processor has.
///
/// ```
/// use rackmem::bounded::LineOp;
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// let words = [const { AtomicU64::new(7) }; 32];
/// if let Some(clwb) = LineOp::Clwb.find() {
///     clwb.run(&words); // four or five lines are in memory now
/// }
/// assert!(words.iter().all(|word| word.load(Relaxed) == 7));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundOp(LineOp);

impl FoundOp {
    /// Runs it on each line that has some of these words, and waits for that.
    pub fn run(self, words: &[AtomicU64]) {
        each_line(self.0, words);
        match self.0 {
            LineOp::Clwb => written(),
            LineOp::ClflushOpt | LineOp::Clflush => dropped(),
        }
    }
}

/// The instructions that are used here.
///
/// ```
/// use rackmem::bounded::CacheOps;
///
/// match CacheOps::detect() {
///     Ok(ops) => println!("write back: {}, drop: {}", ops.write_back.name(), ops.drop.name()),
///     Err(error) => println!("{error}"), // only `bounded::Domain`, whose copies are its own
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheOps {
    /// For what was stored.
    pub write_back: LineOp,
    /// For what others may have stored.
    pub drop: LineOp,
}

impl CacheOps {
    /// Those of this processor.
    ///
    /// # Errors
    /// [`ArenaError::NoCacheOperations`](crate::ArenaError::NoCacheOperations) where it has none
    /// that this version knows.
    pub fn detect() -> Result<CacheOps, crate::error::ArenaError> {
        use LineOp::{Clflush, ClflushOpt, Clwb};
        let first = |ops: &[LineOp]| ops.iter().copied().find(|op| op.is_there());
        let found = first(&[Clwb, ClflushOpt, Clflush]).zip(first(&[ClflushOpt, Clflush]));
        let (write_back, drop) = found.ok_or(crate::error::ArenaError::NoCacheOperations {
            missing: "clflush, clflushopt or clwb of x86-64",
        })?;
        Ok(CacheOps { write_back, drop })
    }
}

/// Runs it on each line that has some of these words. No fence.
#[inline]
pub(super) fn each_line(op: LineOp, words: &[AtomicU64]) {
    for line in words.chunks(LINE as usize / 8) {
        if let Some(word) = line.first() {
            one(op, word);
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use super::LineOp;
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count, _mm_mfence, _mm_sfence};
    use std::sync::atomic::AtomicU64;

    #[allow(unused_unsafe, reason = "safe from Rust 1.94 on")]
    pub fn there(op: LineOp) -> bool {
        // SAFETY: every processor of this architecture has CPUID; leaf 0 says which leaves there
        // are.
        let (leaves, one, seven) = unsafe {
            let leaves = __cpuid(0).eax;
            (leaves, __cpuid(1).edx, __cpuid_count(7, 0).ebx)
        };
        match op {
            LineOp::Clflush => one >> 19 & 1 == 1,
            LineOp::ClflushOpt => leaves >= 7 && seven >> 23 & 1 == 1,
            LineOp::Clwb => leaves >= 7 && seven >> 24 & 1 == 1,
        }
    }

    #[inline]
    pub fn one(op: LineOp, word: &AtomicU64) {
        let at = word.as_ptr();
        // SAFETY: the address is of a live word, so its line is mapped. None of the three changes
        // what any load returns on this machine: they move a line between cache and memory. The
        // caller has found the instruction to be there. They count as reads and writes of memory
        // for the compiler, which keeps them in their place.
        unsafe {
            match op {
                LineOp::Clwb => asm!("clwb [{}]", in(reg) at, options(nostack, preserves_flags)),
                LineOp::ClflushOpt => {
                    asm!("clflushopt [{}]", in(reg) at, options(nostack, preserves_flags));
                }
                LineOp::Clflush => {
                    asm!("clflush [{}]", in(reg) at, options(nostack, preserves_flags));
                }
            }
        }
    }

    #[inline]
    pub fn written() {
        // SAFETY: SSE is part of the architecture.
        unsafe { _mm_sfence() };
    }

    #[inline]
    pub fn dropped() {
        // SAFETY: SSE2 is part of the architecture.
        unsafe { _mm_mfence() };
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod x86 {
    use super::LineOp;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst, fence};

    pub fn there(_: LineOp) -> bool {
        false
    }

    /// Never called: no operation is there.
    pub fn one(_: LineOp, _: &AtomicU64) {}

    pub fn written() {
        fence(SeqCst);
    }

    pub fn dropped() {
        fence(SeqCst);
    }
}

pub(super) use x86::{dropped, written};
use x86::{one, there};

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    /// On a machine whose caches are coherent nothing is seen of them but that nothing is lost.
    #[test]
    fn no_operation_changes_what_is_there() {
        let words: Vec<AtomicU64> = (0..64).map(AtomicU64::new).collect();
        for op in [LineOp::Clwb, LineOp::ClflushOpt, LineOp::Clflush] {
            if op.is_there() {
                each_line(op, &words);
                written();
                dropped();
            }
        }
        assert!((0..64).all(|at| words[at as usize].load(Relaxed) == at));
        if let Ok(ops) = CacheOps::detect() {
            assert!(ops.write_back.is_there() && ops.drop.is_there());
            assert_ne!(ops.drop, LineOp::Clwb);
        }
    }
}
