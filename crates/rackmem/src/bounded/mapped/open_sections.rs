//! Which sections of this process are open: what a quiescence waits for.
//!
//! There are two counts, and one of them is current. A thread counts itself in the current one, and
//! looks again: if the other one has become current meanwhile it was too late, and tries anew. Who
//! waits makes the other count current first; whoever is in the earlier one then was there before.

use crate::sync::{AtomicU64, Ordering::SeqCst};

/// Places to count, so that threads on different processors seldom share a line.
const SHARDS: usize = 8;

#[repr(align(64))]
struct Counts([AtomicU64; 2]);

/// See the module.
pub(crate) struct OpenSections<const PLACES: usize = SHARDS> {
    current: AtomicU64,
    counts: [Counts; PLACES],
}

/// Where a section is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    shard: usize,
    of: usize,
}

impl<const PLACES: usize> OpenSections<PLACES> {
    /// None is open.
    pub fn new() -> Self {
        let none = || Counts([AtomicU64::new(0), AtomicU64::new(0)]);
        OpenSections {
            current: AtomicU64::new(0),
            counts: std::array::from_fn(|_| none()),
        }
    }

    /// A section begins in a thread that has this number.
    #[inline]
    pub fn enter(&self, thread: usize) -> Counted {
        let shard = thread % PLACES;
        loop {
            let of = (self.current.load(SeqCst) & 1) as usize;
            self.counts[shard].0[of].fetch_add(1, SeqCst);
            if (self.current.load(SeqCst) & 1) as usize == of {
                return Counted { shard, of };
            }
            self.counts[shard].0[of].fetch_sub(1, SeqCst);
        }
    }

    /// It ends.
    #[inline]
    pub fn leave(&self, counted: Counted) {
        self.counts[counted.shard].0[counted.of].fetch_sub(1, SeqCst);
    }

    /// Those that are open now are to be waited for. One waits at a time.
    pub fn turn(&self) -> usize {
        let before = self.current.load(SeqCst);
        self.current.store(before ^ 1, SeqCst);
        (before & 1) as usize
    }

    /// Whether they have ended.
    pub fn have_ended(&self, turned: usize) -> bool {
        self.counts
            .iter()
            .all(|counts| counts.0[turned].load(SeqCst) == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_before_the_turn_is_waited_for_and_nothing_else() {
        let open: OpenSections = OpenSections::new();
        let (a, b) = (open.enter(1), open.enter(2));
        let turned = open.turn();
        let c = open.enter(3);
        assert!(!open.have_ended(turned));
        open.leave(a);
        assert!(!open.have_ended(turned));
        open.leave(b);
        assert!(open.have_ended(turned));
        let turned = open.turn();
        assert!(!open.have_ended(turned));
        open.leave(c);
        assert!(open.have_ended(turned));
    }
}
