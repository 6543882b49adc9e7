//! Staying awake for what is about to come, as long as the processor is not wanted by others.
//!
//! Waking a sleeping thread on another processor costs more than everything else in a miss. So a
//! thread that waits looks again for a while before it sleeps, giving the processor away between
//! looks. To a scheduler that means that the thread is in no hurry: where other programs keep the
//! processor busy it gets its next turn when all of them have had theirs, some milliseconds later,
//! while a thread that slept is woken before them. On such a machine a rack whose threads stayed
//! awake did a twenty-fifth of the work. So a thread that has found that sleeps at once for some
//! time.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long a thread that has just had a packet, or waits for an answer, stays awake.
pub const SPIN: Duration = Duration::from_micros(50);
/// Other threads of a rack give the processor back sooner than this.
const SOON: Duration = Duration::from_micros(500);
/// How long a thread does not stay awake whose processor others wanted.
const CROWDED: Duration = Duration::from_millis(100);

thread_local! {
    /// Until when this thread does not stay awake.
    static CROWDED_UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// One wait of a thread.
pub struct Awake {
    began: Instant,
    /// How long it stays awake.
    spin: Duration,
    /// When it gave the processor away last.
    gave: Option<Duration>,
}

/// What a thread does that has looked in vain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    LookAgain,
    Sleep,
    /// As a waiting thread of this machine does from now on.
    SleepAtOnce,
}

impl Awake {
    /// A wait begins; `spin` of it are to be awake.
    #[inline]
    pub fn begin(spin: Duration) -> Awake {
        let began = Instant::now();
        let crowded = CROWDED_UNTIL.get().is_some_and(|until| began < until);
        Awake {
            began,
            spin: if crowded { Duration::ZERO } else { spin },
            gave: None,
        }
    }

    /// How long it has been.
    #[inline]
    pub fn waited(&self) -> Duration {
        self.began.elapsed()
    }

    /// After a look in vain, `waited` after the beginning: has given the processor away and says
    /// that it is time to look again, or that it is time to sleep.
    #[inline]
    pub fn look_again(&mut self, waited: Duration) -> bool {
        let then = self.then(waited);
        self.gave = (then == Then::LookAgain).then_some(waited);
        match then {
            Then::LookAgain => std::thread::yield_now(),
            Then::Sleep => {}
            Then::SleepAtOnce => {
                CROWDED_UNTIL.set(Some(self.began + waited + CROWDED));
                self.spin = Duration::ZERO;
            }
        }
        then == Then::LookAgain
    }

    fn then(&self, waited: Duration) -> Then {
        match self.gave {
            Some(gave) if waited.saturating_sub(gave) > SOON => Then::SleepAtOnce,
            _ if waited < self.spin => Then::LookAgain,
            _ => Then::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(spin_us: u64, gave_us: Option<u64>, waited_us: u64) -> Then {
        let awake = Awake {
            began: Instant::now(),
            spin: Duration::from_micros(spin_us),
            gave: gave_us.map(Duration::from_micros),
        };
        awake.then(Duration::from_micros(waited_us))
    }

    #[test]
    fn a_thread_looks_again_for_a_while_and_sleeps_at_once_where_others_want_the_processor() {
        assert_eq!(after(50, None, 3), Then::LookAgain);
        assert_eq!(after(50, Some(3), 40), Then::LookAgain);
        assert_eq!(after(50, Some(40), 51), Then::Sleep);
        assert_eq!(after(0, None, 0), Then::Sleep);
        // What comes back after a turn of another program has waited long for nothing,
        // however long it was to stay awake.
        assert_eq!(after(50, Some(3), 3_000), Then::SleepAtOnce);
        assert_eq!(after(10_000, Some(3), 3_000), Then::SleepAtOnce);
    }

    #[test]
    fn a_crowded_thread_does_not_stay_awake_and_others_do() {
        let mut first = Awake::begin(SPIN);
        first.gave = Some(Duration::ZERO);
        assert!(!first.look_again(Duration::from_millis(3)));
        // The time that it slept counts for no packet.
        assert!(!first.look_again(Duration::from_millis(9)));
        CROWDED_UNTIL.set(CROWDED_UNTIL.get().map(|until| until + 3600 * CROWDED));
        assert!(!Awake::begin(SPIN).look_again(Duration::ZERO));
        let other = std::thread::spawn(|| Awake::begin(SPIN).look_again(Duration::ZERO));
        assert!(other.join().unwrap());
        CROWDED_UNTIL.set(Some(Instant::now()));
        assert!(Awake::begin(SPIN).look_again(Duration::ZERO));
    }
}
