//! Figures of an arena at a node, and what nodes say of themselves in it.

use super::arena::Arena;
use rackmem_proto::bi::{Board, Presence};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What became of sections and quiescences of a node.
#[derive(Default)]
pub(super) struct ArenaCounters {
    pub late: AtomicU64,
    pub young: AtomicU64,
    pub quiesced: AtomicU64,
    pub everything: AtomicU64,
    pub dropped: AtomicU64,
    pub jumps: AtomicU64,
    pub reused: AtomicU64,
    pub taken_over: AtomicU64,
}

/// Figures of an arena at a node, since it was attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ArenaCounts {
    /// Sections that had to quiesce first, or have ended as
    /// [`ArenaError::Late`](crate::ArenaError::Late).
    pub late: u64,
    /// Objects that were dropped before they were read, for their pointers were young.
    pub young: u64,
    /// Quiescences.
    pub quiesced: u64,
    /// Of these, those that have dropped everything.
    pub everything: u64,
    /// Lines that quiescences have dropped by name.
    pub dropped: u64,
    /// How often this node's clock was behind, and has jumped.
    pub jumps: u64,
    /// Freed objects whose memory is free again.
    pub reused: u64,
    /// Freed objects whose memory others may still read.
    pub waiting: u64,
    /// Lives of other nodes, which are over, whose memory this node has taken over.
    pub taken_over: u64,
}

/// What a domain says of itself in the arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DomainStatus {
    /// Its node.
    pub node: u16,
    /// Ticks since what was modified is not stale there.
    pub modified_lag: u64,
    /// Ticks since what was freed is not read there.
    pub freed_lag: u64,
    /// Whether its node is a member, in the life that attached the arena.
    pub lives: bool,
}

impl Arena {
    /// What all nodes that have it attached say of themselves.
    pub fn domains(&self) -> Vec<DomainStatus> {
        let (board, now) = (self.at.board(), self.at.now());
        let rows = (0..self.at.front.board.domains).map(|domain| (domain, board.row(domain)));
        let there = rows.filter(|(_, row)| row.presence != Presence::Absent);
        there
            .map(|(domain, row)| DomainStatus {
                node: domain.into(),
                modified_lag: now.since(row.modified),
                freed_lag: now.since(row.freed),
                lives: self.at.lives(domain, row.incarnation),
            })
            .collect()
    }

    /// Its figures at this node.
    pub fn counts(&self) -> ArenaCounts {
        let counters = &self.at.counters;
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        ArenaCounts {
            late: load(&counters.late),
            young: load(&counters.young),
            quiesced: load(&counters.quiesced),
            everything: load(&counters.everything),
            dropped: load(&counters.dropped),
            jumps: load(&counters.jumps),
            reused: load(&counters.reused),
            waiting: self.at.waiting(),
            taken_over: load(&counters.taken_over),
        }
    }
}
