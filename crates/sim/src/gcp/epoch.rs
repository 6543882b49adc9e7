//! Epochs that follow each other as closely as they can.
//!
//! A failure makes a view. Members enter its epoch one by one, whenever they learn of it, or learn of a newer one first. When
//! all of its founders are in it they tell the home what they have: what that is, is fixed then, because nobody serves before the
//! home has settled. From then on the home serves. Each member's control plane sees that the rack goes on at a time of its own,
//! which in a member that is starved is never: the next failure may come first.
//!
//! What members tell each other packet by packet is explored with FlowCC's rebuilds, whose streams carry it.

use super::fx::{Done, Fx};
use super::moves::Move;
use super::mutation::Mutation;
use super::oracle::Complaint;
use super::packet::DIRECTORY;
use super::scenario::Failure;
use super::world::{At, HOME, Node, Rack, TAG, Thread, Witness, World};
use rackmem_proto::engine::{self, Change, NodeLock};
use rackmem_proto::flowcc::Members;
use rackmem_proto::gcp::{Entry, LockPlace, Report};
use rackmem_proto::switch::{LockConfig, LockProgram};
use rackmem_proto::wire::{Copyset, Reason};
use std::hash::{Hash, Hasher};

/// The switch: its program, and what it had when epochs ended.
#[derive(Clone)]
pub struct SwitchSide {
    pub program: LockProgram,
    /// What it served last, and in which epoch.
    before: Option<(u32, Entry)>,
}

impl SwitchSide {
    pub fn new(epoch: u32) -> Self {
        let program = LockProgram::new(LockConfig {
            epoch,
            ways: 1,
            sets: 1,
        });
        SwitchSide {
            program,
            before: None,
        }
    }

    /// The entry, if it has it, and its epoch.
    pub fn serves(&self) -> Option<(u32, Entry)> {
        let entry = self.program.entry(TAG);
        entry.map(|entry| (self.program.epoch(), entry))
    }
}

impl Hash for SwitchSide {
    fn hash<H: Hasher>(&self, into: &mut H) {
        self.program.epoch().hash(into);
        (self.program.entry(TAG), self.before).hash(into);
    }
}

/// What everybody tells the home for an epoch that all have entered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Told {
    epoch: u32,
    founders: Copyset,
    records: engine::Told,
}

fn lives(node: &Node) -> bool {
    node.up && !node.gone
}

impl World {
    /// The nodes of the newest view.
    fn live(&self) -> Copyset {
        let numbers = (0u16..).zip(&self.nodes);
        let live = numbers.filter(|(_, node)| lives(node));
        live.fold(Copyset::EMPTY, |set, (number, _)| set.with(number))
    }

    /// Whether everybody is in the epoch of the newest view, and the home has settled it.
    pub fn settled(&self) -> bool {
        self.all_entered() && self.served_epoch() == self.view
    }

    fn all_entered(&self) -> bool {
        let switch = self.switch.as_ref();
        self.nodes
            .iter()
            .filter(|node| lives(node))
            .all(|node| node.epoch == self.view)
            && switch.is_none_or(|switch| switch.program.epoch() == self.view)
    }

