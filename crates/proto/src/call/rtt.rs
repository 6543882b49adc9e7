//! How long a requester waits for an answer before it asks again.
//!
//! The paper waits 6 round trips for requests and 3 for unlocks (§5.3.1).
//! A mean alone is no good where peers share processors: the deviation is kept beside it, by the
//! rule of RFC 6298, and no timeout is below the mean and four deviations. Only answers to what was
//! sent once are measured (Karn's rule); where a path is so slow that there are none, the wait that
//! was enough in the end is where the next event begins.

/// Every retransmission doubles the wait for the next one, since a path may be slower than the
/// first guess, until it is the shortest wait doubled so many times:
/// who holds a block's lock must not stay away for long.
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
    /// An event was answered `since_first` after it was sent, in the last of `attempts`
    /// `since_last` ago.
    pub fn answered(&mut self, since_first: u64, since_last: u64, attempts: u32) {
        if attempts > 1 {
            // Which attempt was answered is not known. As soon after the last one as answers come,
            // it was probably that one, and the others were lost; otherwise the path has become
            // slower.
            let slower = self.mean == 0 || since_last > self.varied();
            let needed = self.doublings.saturating_add(attempts - 1);
            self.doublings = if slower { needed.min(DOUBLINGS) } else { 0 };
            return;
        }
        self.doublings = 0;
        if self.mean == 0 {
            (self.mean, self.deviation) = (since_first, since_first / 2);
            return;
        }
        let off = self.mean.abs_diff(since_first);
        self.deviation = (self.deviation * 3 + off) / 4;
        self.mean = (self.mean * 7 + since_first) / 8;
    }

    /// What nearly all answers come within.
    fn varied(&self) -> u64 {
        self.mean.saturating_add(self.deviation.saturating_mul(4))
    }

    /// The smoothed round trip; 0 before the first is known.
    pub fn mean(&self) -> u64 {
        self.mean
    }

    /// How long to wait for an answer to the `attempts`-th transmission (from 1):
    /// so many round trips, as much longer as they vary, never less than `floor`; twice as long
    /// each time, until that is 64 times `floor`.
    pub fn timeout(&self, round_trips: u64, floor: u64, attempts: u32) -> u64 {
        let trips = self.mean.saturating_mul(round_trips);
        let first = trips.max(self.varied()).max(floor);
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
            rtt.answered(500 * US, 500 * US, 1);
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
            steady.answered(500 * US, 500 * US, 1);
            let time = if i % 2 == 0 { 0 } else { MS };
            varying.answered(time, time, 1);
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

    /// Asks and asks again until the answer comes, `real` after the first time; how often.
    fn ask(rtt: &mut RoundTrip, real: u64) -> u32 {
        let (mut attempts, mut last, mut next) = (1, 0, rtt.timeout(6, MS, 1));
        while next < real {
            attempts += 1;
            (last, next) = (next, next + rtt.timeout(6, MS, attempts));
        }
        rtt.answered(real, real - last, attempts);
        attempts - 1
    }

    #[test]
    fn a_path_slower_than_the_first_guess_is_learned() {
        for before in [0, 1, 10] {
            let mut rtt = RoundTrip::default();
            (0..before).for_each(|_| assert_eq!(ask(&mut rtt, 200 * US), 0));
            let again: u32 = (0..50).map(|_| ask(&mut rtt, 30 * MS)).sum();
            assert!(again < 20, "{again} after {before}");
            assert_eq!(ask(&mut rtt, 30 * MS), 0);
        }
    }

    #[test]
    fn a_lost_packet_does_not_make_the_next_wait_longer() {
        let mut rtt = RoundTrip::default();
        (0..50).for_each(|_| assert_eq!(ask(&mut rtt, 200 * US), 0));
        let wait = rtt.timeout(6, MS, 1);
        rtt.answered(wait + 200 * US, 200 * US, 2);
        assert_eq!(rtt.timeout(6, MS, 1), wait);
    }
}
