//! A lock when an epoch begins: what its node tells, and what its home makes of what it is told.

use super::{LockFx, NodeLock};
use crate::engine::{Change, Defect};
use crate::flowcc::Members;
use crate::gcp::{Entry, LockDirectory, Report, Reports, Steps};
use crate::wire::{Copyset, NodeId, Reason, Record, Tag};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// What a node is told of locks whose home it is, while an epoch begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Told {
    nodes: Reports,
    /// What the switch had, and in which epoch.
    switch: BTreeMap<Tag, (u32, Entry)>,
}

impl Told {
    /// A node has told this.
    pub fn node(&mut self, node: NodeId, record: Record) {
        self.nodes.note(node, record);
    }

    /// Locks of homes that groups keep.
    pub(in crate::engine) fn of_groups(&self) -> Vec<Tag> {
        let tags = self.nodes.tags();
        tags.filter(|tag| !tag.home().is_own()).collect()
    }

    /// The switch has told this.
    pub fn switch(&mut self, record: Record) {
        let (tag, epoch, entry) = Entry::from_record(record);
        self.switch.insert(tag, (epoch, entry));
    }
}

impl<S> NodeLock<S> {
    /// The rack is in a new epoch: what was under way is over. Rights, and threads inside, stay;
    /// threads that wait go on waiting. `keeps`: this node serves the homes that groups keep.
    pub fn enter_epoch(&mut self, members: Members, keeps: bool, defect: Option<Defect>) {
        // A lock of a home that is gone ends by [`NodeLock::end`].
        let all = Copyset(u32::MAX);
        let switch = members.switch && self.tag.home().is_own();
        self.blade.enter_epoch(members.epoch, all, switch);
        if !self.tag.home().is_own() {
            // What an earlier keeper knew says nothing once another one has served.
            let last = self.directory.take().filter(|_| keeps);
            let taken = || Box::new(LockDirectory::taken_over(self.blade.node(), self.tag));
            self.directory = keeps.then(|| last.unwrap_or_else(taken));
        }
        if defect == Some(Defect::SettleEarly) {
            let change = Change {
                members,
                settled: 0,
                gone: Copyset::EMPTY,
                switch_lost: false,
            };
            self.settle(&change, &Told::default(), None);
        }
    }

    /// Its home is no more.
    pub fn end(&mut self, fx: &mut impl LockFx<Seat = S>) {
        self.over = true;
        for waiting in self.line.take() {
            if let Some(seat) = waiting.seat {
                fx.send_away(seat);
            }
        }
    }

    /// What this node tells the home, of this moment.
    pub fn report(&self) -> Option<Report> {
        self.blade.reports().next().map(|(_, report)| report)
    }

    /// All have told: makes the directory's entry anew, which serves from here on. `true`: the
    /// lock's last data died with a node.
    pub fn settle(&mut self, change: &Change, told: &Told, defect: Option<Defect>) -> bool {
        let Members {
            epoch, founders, ..
        } = change.members;
        let own = self.report().map(|report| (self.blade.node(), report));
        let own = own.filter(|_| defect != Some(Defect::ForgetOwnReport));
        let Some(directory) = &mut self.directory else {
            return false;
        };
        // A lock that was made in this epoch has been served in it.
        if directory.epoch() == epoch {
            return false;
        }
        let gone = match defect {
            Some(Defect::ForgetGone) => Copyset::EMPTY,
            _ => change.gone,
        };
        let live = Copyset(founders.0 & !gone.0);
        let tell = |tag, each: &mut dyn FnMut(NodeId, Report)| {
            for (node, report) in told.nodes.of(tag).chain(own) {
                each(node, report);
            }
        };
        let switch = |tag| told.switch.get(&tag).copied();
        let since = (change.settled, gone.len());
        directory.enter_epoch(epoch, live, since, tell, switch);
        let entry = directory.entry(self.tag);
        entry.is_some_and(|(entry, _)| entry.state.reason != Reason::None)
    }

    /// All homes serve: asks for what threads wait for.
    pub fn resume(&mut self, fx: &mut impl LockFx<Seat = S>) {
        let mut steps = Steps::new();
        if fx.defect() != Some(Defect::ForgetWaiting) {
            self.blade.resume(self.tag, &mut steps);
        }
        self.follow(steps, fx);
    }
}
