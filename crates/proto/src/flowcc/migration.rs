//! Which entries a home agent moves to the switch, and takes back (§5.2).
//!
//! What is on its way occupies a slot, which with its sequence number makes the move happen once
//! (see the switch's `moves`). ADD-TO-SWITCH holds the entry's write lock until it is answered.
//! REMOVE-FROM-SWITCH comes in two steps: the first brings the metadata, the second frees the
//! location; between them the entry is ours already.

use super::directory::{Entry, Owner};
use super::heat::Heat;
use super::home_agent::HomeAgent;
use super::lock;
use super::shards::Shards;
use crate::switch::numbers;
use crate::wire::{
    Copyset, Flags, GlobalStatus, Header, Kind, NodeId, Reason, RequesterId, Seq, Tag,
};
use crate::{Dest, Output};
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::Range;

/// Which entries are worth a place in the switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Migration {
    /// Entries that one home agent moves at the end of a period, at most (the paper's k).
    pub top: u32,
    /// Packets to cache agents in a period that make an entry worth moving.
    pub least: u32,
    /// Blocks whose heat is counted at a time.
    pub tracked: u32,
}

impl Default for Migration {
    /// The paper's: the top 1000 of every period.
    fn default() -> Self {
        Migration {
            top: 1000,
            least: 1,
            tracked: 4096,
        }
    }
}

/// Moves under way at a time, at most: losing every answer is bounded.
pub const MAX_MOVES: usize = 64;

#[derive(Clone, Default, Hash)]
struct Slot {
    seq: Seq,
    current: Option<Header>,
}

/// A home agent's part of ownership migration.
#[derive(Clone)]
pub struct Mover {
    me: NodeId,
    policy: Option<Migration>,
    heat: Heat,
    /// Hot entries, the hottest last, that wait for their lock or for a slot.
    wanted: Vec<(Tag, u32)>,
    slots: Vec<Slot>,
    /// The first of the node's slots that are its own, and how many: those of a shard.
    own: Range<u16>,
    shards: u32,
    pace: Pace,
}

/// How many entries may move in a period. Where more blocks are hot than the switch has places for,
/// most of the paper's k find none in every period, and asking for them costs more than the switch
/// gives.
#[derive(Clone, Hash)]
struct Pace {
    allowed: u32,
    /// Answers of this period.
    added: u32,
    refused: u32,
}

impl Pace {
    const FULL: Pace = Pace {
        allowed: u32::MAX,
        added: 0,
        refused: 0,
    };

    /// Ends a period: half as many after one in which most found no place,
    /// twice as many after one in which all did.
    fn end_period(&mut self, top: u32) -> u32 {
        let allowed = self.allowed.min(top);
        let allowed = match (self.added, self.refused) {
            (_, 0) => allowed.saturating_mul(2),
            (added, refused) if refused > added => allowed / 2,
            _ => allowed,
        };
        *self = Pace {
            allowed: allowed.max(1),
            ..Pace::FULL
        };
        self.allowed.min(top)
    }
}

/// What an answer of the switch means for the entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moved {
    /// Nothing: it answers no move under way.
    Stale,
    /// The switch owns it.
    Added,
    /// The switch had no room.
    Collided,
    /// It is ours, with this metadata; the packet frees its location.
    Returned(Output),
    /// It stays in the switch: its lock is held.
    Stays,
    /// Its location is free.
    Freed,
}

impl HomeAgent {
    /// Has an entry move to the switch whatever its heat, at once or when its lock is free;
    /// never where no policy lets entries move.
    pub fn want(&mut self, tag: Tag) -> Option<Output> {
        let (config, home) = (self.config, self.home());
        let entry = self.directory.entry(tag)?;
        if !self.mover.moves() || tag.home() != home || entry.owner != Owner::Home {
            return None;
        }
        entry.owner = Owner::Wanted;
        self.mover.wanted.push((tag, u32::MAX));
        self.mover.add(config.epoch, tag, entry)
    }
}

impl Mover {
    /// Moves nothing without a policy.
    pub fn new(me: NodeId, policy: Option<Migration>) -> Self {
        let mut mover = Mover {
            me,
            policy: None,
            heat: Heat::new(1),
            wanted: Vec::new(),
            slots: Vec::new(),
            own: 0..MAX_MOVES as u16,
            shards: 1,
            pace: Pace::FULL,
        };
        mover.set_policy(policy);
        mover
    }

