//! What stories say of a node, and what judges are given of it.

use super::{Form, Site, Speaks};
use rackmem_proto::engine::Purpose;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::{Copyset, GlobalStatus, Tag};

/// A copy has this status from now on: because of an event for this, or of a packet.
pub fn copy(status: LocalStatus, purpose: Option<Purpose>) -> &'static str {
    match (purpose, status) {
        (None, LocalStatus::Invalid) => "invalid",
        (None, _) => "downgraded",
        (Some(Purpose::EvictClean), _) => "evicted clean",
        (_, LocalStatus::Invalid) => "evicted dirty",
        (Some(Purpose::EvictDirty), _) => "not evicted after all",
        _ => "installed",
    }
}

/// A block, its entry (lock word, status, copyset, and whether the switch owned it),
/// and whether its last content was lost.
pub type Before = (Tag, Option<(u16, GlobalStatus, Copyset, bool)>, bool);

/// What a home has of those blocks of which it says what becomes of them.
pub(super) fn entries<B: Form, X: Speaks<B>>(site: &mut Site<B, X>) -> Vec<Before> {
    let blocks = site.blocks.clone().into_iter();
    let entries = blocks.map(|tag| {
        let home = site.home_of(tag);
        (tag, home.inspect(tag), home.lost(tag))
    });
    entries.collect()
}
