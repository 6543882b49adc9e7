//! The directory covers the caches (§4, Figure 6).

use super::{BlockState, Invariant};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::{Copyset, GlobalStatus};

/// The entry names every copy but those that a live event of their own node is about to name;
/// members without a copy exist only while a writer holds the lock; and an unlocked entry says
/// exactly what the caches say.
pub const INVARIANT: Invariant = Invariant {
    name: "directory covers caches",
    section: "§4",
    always: false,
    broken,
};

fn broken(block: &BlockState) -> Option<String> {
    let holders = block
        .copies
        .iter()
        .fold(Copyset::EMPTY, |set, copy| set.with(copy.node));
    let live = block
        .events
        .iter()
        .fold(Copyset::EMPTY, |set, event| set.with(event.node));
    let named = if block.lock == 0 {
        block.copyset
    } else {
        block.copyset.union(live)
    };
    if !named.covers(holders) {
        return Some(format!(
            "{:b} hold copies, the entry names {:b}",
            holders.0, block.copyset.0
        ));
    }
    if !block.write_locked() && !holders.covers(block.copyset) {
        return Some(format!(
            "the entry names {:b}, only {:b} hold copies",
            block.copyset.0, holders.0
        ));
    }
    if block.lock == 0 && !statuses_agree(block) {
        return Some(format!(
            "the entry is {:?}: {:?}",
            block.status, block.copies
        ));
    }
    None
}

fn statuses_agree(block: &BlockState) -> bool {
    let local = match block.status {
        GlobalStatus::Unshared => return block.copies.is_empty(),
        GlobalStatus::Shared => LocalStatus::Shared,
        GlobalStatus::Modified => LocalStatus::Modified,
    };
    !block.copies.is_empty() && block.copies.iter().all(|copy| copy.status == local)
}
