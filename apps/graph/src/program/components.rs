//! Connected components.

use super::{NO_VERTEX, Program, counted};

/// Which vertices hang together: each has the smallest number of those from which a path leads to
/// it. Of a graph whose edges lead both ways ([`Graph::undirected`](crate::Graph::undirected)) this
/// is its component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Components;

impl Program for Components {
    type Value = u64;

    fn start(&self, vertex: u32) -> u64 {
        u64::from(vertex)
    }

    fn give(&self, smallest: u64, _: u32) -> u64 {
        smallest
    }

    fn along(&self, smallest: u64, _: u32) -> u64 {
        smallest
    }

    fn nothing(&self) -> u64 {
        u64::MAX
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
