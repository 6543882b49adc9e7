//! GCP's directory on the pipeline: what a switch keeps of a lock (Soul, §4.1, §4.2.2).
//!
//! | stage | arrays |
//! |---|---|
//! | `w` of `0..ways` | LOCK-TAG of way `w` |
//! | `w + 1` | LOCK-STATE of way `w`: version, since, permission, queue holder, keeper, reason |
//! | `w + 2` | LOCK-SHARERS of way `w` |
//!
//! One pass does any request, with no resubmission: what LOCK-STATE decides,
//! LOCK-SHARERS carries out in the stage behind it. The arrays are of their own and fit beside
//! those of FlowCC, stage by stage. Entries never leave within an epoch, so the ways of a set fill
//! in order and a free one is the last place to look.

use super::program::SWITCH;
use super::rmt::{Array, Pipeline, Violation};
use crate::gcp::{Entry, Mode, State, Verdict, entry, version, with_version};
use crate::wire::{Copyset, Dest, GlobalStatus, Header, Kind, MAX_NODES, Reason, Tag};
use crate::{Output, Outputs};
use alloc::vec::Vec;

#[derive(Clone)]
pub(super) struct Way {
    pub(super) tag: Array<u64>,
    pub(super) state: Array<State>,
    pub(super) sharers: Array<u32>,
}

/// How large the table of locks is.
#[derive(Clone, Copy, Debug)]
pub struct LockConfig {
    /// Epoch of the rack; packets of another are dropped.
    pub epoch: u32,
    /// Candidate locations of a lock, `1..=8`.
    pub ways: u8,
    /// Entries in each way, a power of two.
    pub sets: usize,
}

impl Default for LockConfig {
    /// 16,384 locks.
    fn default() -> Self {
        LockConfig {
            epoch: 1,
            ways: 4,
            sets: 4096,
        }
    }
}

/// What it has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LockCounters {
    /// Requests carried out or queued.
    pub served: u64,
    /// Releases refused because requests were under way.
    pub denied: u64,
    /// Requests passed to the home that serves the lock.
    pub to_home: u64,
    /// Packets dropped: another epoch, not for a switch, or naming who is no node.
    pub dropped: u64,
    /// Broken pipeline rules: always zero, or the program has a defect.
    pub violations: u64,
}

/// The program and its registers.
#[derive(Clone)]
pub struct LockProgram {
    epoch: u32,
    pub(super) ways: Vec<Way>,
    pipeline: Pipeline,
    counters: LockCounters,
}

/// A free location; a taken one is odd, as in FlowCC's table.
const FREE: u64 = 0;

impl LockProgram {
    /// A switch that serves no lock.
    pub fn new(config: LockConfig) -> Self {
        let sets = config.sets.max(1).next_power_of_two();
        let way = |w| Way {
            tag: Array::new(w, sets),
            state: Array::new(w + 1, sets),
            sharers: Array::new(w + 2, sets),
        };
        LockProgram {
            epoch: config.epoch,
            ways: (0..config.ways.clamp(1, 8)).map(way).collect(),
            pipeline: Pipeline::default(),
            counters: LockCounters::default(),
        }
    }

    /// What it has done so far.
    pub fn counters(&self) -> LockCounters {
        self.counters
    }

    /// Passes through the pipeline: one a packet.
    pub fn passes(&self) -> u64 {
        self.pipeline.passes()
    }

    /// Bytes of registers that it uses.
    pub fn bytes(&self) -> usize {
        let each = |way: &Way| {
            way.tag.len()
                * (way.tag.item_bytes() + way.state.item_bytes() + way.sharers.item_bytes())
        };
        self.ways.iter().map(each).sum()
    }

