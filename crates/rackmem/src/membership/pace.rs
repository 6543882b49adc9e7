//! Whether the store of the members keeps pace with heartbeats.

use std::time::{Duration, Instant};

/// How a member's rounds went so far: in each it reads who the members are and stores its
/// heartbeat, five times a lease. One that takes too long may cost it its place,
/// whatever the cause: the store, the disk or the network below it,
/// or a machine that has no processor left.
///
/// ```
/// use rackmem::Rack;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rack = Rack::local(2)?;
/// // Where members are fixed nobody is declared dead, and there is no store.
/// assert_eq!(rack.membership_pace(), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Without a stored heartbeat for so long a member is declared dead.
    pub lease: Duration,
    /// Rounds that took longer than two fifths of the lease, one that is going on included.
    pub late: u64,
    /// The longest round, one that is going on included.
    pub longest: Duration,
}

/// The rounds of one member.
#[derive(Default)]
pub(super) struct Rounds {
    begun: Option<Instant>,
    late: u64,
    longest: Duration,
}

impl Rounds {
    /// A round begins, and the one before has ended.
    pub fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    /// The round has ended.
    pub fn end(&mut self, beat: Duration) {
        let Pace { late, longest, .. } = self.pace(beat);
        *self = Rounds {
            begun: None,
            late,
            longest,
        };
    }

    /// How they went, where a heartbeat is due every `beat`.
    pub fn pace(&self, beat: Duration) -> Pace {
        let now = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        Pace {
            lease: beat.saturating_mul(5),
            late: self.late + u64::from(now > beat.saturating_mul(2)),
            longest: self.longest.max(now),
        }
    }
}
