//! The directory of locks at a switch.

use rackmem_proto::gcp::Entry;
use rackmem_proto::switch::{LockConfig, LockProgram};
use rackmem_proto::wire::{Header, HomeId, Kind, Record, Tag};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

impl Hash for SwitchLocks {
    fn hash<H: Hasher>(&self, into: &mut H) {
        (self.program.epoch(), &self.before).hash(into);
        self.program.entries().for_each(|entry| entry.hash(into));
    }
}

/// The program, and what it served when the last epoch ended in which the rack went on: told again
/// until it goes on once more.
#[derive(Clone)]
pub struct SwitchLocks {
    /// The shipped one.
    pub program: LockProgram,
    before: BTreeMap<Tag, (u32, Entry)>,
}

impl SwitchLocks {
    /// One with room for so many locks.
    pub fn new(epoch: u32, ways: u8) -> Self {
        SwitchLocks {
            program: LockProgram::new(LockConfig {
                epoch,
                ways,
                sets: 1,
            }),
            before: BTreeMap::new(),
        }
    }

    /// Whether a packet is about a lock.
    pub fn takes(&self, header: &Header) -> bool {
        (Kind::Acquire..=Kind::YieldAck).contains(&header.kind)
    }

    /// The rack is in a new epoch.
    pub fn enter(&mut self, epoch: u32) {
        if self.program.epoch() == epoch {
            return;
        }
        let served = self.program.epoch();
        let had = self.program.entries();
        self.before
            .extend(had.map(|(tag, had)| (tag, (served, had))));
        self.program.reset(epoch);
    }

    /// The entry of a lock and its epoch, if it serves it.
    pub fn serves(&self, tag: Tag) -> Option<(u32, Entry)> {
        let entry = self.program.entry(tag);
        entry.map(|entry| (self.program.epoch(), entry))
    }

    /// What it served of a lock when the last epoch ended, and in which.
    pub fn before(&self, tag: Tag) -> Option<(u32, Entry)> {
        self.before.get(&tag).copied()
    }

    /// What it served of a home's locks when the last epoch ended.
    pub fn entries_of(&self, home: HomeId) -> Vec<Record> {
        let entries = self.before.iter().filter(|(tag, _)| tag.home() == home);
        entries
            .map(|(tag, (epoch, had))| had.to_record(*tag, *epoch))
            .collect()
    }

    /// The rack goes on.
    pub fn done(&mut self) {
        self.before.clear();
    }
}
