//! The directory of locks at a switch, and its report when an epoch begins.

use super::{LockConfig, LockCounters, LockProgram};
use crate::Outputs;
use crate::engine::{LOCKS, numbered};
use crate::gcp::Entry;
use crate::wire::{Header, HomeId, Record, Tag};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// See the module. Locks that find no room at it are served by their homes.
#[derive(Clone)]
pub struct SwitchLocks {
    /// Nothing where the data plane serves locks itself.
    program: Option<LockProgram>,
    epoch: u32,
    /// What it served when the last epoch ended in which the rack went on, and which that was:
    /// reported again until it resumes.
    before: BTreeMap<Tag, (u32, Entry)>,
}

impl SwitchLocks {
    /// A switch that serves no lock. `elsewhere`: its data plane will.
    pub fn new(config: LockConfig, elsewhere: bool) -> Self {
        SwitchLocks {
            program: (!elsewhere).then(|| LockProgram::new(config)),
            epoch: config.epoch,
            before: BTreeMap::new(),
        }
    }

    /// Takes a packet about a lock.
    pub fn handle(&mut self, header: &Header) -> Outputs {
        let program = self.program.as_mut();
        program.map_or_else(Outputs::default, |program| program.handle(header))
    }

    /// What it has done, unless the data plane has.
    pub fn counters(&self) -> Option<LockCounters> {
        self.program.as_ref().map(LockProgram::counters)
    }

    /// The epoch that it serves.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The entry of a lock and its epoch, if it serves it here.
    pub fn entry(&self, tag: Tag) -> Option<(u32, Entry)> {
        let entry = self.program.as_ref()?.entry(tag);
        entry.map(|entry| (self.epoch, entry))
    }

    /// The rack is in a new epoch. Homes place their locks anew when they have made them anew,
    /// some of them perhaps before this switch has heard that all are ready. `next`: has the data
    /// plane serve that epoch, and says what it has served.
    pub fn enter(&mut self, epoch: u32, next: impl FnOnce(u32) -> Vec<(Tag, Entry)>) {
        if self.epoch == epoch {
            return;
        }
        let had = match &mut self.program {
            Some(program) => {
                let had = program.entries().collect();
                program.reset(epoch);
                had
            }
            None => next(epoch),
        };
        let served = core::mem::replace(&mut self.epoch, epoch);
        let had = had.into_iter().map(|(tag, had)| (tag, (served, had)));
        self.before.extend(had);
    }

    /// What it served of a lock when the last epoch ended, and in which.
    pub fn before(&self, tag: Tag) -> Option<(u32, Entry)> {
        self.before.get(&tag).copied()
    }

    /// What it served of a home's locks when the last epoch ended.
    pub fn entries_of(&self, home: HomeId) -> Vec<Record> {
        let entries = self.before.iter().filter(|(tag, _)| tag.home() == home);
        entries
            .map(|(tag, (epoch, had))| numbered(LOCKS, had.to_record(*tag, *epoch)))
            .collect()
    }

    /// The rack goes on.
    pub fn done(&mut self) {
        self.before.clear();
    }
}

impl Hash for SwitchLocks {
    /// Everything that decides what it will do.
    fn hash<H: Hasher>(&self, into: &mut H) {
        (self.epoch, &self.before).hash(into);
        let entries = self.program.iter().flat_map(LockProgram::entries);
        entries.for_each(|entry| entry.hash(into));
    }
}
