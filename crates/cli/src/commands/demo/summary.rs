//! What the demo found, for a person and for a script.

mod json;
mod tables;

use crate::out;
use crate::rack_args::RackArgs;
use rackmem::diagnostics::RackMetrics;
use rackmem_bench::histogram::Histogram;
use rackmem_bench::packages::Loaded;
use std::time::Instant;

/// What one part took.
pub struct Phase {
    /// Its name: stable, lower case.
    pub name: String,
    /// Time.
    pub seconds: f64,
    /// Operations of all threads.
    pub operations: u64,
    /// Coherence transactions that operations waited for; see `remote.rs`.
    pub remote: u64,
    /// Nanoseconds of the operations that were timed.
    pub latencies: Histogram,
}

impl Phase {
    /// Operations a second.
    pub fn per_second(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }

    /// Coherence transactions an operation. `None` where there was no operation.
    pub fn remote_per_operation(&self) -> Option<f64> {
        let any = self.operations > 0;
        any.then(|| self.remote as f64 / self.operations as f64)
    }
}

/// A package and its rank.
pub struct Ranked {
    /// Its name.
    pub name: String,
    /// Its share of all ranks.
    pub rank: f64,
}

/// What PageRank found.
pub struct Ranking {
    /// The highest.
    pub top: Vec<Ranked>,
    /// Rounds.
    pub rounds: u32,
    /// The largest difference from the plain computation.
    pub error: f64,
    /// What the plain computation took, on one thread.
    pub plain_seconds: f64,
}

/// The judgement on the recorded history.
pub struct Judged {
    /// Operations.
    pub operations: usize,
    /// Keys.
    pub keys: usize,
    /// Operations that began while another one on the same key was under way.
    pub overlapping: usize,
    /// What the check took.
    pub seconds: f64,
}

/// All of it.
pub struct Story {
    /// The rack, in words.
    pub rack: String,
    /// Where the graph is from.
    pub source: String,
    /// Its packages.
    pub packages: usize,
    /// Its dependencies.
    pub dependencies: usize,
    /// The parts, in order.
    pub phases: Vec<Phase>,
    /// YCSB on the rack of processes; none when it was left out.
    pub processes: Vec<Phase>,
    /// What PageRank found.
    pub ranking: Option<Ranking>,
    /// The judgement on the history.
    pub judged: Option<Judged>,
    start: Instant,
}

impl Story {
    /// The beginning.
    pub fn new(rack: &RackArgs, loaded: &Loaded) -> Self {
        Story {
            rack: rack.describe(),
            source: loaded.source.to_string(),
            packages: loaded.graph.nodes(),
            dependencies: loaded.graph.edges(),
            phases: Vec::new(),
            processes: Vec::new(),
            ranking: None,
            judged: None,
            start: Instant::now(),
        }
    }

    /// The end: everything as tables, or as one object.
    pub fn print(&self, metrics: &RackMetrics, json: bool) {
        let seconds = self.start.elapsed().as_secs_f64();
        if json {
            out::line(json::story(self, metrics, seconds));
        } else {
            tables::print(self, metrics, seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_shown_per_operation() {
        let mut phase = Phase {
            name: "ycsb c".into(),
            seconds: 2.0,
            operations: 1000,
            remote: 10,
            latencies: Histogram::new(),
        };
        assert_eq!(phase.per_second(), 500.0);
        assert_eq!(phase.remote_per_operation(), Some(0.01));
        phase.remote = 2000;
        assert_eq!(phase.remote_per_operation(), Some(2.0));
        phase.operations = 0;
        assert_eq!(phase.remote_per_operation(), None);
    }
}
