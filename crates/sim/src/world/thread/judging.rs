//! What threads of a world find is judged: what they read and write by the memory that the rack is
//! one of, locks, memory that is given out, refusals without end, and what clients are told.

use super::{Around, State, Thread, Work};
use crate::invariants::{LiveEvent, no_starvation};
use crate::world::block::{self, BLOCK_BYTES, COUNTERS};
use crate::world::checks::GIVEN_ONCE;
use crate::world::node::Condition;
use crate::world::operation::{Action, Operation};
use crate::world::oracle::Oracle;
use crate::world::record::{Record, Ticket};
use rackmem_proto::engine::Access;
use rackmem_proto::wire::{Copyset, Tag};

/// Something that a thread must never see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// The promise that is broken, and where the paper makes it.
    pub promise: (&'static str, &'static str),
    /// About which block.
    pub tag: Tag,
    /// What was seen.
    pub detail: String,
}

/// What an operation has done and not told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// To which block.
    pub tag: Tag,
    /// Of a read: how it differs from what the rack has.
    pub stale: Option<String>,
}

/// What a thread has done and found, for figures and for the judge.
#[derive(Default)]
pub struct Judged {
    /// What it has done.
    pub work: Work,
    /// The first thing it saw that cannot be.
    pub complaint: Option<Complaint>,
    /// What its operation has done, if anything; and whether the lease held when it began.
    pub(super) done: Option<Done>,
    pub(super) held: bool,
    /// When its operation began, its places in the record, and what it read or wrote.
    pub(super) began: u64,
    pub(super) told: Vec<(Option<Ticket>, u64)>,
    /// What its operation stores if that is a whole block, and nothing else ever; and whether it
    /// has not been stored yet.
    pub(super) number: u64,
    pub(super) intends: bool,
    /// The block that it was refused after everything had calmed down, how often others had been
    /// granted it by then, and how often it was.
    pub(super) refused: Option<(Tag, u64)>,
    pub(super) retries: u64,
    /// Times that one operation was refused after everything had calmed down, at most.
    pub worst: u64,
    pub(super) earlier_retransmissions: u64,
    /// Memory that it has been given.
    pub objects: Vec<Tag>,
}

impl Thread {
    /// Whether nothing is left to do or to be acknowledged.
    pub fn idle(&self) -> bool {
        self.dead || self.state == State::Finished && self.client.engine.can_unlock()
    }

    /// Whether an event that it has left behind is still to be ended or acknowledged.
    pub fn unlocks(&self) -> bool {
        !self.client.engine.can_unlock()
    }

    /// Whether it is between two operations, or will begin none any more.
    pub fn between(&self) -> bool {
        self.dead || self.operation.is_none()
    }

    /// How often it has sent something again.
    pub fn retransmissions(&self) -> u64 {
        self.judged.earlier_retransmissions + self.client.engine.retransmissions()
    }

    /// The block whose slot its event has: on its way from here, or to here.
    pub fn moving(&self) -> Option<Tag> {
        let moves = |event: &Access| event.is_leaving() || event.purpose().fetches();
        let event = self.client.event.filter(moves);
        event.map(|event| event.tag()).filter(|_| !self.dead)
    }

    /// The blocks that its events are about.
    pub fn about_blocks(&self) -> impl Iterator<Item = Tag> {
        let event = self.client.event.map(|event| event.tag());
        event.into_iter().chain(self.live().map(|event| event.tag))
    }

    /// The events that may hold a lock.
    pub fn live(&self) -> impl Iterator<Item = LiveEvent> {
        LiveEvent::of(&self.client)
    }

    /// What it is doing, for a violation.
    pub fn describe(&self) -> String {
        let (node, slot) = (self.id.node, self.id.slot);
        let unlock = if self.client.engine.can_unlock() {
            ""
        } else {
            ", its unlock is unanswered"
        };
        format!(
            "{node}.{slot} {:?} {:?}{unlock}",
            self.operation, self.state
        )
    }

