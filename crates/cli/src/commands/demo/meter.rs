//! Counting operations and timing some of them.

use rackmem_bench::histogram::Histogram;
use std::time::Instant;

/// One operation in so many is timed: reading the clock twice costs about as much as a hit.
const SAMPLE: u64 = 16;

/// What one thread has done.
#[derive(Default)]
pub struct Meter {
    /// Operations.
    pub operations: u64,
    /// Nanoseconds of those that were timed.
    pub latencies: Histogram,
}

impl Meter {
    /// Does one operation, and times it if it is its turn.
    #[inline]
    pub fn time<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        self.operations += 1;
        if !self.operations.is_multiple_of(SAMPLE) {
            return operation();
        }
        let start = Instant::now();
        let result = operation();
        let nanos = start.elapsed().as_nanos();
        self.latencies
            .record(u64::try_from(nanos).unwrap_or(u64::MAX));
        result
    }

    /// What several threads have done together.
    pub fn sum(meters: impl IntoIterator<Item = Meter>) -> Meter {
        let mut sum = Meter::default();
        for meter in meters {
            sum.operations += meter.operations;
            sum.latencies.merge(&meter.latencies);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_counts_and_some_are_timed() {
        let mut meter = Meter::default();
        let results: u64 = (0..100).map(|n| meter.time(|| n)).sum();
        assert_eq!(results, 4950);
        let both = Meter::sum([meter, Meter::default()]);
        assert_eq!(
            (both.operations, both.latencies.count()),
            (100, 100 / SAMPLE)
        );
    }
}
