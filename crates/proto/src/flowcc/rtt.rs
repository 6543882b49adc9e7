//! How long a requester waits for an answer before it asks again.
//!
//! The paper waits 6 round trips for requests and 3 for unlocks (§5.3.1). A mean alone is no good where peers
//! share processors: the deviation is kept beside it, by the rule of RFC 6298, and no timeout is below the mean
//! and four deviations. Only answers to what was sent once are measured (Karn's rule); as long as none is, the
//! wait that was enough in the end is where the next event begins.

/// Every retransmission doubles the wait for the next one, since a path may be slower than the first guess, until
/// it is the shortest wait doubled so many times: who holds a block's lock must not stay away for long.
const DOUBLINGS: u32 = 6;

/// What is known of the time from a request to its answer. Nanoseconds throughout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundTrip {
    mean: u64,
    deviation: u64,
    /// Doublings that the events needed since the last measurement.
    doublings: u32,
}

impl RoundTrip {
    /// An event was answered `time` after it was sent, for the `attempts`-th time.
    pub fn answered(&mut self, time: u64, attempts: u32) {
        if attempts > 1 {
            // Which attempt was answered is not known.
            self.doublings = (self.doublings.saturating_add(attempts - 1)).min(DOUBLINGS);
            return;
        }
        self.doublings = 0;
        if self.mean == 0 {
            (self.mean, self.deviation) = (time, time / 2);
            return;
        }
        let off = self.mean.abs_diff(time);
        self.deviation = (self.deviation * 3 + off) / 4;
        self.mean = (self.mean * 7 + time) / 8;
    }

    /// The smoothed round trip; 0 before the first is known.
    pub fn mean(&self) -> u64 {
        self.mean
    }

    /// How long to wait for an answer to the `attempts`-th transmission (from 1): so many round trips, as much
    /// longer as they vary, never less than `floor`; twice as long each time, until that is 64 times `floor`.
    pub fn timeout(&self, round_trips: u64, floor: u64, attempts: u32) -> u64 {
        let varied = self.mean.saturating_add(self.deviation.saturating_mul(4));
        let first = self.mean.saturating_mul(round_trips).max(varied).max(floor);
        let doublings = self.doublings.saturating_add(attempts.saturating_sub(1));
        let doubled = first.saturating_mul(1 << doublings.min(DOUBLINGS));
        doubled.min(first.max(floor.saturating_mul(1 << DOUBLINGS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;
    const MS: u64 = 1000 * US;

    #[test]
    fn steady_answers_are_waited_for_by_the_papers_multiples() {
        let mut rtt = RoundTrip::default();
        for _ in 0..100 {
            rtt.answered(500 * US, 1);
        }
        assert_eq!(rtt.mean(), 500 * US);
        assert_eq!(rtt.timeout(6, MS, 1), 3 * MS);
        assert_eq!(rtt.timeout(3, MS, 1), 3 * MS / 2);
        assert_eq!(rtt.timeout(3, 2 * MS, 1), 2 * MS, "the floor");
    }

    #[test]
    fn varying_answers_are_waited_for_longer() {
        let (mut steady, mut varying) = (RoundTrip::default(), RoundTrip::default());
        for i in 0..1000 {
            steady.answered(500 * US, 1);
            varying.answered(if i % 2 == 0 { 0 } else { MS }, 1);
        }
        assert!(varying.mean() < 600 * US, "{varying:?}");
        assert!(varying.timeout(3, 0, 1) > 2 * MS, "{varying:?}");
        assert_eq!(steady.timeout(3, 0, 1), 3 * MS / 2);
    }

    #[test]
    fn every_attempt_waits_twice_as_long_up_to_a_bound() {
        let rtt = RoundTrip::default();
        let waits = [1, 2, 3, 7, 8, 1000].map(|attempts| rtt.timeout(6, MS, attempts) / MS);
        assert_eq!(waits, [1, 2, 4, 64, 64, 64]);
        let mean = u64::MAX;
        let endless = RoundTrip { mean, ..rtt };
        assert_eq!(endless.timeout(6, MS, 9), u64::MAX);
    }

    #[test]
    fn a_path_slower_than_the_first_guess_is_learned() {
        let (mut rtt, real, floor) = (RoundTrip::default(), 30 * MS, MS);
        let mut retransmissions = 0;
        for _ in 0..50 {
            let mut attempts = 1;
            let mut waited = rtt.timeout(6, floor, 1);
            while waited < real {
                attempts += 1;
                waited += rtt.timeout(6, floor, attempts);
            }
            retransmissions += attempts - 1;
            rtt.answered(real, attempts);
        }
        assert!(retransmissions < 10, "{retransmissions}");
        assert_eq!(rtt.mean(), real);
    }
}
