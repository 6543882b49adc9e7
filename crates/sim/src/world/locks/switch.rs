//! The directory of locks at a world's switch.

use rackmem_proto::gcp::Entry;
use rackmem_proto::switch::{LockConfig, LockProgram};
use rackmem_proto::wire::{Header, Kind, NodeId, Record, Tag};
use std::collections::BTreeMap;

/// The program, and what it served when the last epoch ended in which the rack went on: told again until it goes on once more.
pub struct SwitchLocks {
    pub program: LockProgram,
    before: BTreeMap<Tag, (u32, Entry)>,
}

impl SwitchLocks {
    pub fn new(epoch: u32) -> Self {
        SwitchLocks {
            program: LockProgram::new(LockConfig {
                epoch,
                ways: 2,
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

    /// What it served of a home's locks when the last epoch ended.
    pub fn entries_of(&self, home: NodeId) -> Vec<Record> {
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
