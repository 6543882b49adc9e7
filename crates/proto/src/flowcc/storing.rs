//! Blocks that come from a requester which keeps no copy of them (`Store`), many by one packet.
//!
//! A write must take effect once, however often its packet comes, and also when its epoch ends
//! before the requester has an answer: what others have written meanwhile would be lost. So each
//! shard of a home remembers of each requester the last store that it has seen, by the number under
//! which its blocks were sent *first*, and how far its blocks have come here. This outlives epochs:
//! the home that answers in the next one knows what it did in the last one, and one that has died
//! has lost the blocks with it.
//!
//! | a block of the packet | then |
//! |---|---|
//! | is of a store that is new here, or behind those that have come here | it is written, if home's memory is all that there is of it; otherwise it is refused |
//! | has been written by an earlier copy of the packet | nothing: it counts as written |
//! | was refused in an earlier copy of the packet, or lies behind it | it is refused, whatever its entry is by now: the requester has gone another way |
//! | is of an older store | the packet is ignored: its requester has ended it |
//!
//! A home takes the blocks of a packet in order, and ends at the first one that is refused; the
//! answer says how many it has.

use super::home_agent::HomeAgent;
use crate::call::PerRequester;
use crate::wire::{Copyset, Header, Kind, RequesterId, Tag};
use crate::{Dest, Output};
use core::cmp::Ordering;
use core::hash::Hasher;

/// What is to happen about one block of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storing {
    /// It is to be put in place, in this section.
    Write,
    /// It has been.
    Written,
    /// Neither it nor those behind it are.
    Refuse,
    /// The packet gets no answer.
    Ignore,
}

/// The last store of a requester.
#[derive(Clone, Copy, PartialEq, Hash, Debug, Default)]
struct Row {
    /// Of the requester's node; 0 before the first store.
    incarnation: u32,
    number: u64,
    /// Blocks of this shard before this one are written.
    next: u16,
    refused: bool,
    /// Of an operation on a word: what that was before.
    old: u64,
}

/// The last store of each requester, as far as it concerns one shard. They outlive epochs.
#[derive(Clone, Debug, Default)]
pub(super) struct Stores {
    rows: PerRequester<Row>,
}

impl Stores {
    /// Takes the nth block of a store. `may`: whether it could be written now.
    fn enter(
        &mut self,
        requester: RequesterId,
        (incarnation, number): (u32, u64),
        nth: u16,
        may: impl FnOnce() -> bool,
    ) -> Storing {
        let row = self.rows.row(requester);
        match (incarnation, number).cmp(&(row.incarnation, row.number)) {
            Ordering::Less => return Storing::Ignore,
            Ordering::Equal if nth < row.next => return Storing::Written,
            Ordering::Equal if row.refused => return Storing::Refuse,
            Ordering::Equal => {}
            Ordering::Greater => {
                *row = Row {
                    incarnation,
                    number,
                    ..Row::default()
                }
            }
        }
        if may() {
            row.next = nth + 1;
            Storing::Write
        } else {
            row.refused = true;
            Storing::Refuse
        }
    }

    /// What the word was before the last operation of a requester.
    pub fn old(&mut self, requester: RequesterId) -> &mut u64 {
        &mut self.rows.row(requester).old
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.rows.fingerprint(into);
    }
}

impl HomeAgent {
    /// What is to happen about a block of a store, the nth of those that it brings.
    /// Only the block's shard can know.
    pub fn store(&mut self, header: &Header, tag: Tag, nth: u16) -> Storing {
        let number = header.seq.0.checked_sub(header.offset.into());
        let stranger = header.epoch != self.config.epoch || !self.serves(header.tag.home());
        let (Some(number), false, None) = (number, stranger, &self.findings) else {
            self.counters.ignored += 1;
            return Storing::Ignore;
        };
        let may = self.has_alone(tag);
        let which = (header.incarnation, number);
        let storing = self.stores.enter(header.requester, which, nth, || may);
        self.counters.ignored += u64::from(storing == Storing::Ignore);
        storing
    }

