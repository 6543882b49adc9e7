//! What one engine found, for tables, scripts and pictures, and for the process that has started
//! this one.

use serde::{Deserialize, Serialize};

/// A step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepRow {
    /// How much all vertices together have changed.
    pub change: f64,
    /// Vertices that have changed.
    pub changed: u64,
    /// Since the computation began.
    pub seconds: f64,
}

/// A vertex that is shown.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct TopRow {
    /// What it is called.
    pub vertex: String,
    /// What was found for it.
    pub value: f64,
}

/// How a result compares with that of one thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Agreement {
    /// Whether all values have the same bits.
    pub same_bits: bool,
    /// The largest difference of a value.
    pub largest_difference: f64,
    /// Steps beyond those of one thread.
    pub more_steps: i64,
    /// What one thread took.
    pub plain_seconds: f64,
}

/// What one engine found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub engine: String,
    /// From the first step to the end of the last.
    pub seconds: f64,
    /// Whether nothing changed any more.
    pub is_done: bool,
    /// The steps.
    pub steps: Vec<StepRow>,
    /// Packets that agents and the switch have received, from joining the rack on.
    pub packets: u64,
    /// Beside one thread.
    pub agreement: Option<Agreement>,
    /// All values in a sentence.
    pub summary: String,
    /// Some vertices.
    pub top: Vec<TopRow>,
}
