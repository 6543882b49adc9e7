//! How long a thread waits for its turn: one word for all locks.

use std::time::{Duration, Instant};

/// How long to wait for a lock, or to be notified. A [`Duration`] and an [`Instant`] are one, too.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::{Rack, Wait, locked::Mutex};
/// use std::time::{Duration, Instant};
///
/// let rack = Rack::local(2)?;
/// let here = Mutex::create(&rack.node(0), 1u64)?;
/// let there = Mutex::<u64>::attach(&rack.node(1), here.addr())?;
/// let held = here.lock()?;
/// assert!(there.lock_within(Wait::Never)?.is_none());
/// assert!(there.lock_within(Duration::from_millis(1))?.is_none());
/// let end = Instant::now() + Duration::from_millis(1);
/// assert!(there.lock_within(end)?.is_none());
/// drop(held);
/// assert!(there.lock_within(Wait::Forever)?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Not at all, and a lock that is at another node is not asked for.
    Never,
    /// So long. A lock that is at another node is asked for, however short this is.
    For(Duration),
    /// Until then. What is past is [`Wait::For`] no time.
    Until(Instant),
    /// As long as it takes.
    Forever,
}

impl Wait {
    /// How long that is from now on; `None`: nothing is even asked.
    #[inline]
    pub(crate) fn limit(self) -> Option<Duration> {
        match self {
            Wait::Never => None,
            Wait::For(time) => Some(time),
            Wait::Until(end) => Some(end.saturating_duration_since(Instant::now())),
            Wait::Forever => Some(Duration::MAX),
        }
    }
}

impl From<Duration> for Wait {
    fn from(time: Duration) -> Self {
        Wait::For(time)
    }
}

impl From<Instant> for Wait {
    fn from(end: Instant) -> Self {
        Wait::Until(end)
    }
}
