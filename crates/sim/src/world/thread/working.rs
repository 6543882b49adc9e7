//! What a thread of a world wants: operations are drawn, and need events until the copy in its
//! node's cache is good for them.

use super::{Around, State, Thread};
use crate::site::{Load, Want};
use crate::world::block::{self, BLOCK_BYTES, WORDS};
use crate::world::mutation::Mutation;
use crate::world::operation::{Action, Operation};
use rackmem_proto::call::Call;
use rackmem_proto::engine::{Access, Entries, Purpose, Stored};
use rackmem_proto::flowcc::Step;
use rackmem_proto::wire::{AtomicOp, Kind, Reason, Record, Tag};

/// Time between two operations, at most, in nanoseconds.
const THINKING: u64 = 4_000;

impl Thread {
    /// From now on it empties its node's cache.
    pub fn flush(&mut self) {
        self.target = None;
        self.judged.refused = None;
        self.operation = Some(Operation::Flush);
        self.rest(0);
    }

    /// From now on it makes sure that what its node gave away has arrived.
    pub fn sound(&mut self) {
        self.operation = Some(Operation::Sound);
        self.rest(0);
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
            self.judged.told.clear();
            self.judged.number = (self.index as u64 + 1) << 40 | u64::from(self.left) << 12;
            self.judged.intends = true;
            self.client.stored = Stored::Open;
            self.brings = None;
            self.target = self.find(operation, around);
            let (node, slot) = (self.id.node, self.id.slot);
            around.fabric.tell_operation(self.target, || {
                format!("thread {node}.{slot} begins: {operation}")
            });
        }
        let Some(operation) = self.operation else {
            return false;
        };
        if let Some((tag, _)) = self.brings {
            // It was nobody's when this node gave it up.
            if around.node.is_gone(tag) {
                self.brings = None;
                self.target = None;
                self.gone(around);
                return true;
            }
            return self.bring_home(tag, around);
        }
        let target = self.target.filter(|&tag| around.node.reaches(tag));
        let want = match (operation, target) {
            (Operation::Flush, _) => match self.leaves(around) {
                Some(tag) => Want::Leave(tag),
                None => return self.end(),
            },
            // A writer that this node gave a block to may ask for it again until its event is over,
            // which is when its lock is free.
            (Operation::Sound, _) => {
                let given = around.node.copies.given().next();
                match given.map(|given| given.2) {
                    Some(tag) if around.node.reaches(tag) => Want::Ask(Purpose::Probe, (tag, 0)),
                    Some(tag) => {
                        self.arrived(tag, around);
                        return true;
                    }
                    None => return self.end(),
                }
            }
            (_, None) => {
                self.gone(around);
                return true;
            }
            (Operation::Access(_, counter, action), Some(tag)) => {
                let want = match action {
                    Action::Operate => self.operate(tag, counter, around),
                    _ if action.is_long() => self.long(tag, action.writes(), around),
                    _ => Some(Want::Copy(tag, action.writes())),
                };
                let Some(want) = want else {
                    self.used(false, around);
                    self.judged.work.in_place += 1;
                    self.finish(around);
                    return true;
                };
                want
            }
            (Operation::Hold(_, shared), Some(tag)) => {
                Want::Ask(Purpose::Hold { shared }, (tag, 0))
            }
            (Operation::Alloc(_), Some(tag)) => self.call_for(tag, around),
        };
        self.want(want, around)
    }

    /// The block that it has written leaves the cache, as the library's bring_home has it. If
    /// another node has it by now, it is read first.
    fn bring_home(&mut self, tag: Tag, around: &mut Around<'_>) -> bool {
        let cache = &around.node.cache;
        if cache.under_way(tag) {
            around.node.parked.push(self.index);
            return false;
        }
        let want = match cache.copy(tag) {
            Some(_) => Want::Leave(tag),
            None => Want::Copy(tag, false),
        };
        self.want(want, around)
    }

    /// A block that is here, and that no event is about.
    fn leaves(&self, around: &Around<'_>) -> Option<Tag> {
        let cache = &around.node.cache;
        cache.tags().find(|tag| !cache.under_way(*tag))
    }

    /// A block of a long range. `None`: home's memory is here, and good for it. Where no packet
    /// holds a whole block, it goes by way of the cache.
    fn long(&mut self, tag: Tag, writes: bool, around: &mut Around<'_>) -> Option<Want> {
        let home = around.node.home_of(tag);
        let (here, fits) = (tag.home().is_of(self.id.node), self.config.segment >= WORDS);
        match (here, writes) {
            (true, false) if home.has_current(tag) => return None,
            (true, true) if home.has_alone(tag) => return None,
            _ if here || !fits => return Some(Want::Copy(tag, writes)),
            _ => {}
        }
        let block = vec![self.judged.number; WORDS];
        self.client.operand = Load::Block(block.into());
        Some(Want::Long(tag, writes))
    }

    /// A counter that is incremented at its home. `None`: home's memory is here, and all that there
    /// is of its block. What groups keep goes by way of the cache.
    fn operate(&mut self, tag: Tag, counter: usize, around: &mut Around<'_>) -> Option<Want> {
        if !tag.home().is_own() {
            return Some(Want::Copy(tag, true));
        }
        if tag.home().is_of(self.id.node) {
            let alone = around.node.home_of(tag).has_alone(tag);
            return (!alone).then_some(Want::Copy(tag, true));
        }
        let add = AtomicOp::Add {
            mask: u64::MAX,
            n: 1,
        };
        let bytes = add.to_bytes(block::word_of(counter) as u32);
        self.client.operand = Load::Block(block::of_line(&bytes));
        Some(Want::Operate(tag))
    }

    /// Gives an object back, or asks for one. Until it is answered it is the same call.
    fn call_for(&mut self, tag: Tag, around: &mut Around<'_>) -> Want {
        let (stream, number) = (self.id.slot, self.call + 1);
        let call = Call { stream, number }.to_offset();
        let home = tag.home().start();
        let mine = self.judged.objects.iter().copied();
        let mut there = mine.filter(|object| {
            object.home() == tag.home() && block::incarnation(*object) == block::incarnation(tag)
        });
        match there.next() {
            Some(tag) => {
                around.oracle.take_back(tag);
                let word = BLOCK_BYTES.into();
                self.client.operand = Load::Records(vec![Record { tag, word }]);
                Want::Ask(Purpose::Call(Kind::Free), (home, call))
            }
            None => {
                let bytes = Tag(home.0 | u64::from(BLOCK_BYTES));
                Want::Ask(Purpose::Call(Kind::Alloc), (bytes, call))
            }
        }
    }

    /// Nothing is left to do.
    fn end(&mut self) -> bool {
        self.operation = None;
        self.state = State::Finished;
        false
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
        let kept = matches!(operation, Operation::Access(..) | Operation::Hold(..));
        if let (true, Some(group)) = (kept, self.config.group(number)) {
            let blocks = around.node.part.in_place.blocks_of(group);
            let there = blocks.bytes > 0 || self.config.removals == 0;
            let tag = Tag(block::kept(number, group).0 + blocks.base);
            return there.then_some(tag);
        }
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

    /// The block that an event is about.
    pub(super) fn about(&self, event: &Access) -> Tag {
        match event.purpose() {
            Purpose::Call(_) => self.target.unwrap_or(event.tag()),
            _ => event.tag(),
        }
    }

    /// The operation itself, on the copy that is cached here or in home's memory.
    pub(super) fn used(&mut self, cached: bool, around: &mut Around<'_>) {
        if self.brings.is_some() {
            return;
        }
        self.wrote = around.node.view.epoch;
        if let (Some(Operation::Access(_, counter, action)), Some(tag)) =
            (self.operation, self.target)
        {
            self.perform(tag, counter, action, cached, around);
        }
    }

    /// The event has happened.
    pub(super) fn happened(&mut self, event: &Access, around: &mut Around<'_>) {
        let grant = match self.client.engine.step() {
            Step::Held(grant) => Some(grant),
            _ => None,
        };
        match (event.purpose(), grant, &self.client.operand) {
            (Purpose::Call(Kind::Fetch), Some(grant), Load::Block(words)) if grant.has_data() => {
                self.judged.work.fetched += 1;
                let words = words.clone();
                self.whole((event.tag(), false), &words, around.oracle, around.record);
                self.finish(around);
            }
            (Purpose::Call(Kind::Fetch), ..) => {
                // Home has not what the block holds: it is read like any other.
                if let Some(Operation::Access(.., action)) = &mut self.operation {
                    *action = Action::Read;
                }
            }
            (Purpose::Call(Kind::Store), ..) => {
                self.judged.work.stored += 1;
                self.finish(around);
            }
            (Purpose::Call(Kind::Operate), Some(grant), _) => {
                self.judged.work.operated += 1;
                if let (Some(old), Some(told)) = (grant.operated(), self.judged.told.first_mut()) {
                    told.1 = old + 1;
                }
                self.finish(around);
            }
            (Purpose::Call(Kind::Alloc), Some(grant), _) => {
                self.call += 1;
                self.given(grant.tag, around);
                self.finish(around);
            }
            (Purpose::Call(Kind::Free), Some(grant), Load::Records(objects)) => {
                let object = objects[0].tag;
                self.call += 1;
                self.taken_back(object, grant.copyset);
                self.finish(around);
            }
            (Purpose::Probe, ..) => {
                around.oracle.grant(event.tag());
                self.arrived(event.tag(), around);
            }
            (Purpose::EvictClean | Purpose::EvictDirty, ..)
                if self.brings == Some((event.tag(), false)) =>
            {
                self.brings = Some((event.tag(), true));
                self.finish(around);
            }
            (Purpose::Call(_) | Purpose::EvictClean | Purpose::EvictDirty, ..) => {}
            _ => self.finish(around),
        }
    }

    /// It cannot happen.
    pub(super) fn failed(&mut self, event: &Access, reason: Reason, around: &mut Around<'_>) {
        let (tag, purpose) = (self.about(event), event.purpose());
        match (reason, purpose) {
            // An eviction ends, and the copy is nobody's.
            (Reason::NoMemory | Reason::Refused, _)
                if around.oracle.is_removed(tag) && !purpose.evicts() =>
            {
                around.node.seen.refused += 1;
                match purpose {
                    Purpose::Probe => self.arrived(tag, around),
                    // The store says so.
                    _ => {
                        self.brings = None;
                        self.target = None;
                        self.gone(around);
                    }
                }
            }
            (Reason::Full, _) => {
                self.call += 1;
                self.finish(around);
            }
            (Reason::Lost, Purpose::Probe) => self.arrived(tag, around),
            (
                Reason::Lost,
                Purpose::Read
                | Purpose::Write
                | Purpose::Hold { .. }
                | Purpose::Call(Kind::Fetch | Kind::Store | Kind::Operate),
            ) => {
                self.judged.work.lost += 1;
                let accept = Purpose::Call(Kind::AcceptLoss);
                self.want(Want::Ask(accept, (tag, 0)), around);
            }
            _ => {
                let detail = format!("{} was told {reason:?}", self.describe());
                self.complain(tag, detail);
                self.back_off(around);
            }
        }
    }

    /// It is to be asked for again, as the same call.
    pub(super) fn asks_again(&mut self, event: &Access) {
        let memory = [Kind::Alloc, Kind::Free].contains(&event.purpose().kind());
        let renumbers = self.config.mutation == Some(Mutation::RenumberCalls);
        self.call += u32::from(memory && renumbers);
    }

    /// What this node gave of a block has arrived, or nobody waits for it.
    fn arrived(&mut self, tag: Tag, around: &mut Around<'_>) {
        let given = around.node.copies.given().find(|given| given.2 == tag);
        if let Some((requester, seq, _)) = given {
            around.node.copies.received(requester, seq);
        }
    }

    /// The operation fails: the memory that it is about is gone.
    pub(super) fn gone(&mut self, around: &mut Around<'_>) {
        self.judged.work.gone += 1;
        self.judged.told.clear();
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
        for (ticket, value) in self.judged.told.drain(..) {
            around.record.told(ticket, now, value);
        }
        self.judged.work.operations += 1;
        self.operation = None;
        self.attempt = 0;
        let pause = self.random.below(THINKING);
        self.rest(now + pause);
    }
}
