//! What members do when an epoch begins. What they tell each other packet by packet is explored
//! with FlowCC's rebuilds, whose streams carry it: here a rebuild is one step.

use super::epoch::lives;
use super::host::LockSite;
use super::mutation::Mutation;
use super::oracle::Complaint;
use super::world::{HOME, LockRack, TAG, World};
use rackmem_proto::engine::{self, Change, Gcp, LockHost, Protocol, Reporter};
use rackmem_proto::flowcc::Members;
use rackmem_proto::wire::{Copyset, Reason};
use std::rc::Rc;

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

    /// A node enters the epoch of the newest view.
    pub(super) fn enter(&mut self, rack: &LockRack, number: u8) {
        let members = self.members();
        let node = self.node_mut(number);
        if rack.has(Mutation::StaleReport) {
            let now = node.cell().lock.report().map(Box::new);
            node.noted = node.noted.take().or(now);
        }
        let view = &mut node.site.view;
        (view.epoch, view.switch) = (members.epoch, members.switch.then_some(0));
        self.turn(number, |site| engine::stop(site, members));
        self.oracle.numbered[usize::from(number)] = None;
        self.has_entered(rack);
    }

    /// The switch does.
    pub(super) fn enter_switch(&mut self, rack: &LockRack) {
        let epoch = self.view;
        if let Some(switch) = &mut self.switch {
            Rc::make_mut(switch).enter(epoch, |_| Vec::new());
        }
        self.has_entered(rack);
    }

    /// All have entered, and tell what they have.
    pub(super) fn tell(&mut self, rack: &LockRack) {
        let members = self.members();
        let mut told = Vec::new();
        // What its own node has a home takes when it settles.
        for number in members.founders.without(HOME.into()).iter() {
            let report = self.report(rack, &self.nodes[usize::from(number)]);
            let records = report.into_iter().flat_map(|report| report.records(TAG));
            told.extend(records.map(|record| (Reporter::Node(number), record)));
        }
        for (epoch, mut entry) in self.switch.iter().filter_map(|switch| switch.before(TAG)) {
            if rack.has(Mutation::ForgetUntold) {
                entry.state.reason = Reason::None;
            }
            told.push((Reporter::Switch, entry.to_record(TAG, epoch)));
        }
        self.turn(HOME, |home| {
            Gcp::forget(home, Copyset::EMPTY);
            told.iter()
                .for_each(|(from, record)| Gcp::hear(home, *from, *record));
        });
        self.told = Some(members);
    }

    /// The home has been told everything.
    pub(super) fn settle(&mut self) {
        let (last, _) = self.oracle.judge.tenure;
        let dead = !lives(&self.nodes[usize::from(last)]);
        self.oracle.judge.settled(dead);
        let Some(mut members) = self.told.take() else {
            return;
        };
        members.switch = self.switch.is_some();
        let change = Change {
            members,
            settled: self.served_epoch(),
            gone: Copyset(self.founders.0 & !members.founders.0),
            switch_lost: false,
        };
        self.turn(HOME, |home| Gcp::settle(home, &change));
        self.founders = members.founders;
    }

    /// A node's control plane sees that the rack goes on.
    pub(super) fn resume(&mut self, rack: &LockRack, number: u8) -> Result<(), Complaint> {
        self.node_mut(number).noted = None;
        self.act_on(rack, number, engine::resume)
    }

    /// The switch has been asked, takes the lock, and its answer arrives. An answer that is late
    /// differs in nothing from a question that is: nobody else knows whether the switch has the
    /// lock.
    pub(super) fn taken_by_switch(&mut self) {
        if self.switch.is_none() {
            return;
        }
        let place = |home: &mut LockSite| _ = home.lock(TAG, |lock, fx| lock.place_at_switch(fx));
        for ask in self.asks(place) {
            let Some(switch) = &mut self.switch else {
                return;
            };
            for answer in Rc::make_mut(switch).handle(&ask.header).iter() {
                self.asks(|home| engine::packet(home, &answer.header));
            }
        }
    }
}
