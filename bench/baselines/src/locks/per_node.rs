//! An indicator of readers at each node (Soul's *Percpu*), after Linux's big-reader lock (`brlock`,
//! 2.4): a reader takes its own node's reader-writer lock and nothing else, a writer takes
//! everybody's, always in the same order.
//!
//! | | operations | a strict hand-over between writers, in a rack of n nodes |
//! |---|---|---|
//! | read | one's own node's indicator, as a reader of [`super::central`] | |
//! | write | the first node's indicator, as a writer of it | 1 transaction, and 2, critical |
//! | | the others', one after the other | n - 1, critical |
//! | no longer | all of them again, the last first | 1, critical: the others are still here |
//!
//! Readers cost nothing while there is no writer; a writer costs transactions for each node of the
//! rack. Indicators are a node's and not, as in Linux, a processor's: its threads share a cache,
//! and writers have fewer to visit.

use super::Access;
use super::central::Indicator;
use super::op::{At, Home, Shape, Step, ThreadPlace};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct PerNode {
    nodes: u16,
    mine: u16,
    access: Access,
    /// Which indicator a writer is at.
    visited: u16,
    indicator: Indicator,
}

pub(super) fn blocks(shape: Shape) -> u16 {
    shape.nodes
}

pub(super) fn home(block: u16) -> Home {
    Home::Node(block)
}

impl PerNode {
    pub fn new(shape: Shape, seat: ThreadPlace) -> Self {
        PerNode {
            nodes: shape.nodes,
            mine: seat.node,
            access: Access::Read,
            visited: 0,
            indicator: Indicator::new(At::block(seat.node)),
        }
    }

    fn go_to(&mut self, block: u16) {
        self.visited = block;
        self.indicator.go_to(At::block(block));
    }

    pub fn enter(&mut self, access: Access) -> Step {
        self.access = access;
        self.go_to(match access {
            Access::Read => self.mine,
            Access::Write => 0,
        });
        self.indicator.enter(access)
    }

    pub fn leave(&mut self) -> Step {
        self.indicator.leave()
    }

    pub fn result(&mut self, word: u64) -> Step {
        let step = self.indicator.result(word);
        let writes = self.access == Access::Write;
        match step {
            Step::Inside if writes && self.visited + 1 < self.nodes => {
                self.go_to(self.visited + 1);
                self.indicator.enter(Access::Write)
            }
            Step::Outside if writes && self.visited > 0 => {
                self.go_to(self.visited - 1);
                self.indicator.leave()
            }
            step => step,
        }
    }
}
