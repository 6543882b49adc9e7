//! When to ask again for what has not come, where no round trip is measured: pauses that grow while nothing comes.

/// Milliseconds of the first pause: some round trips of any network that locks are worth having on.
const FIRST: u32 = 2;
/// Milliseconds, or ticks, of the longest.
const LONGEST: u32 = 64;

/// Pauses by a clock of milliseconds, which may wrap. Small: there is one a lock.
#[derive(Clone, Copy, Default, Debug)]
pub struct Pace {
    /// While there is something to ask for: how many pauses have ended, and one.
    pauses: u8,
    /// The end of the current one.
    end: u32,
}

impl Pace {
    /// The current pause.
    fn pause(&self) -> u32 {
        let doubled = u32::from(self.pauses.saturating_sub(1)).min(LONGEST.ilog2());
        (FIRST << doubled).min(LONGEST)
    }

    /// Something has happened, and more is to come: the first pause begins, unless one is under way.
    #[inline]
    pub fn begin(&mut self, now: impl FnOnce() -> u32) {
        if self.pauses == 0 {
            (self.pauses, self.end) = (1, now().wrapping_add(FIRST + 1));
        }
    }

    /// A packet has come: what is to come is asked for as after the first pause, and never later than it was to be. Packets that
    /// keep coming and bring nothing do not put it off.
    #[inline]
    pub fn hurry(&mut self, now: impl FnOnce() -> u32) {
        if self.pauses != 0 {
            let soon = now().wrapping_add(FIRST + 1);
            if (self.end.wrapping_sub(soon) as i32) > 0 {
                self.end = soon;
            }
            self.pauses = 1;
        }
    }

    /// Nothing is to come.
    #[inline]
    pub fn rest(&mut self) {
        self.pauses = 0;
    }

    /// Whether it is time to ask again; if so, the next pause begins, twice as long.
    pub fn due(&mut self, now: impl FnOnce() -> u32) -> bool {
        if self.pauses == 0 {
            return false;
        }
        let now = now();
        if (self.end.wrapping_sub(now) as i32) > 0 {
            return false;
        }
        self.pauses = self.pauses.saturating_add(1);
        self.end = now.wrapping_add(self.pause());
        true
    }
}

/// Pauses in ticks: what is not acknowledged is sent again after one tick, two more, four more, and so on.
#[derive(Clone, Copy, Default, Hash, Debug)]
pub struct Ticks {
    /// The pause after the last copy, and what is left of it.
    pause: u16,
    left: u16,
}

impl Ticks {
    /// A tick has passed. Whether to send another copy.
    pub fn tick(&mut self) -> bool {
        if self.left > 1 {
            self.left -= 1;
            return false;
        }
        self.pause = (self.pause * 2).clamp(2, LONGEST as u16);
        self.left = self.pause;
        true
    }

    /// The peer has said something new.
    pub fn reset(&mut self) {
        *self = Ticks::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn nothing_is_asked_for_again_when_nothing_is_to_come() {
        let mut pace = Pace::default();
        assert!(!pace.due(|| 1_000));
        pace.begin(|| 1_000);
        pace.rest();
        assert!(!pace.due(|| 2_000));
    }

    #[test]
    fn packets_that_keep_coming_do_not_put_off_asking_again() {
        let mut pace = Pace::default();
        pace.begin(|| 0);
        (0..10).for_each(|now| pace.hurry(|| now));
        assert!(!pace.due(|| FIRST) && pace.due(|| FIRST + 1));
        (pace.pauses, pace.end) = (9, 1 << 30);
        pace.hurry(|| 0);
        assert_eq!((pace.pause(), pace.end), (FIRST, FIRST + 1));
    }

    #[test]
    fn pauses_grow_up_to_the_longest_and_the_clock_may_wrap() {
        let mut pace = Pace::default();
        let mut now = u32::MAX - 40;
        pace.begin(|| now);
        now = now.wrapping_add(FIRST + 1);
        for pause in [4, 8, 16, 32, 64, 64, 64] {
            assert!(pace.due(|| now));
            now = now.wrapping_add(pause - 1);
            assert!(!pace.due(|| now), "{pause}");
            now = now.wrapping_add(1);
        }
        pace.pauses = u8::MAX;
        assert_eq!(pace.pause(), LONGEST);
    }

    #[test]
    fn copies_in_ticks_become_rare() {
        let mut ticks = Ticks::default();
        let sent: Vec<u32> = (1..200).filter(|_| ticks.tick()).collect();
        assert_eq!(sent, [1, 3, 7, 15, 31, 63, 127, 191]);
        ticks.reset();
        assert!(ticks.tick());
    }
}