    /// That of a shard: its share of the node's slots, of the blocks whose heat is counted, and of
    /// those that may move in a period.
    pub fn of_shard(self, nth: usize, shards: Shards) -> Self {
        let (nth, count) = (nth as u16, shards.count() as u16);
        let each = MAX_MOVES as u16 / count;
        let policy = self.policy;
        let mut mover = Mover {
            own: nth * each..(nth + 1) * each,
            shards: count.into(),
            ..self
        };
        mover.set_policy(policy);
        mover
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.wanted.hash(into);
        self.slots.hash(into);
        self.policy.is_some().hash(into);
        // Where no entry moves for its heat, nothing depends on it.
        if self.policy.is_some_and(|policy| policy.top > 0) {
            self.heat.hash(into);
            self.pace.hash(into);
        }
    }

    /// Whether entries may move at all.
    fn moves(&self) -> bool {
        self.policy.is_some()
    }

    /// From now on by this policy.
    pub fn set_policy(&mut self, policy: Option<Migration>) {
        self.policy = policy;
        if let Some(policy) = policy {
            self.heat.make_room(policy.tracked / self.shards);
        }
    }

    /// A request of this block goes to so many cache agents.
    #[inline]
    pub fn heat(&mut self, tag: Tag, agents: u32) {
        if self.policy.is_some() && agents > 0 {
            self.heat.add(tag, agents);
        }
    }

    /// Ends a period. `entry` gives the entries.
    pub fn end_period(&mut self, mut mark: impl FnMut(Tag, bool) -> bool) {
        let Some(policy) = self.policy else { return };
        for (tag, _) in self.wanted.drain(..) {
            mark(tag, false);
        }
        let top = self.pace.end_period(policy.top.div_ceil(self.shards));
        let hot = self.heat.end_period(top as usize, policy.least);
        for row in hot.iter().rev() {
            if mark(row.tag, true) {
                self.wanted
                    .push((row.tag, row.word.min(u64::from(u32::MAX)) as u32));
            }
        }
    }

    /// Blocks that wait to move, the hottest last.
    pub fn wanted(&self) -> impl DoubleEndedIterator<Item = Tag> {
        self.wanted.iter().map(|row| row.0)
    }

    fn free_slot(&mut self) -> Option<usize> {
        let free = self.slots.iter().position(|slot| slot.current.is_none());
        free.or_else(|| {
            (self.slots.len() < self.own.len()).then(|| {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            })
        })
    }

    /// Blocks on their way.
    pub fn under_way(&self) -> impl Iterator<Item = Tag> {
        self.packets().map(|header| header.tag)
    }

    /// The packets whose answers are missing.
    pub fn packets(&self) -> impl Iterator<Item = Header> {
        self.slots.iter().filter_map(|slot| slot.current)
    }

    fn begin(
        &mut self,
        kind: Kind,
        epoch: u32,
        tag: Tag,
        fill: impl FnOnce(&mut Header),
    ) -> Option<Output> {
        if self.under_way().any(|busy| busy == tag) {
            return None;
        }
        let at = self.free_slot()?;
        let slot = &mut self.slots[at];
        slot.seq = slot.seq.next();
        let id = RequesterId {
            node: self.me,
            slot: self.own.start + at as u16,
        };
        let mut header = Header::request(kind, epoch, tag, id, slot.seq);
        fill(&mut header);
        slot.current = Some(header);
        Some(Output::new(Dest::Switch, header))
    }

    /// ADD-TO-SWITCH of an entry whose lock is free.
    pub fn add(&mut self, epoch: u32, tag: Tag, entry: &mut Entry) -> Option<Output> {
        if entry.owner != Owner::Wanted || entry.lock != 0 {
            return None;
        }
        let at = self.wanted.iter().position(|row| row.0 == tag)?;
        let heat = self.wanted[at].1;
        let (status, copyset) = (entry.status, entry.copyset);
        let output = self.begin(Kind::AddToSwitch, epoch, tag, |header| {
            (header.status, header.copyset, header.offset) = (status, copyset, heat);
        })?;
        self.wanted.remove(at);
        lock::acquire(&mut entry.lock, false);
        entry.owner = Owner::Moving;
        Some(output)
    }

    /// REMOVE-FROM-SWITCH of an entry that the switch owns.
    pub fn remove(&mut self, epoch: u32, tag: Tag, entry: &mut Entry) -> Option<Output> {
        if entry.owner != Owner::Switch {
            return None;
        }
        let output = self.begin(Kind::RemoveFromSwitch, epoch, tag, |_| ())?;
        entry.owner = Owner::Returning;
        Some(output)
    }

