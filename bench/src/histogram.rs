//! Latencies in fixed memory: an [HdrHistogram](https://hdrhistogram.org) of two significant
//! digits. What is read back is within 1% of what was recorded.

use hdrhistogram::Histogram as Hdr;
use std::fmt;

/// What is larger counts as this: 2^42 ns is more than an hour.
const MAX_VALUE: u64 = (1 << 42) - 1;
/// Significant digits that are kept; a histogram takes some 40 KiB.
const DIGITS: u8 = 2;

/// Counts of values, of nanoseconds as a rule.
#[derive(Clone)]
pub struct Histogram(Hdr<u64>);

impl Default for Histogram {
    fn default() -> Self {
        let made = Hdr::new_with_bounds(1, MAX_VALUE, DIGITS);
        Histogram(made.expect("bounds that hdrhistogram takes"))
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("p50", &self.percentile(50.0))
            .field("p99", &self.percentile(99.0))
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

impl Histogram {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value; one above 2^42 counts as 2^42.
    pub fn record(&mut self, value: u64) {
        self.0.saturating_record(value);
    }

    /// Adds all of another's values.
    pub fn merge(&mut self, other: &Histogram) {
        // Their bounds are the same, so all of them have room here.
        let added = self.0.add(&other.0);
        debug_assert!(added.is_ok());
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The smallest value, 0 where there is none.
    pub fn min(&self) -> u64 {
        match self.0.is_empty() {
            true => 0,
            false => self.0.min(),
        }
    }

    /// The largest value, 0 where there is none.
    pub fn max(&self) -> u64 {
        self.0.max()
    }

    /// The mean, 0 where there is no value.
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// The value that so many percent of all values do not exceed; 0 where there is no value.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.0.value_at_percentile(percent.clamp(0.0, 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_close_to_those_of_the_sorted_values() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut histogram = Histogram::new();
        let mut values: Vec<u64> = (0..50_000)
            .map(|_| rng.u64(0..40) << rng.u32(0..24))
            .collect();
        values.iter().for_each(|&value| histogram.record(value));
        values.sort_unstable();
        for percent in [0.0, 10.0, 50.0, 90.0, 99.0, 99.9, 100.0] {
            let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
            let exact = values[rank.max(1) - 1];
            let found = histogram.percentile(percent);
            assert!(
                found >= exact && found <= exact + exact / 100,
                "{percent}: {exact} {found}"
            );
        }
        let exact = values.iter().sum::<u64>() as f64 / 50_000.0;
        assert!((histogram.mean() - exact).abs() < exact / 100.0);
        let largest = values[values.len() - 1];
        assert!((largest..=largest + largest / 100).contains(&histogram.max()));
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut left, mut right, mut both) =
            (Histogram::new(), Histogram::new(), Histogram::new());
        for value in [1, 5, 900, 70_000, u64::MAX] {
            left.record(value);
            both.record(value);
        }
        for value in [0, 33, 1 << 20] {
            right.record(value);
            both.record(value);
        }
        left.merge(&right);
        assert_eq!(left.0, both.0);
        assert_eq!((left.min(), left.count()), (0, 8));
        assert!(left.max() >= MAX_VALUE);
    }

    #[test]
    fn an_empty_one_has_only_zeros() {
        let empty = Histogram::new();
        let all = (empty.min(), empty.max(), empty.percentile(99.0));
        assert_eq!((all, empty.mean()), ((0, 0, 0), 0.0));
    }
}