    /// The answer to a store of which so many blocks are in place.
    pub fn stored(&self, header: &Header, blocks: u32) -> Output {
        let mut ack = header.answer(Kind::StoreAck, self.config.node);
        (ack.offset, ack.copyset) = (0, Copyset(blocks));
        if blocks == 0 {
            ack.reason = self.why_not_in_place(header.tag);
        }
        Output::new(Dest::Requester(header.requester), ack)
    }

    /// Forgets which stores it has seen, as no home should: a defect to plant.
    #[doc(hidden)]
    pub fn forget_stores(&mut self) {
        self.stores = Stores::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CHUNK;
    use crate::flowcc::HomeConfig;
    use crate::wire::{HomeId, Reason, Seq};
    use alloc::vec::Vec;

    const WHO: RequesterId = RequesterId { node: 3, slot: 5 };

    /// Blocks of a store, each with whether it could be written.
    fn store(stores: &mut Stores, which: (u32, u64), blocks: &[(u16, bool)]) -> Vec<Storing> {
        let enter = |&(nth, may): &(u16, bool)| stores.enter(WHO, which, nth, || may);
        blocks.iter().map(enter).collect()
    }

    #[test]
    fn a_store_takes_effect_once_and_what_was_refused_stays_refused() {
        use Storing::{Ignore, Refuse, Write, Written};
        let mut stores = Stores::default();
        // This shard has every other block.
        let first = store(&mut stores, (1, 7), &[(0, true), (2, true), (4, false)]);
        assert_eq!(first, [Write, Write, Refuse]);
        let again = store(&mut stores, (1, 7), &[(0, true), (2, true), (4, true)]);
        assert_eq!(again, [Written, Written, Refuse]);
        assert_eq!(store(&mut stores, (1, 9), &[(0, true)]), [Write]);
        assert_eq!(store(&mut stores, (1, 7), &[(0, true)]), [Ignore]);
        // A copy that comes further than the first one did, whose epoch ended on the way.
        assert_eq!(
            store(&mut stores, (1, 9), &[(0, true), (2, true)]),
            [Written, Write]
        );
        // The node has died and is back, with numbers from the beginning.
        assert_eq!(store(&mut stores, (2, 1), &[(0, true)]), [Write]);
        assert_eq!(store(&mut stores, (1, 99), &[(0, true)]), [Ignore]);
    }

    #[test]
    fn what_is_no_store_of_this_home_changes_nothing() {
        let config = HomeConfig {
            node: 1,
            epoch: 4,
            block: 4096,
            chunks: 2,
            incarnation: 1,
            migration: None,
            answering: None,
            seed: 0,
        };
        let mut home = HomeAgent::new(config);
        home.grow(1);
        let tag = Tag(HomeId::of(1).start().0);
        let mut header = Header::request(Kind::Store, 4, tag, WHO, Seq(9));
        header.incarnation = 1;
        assert_eq!(home.store(&header, tag, 0), Storing::Write);
        let late = Header { epoch: 3, ..header };
        assert_eq!(home.store(&late, tag, 1), Storing::Ignore);
        let before_the_first = Header {
            offset: 10,
            ..header
        };
        assert_eq!(home.store(&before_the_first, tag, 1), Storing::Ignore);
        // A range that goes on at another home, or behind this one's memory.
        assert_eq!(
            home.store(&header, HomeId::of(2).start(), 1),
            Storing::Refuse
        );
        let header = Header {
            seq: Seq(10),
            ..header
        };
        assert_eq!(home.store(&header, Tag(tag.0 + CHUNK), 0), Storing::Refuse);
        let behind = Header {
            tag: Tag(tag.0 + CHUNK),
            ..header
        };
        assert_eq!(home.stored(&behind, 0).header.reason, Reason::NoMemory);
        // While entries are made anew, nothing is answered; afterwards, what was written is known.
        home.freeze(5);
        let header = Header {
            epoch: 5,
            seq: Seq(12),
            offset: 3,
            ..header
        };
        assert_eq!(home.store(&header, tag, 0), Storing::Ignore);
        home.settle(Copyset::EMPTY, false);
        // Of the ninth, whose row the tenth has taken, nothing more is known than that it is over.
        assert_eq!(home.store(&header, tag, 0), Storing::Ignore);
        let tenth = Header {
            offset: 2,
            ..header
        };
        assert_eq!(home.store(&tenth, tag, 0), Storing::Refuse);
    }
}
