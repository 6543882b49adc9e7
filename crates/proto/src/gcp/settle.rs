//! A node died: a lock's entry is made anew from what the living nodes have of it.
//!
//! | a live node has | the lock is | and what it protects |
//! |---|---|---|
//! | M | that node's | is there |
//! | S | shared by those nodes | is there: no writer has been inside since |
//! | neither | the node's whose data is the newest; it learns so from the next request | is as of the last hand-over, if the keeper lives |
//!
//! A home that a group keeps goes to another node when the one that serves it dies, which knows no
//! entry of it. A lock of which no live node ever had anything is at rest there: the home has it,
//! and whoever enters finds what the group has of it (the host sees to that).
//!
//! Only in the last row may a writer have died inside: the next who enters is told `OwnerDied`.
//! If the one that handed the lock to the dead one is dead as well, older data is all there is, and
//! it is told `Lost`. What a holder released without handing it on was nowhere else, and died with
//! it: that is the price of a lock that stays where it is.
//!
//! A report is what a node has at the moment at which it tells, never what it noted at the end of
//! an earlier epoch: a home serves a lock as soon as it has settled it, and a node that is slow, or
//! whose rebuild was cut off, need not have noticed that an epoch was served. Until the home
//! settles nothing moves, so a report that is made late is as good. Only that a release was under
//! way is kept, with the epoch in which it was, because fencing ends the release; a home believes
//! it only about the epoch that it served last.

use super::entry::{Entry, Mode, State};
use super::lock::{Lock, Right};
use crate::wire::{Copyset, NodeId, Reason, Record, Tag};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How new a node's data is: twice the version of the last right that it had complete, and one if
/// that was to write. 0: it never had any. Of two nodes with one version (readers, and the writer
/// behind them) only the writer's data is newer.
pub type Age = u64;

/// The age of data that came with a right.
pub(super) fn age(version: u64, right: Right) -> Age {
    version << 1 | u64::from(right == Right::Modified)
}

/// What a node has of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Report {
    /// What its threads may do. `None` with `passing`: it has released,
    /// and does not know whether that counts.
    pub right: Right,
    /// When this epoch ended a release was under way: the node's data was current then.
    pub passing: Option<u32>,
    /// How new its data is.
    pub age: Age,
    /// What was wrong with it.
    pub reason: Reason,
}

/// Bits of a lock's tag that a record needs: locks lie at multiples of 16.
const BITS: u64 = 0xf;
/// In place of a right: the word is the epoch of a release that was under way.
const PASSING: u64 = 3;

impl Report {
    /// As records: one, and another with the epoch of a release that was under way.
    pub fn records(self, tag: Tag) -> impl Iterator<Item = Record> {
        let reason = match self.reason {
            Reason::OwnerDied => 4,
            Reason::Lost => 8,
            _ => 0,
        };
        let bare = tag.0 & !BITS;
        let report = Record {
            tag: Tag(bare | self.right as u64 | reason),
            word: self.age,
        };
        let passing = self.passing.map(|epoch| Record {
            tag: Tag(bare | PASSING),
            word: epoch.into(),
        });
        core::iter::once(report).chain(passing)
    }

    /// Takes what a record says of the same node and lock, in any order.
    fn take(&mut self, record: Record) {
        self.right = match record.tag.0 & 3 {
            0 => Right::None,
            1 => Right::Shared,
            2 => Right::Modified,
            _ => {
                self.passing = Some(record.word as u32);
                return;
            }
        };
        self.reason = match record.tag.0 & 12 {
            4 => Reason::OwnerDied,
            8 => Reason::Lost,
            _ => Reason::None,
        };
        self.age = record.word;
    }
}

/// The nodes' reports to a home about its locks for an epoch.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Reports(BTreeMap<Tag, Vec<(NodeId, Report)>>);

impl Reports {
    /// One record of a node's report: of [`Report::records`].
    pub fn note(&mut self, node: NodeId, record: Record) {
        let told = self.0.entry(Tag(record.tag.0 & !BITS)).or_default();
        let known = told.iter().position(|(other, _)| *other == node);
        let at = known.unwrap_or_else(|| {
            told.push((node, Report::default()));
            told.len() - 1
        });
        if let Some((_, report)) = told.get_mut(at) {
            report.take(record);
        }
    }

    /// The locks that they are about.
    pub fn tags(&self) -> impl Iterator<Item = Tag> {
        self.0.keys().copied()
    }

    /// Their reports about one lock.
    pub fn of(&self, tag: Tag) -> impl Iterator<Item = (NodeId, Report)> {
        self.0.get(&tag).into_iter().flatten().copied()
    }
}

impl Entry {
    /// As a record: of what a switch had in that epoch, this is what a home decides by.
    pub fn to_record(self, tag: Tag, epoch: u32) -> Record {
        let State {
            holder,
            keeper,
            mode,
            reason,
            ..
        } = self.state;
        let reason = match reason {
            Reason::OwnerDied => 4,
            Reason::Lost => 8,
            _ => 0,
        };
        Record {
            tag: Tag(tag.0 & !BITS | u64::from(mode == Mode::Modified) | reason),
            word: u64::from(epoch) << 16 | u64::from(holder) << 8 | u64::from(keeper),
        }
    }

    /// From a record, and of which epoch it is. Versions and sharers are not in it.
    pub fn from_record(record: Record) -> (Tag, u32, Entry) {
        let state = State {
            holder: (record.word >> 8) as u8,
            keeper: record.word as u8,
            mode: match record.tag.0 & 1 {
                0 => Mode::Shared,
                _ => Mode::Modified,
            },
            reason: match record.tag.0 & 12 {
                4 => Reason::OwnerDied,
                8 => Reason::Lost,
                _ => Reason::None,
            },
            ..State::default()
        };
        let sharers = Copyset::EMPTY;
        let epoch = (record.word >> 16) as u32;
        (Tag(record.tag.0 & !BITS), epoch, Entry { state, sharers })
    }
}

