//! How columns get from node to node: one file an engine.

mod bounded;
mod coherent;
mod messages;
mod packs;

use crate::engine::{Engine, ON_DEMAND_BOUND};
use crate::error::Result;
use crate::part::{Column, Part};
use bounded::BoundedPacks;
use coherent::CoherentPacks;
use messages::Inboxes;
use packs::Packed;
use rackmem::Node;
use std::time::Duration;

/// Columns of all nodes. Between a `put` and the `get` of another node there is a barrier, and a
/// `turn` of each.
pub(crate) trait Exchange {
    /// This node's column is this from now on.
    fn put(&mut self, column: Column, words: &[u64]) -> Result<()>;

    /// What this node wants of another one's column, in the order in which it wants it.
    fn get(&mut self, column: Column, from: usize, words: &mut Vec<u64>) -> Result<()>;

    /// All nodes have come to the barrier.
    fn turn(&mut self) -> Result<()>;
}

/// Memory of a computation: each node makes its own, and finds the others' when all have.
pub(crate) struct Place<'a> {
    pub node: &'a Node,
    pub name: &'a str,
    pub part: &'a Part,
}

impl Place<'_> {
    /// The name of a node's region.
    pub fn of(&self, node: usize) -> String {
        format!("{}/{node}", self.name)
    }
}

/// What a node makes before the first barrier; what it finds afterwards is the engine's exchange.
pub(crate) fn open<'a>(
    engine: Engine,
    place: Place<'a>,
    meet: impl FnOnce() -> Result<()>,
) -> Result<Box<dyn Exchange + 'a>> {
    match engine {
        Engine::Messages => {
            Inboxes::make(&place)?;
            meet()?;
            Ok(Box::new(Inboxes::find(place)?))
        }
        Engine::Coherent => {
            CoherentPacks::make(&place)?;
            meet()?;
            Ok(Box::new(Packed::new(
                place.part,
                CoherentPacks::find(&place)?,
            )))
        }
        Engine::Periodic(_) | Engine::OnDemand => {
            let (bound, asks) = match engine {
                Engine::Periodic(bound) => (bound, false),
                _ => (ON_DEMAND_BOUND, true),
            };
            BoundedPacks::make(&place)?;
            meet()?;
            let packs = BoundedPacks::find(&place, bound, asks)?;
            Ok(Box::new(Packed::new(place.part, packs)))
        }
    }
}

/// How long an engine's reader may see what was there before, after a barrier.
pub(crate) fn staleness(engine: Engine) -> Option<Duration> {
    match engine {
        Engine::Periodic(bound) => Some(bound),
        _ => None,
    }
}
