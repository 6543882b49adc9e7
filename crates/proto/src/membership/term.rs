//! To when a process may serve, as its threads see it, and what that says about telling others what
//! they have done.

/// The end of a lease, ns by the membership's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Term(pub u64);

/// What a thread does with an operation that it has carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Telling {
    /// It tells: whatever it has read and written so far happened while its process was a member.
    Now,
    /// It waits: a lease that comes back shows that nobody has been excluded.
    Later,
    /// It tells of an error: the rack goes on without its process.
    Never,
}

impl Term {
    /// Not at all.
    pub const NONE: Term = Term(0);
    /// A lease that does not end: members are fixed.
    pub const ENDLESS: Term = Term(u64::MAX);

    /// Whether the lease holds. `now` reads the clock, after everything that the thread has read
    /// and written, and after the end of the lease was read: one that is put off meanwhile is a
    /// lease that has held all the time. The clock goes on while the process or its machine does
    /// not.
    #[inline]
    pub fn holds(self, now: impl FnOnce() -> u64) -> bool {
        self == Term::ENDLESS || now() < self.0
    }

    /// Whether to tell what has been done. `fenced`: whether it is known that the rack goes on
    /// without this process.
    #[inline]
    pub fn telling(self, fenced: bool, now: impl FnOnce() -> u64) -> Telling {
        match (self.holds(now), fenced) {
            (true, _) => Telling::Now,
            (false, false) => Telling::Later,
            (false, true) => Telling::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_holds_before_its_end_and_only_an_endless_one_reads_no_clock() {
        let unread = || panic!("the clock is read");
        assert!(Term::ENDLESS.holds(unread));
        assert!(!Term::NONE.holds(|| 0));
        assert!(Term(5).holds(|| 4) && !Term(5).holds(|| 5));
    }

    #[test]
    fn what_was_done_under_a_lease_that_is_over_is_told_later_or_never() {
        assert_eq!(Term(5).telling(false, || 4), Telling::Now);
        assert_eq!(Term(5).telling(false, || 5), Telling::Later);
        assert_eq!(Term::NONE.telling(true, || 5), Telling::Never);
    }
}
