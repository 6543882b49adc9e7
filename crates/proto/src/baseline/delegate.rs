//! The delegation baseline: a word of a block is read or changed where it lives, by its home agent.
//!
//! Operations execute once: a retransmission is answered from the requester's last result.

use crate::flowcc::Executed;
use crate::flowcc::per_requester::PerRequester;
use crate::wire::{Kind, RequesterId};

/// Bytes one delegated read or write moves at most.
pub const MAX_OPERAND: usize = 16;

/// The last result of each requester.
#[derive(Clone, Default)]
pub struct Results {
    rows: PerRequester<u64>,
}

/// Applies a delegated operation to the eight bytes it names; the value to store, if it stores.
pub fn apply(kind: Kind, old: u64, operand: u64, second: u64) -> Option<u64> {
    match kind {
        Kind::DelegateWrite => Some(operand),
        Kind::DelegateAdd => Some(old.wrapping_add(operand)),
        Kind::DelegateCas if old == operand => Some(second),
        _ => None,
    }
}

impl Results {
    /// The result to answer with: the one just computed, or the one of the first execution.
    pub fn settle(&mut self, requester: RequesterId, executed: Executed, old: u64) -> u64 {
        let row = self.rows.row(requester);
        if executed == Executed::New {
            *row = old;
        }
        *row
    }
}
