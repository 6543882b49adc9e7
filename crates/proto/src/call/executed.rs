//! The LAST-EXECUTED table of an agent: the largest sequence numbers it has executed of each
//! requester (§5.3.1).
//!
//! A requester may begin an event while the one before it still waits for its write-back or its
//! unlock, and then packets of both are retransmitted. So there is a row for each parity, like the
//! two scores of §5.3.2: with one row, the newer event would make the agent ignore what the older
//! one cannot end without.

use super::assembly::Assembly;
use super::per_requester::PerRequester;
use crate::wire::{RequesterId, Seq};
use core::cmp::Ordering;
use core::hash::Hasher;

/// How a packet relates to what was executed before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Executed {
    /// Never seen: execute it.
    New,
    /// Executed before: answer again, change nothing.
    Again,
    /// Of an event that its requester has ended: ignore it.
    Old,
}

impl Executed {
    /// Of a request, where this is the largest number of its row.
    pub fn of(seq: Seq, largest: Seq) -> Self {
        match seq.cmp(&largest) {
            Ordering::Greater => Executed::New,
            Ordering::Equal => Executed::Again,
            Ordering::Less => Executed::Old,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Hash, Debug, Default)]
struct Row {
    seq: Seq,
    received: Assembly,
}

/// Two rows a requester of the rack, one a parity of its sequence numbers.
#[derive(Clone, Debug, Default)]
pub struct LastExecuted {
    rows: PerRequester<[Row; 2]>,
}

impl LastExecuted {
    /// Enters a request.
    #[inline]
    pub fn enter(&mut self, requester: RequesterId, seq: Seq) -> Executed {
        let row = self.row(requester, seq);
        let executed = Executed::of(seq, row.seq);
        if executed == Executed::New {
            *row = Row {
                seq,
                received: Assembly::default(),
            };
        }
        executed
    }

    /// How a request relates to what was executed, with nothing entered.
    pub fn look(&self, requester: RequesterId, seq: Seq) -> Executed {
        let rows = self.rows.get(requester);
        Executed::of(
            seq,
            rows.map(|rows| rows[seq.parity()].seq).unwrap_or_default(),
        )
    }

    /// Enters one segment of a block that comes in several; the assembly says what of it has come.
    pub fn segment(&mut self, requester: RequesterId, seq: Seq) -> Option<&mut Assembly> {
        match self.enter(requester, seq) {
            Executed::Old => None,
            _ => Some(&mut self.row(requester, seq).received),
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.rows.fingerprint(into);
    }

    #[inline]
    fn row(&mut self, requester: RequesterId, seq: Seq) -> &mut Row {
        &mut self.rows.row(requester)[seq.parity()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_lasts_is_not_forgotten_for_the_next_one() {
        let mut table = LastExecuted::default();
        let requester = RequesterId { node: 2, slot: 1 };
        assert_eq!(table.enter(requester, Seq(7)), Executed::New);
        assert_eq!(table.enter(requester, Seq(8)), Executed::New);
        // The write-back of event 7 was lost and is asked for again.
        assert_eq!(table.enter(requester, Seq(7)), Executed::Again);
        assert_eq!(table.enter(requester, Seq(9)), Executed::New);
        assert_eq!(table.enter(requester, Seq(7)), Executed::Old);
        assert_eq!(table.enter(requester, Seq(8)), Executed::Again);
        // However many events later a packet comes, it is old.
        let later = Seq(5 << 32 | 7);
        assert_eq!(table.enter(requester, later), Executed::New);
        assert_eq!(table.enter(requester, Seq(9)), Executed::Old);
    }
}
