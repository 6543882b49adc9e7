//! Members of the rack have died or come: a node's part in making the directories of locks anew.
//!
//! The steps are those of a rebuild ([`crate::host::rebuilding`]), whose lists of copies carry the reports on locks too. Rights,
//! and threads inside, stay; threads that wait go on waiting, and ask again when every directory is made.

use super::cell::{Cell, State};
use super::outbox::Outbox;
use super::table::{Locks, Told};
use rackmem_fabric::{Net, Nobody};
use rackmem_proto::engine::{Change, LOCKS, numbered};
use rackmem_proto::flowcc::Members;
use rackmem_proto::gcp::{Entry, Report, Steps};
use rackmem_proto::wire::{Copyset, NodeId, Reason, Record, Tag};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

/// What a surviving switch tells of a lock that it served.
pub(crate) fn switch_record(tag: Tag, epoch: u32, entry: Entry) -> Record {
    numbered(LOCKS, entry.to_record(tag, epoch))
}

impl State {
    /// What was under way is over.
    fn enter_epoch(&mut self, epoch: u32, live: Copyset, switch: bool) {
        self.blade.enter_epoch(epoch, live, switch);
        self.pace.rest();
    }

    /// Its home is no more.
    fn end(&mut self, out: &mut Outbox) {
        self.over = true;
        self.watchers.call(out);
        for seat in self.first.take().into_iter().chain(self.queue.take()) {
            seat.send_away();
            out.wake(seat);
        }
    }

    /// What this node tells of the lock.
    fn report(&self) -> Option<Report> {
        self.blade.reports().next().map(|(_, report)| report)
    }

    /// Makes the directory's entry anew from what nodes have told. `true`: the lock's last data died with a node.
    fn settle(&mut self, cell: &Cell, change: &Change, told: &Told) -> bool {
        let Members {
            epoch, founders, ..
        } = change.members;
        let own = self.report().map(|report| (cell.tag.home(), report));
        let Some(directory) = &mut self.directory else {
            return false;
        };
        // A lock that was made in this epoch has been served in it.
        if directory.epoch() == epoch {
            return false;
        }
        let live = Copyset(founders.0 & !change.gone.0);
        let tell = |tag, each: &mut dyn FnMut(NodeId, Report)| {
            for (node, report) in told.nodes.of(tag).chain(own) {
                each(node, report);
            }
        };
        let switch = |tag| told.switch.get(&tag).copied();
        directory.enter_epoch(epoch, live, change.gone.len(), tell, switch);
        let entry = directory.entry(cell.tag);
        entry.is_some_and(|(entry, _)| entry.state.reason != Reason::None)
    }

    /// All directories are made: asks for what threads wait for.
    fn resume(&mut self, cell: &Cell, out: &mut Outbox) {
        let mut steps = Steps::new();
        self.blade.resume(cell.tag, &mut steps);
        self.follow(cell, steps, out);
    }
}

impl Locks {
    /// The rack is in a new epoch: packets of the last one do nothing here any more.
    pub fn enter(&self, members: Members) {
        // Whatever could be late is of the last epoch.
        *self.floors() = Default::default();
        for cell in self.all() {
            let (epoch, switch) = (members.epoch, members.switch);
            let live = members.founders.with(cell.tag.home());
            self.look(&cell, |state| state.enter_epoch(epoch, live, switch));
        }
    }

    /// Locks whose home is not what it was are gone, unless they have been made since it is back. What nodes told for an epoch that was cut off is told again.
    pub fn forget(&self, gone: Copyset) {
        *self.told() = Told::default();
        for shard in &self.shards {
            let mut cells = shard.write().unwrap_or_else(PoisonError::into_inner);
            cells.retain(|tag, cell| {
                let stays = !gone.contains(tag.home()) || self.is_current(*tag);
                if !stays {
                    if !self.arrays.has(*tag) {
                        self.known.fetch_sub(1, Relaxed);
                    }
                    let mut out = Outbox::default();
                    cell.turn().end(&mut out);
                    out.finish();
                }
                stays
            });
        }
        let freed = self
            .arrays
            .forget(|tag| gone.contains(tag.home()) && !self.is_current(tag));
        self.known.fetch_sub(freed, Relaxed);
    }

    /// What this node tells the homes of other nodes' locks.
    pub fn reports(&self) -> Vec<Record> {
        let report = |cell: Arc<Cell>| {
            let report = self.look(&cell, |state| state.report());
            report.map(|report| report.records(cell.tag))
        };
        let abroad = self.all().into_iter().filter(|c| c.tag.home() != self.me);
        abroad.filter_map(report).flatten().collect()
    }

    /// A node has told something of a lock.
    pub fn note(&self, from: NodeId, record: Record) {
        self.told().nodes.note(from, record);
    }

    /// The switch has told what it had of a lock.
    pub fn note_switch(&self, record: Record) {
        let (tag, epoch, entry) = Entry::from_record(record);
        self.told().switch.insert(tag, (epoch, entry));
    }

    /// Makes the entries of locks whose home this is anew. Says how many locks' last data died with a node.
    pub fn settle(&self, change: &Change) -> u64 {
        let told = std::mem::take(&mut *self.told());
        let cells = self.all().into_iter();
        let lost = cells.filter(|cell| self.look(cell, |state| state.settle(cell, change, &told)));
        lost.count() as u64
    }

    /// The rack goes on.
    pub fn resume(&self, net: &dyn Net) {
        for cell in self.all() {
            let out = self.turn(&cell, |state, out| state.resume(&cell, out));
            self.send(out, net, &mut Nobody);
        }
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
