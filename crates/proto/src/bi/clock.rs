//! Ticks, and clocks that are checked against each other (BI §3.5).
//!
//! The paper assumes that clocks of domains are within a tick of each other. Here each domain
//! compares what others publish with its own clock: a clock that shows more than a tick more than
//! mine is ahead of mine, since it was published before I looked. Of two clocks that differ the one
//! that is behind finds out, so each pair is checked both ways.

/// Logical time: periods since an origin that all domains share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// How many ticks this is after another one; 0 if it is not.
    #[inline]
    pub const fn since(self, other: Tick) -> u64 {
        self.0.saturating_sub(other.0)
    }

    /// So many ticks later.
    #[inline]
    #[must_use]
    pub const fn plus(self, ticks: u64) -> Tick {
        Tick(self.0.saturating_add(ticks))
    }

    /// So many ticks earlier.
    #[inline]
    #[must_use]
    pub const fn minus(self, ticks: u64) -> Tick {
        Tick(self.0.saturating_sub(ticks))
    }
}

/// Ticks by which clocks of two domains may differ.
pub const ACCURACY: u64 = 1;

/// No clock shows more: five centuries of the shortest ticks.
pub const LATEST: Tick = Tick(1 << 44);

/// Another domain's clock is said to show what no clock can: it is not followed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Skew {
    /// By so many ticks it would be ahead of mine.
    pub by: u64,
}

/// A domain's clock. It never falls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BiClock {
    /// Nanoseconds of a tick.
    period: u64,
    /// Ticks that it has jumped forward.
    ahead: u64,
}

impl BiClock {
    /// Of ticks of so many nanoseconds, one at least.
    pub const fn new(period: u64) -> Self {
        let period = if period == 0 { 1 } else { period };
        BiClock { period, ahead: 0 }
    }

    /// What it shows so many nanoseconds after the origin.
    #[inline]
    pub const fn tick(&self, nanos: u64) -> Tick {
        Tick((nanos / self.period).saturating_add(self.ahead))
    }

    /// Nanoseconds of so many ticks.
    pub const fn nanos(&self, ticks: u64) -> u64 {
        ticks.saturating_mul(self.period)
    }

    /// Another domain's clock showed this before mine showed that. By how many ticks this one has
    /// jumped forward: one that is behind by more than a tick does.
    pub fn compare(&mut self, theirs: Tick, mine: Tick) -> Result<u64, Skew> {
        let by = theirs.since(mine);
        if by <= ACCURACY {
            return Ok(0);
        }
        // A clock that has followed to the end of time would stand there, and nothing be late.
        if theirs > LATEST {
            return Err(Skew { by });
        }
        self.ahead = self.ahead.saturating_add(by);
        Ok(by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_behind_jumps_and_says_so() {
        let mut clock = BiClock::new(1_000);
        assert_eq!(clock.tick(2_999), Tick(2));
        assert_eq!(clock.compare(Tick(3), Tick(2)), Ok(0));
        assert_eq!(clock.compare(Tick(1), Tick(2)), Ok(0));
        assert_eq!(clock.tick(2_999), Tick(2));
        assert_eq!(clock.compare(Tick(9), Tick(2)), Ok(7));
        assert_eq!(clock.tick(2_999), Tick(9));
        assert_eq!(clock.compare(Tick(9), Tick(9)), Ok(0));
    }

    #[test]
    fn a_clock_that_shows_what_none_can_is_not_followed() {
        let mut clock = BiClock::new(1_000);
        for theirs in [LATEST.plus(1), Tick(u64::MAX)] {
            let by = theirs.0 - 2;
            assert_eq!(clock.compare(theirs, Tick(2)), Err(Skew { by }));
        }
        assert_eq!(clock.tick(2_000), Tick(2));
        assert_eq!(clock.compare(LATEST, Tick(2)), Ok(LATEST.0 - 2));
    }

    #[test]
    fn ticks_do_not_come_round() {
        assert_eq!(Tick(1).minus(3), Tick(0));
        assert_eq!(Tick(u64::MAX).plus(1), Tick(u64::MAX));
        assert_eq!(Tick(3).since(Tick(5)), 0);
        assert_eq!(BiClock::new(0).tick(7), Tick(7));
    }
}