    /// Takes a packet: the outputs are at most one, and nothing panics.
    pub fn handle(&mut self, header: &Header) -> Outputs {
        let mut outputs = Outputs::default();
        let known = match header.kind {
            Kind::Acquire => true,
            // The releasing node gets an answer, and the keeper of the data a packet.
            Kind::Release => usize::from(header.sender) < MAX_NODES,
            Kind::Place => header.offset < MAX_NODES as u32,
            _ => false,
        };
        // Locks in memory that groups keep have their directory at its keeper.
        if header.epoch != self.epoch || !known || !header.tag.home().is_own() {
            self.counters.dropped += 1;
            return outputs;
        }
        match self.pass(header) {
            Ok(Some(output)) => outputs.push(output),
            Ok(None) => self.counters.dropped += 1,
            Err(_) => self.counters.violations += 1,
        }
        outputs
    }

    fn pass(&mut self, header: &Header) -> Result<Option<Output>, Violation> {
        let pass = self.pipeline.enter();
        let key = header.tag.0 | 1;
        let places = header.kind == Kind::Place;
        for way in &mut self.ways {
            let at = super::set_of(header.tag, way.tag.len());
            let was = way.tag.access(&pass, at, |tag| {
                let was = *tag;
                if was == FREE && places {
                    *tag = key;
                }
                was
            })?;
            if was == FREE && places {
                let placed = placed(header);
                way.state.access(&pass, at, |state| *state = placed.state)?;
                way.sharers.access(&pass, at, |s| *s = placed.sharers.0)?;
            } else if was == key && !places {
                let (verdict, state) = way.state.access(&pass, at, |state| {
                    let verdict = state.decide(header);
                    (verdict, *state)
                })?;
                let sharers = way
                    .sharers
                    .access(&pass, at, |s| entry::share(s, verdict, header))?;
                self.counters.served += u64::from(verdict != Verdict::Drop);
                self.counters.denied += u64::from(verdict == Verdict::Deny);
                return Ok(entry::send(verdict, state, sharers, header, SWITCH));
            } else if was != key {
                continue;
            }
            return Ok(Some(answer(header, Reason::None)));
        }
        if places {
            return Ok(Some(answer(header, Reason::Full)));
        }
        self.counters.to_home += 1;
        Ok(Some(Output::new(Dest::Home(header.tag.home()), *header)))
    }

    /// A lock's entry, if it is here, for checkers and the control plane.
    pub fn entry(&self, tag: Tag) -> Option<Entry> {
        let way = |way: &Way| {
            let at = super::set_of(tag, way.tag.len());
            (way.tag.items()[at] == tag.0 | 1).then(|| Entry {
                state: way.state.items()[at],
                sharers: Copyset(way.sharers.items()[at]),
            })
        };
        self.ways.iter().find_map(way)
    }

    /// All locks that are here, for the control plane.
    pub fn entries(&self) -> impl Iterator<Item = (Tag, Entry)> {
        self.ways.iter().flat_map(|way| {
            let tags = way.tag.items().iter().enumerate();
            tags.filter(|(_, tag)| **tag != FREE).map(|(at, tag)| {
                let state = way.state.items()[at];
                let sharers = Copyset(way.sharers.items()[at]);
                (Tag(tag & !1), Entry { state, sharers })
            })
        })
    }

    /// The epoch that it serves.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Forgets everything: a new epoch, whose homes place their locks again.
    pub fn reset(&mut self, epoch: u32) {
        let sets = self.ways[0].tag.len();
        let counters = self.counters;
        *self = LockProgram::new(LockConfig {
            epoch,
            ways: self.ways.len() as u8,
            sets,
        });
        self.counters = counters;
    }
}

fn placed(header: &Header) -> Entry {
    Entry {
        state: State {
            version: version(header),
            since: version(header),
            holder: header.requester.node as u8,
            keeper: header.offset as u8,
            mode: match header.status {
                GlobalStatus::Shared => Mode::Shared,
                _ => Mode::Modified,
            },
            reason: header.reason,
        },
        sharers: header.copyset,
    }
}

fn answer(header: &Header, reason: Reason) -> Output {
    let mut answer = header.answer(Kind::PlaceAck, SWITCH);
    answer.reason = reason;
    let home = Dest::Home(header.tag.home());
    Output::new(home, with_version(answer, version(header)))
}
