//! Home's memory used in place: by the home's own threads, and by requesters that want bytes and
//! keep no copy (`Fetch`, `Store`, `Operate`).
//!
//! | home's memory may be | while the entry is | because |
//! |---|---|---|
//! | read | the home's, `Unshared` or `Shared`, and not locked by a writer | every write that has ended is there, and none is under way |
//! | written | the home's, `Unshared` and not locked | it is all that there is of the block, and no event is about it |
//!
//! What is done in place happens at one moment, in the section of the block's shard: like a miss
//! and an eviction with nothing between them. An entry that the switch owns is not the home's, and
//! while entries are made anew none is.

use super::directory::{Entry, Owner};
use super::home_agent::HomeAgent;
use super::lock;
use crate::wire::{Flags, GlobalStatus, Header, Kind, Reason, Tag};
use crate::{Dest, Output};

impl HomeAgent {
    /// Whether home's memory has what a block holds now.
    pub fn has_current(&self, tag: Tag) -> bool {
        self.entry_at_home(tag).is_some_and(|entry| {
            let clean = matches!(entry.status, GlobalStatus::Unshared | GlobalStatus::Shared);
            clean && !lock::held_alone(entry.lock)
        })
    }

    /// Whether home's memory is all that there is of a block.
    pub fn has_alone(&self, tag: Tag) -> bool {
        self.entry_at_home(tag).is_some_and(|entry| {
            let unshared = entry.status == GlobalStatus::Unshared;
            unshared && entry.lock == 0 && entry.owner == Owner::Home
        })
    }

    /// Bytes of a block.
    pub fn block(&self) -> u64 {
        self.config.block.into()
    }

    fn entry_at_home(&self, tag: Tag) -> Option<Entry> {
        // During a rebuild the contents of caches are unknown.
        // Nor is memory used in place that a group keeps: a majority is to have what is there.
        if self.findings.is_some() || self.kept || tag.home() != self.home() {
            return None;
        }
        let entry = self.directory.look(tag)?;
        matches!(entry.owner, Owner::Home | Owner::Wanted).then_some(entry)
    }

    /// The answer to a `Fetch` of which so many blocks can be sent.
    pub fn fetched(&self, header: &Header, blocks: u32) -> Output {
        let mut ack = header.answer(Kind::FetchAck, self.config.node);
        ack.offset = 0;
        if blocks > 0 {
            ack.flags = ack.flags.and(Flags::DATA);
        } else {
            ack.reason = self.why_not_in_place(header.tag);
        }
        Output::new(Dest::Requester(header.requester), ack)
    }

    /// Why a block is not used in place: what no other way would mend, or nothing.
    pub(super) fn why_not_in_place(&self, tag: Tag) -> Reason {
        match self.directory.look(tag) {
            _ if self.findings.is_some() => Reason::None,
            None => self.directory.absence(tag),
            Some(entry) if entry.owner == Owner::Lost => Reason::Lost,
            Some(_) => Reason::None,
        }
    }
}
