//! Figures of an arena at a node, and what nodes say of themselves in it.

use super::arena::{Arena, Attached};
use crate::host::arenas::Counted;
use crate::host::metrics::ArenaCounts;
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
        ArenaCounts {
            waiting: self.at.waiting(),
            ..self.at.counted()
        }
    }
}

impl Counted for Attached {
    fn counted(&self) -> ArenaCounts {
        let counters = &self.counters;
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        ArenaCounts {
            sections: self.open.begun(),
            late: load(&counters.late),
            young: load(&counters.young),
            quiesced: load(&counters.quiesced),
            everything: load(&counters.everything),
            dropped: load(&counters.dropped),
            jumps: load(&counters.jumps),
            reused: load(&counters.reused),
            waiting: 0,
            taken_over: load(&counters.taken_over),
        }
    }
}
