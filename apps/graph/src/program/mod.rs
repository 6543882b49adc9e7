//! What is computed: programs of vertices.

mod components;
mod pagerank;
mod shortest_paths;

pub use components::Components;
pub use pagerank::PageRank;
pub use shortest_paths::{ShortestPaths, UNREACHED};

/// What a vertex has, in a word of shared memory.
pub trait Word: Copy + PartialEq + Send + Sync + std::fmt::Debug + 'static {
    /// As it is in memory.
    fn to_word(self) -> u64;
    /// From memory: every word is a value.
    fn of_word(word: u64) -> Self;
}

impl Word for u64 {
    fn to_word(self) -> u64 {
        self
    }

    fn of_word(word: u64) -> u64 {
        word
    }
}

impl Word for f64 {
    fn to_word(self) -> u64 {
        self.to_bits()
    }

    fn of_word(word: u64) -> f64 {
        f64::from_bits(word)
    }
}

/// A computation on vertices that is stateless between steps. What arrives at a vertex is added in
/// one order in all engines, so a sum may be one of floating-point numbers.
pub trait Program: Sync {
    /// What a vertex has, what travels, and sums of that.
    type Value: Word;

    /// What a vertex has before the first step.
    fn start(&self, vertex: u32) -> Self::Value;

    /// What a vertex gives along each of its edges.
    fn give(&self, value: Self::Value, out_degree: u32) -> Self::Value;

    /// What of that arrives at the other end of an edge.
    fn along(&self, given: Self::Value, weight: u32) -> Self::Value;

    /// The sum of nothing.
    fn nothing(&self) -> Self::Value;

    /// The sum of two.
    fn sum(&self, one: Self::Value, other: Self::Value) -> Self::Value;

    /// What a vertex makes of what it has and what has arrived. `everywhere` is the sum of
    /// [`Program::leak`] over all vertices before this step.
    fn apply(&self, own: Self::Value, sum: Self::Value, everywhere: f64) -> Self::Value;

    /// What a vertex gives to all vertices alike.
    fn leak(&self, value: Self::Value, out_degree: u32) -> f64 {
        let _ = (value, out_degree);
        0.0
    }

    /// How much a vertex has changed.
    fn change(&self, old: Self::Value, new: Self::Value) -> f64;

    /// The computation is done when all vertices together change by less in a step.
    fn tolerance(&self) -> f64;
}

/// The tolerance of programs that count changed vertices: none may.
const NO_VERTEX: f64 = 0.5;

/// The change of programs that count changed vertices.
fn counted(is_changed: bool) -> f64 {
    f64::from(u8::from(is_changed))
}
