//! The delegation baseline: a word of a block is read or changed where it lives, by its home agent.
//!
//! Operations execute once: a retransmission is answered from the requester's last result ([`crate::call::Results`]).

use crate::wire::Kind;

/// Bytes one delegated read or write moves at most.
pub const MAX_OPERAND: usize = 16;

/// Applies a delegated operation to the eight bytes it names; the value to store, if it stores.
pub fn apply(kind: Kind, old: u64, operand: u64, second: u64) -> Option<u64> {
    match kind {
        Kind::DelegateWrite => Some(operand),
        Kind::DelegateAdd => Some(old.wrapping_add(operand)),
        Kind::DelegateCas if old == operand => Some(second),
        _ => None,
    }
}
