//! When to ask again for what has not come.

use std::time::{Duration, Instant};

/// The first pause: some round trips of any network that locks are worth having on.
const FIRST: Duration = Duration::from_millis(2);
/// The longest pause.
const LONGEST: Duration = Duration::from_millis(64);

/// Pauses that grow while nothing comes.
#[derive(Default)]
pub(super) struct Pace {
    /// The current pause and its end, while there is something to ask for.
    waits: Option<(Duration, Instant)>,
    /// Whether somebody has been told to look after it.
    pub kept: bool,
}

impl Pace {
    /// Something has happened, and more is to come: the first pause begins, unless one is under way.
    pub fn begin(&mut self) {
        self.waits
            .get_or_insert_with(|| (FIRST, Instant::now() + FIRST));
    }

    /// A packet has come: what is to come is asked for as after the first pause, and never later than it was to be. Packets that
    /// keep coming and bring nothing do not put it off.
    pub fn hurry(&mut self) {
        if let Some((pause, end)) = &mut self.waits {
            *end = (*end).min(Instant::now() + FIRST);
            *pause = FIRST;
        }
    }

    /// Nothing is to come.
    pub fn rest(&mut self) {
        self.waits = None;
    }

    /// Whether it is time to ask again; if so, the next pause begins, twice as long.
    pub fn due(&mut self) -> bool {
        let now = Instant::now();
        match &mut self.waits {
            Some((pause, end)) if *end <= now => {
                *pause = (*pause * 2).min(LONGEST);
                *end = now + *pause;
                true
            }
            _ => false,
        }
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
        let (_, first) = pace.waits.unwrap();
        (0..10).for_each(|_| pace.hurry());
        assert_eq!(pace.waits.unwrap().1, first);
        pace.waits = Some((LONGEST, first + LONGEST));
        pace.hurry();
        let (pause, end) = pace.waits.unwrap();
        assert!(pause == FIRST && end < first + LONGEST);
    }

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let mut pace = Pace::default();
        pace.begin();
        for _ in 0..10 {
            let (pause, end) = pace.waits.unwrap();
            // As if it had passed.
            pace.waits = Some((pause, end.checked_sub(pause).unwrap()));
            assert!(pace.due());
        }
        assert_eq!(pace.waits.unwrap().0, LONGEST);
    }
}
