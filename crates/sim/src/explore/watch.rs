//! What is worth seeing of what nodes do, what is judged of it,
//! and what threads see of blocks and make of them.

use super::effects::{Effects, Observation};
use super::layout::Layout;
use super::node::ExplorerNode;
use super::packet::{Value, WORDS};
use super::scenario::{MAX_OPERATIONS, MAX_THREADS, Op};
use super::witness::Witness;
use crate::site::Settling;
use rackmem_proto::engine::{Change, Note};
use rackmem_proto::flowcc::HomeCounters;
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

impl ExplorerNode {
    /// Looks at a home agent that has taken a packet. `entry` and `before` were its block's entry
    /// and its counters.
    pub(super) fn watch(
        &mut self,
        header: &Header,
        entry: Option<Entry>,
        before: HomeCounters,
        fx: &mut Effects,
    ) {
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

    pub(super) fn settled(&mut self, change: &Change, rows: &[Settling], fx: &mut Effects) {
        let row = |tag: &Tag| rows.iter().find(|row| row.tag == *tag);
        let gone = change.gone;
        let died = |tag: &Tag| {
            let nothing = (0, GlobalStatus::Unshared, Copyset::EMPTY, false);
            let entry = row(tag).and_then(|row| row.before);
            let (lock, _, copyset, _) = entry.unwrap_or(nothing);
            lock != 0 && !gone.is_empty() || !copyset.is_empty() && gone.covers(copyset)
        };
        let Homecomings { came, before } = std::mem::take(&mut self.homecomings);
        fx.seen
            .see_if(before.iter().any(died), Witness::SavedFromLoss);
        if came.iter().any(|tag| row(tag).is_some_and(|row| row.lost)) {
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
            Note::Stored(tag) => self.tell(tag, "segment home", layout, fx),
            Note::Accepted(tag) => self.accepted(tag, layout, fx),
            _ => {}
        }
    }

    /// A thread goes on with what home has of a block.
    fn accepted(&mut self, tag: Tag, layout: &Layout, fx: &mut Effects) {
        fx.seen.see(Witness::LossAccepted);
        let entry = self.site.home_of(tag).inspect(tag);
        let held = entry.is_some_and(|(lock, ..)| lock != 0);
        fx.seen.see_if(held, Witness::LossAcceptedUnderLock);
        if let Some(block) = layout.block(tag) {
            let words = *self.site.memory(tag);
            fx.observed.push(Observation::Accepted(block, words));
        }
    }

    /// What a thread's operation stores, and nothing else ever.
    fn next_value(&self, at: usize) -> Value {
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
            Some(Op::Write(block) | Op::WriteInPlace(block)) => {
                fx.observed.push(Observation::Wrote(block, *words, written));
                *words = written;
            }
            _ => {}
        }
    }
}
