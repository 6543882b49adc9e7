//! Nobody is refused for ever while others are served (§5.1.2: a requester that is refused tries
//! again).
//!
//! Owners keep no queues: a refused requester backs off and asks again, so nothing but chance says
//! who is next. In 4,300 worlds of all racks with all faults and failures, no operation was refused
//! more than 35 times after everything had calmed down; in 6,000 after a storm, whose
//! retransmission timers are long and whose last locks are therefore released late, no more than
//! 114 times. The bound is more than twice that, and is reached before
//! [`liveness`](super::liveness) loses patience.

/// Its name in a violation.
pub const NAME: &str = "no starvation";
/// Where the paper promises it.
pub const SECTION: &str = "§5.1.2";
/// Times that an operation may be refused after faults and failures have stopped.
pub const MOST_REFUSALS: u64 = 256;

/// Whether an operation was refused a block too often while others were granted it.
/// If nobody gets it, that is not bad luck: it is for [`liveness`](super::liveness).
pub fn broken(refusals: u64, grants: u64) -> bool {
    refusals > MOST_REFUSALS && grants > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_luck_is_no_starvation() {
        assert!(!broken(MOST_REFUSALS, 9));
        assert!(broken(MOST_REFUSALS + 1, 9));
        assert!(!broken(MOST_REFUSALS + 1, 0));
    }
}
