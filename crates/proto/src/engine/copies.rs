//! What a node's cache does for others, and what it keeps because packets are lost and members die:
//! which requests it has executed, and blocks whose only current copy may be here although the
//! cache no longer says so.

use super::Defect;
use crate::Outputs;
use crate::call::{Executed, LastExecuted};
use crate::flowcc::cache_agent::{self, Reaction};
use crate::flowcc::{LocalStatus, Open};
use crate::wire::{Copyset, Header, NodeId, RequesterId, Seq, Tag};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// A block that has left the cache for an event that may not have received it.
#[derive(Clone, Hash, Debug)]
struct Retained<B> {
    seq: Seq,
    tag: Tag,
    bytes: B,
}

/// What to do about a request, and the block if it had left the cache and was kept.
#[derive(Clone, Debug)]
pub struct Answer<B> {
    /// What to do.
    pub reaction: Reaction,
    /// How the request relates to earlier ones.
    pub executed: Executed,
    /// The bytes to answer with, where the cache has none.
    pub recalled: Option<B>,
}

/// See the module. `B` is a block's bytes.
#[derive(Clone, Debug)]
pub struct Copies<B> {
    lossy: bool,
    executed: LastExecuted,
    /// At most one block a requester.
    retained: BTreeMap<RequesterId, Retained<B>>,
}

impl<B> Copies<B> {
    /// Nothing yet. Where packets cannot be lost (`lossy` false), nothing is ever kept.
    #[inline]
    pub fn new(lossy: bool) -> Self {
        Copies {
            lossy,
            executed: LastExecuted::default(),
            retained: BTreeMap::new(),
        }
    }

    /// A new epoch: requests of the last one do not come any more.
    pub fn enter(&mut self) {
        self.executed = LastExecuted::default();
    }

    /// How a request relates to what was executed, with nothing entered.
    pub fn executed(&self, header: &Header) -> Executed {
        self.executed.look(header.requester, header.seq)
    }

    /// Enters a request that somebody else has executed.
    pub fn enter_executed(&mut self, header: &Header) {
        self.executed.enter(header.requester, header.seq);
    }

    /// A block leaves the cache for this event.
    pub fn retain(&mut self, header: &Header, bytes: B) {
        let retained = Retained {
            seq: header.seq,
            tag: header.tag,
            bytes,
        };
        self.retained.insert(header.requester, retained);
    }

    /// Home has this block.
    pub fn rescued(&mut self, tag: Tag) {
        self.retained.retain(|_, retained| retained.tag != tag);
    }

    /// An event has received what was kept for it.
    pub fn received(&mut self, requester: RequesterId, seq: Seq) {
        let kept = self.retained.get(&requester);
        if kept.is_some_and(|retained| retained.seq == seq) {
            self.retained.remove(&requester);
        }
    }

    /// Nodes whose incarnations have ended: one that comes back uses its requesters' numbers again,
    /// and its memory is nobody's.
    pub fn forget(&mut self, gone: Copyset) {
        self.retained
            .retain(|id, retained| !gone.contains(id.node) && !retained.tag.home().dies_with(gone));
    }

    /// Blocks that have left the cache, and the events that may not have received them.
    pub fn given(&self) -> impl Iterator<Item = (RequesterId, Seq, Tag)> {
        let rows = self.retained.iter();
        rows.map(|(id, retained)| (*id, retained.seq, retained.tag))
    }
}

