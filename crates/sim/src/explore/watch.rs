//! What is worth seeing of what nodes do, what is judged of it,
//! and what threads see of blocks and make of them.

use super::effects::{Effects, Observation};
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::{Value, WORDS};
use super::scenario::{MAX_OPERATIONS, MAX_THREADS, Op};
use super::thread::Thread;
use super::witness::Witness;
use crate::site::{Before, Did, Event, Load};
use crate::world::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::{Change, Note, Purpose, Role, Then, role};
use rackmem_proto::flowcc::{HomeCounters, Interrupted, LocalStatus, Step};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, GlobalStatus, Header, Kind, Reason, Tag};

/// An entry: its lock, its status, its copyset, and whether the switch has it.
type Entry = (u16, GlobalStatus, Copyset, bool);

/// Blocks that have come home while epochs begin, for a promise: those since this home has made its
/// entries last, and those of before this rebuild.
#[derive(Clone, Default, Hash)]
pub struct Homecomings {
    /// All.
    pub came: Vec<Tag>,
    /// Those of rebuilds that were cut off.
    pub before: Vec<Tag>,
}

impl Thread {
    /// The rack is in another epoch: what is under way has not happened.
    pub(super) fn cut_off(&mut self, view: &View, fx: &mut Effects) -> Interrupted {
        let engine = &self.client.engine;
        let waiting = engine.open()[0].is_some() && !engine.holds();
        let cut = self.client.enter(view.epoch, view.switch.is_some());
        let current = cut.open[2].is_some();
        fx.seen.see_if(waiting && current, Witness::Fenced);
        fx.seen.see_if(!waiting && current, Witness::FencedHeld);
        cut
    }
}

impl ExplorerNode {
    /// What a packet finds at the home agent: its block's entry, and what the agent has done.
    pub(super) fn look(&mut self, header: &Header) -> (Option<Entry>, HomeCounters) {
        let entry = self.site.home_of(header.tag).inspect(header.tag);
        (entry, self.home().counters())
    }

    /// Looks at a home agent that may have taken a packet.
    pub(super) fn watch(
        &mut self,
        header: &Header,
        (entry, before): (Option<Entry>, HomeCounters),
        fx: &mut Effects,
    ) {
        let role = role(self.site.id, header);
        if !matches!(role, Role::Home | Role::ShadowAndHome) {
            return;
        }
        let same = entry == self.site.home_of(header.tag).inspect(header.tag);
        if header.kind == Kind::Unlock && same && fx.sent.len() == 1 {
            fx.seen.see(Witness::UnlockedAgain);
            let moved = entry.is_some_and(|(_, _, _, in_switch)| in_switch);
            fx.seen.see_if(moved, Witness::UnlockAfterMove);
        }
        let now = self.home().counters();
        let refused = |reason| {
            let mut answers = fx.sent.iter().filter(|p| p.header.kind == Kind::Ack);
            answers.any(|packet| packet.header.reason == reason)
        };
        let moved_away = refused(Reason::Moved);
        let seen = &mut fx.seen;
        seen.see_if(now.locked > before.locked, Witness::RefusedLocked);
        seen.see_if(now.invalid > before.invalid, Witness::RefusedInvalid);
        seen.see_if(now.migrated > before.migrated, Witness::Migrated);
        seen.see_if(now.collided > before.collided, Witness::Collided);
        seen.see_if(now.returned > before.returned, Witness::Returned);
        let stays = header.kind == Kind::RemoveAck && header.reason == Reason::Locked;
        seen.see_if(stays, Witness::Stayed);
        seen.see_if(moved_away, Witness::RefusedMoved);
        let gathered = matches!(header.kind, Kind::GatherAck | Kind::WriteBack)
            && fx.sent.iter().any(|p| p.header.kind == Kind::Ack);
        seen.see_if(gathered, Witness::Gathered);
    }

