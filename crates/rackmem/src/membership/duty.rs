//! Whether this process may serve, told in time even while the store does not answer.

use super::Events;
use super::term::{self, Term};
use rackmem_fabric::Whole;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// The end of the lease, shared by the thread that renews it and the one that notices that it is
/// over.
pub(super) struct Duty {
    events: Arc<dyn Events>,
    term: Arc<Term>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// To when we may serve, ns; 0 for not at all.
    until: u64,
    /// What was told last.
    told: bool,
    /// Nothing comes any more.
    over: bool,
}

impl Duty {
    pub fn new(events: Arc<dyn Events>) -> Self {
        Duty {
            events,
            term: Arc::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The clock of the membership, ns.
    pub fn now(&self) -> u64 {
        term::now()
    }

    /// To when we may serve, for threads that cannot wait until they are told.
    pub fn term(&self) -> Arc<Term> {
        self.term.clone()
    }

    /// Sets to when we may serve, and tells if that changes anything.
    pub fn set(&self, until: u64) {
        let mut state = self.lock();
        state.until = until;
        self.term.set(until);
        self.tell(&mut state);
        self.changed.notify_all();
    }

    /// We may not serve any more, for ever.
    pub fn end(&self) {
        let mut state = self.lock();
        state.over = true;
        state.until = 0;
        self.term.set(0);
        self.tell(&mut state);
        self.changed.notify_all();
    }

    /// Whether it was told that we may serve.
    pub fn serves(&self) -> bool {
        self.lock().told
    }

    /// Tells when a lease ends, until [`Duty::end`].
    pub fn watch(&self) {
        let mut state = self.lock();
        while !state.over {
            self.tell(&mut state);
            state = if state.told {
                let left = Duration::from_nanos(state.until.saturating_sub(self.now()));
                let waited = self.changed.wait_timeout(state, left);
                waited.whole().0
            } else {
                let waited = self.changed.wait(state);
                waited.whole()
            };
        }
    }

    /// Under the lock, so that what is told last is what holds.
    fn tell(&self, state: &mut State) {
        let held = self.now() < state.until;
        if state.told != held {
            state.told = held;
            self.events.lease(held);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().whole()
    }
}
