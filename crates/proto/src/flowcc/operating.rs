//! Operations on words of a block which a requester has its home do (`Operate`): it sends what is
//! to be done, and neither block nor lock travels.
//!
//! An operation is a store of one word that tells what was there before. So it may be done while
//! home's memory is all that there is of the block, takes effect once, and is remembered across
//! epochs, by the same rules and in the same row of its requester (`storing.rs`); the row keeps
//! what the word was before as well, and a late copy of the packet is told that, and not what is
//! there by now.
//!
//! Where caches have the block, or the switch has its entry, the home refuses, and the requester
//! goes the ordinary way, by its cache. Where only an event's lock is in the way, it says so
//! (`Locked`), and the requester asks again, as for another one. An entry that the switch has is
//! taken back, and stays while words of its block are operated on, however hot that is: a switch
//! has no memory to do it in.
//!
//! Who uses a block alone, or often before another does, had better have it. The home sees that,
//! and only the home: it says so in its answer (`BRING`) when of [`SEEN`] operations each node has
//! made three or more in a row.

use super::directory::Owner;
use super::home_agent::HomeAgent;
use crate::wire::{Copyset, Flags, Header, Kind, NodeId, Reason, Tag};
use crate::{Dest, Output, Outputs};

/// Operations after which it is looked how many nodes make in a row.
pub const SEEN: u8 = 16;

/// How many in a row are worth a block's way.
const LONG: u8 = 3;

/// Blocks of a shard of which it is known who operates on them. Those whose numbers are the same
/// modulo this share a row.
const ROWS: usize = 64;

/// Who has operated on a block last, how often it was operated on of late, and how often by another
/// node than before.
#[derive(Clone, Copy, Debug)]
struct Turn {
    tag: Tag,
    node: NodeId,
    operations: u8,
    runs: u8,
    /// In this period of migration, or the one before.
    recent: u8,
}

/// Who operates on the words of a shard. Nothing of the protocol rests on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(alloc::vec::Vec<Option<Turn>>);

impl Turns {
    /// A node operates on a word of the nth block. Whether nodes do so several times in a row.
    fn take(&mut self, nth: u64, tag: Tag, node: NodeId) -> bool {
        if self.0.is_empty() {
            self.0.resize(ROWS, None);
        }
        let row = &mut self.0[(nth % ROWS as u64) as usize];
        let known = row.filter(|turn| turn.tag == tag);
        let mut turn = known.unwrap_or(Turn {
            tag,
            node,
            operations: 0,
            runs: 1,
            recent: 0,
        });
        turn.runs += u8::from(turn.node != node);
        (turn.node, turn.operations, turn.recent) = (node, turn.operations + 1, 2);
        let several = turn.operations >= SEEN && turn.operations >= LONG * turn.runs;
        if turn.operations >= SEEN {
            (turn.operations, turn.runs) = (turn.operations / 2, (turn.runs / 2).max(1));
        }
        *row = Some(turn);
        several
    }

    /// Whether words of a block were operated on in this period or the one before.
    pub fn recent(&self, tag: Tag) -> bool {
        let mut turns = self.0.iter().flatten();
        turns.any(|turn| turn.tag == tag && turn.recent > 0)
    }

    /// Ends a period of migration.
    pub fn end_period(&mut self) {
        for turn in self.0.iter_mut().flatten() {
            turn.recent = turn.recent.saturating_sub(1);
        }
    }
}

/// What is to happen about an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operating {
    /// It is done: what was there before.
    Done(u64),
    /// It is not done.
    Refused,
    /// The packet gets no answer.
    Ignored,
}

impl HomeAgent {
    /// What the last operation of this packet's requester has found, to be kept.
    pub fn operated_on(&mut self, header: &Header) -> &mut u64 {
        self.stores.old(header.requester)
    }

    /// A node operates on a block; whether it had better have it.
    pub fn takes_turn(&mut self, tag: Tag, node: NodeId) -> bool {
        let nth = tag.0 / u64::from(self.config.block);
        self.turns.take(nth, tag, node) && node != self.config.node
    }

    /// The answer to an operation.
    pub fn operated(&mut self, header: &Header, what: Operating, outputs: &mut Outputs) {
        let mut ack = header.answer(Kind::OperateAck, self.config.node);
        (ack.offset, ack.copyset) = (0, Copyset::EMPTY);
        match what {
            Operating::Ignored => return,
            Operating::Refused => {
                ack.reason = match self.is_locked(header.tag) {
                    true => Reason::Locked,
                    false => self.why_not_in_place(header.tag),
                };
                self.takes_turn(header.tag, header.requester.node);
                self.keep_here(header.tag, outputs);
            }
            Operating::Done(old) => {
                (ack.offset, ack.copyset) = ((old >> 32) as u32, Copyset(old as u32));
                ack.flags = ack.flags.and(Flags::DATA);
                if self.takes_turn(header.tag, header.requester.node) {
                    ack.flags = ack.flags.and(Flags::BRING);
                }
            }
        }
        outputs.push(Output::new(Dest::Requester(header.requester), ack));
    }

    /// Whether an event has a block's lock here: in a moment its last copy has come home, or it has
    /// another one.
    fn is_locked(&self, tag: Tag) -> bool {
        let known = self.directory.look(tag).filter(|_| self.findings.is_none());
        known.is_some_and(|entry| {
            let here = matches!(entry.owner, Owner::Home | Owner::Wanted);
            here && entry.lock != 0
        })
    }

    /// Has the switch give an entry back, or does not give it there.
    fn keep_here(&mut self, tag: Tag, outputs: &mut Outputs) {
        if self.findings.is_some() {
            return;
        }
        let Some(entry) = self.directory.entry(tag) else {
            return;
        };
        match entry.owner {
            Owner::Wanted => entry.owner = Owner::Home,
            Owner::Switch => {
                let removal = self.mover.remove(self.config.epoch, tag, entry);
                removal.into_iter().for_each(|output| outputs.push(output));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether anybody is told to have a block, of so many operations in runs of this length.
    fn told(turns: &mut Turns, run: usize, nodes: usize) -> bool {
        let tag = Tag(0x3000);
        (0..64).any(|nth| turns.take(3, tag, (nth / run % nodes) as NodeId))
    }

    #[test]
    fn who_asks_alone_or_several_times_in_a_row_is_told() {
        assert!(told(&mut Turns::default(), 64, 1));
        assert!(told(&mut Turns::default(), 3, 2));
        assert!(!told(&mut Turns::default(), 2, 2));
        assert!(told(&mut Turns::default(), 5, 3));
        assert!(!told(&mut Turns::default(), 1, 2));
        assert!(!told(&mut Turns::default(), 1, 7));
        // Nodes that took turns, and then one alone.
        let mut turns = Turns::default();
        assert!(!told(&mut turns, 1, 3));
        assert!(told(&mut turns, 64, 1));
    }

    #[test]
    fn blocks_of_one_place_are_not_taken_for_each_other() {
        let mut turns = Turns::default();
        for _ in 0..64 {
            assert!(!turns.take(3, Tag(0x3000), 1));
            assert!(!turns.take(3 + ROWS as u64, Tag(0x43_000), 1));
        }
    }

    #[test]
    fn a_block_is_operated_on_for_two_periods() {
        let (mut turns, tag) = (Turns::default(), Tag(0x3000));
        assert!(!turns.recent(tag));
        turns.take(3, tag, 1);
        turns.end_period();
        assert!(turns.recent(tag));
        turns.end_period();
        assert!(!turns.recent(tag));
    }
}