    /// What is sent. A home answers who keeps no copy: the reader's moment is this one,
    /// whenever the answer comes.
    pub(super) fn watch_sent(
        &self,
        asked: Option<Kind>,
        output: &Output,
        load: Load<Value>,
        layout: &Layout,
        fx: &mut Effects,
    ) -> Load<Value> {
        let (kind, tag) = (output.header.kind, output.header.tag);
        let under_read = kind == Kind::WriteBack && asked == Some(Kind::ReadMiss);
        fx.seen.see_if(under_read, Witness::WrittenBackUnderRead);
        match (kind, load) {
            (Kind::FetchAck, Load::Block(words)) => {
                fx.seen.see(Witness::Fetched);
                let block = layout.block(tag);
                fx.observed
                    .extend(block.map(|block| Observation::Read(block, words)));
                Load::Nothing
            }
            (_, load) => load,
        }
    }

    /// An epoch ends.
    pub(super) fn watch_end(&mut self, fx: &mut Effects) {
        let serves = self.site.in_service();
        fx.seen.see_if(!serves, Witness::RebuildCutOff);
        self.homecomings.before = self.homecomings.came.clone();
    }

    /// A step of a thread's event.
    pub(super) fn watch_step(
        &mut self,
        at: usize,
        event: Option<Event>,
        did: Did,
        fx: &mut Effects,
    ) {
        let thread = &mut self.threads[at];
        let granted = matches!(did, Did::Use | Did::Held | Did::Set(_));
        fx.seen
            .see_if(thread.refused && granted, Witness::GrantedAfterRefusal);
        let event_now = thread.client.event;
        thread.refused &= !event_now.is_some_and(|event| event.access.is_ending());
        let purpose = event.map(|event| event.access.purpose());
        match (did, purpose, thread.client.engine.step()) {
            (Did::Set(_), Some(Purpose::EvictClean), _) => fx.seen.see(Witness::EvictedClean),
            (Did::Set(LocalStatus::Invalid), ..) => fx.seen.see(Witness::EvictedDirty),
            (Did::Use, Some(Purpose::Upgrade), Step::Held(grant)) => {
                let others = !grant.copyset.without(self.site.id).is_empty();
                fx.seen.see_if(others, Witness::UpgradedOverSharers);
            }
            _ => {}
        }
    }

    /// The end of a thread's event.
    pub(super) fn watch_end_of(&self, at: usize, event: Event, then: Then, fx: &mut Effects) {
        let mut complain = |what: &str| {
            let detail = format!("thread {at} of its node: {what}");
            let broken = ("a granted event is served", "§5.1.1", detail);
            fx.complaint.get_or_insert(broken);
        };
        match then {
            Then::Fail(Reason::Lost) => fx.seen.see(Witness::ToldLost),
            Then::Fail(other) => {
                let (purpose, tag) = (event.access.purpose(), event.tag);
                complain(&format!("{purpose:?} of {tag:?} was told {other:?}"));
            }
            Then::Lost => complain("a requester gave up"),
            _ => {}
        }
    }

    /// Its home has made its entries anew; they were these before.
    pub(super) fn settled(&mut self, change: &Change, rows: &[Before], fx: &mut Effects) {
        let gone = change.gone;
        let died = |tag: &Tag| {
            let nothing = (0, GlobalStatus::Unshared, Copyset::EMPTY, false);
            let row = rows.iter().find(|row| row.0 == *tag);
            let entry = row.and_then(|row| row.1);
            let (lock, _, copyset, _) = entry.unwrap_or(nothing);
            lock != 0 && !gone.is_empty() || !copyset.is_empty() && gone.covers(copyset)
        };
        let Homecomings { came, before } = std::mem::take(&mut self.homecomings);
        fx.seen
            .see_if(before.iter().any(died), Witness::SavedFromLoss);
        if came.iter().any(|tag| self.site.home_of(*tag).lost(*tag)) {
            let detail = "a block that has come home is said to be lost".into();
            fx.complaint = Some(("no data is lost", "§5.4", detail));
        }
    }

