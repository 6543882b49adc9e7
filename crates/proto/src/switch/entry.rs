//! One way of the entry table: TAG in one stage, LOCK, G-STATUS and COPYSET in the next.

use super::rmt::{Array, Pass, Violation};
use crate::flowcc::lock::{self, LockWord};
use crate::flowcc::tables;
use crate::wire::{Copyset, GlobalStatus, Header, Kind, NodeId, Tag};

/// Registers of one way.
#[derive(Clone)]
pub(super) struct Way {
    pub tag: Array<u64>,
    pub lock: Array<LockWord>,
    pub status: Array<u8>,
    pub copyset: Array<u32>,
}

/// A free location; a taken one is odd.
pub(super) const FREE: u64 = 0;

/// What a pass over an entry does to it.
pub(super) enum Entry<'a> {
    Lock {
        shared: bool,
        kind: Kind,
        node: NodeId,
    },
    Release {
        shared: bool,
        install: Option<&'a Header>,
    },
    Install(&'a Header),
    Look,
}

/// What such a pass has seen.
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub acquired: bool,
    pub valid: bool,
    pub status: GlobalStatus,
    pub copyset: Copyset,
}

/// A tag in its array: the low bit says that the location is taken,
/// so that block 0 of node 0 has a form too.
pub(super) fn stored(tag: Tag) -> u64 {
    tag.0 | 1
}

impl Way {
    /// Way number `way`, empty.
    pub fn new(way: u8, sets: usize) -> Self {
        Way {
            tag: Array::new(way, sets),
            lock: Array::new(way + 1, sets),
            status: Array::new(way + 1, sets),
            copyset: Array::new(way + 1, sets),
        }
    }

    /// The three arrays of an entry, in the one stage they share, so that they change together (P1,
    /// §2.2).
    pub fn apply(&mut self, pass: &Pass, at: usize, entry: &Entry) -> Result<Seen, Violation> {
        let mut seen = Seen::default();
        match entry {
            Entry::Lock { shared, kind, node } => {
                seen.acquired = self.lock.access(pass, at, |l| lock::acquire(l, *shared))?;
                seen.status = self.status.access(pass, at, |s| {
                    GlobalStatus::from_byte(*s).unwrap_or_default()
                })?;
                seen.copyset = self.copyset.access(pass, at, |c| Copyset(*c))?;
                seen.valid = tables::check(*kind, *node, seen.status, seen.copyset);
            }
            Entry::Release { shared, install } => {
                self.lock.access(pass, at, |l| lock::release(l, *shared))?;
                if let Some(header) = install {
                    self.status.access(pass, at, |s| *s = header.status as u8)?;
                    self.copyset.access(pass, at, |c| {
                        // Read unlocks race with each other: union, never overwrite (hard place
                        // FlowCC 4).
                        *c = if *shared {
                            *c | header.copyset.0
                        } else {
                            header.copyset.0
                        };
                    })?;
                }
            }
            Entry::Install(header) => {
                self.lock.access(pass, at, |l| *l = 0)?;
                self.status.access(pass, at, |s| *s = header.status as u8)?;
                self.copyset.access(pass, at, |c| *c = header.copyset.0)?;
            }
            Entry::Look => {
                seen.status = self.status.access(pass, at, |s| {
                    GlobalStatus::from_byte(*s).unwrap_or_default()
                })?;
                seen.copyset = self.copyset.access(pass, at, |c| Copyset(*c))?;
            }
        }
        Ok(seen)
    }
}