    /// The operation itself, on words that this node may use at this instant.
    pub(super) fn perform(
        &mut self,
        tag: Tag,
        counter: usize,
        action: Action,
        cached: bool,
        around: &mut Around<'_>,
    ) {
        if around.node.lease.alone {
            return self.perform_alone((tag, counter), action, cached, around);
        }
        self.judged.done = Some(Done { tag, stale: None });
        let words = around.node.words(tag, cached);
        if around.oracle.is_removed(tag) {
            // Nobody is promised anything, and nobody keeps it.
            if action.writes() {
                words[block::word_of(counter)] += 1 << 32;
            }
            around.node.seen.unheard += 1;
            self.judged.told.clear();
            return;
        }
        if action.looks() && !around.oracle.agrees(tag, words) {
            let saw = block::counters(words);
            let expected = around.oracle.expected(tag);
            let (node, thread) = (self.id.node, self.id.slot);
            self.judged.complaint.get_or_insert(Complaint {
                promise: ("data value", "§5.1.2"),
                tag,
                detail: format!(
                    "{action:?} at {node}.{thread} saw {saw:?}, memory is {expected:?}"
                ),
            });
        }
        let (client, place, began) = (self.index as u32, (tag, counter), self.judged.began);
        let told = match action {
            Action::Fetch => {
                around.fabric.note(self.id.node, tag, "read");
                let words = words.clone();
                return self.whole((tag, false), &words, around.oracle, around.record);
            }
            Action::Store => {
                around.fabric.note(self.id.node, tag, "written");
                words.fill(self.judged.number);
                let words = words.clone();
                return self.stored(tag, &words, around.oracle, around.record);
            }
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
            Action::Add | Action::Operate => {
                around.fabric.note(self.id.node, tag, "added to");
                let value = around.oracle.add(tag, counter, words);
                let oracle = &*around.oracle;
                (around.record.add(client, oracle, place, began), value)
            }
        };
        self.judged.told = vec![told];
    }

    /// A block is in place as its operation writes it, here or at its home, at this moment.
    /// A second time it is nobody's write, and no part of the record.
    pub fn stored(&mut self, tag: Tag, words: &[u64], oracle: &mut Oracle, record: &mut Record) {
        oracle.store(tag, words);
        let number = self.judged.number;
        if words.first() == Some(&number) && std::mem::take(&mut self.judged.intends) {
            self.whole((tag, true), words, oracle, record);
        }
    }

    /// Its operation has been done at the home of its counter, at this moment, which it may not
    /// live to be told. A second time it is nobody's: the counter is not what it must be then.
    pub fn operated(&mut self, tag: Tag, words: &[u64], oracle: &mut Oracle, record: &mut Record) {
        if !std::mem::take(&mut self.judged.intends) {
            return;
        }
        let (before, now) = (oracle.expected(tag), block::counters(words));
        oracle.store(tag, words);
        self.judged.done = Some(Done { tag, stale: None });
        let (client, began) = (self.index as u32, self.judged.began);
        let changed = (0..COUNTERS).find(|counter| before[*counter] != now[*counter]);
        let told = changed.map(|counter| {
            let ticket = record.add(client, oracle, (tag, counter), began);
            (ticket, now[counter])
        });
        self.judged.told = told.into_iter().collect();
    }

    /// All counters of a block have been read or written.
    pub(super) fn whole(
        &mut self,
        (tag, written): (Tag, bool),
        words: &[u64],
        oracle: &Oracle,
        record: &mut Record,
    ) {
        self.judged.done = Some(Done { tag, stale: None });
        let (client, began) = (self.index as u32, self.judged.began);
        let counters = block::counters(words).into_iter().enumerate();
        let told = counters.map(|(counter, value)| {
            let place = (tag, counter);
            let ticket = match written {
                true => record.write(client, oracle, place, began, value),
                false => record.read(client, oracle, place, began),
            };
            (ticket, value)
        });
        self.judged.told = told.collect();
    }

    /// Carries an operation out where nobody else has the block that it is about,
    /// or wants it from here.
    pub(super) fn perform_alone(
        &mut self,
        (tag, counter): (Tag, usize),
        action: Action,
        cached: bool,
        around: &mut Around<'_>,
    ) {
        let words = around.node.words(tag, cached);
        let expected = around.oracle.expected(tag);
        let saw = block::counters(words);
        let stale = action.looks() && saw != expected;
        if action.writes() {
            words[block::word_of(counter)] += 1;
        }
        self.judged.work.alone += 1;
        self.judged.work.stale += u64::from(stale);
        let stale = stale.then(|| format!("{action:?} saw {saw:?}, memory is {expected:?}"));
        self.judged.done = Some(Done { tag, stale });
        self.judged.told.clear();
    }

