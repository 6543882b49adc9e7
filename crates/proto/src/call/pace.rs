//! When to ask again for what has not come, where no round trip is measured:
//! pauses that grow while nothing comes.

/// Milliseconds of the first pause: some round trips of any network that locks are worth having on.
const FIRST: u32 = 2;
/// Milliseconds of the longest.
const LONGEST: u32 = 4096;
/// Ticks of the longest pause of [`Ticks`].
const LONGEST_TICKS: u16 = 64;

/// Pauses by a clock of milliseconds, which may wrap. Small: there is one a lock.
///
/// A pause is twice as long as the one before until something of what is awaited comes, and nothing
/// else shortens it. So a wait is asked about as often as the logarithm of its length, on a network
/// of any delay: who waits for its turn and asks again is one more request in the way of those who
/// are to hand over, and a network that is late is not made later.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pace {
    /// What is awaited: a number that changes when some of it has come. Zero: nothing.
    awaited: u32,
    /// While something is: how many pauses have ended, and one.
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

    /// What is awaited now. The first pause begins when it is something else than before,
    /// and never ends later than the one that was under way.
    #[inline]
    pub fn await_news(&mut self, awaited: u32, now: impl FnOnce() -> u32) {
        if awaited == self.awaited {
            return;
        }
        let under_way = (self.pauses != 0).then_some(self.end);
        self.awaited = awaited;
        if awaited == 0 {
            return self.rest();
        }
        let soon = now().wrapping_add(FIRST + 1);
        let earlier = |end: u32| (end.wrapping_sub(soon) as i32) < 0;
        self.end = under_way.filter(|end| earlier(*end)).unwrap_or(soon);
        self.pauses = 1;
    }

    /// Nothing is to come.
    #[inline]
    pub fn rest(&mut self) {
        (self.awaited, self.pauses) = (0, 0);
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

/// Pauses in ticks: what is not acknowledged is sent again after one tick, two more, four more,
/// and so on.
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
        self.pause = (self.pause * 2).clamp(2, LONGEST_TICKS);
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
        pace.await_news(7, || 1_000);
        pace.await_news(0, || 1_000);
        assert!(!pace.due(|| 2_000));
    }

    #[test]
    fn only_what_is_awaited_makes_the_pauses_short_again() {
        let mut pace = Pace::default();
        pace.await_news(7, || 0);
        (1..10).for_each(|now| pace.await_news(7, || now));
        assert!(!pace.due(|| FIRST) && pace.due(|| FIRST + 1));
        (pace.pauses, pace.end) = (9, 1 << 30);
        pace.await_news(7, || 0);
        assert_eq!((pace.pauses, pace.end), (9, 1 << 30));
        pace.await_news(8, || 0);
        assert_eq!((pace.pause(), pace.end), (FIRST, FIRST + 1));
        // News that keep coming do not put it off.
        pace.await_news(9, || 2);
        assert_eq!(pace.end, FIRST + 1);
    }

    #[test]
    fn pauses_grow_up_to_the_longest_and_the_clock_may_wrap() {
        let mut pace = Pace::default();
        let mut now = u32::MAX - 40;
        pace.await_news(1, || now);
        now = now.wrapping_add(FIRST + 1);
        let doubled = (2..=12).map(|nth| 1 << nth);
        for pause in doubled.chain([LONGEST, LONGEST]) {
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
