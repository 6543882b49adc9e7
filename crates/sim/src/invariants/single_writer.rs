//! Single writer or many readers (§5.1.2, invariant 1).

use super::{BlockState, Invariant};
use rackmem_proto::flowcc::LocalStatus;

/// At every instant, a copy that may be written is the only copy.
pub const INVARIANT: Invariant = Invariant {
    name: "single writer",
    section: "§5.1.2",
    always: true,
    broken,
};

fn broken(block: &BlockState) -> Option<String> {
    let writer = block
        .copies
        .iter()
        .find(|copy| copy.status == LocalStatus::Modified)?;
    (block.copies.len() > 1).then(|| {
        format!(
            "node {} may write while others hold copies: {:?}",
            writer.node, block.copies
        )
    })
}
