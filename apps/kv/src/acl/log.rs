//! What was refused lately.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of an object that are kept.
const MAX_OBJECT: usize = 256;
/// The same refusal within this time counts as one.
const SAME: Duration = Duration::from_secs(60);

/// A refusal.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub count: u64,
    /// `command`, `key`, `channel` or `auth`.
    pub reason: &'static str,
    /// `toplevel`, `multi` or `lua`.
    pub context: &'static str,
    /// What the user may not.
    pub object: Vec<u8>,
    pub user: Vec<u8>,
    pub at: Instant,
    /// The client's line of CLIENT LIST at that time.
    pub client: String,
}

/// The last refusals, the newest first.
#[derive(Debug, Default)]
pub(super) struct Log(VecDeque<Entry>);

impl Log {
    /// Of the refusals `most` are kept.
    pub fn add(&mut self, mut entry: Entry, most: usize) {
        entry.object.truncate(MAX_OBJECT);
        let same = |had: &Entry| {
            had.reason == entry.reason
                && had.context == entry.context
                && had.object == entry.object
                && had.user == entry.user
                && entry.at.duration_since(had.at) <= SAME
        };
        if let Some(at) = self.0.iter().position(same) {
            entry.count += self.0[at].count;
            self.0.remove(at);
        }
        self.0.push_front(entry);
        self.0.truncate(most);
    }

    pub fn newest(&self, count: usize) -> Vec<Entry> {
        self.0.iter().take(count).cloned().collect()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 128;

    #[test]
    fn what_is_refused_again_counts_and_the_log_is_bounded() {
        let entry = |object: String| Entry {
            count: 1,
            reason: "key",
            context: "toplevel",
            object: object.into_bytes(),
            user: b"bob".to_vec(),
            at: Instant::now(),
            client: String::new(),
        };
        let mut log = Log::default();
        for i in 0..2 * MOST {
            log.add(entry(i.to_string()), MOST);
        }
        assert_eq!(log.newest(usize::MAX).len(), MOST);
        log.add(entry((2 * MOST - 5).to_string()), MOST);
        let newest = log.newest(usize::MAX);
        assert_eq!((newest.len(), newest[0].count), (MOST, 2));
    }
}
