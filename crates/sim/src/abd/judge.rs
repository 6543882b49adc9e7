//! What operations did, judged: by stamps in every state, and by the checker of histories at the
//! end of a walk.
//!
//! If every stamp has one value and every write one stamp, and each operation's stamp is at or
//! above that of whatever completed before it began, and above it for a write, then the order of
//! stamps is an order that explains all of them.

use super::scenario::Op;
use super::world::{GROUP, World, write_of};
use crate::driver::Complaint;
use crate::history::{Call, Operation, Outcome as Fate, Reply};
use rackmem_proto::abd::{Config, MEMBERS, Outcome, Stamp, Why};
use rackmem_proto::wire::{NodeId, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// A line of a region, which is named by its first config: another one may have its number later.
pub type Place = (u32, Tag);

const PAPER: &str = "CNVMM §II-B";

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    /// The stamp of each write that has one, by its value.
    stamps: BTreeMap<u8, (Place, Stamp)>,
    /// The highest stamp of an operation that has completed.
    completed: BTreeMap<Place, Stamp>,
    /// What each thread does: its operation, its line, and its place in the history.
    current: BTreeMap<NodeId, (u8, Place, usize)>,
    /// Writes whose requester is gone.
    orphans: Vec<u8>,
    /// Homes that put a line in place, or have: what they have found.
    homes: BTreeMap<NodeId, Option<(Place, u8)>>,
    /// Writes that they store again, under which stamps.
    again: BTreeMap<Stamp, (Place, u8)>,
    /// Where there are homes: writes that have completed.
    acknowledged: BTreeSet<(Place, Stamp)>,
    /// What happened, by a clock that counts it. It is no part of a state.
    history: Vec<Operation>,
    clock: u64,
    records: bool,
    has_homes: bool,
}

fn complain<T>(promise: &'static str, detail: String) -> Result<T, Complaint> {
    Err((promise, PAPER, detail))
}

impl Judge {
    /// One that keeps the history or not, of a rack that has homes or not.
    pub fn new(records: bool, has_homes: bool) -> Self {
        Judge {
            records,
            has_homes,
            ..Judge::default()
        }
    }

    /// The highest stamp of what has completed.
    pub fn completed(&self, line: Place) -> Stamp {
        self.completed.get(&line).copied().unwrap_or_default()
    }

    /// A thread begins.
    pub fn begun(&mut self, node: NodeId, (op, line): (Op, Place), id: u8) {
        self.current.insert(node, (id, line, self.history.len()));
        if matches!(op, Op::Take(_)) {
            self.homes.insert(node, None);
        }
        if !self.records {
            return;
        }
        self.clock += 1;
        self.history.push(Operation {
            client: node.into(),
            key: format!("{}/{}", line.0, line.1.offset()),
            call: match op {
                Op::Read(_) | Op::Take(_) => Call::Get,
                Op::Write(_) => Call::Set {
                    value: id.to_string(),
                },
            },
            invoke: self.clock,
            outcome: Fate::Unknown,
        });
    }

    /// Its node is gone: whether the operation has taken effect, nobody knows.
    pub fn abandoned(&mut self, node: NodeId) {
        if let Some((id, ..)) = self.current.remove(&node) {
            self.orphans.push(id);
        }
    }

    /// Whether this is the stamp of a write whose requester is gone.
    pub fn is_orphan(&self, stamp: Stamp) -> bool {
        let of = |id: &u8| self.stamps.get(id).is_some_and(|known| known.1 == stamp);
        self.orphans.iter().any(of)
    }

    /// Whether a node puts a line in place.
    fn takes(&self, node: NodeId) -> bool {
        self.homes.get(&node) == Some(&None)
    }

    /// A node stores something under a stamp: its write, or what it puts in place.
    pub fn stores(
        &mut self,
        node: NodeId,
        (line, id): (Place, u8),
        stamp: Stamp,
    ) -> Result<(), Complaint> {
        if !self.takes(node) {
            return self.stamped(line, id, stamp);
        }
        match *self.again.entry(stamp).or_insert((line, id)) == (line, id) {
            true => Ok(()),
            false => complain("one value a stamp", format!("{id:02x} under {stamp:?}")),
        }
    }

    /// A home finds what earlier ones have acknowledged, and nothing that the home before it has
    /// not found: whatever is late of an earlier epoch.
    fn handed_on(&self, line: Place) -> Result<(), Complaint> {
        let found = |(home, found): (&NodeId, &Option<(Place, u8)>)| {
            let (of, id) = (*found)?;
            (of == line).then_some((u32::from(*home) + 1, id))
        };
        for (epoch, id) in self.homes.iter().filter_map(found) {
            let written = self
                .stamps
                .get(&id)
                .map_or(Stamp::NONE, |(_, stamp)| *stamp);
            let of = |stamp: Stamp| stamp.epoch_and_count().0;
            let lost = |(of_line, stamp): &&(Place, Stamp)| {
                *of_line == line && of(*stamp) < epoch && *stamp > written
            };
            let late = |(before, other): &(u32, u8)| {
                *before < epoch && *other != id && of(written) < *before
            };
            let lost = self.acknowledged.iter().find(lost);
            let late = self.homes.iter().filter_map(found).find(late);
            if lost.is_some() || late.is_some() {
                let detail = format!(
                    "the home of epoch {epoch} has found {id:02x} of {written:?}; acknowledged: \
                     {lost:?}; found before: {late:?}"
                );
                return complain("no write of an old epoch lands", detail);
            }
        }
        Ok(())
    }