impl Lock {
    /// What this node tells the lock's home, in this epoch.
    pub(super) fn report(&self, epoch: u32) -> Report {
        let passing = self.releasing.is_some();
        Report {
            right: match passing {
                // Readers inside may stay in either case: the next writer waits for them.
                true if self.readers > 0 => Right::Shared,
                true => Right::None,
                false => self.right,
            },
            passing: match passing {
                true => Some(epoch),
                false => self.passed,
            },
            age: self.age,
            reason: self.reason,
        }
    }

    /// This epoch has ended: what was under way is over.
    pub(super) fn fence(&mut self, epoch: u32) {
        let Report { right, passing, .. } = self.report(epoch);
        *self = Lock {
            right,
            passed: passing,
            len: self.len,
            since: self.since,
            age: self.age,
            reason: self.reason,
            // The home may have chosen this node.
            keeper: self.age != 0,
            readers: self.readers,
            writer: self.writer,
            want: self.want,
            ..Lock::default()
        };
    }
}

/// What a lock's directory had in the epoch that it served last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Before {
    /// This.
    Entry(Entry),
    /// The switch may have served the lock and has not reported it. When the home placed it there,
    /// this was wrong with the data, and no holder may have seen it since.
    Unknown(Reason),
    /// It was at another node, which serves this home no more: a group keeps the home. This node
    /// settled its other homes last in that epoch.
    Elsewhere(u32),
}

/// The entry that a lock goes on with in `epoch`. `before` is what its directory had;
/// `live` are the nodes that remain, of which `home` is one; `dead`: so many do not. A release
/// counts as under way only if it was when the entry was served last:
/// [`super::LockDirectory::enter_epoch`] sees to that.
pub fn settle(
    reports: &[(NodeId, Report)],
    before: Before,
    live: Copyset,
    dead: u32,
    home: NodeId,
    epoch: u32,
) -> Entry {
    let told = || reports.iter().filter(|(node, _)| live.contains(*node));
    let mut entry = Entry::new(home, epoch);
    let mut hold = |node: NodeId, reason| {
        entry.state = State {
            holder: node as u8,
            keeper: node as u8,
            reason,
            ..State::new(home, epoch)
        };
    };
    if let Some((node, report)) = told().find(|(_, r)| r.right == Right::Modified) {
        hold(*node, report.reason);
        return entry;
    }
    if let Some((node, report)) = told().find(|(_, r)| r.right == Right::Shared) {
        hold(*node, report.reason);
        entry.state.mode = Mode::Shared;
        let shares = told().filter(|(_, r)| r.right == Right::Shared);
        entry.sharers = shares.fold(Copyset::EMPTY, |set, (node, _)| set.with(*node));
        return entry;
    }
    let newest = told().max_by_key(|(node, r)| (r.age, core::cmp::Reverse(*node)));
    let Some((node, report)) = newest else {
        hold(home, Reason::Lost);
        return entry;
    };
    if matches!(before, Before::Elsewhere(_)) && report.age == 0 {
        // No live node has ever had it: it is at rest, with the group.
        return entry;
    }
    // Damage by an earlier failure that no holder has seen since remains.
    let known = match before {
        Before::Entry(entry) => entry.state.reason,
        Before::Unknown(reason) => reason,
        Before::Elsewhere(_) => Reason::None,
    };
    let found = verdict(*node, report, before, live, dead);
    hold(*node, worse(worse(report.reason, known), found));
    entry
}

/// What is wrong with the newest surviving data, when no live node has the lock.
fn verdict(node: NodeId, report: &Report, before: Before, live: Copyset, dead: u32) -> Reason {
    let passing = report.passing.is_some();
    let state = match before {
        Before::Entry(entry) => entry.state,
        // The holder is unknown. If all nodes live, the lock was in flight; if not,
        // one of the dead may have had it. One alone can only have had it from who released it
        // last; of several one may have had it from another.
        Before::Unknown(_) => {
            return match (dead, passing) {
                (0, _) => Reason::None,
                (1, true) => Reason::OwnerDied,
                _ => Reason::Lost,
            };
        }
        // Neither is who held it, nor whether a death was told that nobody has seen since. One that
        // has died since can have had it from the node with the newest data only, if that got it
        // in the epoch that ended: all that took part then are known to live, but for the one.
        Before::Elsewhere(settled) => {
            return match dead == 1 && super::is_of(report.age >> 1, settled) {
                true => Reason::OwnerDied,
                false => Reason::Lost,
            };
        }
    };
    let (holder, keeper) = (NodeId::from(state.holder), NodeId::from(state.keeper));
    // A node with newer data than the keeper has it from the keeper, or is the holder.
    let kept = live.contains(keeper);
    match state.mode {
        // Its release was not approved, so its data is the last.
        Mode::Modified if passing && node == holder => Reason::None,
        // The holder was promised the lock and waited for the data.
        Mode::Modified if kept && live.contains(holder) => Reason::None,
        Mode::Modified if kept => Reason::OwnerDied,
        Mode::Shared if kept => Reason::None,
        _ => Reason::Lost,
    }
}

pub(super) fn worse(one: Reason, other: Reason) -> Reason {
    match (one, other) {
        (Reason::Lost, _) | (_, Reason::Lost) => Reason::Lost,
        (Reason::OwnerDied, _) | (_, Reason::OwnerDied) => Reason::OwnerDied,
        _ => Reason::None,
    }
}
