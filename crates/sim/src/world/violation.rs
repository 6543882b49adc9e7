//! A promise that a world has seen broken.

use std::fmt::{self, Display};

/// What was broken, when, and what led to it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The world's seed: the same seed and configuration break it again.
    pub seed: u64,
    /// The invariant's name.
    pub invariant: &'static str,
    /// Where the paper promises it.
    pub section: &'static str,
    /// What was seen.
    pub detail: String,
    /// Virtual time in nanoseconds.
    pub at: u64,
    /// The number of the block in question, if there is one.
    pub block: Option<u32>,
    /// The last packets and local changes of the block in question.
    pub trace: Vec<String>,
}

impl Violation {
    /// What was broken in which world, and when: its text without the trace.
    pub fn headline(&self) -> String {
        format!(
            "seed {}: {} ({}) broken after {:.2} us: {}",
            self.seed,
            self.invariant,
            self.section,
            self.at as f64 / 1000.0,
            self.detail
        )
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.headline())?;
        self.trace.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl std::error::Error for Violation {}
