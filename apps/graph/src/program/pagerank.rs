//! PageRank.

use super::Program;
use crate::graph::Graph;

/// The chance that a walk along edges is at a vertex. What a vertex without edges has goes to all
/// vertices alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageRank {
    /// Of the graph.
    pub vertices: u32,
    /// The chance of following an edge rather than jumping anywhere.
    pub damping: f64,
    /// It is done when all ranks together change by less in a step.
    pub tolerance: f64,
}

impl PageRank {
    /// With a damping of 0.85 and a tolerance of 1e-10, which is within 6e-10 of the limit.
    pub fn of(graph: &Graph) -> PageRank {
        PageRank {
            vertices: graph.vertices(),
            damping: 0.85,
            tolerance: 1e-10,
        }
    }
}

impl Program for PageRank {
    type Value = f64;

    fn start(&self, _: u32) -> f64 {
        1.0 / f64::from(self.vertices)
    }

    fn give(&self, rank: f64, out_degree: u32) -> f64 {
        rank / f64::from(out_degree)
    }

    fn along(&self, share: f64, _: u32) -> f64 {
        share
    }

    fn nothing(&self) -> f64 {
        0.0
    }

    fn sum(&self, one: f64, other: f64) -> f64 {
        one + other
    }

    fn apply(&self, _: f64, sum: f64, everywhere: f64) -> f64 {
        let base = (1.0 - self.damping + self.damping * everywhere) / f64::from(self.vertices);
        base + self.damping * sum
    }

    fn leak(&self, rank: f64, out_degree: u32) -> f64 {
        if out_degree == 0 { rank } else { 0.0 }
    }

    fn change(&self, old: f64, new: f64) -> f64 {
        (new - old).abs()
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}
