//! The vertex cut: which node has which edge, and which node is the master of which vertex.

use crate::error::{GraphError, Result};
use crate::graph::{Graph, mix};

/// Nodes that a graph can be cut for: a vertex has a bit for each.
const MAX_NODES: usize = 32;
/// A node has one part in so many more than an even share of the edges, at most.
const SLACK: usize = 32;

/// By which rule edges are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CutBy {
    /// Each edge by a hash of its ends: even, and with many replicas.
    Random,
    /// One edge after the other, to a node that has one of its ends, or both, unless that node has
    /// many edges already (after PowerGraph's greedy heuristic): few replicas.
    #[default]
    Greedy,
}

/// Which node has which edge, and which is the master of which vertex. One graph is cut one way:
/// all processes compute the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    nodes: usize,
    /// Of each edge.
    node_of: Vec<u8>,
    /// Of each vertex, as bits: nodes with an edge of it, or its master where there is none.
    at: Vec<u32>,
    /// Of each vertex, as bits: nodes with an edge that leads to it.
    summed_at: Vec<u32>,
    master: Vec<u8>,
}

impl Cut {
    /// Divides a graph among so many nodes.
    ///
    /// # Errors
    /// [`GraphError::TooLarge`] for no node, and for more than 32.
    pub fn new(graph: &Graph, nodes: usize, by: CutBy) -> Result<Cut> {
        if !(1..=MAX_NODES).contains(&nodes) {
            let (what, most) = ("nodes", MAX_NODES as u64);
            return Err(GraphError::TooLarge { what, most });
        }
        let node_of = match by {
            CutBy::Random => random(graph, nodes),
            CutBy::Greedy => greedy(graph, nodes),
        };
        let mut at = vec![0_u32; graph.vertices() as usize];
        let mut summed_at = at.clone();
        for (edge, node) in graph.edges().iter().zip(&node_of) {
            at[edge.source as usize] |= 1 << node;
            at[edge.target as usize] |= 1 << node;
            summed_at[edge.target as usize] |= 1 << node;
        }
        let mut master = Vec::with_capacity(at.len());
        for (vertex, at) in (0_u64..).zip(&mut at) {
            if *at == 0 {
                *at = 1 << (mix(vertex) % nodes as u64);
            }
            let nth = mix(vertex ^ u64::from(*at)) % u64::from(at.count_ones());
            master.push(nth_bit(*at, nth));
        }
        Ok(Cut {
            nodes,
            node_of,
            at,
            summed_at,
            master,
        })
    }

    /// For how many nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Which node has each edge, in the order of [`Graph::edges`].
    pub fn node_of(&self) -> &[u8] {
        &self.node_of
    }

    /// The master of a vertex.
    pub fn master(&self, vertex: u32) -> usize {
        usize::from(self.master[vertex as usize])
    }

    /// Whether a node has a vertex, as its master or as a replica.
    pub fn is_at(&self, vertex: u32, node: usize) -> bool {
        self.at[vertex as usize] >> node & 1 == 1
    }

    /// Whether another node than its master has a vertex.
    pub fn is_replicated(&self, vertex: u32) -> bool {
        self.nodes_of(vertex).count_ones() > 1
    }

    /// The nodes that have a vertex, as bits.
    pub(crate) fn nodes_of(&self, vertex: u32) -> u32 {
        self.at[vertex as usize]
    }

    /// Whether a node has edges that lead to a vertex.
    pub fn sums_at(&self, vertex: u32, node: usize) -> bool {
        self.summed_at[vertex as usize] >> node & 1 == 1
    }

    /// At how many nodes a vertex is, on average: what is exchanged grows with it.
    pub fn replication(&self) -> f64 {
        let all: u64 = self.at.iter().map(|at| u64::from(at.count_ones())).sum();
        all as f64 / self.at.len().max(1) as f64
    }

