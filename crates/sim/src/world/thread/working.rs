//! What a thread of a world wants: operations are drawn, and need events until the copy in its
//! node's cache is good for them.

use super::{Aim, Around, State, Thread};
use crate::site::Found;
use crate::world::block;
use crate::world::mutation::Mutation;
use crate::world::operation::{Action, Operation};
use rackmem_proto::engine::Purpose;
use rackmem_proto::wire::{Kind, Tag};

/// Time between two operations, at most, in nanoseconds.
const THINKING: u64 = 4_000;

impl Thread {
    /// From now on it empties its node's cache.
    pub fn flush(&mut self) {
        self.target = None;
        self.judged.refused = None;
        self.operation = Some(Operation::Flush);
        self.state = State::Resting(0);
    }

    /// From now on it makes sure that what its node gave away has arrived.
    pub fn sound(&mut self) {
        self.operation = Some(Operation::Sound);
        self.state = State::Resting(0);
    }

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
            self.judged.began = around.fabric.now;
            self.judged.refused = None;
            self.judged.ticket = None;
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
                let purpose = Purpose::Hold { shared };
                self.begin(purpose, (Aim::Hold(None), None), tag, around);
            }
            Operation::Alloc(_) => {
                let there = |object: &&Tag| {
                    object.home() == tag.home()
                        && block::incarnation(**object) == block::incarnation(tag)
                };
                let (kind, aim) = match self.judged.objects.iter().find(there) {
                    Some(object) => (Kind::Free, Aim::Free(*object)),
                    None => (Kind::Alloc, Aim::Alloc),
                };
                self.begin(Purpose::Call(kind), (aim, None), tag, around);
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

    /// A writer that this node gave a block to may ask for it again until its event is over,
    /// which is when its lock is free.
    fn sound_one(&mut self, around: &mut Around<'_>) -> bool {
        let given = around.node.copies.given().next();
        match given {
            Some((requester, seq, tag)) if around.node.reaches(tag) => {
                let aim = Aim::Sound(seq, requester);
                self.begin(Purpose::Probe, (aim, None), tag, around);
                true
            }
            Some((requester, seq, _)) => {
                around.node.copies.received(requester, seq);
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
        let now = around.fabric.now;
        let found = self.client.look((tag, writes), now, around.node);
        if let Found::Copy(slot) = found {
            self.perform(tag, counter, action, slot, around);
            self.judged.work.hits += 1;
            self.finish(around);
        }
        self.follow(found, around)
    }

    /// The operation fails: the memory that it is about is gone.
    pub(super) fn gone(&mut self, around: &mut Around<'_>) {
        self.judged.work.gone += 1;
        self.judged.ticket = None;
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
        around
            .record
            .told(self.judged.ticket.take(), now, self.judged.value);
        self.judged.work.operations += 1;
        self.operation = None;
        self.attempt = 0;
        self.state = State::Resting(now + self.random.below(THINKING));
    }
}
