//! The three computations in the plainest way, without cuts, nodes and orders of sums.

use rackmem_graph::{Graph, UNREACHED};

/// PageRank by 400 rounds of its equation.
pub fn ranks(graph: &Graph) -> Vec<f64> {
    let count = graph.vertices() as usize;
    let mut ranks = vec![1.0 / count as f64; count];
    for _ in 0..400 {
        let dangling = (0..count).filter(|it| graph.out_degrees()[*it] == 0);
        let dangling: f64 = dangling.map(|it| ranks[it]).sum();
        let mut next = vec![(0.15 + 0.85 * dangling) / count as f64; count];
        for edge in graph.edges() {
            let source = edge.source as usize;
            let degree = f64::from(graph.out_degrees()[source]);
            next[edge.target as usize] += 0.85 * ranks[source] / degree;
        }
        ranks = next;
    }
    ranks
}

/// Distances by Bellman and Ford.
pub fn distances(graph: &Graph, from: usize) -> Vec<u64> {
    let mut distances = vec![UNREACHED; graph.vertices() as usize];
    if let Some(first) = distances.get_mut(from) {
        *first = 0;
    }
    for _ in 0..graph.vertices() {
        for edge in graph.edges() {
            let there = distances[edge.source as usize];
            let over = there.saturating_add(u64::from(edge.weight));
            let target = &mut distances[edge.target as usize];
            *target = over.min(*target);
        }
    }
    distances
}

/// Components by joining sets.
pub fn components(graph: &Graph) -> Vec<u64> {
    let mut of: Vec<u64> = (0..u64::from(graph.vertices())).collect();
    for edge in graph.edges() {
        let (one, other) = (of[edge.source as usize], of[edge.target as usize]);
        let (to, from) = (one.min(other), one.max(other));
        of.iter_mut()
            .filter(|it| **it == from)
            .for_each(|it| *it = to);
    }
    of
}
