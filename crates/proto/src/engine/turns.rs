//! Packets about homes that groups keep, which wait for their turns, and what the turns that are
//! under way are about.
//!
//! A turn ([`super::keeping::KeptTurn`]) waits for a majority, and where that is durable for its
//! syncs. So a keeper has several under way, about different blocks:
//!
//! | two packets | have their turns |
//! |---|---|
//! | about one block | one after the other, in the order in which they came |
//! | about different blocks | at a time, as far as [`AT_ONCE`] allows |
//! | about objects, whichever | one after the other |
//!
//! Of one block it has to be so. A turn puts the block in place as a majority has it, and another
//! one about it may have served a packet since: what came home by that would be overwritten. It
//! reads the block before it writes the line: a later content may have become the line meanwhile,
//! with a majority and acknowledged, and an earlier one would be written over it. Different blocks
//! have nothing in common: each packet is about one, and so is its answer. What is about several
//! (`Store`, `Fetch`) such a home refuses (`flowcc/in_place.rs`). A group's stamps are its keeper's
//! count in the epoch, so operations on several lines have different ones (`abd/node.rs`).
//!
//! Of objects, what a packet needs of a majority is noted in one place of the node
//! (`sabre::KeptObjects::take_need`), so they have a turn together.

use super::host::Defect;
use crate::wire::{Header, Tag};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Turns that a keeper has under way at a time.
pub const AT_ONCE: usize = 8;
/// Packets that wait for theirs; the next ones come again.
pub const WAITING: usize = 1024;

/// What a turn is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum About {
    /// This block.
    Block(Tag),
    /// Objects.
    Objects,
}

impl About {
    /// What a packet is about.
    pub fn of(header: &Header) -> Self {
        match header.kind.asks_object() {
            true => About::Objects,
            false => About::Block(header.tag),
        }
    }
}

/// See the module. `B` is what a packet has behind its header.
#[derive(Clone, Hash, Debug)]
pub struct Turns<B> {
    waiting: VecDeque<(Header, B)>,
    under_way: Vec<About>,
}

impl<B> Default for Turns<B> {
    fn default() -> Self {
        Turns {
            waiting: VecDeque::new(),
            under_way: Vec::new(),
        }
    }
}

impl<B> Turns<B> {
    /// A packet waits for its turn; the body is made only if there is room. Whether there is.
    pub fn wait(&mut self, header: &Header, body: impl FnOnce() -> B) -> bool {
        let has_room = self.waiting.len() < WAITING;
        if has_room {
            self.waiting.push_back((*header, body()));
        }
        has_room
    }

    /// The packet that has waited longest of those whose turn can begin. It has begun.
    pub fn begin(&mut self, defect: Option<Defect>) -> Option<(Header, B)> {
        let beside = defect == Some(Defect::TakeTurnsTogether);
        let may = |header: &Header| beside || !self.under_way.contains(&About::of(header));
        let mut headers = self.waiting.iter().map(|(header, _)| header);
        let at = headers.position(may)?;
        if self.under_way.len() >= AT_ONCE {
            return None;
        }
        let (header, body) = self.waiting.remove(at)?;
        self.under_way.push(About::of(&header));
        Some((header, body))
    }

    /// Something that is no packet which waits here is done in a turn about this, if one can begin
    /// now. Whether it has begun.
    pub fn begin_about(&mut self, about: About) -> bool {
        let may = self.under_way.len() < AT_ONCE && !self.under_way.contains(&about);
        if may {
            self.under_way.push(about);
        }
        may
    }

    /// A turn about this has ended.
    pub fn end(&mut self, about: About) {
        let at = self.under_way.iter().position(|other| *other == about);
        at.map(|at| self.under_way.swap_remove(at));
    }

    /// The epoch is over: what waits comes again. Turns that are under way see that by themselves,
    /// and until they have ended nothing else is done about what they are about.
    pub fn enter(&mut self) {
        self.waiting.clear();
    }

    /// Whether no packet waits.
    pub fn none_wait(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no turn is under way.
    pub fn none_under_way(&self) -> bool {
        self.under_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{HomeId, Kind, RequesterId, Seq};

    fn packet(kind: Kind, block: u64, seq: u64) -> Header {
        let id = RequesterId { node: 2, slot: 0 };
        let tag = Tag(HomeId::of_group(1).start().0 + block * 4096);
        Header::request(kind, 5, tag, id, Seq(seq))
    }

    fn back(block: u64, seq: u64) -> Header {
        packet(Kind::WriteBack, block, seq)
    }

    fn begun(turns: &mut Turns<()>) -> Option<u64> {
        turns.begin(None).map(|(header, ())| header.seq.0)
    }

    #[test]
    fn packets_of_one_block_take_turns_in_their_order_and_others_pass_them() {
        let mut turns = Turns::default();
        for header in [back(7, 0), back(7, 1), back(8, 2), back(7, 3)] {
            assert!(turns.wait(&header, || ()));
        }
        assert_eq!((begun(&mut turns), begun(&mut turns)), (Some(0), Some(2)));
        assert_eq!(begun(&mut turns), None);
        turns.end(About::of(&back(8, 2)));
        assert_eq!(begun(&mut turns), None);
        turns.end(About::of(&back(7, 0)));
        assert_eq!((begun(&mut turns), begun(&mut turns)), (Some(1), None));
        turns.end(About::of(&back(7, 1)));
        assert_eq!((begun(&mut turns), begun(&mut turns)), (Some(3), None));
        assert!(turns.none_wait() && !turns.none_under_way());
        turns.end(About::of(&back(7, 3)));
        assert!(turns.none_under_way());
    }

    #[test]
    fn objects_have_one_turn_together() {
        let mut turns = Turns::default();
        for seq in 0..2 {
            turns.wait(&packet(Kind::ObjWrite, seq, seq), || ());
        }
        turns.wait(&back(0, 2), || ());
        assert_eq!((begun(&mut turns), begun(&mut turns)), (Some(0), Some(2)));
        assert_eq!(begun(&mut turns), None);
        turns.end(About::Objects);
        assert_eq!(begun(&mut turns), Some(1));
    }

    #[test]
    fn so_many_turns_are_under_way_and_so_many_packets_wait() {
        let mut turns = Turns::default();
        for block in 0..WAITING as u64 {
            assert!(turns.wait(&back(block, block), || ()));
        }
        assert!(!turns.wait(&back(0, 0), || unreachable!("there is no room")));
        let all: Vec<u64> = core::iter::from_fn(|| begun(&mut turns)).collect();
        assert_eq!(all, (0..AT_ONCE as u64).collect::<Vec<_>>());
        assert!(!turns.begin_about(About::Objects));
        turns.end(About::of(&back(3, 3)));
        assert!(!turns.begin_about(About::of(&back(4, 0))));
        assert!(turns.begin_about(About::Objects) && begun(&mut turns).is_none());
        turns.enter();
        turns.end(About::Objects);
        assert!(turns.none_wait() && begun(&mut turns).is_none());
        assert!(
            !turns.begin_about(About::of(&back(4, 0))),
            "of the last epoch"
        );
    }
}
