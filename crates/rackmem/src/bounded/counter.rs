//! The processor's counter of time, by which the end of a section is checked.
//!
//! It is read in half the time of the system's clock or less, and says nothing by itself. Each
//! quiescence reads both, and says until which count sections may count on it: by a rate that two
//! stretches of time have agreed on, less a part for what it may be wrong by. Where the two do not
//! agree, or the kernel does not keep its own time by this counter, there is no such count, and
//! sections look at the system's clock.

use rackmem_fabric::Whole;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, Once, OnceLock};
use std::time::{Duration, Instant};

/// Counts between which clocks are read, at most: a thread that was stopped in between knows no
/// moment, and tries again so often.
const TOGETHER: u64 = 2_000;
const TRIES: usize = 8;
/// Nanoseconds that a rate is taken over, at least.
const STRETCH: u64 = 2_000_000;
/// Quiescences after a long section for which others look at the clock when they begin.
const LONG: u8 = 64;
/// Of a rate, what two stretches may differ by. A deadline is nearer by twice as much.
const PART: u64 = 512;
/// Fraction bits of a rate, which is in counts a nanosecond.
const FRACTION: u32 = 20;

/// What it shows; 0 where this processor has none.
#[inline]
fn count() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has the instruction.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Whether the kernel keeps its time by it: then it goes evenly, on all processors.
pub(super) fn is_kept() -> bool {
    static KEPT: OnceLock<bool> = OnceLock::new();
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let tsc = || std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc");
    cfg!(target_arch = "x86_64") && *KEPT.get_or_init(tsc)
}

/// A moment, by the counter and by two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// By whoever asks.
    pub nanos: u64,
    /// The count, and the clock that rates are by; nothing where they are not known together.
    rated: Option<(u64, u64)>,
}

impl Moment {
    /// This one, by a clock.
    pub fn now(clock: impl Fn() -> u64) -> Self {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let origin = ORIGIN.get_or_init(Instant::now);
        let read = || {
            let before = count();
            let nanos = clock();
            let rated = u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let together = count().wrapping_sub(before) <= TOGETHER && is_kept();
            let rated = together.then_some((before, rated));
            Moment { nanos, rated }
        };
        let mut moment = read();
        for _ in 1..TRIES {
            if moment.rated.is_some() || !is_kept() {
                break;
            }
            moment = read();
        }
        moment
    }
}

/// The counter's rate by a clock, as far as it is known.
#[derive(Clone, Copy, Debug)]
struct Rate {
    since: Option<(u64, u64)>,
    /// Of the stretch before; 0 where there is none.
    rate: u64,
    /// The last two have agreed.
    agreed: bool,
}

impl Rate {
    const NONE: Rate = Rate {
        since: None,
        rate: 0,
        agreed: false,
    };

    /// A moment later. Counts that so many nanoseconds have at least, if that is known.
    fn least(&mut self, (count, nanos): (u64, u64), left: u64) -> Option<u64> {
        let (since, began) = *self.since.get_or_insert((count, nanos));
        if count < since && nanos > began {
            // It has begun anew.
            *self = Rate::NONE;
            return None;
        }
        // Of two threads the earlier moment may come later.
        let (counts, stretch) = (count.saturating_sub(since), nanos.saturating_sub(began));
        if stretch >= STRETCH {
            let rate = (u128::from(counts) << FRACTION) / u128::from(stretch);
            let rate = u64::try_from(rate).unwrap_or(0);
            self.agreed = rate > 0 && self.rate.abs_diff(rate) <= rate / PART;
            (self.rate, self.since) = (rate, Some((count, nanos)));
        }
        let rate = self.rate - self.rate / PART * 2;
        let counts = (u128::from(left) * u128::from(rate)) >> FRACTION;
        u64::try_from(counts).ok().filter(|_| self.agreed)
    }
}