    /// The edges of each node.
    pub fn edges_at(&self) -> Vec<usize> {
        let mut edges = vec![0; self.nodes];
        for node in &self.node_of {
            edges[usize::from(*node)] += 1;
        }
        edges
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        let start = mix(self.nodes as u64);
        let nodes = self.node_of.iter();
        nodes.fold(start, |sum, node| mix(sum ^ u64::from(*node)))
    }
}

/// The number of the nth bit that is set, counted from 0.
fn nth_bit(bits: u32, nth: u64) -> u8 {
    let mut left = bits;
    for _ in 0..nth {
        left &= left.wrapping_sub(1);
    }
    left.trailing_zeros() as u8
}

fn random(graph: &Graph, nodes: usize) -> Vec<u8> {
    let of = |edge: &crate::graph::Edge| {
        let ends = u64::from(edge.source) << 32 | u64::from(edge.target);
        (mix(ends) % nodes as u64) as u8
    };
    graph.edges().iter().map(of).collect()
}

/// A node is worth one for each end of the edge that it has, and up to one for having few edges.
/// One that has its share, and a bit more, is full: edges that come in the order of their sources
/// would all go where the first went.
fn greedy(graph: &Graph, nodes: usize) -> Vec<u8> {
    let mut at = vec![0_u32; graph.vertices() as usize];
    let mut loads = vec![0_u32; nodes];
    let edges = graph.edges().len();
    let mut node_of = Vec::with_capacity(edges);
    let even = edges.div_ceil(nodes);
    let full = (even + even / SLACK) as u32;
    for edge in graph.edges() {
        let (source, target) = (edge.source as usize, edge.target as usize);
        let (least, most) = spread(&loads);
        let room = f64::from(most - least) + 1.0;
        let has = |vertex: usize, node: usize| f64::from(at[vertex] >> node & 1);
        let worth = |node: usize| {
            let idle = f64::from(most - loads[node]) / room;
            idle + has(source, node) + has(target, node)
        };
        // The first of those that are worth the most; there is one that is not full.
        let better = |best: Option<usize>, node| match best {
            Some(best) if worth(best) >= worth(node) => Some(best),
            _ => Some(node),
        };
        let with_room = (0..nodes).filter(|node| loads[*node] < full);
        let node = with_room.fold(None, better).unwrap_or_default();
        loads[node] += 1;
        at[source] |= 1 << node;
        at[target] |= 1 << node;
        node_of.push(node as u8);
    }
    node_of
}

fn spread(loads: &[u32]) -> (u32, u32) {
    let ends = (u32::MAX, 0);
    let both = |(least, most): (u32, u32), load: &u32| (least.min(*load), most.max(*load));
    loads.iter().fold(ends, both)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmat;

    #[test]
    fn every_vertex_has_one_master_among_those_that_have_it() {
        let graph = rmat(8, 3).unwrap();
        for by in [CutBy::Random, CutBy::Greedy] {
            let cut = Cut::new(&graph, 5, by).unwrap();
            assert_eq!(cut.edges_at().iter().sum::<usize>(), graph.edges().len());
            for vertex in 0..graph.vertices() {
                assert!(cut.is_at(vertex, cut.master(vertex)), "{by:?} {vertex}");
            }
        }
    }

    #[test]
    fn greedy_has_fewer_replicas_and_is_even() {
        let graph = rmat(10, 3).unwrap();
        let cut = |by| Cut::new(&graph, 4, by).unwrap();
        let (random, greedy) = (cut(CutBy::Random), cut(CutBy::Greedy));
        assert!(greedy.replication() < random.replication() * 0.8);
        let edges = greedy.edges_at();
        let even = graph.edges().len() / 4;
        assert!(
            edges.iter().all(|it| it.abs_diff(even) * 8 < even),
            "{edges:?}"
        );
    }

    #[test]
    fn no_node_is_no_cut() {
        let graph = rmat(1, 1).unwrap();
        assert!(Cut::new(&graph, 0, CutBy::Random).is_err());
        assert!(Cut::new(&graph, 33, CutBy::Random).is_err());
    }
}
