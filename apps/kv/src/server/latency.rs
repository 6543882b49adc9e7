//! What took long at this node, for LATENCY: samples of events that took at least
//! `latency-monitor-threshold`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Samples of an event that are kept: the last ones.
const SAMPLES: usize = 160;

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Command,
    /// One that never takes long by what it has to do.
    FastCommand,
    /// Keys whose time is over are removed in the background.
    ExpireCycle,
}

/// By their names in Redis.
pub(crate) const EVENTS: [(&str, Event); 3] = [
    ("command", Event::Command),
    ("fast-command", Event::FastCommand),
    ("expire-cycle", Event::ExpireCycle),
];

/// The longest of an event in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Unix time in seconds.
    pub at: u64,
    pub millis: u64,
}

/// The samples of an event.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The oldest first.
    pub samples: VecDeque<Sample>,
    /// The longest since they were forgotten last, in ms.
    pub most: u64,
}

impl History {
    fn add(&mut self, at: u64, millis: u64) {
        self.most = self.most.max(millis);
        if let Some(last) = self.samples.back_mut()
            && last.at == at
        {
            last.millis = last.millis.max(millis);
            return;
        }
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { at, millis });
    }
}

/// The samples of all events.
#[derive(Debug, Default)]
pub(crate) struct Latency(Mutex<[History; EVENTS.len()]>);

impl Latency {
    fn histories(&self) -> MutexGuard<'_, [History; EVENTS.len()]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An event took so long, which is kept if that is `threshold` ms at least and not 0.
    #[inline]
    pub fn note(&self, event: Event, took: Duration, threshold: u64) {
        if threshold == 0 {
            return;
        }
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if millis >= threshold {
            self.add(event, millis);
        }
    }

    #[cold]
    fn add(&self, event: Event, millis: u64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = now.unwrap_or_default().as_secs();
        self.histories()[event as usize].add(at, millis);
    }

    /// The events that have samples, with these.
    pub fn all(&self) -> Vec<(&'static str, History)> {
        let all = EVENTS.iter().map(|(name, _)| *name);
        let mut all: Vec<_> = all.zip(self.histories().iter().cloned()).collect();
        all.retain(|(_, history)| !history.samples.is_empty());
        all
    }

    /// Forgets the samples of those events whose names are wanted; of how many there were some.
    pub fn forget(&self, wanted: impl Fn(&str) -> bool) -> usize {
        let mut histories = self.histories();
        let named = EVENTS.iter().zip(histories.iter_mut());
        named
            .filter(|((name, _), history)| !history.samples.is_empty() && wanted(name))
            .map(|(_, history)| *history = History::default())
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_a_second_is_kept_and_no_more_than_there_is_room_for() {
        let mut history = History::default();
        for millis in [5, 9, 7] {
            history.add(1, millis);
        }
        assert_eq!(history.samples, [Sample { at: 1, millis: 9 }]);
        for at in 2..500 {
            history.add(at, 3);
        }
        assert_eq!(history.samples.len(), SAMPLES);
        assert_eq!(history.samples.back().map(|sample| sample.at), Some(499));
        assert_eq!(history.most, 9);
    }

    #[test]
    fn what_is_short_is_no_event() {
        let latency = Latency::default();
        let took = Duration::from_millis(20);
        latency.note(Event::Command, took, 0);
        latency.note(Event::Command, took, 21);
        assert!(latency.all().is_empty());
        latency.note(Event::ExpireCycle, took, 20);
        latency.note(Event::FastCommand, took, 1);
        let names: Vec<_> = latency.all().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["fast-command", "expire-cycle"]);
        assert_eq!(latency.forget(|name| name == "expire-cycle"), 1);
        assert_eq!(latency.forget(|_| true), 1);
        assert_eq!(latency.forget(|_| true), 0);
    }
}
