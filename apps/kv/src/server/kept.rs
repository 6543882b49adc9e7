//! Which of a node's clients keep copies of which keys, and how many copies that are.

use std::collections::HashMap;
use std::sync::Arc;

use super::mail::Name;
use super::tracking::Tracker;

/// A key and those who keep it.
pub(super) type Entry = (Name, Vec<Arc<Tracker>>);

/// See the module.
#[derive(Default)]
pub(super) struct Kept {
    keys: HashMap<Name, Vec<Arc<Tracker>>>,
    copies: usize,
}

impl Kept {
    /// Keys of which there is a copy.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Copies, one a key and client.
    pub fn copies(&self) -> usize {
        self.copies
    }

    pub fn has(&self, name: &Name) -> bool {
        self.keys.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.keys.keys()
    }

    pub fn add(&mut self, name: Name, tracker: &Arc<Tracker>) {
        let trackers = self.keys.entry(name).or_default();
        if !trackers.iter().any(|other| Arc::ptr_eq(other, tracker)) {
            trackers.push(tracker.clone());
            self.copies += 1;
        }
    }

    /// Nobody keeps this key any more. Who did.
    pub fn take(&mut self, name: &Name) -> Vec<Arc<Tracker>> {
        let trackers = self.keys.remove(name).unwrap_or_default();
        self.copies -= trackers.len();
        trackers
    }

    /// As many keys as there are above `limit`, at most `most`, of which nobody keeps a copy any
    /// more.
    pub fn cut(&mut self, limit: usize, most: usize) -> Vec<Entry> {
        let excess = self.keys.len().saturating_sub(limit).min(most);
        let mut cut = Vec::with_capacity(excess);
        // Without anything too much the keys are not even looked at.
        if excess != 0 {
            cut.extend(self.keys.extract_if(|_, _| true).take(excess));
        }
        self.copies -= cut.iter().map(|(_, who)| who.len()).sum::<usize>();
        cut
    }

    /// Nobody keeps anything any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// A client keeps nothing any more.
    pub fn forget(&mut self, tracker: &Arc<Tracker>) {
        let Self { keys, copies } = self;
        keys.retain(|_, trackers| {
            let before = trackers.len();
            trackers.retain(|other| !Arc::ptr_eq(other, tracker));
            *copies -= before - trackers.len();
            !trackers.is_empty()
        });
    }

    /// What a client keeps is kept by the same client with other settings.
    pub fn hand_over(&mut self, from: &Arc<Tracker>, to: &Arc<Tracker>) {
        let all = self.keys.values_mut().flatten();
        all.filter(|tracker| Arc::ptr_eq(tracker, from))
            .for_each(|tracker| *tracker = to.clone());
    }
}
