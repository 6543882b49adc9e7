//! What a thread wants of its node's cache: a hit, or a plan to make one.

use super::{Aim, Around, Complaint, Done, Running, State, Thread};
use crate::world::block;
use crate::world::mutation::Mutation;
use crate::world::operation::{Action, Operation};
use rackmem_proto::call::Call;
use rackmem_proto::engine::{Access, Plan, Purpose};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::{Kind, Tag};

/// Time between two operations, at most, in nanoseconds.
const THINKING: u64 = 4_000;

impl Thread {
    pub(super) fn attempt(&mut self, around: &mut Around<'_>) -> bool {
        if self.operation.is_none() {
            if self.left == 0 {
                self.state = State::Finished;
                return false;
            }
            if !self.may_begin(around) {
                return false;
            }
            self.left -= 1;
            let operation = Operation::draw(&self.config, &mut self.random);
            self.operation = Some(operation);
            self.began = around.fabric.now;
            self.refused = None;
            self.ticket = None;
            self.target = self.find(operation, around);
            let (node, slot) = (self.id.node, self.id.slot);
            around.fabric.tell_operation(self.target, || {
                format!("thread {node}.{slot} begins: {operation}")
            });
        }
        let Some(operation) = self.operation else {
            return false;
        };
        if operation == Operation::Flush {
            return self.flush_one(around);
        }
        if operation == Operation::Sound {
            return self.sound_one(around);
        }
        let Some(tag) = self.target.filter(|&tag| around.node.reaches(tag)) else {
            self.gone(around);
            return true;
        };
        match operation {
            Operation::Access(_, counter, action) => {
                return self.access(tag, counter, action, around);
            }
            Operation::Hold(_, shared) => {
                self.begin(Purpose::Hold { shared }, Aim::Hold(None), tag, around);
            }
            Operation::Alloc(_) => {
                let there = |object: &&Tag| {
                    object.home() == tag.home()
                        && block::incarnation(**object) == block::incarnation(tag)
                };
                let (kind, aim) = match self.objects.iter().find(there) {
                    Some(object) => (Kind::Free, Aim::Free(*object)),
                    None => (Kind::Alloc, Aim::Alloc),
                };
                self.begin(Purpose::Call(kind), aim, tag, around);
            }
            Operation::Flush | Operation::Sound => {}
        }
        true
    }

