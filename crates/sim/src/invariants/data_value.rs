//! Data value (§5.1.2, invariant 2).
//!
//! A hit may happen at any instant, so at every instant every valid copy holds what was written
//! last. A load then agrees with a memory that does one operation at a time,
//! at an instant within the operation: that instant is its linearization point.

use super::{BlockState, Invariant};

/// At every instant, every valid copy holds the last write.
pub const INVARIANT: Invariant = Invariant {
    name: "data value",
    section: "§5.1.2",
    always: true,
    broken,
};

fn broken(block: &BlockState) -> Option<String> {
    let stale = block.copies.iter().find(|copy| !copy.current)?;
    Some(format!("node {} holds an old copy", stale.node))
}
