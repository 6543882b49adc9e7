//! What a thread wants of its node's cache: a hit, or a plan to make one.

use super::{Around, Complaint, Purpose, Running, Stage, State, Thread};
use crate::world::block;
use crate::world::cache::Plan;
use crate::world::mutation::Mutation;
use crate::world::operation::{Action, Operation};
use rackmem_proto::flowcc::{Event, LocalStatus};
use rackmem_proto::wire::{Kind, Tag};

/// Time between two operations, at most, in nanoseconds.
const THINKING: u64 = 4_000;

/// The slot of an event that needs none.
const NO_SLOT: usize = usize::MAX;

impl Thread {
    pub(super) fn attempt(&mut self, around: &mut Around<'_>) -> bool {
        if self.operation.is_none() {
            if self.left == 0 {
                self.state = State::Finished;
                return false;
            }
            self.left -= 1;
            self.operation = Some(Operation::draw(&self.config, &mut self.random));
        }
        match self.operation {
            Some(Operation::Access(block, counter, action)) => {
                self.access(block, counter, action, around)
            }
            Some(Operation::Hold(block, shared)) => {
                let tag = block::tag(block, self.config.nodes);
                self.begin(Purpose::Hold { shared }, NO_SLOT, tag, around);
                true
            }
            Some(Operation::Alloc(home)) => {
                let tag = Tag(u64::from(home) << 48);
                self.begin(Purpose::Alloc, NO_SLOT, tag, around);
                true
            }
            Some(Operation::Flush) => self.flush_one(around),
            None => false,
        }
    }

    fn flush_one(&mut self, around: &mut Around<'_>) -> bool {
        match around.node.cache.reserve_any() {
            Some((slot, tag)) => self.evict(slot, tag, around),
            None => {
                self.operation = None;
                self.state = State::Finished;
                false
            }
        }
    }

    fn access(
        &mut self,
        block: u32,
        counter: usize,
        action: Action,
        around: &mut Around<'_>,
    ) -> bool {
        let tag = block::tag(block, self.config.nodes);
        let writes = action != Action::Read;
        let cache = &mut around.node.cache;
        if let Some(slot) = cache.find(tag)
            && (!writes || cache.slot(slot).status == LocalStatus::Modified)
        {
            cache.touch(slot);
            self.perform(block, counter, action, slot, around);
            self.work.hits += 1;
            self.finish(around.fabric.now);
            return true;
        }
        match cache.plan(tag, writes) {
            Plan::Wait => {
                self.state = State::Parked;
                around.node.park(self.index);
                false
            }
            Plan::Fill(slot) => {
                let status = if writes {
                    LocalStatus::Modified
                } else {
                    LocalStatus::Shared
                };
                self.begin(Purpose::Fill(status), slot, tag, around);
                true
            }
            Plan::Upgrade(slot) => {
                self.begin(Purpose::Upgrade, slot, tag, around);
                true
            }
            Plan::Evict(slot, old) => self.evict(slot, old, around),
        }
    }

    /// The operation itself, on words that this node may use at this instant.
    pub(super) fn perform(
        &mut self,
        block: u32,
        counter: usize,
        action: Action,
        slot: usize,
        around: &mut Around<'_>,
    ) {
        let tag = block::tag(block, self.config.nodes);
        let words = &mut around.node.cache.slot(slot).words;
        if action != Action::Write && !around.oracle.agrees(block, words) {
            let saw = block::counters(words);
            let expected = around.oracle.expected(block);
            let (node, thread) = (self.id.node, self.id.slot);
            self.complaint.get_or_insert(Complaint {
                promise: ("data value", "§5.1.2"),
                tag,
                detail: format!(
                    "{action:?} at {node}.{thread} saw {saw:?}, memory is {expected:?}"
                ),
            });
        }
        match action {
            Action::Read => around.fabric.note(self.id.node, tag, "read"),
            Action::Write => {
                around.oracle.write(block, counter, words);
                around.fabric.note(self.id.node, tag, "written");
            }
            Action::Add => {
                around.oracle.add(block, counter, words);
                around.fabric.note(self.id.node, tag, "added to");
            }
        }
    }

    pub(super) fn finish(&mut self, now: u64) {
        self.work.operations += 1;
        self.operation = None;
        self.attempt = 0;
        self.state = State::Resting(now + self.random.below(THINKING));
    }

    pub(super) fn begin(
        &mut self,
        purpose: Purpose,
        slot: usize,
        tag: Tag,
        around: &mut Around<'_>,
    ) {
        let kind = match purpose {
            Purpose::Fill(LocalStatus::Modified) => Kind::WriteMiss,
            Purpose::Fill(_) => Kind::ReadMiss,
            Purpose::Upgrade => Kind::WriteShared,
            Purpose::EvictClean => Kind::EvictShared,
            Purpose::EvictDirty => Kind::EvictModified,
            Purpose::Hold { shared: true } => Kind::LockRead,
            Purpose::Hold { shared: false } => Kind::LockWrite,
            Purpose::Alloc => Kind::Alloc,
        };
        let event = Event {
            kind,
            tag,
            offset: u32::from(kind == Kind::Alloc),
            reply_port: 0,
        };
        let output = self.engine.begin(around.fabric.now, event);
        self.state = State::Busy(Running {
            purpose,
            slot,
            tag,
            seq: output.header.seq,
            stage: Stage::Acquiring,
        });
        around.fabric.send(&output, &[]);
    }

    /// Begins to empty a slot, or finds it empty.
    pub(super) fn evict(&mut self, slot: usize, tag: Tag, around: &mut Around<'_>) -> bool {
        let purpose = match around.node.cache.slot(slot).status {
            LocalStatus::Shared if self.config.mutation == Some(Mutation::DropSilently) => {
                around.node.cache.install(slot, tag, LocalStatus::Invalid);
                None
            }
            LocalStatus::Shared => Some(Purpose::EvictClean),
            LocalStatus::Modified => Some(Purpose::EvictDirty),
            LocalStatus::Invalid => None,
        };
        match purpose {
            Some(purpose) => self.begin(purpose, slot, tag, around),
            None => {
                around.node.release(slot, around.fabric);
                self.state = State::Resting(around.fabric.now);
            }
        }
        true
    }
}
