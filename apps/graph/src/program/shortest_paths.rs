//! Shortest paths from one vertex.

use super::{NO_VERTEX, Program, counted};

/// The distance of a vertex to which no path leads.
pub const UNREACHED: u64 = u64::MAX;

/// How far vertices are from one, along edges, by their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortestPaths {
    /// Where all paths begin.
    pub from: u32,
}

impl Program for ShortestPaths {
    type Value = u64;

    fn start(&self, vertex: u32) -> u64 {
        if vertex == self.from { 0 } else { UNREACHED }
    }

    fn give(&self, distance: u64, _: u32) -> u64 {
        distance
    }

    fn along(&self, distance: u64, weight: u32) -> u64 {
        distance.saturating_add(u64::from(weight))
    }

    fn nothing(&self) -> u64 {
        UNREACHED
    }

    fn sum(&self, one: u64, other: u64) -> u64 {
        one.min(other)
    }

    fn apply(&self, own: u64, sum: u64, _: f64) -> u64 {
        own.min(sum)
    }

    fn change(&self, old: u64, new: u64) -> f64 {
        counted(old != new)
    }

    fn tolerance(&self) -> f64 {
        NO_VERTEX
    }
}
