//! The lock-check-forward pipeline (§5.1.1), with set-associative ways (§6) and the scoreboard (§5.3.2).
//!
//! | stage | arrays |
//! |---|---|
//! | `w` of `0..ways` | TAG of way `w` |
//! | `w + 1` | LOCK, G-STATUS and COPYSET of way `w` |
//! | `ways + 1` | SCOREBOARD, two scores a requester |
//!
//! The check table stands between the entry and the scoreboard: whether the request is valid is known in the
//! same pass that takes the lock, so a refusal and a grant are each final in one step. What a pass cannot do
//! any more is done by a resubmission: giving back a lock, executing an unlock, inserting a tag.

use super::rmt::{Array, Pass, Pipeline, Violation};
use crate::flowcc::forward::{self, Granted};
use crate::flowcc::lock::{self, LockWord};
use crate::flowcc::score::{self, Route, Score, Verdict};
use crate::flowcc::tables;
use crate::wire::{Copyset, Flags, GlobalStatus, Header, Kind, NodeId, Reason, RequesterId, Tag};
use crate::{Dest, Output, Outputs};
use alloc::vec::Vec;

/// How a switch is set up.
#[derive(Clone, Copy, Debug)]
pub struct SwitchConfig {
    /// Epoch of the rack; packets of another are dropped.
    pub epoch: u32,
    /// Candidate locations of a tag, `1..=MAX_WAYS`.
    pub ways: u8,
    /// Entries in each way, a power of two.
    pub sets: usize,
    /// Decides which sharer provides data.
    pub seed: u32,
}

/// Ways at most: one stage each, one more for the last way's entry, one for the scoreboard, of an ASIC's 12.
pub const MAX_WAYS: u8 = 10;

impl Default for SwitchConfig {
    /// The paper's 10 stages: 8 ways of 32,768 entries, 262,144 blocks in 4 MiB.
    fn default() -> Self {
        SwitchConfig {
            epoch: 1,
            ways: 8,
            sets: 32_768,
            seed: 0,
        }
    }
}

/// What a switch has done.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct SwitchCounters {
    /// Requests granted and forwarded by the switch.
    pub granted: u64,
    /// Requests refused because the entry was locked.
    pub locked: u64,
    /// Requests refused by the check table, or a copy of one refused before.
    pub invalid: u64,
    /// Requests passed to the home agent that owns the entry.
    pub to_home: u64,
    /// Unlocks executed.
    pub unlocked: u64,
    /// Entries taken over from home agents.
    pub added: u64,
    /// ADD-TO-SWITCH refused for want of a free location.
    pub collided: u64,
    /// Packets dropped: another epoch, stale, or not for a switch.
    pub dropped: u64,
    /// Broken pipeline rules: always zero, or the program has a defect.
    pub violations: u64,
}

/// The sender that the switch puts in its packets; no node has this number.
pub const SWITCH: NodeId = NodeId::MAX;

struct Way {
    tag: Array<u64>,
    lock: Array<LockWord>,
    status: Array<u8>,
    copyset: Array<u32>,
}

/// A free location; a taken one is odd.
const FREE: u64 = 0;

/// The program and its registers.
pub struct SwitchProgram {
    config: SwitchConfig,
    pipeline: Pipeline,
    ways: Vec<Way>,
    scores: Array<Score>,
    counters: SwitchCounters,
}

/// What a pass over an entry does to it.
enum Entry<'a> {
    Lock {
        shared: bool,
        kind: Kind,
        node: NodeId,
    },
    Release {
        shared: bool,
        install: Option<&'a Header>,
    },
    Install(&'a Header),
}

/// What such a pass has seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    acquired: bool,
    valid: bool,
    status: GlobalStatus,
    copyset: Copyset,
}

/// A tag in its array: the low bit says that the location is taken, so that block 0 of node 0 has a form too.
fn stored(tag: Tag) -> u64 {
    tag.0 | 1
}

impl SwitchProgram {
    /// A switch that owns nothing.
    pub fn new(config: SwitchConfig) -> Self {
        let config = SwitchConfig {
            ways: config.ways.clamp(1, MAX_WAYS),
            sets: config.sets.max(1).next_power_of_two(),
            ..config
        };
        let ways = (0..config.ways)
            .map(|w| Way {
                tag: Array::new(w, config.sets),
                lock: Array::new(w + 1, config.sets),
                status: Array::new(w + 1, config.sets),
                copyset: Array::new(w + 1, config.sets),
            })
            .collect();
        SwitchProgram {
            ways,
            scores: Array::new(config.ways + 1, RequesterId::COUNT * 2),
            pipeline: Pipeline::default(),
            counters: SwitchCounters::default(),
            config,
        }
    }

    /// What it has done so far.
    pub fn counters(&self) -> SwitchCounters {
        self.counters
    }

