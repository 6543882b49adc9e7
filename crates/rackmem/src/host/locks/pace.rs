//! When to ask again for what has not come.

use std::sync::OnceLock;
use std::time::Instant;

/// Milliseconds of the first pause: some round trips of any network that locks are worth having on.
const FIRST: u32 = 2;
/// Milliseconds of the longest.
const LONGEST: u32 = 64;

/// Pauses that grow while nothing comes.
#[derive(Default)]
pub(crate) struct Pace {
    /// While there is something to ask for: how many pauses have ended, and one; and the end of the current one, in
    /// milliseconds of [`now`].
    pauses: u8,
    end: u32,
    /// Whether somebody has been told to look after it.
    pub kept: bool,
}

/// Milliseconds since the first call; wraps after 49 days.
fn now() -> u32 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_millis() as u32
}

impl Pace {
    /// The current pause.
    fn pause(&self) -> u32 {
        let doubled = u32::from(self.pauses.saturating_sub(1)).min(LONGEST.ilog2());
        (FIRST << doubled).min(LONGEST)
    }

    /// Something has happened, and more is to come: the first pause begins, unless one is under way.
    pub fn begin(&mut self) {
        if self.pauses == 0 {
            (self.pauses, self.end) = (1, now().wrapping_add(FIRST + 1));
        }
    }

    /// A packet has come: what is to come is asked for as after the first pause, and never later than it was to be. Packets that
    /// keep coming and bring nothing do not put it off.
    pub fn hurry(&mut self) {
        if self.pauses != 0 {
            let soon = now().wrapping_add(FIRST + 1);
            if (self.end.wrapping_sub(soon) as i32) > 0 {
                self.end = soon;
            }
            self.pauses = 1;
        }
    }

    /// Nothing is to come.
    pub fn rest(&mut self) {
        self.pauses = 0;
    }

    /// Whether it is time to ask again; if so, the next pause begins, twice as long.
    pub fn due(&mut self) -> bool {
        let now = now();
        if self.pauses == 0 || (self.end.wrapping_sub(now) as i32) > 0 {
            return false;
        }
        self.pauses = self.pauses.saturating_add(1);
        self.end = now.wrapping_add(self.pause());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_asks_again_for_what_nobody_waits_for() {
        let mut pace = Pace::default();
        assert!(!pace.due());
        pace.begin();
        pace.rest();
        assert!(!pace.due());
    }

    #[test]
    fn packets_that_keep_coming_do_not_put_off_asking_again() {
        let mut pace = Pace::default();
        pace.begin();
        let first = pace.end;
        (0..10).for_each(|_| pace.hurry());
        assert_eq!((pace.pause(), pace.end), (FIRST, first));
        let late = first.wrapping_add(1 << 30);
        (pace.pauses, pace.end) = (9, late);
        pace.hurry();
        assert!(pace.pause() == FIRST && pace.end != late);
    }

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let mut pace = Pace::default();
        pace.begin();
        for _ in 0..10 {
            // As if it had passed.
            pace.end = pace.end.wrapping_sub(pace.pause() + 1);
            assert!(pace.due());
        }
        assert_eq!(pace.pause(), LONGEST);
        pace.pauses = u8::MAX;
        assert_eq!(pace.pause(), LONGEST);
    }
}
