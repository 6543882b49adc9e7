//! When to ask again for what has not come.

use std::time::{Duration, Instant};

/// The first pause: some round trips of any network that locks are worth having on.
const FIRST: Duration = Duration::from_millis(2);
/// The longest.
const LONGEST: Duration = Duration::from_millis(64);

/// Pauses that grow while nothing comes.
#[derive(Default)]
pub(super) struct Pace(Option<(Instant, Duration)>);

impl Pace {
    /// Something is to come: the first pause begins.
    pub fn begin() -> Self {
        Pace(Some((Instant::now() + FIRST, FIRST)))
    }

    /// Whether it is time to ask again; if so, the next pause begins, twice as long.
    pub fn due(&mut self) -> bool {
        let Some((end, pause)) = self.0 else {
            return false;
        };
        let now = Instant::now();
        let due = now >= end;
        if due {
            let next = (pause * 2).min(LONGEST);
            self.0 = Some((now + next, next));
        }
        due
    }
}
