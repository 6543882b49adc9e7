//! The lock-check-forward pipeline (§5.1.1), with set-associative ways (§6) and the scoreboard
//! (§5.3.2).
//!
//! | stage | arrays |
//! |---|---|
//! | `w` of `0..ways` | TAG of way `w` |
//! | `w + 1` | LOCK, G-STATUS and COPYSET of way `w` |
//! | `ways + 1` | SCOREBOARD, two scores a requester, and MOVES, one a migration under way |
//!
//! The check table stands between the entry and the scoreboard:
//! whether the request is valid is known in the same pass that takes the lock, so a refusal and a
//! grant are each final in one step. What a pass cannot do any more is done by a resubmission:
//! giving back a lock, executing an unlock. Migration is in `moves`, what the control plane reads
//! and resets in `control`.

use super::entry::{Entry, Seen, Way, stored};
use super::moves::Move;
use super::rmt::{Array, Pass, Pipeline, Violation};
use crate::flowcc::forward::{self, Granted};
use crate::flowcc::migration::MAX_MOVES;
use crate::flowcc::score::{self, Route, Verdict};
use crate::wire::{Flags, Header, Kind, MAX_NODES, MAX_REQUESTERS, NodeId, Reason, Tag};
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
    /// The node that is notified of every migration (§5.2.2).
    pub shadow: Option<NodeId>,
    /// Nodes of the rack: it keeps scores for those below, and drops packets of others.
    pub nodes: u16,
    /// Requesters of each node, likewise.
    pub requesters: u16,
}

/// Ways at most: one stage each, one more for the last way's entry, one for the scoreboard, of 12.
/// Tofino's compiler, which needs stages for tables as well, fits 5 (docs/p4.md).
pub const MAX_WAYS: u8 = 10;

impl Default for SwitchConfig {
    /// The paper's 10 stages: 8 ways of 32,768 entries, 262,144 blocks in 4 MiB.
    fn default() -> Self {
        SwitchConfig {
            epoch: 1,
            ways: 8,
            sets: 32_768,
            seed: 0,
            shadow: None,
            nodes: MAX_NODES as u16,
            requesters: MAX_REQUESTERS as u16,
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
    /// Entries given back to home agents.
    pub removed: u64,
    /// Packets dropped: another epoch, stale, or not for a switch.
    pub dropped: u64,
    /// Broken pipeline rules: always zero, or the program has a defect.
    pub violations: u64,
}

/// The sender that the switch puts in its packets; no node has this number.
pub const SWITCH: NodeId = NodeId::MAX;

/// The program and its registers.
#[derive(Clone)]
pub struct SwitchProgram {
    pub(super) config: SwitchConfig,
    pub(super) pipeline: Pipeline,
    pub(super) ways: Vec<Way>,
    pub(super) scores: Array<u64>,
    pub(super) moves: Array<Move>,
    pub(super) frozen: bool,
    pub(super) counters: SwitchCounters,
}

impl SwitchProgram {
    /// A switch that owns nothing.
    pub fn new(config: SwitchConfig) -> Self {
        let config = SwitchConfig {
            ways: config.ways.clamp(1, MAX_WAYS),
            sets: config.sets.max(1).next_power_of_two(),
            nodes: config.nodes.clamp(1, MAX_NODES as u16),
            requesters: config.requesters.clamp(1, MAX_REQUESTERS as u16),
            ..config
        };
        SwitchProgram {
            ways: (0..config.ways).map(|w| Way::new(w, config.sets)).collect(),
            scores: Array::new(
                config.ways + 1,
                usize::from(config.nodes) * usize::from(config.requesters) * 2,
            ),
            moves: Array::new(config.ways + 1, usize::from(config.nodes) * MAX_MOVES),
            frozen: false,
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

    /// Takes a packet. Whatever it holds, the outputs are at most three packets,
    /// and nothing panics.
    pub fn handle(&mut self, header: &Header) -> Outputs {
        let mut outputs = Outputs::default();
        if header.epoch != self.config.epoch || self.frozen || !self.knows(header) {
            self.counters.dropped += 1;
            return outputs;
        }
        let result = match header.kind {
            kind if kind.is_request() && !header.flags.has(Flags::GRANTED) => {
                self.request(header, &mut outputs)
            }
            Kind::Unlock => self.unlock(header, &mut outputs),
            Kind::AddToSwitch => self.add(header, &mut outputs),
            Kind::RemoveFromSwitch => self.remove(header, &mut outputs),
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

    pub(super) fn set(&self, tag: Tag) -> usize {
        super::set_of(tag, self.config.sets)
    }

    /// Whether there is a score, or a slot for a move, for the sender, and may be an entry of the
    /// block: not where a group keeps its home, whose entries are the keeper's alone.
    fn knows(&self, header: &Header) -> bool {
        let (node, slot) = (header.requester.node, header.requester.slot);
        let slots = match header.kind {
            Kind::AddToSwitch | Kind::RemoveFromSwitch => MAX_MOVES,
            _ => usize::from(self.config.requesters),
        };
        let owns = header.tag.home().is_own();
        owns && node < self.config.nodes && usize::from(slot) < slots
    }

    fn score_index(&self, header: &Header) -> usize {
        let (node, slot) = (header.requester.node, header.requester.slot);
        let row = usize::from(node) * usize::from(self.config.requesters) + usize::from(slot);
        row * 2 + header.seq.parity()
    }

    /// Looks for the tag way by way, and does `entry` to the state behind it. `None`:
    /// not in the switch.
    pub(super) fn visit(
        &mut self,
        pass: &Pass,
        tag: Tag,
        entry: &Entry,
    ) -> Result<Option<Seen>, Violation> {
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
        // The scoreboard records requests for other owners too: the role that decides about the
        // first copy of a request decides about all, wherever the entry has moved meanwhile (hard
        // place FlowCC 7).
        let seen = found.unwrap_or_default();
        let index = self.score_index(header);
        let now = forward::choose(header, seen.status, seen.copyset, self.config.seed);
        let verdict = self.scores.access(&pass, index, |s| match found {
            Some(seen) => score::enter(s, header.seq, seen.acquired, seen.valid, now),
            None => score::pass_on(s, header.seq),
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
        match verdict {
            Verdict::Stale { .. } => self.counters.dropped += 1,
            Verdict::Elsewhere { .. } => {
                self.counters.to_home += 1;
                outputs.push(Output::new(Dest::Home(header.tag.home()), *header));
            }
            Verdict::Granted { route, .. } => self.grant(header, seen, route, outputs),
            Verdict::Refused { .. } => {
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
                outputs.push(Output::new(Dest::Home(request.tag.home()), request))
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
        let index = self.score_index(header);
        let authorized = self
            .scores
            .access(&pass, index, |s| score::leave(s, header.seq))?;
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
}
