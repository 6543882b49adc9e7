//! Which part of a switch takes a packet.

use crate::engine::Gcp;
use crate::flowcc::Rebuild;
use crate::wire::{Header, Kind};

/// A part of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchPart {
    /// Its part when an epoch begins ([`super::SwitchMember`]).
    Recovery,
    /// Who can be reached: of any epoch.
    Reach,
    /// What is counted for replicated memory ([`super::QuorumProgram`]): of any epoch.
    Quorum,
    /// A shadow asks for tags ([`super::SwitchMember::tell_tags`]).
    Tags,
    /// The directory of locks ([`super::SwitchLocks`]), where the program has not got it.
    Locks,
    /// The program of blocks.
    Blocks,
}

/// Who takes a packet that has come to a switch.
#[inline]
pub fn switch_part(header: &Header) -> SwitchPart {
    match header.kind {
        Kind::Ping | Kind::Pong | Kind::Farewell => SwitchPart::Reach,
        Kind::ReadTags => SwitchPart::Tags,
        kind if Rebuild::concerns(kind) => SwitchPart::Recovery,
        kind if kind.is_fenced_by_config() => SwitchPart::Quorum,
        kind if Gcp::takes(kind) => SwitchPart::Locks,
        _ => SwitchPart::Blocks,
    }
}
