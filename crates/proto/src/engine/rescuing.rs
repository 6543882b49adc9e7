//! Blocks whose only current copy may be where the end of an epoch has cut an event off:
//! what a node has of them, and what a home does with them (§5.4).

use super::{CoherentHost, Defect, Memory, Note};
use crate::flowcc::Open;
use crate::wire::{Header, NodeId, Tag};
use alloc::vec::Vec;

/// The blocks that their homes may not have: given away to an event whose data did not come,
/// downgraded, or read from a cache.
pub(super) fn found<H: CoherentHost>(
    host: &mut H,
    open: &[(NodeId, Open)],
    read: &[Tag],
) -> Vec<(Tag, H::Bytes)> {
    let defect = host.defect();
    let forgets = |one| defect == Some(one);
    let mut found = host.copies(|copies| copies.undelivered(open));
    if forgets(Defect::ForgetGiven) {
        found.clear();
    }
    let downgraded = match forgets(Defect::ForgetDowngraded) {
        true => Vec::new(),
        false => host.downgraded(),
    };
    let read = read.iter().filter(|_| !forgets(Defect::ForgetRead));
    for tag in downgraded.iter().chain(read) {
        // A copy that may be written is written while this goes on: home would take old content for
        // the last.
        found.extend(host.clean(*tag).map(|bytes| (*tag, bytes)));
    }
    found
}

/// Bytes of one have come to its home.
pub(super) fn came<H: CoherentHost>(host: &mut H, header: &Header, store: bool, whole: bool) {
    let (shard, defect) = (host.shards().of(header.tag), host.defect());
    if store && defect != Some(Defect::DropRescue) {
        host.note(Note::Rescuing(header.tag));
        host.home(shard, |home, memory| home.rescue(header, memory));
    }
    if whole || defect == Some(Defect::RescueInPart) {
        host.home(shard, |home, _| home.agent.note_rescued(header.tag));
        host.note(Note::CameHome(header.tag));
    }
}

/// Its home is this node's.
pub(super) fn own<H: CoherentHost>(host: &mut H, tag: Tag, bytes: &H::Bytes) {
    let (shard, defect) = (host.shards().of(tag), host.defect());
    host.home(shard, |home, memory| {
        if defect != Some(Defect::RescueNothing) {
            memory.put(tag, bytes);
        }
        home.agent.note_rescued(tag);
    });
}