    /// Passes through the pipeline, resubmissions included.
    pub fn passes(&self) -> u64 {
        self.pipeline.passes()
    }

    pub(super) fn arrays(&self) -> impl Iterator<Item = (&'static str, u8, usize, usize)> {
        fn row<T>(name: &'static str, a: &Array<T>) -> (&'static str, u8, usize, usize) {
            (name, a.stage(), a.len(), a.item_bytes())
        }
        self.ways
            .iter()
            .flat_map(|w| {
                [
                    row("TAG", &w.tag),
                    row("LOCK", &w.lock),
                    row("G-STATUS", &w.status),
                    row("COPYSET", &w.copyset),
                ]
            })
            .chain([row("SCOREBOARD", &self.scores)])
    }

    /// The entry of a block as `(lock word, status, copyset)`, for checkers and the control plane.
    pub fn inspect(&self, tag: Tag) -> Option<(u16, GlobalStatus, Copyset)> {
        let at = self.set(tag);
        let way = self
            .ways
            .iter()
            .find(|way| way.tag.items()[at] == stored(tag))?;
        let status = GlobalStatus::from_byte(way.status.items()[at])?;
        Some((
            way.lock.items()[at],
            status,
            Copyset(way.copyset.items()[at]),
        ))
    }

    /// How many entries it owns.
    pub fn entries(&self) -> usize {
        self.ways
            .iter()
            .map(|way| way.tag.items().iter().filter(|&&tag| tag != FREE).count())
            .sum()
    }

    /// Takes a packet. Whatever it holds, the outputs are at most three packets, and nothing panics.
    pub fn handle(&mut self, header: &Header) -> Outputs {
        let mut outputs = Outputs::default();
        if header.epoch != self.config.epoch {
            self.counters.dropped += 1;
            return outputs;
        }
        let result = match header.kind {
            kind if kind.is_request() && !header.flags.has(Flags::GRANTED) => {
                self.request(header, &mut outputs)
            }
            Kind::Unlock => self.unlock(header, &mut outputs),
            Kind::AddToSwitch => self.add(header, &mut outputs),
            _ => {
                self.counters.dropped += 1;
                Ok(())
            }
        };
        if result.is_err() {
            self.counters.violations += 1;
        }
        outputs
    }