    /// What it has written to a block whose writes survive is home.
    pub(super) fn promised(&mut self, tag: Tag, around: &Around<'_>) {
        let Some(Operation::Access(_, counter, _)) = self.operation else {
            return;
        };
        if around.oracle.is_removed(tag) {
            return;
        }
        let floor = around.oracle.floor(tag)[counter % COUNTERS];
        let lost = self.judged.told.iter().find(|(_, value)| *value > floor);
        if let Some((_, value)) = lost {
            self.judged.complaint.get_or_insert(Complaint {
                promise: (
                    "a write that survives is home when it is told",
                    "ABD as home",
                ),
                tag,
                detail: format!("{}: wrote {value}, home is {floor}", self.describe()),
            });
        }
    }

    pub(super) fn complain(&mut self, tag: Tag, detail: String) {
        self.judged.complaint.get_or_insert(Complaint {
            promise: ("a granted event is served", "§5.1.1"),
            tag,
            detail,
        });
    }

    fn misgiven(&mut self, tag: Tag, how: &str) {
        self.judged.complaint.get_or_insert(Complaint {
            promise: GIVEN_ONCE,
            tag,
            detail: format!("{}: memory {how}", self.describe()),
        });
    }

    fn starves(&mut self, tag: Tag) {
        let detail = format!(
            "{} was refused {} times",
            self.describe(),
            self.judged.retries
        );
        self.judged.complaint.get_or_insert(Complaint {
            promise: (no_starvation::NAME, no_starvation::SECTION),
            tag,
            detail,
        });
    }

    /// Counts a refusal, and sees to it that nobody is refused for ever.
    pub(super) fn refused(&mut self, tag: Tag, around: &mut Around<'_>) {
        self.judged.work.refused += 1;
        if !around.calm {
            return;
        }
        let grants = around.oracle.grants(tag);
        let before = self.judged.refused.filter(|(refused, _)| *refused == tag);
        let (_, before) = *self.judged.refused.insert(before.unwrap_or_else(|| {
            self.judged.retries = 0;
            (tag, grants)
        }));
        self.judged.retries += 1;
        self.judged.worst = self.judged.worst.max(self.judged.retries);
        if no_starvation::broken(self.judged.retries, grants - before) {
            self.starves(tag);
        }
    }

    /// A lock is held for the thread's own purposes.
    pub(super) fn holds(&mut self, around: &mut Around<'_>) {
        self.judged.work.holds += 1;
        let Some((tag, shared)) = self.client.holding() else {
            return;
        };
        if !around.oracle.hold(tag, shared) && !around.oracle.is_removed(tag) {
            self.judged.complaint.get_or_insert(Complaint {
                promise: ("locks exclude", "§6"),
                tag,
                detail: format!("{} does not hold it alone", self.describe()),
            });
        }
    }

    /// It is given an object.
    pub(super) fn given(&mut self, object: Tag, around: &mut Around<'_>) {
        self.judged.work.objects += 1;
        self.judged.objects.push(object);
        if !around.oracle.give(object, BLOCK_BYTES.into()) {
            self.misgiven(object, "is somebody else's");
        }
    }

    /// An object of its own has gone back; home says what it has of it.
    pub(super) fn taken_back(&mut self, object: Tag, said: Copyset) {
        self.judged.work.freed += 1;
        self.judged.objects.retain(|mine| *mine != object);
        if !said.is_empty() {
            self.misgiven(object, "is said not to be given out");
        }
    }

    /// Nothing that a client is told is of a process that the rack has gone on without.
    pub(super) fn judge(&mut self, done: Done, around: &Around<'_>) {
        let (what, detail) = match done.stale {
            Some(detail) => ("no stale read is told", detail),
            None if around.node.standing != Condition::Up => {
                ("no excluded member acknowledges", self.describe())
            }
            None => return,
        };
        self.judged.complaint.get_or_insert(Complaint {
            promise: (what, "docs/membership.md"),
            tag: done.tag,
            detail,
        });
    }
}
