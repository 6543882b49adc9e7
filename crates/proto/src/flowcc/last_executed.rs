//! The LAST-EXECUTED table of an agent: the largest sequence number it has executed of each requester (§5.3.1).

use super::assembly::Assembly;
use crate::wire::{RequesterId, Seq};
use alloc::boxed::Box;
use core::cmp::Ordering;

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

#[derive(Clone, Copy, Default)]
struct Row {
    seq: Seq,
    received: Assembly,
}

/// One row a requester of the rack.
pub struct LastExecuted {
    rows: Box<[Row]>,
}

impl Default for LastExecuted {
    fn default() -> Self {
        LastExecuted {
            rows: alloc::vec![Row::default(); RequesterId::COUNT].into_boxed_slice(),
        }
    }
}

impl LastExecuted {
    /// Enters a request.
    #[inline]
    pub fn enter(&mut self, requester: RequesterId, seq: Seq) -> Executed {
        let row = &mut self.rows[requester.index()];
        match seq.compare(row.seq) {
            Ordering::Greater => {
                *row = Row {
                    seq,
                    received: Assembly::default(),
                };
                Executed::New
            }
            Ordering::Equal => Executed::Again,
            Ordering::Less => Executed::Old,
        }
    }

    /// Enters one segment of a block that comes in several; the assembly says what of it has come.
    pub fn segment(&mut self, requester: RequesterId, seq: Seq) -> Option<&mut Assembly> {
        match self.enter(requester, seq) {
            Executed::Old => None,
            _ => Some(&mut self.rows[requester.index()].received),
        }
    }
}
