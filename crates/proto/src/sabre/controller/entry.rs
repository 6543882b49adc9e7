//! An entry of the table of active transfers (ATT), with its stream buffer.

use super::stream::Stream;
use super::{Abort, Reply, SabreId};

/// Where a SABRe is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// Its version is not known: what has been read is speculation.
    Window,
    /// Its version is known.
    Known,
    /// Its version is read again.
    Compared,
    /// And has been the same.
    Whole,
    /// It has failed; what is left to do is to answer.
    Aborted(Abort),
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Entry {
    pub id: SabreId,
    pub blocks: u16,
    /// Blocks that lie on consecutive pages.
    pub piece: u16,
    /// Blocks that were asked for.
    pub requests: u16,
    /// Blocks that were loaded, or answered empty.
    pub issued: u16,
    /// Blocks that were answered.
    pub replies: u16,
    pub phase: Phase,
    /// As the header said first.
    pub version: u64,
    /// It has raised the count of readers.
    pub locked: bool,
    pub buffer: Stream,
}

/// Bits that the fields of an entry take in hardware. The phase takes three.
#[cfg(test)]
pub(super) const BITS: &[(&str, usize)] = &[
    ("id: node, pipeline, transfer", 12 + 4 + 8),
    ("base", 42),
    ("blocks, requests, issued, replies", 4 * 11),
    ("piece", 11),
    ("phase", 3),
    ("version", 64),
    ("locked", 1),
];

impl Entry {
    pub fn new(id: SabreId, base: u64, blocks: u16, piece: u16) -> Self {
        Entry {
            id,
            blocks,
            piece,
            requests: 0,
            issued: 0,
            replies: 0,
            phase: Phase::Window,
            version: 0,
            locked: false,
            buffer: Stream::new(base),
        }
    }

    /// The header has been read for the first time: the window closes.
    pub fn know(&mut self, version: u64, locked: bool) {
        self.version = version;
        self.buffer.base_valid = true;
        self.phase = match locked {
            true => Phase::Aborted(Abort::Locked),
            false => Phase::Known,
        };
    }

    /// One more block is answered.
    pub fn replied(&mut self, nth: Option<u16>) -> Reply {
        self.replies += 1;
        Reply::Block { id: self.id, nth }
    }
}