    /// The block of an operation, as far as its node knows who is there.
    fn find(&self, operation: Operation, around: &Around<'_>) -> Option<Tag> {
        let homes = self.config.homes();
        let (home, number) = match operation {
            Operation::Access(number, ..) | Operation::Hold(number, _) => {
                (block::home(number, homes), number)
            }
            Operation::Alloc(home) => (home, 0),
            Operation::Flush | Operation::Sound => return None,
        };
        let mut incarnation = around.node.view.incarnation(home)?;
        if self.config.mutation == Some(Mutation::ForgetIncarnation) {
            incarnation = 1;
        }
        match operation {
            Operation::Alloc(_) => Some(Tag(
                block::tag(0, 1, incarnation).offset() | u64::from(home) << 48
            )),
            _ => Some(block::tag(number, homes, incarnation)),
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

    /// A writer that this node gave a block to may ask for it again until its event is over, which is when its lock is
    /// free.
    fn sound_one(&mut self, around: &mut Around<'_>) -> bool {
        match around.node.given_away() {
            Some((requester, seq, tag)) if around.node.reaches(tag) => {
                self.begin(Purpose::Probe, Aim::Sound(seq, requester), tag, around);
                true
            }
            Some((requester, seq, _)) => {
                around.node.forget_given(requester, seq);
                true
            }
            None => {
                self.operation = None;
                self.state = State::Finished;
                false
            }
        }
    }

    fn access(
        &mut self,
        tag: Tag,
        counter: usize,
        action: Action,
        around: &mut Around<'_>,
    ) -> bool {
        let writes = action != Action::Read;
        let cache = &mut around.node.cache;
        if let Some(slot) = cache.find(tag)
            && (!writes || cache.slot(slot).status == LocalStatus::Modified)
        {
            cache.touch(slot);
            self.perform(tag, counter, action, slot, around);
            self.work.hits += 1;
            self.finish(around);
            return true;
        }
        match cache.plan(tag, writes) {
            Plan::Wait | Plan::WaitForRoom => {
                self.state = State::Parked;
                around.node.park(self.index);
                false
            }
            Plan::Begin(slot, purpose) => {
                self.begin(purpose, Aim::Slot(slot), tag, around);
                true
            }
            Plan::Evict(slot, old) => self.evict(slot, old, around),
            Plan::Hit(_) => true,
        }
    }

    /// The operation itself, on words that this node may use at this instant.
    pub(super) fn perform(
        &mut self,
        tag: Tag,
        counter: usize,
        action: Action,
        slot: usize,
        around: &mut Around<'_>,
    ) {
        if around.node.lease.alone {
            return self.perform_alone((tag, counter), action, slot, around);
        }
        self.done = Some(Done { tag, stale: None });
        let words = &mut around.node.cache.slot(slot).words;
        if action != Action::Write && !around.oracle.agrees(tag, words) {
            let saw = block::counters(words);
            let expected = around.oracle.expected(tag);
            let (node, thread) = (self.id.node, self.id.slot);
            self.complaint.get_or_insert(Complaint {
                promise: ("data value", "§5.1.2"),
                tag,
                detail: format!(
                    "{action:?} at {node}.{thread} saw {saw:?}, memory is {expected:?}"
                ),
            });
        }
        let (client, place, began) = (self.index as u32, (tag, counter), self.began);
        (self.ticket, self.value) = match action {
            Action::Read => {
                around.fabric.note(self.id.node, tag, "read");
                let value = words[block::word_of(counter)];
                let oracle = &*around.oracle;
                (around.record.read(client, oracle, place, began), value)
            }
            Action::Write => {
                around.fabric.note(self.id.node, tag, "written");
                let value = around.oracle.write(tag, counter, words);
                let oracle = &*around.oracle;
                let ticket = around.record.write(client, oracle, place, began, value);
                (ticket, value)
            }
            Action::Add => {
                around.fabric.note(self.id.node, tag, "added to");
                let value = around.oracle.add(tag, counter, words);
                let oracle = &*around.oracle;
                (around.record.add(client, oracle, place, began), value)
            }
        };
    }

    /// The operation fails: the memory that it is about is gone.
    pub(super) fn gone(&mut self, around: &mut Around<'_>) {
        self.work.gone += 1;
        self.ticket = None;
        self.finish(around);
    }

    /// The operation is over, and its client is told.
    pub(super) fn conclude(&mut self, around: &mut Around<'_>) {
        let now = around.fabric.now;
        let (node, slot) = (self.id.node, self.id.slot);
        if let Some(operation) = self.operation {
            let retries = self.attempt;
            around.fabric.tell_operation(self.target, || {
                format!("thread {node}.{slot} is done: {operation}, after {retries} back-offs")
            });
        }
        around.record.told(self.ticket.take(), now, self.value);
        self.work.operations += 1;
        self.operation = None;
        self.attempt = 0;
        self.state = State::Resting(now + self.random.below(THINKING));
    }

    pub(super) fn begin(&mut self, purpose: Purpose, aim: Aim, tag: Tag, around: &mut Around<'_>) {
        // Until it is answered it is the same call.
        let (stream, number) = (self.id.slot, self.call + 1);
        let call = Call { stream, number }.to_offset();
        let home = Tag(u64::from(tag.home()) << 48);
        let (at, offset) = match aim {
            Aim::Alloc => (Tag(home.0 | u64::from(block::BLOCK_BYTES)), call),
            Aim::Free(object) => {
                around.oracle.take_back(object);
                (home, call)
            }
            _ => (tag, 0),
        };
        let now = around.fabric.now;
        let (access, output) = Access::begin(purpose, &mut self.engine, now, (at, offset, 0));
        self.state = State::Busy(Running {
            access,
            aim,
            tag,
            seq: output.header.seq,
        });
        self.transmit(&output, around);
    }

    /// Begins to empty a slot, or finds it empty.
    pub(super) fn evict(&mut self, slot: usize, tag: Tag, around: &mut Around<'_>) -> bool {
        let status = around.node.cache.slot(slot).status;
        if status == LocalStatus::Shared && self.config.mutation == Some(Mutation::DropSilently) {
            around.node.cache.install(slot, tag, LocalStatus::Invalid);
        }
        match Purpose::to_evict(around.node.cache.slot(slot).status) {
            Some(purpose) => self.begin(purpose, Aim::Slot(slot), tag, around),
            None => {
                around.node.release(slot, around.fabric);
                self.state = State::Resting(around.fabric.now);
            }
        }
        true
    }
}