impl<B: Clone> Copies<B> {
    /// A request that its owner has granted; what to send goes to `outputs`. `local`: the status of
    /// this node's copy, if there is one; `entered`: how the request relates to what was executed,
    /// if the host keeps that table.
    #[inline]
    pub fn request(
        &mut self,
        me: NodeId,
        header: &Header,
        (local, entered): (Option<LocalStatus>, Option<Executed>),
        defect: Option<Defect>,
        outputs: &mut Outputs,
    ) -> Answer<B> {
        let mut executed = match (self.lossy, entered) {
            (false, _) => Executed::New,
            (true, Some(entered)) => entered,
            (true, None) => self.executed.enter(header.requester, header.seq),
        };
        if defect == Some(Defect::ForgetExecuted) {
            executed = Executed::New;
        }
        let recalled = match local {
            Some(_) => None,
            None => self.recall(header),
        };
        let has_data = local.is_some() || recalled.is_some();
        let status = local.unwrap_or_default();
        let mut reaction = cache_agent::react(me, header, status, executed, has_data, outputs);
        reaction.retain &= self.lossy && defect != Some(Defect::DontRetain);
        Answer {
            reaction,
            executed,
            recalled,
        }
    }

    /// The block that has left the cache for this event.
    fn recall(&self, header: &Header) -> Option<B> {
        let kept = self.retained.get(&header.requester)?;
        let same = (kept.seq, kept.tag) == (header.seq, header.tag);
        same.then(|| kept.bytes.clone())
    }

    /// The blocks that were given away to events in `open` whose data has not come.
    pub fn undelivered(&self, open: &[(NodeId, Open)]) -> Vec<(Tag, B)> {
        let given = open.iter().filter(|(_, open)| open.awaits_data);
        let kept = given.filter_map(|(node, open)| {
            let id = RequesterId {
                node: *node,
                slot: open.slot,
            };
            let kept = self.retained.get(&id)?;
            let same = (kept.seq, kept.tag) == (open.seq, open.tag);
            same.then(|| (open.tag, kept.bytes.clone()))
        });
        kept.collect()
    }
}

impl<B: Hash> Copies<B> {
    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.executed.fingerprint(into);
        self.retained.hash(into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Flags, GlobalStatus, Kind};

    fn write_miss(seq: u64, tag: u64) -> Header {
        let id = RequesterId { node: 2, slot: 1 };
        let kind = Kind::WriteMiss;
        let mut header = Header::request(kind, 1, Tag(tag), id, Seq(seq));
        header.status = GlobalStatus::Modified;
        header.flags = Flags::GRANTED.and(Flags::PROVIDER);
        header
    }

    fn ask(copies: &mut Copies<u8>, header: &Header, local: Option<LocalStatus>) -> Answer<u8> {
        copies.request(0, header, (local, None), None, &mut Outputs::default())
    }

    #[test]
    fn what_was_given_away_answers_the_same_event_again_and_no_other() {
        let mut copies = Copies::new(true);
        let first = write_miss(1, 0);
        let answer = ask(&mut copies, &first, Some(LocalStatus::Modified));
        assert!(answer.reaction.retain && answer.recalled.is_none());
        copies.retain(&first, 7_u8);
        assert_eq!(ask(&mut copies, &first, None).recalled, Some(7));
        assert_eq!(ask(&mut copies, &write_miss(2, 0), None).recalled, None);
        copies.received(first.requester, Seq(2));
        assert_eq!(copies.given().count(), 1);
        copies.received(first.requester, first.seq);
        assert_eq!(copies.given().count(), 0);
    }

    #[test]
    fn where_nothing_is_lost_nothing_is_kept() {
        let mut copies = Copies::<u8>::new(false);
        let answer = ask(&mut copies, &write_miss(1, 0), Some(LocalStatus::Modified));
        assert!(!answer.reaction.retain);
        let again = ask(&mut copies, &write_miss(1, 0), None);
        assert_eq!((again.executed, again.recalled), (Executed::New, None));
    }

    #[test]
    fn the_memory_of_the_dead_is_forgotten_and_so_are_their_requesters() {
        let mut copies = Copies::new(true);
        copies.retain(&write_miss(1, 0), 1_u8);
        copies.forget(Copyset::of(1));
        assert_eq!(copies.given().count(), 1);
        copies.forget(Copyset::of(2));
        assert_eq!(copies.given().count(), 0);
        copies.retain(&write_miss(1, 1 << 48), 1_u8);
        copies.forget(Copyset::of(1));
        assert_eq!(copies.given().count(), 0);
    }
}
