//! What a worker does now and then beside serving connections. All of it may wait for the rack.

use std::time::{Duration, Instant};

use super::latency;
use super::shared::{Shared, Stats};
use crate::memory::Memory;
use crate::store::Sweep;

/// Buckets swept between two looks at the time.
const SWEEP: usize = 64;
/// How often memory for buckets is given back.
const SHED: Duration = Duration::from_secs(1);
/// How often it is looked whether others can find out where commands may be sent.
const ANNOUNCED: Duration = Duration::from_secs(1);
/// Time for sweeping at once.
const SWEEP_TIME: Duration = Duration::from_millis(1);

/// See the module.
pub(crate) struct Chores {
    /// Those of a whole server are its first worker's.
    first: bool,
    sweep: Sweep,
    shed: Instant,
    announced: Instant,
}

impl Chores {
    pub fn new(first: bool) -> Self {
        Self {
            first,
            sweep: Sweep::default(),
            shed: Instant::now(),
            announced: Instant::now(),
        }
    }

    /// Whether they are to be done again soon.
    pub fn go_on(&self) -> bool {
        self.sweep.is_under_way()
    }

    /// Does them.
    pub fn run<M: Memory>(&mut self, shared: &Shared<M>, stats: &Stats) {
        if !self.first {
            return shared.store.catch_up();
        }
        let control = &shared.control;
        // Users that cannot be read now stay as they were, and are asked for again.
        if let Ok(true) = control.users.refresh(&shared.store) {
            shared.end_strangers();
        }
        // The same: commands that add something say so if the rack cannot be asked.
        let _ = control.refresh_memory(&shared.store);
        self.announce(shared);
        control.rates.look([
            shared.total(|stats| &stats.commands),
            shared.total(|stats| &stats.input),
            shared.total(|stats| &stats.output),
        ]);
        let began = Instant::now();
        self.sweep(shared, stats);
        let threshold = control.settings.latency_threshold();
        let took = began.elapsed();
        control
            .latency
            .note(latency::Event::ExpireCycle, took, threshold);
    }

    /// Says where commands may be sent, also while there is something to clean all the time.
    /// Until it is said commands of others run where they are.
    fn announce<M: Memory>(&mut self, shared: &Shared<M>) {
        if let Some(shipping) = shared.shipping.as_ref()
            && self.announced.elapsed() >= ANNOUNCED
        {
            self.announced = Instant::now();
            let _ = shipping.announce(&shared.store);
        }
    }

    /// Cleans buckets for a while, at most all of them once.
    fn sweep<M: Memory>(&mut self, shared: &Shared<M>, stats: &Stats) {
        let (start, store) = (Instant::now(), &shared.store);
        // A look at a bucket takes nanoseconds, or majority round trips where it has copies.
        let mut few = 1;
        for _ in 0..store.buckets().div_ceil(SWEEP) + SWEEP.ilog2() as usize {
            // Memory trouble shows in the commands; the sweep just tries again.
            let Ok(swept) = store.sweep(&mut self.sweep, few) else {
                return;
            };
            few = SWEEP.min(2 * few);
            Stats::add(&stats.swept, swept.cleaned as u64);
            if swept.looked == 0 && self.shed.elapsed() >= SHED {
                self.shed = Instant::now();
                let _ = store.shed();
            }
            if swept.looked == 0 || start.elapsed() >= SWEEP_TIME {
                return;
            }
        }
    }
}
