//! A directed graph: its edges in order, and what its vertices are called.

use crate::error::{GraphError, Result};
use std::borrow::Cow;

/// Vertices of a graph, at most.
pub const MAX_VERTICES: usize = 1 << 28;
/// Edges of a graph, at most.
pub const MAX_EDGES: usize = 1 << 31;

/// An edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// Where it comes from.
    pub source: u32,
    /// Where it leads to.
    pub target: u32,
    /// How long it is, for programs that ask.
    pub weight: u32,
}

impl Edge {
    /// An edge of length one.
    pub fn new(source: u32, target: u32) -> Edge {
        let weight = 1;
        Edge {
            source,
            target,
            weight,
        }
    }
}

/// A directed graph. Of several edges from one vertex to another the shortest counts; an edge from
/// a vertex to itself is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    vertices: u32,
    /// Without an entry the vertices are called by their numbers.
    names: Vec<String>,
    edges: Vec<Edge>,
    out_degrees: Vec<u32>,
}

impl Graph {
    /// A graph whose vertices have numbers only.
    ///
    /// # Errors
    /// [`GraphError::NoSuchVertex`], [`GraphError::TooLarge`].
    pub fn numbered(vertices: u32, edges: Vec<Edge>) -> Result<Graph> {
        Graph::of(vertices, Vec::new(), edges)
    }

    /// A graph with a name for each vertex.
    ///
    /// # Errors
    /// Those of [`Graph::numbered`].
    pub fn named(names: Vec<String>, edges: Vec<Edge>) -> Result<Graph> {
        let vertices = u32::try_from(names.len()).unwrap_or(u32::MAX);
        Graph::of(vertices, names, edges)
    }

    fn of(vertices: u32, names: Vec<String>, mut edges: Vec<Edge>) -> Result<Graph> {
        let sizes = [
            ("vertices", vertices as usize, MAX_VERTICES),
            ("edges", edges.len(), MAX_EDGES),
        ];
        for (what, is, most) in sizes {
            if is > most {
                let most = most as u64;
                return Err(GraphError::TooLarge { what, most });
            }
        }
        let mut ends = edges.iter().map(|edge| edge.source.max(edge.target));
        if let Some(vertex) = ends.find(|end| *end >= vertices) {
            return Err(GraphError::NoSuchVertex { vertex, vertices });
        }
        edges.sort_unstable();
        // The first of each pair is the shortest.
        edges.dedup_by_key(|edge| (edge.source, edge.target));
        let mut out_degrees = vec![0; vertices as usize];
        for edge in &edges {
            out_degrees[edge.source as usize] += 1;
        }
        Ok(Graph {
            vertices,
            names,
            edges,
            out_degrees,
        })
    }

    /// How many vertices there are.
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// The edges, by source, then by target.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// How many edges leave each vertex.
    pub fn out_degrees(&self) -> &[u32] {
        &self.out_degrees
    }

    /// What a vertex is called.
    pub fn name(&self, vertex: u32) -> Cow<'_, str> {
        match self.names.get(vertex as usize) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(vertex.to_string()),
        }
    }

    /// The vertex that is called so.
    pub fn find(&self, name: &str) -> Option<u32> {
        if self.names.is_empty() {
            return name.parse().ok().filter(|vertex| *vertex < self.vertices);
        }
        let found = self.names.iter().position(|own| own == name);
        found.and_then(|vertex| u32::try_from(vertex).ok())
    }

    /// The same with every edge in both directions.
    #[must_use]
    pub fn undirected(&self) -> Graph {
        let mut edges = Vec::with_capacity(self.edges.len() * 2);
        for edge in &self.edges {
            let (source, target) = (edge.target, edge.source);
            edges.extend([
                *edge,
                Edge {
                    source,
                    target,
                    ..*edge
                },
            ]);
        }
        // Its vertices are those of this one: no error is left.
        Graph::of(self.vertices, self.names.clone(), edges).unwrap_or_default()
    }

    /// A number that other graphs do not have, but by chance.
    pub(crate) fn fingerprint(&self) -> u64 {
        let start = mix(u64::from(self.vertices));
        self.edges.iter().fold(start, |sum, edge| {
            let ends = u64::from(edge.source) << 32 | u64::from(edge.target);
            mix(sum ^ ends).wrapping_add(u64::from(edge.weight))
        })
    }
}

/// Bits that depend on all bits of a number (splitmix64).
pub(crate) fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_of_several_edges_counts() {
        let edge = |source, target, weight| Edge {
            source,
            target,
            weight,
        };
        let edges = vec![edge(1, 0, 7), edge(0, 0, 2), edge(1, 0, 3), edge(0, 1, 1)];
        let graph = Graph::numbered(2, edges).unwrap();
        assert_eq!(graph.edges(), [edge(0, 0, 2), edge(0, 1, 1), edge(1, 0, 3)]);
        assert_eq!(graph.out_degrees(), [2, 1]);
        assert_eq!(graph.undirected().edges().len(), 3);
    }

    #[test]
    fn an_edge_to_nowhere_is_refused() {
        let refused = Graph::numbered(2, vec![Edge::new(0, 2)]);
        let is = |error| matches!(error, GraphError::NoSuchVertex { vertex: 2, .. });
        assert!(refused.is_err_and(is));
    }

    #[test]
    fn vertices_are_found_by_name_or_by_number() {
        let named = Graph::named(vec!["a".into(), "b".into()], Vec::new()).unwrap();
        assert_eq!((named.find("b"), named.find("1")), (Some(1), None));
        let numbered = Graph::numbered(2, Vec::new()).unwrap();
        assert_eq!((numbered.find("1"), numbered.find("2")), (Some(1), None));
        assert_eq!((named.name(0), numbered.name(1)), ("a".into(), "1".into()));
    }
}
