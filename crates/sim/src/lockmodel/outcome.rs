//! What a run tells.

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
    /// What an operation has read, until the thread goes on.
    pub(super) word: Option<u64>,
}

/// What was measured after warm-up, and how the run ended.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Acquisitions.
    pub acquisitions: u64,
    /// How long that was, in virtual nanoseconds.
    pub nanoseconds: u64,
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
    /// Acquisitions of the blade that had fewest, by those of the one that had most.
    pub fairness: f64,
    /// Of the whole run: what threads' blades asked GCP's directory for.
    pub requests: u64,
    /// Of the whole run: threads that entered because of that.
    pub granted: u64,
    /// Of the whole run: releases that GCP's directory refused, because a request was under way to who released.
    pub denied: u64,
    /// Of the whole run: threads that were in the middle of something when nothing was left to happen.
    pub unfinished: u64,
    /// Of the whole run: threads that came in while others were inside who should not have been.
    pub overlaps: u64,
    /// Of the whole run: packets that nobody had taken by then.
    pub in_flight: u64,
    /// Of the whole run: answers that no correct rack gives.
    pub failures: u64,
    /// Of the whole run: packets that were taken.
    pub packets: u64,
    /// Of the whole run: what the simulator went through.
    pub occurrences: u64,
    /// A number that the whole run decides.
    pub digest: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, cycle: &Cycle) {
        self.acquisitions += 1;
        self.latencies.push(cycle.latency);
        self.refused += u64::from(cycle.refused);
        if !cycle.remote {
            return;
        }
        self.least_transactions = match self.remote {
            0 => cycle.transactions,
            _ => self.least_transactions.min(cycle.transactions),
        };
        self.most_transactions = self.most_transactions.max(cycle.transactions);
        self.remote += 1;
        self.transactions += u64::from(cycle.transactions);
        self.remote_wait += cycle.latency;
    }

    /// Millions of acquisitions a second of the whole rack.
    pub fn mops(&self) -> f64 {
        self.acquisitions as f64 * 1e3 / self.nanoseconds.max(1) as f64
    }

    /// Coherence transactions of a remote acquisition.
    pub fn transactions_each(&self) -> f64 {
        self.transactions as f64 / self.remote.max(1) as f64
    }

    /// Mean time of all acquisitions, in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.latencies.iter().sum::<u64>() as f64 / self.acquisitions.max(1) as f64
    }

    /// Mean time of remote acquisitions, in nanoseconds.
    pub fn remote_mean(&self) -> f64 {
        self.remote_wait as f64 / self.remote.max(1) as f64
    }

    /// The time that so many percent of all acquisitions do not exceed, in nanoseconds.
    pub fn percentile(&self, percent: f64) -> u64 {
        let last = self.latencies.len().saturating_sub(1);
        let at = (last as f64 * percent / 100.0).round() as usize;
        self.latencies.get(at.min(last)).copied().unwrap_or(0)
    }
}
