//! How many packets of each kind.

use rackmem_wire::Kind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What an end of a network fabric has done.
#[derive(Default, Debug)]
pub struct Counters {
    /// Packets received and decoded.
    pub received: AtomicU64,
    /// What came and was no packet of ours.
    pub malformed: AtomicU64,
    /// Packets that could not be sent.
    pub unsent: AtomicU64,
}

const KINDS: usize = 256;

/// Packets by kind, counted by one agent. Relaxed: a figure for people, not for decisions.
pub struct PacketStats(Box<[AtomicU64; KINDS]>);

impl Default for PacketStats {
    fn default() -> Self {
        PacketStats(Box::new([const { AtomicU64::new(0) }; KINDS]))
    }
}

impl PacketStats {
    /// Counts one.
    #[inline]
    pub fn count(&self, kind: Kind) {
        self.0[kind as usize].fetch_add(1, Relaxed);
    }

    /// The figures now.
    pub fn snapshot(&self) -> PacketCounts {
        PacketCounts(
            Kind::ALL
                .iter()
                .map(|&kind| (kind, self.0[kind as usize].load(Relaxed)))
                .collect(),
        )
    }
}

/// Packets by kind at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts(pub Vec<(Kind, u64)>);

impl PacketCounts {
    /// All kinds together.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|row| row.1).sum()
    }

    /// Adds another agent's figures.
    pub fn add(&mut self, other: &PacketCounts) {
        for &(kind, n) in &other.0 {
            match self.0.iter_mut().find(|row| row.0 == kind) {
                Some(row) => row.1 += n,
                None => self.0.push((kind, n)),
            }
        }
    }
}
