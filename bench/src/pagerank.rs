//! PageRank in the plainest way, on one thread: what a computation in shared memory must agree
//! with.

/// The adjacency of a directed graph: the successors of node `i` are
/// `targets[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Copy, Debug)]
pub struct Adjacency<'a> {
    /// One more than there are nodes, ascending.
    pub offsets: &'a [u32],
    /// Node numbers.
    pub targets: &'a [u32],
}

impl<'a> Adjacency<'a> {
    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// The successors of a node.
    pub fn successors(&self, node: usize) -> &'a [u32] {
        let (from, to) = (self.offsets[node], self.offsets[node + 1]);
        &self.targets[from as usize..to as usize]
    }
}

/// How to compute.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The chance of following an edge rather than jumping anywhere.
    pub damping: f64,
    /// Stop when all ranks together change by less.
    pub tolerance: f64,
    /// Stop after so many rounds in any case.
    pub max_rounds: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            damping: 0.85,
            tolerance: 1e-9,
            max_rounds: 200,
        }
    }
}

/// The result.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// One a node; they add up to 1.
    pub ranks: Vec<f64>,
    /// How many rounds it took.
    pub rounds: u32,
    /// How much all ranks together changed in the last.
    pub change: f64,
}

/// Computes the ranks of a graph. What a node without successors has goes to all nodes alike.
pub fn pagerank(graph: Adjacency<'_>, settings: Settings) -> Ranks {
    let nodes = graph.nodes();
    let mut ranks = vec![1.0 / nodes as f64; nodes];
    let mut next = vec![0.0; nodes];
    let (mut rounds, mut change) = (0, f64::INFINITY);
    while nodes > 0 && rounds < settings.max_rounds && change >= settings.tolerance {
        one_round(graph, settings.damping, &ranks, &mut next);
        change = ranks
            .iter()
            .zip(&next)
            .map(|(old, new)| (old - new).abs())
            .sum();
        std::mem::swap(&mut ranks, &mut next);
        rounds += 1;
    }
    Ranks {
        ranks,
        rounds,
        change: if nodes == 0 { 0.0 } else { change },
    }
}

fn one_round(graph: Adjacency<'_>, damping: f64, ranks: &[f64], next: &mut [f64]) {
    let nodes = ranks.len() as f64;
    let is_dangling = |node: &usize| graph.successors(*node).is_empty();
    let dangling: f64 = (0..ranks.len())
        .filter(is_dangling)
        .map(|node| ranks[node])
        .sum();
    next.fill((1.0 - damping + damping * dangling) / nodes);
    for (node, rank) in ranks.iter().enumerate() {
        let successors = graph.successors(node);
        let share = damping * rank / successors.len() as f64;
        for &target in successors {
            next[target as usize] += share;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(offsets: &[u32], targets: &[u32]) -> Ranks {
        pagerank(Adjacency { offsets, targets }, Settings::default())
    }

    #[test]
    fn a_ring_is_even() {
        let found = ranks(&[0, 1, 2, 3], &[1, 2, 0]);
        assert!(
            found
                .ranks
                .iter()
                .all(|rank| (rank - 1.0 / 3.0).abs() < 1e-9)
        );
        assert_eq!(found.rounds, 1);
    }

    #[test]
    fn a_small_graph_satisfies_its_equations() {
        // 0 -> 1, 0 -> 2, 1 -> 2, 2 -> 0: r = 0.05 + 0.85 M r, written out.
        let found = ranks(&[0, 2, 3, 4], &[1, 2, 2, 0]);
        let expected_r1 = |r0: f64| 0.05 + 0.425 * r0;
        let expected_r2 = |r0: f64, r1: f64| 0.05 + 0.425 * r0 + 0.85 * r1;
        let [a, b, c] = found.ranks[..] else { panic!() };
        assert!((b - expected_r1(a)).abs() < 1e-8);
        assert!((c - expected_r2(a, b)).abs() < 1e-8);
        assert!((a - (0.05 + 0.85 * c)).abs() < 1e-8);
        assert!((a + b + c - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nodes_without_successors_lose_nothing() {
        let found = ranks(&[0, 1, 1, 1], &[1]);
        assert!((found.ranks.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(found.ranks[1] > found.ranks[0]);
        assert_eq!(found.ranks[0], found.ranks[2]);
        assert!(found.change < 1e-9);
    }

    #[test]
    fn no_graph_has_no_ranks() {
        assert!(ranks(&[0], &[]).ranks.is_empty());
        assert!(ranks(&[], &[]).ranks.is_empty());
    }
}