/// Counts that so many nanoseconds after a moment have at least, if that is known.
fn least(of: Moment, left: u64) -> Option<u64> {
    static RATE: Mutex<Rate> = Mutex::new(Rate::NONE);
    static LEARNT: Once = Once::new();
    let least = |of: Moment| {
        let counts = RATE.lock().whole().least(of.rated?, left)?;
        of.rated?.0.checked_add(counts)
    };
    LEARNT.call_once(|| {
        for _ in 0..if is_kept() { 3 } else { 0 } {
            let _ = least(Moment::now(|| 0));
            std::thread::sleep(Duration::from_nanos(STRETCH));
        }
    });
    least(of)
}

/// Until when sections may count on a quiescence: a count, or 0 where it is not known.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    count: AtomicU64,
    /// Quiescences that set none: a section has lasted too long to begin without a look at the
    /// clock, and others may.
    without: AtomicU8,
}

impl Deadline {
    /// A quiescence is of this moment, and good for so many nanoseconds more.
    pub fn set(&self, of: Moment, left: u64) {
        let without = self.without.load(Relaxed);
        let count = match without {
            0 => least(of, left),
            _ => None,
        };
        self.without.store(without.saturating_sub(1), Relaxed);
        self.count.store(count.unwrap_or(0), SeqCst);
    }

    /// It is not known any more.
    fn forget(&self) {
        self.count.store(0, SeqCst);
    }

    /// A section that counted on it has lasted too long.
    #[cold]
    pub fn was_missed(&self) {
        self.without.store(LONG, Relaxed);
        self.forget();
    }

    /// Whether quiescences set it.
    #[cfg(test)]
    pub fn is_in_use(&self) -> bool {
        self.without.load(Relaxed) == 0
    }

    /// The count, for a section that begins: it counts on this quiescence, and on no later one.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count.load(SeqCst)
    }
}

/// Whether a deadline is still to come.
#[inline]
pub(super) fn is_before(deadline: u64) -> bool {
    count() < deadline
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_deadline_needs_two_stretches_that_agree() {
        let mut rate = Rate::NONE;
        // Two and a half counts a nanosecond.
        let mut at = |ms: u64, counts: u64| rate.least((counts, ms * MS), 10 * MS);
        assert_eq!(at(0, 1_000), None);
        assert_eq!(at(20, 1_000 + 50 * MS), None);
        let least = at(40, 1_000 + 100 * MS).unwrap();
        assert!(least < 25 * MS && least > 25 * MS / 100 * 99, "{least}");
        // Between two stretches the last one holds.
        assert_eq!(at(41, 1_000 + 109 * MS), Some(least));
        // A thread that was held back.
        assert_eq!(at(39, 1_000 + 97 * MS), Some(least));
        // The counter goes otherwise: nothing, until it has done so twice.
        assert_eq!(at(65, 1_000 + 170 * MS), None);
        assert_eq!(at(85, 1_000 + 222 * MS), None);
        assert!(at(105, 1_000 + 274 * MS).is_some());
        // It begins anew.
        assert_eq!(at(125, 7), None);
        assert_eq!(at(145, 7 + 50 * MS), None);
    }

    /// By the real counter: a deadline is never later than the clock says.
    #[test]
    fn a_deadline_comes_before_its_time_is_over() {
        let origin = Instant::now();
        let clock = || origin.elapsed().as_nanos() as u64;
        let deadline = Deadline::default();
        let (mut known, end) = (0, clock() + 60_000 * MS);
        while known < 5 && clock() < end {
            let of = Moment::now(clock);
            deadline.set(of, 5 * MS);
            let until = deadline.count();
            if !is_kept() {
                assert_eq!(until, 0);
                return;
            }
            if until == 0 {
                std::thread::sleep(Duration::from_nanos(STRETCH));
                continue;
            }
            known += 1;
            while is_before(until) {
                // Before the count is read again, so that a stop in between does no harm.
                let before = clock();
                assert!(!is_before(until) || before <= of.nanos + 5 * MS);
            }
        }
        assert_eq!(known, 5);
        deadline.was_missed();
        assert!(!is_before(deadline.count()));
        deadline.set(Moment::now(clock), 5 * MS);
        assert_eq!(deadline.count(), 0);
    }
}
