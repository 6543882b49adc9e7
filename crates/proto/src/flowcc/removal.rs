//! Regions of coherent memory with copies that are removed, and those that have their numbers next.
//!
//! A region is removed by one step of the rack's groups, and each node hears of it by itself. Then
//! its home has other addresses for good, as for objects (`sabre/kept/removal.rs`): those of a
//! removed region are no other block's. So what a cache, a packet or a rebuild still has of a block
//! can be told from what is there next by its address alone.
//!
//! | about a block of | here |
//! |---|---|
//! | a removed region: a request | is refused, for there is no such memory |
//! | a removed region: bytes that come home, and unlocks | are acknowledged, and come nowhere: nobody will ask for them |
//! | a removed region: a copy | is dropped by the node that hears, dirty or not, and by one whose eviction is refused |
//! | a region that this node has not heard of | waits until it has |

use super::directory::Directory;
use super::home_agent::HomeAgent;
use crate::wire::{HomeId, Tag};

/// What the home that a group keeps has of coherent memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KeptBlocks {
    /// The config of the group with which its region began.
    pub first: u32,
    /// Where its addresses begin: those below were of removed regions.
    pub base: u64,
    /// How many bytes; none where no region of coherent memory has the number.
    pub bytes: u64,
}

/// Where an address of a home that a group keeps is, as far as a node has heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whereabouts {
    /// In the region that has the number.
    Here,
    /// In one that is removed.
    Gone,
    /// Behind all that was heard of.
    Unheard,
}

impl Whereabouts {
    /// Where an address is in a home whose region begins and ends there.
    pub fn of(tag: Tag, begin: u64, end: u64) -> Self {
        match tag.offset() {
            at if at < begin => Whereabouts::Gone,
            at if at < end => Whereabouts::Here,
            _ => Whereabouts::Unheard,
        }
    }
}

impl KeptBlocks {
    /// Of the first region that has the number.
    pub const fn of_bytes(bytes: u64) -> Self {
        KeptBlocks {
            first: 1,
            base: 0,
            bytes,
        }
    }

    /// Where its addresses end.
    pub const fn end(&self) -> u64 {
        self.base.saturating_add(self.bytes)
    }

    /// Where an address of this home is.
    pub fn whereabouts(&self, tag: Tag) -> Whereabouts {
        Whereabouts::of(tag, self.base, self.end())
    }

    /// How far behind its beginning an address is, if that is in it.
    pub fn at(&self, tag: Tag) -> Option<u64> {
        let here = self.whereabouts(tag) == Whereabouts::Here;
        here.then(|| tag.offset() - self.base)
    }

    /// The address so far behind its beginning.
    pub fn tag(&self, group: u16, at: u64) -> Tag {
        Tag(HomeId::of_group(group).start().0 + self.base + at)
    }
}

impl Directory {
    /// Whether a block was of a region that is removed.
    pub(super) fn is_gone(&self, tag: Tag) -> bool {
        let group = tag.home().group();
        let blocks = group.and_then(|group| self.blocks_of(group));
        blocks.is_some_and(|blocks| blocks.whereabouts(tag) == Whereabouts::Gone)
    }
}

