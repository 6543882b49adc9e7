//! What is worth seeing of what nodes do, what is judged of it,
//! and what threads see of blocks and make of them.

use super::effects::{Effects, Observation};
use super::node::ExplorerNode;
use super::packet::{Value, WORDS};
use super::scenario::{MAX_OPERATIONS, MAX_THREADS, Op};
use super::thread::Thread;
use super::witness::Witness;
use crate::site::{Before, Load};
use crate::world::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::{Access, Change, Do, Host, Note, Purpose, Role, Then, role};
use rackmem_proto::flowcc::{HomeCounters, Interrupted, LocalStatus, Step};
use rackmem_proto::membership::View;
use rackmem_proto::wire::{Copyset, Flags, GlobalStatus, Header, Kind, Reason, RequesterId, Tag};

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

/// What is to be remembered of a node for promises.
#[derive(Clone, Default, Hash)]
pub struct Seen {
    /// See there.
    pub homecomings: Homecomings,
    /// Writes that its home has stored for requesters that keep no copy.
    stores: Vec<u8>,
    /// What the last operation of each requester has found here, which it is to be told.
    found: Vec<(RequesterId, u8)>,
}

impl Thread {
    /// The rack is in another epoch: what is under way has not happened.
    pub(super) fn cut_off(&mut self, view: &View, fx: &mut Effects<'_>) -> Interrupted {
        let engine = &mut self.client.engine;
        let waiting = engine.open()[0].is_some() && !engine.holds();
        let cut = engine.enter(view.epoch, view.switch.is_some());
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
        (entry, self.site.home_of(header.tag).counters())
    }

    /// Looks at a home agent that may have taken a packet.
    pub(super) fn watch(
        &mut self,
        header: &Header,
        (entry, before): (Option<Entry>, HomeCounters),
        fx: &mut Effects<'_>,
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
        let now = self.site.home_of(header.tag).counters();
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
        &mut self,
        asked: Option<Kind>,
        output: &Output,
        load: Load<Value>,
        fx: &mut Effects<'_>,
    ) -> Load<Value> {
        let (kind, tag) = (output.header.kind, output.header.tag);
        let under_read = kind == Kind::WriteBack && asked == Some(Kind::ReadMiss);
        fx.seen.see_if(under_read, Witness::WrittenBackUnderRead);
        match (kind, load) {
            (Kind::FetchAck, Load::Block(words)) => {
                fx.seen.see(Witness::Fetched);
                let block = fx.layout.block(tag);
                fx.observed
                    .extend(block.map(|block| Observation::Read(block, words)));
                Load::Nothing
            }
            (Kind::OperateAck, load) => {
                self.watch_told(&output.header, fx);
                load
            }
            (_, load) => load,
        }
    }

    /// A home tells what an operation has found: to a copy of its packet, what it told the first.
    fn watch_told(&mut self, ack: &Header, fx: &mut Effects<'_>) {
        if !ack.flags.has(Flags::DATA) {
            return;
        }
        let block = fx.layout.block(ack.tag);
        let told = ack.copyset.0 as u8;
        let found = fx.observed.iter().rev().find_map(|seen| match seen {
            Observation::Wrote(at, found, _) if Some(*at) == block => Some(found[0]),
            _ => None,
        });
        let mut rows = self.seen.found.iter_mut();
        let row = rows.find(|row| row.0 == ack.requester);
        let expected = match (found, row) {
            (Some(found), Some(row)) => {
                row.1 = found;
                found
            }
            (Some(found), None) => {
                self.seen.found.push((ack.requester, found));
                found
            }
            (None, Some(row)) => row.1,
            (None, None) => return,
        };
        if told != expected {
            let detail = format!("an operation found {expected}, and is told {told}");
            fx.complaint = Some(("a write happens once", "§5.3.1", detail));
        }
    }

    /// An epoch ends.
    pub(super) fn watch_end(&mut self, fx: &mut Effects<'_>) {
        let serves = self.site.in_service();
        fx.seen.see_if(!serves, Witness::RebuildCutOff);
        self.seen.homecomings.before = self.seen.homecomings.came.clone();
    }

    /// A step of a thread's event.
    pub(super) fn watch_step(
        &mut self,
        at: usize,
        (event, todo): (Access, Do),
        fx: &mut Effects<'_>,
    ) {
        let mut complain = |what: String| {
            let detail = format!("thread {at} of its node: {what}");
            let broken = ("a granted event is served", "§5.1.1", detail);
            fx.complaint.get_or_insert(broken);
        };
        let thread = &mut self.threads[at];
        let granted = matches!(todo, Do::Use | Do::Held | Do::Set(_));
        fx.seen
            .see_if(thread.refused && granted, Witness::GrantedAfterRefusal);
        let event_now = thread.client.event;
        thread.refused &= !event_now.is_some_and(|event| event.is_ending());
        match (todo, event.purpose(), thread.client.engine.step()) {
            (Do::Set(_), Purpose::EvictClean, _) => fx.seen.see(Witness::EvictedClean),
            (Do::Set(LocalStatus::Invalid), ..) => fx.seen.see(Witness::EvictedDirty),
            (Do::Use, Purpose::Upgrade, Step::Held(grant)) => {
                let others = !grant.copyset.without(self.site.id).is_empty();
                fx.seen.see_if(others, Witness::UpgradedOverSharers);
            }
            (Do::Over(Then::Fail(Reason::Lost)), ..) => fx.seen.see(Witness::ToldLost),
            (Do::Over(Then::Fail(_)), purpose, _)
                if !event.tag().home().is_own() && !purpose.evicts() =>
            {
                fx.seen.see(Witness::RefusedRemoved);
                let block = fx.layout.block(event.tag());
                fx.observed.extend(block.map(Observation::NoMemory));
            }
            (Do::Over(Then::Fail(other)), purpose, _) => {
                complain(format!(
                    "{purpose:?} of {:?} was told {other:?}",
                    event.tag()
                ));
            }
            (Do::Over(Then::Lost), ..) => complain("a requester gave up".into()),
            _ => {}
        }
    }