    /// A line holds this from the beginning.
    pub fn found(&mut self, line: Place, id: u8, stamp: Stamp) {
        self.stamps.insert(id, (line, stamp));
        self.completed.insert(line, stamp);
    }

    /// A write is sent under a stamp.
    pub fn stamped(&mut self, line: Place, id: u8, stamp: Stamp) -> Result<(), Complaint> {
        let known = *self.stamps.entry(id).or_insert((line, stamp));
        if known != (line, stamp) {
            let detail = format!("write {id:02x} has {:?} and {stamp:?}", known.1);
            return complain("one stamp a write", detail);
        }
        let twice = |(other, of): (&u8, &(Place, Stamp))| *other != id && *of == (line, stamp);
        if let Some(other) = self.stamps.iter().find(|entry| twice(*entry)) {
            let detail = format!("writes {:02x} and {id:02x} have {stamp:?}", other.0);
            return complain("one value a stamp", detail);
        }
        Ok(())
    }

    /// A line's value under a stamp.
    pub fn stored(&self, line: Place, stamp: Stamp, bytes: &[u8]) -> Result<(), Complaint> {
        let id = write_of(bytes);
        if let Some(other) = bytes.iter().find(|other| **other != id) {
            let detail = format!("{id:02x} and {other:02x} under {stamp:?}");
            return complain("a line is of one write", detail);
        }
        let known = match stamp {
            Stamp::NONE => id == 0,
            _ => {
                let again = self.again.get(&stamp) == Some(&(line, id));
                again || self.stamps.get(&id) == Some(&(line, stamp))
            }
        };
        match known {
            true => Ok(()),
            false => complain("one value a stamp", format!("{id:02x} under {stamp:?}")),
        }
    }

    /// An operation has ended. `floor`: what had completed when it began.
    pub fn done(
        &mut self,
        node: NodeId,
        (outcome, bytes): (Outcome, &[u8]),
        floor: Stamp,
    ) -> Result<(), Complaint> {
        let Some((id, line, nth)) = self.current.remove(&node) else {
            return Ok(());
        };
        let value = match write_of(bytes) {
            0 => Reply::Nil,
            id => Reply::Text(id.to_string()),
        };
        let (stamp, late, reply) = match outcome {
            Outcome::Read { stamp, .. } => (stamp, stamp < floor, value),
            Outcome::Written { stamp, .. } if self.takes(node) => (stamp, stamp <= floor, value),
            Outcome::Written { stamp, .. } => (stamp, stamp <= floor, Reply::Nil),
            Outcome::Interrupted => {
                self.orphans.push(id);
                return Ok(());
            }
            // A write may have taken effect before. Without a stamp the rack is beyond its epoch.
            Outcome::Refused(Why::Removed | Why::Stamps) if self.may_end(outcome) => {
                self.orphans.push(id);
                return Ok(());
            }
            Outcome::Refused(why) => {
                return complain("every operation ends", format!("refused: {why:?}"));
            }
        };
        self.clock += u64::from(self.records);
        if let Some(entry) = self.history.get_mut(nth) {
            let at = self.clock;
            entry.outcome = Fate::Ok { at, reply };
        }
        if late {
            let detail = format!("{outcome:?} began when {floor:?} had completed");
            return complain("what has completed is seen", detail);
        }
        match outcome {
            _ if self.takes(node) => {
                self.stored(line, stamp, bytes)?;
                self.homes.insert(node, Some((line, write_of(bytes))));
            }
            Outcome::Read { .. } => self.stored(line, stamp, bytes)?,
            // One that the switch has stamped may have been superseded wherever it came.
            _ => {
                self.stamped(line, id, stamp)?;
                self.stored(line, stamp, &[id])?;
                if self.has_homes {
                    self.acknowledged.insert((line, stamp));
                }
            }
        }
        let completed = self.completed.entry(line).or_default();
        *completed = stamp.max(*completed);
        self.handed_on(line)
    }

    fn may_end(&self, outcome: Outcome) -> bool {
        self.has_homes || outcome == Outcome::Refused(Why::Removed)
    }

    /// What has completed is known to one of every quorum that can still answer, of every config.
    pub fn kept(&self, world: &World) -> Result<(), Complaint> {
        for ((first, tag), stamp) in &self.completed {
            let of_region = world.configs.iter().filter(|c| c.first == *first);
            for config in of_region {
                let without = lacking(world, config, *tag, *stamp);
                if config.is_quorum(without) {
                    let detail = format!(
                        "{stamp:?} of {:x} is unknown to {:?} of config {}",
                        tag.offset(),
                        config.nodes(without),
                        config.number
                    );
                    return complain("what has completed is in every quorum", detail);
                }
            }
        }
        Ok(())
    }

    /// What happened.
    pub fn history(&self) -> &[Operation] {
        &self.history
    }

    pub fn fingerprint(&self, into: &mut impl Hasher) {
        (&self.stamps, &self.completed, &self.orphans).hash(into);
        (&self.homes, &self.again, &self.acknowledged).hash(into);
    }
}

/// Members that may answer in this config, and have a lower stamp.
fn lacking(world: &World, config: &Config, tag: Tag, stamp: Stamp) -> u8 {
    let lacks = |place: &usize| {
        let Some(member) = config.members[*place] else {
            return false;
        };
        let node = usize::from(member.node);
        let state = &world.nodes[node];
        let may_answer =
            state.up && state.life == Some(member.life) && world.lives_by(node) <= config.number;
        let replica = state.part.abd.replica(GROUP);
        may_answer && replica.is_none_or(|replica| replica.stamp(tag) < stamp)
    };
    (0..MEMBERS)
        .filter(lacks)
        .fold(0, |set, place| set | 1 << place)
}
