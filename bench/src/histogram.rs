//! Latencies in fixed memory: a histogram whose buckets are a constant share of their value wide.
//!
//! Values below 128 have a bucket each. Above, every power of two is split into 64 buckets,
//! so what is read back is at most 1/64 (1.6%) above what was recorded.
//! Recording is an addition to an array; histograms of threads are merged afterwards.

/// Buckets a power of two, as a power of two.
const SPLIT: u32 = 6;
const LINEAR: u64 = 2 << SPLIT;
/// The last bucket takes all that is larger: 2^42 ns is more than an hour.
const MAX_VALUE: u64 = (1 << 42) - 1;
const BUCKETS: usize = bucket(MAX_VALUE) + 1;

/// The bucket of a value.
const fn bucket(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    let shift = value.ilog2() - SPLIT;
    ((shift as u64) << SPLIT) as usize + (value >> shift) as usize
}

/// The largest value of a bucket.
fn top(bucket: usize) -> u64 {
    if (bucket as u64) < LINEAR {
        return bucket as u64;
    }
    let shift = (bucket >> SPLIT) - 1;
    let first = (bucket - (shift << SPLIT)) as u64;
    ((first + 1) << shift) - 1
}

/// Counts of values, of nanoseconds as a rule; about 19 KiB.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
            .field("p50", &self.percentile(50.0))
            .field("p99", &self.percentile(99.0))
            .field("max", &self.max)
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
        let value = value.min(MAX_VALUE);
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all of another's values.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The smallest value, 0 where there is none.
    pub fn min(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min }
    }

    /// The largest value, 0 where there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean, exact, 0 where there is no value.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The value that so many percent of all values do not exceed, as the top of its bucket and
    /// never beyond the largest value; 0 where there is no value.
    pub fn percentile(&self, percent: f64) -> u64 {
        let share = (percent / 100.0).clamp(0.0, 1.0);
        let wanted = ((share * self.count as f64).ceil() as u64).max(1);
        let mut passed = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= wanted {
                return top(bucket).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_all_values() {
        for edge in 0..BUCKETS {
            assert_eq!(bucket(top(edge)), edge);
            if edge + 1 < BUCKETS {
                assert_eq!(bucket(top(edge) + 1), edge + 1);
            }
        }
        assert_eq!(top(BUCKETS - 1), MAX_VALUE);
    }

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
                found >= exact && found <= exact + exact / 64,
                "{percent}: {exact} {found}"
            );
        }
        let sum: u64 = values.iter().sum();
        assert!((histogram.mean() - sum as f64 / 50_000.0).abs() < 1e-6);
        assert_eq!(histogram.max(), values[values.len() - 1]);
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
        assert_eq!(left.counts, both.counts);
        assert_eq!((left.min(), left.max()), (both.min(), both.max()));
        assert_eq!(left.count(), 8);
        assert_eq!(left.max(), MAX_VALUE);
    }

    #[test]
    fn an_empty_one_has_only_zeros() {
        let empty = Histogram::new();
        assert_eq!(
            (empty.min(), empty.max(), empty.percentile(99.0)),
            (0, 0, 0)
        );
        assert_eq!(empty.mean(), 0.0);
    }
}
