//! The directory of locks at a switch that is a process: beside the switch program, in the process even where that is in the
//! kernel.

use super::epoch::switch_record;
use rackmem_proto::Outputs;
use rackmem_proto::gcp::Entry;
use rackmem_proto::switch::{LockConfig, LockCounters, LockProgram};
use rackmem_proto::wire::{Header, NodeId, Record, Tag};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks that a switch serves at most, in ways of so many sets; those that find no room are served by their homes.
const WAYS: u8 = 4;
const SETS: usize = 4096;

struct State {
    program: LockProgram,
    epoch: u32,
    /// What it served when the last epoch ended in which the rack went on, and which that was: told again until it goes on
    /// once more.
    before: HashMap<Tag, (u32, Entry)>,
}

/// See the module.
pub(crate) struct SwitchLocks(Mutex<State>);

impl SwitchLocks {
    pub fn new(epoch: u32) -> Self {
        let config = LockConfig {
            epoch,
            ways: WAYS,
            sets: SETS,
        };
        SwitchLocks(Mutex::new(State {
            program: LockProgram::new(config),
            epoch,
            before: HashMap::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn handle(&self, header: &Header) -> Outputs {
        self.state().program.handle(header)
    }

    pub fn counters(&self) -> LockCounters {
        self.state().program.counters()
    }

    /// The rack is in a new epoch. Homes place their locks anew when they have made them anew, some of them perhaps before
    /// this switch has heard that all are ready.
    pub fn enter(&self, epoch: u32) {
        let mut state = self.state();
        if state.epoch != epoch {
            let State {
                program,
                before,
                epoch: served,
            } = &mut *state;
            before.extend(program.entries().map(|(tag, had)| (tag, (*served, had))));
            program.reset(epoch);
            *served = epoch;
        }
    }

    /// What it served of a home's locks when the last epoch ended.
    pub fn entries_of(&self, home: NodeId) -> Vec<Record> {
        let state = self.state();
        let entries = state.before.iter().filter(|(tag, _)| tag.home() == home);
        entries
            .map(|(tag, (epoch, had))| switch_record(*tag, *epoch, *had))
            .collect()
    }

    /// The rack goes on.
    pub fn done(&self) {
        self.state().before.clear();
    }
}
