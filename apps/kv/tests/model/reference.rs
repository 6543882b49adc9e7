//! What a store should be: a map.

use std::collections::BTreeMap;

/// A value, and when it expires (0: never).
pub type Entry = (Vec<u8>, u64);

/// What the store should be.
#[derive(Default)]
pub struct Model {
    /// By database and key.
    pub entries: BTreeMap<(u8, Vec<u8>), Entry>,
    /// What time it is.
    pub now: u64,
}

impl Model {
    pub fn get(&self, db: u8, key: &[u8]) -> Option<&Entry> {
        self.entries
            .get(&(db, key.to_vec()))
            .filter(|(_, expiry)| *expiry == 0 || *expiry > self.now)
    }

    pub fn put(&mut self, db: u8, key: &[u8], value: Vec<u8>, expiry: u64) {
        self.entries.insert((db, key.to_vec()), (value, expiry));
    }

    pub fn remove(&mut self, db: u8, key: &[u8]) -> bool {
        let live = self.get(db, key).is_some();
        self.entries.remove(&(db, key.to_vec()));
        live
    }

    pub fn purge(&mut self) {
        let now = self.now;
        self.entries
            .retain(|_, (_, expiry)| *expiry == 0 || *expiry > now);
    }
}