    /// What can happen around epochs.
    pub(super) fn epoch_moves(&self, rack: &Rack, moves: &mut Vec<Move>) {
        let failures = rack.scenario.failures;
        moves.extend((usize::from(self.failed) < failures.len()).then_some(Move::Fail));
        let numbers = || (0u8..).zip(&self.nodes);
        let behind = numbers().filter(|(_, node)| lives(node) && node.epoch < self.view);
        // Who is first makes a difference only if a newer view may come in between.
        let last = !rack.loose && usize::from(self.failed) == failures.len();
        let behind = behind.take(if last { 1 } else { usize::MAX });
        moves.extend(behind.map(|(number, _)| Move::Enter(number)));
        let switch = self.switch.as_ref();
        let behind = switch.is_some_and(|switch| switch.program.epoch() < self.view);
        moves.extend(behind.then_some(Move::EnterSwitch));
        let (home, told) = (self.nodes[0].epoch, self.told.as_ref());
        let told = told.is_some_and(|told| told.epoch == home && home > self.served_epoch());
        moves.extend(told.then_some(Move::Settle));
        let waits = numbers().filter(|(number, _)| self.waits_to_resume(rack, *number));
        moves.extend(waits.map(|(number, _)| Move::Resume(number)));
        let placing = self.place() == Some(LockPlace::Placing);
        let there = switch.is_some_and(|switch| switch.program.epoch() == self.served_epoch());
        moves.extend((placing && there && home == self.served_epoch()).then_some(Move::Place));
    }

    /// Whether a node's control plane has something to do when it sees that the rack goes on.
    fn waits_to_resume(&self, rack: &Rack, number: u8) -> bool {
        let node = &self.nodes[usize::from(number)];
        let begun = node.epoch > super::canon::FIRST_EPOCH && node.epoch == self.served_epoch();
        let ((), asks) = self.would(rack, number, |lock, fx| lock.resume(fx));
        let noted = rack.has(Mutation::StaleReport) && node.noted.is_some();
        lives(node) && begun && (!asks.is_empty() || noted)
    }

