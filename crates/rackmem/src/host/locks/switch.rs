//! The directory of locks at a switch: beside the switch program if that is in this process, in the
//! kernel if that is there.

use crate::data_plane::DataPlane;
use rackmem_proto::Outputs;
use rackmem_proto::engine::{LOCKS, numbered};
use rackmem_proto::gcp::Entry;
use rackmem_proto::switch::{LockConfig, LockCounters, LockProgram};
use rackmem_proto::wire::{Header, HomeId, Record, Tag};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

struct State {
    /// Nothing where the data plane serves locks itself.
    program: Option<LockProgram>,
    epoch: u32,
    /// What it served when the last epoch ended in which the rack went on, and which that was:
    /// told again until it goes on once more.
    before: HashMap<Tag, (u32, Entry)>,
}

/// See the module. Locks that find no room at it are served by their homes.
pub(crate) struct SwitchLocks {
    state: Mutex<State>,
    here: bool,
}

impl SwitchLocks {
    /// `elsewhere`: the data plane serves them.
    pub fn new(epoch: u32, elsewhere: bool) -> Self {
        let config = LockConfig {
            epoch,
            ..LockConfig::default()
        };
        SwitchLocks {
            state: Mutex::new(State {
                program: (!elsewhere).then(|| LockProgram::new(config)),
                epoch,
                before: HashMap::new(),
            }),
            here: !elsewhere,
        }
    }

    /// Whether packets about locks are for this.
    pub fn are_here(&self) -> bool {
        self.here
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn handle(&self, header: &Header) -> Outputs {
        let mut state = self.state();
        let program = state.program.as_mut();
        program.map_or_else(Outputs::default, |program| program.handle(header))
    }

    /// What it has done, unless the data plane has.
    pub fn counters(&self) -> Option<LockCounters> {
        self.state().program.as_ref().map(LockProgram::counters)
    }

    /// The rack is in a new epoch. Homes place their locks anew when they have made them anew,
    /// some of them perhaps before this switch has heard that all are ready.
    pub fn enter(&self, epoch: u32, plane: &mut dyn DataPlane) {
        let mut state = self.state();
        if state.epoch == epoch {
            return;
        }
        let had = match &mut state.program {
            Some(program) => {
                let had = program.entries().collect();
                program.reset(epoch);
                had
            }
            None => plane.next_locks(epoch),
        };
        let served = std::mem::replace(&mut state.epoch, epoch);
        let had = had.into_iter().map(|(tag, had)| (tag, (served, had)));
        state.before.extend(had);
    }

    /// What it served of a home's locks when the last epoch ended.
    pub fn entries_of(&self, home: HomeId) -> Vec<Record> {
        let state = self.state();
        let entries = state.before.iter().filter(|(tag, _)| tag.home() == home);
        entries
            .map(|(tag, (epoch, had))| numbered(LOCKS, had.to_record(*tag, *epoch)))
            .collect()
    }

    /// The rack goes on.
    pub fn done(&self) {
        self.state().before.clear();
    }
}
