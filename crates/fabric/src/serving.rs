//! How a service's thread divides its time between packets and ticks.
//!
//! Neither may starve the other. A tick that only came when no packet is waiting would never come
//! in a busy rack; a tick that takes longer than the pause between two, and begins again at once,
//! would leave one packet read a tick, and a receive queue that overflows. So a tick comes after
//! [`TICK`], counted from the end of the one before, and after [`SHARE`] packets,
//! or all that are waiting.

use crate::awake::SPIN;
use crate::poll::TICK;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Packets that are handled between two ticks at least, if so many are waiting.
pub(crate) const SHARE: u32 = 64;

/// Serves until `stop`. `take` waits for a packet, awake for the given time and then asleep for a
/// [`TICK`] at most, handles it, and says whether one came.
pub(crate) fn serve_until(
    stop: &AtomicBool,
    mut take: impl FnMut(Duration) -> bool,
    mut tick: impl FnMut(),
) {
    let (mut last, mut handled) = (Instant::now(), 0);
    let mut spin = Duration::ZERO;
    while !stop.load(Relaxed) {
        let took = take(spin);
        spin = if took { SPIN } else { Duration::ZERO };
        handled += 1;
        if (!took || handled >= SHARE) && last.elapsed() >= TICK {
            tick();
            (last, handled) = (Instant::now(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Packets between one tick and the next, with packets that always wait and a tick that takes
    /// this long.
    fn between(ticks: usize, takes: Duration) -> Vec<u32> {
        let stop = AtomicBool::new(false);
        let (handled, mut shares) = (Cell::new(0), Vec::new());
        let take = |_| {
            handled.set(handled.get() + 1);
            // Without a tick there is no other end.
            stop.store(handled.get() > 1 << 30, Relaxed);
            true
        };
        serve_until(&stop, take, || {
            std::thread::sleep(takes);
            shares.push(handled.take());
            stop.store(shares.len() == ticks, Relaxed);
        });
        shares
    }

    #[test]
    fn packets_that_always_wait_do_not_keep_ticks_away() {
        assert_eq!(between(5, Duration::ZERO).len(), 5);
    }

    #[test]
    fn a_slow_tick_leaves_packets_their_share() {
        let shares = between(5, TICK * 2);
        assert!(shares.iter().all(|n| *n >= SHARE), "{shares:?}");
    }

    #[test]
    fn without_packets_ticks_come_by_the_clock_alone() {
        let (stop, ticks) = (AtomicBool::new(false), Cell::new(0));
        let take = |_| {
            std::thread::sleep(TICK);
            false
        };
        let mut takes = 0;
        let counted = |spin| {
            takes += 1;
            take(spin)
        };
        serve_until(&stop, counted, || {
            ticks.set(ticks.get() + 1);
            stop.store(ticks.get() == 3, Relaxed);
        });
        assert_eq!(takes, 3, "a tick after every pause");
    }
}
