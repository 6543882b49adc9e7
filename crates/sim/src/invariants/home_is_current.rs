//! No dirty data is lost (§4: home's memory is stale only while an entry is `Modified`).

use super::{BlockState, Invariant};
use rackmem_proto::wire::GlobalStatus;

/// Home holds the last write whenever the entry is unlocked and not `Modified`.
/// So every sharer may drop its copy clean (hard place FlowCC 3),
/// and once all caches are empty home has everything.
pub const INVARIANT: Invariant = Invariant {
    name: "home is current",
    section: "§4",
    always: false,
    broken,
};

fn broken(block: &BlockState) -> Option<String> {
    let promised = !block.lost && block.lock == 0 && block.status != GlobalStatus::Modified;
    (promised && !block.home_current)
        .then(|| format!("the entry is {:?} and home's memory is old", block.status))
}
