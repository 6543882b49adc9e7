//! What the switch's control plane does with the registers: read them,
//! and start over in a new epoch.

use super::entry::{FREE, stored};
use super::program::SwitchProgram;
use crate::flowcc::score;
use crate::wire::{Copyset, GlobalStatus, HomeId, NodeId, Record, RequesterId, Tag};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// Sets that are read for one answer. The table is large, as a rule nearly empty, and packets wait
/// meanwhile; who asks goes on from there.
const SETS_A_READ: usize = 512;

/// An entry as the registers have it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Registers {
    /// The lock word.
    pub lock: u16,
    /// The global status.
    pub status: GlobalStatus,
    /// The copyset.
    pub copyset: Copyset,
}

impl Registers {
    /// As a record's word: `copyset << 32 | lock << 16 | status`.
    pub fn to_word(self) -> u64 {
        u64::from(self.copyset.0) << 32 | u64::from(self.lock) << 16 | self.status as u64
    }

    /// From a record's word.
    pub fn from_word(word: u64) -> Option<Self> {
        Some(Registers {
            lock: (word >> 16) as u16,
            status: GlobalStatus::from_byte(word as u8)?,
            copyset: Copyset((word >> 32) as u32),
        })
    }
}

/// An event that has been granted and not unlocked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Grant {
    /// Whose.
    pub requester: RequesterId,
    /// The low half of its sequence number, which is what a register has.
    pub seq: u32,
}

/// The tag of a grant's record: no block begins at an odd address.
const GRANT: Tag = Tag(1);

/// The tag of the record that says of which epoch the others are.
const EPOCH: Tag = Tag(3);

/// The epoch that a switch's entries and grants are of, if the record says so.
pub fn epoch_of(record: Record) -> Option<u32> {
    (record.tag == EPOCH).then_some(record.word as u32)
}

impl Grant {
    /// As a record.
    pub fn to_record(self) -> Record {
        let RequesterId { node, slot } = self.requester;
        let word = u64::from(node) << 48 | u64::from(slot) << 32 | u64::from(self.seq);
        Record { tag: GRANT, word }
    }

    /// From a record, if it is one of a grant.
    pub fn from_record(record: Record) -> Option<Self> {
        let requester = RequesterId {
            node: (record.word >> 48) as NodeId,
            slot: (record.word >> 32) as u16,
        };
        let seq = record.word as u32;
        (record.tag == GRANT).then_some(Grant { requester, seq })
    }
}

fn tag_of(stored: u64) -> Tag {
    Tag(stored & !1)
}

impl SwitchProgram {
    pub(super) fn arrays(&self) -> impl Iterator<Item = (&'static str, u8, usize, usize)> {
        use super::rmt::Array;
        fn row<T>(name: &'static str, a: &Array<T>) -> (&'static str, u8, usize, usize) {
            (name, a.stage(), a.len(), a.item_bytes())
        }
        self.ways
            .iter()
            .flat_map(|w| {
                [
                    row("TAG", &w.tag),
                    row("LOCK", &w.lock),
                    row("G-STATUS", &w.status),
                    row("COPYSET", &w.copyset),
                ]
            })
            .chain([row("SCOREBOARD", &self.scores), row("MOVES", &self.moves)])
    }

    fn entry(&self, way: usize, at: usize) -> Option<(Tag, Registers)> {
        let way = &self.ways[way];
        let stored = way.tag.items()[at];
        let registers = Registers {
            lock: way.lock.items()[at],
            status: GlobalStatus::from_byte(way.status.items()[at])?,
            copyset: Copyset(way.copyset.items()[at]),
        };
        (stored != FREE).then_some((tag_of(stored), registers))
    }

    /// The entry of a block as `(lock word, status, copyset)`, for checkers and the control plane.
    pub fn inspect(&self, tag: Tag) -> Option<(u16, GlobalStatus, Copyset)> {
        let at = self.set(tag);
        let way = self
            .ways
            .iter()
            .position(|way| way.tag.items()[at] == stored(tag))?;
        let (_, registers) = self.entry(way, at)?;
        Some((registers.lock, registers.status, registers.copyset))
    }

