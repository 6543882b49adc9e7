//! What stands in shared memory for all domains, beside the lines themselves.
//!
//! Each domain writes its own row and rings and nothing else, and no line of them is written by two
//! domains. Who reads, reads past its own cache; who writes, writes back at once.

use super::clock::Tick;
use super::ring::{Queue, RingEntry};

/// Where a domain is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Presence {
    /// It is not there, or has left.
    #[default]
    Absent = 0,
    /// Its row is there, its cache is empty; it has not quiesced yet.
    Joining = 1,
    /// It has quiesced.
    Running = 2,
}

impl Presence {
    /// From its number.
    pub const fn from_word(word: u64) -> Self {
        match word {
            1 => Presence::Joining,
            2 => Presence::Running,
            _ => Presence::Absent,
        }
    }
}

/// What a domain says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DomainRow {
    /// Which life of its node it is of.
    pub incarnation: u32,
    /// Where it is in its life.
    pub presence: Presence,
    /// What its clock showed last.
    pub clock: Tick,
    /// What was modified before this tick is not stale in its cache (`Qm`).
    pub modified: Tick,
    /// What was freed before this tick is not in its cache, and no section of its reads it (`Qf`).
    pub freed: Tick,
}

/// All domains' rows and rings, read past the reader's cache.
pub trait Board {
    /// Domains that there is room for.
    fn domains(&self) -> u8;
    /// A domain's row.
    fn row(&self, domain: u8) -> DomainRow;
    /// The first entry of a ring that is kept, and the one behind the last.
    fn ends(&self, domain: u8, queue: Queue) -> (u64, u64);
    /// An entry that is kept.
    fn entry(&self, domain: u8, queue: Queue, nth: u64) -> RingEntry;
    /// Which life of a domain another one does not wait for any more; 0: none.
    fn excluded(&self, by: u8, domain: u8) -> u32;
}

/// What its own domain does with its part: each is visible to all when it returns.
pub trait OwnBoard: Board {
    /// Entries of one ring that there is room for.
    fn room(&self) -> u64;
    /// Writes an entry.
    fn put(&mut self, queue: Queue, nth: u64, entry: RingEntry);
    /// Says which entries are kept.
    fn set_ends(&mut self, queue: Queue, ends: (u64, u64));
    /// Says that this life of a domain is not waited for.
    fn exclude(&mut self, domain: u8, incarnation: u32);
}
