//! What a writer does, phase by phase: an object and the word that leads to it are put in place,
//! and the one before is retired (BI §3.2, Fig. 4).
//!
//! | phase | what the host does |
//! |---|---|
//! | Refresh | drops the word's line: it is stored to as memory has it |
//! | Intend | enters the word's line and the object's lines as modified, without a stamp |
//! | WriteBack | writes the object's lines back, and waits for that |
//! | Clock | reads the clock, for the phase that follows |
//! | Link | stores the word, with its birth |
//! | Publish | writes the word's line back, and waits for that |
//! | Stamp(Modified) | stamps what it has entered |
//! | Retire | enters the old object as freed, without a stamp |
//! | Stamp(Freed) | stamps that |
//!
//! The paper stamps while it modifies. A writer that loses its processor between stamp and entry
//! would then have memory reused, or a modification forgotten, that others have not heard of.
//!
//! Of what is the program's own ([`Tracking::Own`]) nobody is told that it was modified. But a word
//! that leads to an object stays in a cache until it is dropped: so before that object is freed the
//! word is entered as modified, as it is when nothing is untold. In the paper each quiescence calls
//! the program's function, and the rule holds by itself (§3.5); here a quiescence on demand does.
//!
//! Lines are written back whole. So one domain stores to a line at a time,
//! under a lock of the rack, and what others have stored beside the word since is in its cache
//! first: otherwise the write-back would undo it.

use super::clock::Tick;
use super::defect::Defect;
use super::ring::Queue;

/// Who sees to it that modifications of an object are dropped from caches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tracking {
    /// Each quiescence does.
    #[default]
    Tracked,
    /// The program does, by quiescing on demand.
    Own,
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Phase {
    Refresh,
    Intend,
    WriteBack,
    Clock,
    Link,
    Publish,
    Retire,
    Stamp(Queue),
}

use Phase::{Clock, Intend, Link, Publish, Refresh, Retire, Stamp, WriteBack};

const ASSIGN: &[Phase] = &[
    Refresh,
    Intend,
    WriteBack,
    Clock,
    Link,
    Publish,
    Clock,
    Stamp(Queue::Modified),
];
const TELL: &[Phase] = &[Intend, Clock, Stamp(Queue::Modified)];
const FREE: &[Phase] = &[Retire, Clock, Stamp(Queue::Freed)];
/// Both.
const FREE_UNTOLD: &[Phase] = &[
    Intend,
    Clock,
    Stamp(Queue::Modified),
    Retire,
    Clock,
    Stamp(Queue::Freed),
];
/// What nobody is told of.
const OWN: &[Phase] = &[Refresh, WriteBack, Clock, Link, Publish];
const NO_INTENT: &[Phase] = &[
    Refresh,
    WriteBack,
    Clock,
    Link,
    Publish,
    Intend,
    Clock,
    Stamp(Queue::Modified),
];
const LINKED_FIRST: &[Phase] = &[
    Refresh,
    Intend,
    Clock,
    Link,
    Publish,
    WriteBack,
    Clock,
    Stamp(Queue::Modified),
];
const STAMPED_EARLY: &[Phase] = &[
    Refresh,
    Clock,
    Intend,
    WriteBack,
    Link,
    Publish,
    Stamp(Queue::Modified),
];
const FREED_EARLY: &[Phase] = &[Retire, Stamp(Queue::Freed)];

/// A change under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Change {
    parts: [&'static [Phase]; 2],
    at: u8,
    clock: Tick,
}

impl Change {
    /// A word is to lead to an object; with `retire`, the object before is freed.
    pub fn assign(tracking: Tracking, retire: bool, broken: Option<Defect>) -> Self {
        let (assign, free) = match (tracking, broken) {
            (Tracking::Own, Some(Defect::FreeUntold)) => (OWN, FREE),
            (Tracking::Own, _) => (OWN, FREE_UNTOLD),
            (_, Some(Defect::KeepOldLine)) => (&ASSIGN[1..], FREE),
            (_, Some(Defect::NoIntent)) => (NO_INTENT, FREE),
            (_, Some(Defect::AssignBeforeWriteBack)) => (LINKED_FIRST, FREE),
            (_, Some(Defect::StampBeforeVisible)) => (STAMPED_EARLY, FREED_EARLY),
            _ => (ASSIGN, FREE),
        };
        Change::of([assign, if retire { free } else { &[] }])
    }

    /// An object that no word leads to is freed.
    pub fn free() -> Self {
        Change::of([&[], FREE])
    }

    /// A word has led elsewhere for a while, and nobody was told. Before the object is freed that
    /// it led to.
    pub fn tell() -> Self {
        Change::of([&[], TELL])
    }

    fn of(parts: [&'static [Phase]; 2]) -> Self {
        Change {
            parts,
            at: 0,
            clock: Tick(0),
        }
    }

    /// What is to be done next; none when all is done.
    pub fn phase(&self) -> Option<Phase> {
        let [assign, free] = self.parts;
        let at = usize::from(self.at);
        let free = at.checked_sub(assign.len()).and_then(|at| free.get(at));
        assign.get(at).or(free).copied()
    }

    /// How many phases are left.
    pub fn left(&self) -> usize {
        self.parts.map(<[Phase]>::len).iter().sum::<usize>() - usize::from(self.at)
    }

    /// What the clock showed when it was read last.
    pub fn clock(&self) -> Tick {
        self.clock
    }

    /// That has been done. `now`: the clock, read for the phase if it is [`Phase::Clock`].
    pub fn done(&mut self, now: Tick) {
        if self.phase() == Some(Clock) {
            self.clock = now;
        }
        self.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn phases(mut change: Change) -> Vec<(Phase, u64)> {
        let mut all = Vec::new();
        let mut now = 10;
        while let Some(phase) = change.phase() {
            now += 1;
            change.done(Tick(now));
            all.push((phase, change.clock().0));
        }
        all
    }

    /// What is visible is stamped with a time that is read afterwards.
    #[test]
    fn the_clock_is_read_between_what_is_visible_and_its_stamp() {
        for (change, entered, stamped) in [
            (ASSIGN, Publish, Stamp(Queue::Modified)),
            (FREE, Retire, Stamp(Queue::Freed)),
            (FREE_UNTOLD, Intend, Stamp(Queue::Modified)),
            (FREE_UNTOLD, Retire, Stamp(Queue::Freed)),
            (ASSIGN, WriteBack, Link),
        ] {
            let at = |phase| change.iter().position(|p| *p == phase).unwrap();
            let between = &change[at(entered)..at(stamped)];
            assert!(between.contains(&Clock), "{entered:?} {stamped:?}");
        }
    }

    #[test]
    fn each_part_has_its_own_stamp() {
        let all = phases(Change::assign(Tracking::Tracked, true, None));
        let stamp = |queue| all.iter().find(|row| row.0 == Stamp(queue)).unwrap().1;
        assert_eq!((stamp(Queue::Modified), stamp(Queue::Freed)), (17, 20));
        assert_eq!(phases(Change::free()).len(), 3);
        let own = phases(Change::assign(Tracking::Own, false, None));
        assert!(own.iter().all(|row| row.0 != Intend));
        // Whoever sees that it is freed sees that the word was modified.
        let at = |phase| FREE_UNTOLD.iter().position(|p| *p == phase);
        assert!(at(Stamp(Queue::Modified)) < at(Retire));
        assert_eq!([TELL, FREE].concat(), FREE_UNTOLD);
    }
}