    pub(super) fn note(&mut self, note: Note, layout: &Layout, fx: &mut Effects) {
        let seen = &mut fx.seen;
        let came = &mut self.homecomings.came;
        match note {
            Note::NotOfNow => seen.see(Witness::IgnoredPast),
            Note::Asked {
                again,
                old,
                recalled,
            } => {
                seen.see_if(again, Witness::AnsweredAgain);
                seen.see_if(old, Witness::IgnoredOld);
                seen.see_if(recalled, Witness::Recalled);
            }
            Note::ToRescue(_) => seen.see(Witness::Rescued),
            Note::Dropped(_) => seen.see(Witness::DroppedWithHome),
            Note::CameHome(tag) if !came.contains(&tag) => came.push(tag),
            Note::StoredInPlace(tag) => self.stored(tag, layout, fx),
            Note::Stored(tag) => self.tell(tag, "segment home", layout, fx),
            Note::Accepted(tag) => self.accepted(tag, layout, fx),
            _ => {}
        }
    }

    /// A home has put a block in place for a requester that keeps no copy. The writer's moment is
    /// this one, and there is no other.
    fn stored(&mut self, tag: Tag, layout: &Layout, fx: &mut Effects) {
        fx.seen.see(Witness::Stored);
        let written = *self.site.memory(tag);
        let (Some(found), Some(block)) = (self.site.overwritten(), layout.block(tag)) else {
            return;
        };
        fx.observed.push(Observation::Wrote(block, found, written));
        if self.stores.contains(&written[0]) {
            let detail = format!("write {} of block {block} is stored again", written[0]);
            fx.complaint = Some(("a write happens once", "§5.3.1", detail));
        }
        self.stores.push(written[0]);
    }

    /// A thread goes on with what home has of a block.
    fn accepted(&mut self, tag: Tag, layout: &Layout, fx: &mut Effects) {
        fx.seen.see(Witness::LossAccepted);
        let entry = self.site.home_of(tag).inspect(tag);
        let held = entry.is_some_and(|(lock, ..)| lock != 0);
        fx.seen.see_if(held, Witness::LossAcceptedUnderLock);
        if layout.mutated(Mutation::FreeLockOnAccept) {
            // As a home does that makes its entries without having heard of any event.
            let epoch = self.site.view.epoch;
            let home = self.site.home_of(tag);
            home.freeze(epoch);
            home.settle(Copyset::EMPTY, false);
        }
        if let Some(block) = layout.block(tag) {
            let words = *self.site.memory(tag);
            fx.observed.push(Observation::Accepted(block, words));
        }
    }

    /// What a thread's operation stores, and nothing else ever.
    pub(super) fn next_value(&self, at: usize) -> Value {
        let earlier = (self.incarnation() as usize - 1) * MAX_THREADS * MAX_OPERATIONS;
        let thread = &self.threads[at];
        let number = earlier + thread.index * MAX_OPERATIONS + usize::from(thread.done) + 1;
        [number as u8; WORDS]
    }

    /// A thread of the home writes in home's memory.
    pub(super) fn write_in_place(
        &mut self,
        at: usize,
        block: u8,
        layout: &Layout,
        fx: &mut Effects,
    ) {
        let written = self.next_value(at);
        fx.seen.see(Witness::WrittenInPlace);
        let found = std::mem::replace(self.site.memory(layout.tag(block)), written);
        fx.observed.push(Observation::Wrote(block, found, written));
    }

    /// The operation itself, on words that this node may use at this instant.
    pub(super) fn perform(&mut self, at: usize, slot: usize, layout: &Layout, fx: &mut Effects) {
        let (op, written) = (self.threads[at].op(layout), self.next_value(at));
        let words = &mut self.site.cache.slot(slot).words;
        match op {
            Some(Op::Read(block) | Op::Fetch(block)) => {
                fx.observed.push(Observation::Read(block, *words));
            }
            Some(Op::Write(block) | Op::WriteInPlace(block) | Op::Store(block)) => {
                fx.observed.push(Observation::Wrote(block, *words, written));
                *words = written;
            }
            _ => {}
        }
    }
}