    /// The switch's answer to a move of this entry.
    pub fn answered(&mut self, header: &Header, entry: &mut Entry) -> Moved {
        let at = header.requester.slot.checked_sub(self.own.start);
        let slot = at.and_then(|at| self.slots.get_mut(usize::from(at)));
        let Some((slot, sent)) = slot.and_then(|slot| {
            let sent = slot
                .current
                .filter(|sent| sent.seq == header.seq && sent.tag == header.tag)?;
            Some((slot, sent))
        }) else {
            return Moved::Stale;
        };
        let granted = header.reason == Reason::None;
        match (sent.kind, header.kind) {
            (Kind::AddToSwitch, Kind::AddAck) => {
                slot.current = None;
                lock::release(&mut entry.lock, false);
                entry.owner = if granted { Owner::Switch } else { Owner::Home };
                if granted {
                    (entry.status, entry.copyset) = (GlobalStatus::Unshared, Copyset::EMPTY);
                    self.pace.added += 1;
                    Moved::Added
                } else {
                    self.pace.refused += 1;
                    Moved::Collided
                }
            }
            (Kind::RemoveFromSwitch, Kind::RemoveAck) if sent.flags.has(Flags::GRANTED) => {
                slot.current = None;
                Moved::Freed
            }
            (Kind::RemoveFromSwitch, Kind::RemoveAck) if granted => {
                *entry = Entry {
                    lock: 0,
                    status: header.status,
                    owner: Owner::Home,
                    copyset: header.copyset,
                };
                slot.seq = slot.seq.next();
                let free = Header {
                    seq: slot.seq,
                    flags: Flags::GRANTED,
                    ..sent
                };
                slot.current = Some(free);
                Moved::Returned(Output::new(Dest::Switch, free))
            }
            (Kind::RemoveFromSwitch, Kind::RemoveAck) => {
                slot.current = None;
                entry.owner = Owner::Switch;
                Moved::Stays
            }
            _ => Moved::Stale,
        }
    }

    /// A new epoch: nothing is under way any more. The switch has forgotten the slots' sequence
    /// numbers, too, but they only ever rise.
    pub fn reset(&mut self) {
        self.wanted.clear();
        for slot in &mut self.slots {
            slot.current = None;
            let next = slot.seq.next();
            let shown = numbers::newer(next, numbers::empty(next));
            slot.seq = Seq(shown.0.wrapping_sub(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library's node learns which entries may move when it begins to live by a view,
    /// and again in each epoch.
    #[test]
    fn a_policy_that_comes_later_counts_as_many_blocks() {
        let mut mover = Mover::new(0, None);
        let policy = Migration {
            top: 10,
            ..Migration::default()
        };
        mover.set_policy(Some(policy));
        for block in 1..=5u32 {
            mover.heat(Tag(u64::from(block) << 12), block);
        }
        mover.set_policy(Some(policy));
        let mut hot = Vec::new();
        mover.end_period(|tag, is| {
            hot.extend(is.then_some(tag.0 >> 12));
            true
        });
        assert_eq!(hot, [1, 2, 3, 4, 5], "the hottest last");
    }

    /// Where there is no switch nothing is hot for one: when there is one again, what was asked for
    /// meanwhile does not move.
    #[test]
    fn what_is_asked_for_while_nothing_may_move_does_not_count() {
        let policy = Some(Migration::default());
        let mut mover = Mover::new(0, policy);
        mover.set_policy(None);
        mover.heat(Tag(0x1000), u32::MAX);
        mover.set_policy(policy);
        mover.end_period(|_, _| true);
        assert_eq!(mover.wanted().next(), None);
    }

    #[test]
    fn whoever_finds_no_places_asks_for_fewer() {
        let mut pace = Pace::FULL;
        let mut period = |added, refused| {
            (pace.added, pace.refused) = (added, refused);
            pace.end_period(100)
        };
        assert_eq!(period(0, 0), 100);
        assert_eq!(period(10, 90), 50);
        assert_eq!(period(10, 40), 25);
        assert_eq!(period(20, 5), 25);
        assert_eq!(period(25, 0), 50);
        assert_eq!(period(50, 0), 100);
        for _ in 0..20 {
            period(0, 1);
        }
        assert_eq!(period(0, 1), 1, "never none: places become free");
    }
}