    /// Everything that decides what it will do, for explorers of all states:
    /// not what it has counted.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        for way in 0..self.ways.len() {
            for at in 0..self.config.sets {
                if let Some((tag, registers)) = self.entry(way, at) {
                    into.write_usize(at + 1);
                    tag.hash(into);
                    into.write_u64(registers.to_word());
                }
            }
            into.write_usize(0);
        }
        for array in [self.scores.items(), self.moves.items()] {
            let rows = array.iter().enumerate().filter(|(_, row)| **row != 0);
            for (at, row) in rows {
                into.write_usize(at + 1);
                into.write_u64(*row);
            }
            into.write_usize(0);
        }
        (self.config.epoch, self.config.shadow, self.frozen).hash(into);
    }

    /// How many entries it owns.
    pub fn entries(&self) -> usize {
        self.ways
            .iter()
            .map(|way| way.tag.items().iter().filter(|&&tag| tag != FREE).count())
            .sum()
    }

    /// The tags in the sets from `from` on, with their sets, as many whole sets as `room` records
    /// hold and 512 at most, and the set to go on with (or how many sets there are:
    /// that was all).
    pub fn tags(&self, from: usize, room: usize) -> (Vec<Record>, usize) {
        let mut records = Vec::new();
        let end = self.config.sets.min(from.saturating_add(SETS_A_READ));
        for set in from..end {
            let before = records.len();
            let here = self.ways.iter().map(|way| way.tag.items()[set]);
            records.extend(here.filter(|&tag| tag != FREE).map(|tag| Record {
                tag: tag_of(tag),
                word: set as u64,
            }));
            // A set that alone is too large for a packet is cut: the rest of it is told another
            // time.
            if records.len() > room && before > 0 {
                records.truncate(before);
                return (records, set);
            }
            records.truncate(room);
        }
        (records, end)
    }

    /// Executes nothing any more: what its registers hold is what the rack had agreed on.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Whether it is frozen.
    pub fn frozen(&self) -> bool {
        self.frozen
    }

    fn grants(&self) -> impl Iterator<Item = Grant> {
        let requesters = usize::from(self.config.requesters);
        let scores = self.scores.items().iter().enumerate();
        scores.filter_map(move |(at, &score)| {
            let row = at / 2;
            let requester = RequesterId {
                node: (row / requesters) as NodeId,
                slot: (row % requesters) as u16,
            };
            let seq = score::is_held(&score).then_some((score >> 32) as u32)?;
            Some(Grant { requester, seq })
        })
    }

    /// The epoch, the entries of blocks of one home, and the events, of any block, that have been
    /// granted and not unlocked.
    pub fn entries_of(&self, home: HomeId) -> Vec<Record> {
        let mut records = alloc::vec![Record {
            tag: EPOCH,
            word: self.config.epoch.into(),
        }];
        for at in 0..self.config.sets {
            for way in 0..self.ways.len() {
                if let Some((tag, registers)) = self.entry(way, at)
                    && tag.home() == home
                {
                    let word = registers.to_word();
                    records.push(Record { tag, word });
                }
            }
        }
        records.extend(self.grants().map(Grant::to_record));
        records
    }

    /// Starts over in a new epoch: owns nothing, and remembers nothing of the last one.
    pub fn reset(&mut self, epoch: u32, shadow: Option<NodeId>) {
        let (counters, config) = (self.counters, self.config);
        let config = super::SwitchConfig {
            epoch,
            shadow,
            ..config
        };
        *self = SwitchProgram::new(config);
        self.counters = counters;
    }

    /// Whom to tell of migrations from now on.
    pub fn set_shadow(&mut self, shadow: Option<NodeId>) {
        self.config.shadow = shadow;
    }

    /// Its epoch.
    pub fn epoch(&self) -> u32 {
        self.config.epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_back_from_a_record() {
        let registers = Registers {
            lock: 0x8000,
            status: GlobalStatus::Modified,
            copyset: Copyset(0x8000_0001),
        };
        assert_eq!(Registers::from_word(registers.to_word()), Some(registers));
        assert_eq!(Registers::from_word(3), None);
    }

    #[test]
    fn a_grant_comes_back_from_a_record_and_no_entry_is_one() {
        let grant = Grant {
            requester: RequesterId { node: 31, slot: 63 },
            seq: u32::MAX,
        };
        assert_eq!(Grant::from_record(grant.to_record()), Some(grant));
        let word = grant.to_record().word;
        let tag = Tag(0x1000);
        assert_eq!(Grant::from_record(Record { tag, word }), None);
    }
}
