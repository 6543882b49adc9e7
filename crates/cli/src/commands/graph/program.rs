//! What is told of each program's values.

use super::row::TopRow;
use crate::size::count;
use rackmem_graph::{Components, Graph, PageRank, Program, ShortestPaths, UNREACHED};
use std::cmp::Reverse;
use std::collections::HashMap;

/// A program whose values can be told.
pub trait Told: Program {
    /// Its name.
    const NAME: &'static str;
    /// What the vertices that are shown have in common.
    const TOP: &'static str;
    /// What is shown of them.
    const VALUE: &'static str;

    /// All values in a sentence.
    fn summary(&self, values: &[Self::Value]) -> String;

    /// So many vertices.
    fn top(&self, graph: &Graph, values: &[Self::Value], most: usize) -> Vec<TopRow>;

    /// How far apart two values are.
    fn apart(&self, one: Self::Value, other: Self::Value) -> f64;

    /// A value as a number, if it is one.
    fn number(&self, value: Self::Value) -> Option<f64>;

    /// What networkx needs to know: damping, tolerance, and where paths begin.
    fn for_networkx(&self) -> [String; 3] {
        ["0", "0", "0"].map(String::from)
    }
}

fn rows(graph: &Graph, of: impl Iterator<Item = (u32, f64)>) -> Vec<TopRow> {
    let row = |(vertex, value)| TopRow {
        vertex: graph.name(vertex).into_owned(),
        value,
    };
    of.map(row).collect()
}

impl Told for PageRank {
    const NAME: &'static str = "pagerank";
    const TOP: &'static str = "highest ranks";
    const VALUE: &'static str = "rank";

    fn summary(&self, ranks: &[f64]) -> String {
        format!(
            "ranks add up to {:.9}",
            ranks.iter().fold(0.0, |sum, rank| sum + rank)
        )
    }

    fn top(&self, graph: &Graph, ranks: &[f64], most: usize) -> Vec<TopRow> {
        let mut order: Vec<(u32, f64)> = (0..).zip(ranks.iter().copied()).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows(graph, order.into_iter().take(most))
    }

    fn apart(&self, one: f64, other: f64) -> f64 {
        (one - other).abs()
    }

    fn number(&self, rank: f64) -> Option<f64> {
        Some(rank)
    }

    fn for_networkx(&self) -> [String; 3] {
        [
            self.damping.to_string(),
            self.tolerance.to_string(),
            "0".into(),
        ]
    }
}

impl Told for ShortestPaths {
    const NAME: &'static str = "sssp";
    const TOP: &'static str = "farthest vertices that are reached";
    const VALUE: &'static str = "distance";

    fn summary(&self, distances: &[u64]) -> String {
        let reached = distances.iter().filter(|it| **it != UNREACHED);
        let (reached, all) = (reached.count() as u64, distances.len() as u64);
        format!("{} of {} vertices are reached", count(reached), count(all))
    }

    fn top(&self, graph: &Graph, distances: &[u64], most: usize) -> Vec<TopRow> {
        let all = (0..).zip(distances.iter().copied());
        let mut order: Vec<(u32, u64)> = all.filter(|it| it.1 != UNREACHED).collect();
        order.sort_by_key(|(_, distance)| Reverse(*distance));
        let order = order.into_iter().take(most);
        rows(
            graph,
            order.map(|(vertex, distance)| (vertex, distance as f64)),
        )
    }

    fn apart(&self, one: u64, other: u64) -> f64 {
        one.abs_diff(other) as f64
    }

    fn number(&self, distance: u64) -> Option<f64> {
        (distance != UNREACHED).then_some(distance as f64)
    }

    fn for_networkx(&self) -> [String; 3] {
        ["0".into(), "0".into(), self.from.to_string()]
    }
}

impl Told for Components {
    const NAME: &'static str = "components";
    const TOP: &'static str = "largest components, by a vertex of each";
    const VALUE: &'static str = "vertices";

    fn summary(&self, smallest: &[u64]) -> String {
        let count_of = (0..).zip(smallest).filter(|(own, it)| own == *it).count();
        match count_of {
            1 => "1 component".into(),
            many => format!("{} components", count(many as u64)),
        }
    }

    fn top(&self, graph: &Graph, smallest: &[u64], most: usize) -> Vec<TopRow> {
        let mut sizes: HashMap<u64, u64> = HashMap::new();
        for one in smallest {
            *sizes.entry(*one).or_default() += 1;
        }
        let mut order: Vec<(u64, u64)> = sizes.into_iter().collect();
        order.sort_by_key(|(smallest, size)| (Reverse(*size), *smallest));
        let order = order.into_iter().take(most);
        rows(
            graph,
            order.map(|(vertex, size)| (vertex as u32, size as f64)),
        )
    }

    fn apart(&self, one: u64, other: u64) -> f64 {
        one.abs_diff(other) as f64
    }

    fn number(&self, smallest: u64) -> Option<f64> {
        Some(smallest as f64)
    }
}