impl HomeAgent {
    /// Whether bytes of a block come home that nobody will ask for.
    pub(super) fn comes_nowhere(&self, tag: Tag) -> bool {
        self.kept && self.directory.is_gone(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::super::settle::copy_record;
    use super::super::{HomeAction, HomeConfig, Open};
    use super::*;
    use crate::wire::{Copyset, GlobalStatus, Header, Kind, Reason, RequesterId, Seq};
    use alloc::vec::Vec;

    const BLOCK: u32 = 4096;
    const GROUP: u16 = 2;
    const OLD: KeptBlocks = KeptBlocks {
        first: 1,
        base: 0,
        bytes: 4 * BLOCK as u64,
    };
    const GONE: KeptBlocks = KeptBlocks {
        first: 1,
        base: 1 << 16,
        bytes: 0,
    };
    const NEXT: KeptBlocks = KeptBlocks {
        first: 2,
        base: 1 << 16,
        bytes: 2 * BLOCK as u64,
    };

    fn nth(blocks: KeptBlocks, nth: u64) -> Tag {
        blocks.tag(GROUP, nth * u64::from(BLOCK))
    }

    fn keeper() -> HomeAgent {
        let mut agent = HomeAgent::of_groups(HomeConfig {
            node: 0,
            epoch: 1,
            block: BLOCK,
            chunks: 1,
            incarnation: 1,
            migration: None,
            answering: None,
            seed: 0,
        });
        agent.lay_out(GROUP, OLD);
        agent
    }

    fn packet(kind: Kind, tag: Tag, slot: u16, seq: u64) -> Header {
        let id = RequesterId { node: 3, slot };
        Header::request(kind, 1, tag, id, Seq(seq))
    }

    /// What a keeper answers: to whom a packet is an answer, and why not.
    fn asked(agent: &mut HomeAgent, header: &Header, bytes: u32) -> (Vec<Header>, HomeAction) {
        let (outputs, action) = agent.handle(header, bytes);
        (outputs.iter().map(|output| output.header).collect(), action)
    }

    /// Each packet about it gets its answer, and none of them changes the next region.
    #[test]
    fn packets_about_a_removed_region_are_refused_or_come_nowhere() {
        let mut agent = keeper();
        let old = nth(OLD, 1);
        // One event has the lock of a block, another a writable copy that is on its way home.
        let write = packet(Kind::WriteMiss, old, 0, 1);
        let (granted, _) = asked(&mut agent, &write, 0);
        assert_eq!(
            (granted[0].kind, granted[0].reason),
            (Kind::Ack, Reason::None)
        );
        for (blocks, seq) in [(GONE, 1), (NEXT, 2)] {
            agent.lay_out(GROUP, blocks);
            for kind in [
                Kind::ReadMiss,
                Kind::WriteMiss,
                Kind::WriteShared,
                Kind::EvictShared,
                Kind::EvictModified,
                Kind::LockRead,
                Kind::LockWrite,
            ] {
                let header = packet(kind, old, 1 + kind as u16 % 16, seq);
                let (answers, action) = asked(&mut agent, &header, 0);
                assert_eq!(answers.len(), 1, "{kind:?}");
                assert_eq!(answers[0].reason, Reason::NoMemory, "{kind:?}");
                assert_eq!(action, HomeAction::None);
            }
            let home = packet(Kind::WriteBack, old, 2, seq);
            let (answers, action) = asked(&mut agent, &home, BLOCK);
            assert_eq!(answers.len(), 1);
            assert_eq!(answers[0].kind, Kind::WriteBackAck);
            assert_eq!(
                (answers[0].reason, action),
                (Reason::None, HomeAction::None)
            );
        }
        // Who has the lock lets it go, as often as its packet comes.
        let unlock = packet(Kind::Unlock, old, 0, 1);
        for _ in 0..2 {
            let (answers, _) = asked(&mut agent, &unlock, 0);
            assert_eq!(answers[0].kind, Kind::UnlockAck);
        }
        for block in 0..2 {
            let entry = agent.inspect(nth(NEXT, block)).unwrap();
            assert_eq!(entry, (0, GlobalStatus::Unshared, Copyset::EMPTY, false));
        }
        assert!(agent.inspect(old).is_none() && agent.inspect(nth(NEXT, 2)).is_none());
        // Behind its end there is nothing yet that could come home.
        let behind = packet(Kind::WriteBack, nth(NEXT, 2), 2, 3);
        assert!(asked(&mut agent, &behind, BLOCK).0.is_empty());
    }

    /// An epoch begins, and members have not all heard. What they have of the removed region is
    /// none of the next one's; what they have of that one counts, whenever the keeper hears of it.
    #[test]
    fn what_is_told_of_a_removed_region_is_dropped() {
        let made = |heard: &[(bool, KeptBlocks)]| {
            let mut agent = keeper();
            let lay_out = |agent: &mut HomeAgent, early: bool| {
                let those = heard.iter().filter(|(when, _)| *when == early);
                those.for_each(|(_, blocks)| agent.lay_out(GROUP, *blocks));
            };
            agent.freeze(2);
            lay_out(&mut agent, true);
            for block in 0..4 {
                agent.note_copy(3, copy_record(nth(OLD, block), true));
            }
            agent.note_rescued(nth(OLD, 0));
            agent.note_copy(1, copy_record(nth(NEXT, 1), true));
            let bare = Open {
                slot: 4,
                seq: Seq(7),
                tag: nth(OLD, 0),
                shared: false,
                bare: true,
                awaits_data: false,
                epoch: 1,
            };
            agent.note_open(3, bare, 1);
            agent.settle(Copyset::EMPTY, false);
            lay_out(&mut agent, false);
            let next = [0, 1].map(|block| agent.inspect(nth(NEXT, block)).unwrap());
            assert!(agent.inspect(nth(OLD, 0)).is_none());
            // None of it comes back with what the number has after that.
            agent.lay_out(
                GROUP,
                KeptBlocks {
                    first: 3,
                    base: 2 << 16,
                    bytes: OLD.bytes,
                },
            );
            let third = agent.inspect(Tag(nth(OLD, 0).0 + (2 << 16))).unwrap();
            assert_eq!(third, (0, GlobalStatus::Unshared, Copyset::EMPTY, false));
            next
        };
        let (unshared, modified) = (GlobalStatus::Unshared, GlobalStatus::Modified);
        let right = [
            (0, unshared, Copyset::EMPTY, false),
            (0, modified, Copyset::of(1), false),
        ];
        assert_eq!(made(&[(true, GONE), (true, NEXT)]), right);
        assert_eq!(made(&[(true, GONE), (false, NEXT)]), right);
        assert_eq!(made(&[(false, GONE), (false, NEXT)]), right);
        assert_eq!(made(&[(false, NEXT)]), right);
    }

    #[test]
    fn addresses_say_which_region_they_are_of() {
        use Whereabouts::{Gone, Here, Unheard};
        let of = |blocks: KeptBlocks| {
            [
                nth(OLD, 0),
                nth(OLD, 3),
                nth(NEXT, 0),
                nth(NEXT, 1),
                nth(NEXT, 2),
            ]
            .map(|tag| blocks.whereabouts(tag))
        };
        assert_eq!(of(KeptBlocks::default()), [Unheard; 5]);
        assert_eq!(of(OLD), [Here, Here, Unheard, Unheard, Unheard]);
        assert_eq!(of(GONE), [Gone, Gone, Unheard, Unheard, Unheard]);
        assert_eq!(of(NEXT), [Gone, Gone, Here, Here, Unheard]);
        assert_eq!(NEXT.at(nth(NEXT, 1)), Some(u64::from(BLOCK)));
        assert!(NEXT.at(nth(OLD, 1)).is_none() && GONE.at(nth(NEXT, 0)).is_none());
    }
}
