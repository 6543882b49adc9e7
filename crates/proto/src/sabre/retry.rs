//! What a reader does when it found a writer in, or the object moved: the paper leaves that to the
//! program (SABRes §5.1), and this is what programs want unless they say otherwise.

/// Pauses between attempts, in nanoseconds: the first one, and the longest.
const FIRST: u64 = 1_000;
const LONGEST: u64 = 100_000;

/// What follows when all attempts have failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Then {
    /// The home keeps writers out for one copy.
    #[default]
    Lock,
    /// The reader is told.
    Abort,
}

/// How often to try, and what then.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Retry {
    /// Attempts; one at least is made.
    pub tries: u32,
    /// What follows.
    pub then: Then,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            tries: 8,
            then: Then::Lock,
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Next {
    /// Wait for a random time up to so many nanoseconds, and try again.
    Pause(u64),
    /// Read with writers kept out.
    Lock,
    /// Give up.
    Abort,
}

/// Attempts of one read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Attempts {
    failed: u32,
}

impl Attempts {
    /// One has failed.
    pub fn failed(&mut self, retry: Retry) -> Next {
        self.failed = self.failed.saturating_add(1);
        if self.failed < retry.tries {
            let doubled = FIRST << (self.failed - 1).min(16);
            return Next::Pause(doubled.min(LONGEST));
        }
        match retry.then {
            Then::Lock => Next::Lock,
            Then::Abort => Next::Abort,
        }
    }

    /// How many have.
    pub fn count(&self) -> u32 {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_a_bound_and_then_the_policy_says() {
        let mut attempts = Attempts::default();
        let retry = Retry::default();
        let pauses: alloc::vec::Vec<Next> = (0..8).map(|_| attempts.failed(retry)).collect();
        let expected = [1, 2, 4, 8, 16, 32, 64].map(|micros| Next::Pause(micros * 1000));
        assert_eq!(pauses[..7], expected);
        assert_eq!(pauses[7], Next::Lock);
        let abort = Retry {
            tries: 1000,
            then: Then::Abort,
        };
        let mut attempts = Attempts::default();
        let last = (0..1000)
            .map(|_| attempts.failed(abort))
            .collect::<alloc::vec::Vec<_>>();
        assert_eq!(last[998], Next::Pause(LONGEST));
        assert_eq!((last[999], attempts.count()), (Next::Abort, 1000));
        // Nobody tries less than once.
        let none = Retry { tries: 0, ..abort };
        assert_eq!(Attempts::default().failed(none), Next::Abort);
    }
}
