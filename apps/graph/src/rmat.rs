//! R-MAT graphs (Chakrabarti, Zhan, Faloutsos): random, with few vertices of many edges, as in
//! Graph500.

use crate::error::{GraphError, Result};
use crate::graph::{Edge, Graph};

/// Edges that are drawn for each vertex; those that are drawn twice count once.
pub const EDGES_A_VERTEX: usize = 16;
/// The largest scale.
pub const MAX_SCALE: u32 = 24;
/// The chances of the four quarters of the matrix, as Graph500 has them, in percent: the fourth
/// has the rest.
const QUARTERS: [u32; 3] = [57, 19, 19];

/// A graph of 2^`scale` vertices. One seed makes one graph.
///
/// # Errors
/// [`GraphError::TooLarge`] beyond [`MAX_SCALE`].
pub fn rmat(scale: u32, seed: u64) -> Result<Graph> {
    if scale > MAX_SCALE {
        let (what, most) = ("vertices", 1 << MAX_SCALE);
        return Err(GraphError::TooLarge { what, most });
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let vertices = 1_u32 << scale;
    let edges = (0..vertices as usize * EDGES_A_VERTEX).map(|_| draw(scale, &mut random));
    Graph::numbered(vertices, edges.collect())
}

fn draw(scale: u32, random: &mut fastrand::Rng) -> Edge {
    let [a, b, c] = QUARTERS;
    let (mut source, mut target) = (0, 0);
    for _ in 0..scale {
        let (down, right) = match random.u32(..100) {
            drawn if drawn < a => (0, 0),
            drawn if drawn < a + b => (0, 1),
            drawn if drawn < a + b + c => (1, 0),
            _ => (1, 1),
        };
        source = source << 1 | down;
        target = target << 1 | right;
    }
    Edge::new(source, target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_vertices_have_many_edges() {
        let graph = rmat(10, 1).unwrap();
        assert_eq!(graph.vertices(), 1024);
        let mut degrees = graph.out_degrees().to_vec();
        degrees.sort_unstable();
        let most: u32 = degrees[1024 - 102..].iter().sum();
        assert!(most as usize * 2 > graph.edges().len(), "a tenth has half");
        assert_eq!(graph, rmat(10, 1).unwrap());
        assert_ne!(graph, rmat(10, 2).unwrap());
    }

    #[test]
    fn too_large_a_scale_is_refused() {
        assert!(matches!(rmat(25, 1), Err(GraphError::TooLarge { .. })));
    }
}