    /// The switch has been asked, takes the lock, and its answer arrives. An answer that is late differs in nothing from a
    /// question that is: nobody else knows whether the switch has the lock.
    pub(super) fn taken_by_switch(&mut self, rack: &Rack) {
        if self.switch.is_none() {
            return;
        }
        let ((), asks) = self.section(rack, HOME, None, |lock, fx| lock.place_at_switch(fx));
        for ask in asks {
            let (Some(switch), Done::Sent(_, ask, ..)) = (&mut self.switch, ask) else {
                continue;
            };
            for answer in switch.program.handle(&ask).iter() {
                let take = |lock: &mut NodeLock<u8>, fx: &mut Fx<'_>| {
                    lock.packet(&answer.header, (0, &[]), fx);
                };
                self.section(rack, HOME, None, take);
            }
        }
    }

    /// Something dies, or comes back.
    pub(super) fn fail(&mut self, rack: &Rack) {
        let failure = rack.scenario.failures[usize::from(self.failed)];
        self.failed += 1;
        self.view += 1;
        let waits = |number| self.waits_to_resume(rack, number);
        if (0..self.nodes.len() as u8).any(waits) {
            self.witness(Witness::Overtaken);
        }
        let skips = |node: &Node| lives(node) && node.epoch > self.served_epoch();
        if self.nodes.iter().any(skips) {
            self.witness(Witness::Skipped);
        }
        if self.place() == Some(LockPlace::Placing) {
            self.witness(Witness::CutPlacing);
        }
        let (switch, node) = match failure {
            Failure::Node(node) => (false, Some(node)),
            Failure::Switch(node) => (true, node),
            Failure::Nothing => (false, None),
            Failure::Fenced(node) => {
                self.nodes[usize::from(node)].gone = true;
                (false, None)
            }
        };
        if switch {
            self.switch = None;
            self.ways.retain(|way, _| way.1 != DIRECTORY);
        }
        if let Some(node) = node {
            self.nodes[usize::from(node)].up = false;
            let gone = self.threads.iter_mut().filter(|t| t.node == node);
            gone.for_each(|thread| thread.at = At::Gone);
            self.oracle.numbered[usize::from(node)] = None;
            self.ways.retain(|way, _| way.1 != node);
        }
    }

    /// A node enters the epoch of the newest view.
    pub(super) fn enter(&mut self, rack: &Rack, number: u8) {
        let (epoch, switch) = (self.view, self.switch.is_some());
        let live = self.live();
        let node = &mut self.nodes[usize::from(number)];
        let report = node.lock.report();
        if rack.has(Mutation::StaleReport) {
            node.noted = node.noted.or(report);
        }
        node.epoch = epoch;
        let members = Members {
            epoch,
            founders: live,
            switch,
        };
        let defect = rack.mutation.and_then(Mutation::in_engine);
        node.lock.enter_epoch(members, defect);
        self.oracle.numbered[usize::from(number)] = None;
        self.tell(rack);
    }

    /// The switch does.
    pub(super) fn enter_switch(&mut self, rack: &Rack) {
        let epoch = self.view;
        if let Some(switch) = &mut self.switch {
            switch.before = switch.serves().or(switch.before);
            switch.program.reset(epoch);
        }
        self.tell(rack);
    }

    /// Who is the last to enter hears of everybody, and all of him: they tell what they have.
    fn tell(&mut self, rack: &Rack) {
        if !self.all_entered() {
            return;
        }
        for node in &mut self.nodes {
            node.fenced |= node.gone;
        }
        let inside = |t: &Thread| t.at == At::Inside && self.nodes[usize::from(t.node)].fenced;
        if self.threads.iter().any(inside) {
            self.witness(Witness::FencedInside);
        }
        let founders = self.live();
        let mut records = engine::Told::default();
        // What its own node has a home takes when it settles.
        for number in founders.without(HOME.into()).iter() {
            let report = self.report(rack, &self.nodes[usize::from(number)]);
            for record in report.into_iter().flat_map(|report| report.records(TAG)) {
                records.node(number, record);
            }
        }
        let mut switch = self.switch.as_ref().and_then(|switch| switch.before);
        if let Some((_, entry)) = &mut switch
            && rack.has(Mutation::ForgetUntold)
        {
            entry.state.reason = Reason::None;
        }
        if let Some((epoch, entry)) = switch {
            records.switch(entry.to_record(TAG, epoch));
        }
        self.told = Some(Told {
            epoch: self.view,
            founders,
            records,
        });
        let late = rack.loose || rack.has(Mutation::ForgetEpoch);
        if !late && !self.nodes.iter().any(|node| node.fenced) {
            // Everybody would drop them.
            self.ways.retain(|_, _| false);
        }
    }

    /// What a node tells.
    fn report(&self, rack: &Rack, node: &Node) -> Option<Report> {
        let report = node.lock.report()?;
        let mut report = match rack.has(Mutation::StaleReport) {
            true => node.noted?,
            false => report,
        };
        if rack.has(Mutation::SettleOldest) {
            report.age = (1 << 62) - report.age;
        }
        if rack.has(Mutation::StalePassing) {
            report.passing = report.passing.map(|_| self.served_epoch());
        }
        if rack.has(Mutation::ForgetTold) && self.oracle.judge.spoilt.is_some() {
            report.reason = Reason::None;
        }
        Some(report)
    }

    /// The home has been told everything.
    pub(super) fn settle(&mut self, rack: &Rack) {
        let Some(told) = self.told.take() else { return };
        let (last, _) = self.oracle.judge.tenure;
        let dead = !lives(&self.nodes[usize::from(last)]);
        self.oracle.judge.settled(dead);
        let (epoch, founders) = (told.epoch, told.founders);
        let change = Change {
            members: Members {
                epoch,
                founders,
                switch: self.switch.is_some(),
            },
            settled: self.served_epoch(),
            gone: Copyset(self.founders.0 & !founders.0),
            switch_lost: false,
        };
        let defect = rack.mutation.and_then(Mutation::in_engine);
        self.nodes[0].lock.settle(&change, &told.records, defect);
        self.founders = founders;
    }

    /// A node's control plane sees that the rack goes on.
    pub(super) fn resume(&mut self, rack: &Rack, number: u8) -> Result<(), Complaint> {
        self.nodes[usize::from(number)].noted = None;
        self.act_on(rack, number, |lock, fx| lock.resume(fx))
    }
}