    fn set(&self, tag: Tag) -> usize {
        // Block numbers of one node are dense from some low bit on; the multiply spreads them over the sets.
        let mixed = tag.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.config.sets - 1)
    }

    fn score_index(header: &Header) -> usize {
        header.requester.index() * 2 + header.seq.parity()
    }

    /// Looks for the tag way by way, and does `entry` to the state behind it. `None`: not in the switch.
    fn visit(&mut self, pass: &Pass, tag: Tag, entry: &Entry) -> Result<Option<Seen>, Violation> {
        let at = self.set(tag);
        for way in &mut self.ways {
            if way.tag.access(pass, at, |t| *t == stored(tag))? {
                return way.apply(pass, at, entry).map(Some);
            }
        }
        Ok(None)
    }

    fn request(&mut self, header: &Header, outputs: &mut Outputs) -> Result<(), Violation> {
        let shared = header.kind.locks_shared();
        let pass = self.pipeline.enter();
        let lock = Entry::Lock {
            shared,
            kind: header.kind,
            node: header.requester.node,
        };
        let found = self.visit(&pass, header.tag, &lock)?;
        // The scoreboard takes note of requests for other owners too: a late copy of one must not be granted
        // here after the entry has moved (hard place FlowCC 7).
        let seen = found.unwrap_or_default();
        let index = Self::score_index(header);
        let now = forward::choose(header, seen.status, seen.copyset, self.config.seed);
        let verdict = self.scores.access(&pass, index, |s| {
            score::enter(s, header.seq, seen.acquired, seen.valid, now)
        })?;
        if verdict.undo() {
            let pass = self.pipeline.enter();
            self.visit(
                &pass,
                header.tag,
                &Entry::Release {
                    shared,
                    install: None,
                },
            )?;
        }
        match (verdict, found) {
            (Verdict::Stale { .. }, _) => self.counters.dropped += 1,
            (_, None) => {
                self.counters.to_home += 1;
                outputs.push(Output::new(Dest::Agent(header.tag.home()), *header));
            }
            (Verdict::Granted { route, .. }, Some(seen)) => {
                self.grant(header, seen, route, outputs);
            }
            (Verdict::Refused { .. }, Some(seen)) => {
                let reason = if seen.acquired {
                    Reason::Invalid
                } else {
                    Reason::Locked
                };
                self.counters.locked += u64::from(reason == Reason::Locked);
                self.counters.invalid += u64::from(reason == Reason::Invalid);
                outputs.push(Output::new(
                    Dest::Requester(header.requester),
                    header.refuse(Kind::Ack, SWITCH, reason),
                ));
            }
        }
        Ok(())
    }

    fn grant(&mut self, header: &Header, seen: Seen, route: Route, outputs: &mut Outputs) {
        let flags = header.flags.and(Flags::IN_SWITCH);
        let granted = Header {
            copyset: seen.copyset,
            flags,
            ..*header
        };
        match forward::send(&granted, route, SWITCH) {
            Some(Granted::Send(output)) => outputs.push(output),
            Some(Granted::FromHome(request)) => {
                outputs.push(Output::new(Dest::Agent(request.tag.home()), request))
            }
            None => self.counters.dropped += 1,
        }
        self.counters.granted += 1;
    }

    fn unlock(&mut self, header: &Header, outputs: &mut Outputs) -> Result<(), Violation> {
        if !header.flags.has(Flags::IN_SWITCH) {
            self.counters.dropped += 1;
            return Ok(());
        }
        let pass = self.pipeline.enter();
        let authorized = self.scores.access(&pass, Self::score_index(header), |s| {
            score::leave(s, header.seq)
        })?;
        if authorized {
            let install = (!header.flags.has(Flags::KEEP)).then_some(header);
            let release = Entry::Release {
                shared: header.flags.has(Flags::READER),
                install,
            };
            let pass = self.pipeline.enter();
            self.visit(&pass, header.tag, &release)?;
            self.counters.unlocked += 1;
        }
        outputs.push(Output::new(
            Dest::Requester(header.requester),
            header.answer(Kind::UnlockAck, SWITCH),
        ));
        Ok(())
    }

    /// ADD-TO-SWITCH: one pass looks for the tag and a free location, the next one takes it.
    fn add(&mut self, header: &Header, outputs: &mut Outputs) -> Result<(), Violation> {
        let at = self.set(header.tag);
        let pass = self.pipeline.enter();
        let (mut have, mut free) = (false, None);
        for (w, way) in self.ways.iter_mut().enumerate() {
            let there = way.tag.access(&pass, at, |t| *t)?;
            have |= there == stored(header.tag);
            if there == FREE && free.is_none() {
                free = Some(w);
            }
        }
        let inserted = match free {
            // A retransmission: the first copy has inserted it, and the entry may have lived on since.
            _ if have => true,
            Some(w) => self.insert(w, at, header)?,
            None => false,
        };
        let reason = if inserted { Reason::None } else { Reason::Full };
        self.counters.added += u64::from(inserted && !have);
        self.counters.collided += u64::from(!inserted);
        let ack = header.refuse(Kind::AddAck, SWITCH, reason);
        outputs.push(Output::new(Dest::Agent(header.tag.home()), ack));
        Ok(())
    }

    fn insert(&mut self, w: usize, at: usize, header: &Header) -> Result<bool, Violation> {
        let pass = self.pipeline.enter();
        let way = &mut self.ways[w];
        let taken = way.tag.access(&pass, at, |t| {
            let free = *t == FREE;
            if free {
                *t = stored(header.tag);
            }
            free
        })?;
        if taken {
            way.apply(&pass, at, &Entry::Install(header))?;
        }
        Ok(taken)
    }
}

impl Way {
    /// The three arrays of an entry, in the one stage they share, so that they change together (P1, §2.2).
    fn apply(&mut self, pass: &Pass, at: usize, entry: &Entry) -> Result<Seen, Violation> {
        let mut seen = Seen::default();
        match entry {
            Entry::Lock { shared, kind, node } => {
                seen.acquired = self.lock.access(pass, at, |l| lock::acquire(l, *shared))?;
                seen.status = self.status.access(pass, at, |s| {
                    GlobalStatus::from_byte(*s).unwrap_or_default()
                })?;
                seen.copyset = self.copyset.access(pass, at, |c| Copyset(*c))?;
                seen.valid = tables::check(*kind, *node, seen.status, seen.copyset);
            }
            Entry::Release { shared, install } => {
                self.lock.access(pass, at, |l| lock::release(l, *shared))?;
                if let Some(header) = install {
                    self.status.access(pass, at, |s| *s = header.status as u8)?;
                    self.copyset.access(pass, at, |c| {
                        // Read unlocks race with each other: union, never overwrite (hard place FlowCC 4).
                        *c = if *shared {
                            *c | header.copyset.0
                        } else {
                            header.copyset.0
                        };
                    })?;
                }
            }
            Entry::Install(header) => {
                self.lock.access(pass, at, |l| *l = 0)?;
                self.status.access(pass, at, |s| *s = header.status as u8)?;
                self.copyset.access(pass, at, |c| *c = header.copyset.0)?;
            }
        }
        Ok(seen)
    }
}
