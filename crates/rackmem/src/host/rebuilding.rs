//! A node's part when the rack makes its directory anew: the thread that drives
//! `rackmem_proto::engine::Recovery`.
//!
//! [`Rebuilding::run`] goes through the steps; packets come in the agents' thread.

use crate::host::agents::Agents;
use crate::host::here::{Block, Here};
use crate::ports::requester::Requesters;
use rackmem_fabric::Whole;
use rackmem_fabric::{Body, Net, Nobody};
use rackmem_proto::engine::{Change, Recovery};
use rackmem_proto::membership::View;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often to look whether the view has changed. What is not acknowledged is sent again by
/// [`Rebuilding::tick`].
const LOOK: Duration = Duration::from_millis(5);

/// What rebuilds have come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RebuildMetrics {
    /// Rebuilds that were begun.
    pub begun: u64,
    /// Rebuilds after which the rack went on.
    pub done: u64,
    /// How long the last one took, from the view that called for it.
    pub last: Duration,
    /// Blocks that this node has sent home because home might not have had them, since it started.
    pub rescued: u64,
    /// Blocks of this node's memory that are lost, as of the last one.
    pub lost: u64,
    /// Locks whose home this node is and whose data died with a node, whole or as it was last,
    /// as of the last one.
    pub locks_lost: u64,
}

struct State {
    recovery: Recovery<Block>,
    /// The view in which this home's entries were made last.
    settled: View,
    metrics: RebuildMetrics,
}

/// See the module.
pub(crate) struct Rebuilding {
    state: Mutex<State>,
    changed: Condvar,
}

impl Rebuilding {
    /// Blocks have so many bytes, and a packet room for `fit` records.
    pub fn new(block: u32, fit: usize, view: View) -> Self {
        Rebuilding {
            state: Mutex::new(State {
                recovery: Recovery::new(block, fit),
                settled: view,
                metrics: RebuildMetrics::default(),
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().whole()
    }

    pub fn metrics(&self) -> RebuildMetrics {
        self.lock().metrics
    }

    /// Members have come or gone politely: the entries stay as they are,
    /// and from now on who has come can die.
    pub fn note(&self, view: &View) {
        let mut state = self.lock();
        if state.settled.epoch == view.epoch {
            state.settled = *view;
        }
        state.recovery.keep(view.live);
    }

    /// Goes with the rack into the epoch of `view`. Returns when the rack goes on, or, with false,
    /// when `overtaken` says that there is another view already.
    pub fn run(
        &self,
        view: &View,
        agents: &Agents,
        requesters: &Requesters,
        net: &dyn Net,
        overtaken: impl Fn() -> bool,
    ) -> bool {
        let began = Instant::now();
        self.lock().metrics.begun += 1;
        agents.enter(view, net);
        let cut = requesters.cut_off();
        let mut reply = Nobody;
        let mut here = Here::new(agents, net, Body::None, &mut reply);
        let mut state = self.lock();
        let change = Change::between(&state.settled, view);
        if let Some(guest) = &agents.guest {
            guest.gone(change.gone);
        }
        state.recovery.begin(change, cut, &mut here);
        loop {
            state.proceed(view, &mut here);
            // Looked at first: a thread that has slept through the end of its epoch finds the next
            // one behind it.
            if state.recovery.in_service() {
                break;
            }
            if overtaken() {
                return false;
            }
            let wait = self.changed.wait_timeout(state, LOOK);
            state = wait.whole().0;
        }
        state.metrics.done += 1;
        state.metrics.last = began.elapsed();
        true
    }

    /// The epoch of this node, if nobody waits for its part of that any more.
    pub fn settled(&self) -> Option<u32> {
        let state = self.lock();
        state.recovery.all_told().then_some(state.settled.epoch)
    }

    /// Late members may still wait for what this one has told.
    pub fn tick(&self, agents: &Agents, net: &dyn Net) {
        // Whoever holds the state is at work on it and sends itself.
        if let Ok(mut state) = self.state.try_lock() {
            let mut reply = Nobody;
            let mut here = Here::new(agents, net, Body::None, &mut reply);
            state.recovery.retell(&mut here);
        }
    }

    /// A packet of a rebuild; how many blocks others' homes now have.
    pub fn packet(&self, take: impl FnOnce(&mut Recovery<Block>) -> u64) {
        let mut state = self.lock();
        state.metrics.rescued += take(&mut state.recovery);
        drop(state);
        self.changed.notify_all();
    }
}

impl State {
    fn proceed(&mut self, view: &View, here: &mut Here<'_>) {
        self.recovery.proceed(here);
        if let Some(blocks) = here.settled.blocks.take() {
            self.settled = *view;
            self.metrics.lost = blocks.lost;
            self.metrics.locks_lost = here.settled.locks_lost;
        }
    }
}
