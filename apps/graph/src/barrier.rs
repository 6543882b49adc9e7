//! The barrier: a word in coherent memory that each node adds one to, and a row of words of each
//! node that all have when they leave it.

use crate::error::{GraphError, Result};
use rackmem::zerocopy::IntoBytes;
use rackmem::{Node, RegionSpec};
use std::time::{Duration, Instant};

/// How long the last node may be behind the first.
const PATIENCE: Duration = Duration::from_secs(300);
/// Looks at the word, each a hit in the node's own cache, before the processor is given to others.
const SPINS: u32 = 64;
/// After so many, a thread sleeps between them.
const YIELDS: u32 = 2_000;
const REST: Duration = Duration::from_micros(50);

/// What a node tells the others at a barrier.
pub(crate) type Told = [u64; 4];

/// One node's end of it.
pub(crate) struct Barrier<'a> {
    node: &'a Node,
    addr: u64,
    me: usize,
    nodes: usize,
    round: u64,
    stop: &'a dyn Fn() -> bool,
}

impl<'a> Barrier<'a> {
    /// The barrier of this name, of so many nodes.
    pub fn open(
        node: &'a Node,
        name: &str,
        (me, nodes): (usize, usize),
        stop: &'a dyn Fn() -> bool,
    ) -> Result<Self> {
        // The word, and rows of each node for even rounds and for odd ones.
        let blocks = 1 + 2 * nodes;
        let region = node.create_region(&RegionSpec::new(name, blocks * node.block_size()))?;
        Ok(Barrier {
            node,
            addr: region.addr(),
            me,
            nodes,
            round: 0,
            stop,
        })
    }

    fn row(&self, node: usize) -> u64 {
        let nth = 1 + 2 * node as u64 + self.round % 2;
        self.addr + nth * self.node.block_size() as u64
    }

    /// Waits until all nodes have come here as often as this one.
    pub fn wait(&mut self) -> Result<()> {
        self.round += 1;
        let all = self.round * self.nodes as u64;
        if self.node.fetch_add(self.addr, 1)? + 1 >= all {
            return Ok(());
        }
        let end = Instant::now() + PATIENCE;
        let mut looks = 0_u32;
        while self.node.load(self.addr)? < all {
            looks = looks.saturating_add(1);
            if !looks.is_multiple_of(SPINS) {
                std::hint::spin_loop();
                continue;
            }
            if (self.stop)() {
                return Err(GraphError::Stopped);
            }
            if Instant::now() > end {
                let seconds = PATIENCE.as_secs();
                return Err(GraphError::Late { seconds });
            }
            match looks < YIELDS * SPINS {
                true => std::thread::yield_now(),
                false => std::thread::sleep(REST),
            }
        }
        Ok(())
    }

    /// The same; what all nodes have told, in their order. A row is used again two rounds later,
    /// when all have read it.
    pub fn tell(&mut self, told: Told) -> Result<Vec<Told>> {
        self.round += 1;
        let own = self.row(self.me);
        self.round -= 1;
        self.node.write(own, told.as_bytes())?;
        self.wait()?;
        let row = |node| {
            let mut told = Told::default();
            self.node.read(self.row(node), told.as_mut_bytes())?;
            Ok(told)
        };
        (0..self.nodes).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem::Rack;

    #[test]
    fn nobody_is_a_round_ahead_and_all_hear_the_same() {
        const NODES: usize = 3;
        let rack = Rack::local(NODES).unwrap();
        std::thread::scope(|scope| {
            for (me, node) in rack.nodes().iter().enumerate() {
                scope.spawn(move || {
                    let open = Barrier::open(node, "b", (me, NODES), &|| false);
                    let mut barrier = open.unwrap();
                    for round in 0..200 {
                        let told = barrier.tell([round, me as u64, 0, 0]).unwrap();
                        let all = (0..NODES as u64).map(|it| [round, it, 0, 0]);
                        assert_eq!(told, all.collect::<Vec<_>>());
                        if round % 3 == 0 {
                            barrier.wait().unwrap();
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_barrier_is_left_when_nobody_wants_to_wait() {
        let rack = Rack::local(2).unwrap();
        let node = rack.node(0);
        let mut barrier = Barrier::open(&node, "b", (0, 2), &|| true).unwrap();
        assert!(matches!(barrier.wait(), Err(GraphError::Stopped)));
    }
}
