//! Requesters follow the rack into a new epoch: what they have begun in the old one is cut off,
//! whoever has them.

use super::slots::Slots;
use crate::Scenario;
use crate::sync::{AtomicU32, Ordering::SeqCst, yield_now};
use loom::thread;
use std::sync::Arc;

pub const ALL: &[Scenario] = &[("an epoch ends while a requester begins", an_epoch_ends)];

/// A requester, as far as epochs go.
struct Probe {
    epoch: u32,
    /// The epoch of its event, which nobody has cut off.
    open: Option<u32>,
}

impl Probe {
    fn catch_up(&mut self, epoch: &AtomicU32) {
        let now = epoch.load(SeqCst);
        if self.epoch != now {
            self.epoch = now;
            self.open = None;
        }
    }
}

fn an_epoch_ends() {
    let slots = Arc::new(Slots::<Probe>::new(2));
    let epoch = Arc::new(AtomicU32::new(1));
    let (there, standing) = (slots.clone(), epoch.clone());
    let requester = thread::spawn(move || {
        let (_, mut held) = there.take(1);
        let fresh = Probe {
            epoch: standing.load(SeqCst),
            open: None,
        };
        let probe = held.get_or_insert(fresh);
        probe.catch_up(&standing);
        probe.open = Some(probe.epoch);
    });
    epoch.store(2, SeqCst);
    slots.visit(|probe| probe.catch_up(&epoch), |_| false, yield_now);
    requester.join().expect("it begins");
    slots.look(
        || true,
        |_, probe| assert_ne!(probe.open, Some(1), "an event of the old epoch goes on"),
    );
}
