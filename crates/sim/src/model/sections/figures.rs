//! What is measured of critical sections.

use super::super::Outcome;

/// One acquisition, from the wish for the lock to its release.
#[derive(Clone, Copy, Default, Debug)]
pub struct Cycle {
    /// From the wish to the lock and the data, in nanoseconds.
    pub latency: u64,
    /// Coherence transactions, those of the release included.
    pub transactions: u32,
    /// Events of coherent memory that were refused and tried again.
    pub refused: u32,
    /// Something had to come from another blade.
    pub remote: bool,
}

/// See the module.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SectionFigures {
    /// Of the acquisitions, those for which something had to come from another blade.
    pub remote: u64,
    /// Coherence transactions of these.
    pub transactions: u64,
    /// Of one of them, at most.
    pub most_transactions: u32,
    /// Of one of them, at least.
    pub least_transactions: u32,
    /// Events of coherent memory that were refused and tried again.
    pub refused: u64,
    /// From the wish to the lock and the data in nanoseconds, of all acquisitions: sorted.
    pub latencies: Vec<u64>,
    /// The sum of those of remote acquisitions.
    pub remote_wait: u64,
}

impl SectionFigures {
    pub(super) fn count(&mut self, cycle: &Cycle) {
        let remote = u64::from(cycle.remote);
        self.add(&SectionFigures {
            remote,
            transactions: remote * u64::from(cycle.transactions),
            most_transactions: cycle.transactions,
            least_transactions: cycle.transactions,
            refused: cycle.refused.into(),
            latencies: vec![cycle.latency],
            remote_wait: remote * cycle.latency,
        });
    }

    pub(super) fn add(&mut self, more: &SectionFigures) {
        if more.remote > 0 {
            self.least_transactions = match self.remote {
                0 => more.least_transactions,
                _ => self.least_transactions.min(more.least_transactions),
            };
            self.most_transactions = self.most_transactions.max(more.most_transactions);
        }
        self.remote += more.remote;
        self.transactions += more.transactions;
        self.refused += more.refused;
        self.latencies.extend(&more.latencies);
        self.remote_wait += more.remote_wait;
    }
}

impl Outcome<SectionFigures> {
    /// Coherence transactions of a remote acquisition.
    pub fn transactions_each(&self) -> f64 {
        self.of.transactions as f64 / self.of.remote.max(1) as f64
    }

    /// Mean time of all acquisitions, in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.of.latencies.iter().sum::<u64>() as f64 / self.operations.max(1) as f64
    }

    /// Mean time of remote acquisitions, in nanoseconds.
    pub fn remote_mean(&self) -> f64 {
        self.of.remote_wait as f64 / self.of.remote.max(1) as f64
    }

    /// The time that so many percent of all acquisitions do not exceed, in nanoseconds.
    pub fn percentile(&self, percent: f64) -> u64 {
        let last = self.of.latencies.len().saturating_sub(1);
        let at = (last as f64 * percent / 100.0).round() as usize;
        self.of.latencies.get(at.min(last)).copied().unwrap_or(0)
    }
}
