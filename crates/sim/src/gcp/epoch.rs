//! Epochs that follow each other as closely as they can.
//!
//! A failure makes a view. Members enter its epoch one by one, whenever they learn of it, or learn
//! of a newer one first. When all of its founders are in it they tell the home what they have: what
//! that is, is fixed then, because nobody serves before the home has settled. From then on the home
//! serves. Each member's control plane sees that the rack goes on at a time of its own, which in a
//! member that is starved is never: the next failure may come first.
//!
//! What members tell each other packet by packet is explored with FlowCC's rebuilds,
//! whose streams carry it.

use super::host::outputs;
use super::mutation::Mutation;
use super::oracle::Complaint;
use super::world::{At, HOME, LockNode, LockRack, TAG, Thread, Witness, World};
use rackmem_proto::engine::{self, Change};
use rackmem_proto::flowcc::Members;
use rackmem_proto::wire::{Copyset, Reason};

/// What everybody tells the home for an epoch that all have entered.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Told {
    pub(super) members: Members,
    records: engine::Told,
}

pub(super) fn lives(node: &LockNode) -> bool {
    node.up && !node.gone
}

impl World {
    /// Those of the newest view.
    fn members(&self) -> Members {
        let live = (0u16..).zip(&self.nodes).filter(|(_, node)| lives(node));
        Members {
            epoch: self.view,
            founders: live.fold(Copyset::EMPTY, |set, (number, _)| set.with(number)),
            switch: self.switch.is_some(),
        }
    }

    /// Whether everybody is in the epoch of the newest view, and the home has settled it.
    pub fn settled(&self) -> bool {
        self.all_entered() && self.served_epoch() == self.view
    }

    pub(super) fn all_entered(&self) -> bool {
        let switch = self.switch.as_ref();
        self.nodes
            .iter()
            .filter(|node| lives(node))
            .all(|node| node.epoch == self.view)
            && switch.is_none_or(|switch| switch.epoch() == self.view)
    }

    /// The switch has been asked, takes the lock, and its answer arrives. An answer that is late
    /// differs in nothing from a question that is: nobody else knows whether the switch has the
    /// lock.
    pub(super) fn taken_by_switch(&mut self, rack: &LockRack) {
        if self.switch.is_none() {
            return;
        }
        let ((), asks) = self.section(rack, HOME, None, |lock, fx| lock.place_at_switch(fx));
        for ask in outputs(asks) {
            let Some(switch) = &mut self.switch else {
                return;
            };
            for answer in switch.handle(&ask.header).iter() {
                self.at_home(rack, &answer.header);
            }
        }
    }

    /// A node enters the epoch of the newest view.
    pub(super) fn enter(&mut self, rack: &LockRack, number: u8) {
        let (members, defect) = (self.members(), rack.broken().1);
        let node = &mut self.nodes[usize::from(number)];
        let report = node.cell.lock.report();
        if rack.has(Mutation::StaleReport) {
            node.noted = node.noted.or(report);
        }
        node.epoch = members.epoch;
        node.cell.lock.enter_epoch(members, defect);
        self.oracle.numbered[usize::from(number)] = None;
        self.tell(rack);
    }

    /// The switch does.
    pub(super) fn enter_switch(&mut self, rack: &LockRack) {
        let epoch = self.view;
        if let Some(switch) = &mut self.switch {
            switch.enter(epoch, |_| Vec::new());
        }
        self.tell(rack);
    }

    /// Who is the last to enter hears of everybody, and all of him: they tell what they have.
    fn tell(&mut self, rack: &LockRack) {
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
        let members = self.members();
        let mut records = engine::Told::default();
        // What its own node has a home takes when it settles.
        for number in members.founders.without(HOME.into()).iter() {
            let report = self.report(rack, &self.nodes[usize::from(number)]);
            for record in report.into_iter().flat_map(|report| report.records(TAG)) {
                records.node(number, record);
            }
        }
        for (epoch, mut entry) in self.switch.iter().filter_map(|switch| switch.before(TAG)) {
            if rack.has(Mutation::ForgetUntold) {
                entry.state.reason = Reason::None;
            }
            records.switch(entry.to_record(TAG, epoch));
        }
        self.told = Some(Told { members, records });
        let late = rack.loose || rack.has(Mutation::ForgetEpoch);
        if !late && !self.nodes.iter().any(|node| node.fenced) {
            // Everybody would drop them.
            self.ways.retain(|_, _| false);
        }
    }

    /// The home has been told everything.
    pub(super) fn settle(&mut self, rack: &LockRack) {
        let Some(told) = self.told.take() else { return };
        let (last, _) = self.oracle.judge.tenure;
        let dead = !lives(&self.nodes[usize::from(last)]);
        self.oracle.judge.settled(dead);
        let mut members = told.members;
        members.switch = self.switch.is_some();
        let change = Change {
            members,
            settled: self.served_epoch(),
            gone: Copyset(self.founders.0 & !members.founders.0),
            switch_lost: false,
        };
        let lock = &mut self.nodes[usize::from(HOME)].cell.lock;
        lock.settle(&change, &told.records, rack.broken().1);
        self.founders = members.founders;
    }

    /// A node's control plane sees that the rack goes on.
    pub(super) fn resume(&mut self, rack: &LockRack, number: u8) -> Result<(), Complaint> {
        self.nodes[usize::from(number)].noted = None;
        self.act_on(rack, number, |lock, fx| lock.resume(fx))
    }
}
