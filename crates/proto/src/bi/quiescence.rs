//! What a domain does at a tick (BI §3.5), act by act.
//!
//! | act | what the host does |
//! |---|---|
//! | Look | has [`Quiescer::look`] read all rings as they stand |
//! | Drop(Modified) | drops the lines that were modified, and waits for that |
//! | Tell(Modified) | says in its row: nothing modified before the beginning is stale here |
//! | Await | waits for the sections that are open now |
//! | Drop(Freed), Tell(Freed) | the same for what was freed |
//!
//! The beginning is a clock read before the look: what a clock shows afterwards says nothing of
//! what was there to be seen. Stale words go first, and freed objects when no section has one of
//! them. The paper's Fig. 4 drops them the other way round: between the two a thread of the same
//! domain reads the stale word, and has the freed object in the cache again.

use super::MAX_DOMAINS;
use super::board::{Board, Presence};
use super::clock::Tick;
use super::defect::Defect;
use super::ring::{Extent, Queue, RingReader};
use alloc::vec::Vec;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Act {
    Look,
    Drop(Queue),
    Tell(Queue),
    Await,
}

use Act::{Await, Drop, Look, Tell};
use Queue::{Freed, Modified};

const ORDER: &[Act] = &[
    Look,
    Drop(Modified),
    Tell(Modified),
    Await,
    Drop(Freed),
    Tell(Freed),
];
const FREED_FIRST: &[Act] = &[
    Look,
    Await,
    Drop(Freed),
    Drop(Modified),
    Tell(Modified),
    Tell(Freed),
];
const NO_WAITING: &[Act] = &[
    Look,
    Drop(Modified),
    Tell(Modified),
    Drop(Freed),
    Tell(Freed),
];

/// What is to be dropped.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Standstill {
    /// Everything.
    pub all: bool,
    /// These lines.
    pub extents: Vec<Extent>,
}

/// What a domain has heard of others' rings.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Quiescer {
    me: u8,
    incarnation: u32,
    /// By domain, as far as domains have been looked at.
    readers: Vec<[RingReader; 2]>,
    broken: Option<Defect>,
}

impl Quiescer {
    /// Of a domain whose cache is empty.
    pub fn new((me, incarnation): (u8, u32), broken: Option<Defect>) -> Self {
        Quiescer {
            me,
            incarnation,
            readers: Vec::new(),
            broken,
        }
    }

    /// Whether another domain does not wait for this one any more: it has been silent so long that
    /// the rack took it for dead, and can never be sure again of what it reads.
    pub fn is_excluded(&self, board: &impl Board) -> bool {
        let mut others = 0..board.domains();
        others.any(|by| board.excluded(by, self.me) == self.incarnation)
    }

    /// Reads what all rings say. Returns the latest clock of another domain.
    ///
    /// Freed entries are read first: whoever sees one sees that the word which led there was
    /// modified.
    pub fn look(&mut self, board: &impl Board, into: &mut Quiescence) -> Tick {
        let mut latest = Tick(0);
        let domains = usize::from(board.domains()).min(MAX_DOMAINS);
        self.readers.resize(domains, Default::default());
        for domain in 0..board.domains().min(MAX_DOMAINS as u8) {
            let row = board.row(domain);
            if domain != self.me && row.presence != Presence::Absent {
                latest = latest.max(row.clock);
            }
            for queue in [Freed, Modified] {
                let reader = &mut self.readers[usize::from(domain)][queue as usize];
                let found = &mut into.found[queue as usize];
                let missed = reader.take((domain, queue), board, self.broken, &mut found.extents);
                found.all |= missed;
            }
        }
        for found in &mut into.found {
            found.extents.sort_unstable();
            found.extents.dedup();
        }
        latest
    }
}

/// A quiescence under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Quiescence {
    began: Tick,
    at: u8,
    found: [Standstill; 2],
    broken: Option<Defect>,
}

impl Quiescence {
    /// One begins. `own`: lines that the program wants to be dropped with what was modified.
    pub fn begin(now: Tick, own: Vec<Extent>, broken: Option<Defect>) -> Self {
        let mut found = [Standstill::default(), Standstill::default()];
        if broken != Some(Defect::ForgetOwn) {
            found[Modified as usize].extents = own;
        }
        Quiescence {
            began: now,
            at: 0,
            found,
            broken,
        }
    }

    /// What is to be done next; none when all is done.
    pub fn act(&self) -> Option<Act> {
        let order = match self.broken {
            Some(Defect::FreedBeforeStale) => FREED_FIRST,
            Some(Defect::SkipOwnThreads) => NO_WAITING,
            _ => ORDER,
        };
        order.get(usize::from(self.at)).copied()
    }

    /// That has been done.
    pub fn done(&mut self, now: Tick) {
        if self.broken == Some(Defect::PublishQAtEnd) {
            self.began = now;
        }
        self.at += 1;
    }

    /// What [`Act::Drop`] drops.
    pub fn found(&self, queue: Queue) -> &Standstill {
        &self.found[queue as usize]
    }

    /// Nothing in the cache is to be trusted: the clock was behind.
    pub fn drop_all(&mut self) {
        self.found.iter_mut().for_each(|found| found.all = true);
    }

    /// An earlier one that has come to wait for sections, as this one has, ends with this one: its
    /// freed lines are dropped with this one's. So stale words go at each tick, however long a
    /// section lasts.
    pub fn absorb(&mut self, earlier: Quiescence) {
        let [_, freed] = earlier.found;
        let into = &mut self.found[Freed as usize];
        into.all |= freed.all;
        into.extents.extend(freed.extents);
        into.extents.sort_unstable();
        into.extents.dedup();
    }

    /// What [`Act::Tell`] says.
    pub fn began(&self) -> Tick {
        self.began
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_sections_goes_with_a_later_quiescence() {
        let [a, b] = [3, 9].map(|line| Extent { line, lines: 1 });
        let of = |began, freed: Vec<Extent>| {
            let mut quiescence = Quiescence::begin(Tick(began), Vec::new(), None);
            quiescence.found[Freed as usize].extents = freed;
            quiescence
        };
        let mut later = of(8, alloc::vec![b]);
        later.absorb(of(7, alloc::vec![a, b]));
        assert_eq!(later.found(Freed).extents, alloc::vec![a, b]);
        assert_eq!((later.began(), later.found(Freed).all), (Tick(8), false));
        let mut missed = of(6, Vec::new());
        missed.found[Freed as usize].all = true;
        later.absorb(missed);
        assert!(later.found(Freed).all && !later.found(Modified).all);
    }
}