    /// Its home has made its entries anew; they were these before.
    pub(super) fn settled(&mut self, change: &Change, rows: &[Before], fx: &mut Effects<'_>) {
        let gone = change.gone;
        let died = |tag: &Tag| {
            let nothing = (0, GlobalStatus::Unshared, Copyset::EMPTY, false);
            let row = rows.iter().find(|row| row.0 == *tag);
            let entry = row.and_then(|row| row.1);
            let (lock, _, copyset, _) = entry.unwrap_or(nothing);
            lock != 0 && !gone.is_empty() || !copyset.is_empty() && gone.covers(copyset)
        };
        let Homecomings { came, before } = std::mem::take(&mut self.seen.homecomings);
        fx.seen
            .see_if(before.iter().any(died), Witness::SavedFromLoss);
        if came.iter().any(|tag| self.site.home_of(*tag).lost(*tag)) {
            let detail = "a block that has come home is said to be lost".into();
            fx.complaint = Some(("no data is lost", "§5.4", detail));
        }
    }

    pub(super) fn note(&mut self, note: Note, fx: &mut Effects<'_>) {
        let seen = &mut fx.seen;
        let came = &mut self.seen.homecomings.came;
        match note {
            Note::NotOfNow { .. } => seen.see(Witness::IgnoredPast),
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
            Note::StoredInPlace(tag) => self.stored(tag, fx),
            Note::Stored(tag) => fx.tell(self.site.id, tag, "segment home"),
            Note::Accepted(tag) => self.accepted(tag, fx),
            _ => {}
        }
    }

    /// A home has put a block in place for a requester that keeps no copy. The writer's moment is
    /// this one, and there is no other.
    fn stored(&mut self, tag: Tag, fx: &mut Effects<'_>) {
        fx.seen.see(Witness::Stored);
        let written = *self.site.memory(tag);
        let (Some(found), Some(block)) = (self.site.overwritten(), fx.layout.block(tag)) else {
            return;
        };
        fx.observed.push(Observation::Wrote(block, found, written));
        if self.seen.stores.contains(&written[0]) {
            let detail = format!("write {} of block {block} is stored again", written[0]);
            fx.complaint = Some(("a write happens once", "§5.3.1", detail));
        }
        self.seen.stores.push(written[0]);
    }

    /// A thread goes on with what home has of a block.
    fn accepted(&mut self, tag: Tag, fx: &mut Effects<'_>) {
        fx.seen.see(Witness::LossAccepted);
        let entry = self.site.home_of(tag).inspect(tag);
        let held = entry.is_some_and(|(lock, ..)| lock != 0);
        fx.seen.see_if(held, Witness::LossAcceptedUnderLock);
        if fx.layout.mutated(Mutation::FreeLockOnAccept) {
            // As a home does that makes its entries without having heard of any event.
            let epoch = self.site.view.epoch;
            let home = self.site.home_of(tag);
            home.freeze(epoch);
            home.settle(Copyset::EMPTY, false);
        }
        if let Some(block) = fx.layout.block(tag) {
            let words = *self.site.memory(tag);
            fx.observed.push(Observation::Accepted(block, words));
        }
    }

    /// What a thread's operation stores, and nothing else ever.
    pub(super) fn next_value(&self, at: usize) -> Value {
        let started = self.site.incarnation(self.site.id) as usize;
        let earlier = (started - 1) * MAX_THREADS * MAX_OPERATIONS;
        let thread = &self.threads[at];
        let number = earlier + thread.index * MAX_OPERATIONS + usize::from(thread.done) + 1;
        [number as u8; WORDS]
    }

    /// A thread of the home writes in home's memory.
    pub(super) fn write_in_place(&mut self, at: usize, block: u8, fx: &mut Effects<'_>) {
        let written = self.next_value(at);
        fx.seen.see(Witness::WrittenInPlace);
        let found = std::mem::replace(self.site.memory(fx.layout.tag(block)), written);
        fx.observed.push(Observation::Wrote(block, found, written));
    }

    /// The operation itself, on words that this node may use at this instant.
    pub(super) fn perform(&mut self, at: usize, fx: &mut Effects<'_>) {
        let Some(op) = self.threads[at].op(fx.layout) else {
            return;
        };
        let (block, written) = (op.block(), self.next_value(at));
        let words = self.site.cache.words(fx.layout.tag(block));
        match op {
            Op::Read(_) | Op::Fetch(_) => fx.observed.push(Observation::Read(block, *words)),
            Op::Write(_) | Op::WriteInPlace(_) | Op::Store(_) | Op::Swap(_) => {
                fx.observed.push(Observation::Wrote(block, *words, written));
                *words = written;
            }
            Op::HoldRead(_) | Op::HoldWrite(_) | Op::AcceptLoss(_) | Op::Evict(_) => {}
        }
    }
}
