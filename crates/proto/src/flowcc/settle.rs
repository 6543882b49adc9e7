//! A home agent makes its directory entries anew after a failure (§5.4 "Crash safety").
//!
//! The paper gathers the caches' dirty bits. That is not enough:
//! an event that the failure has cut off may have taken a block's only copy out of one cache
//! without it having reached another. What the members tell, therefore, is:
//! - which copies they have ([`Findings::copy`]);
//! - which events of theirs may hold a lock ([`Findings::open`]),
//!   so that the locks that are left belonged to the dead;
//! - and, before that, whatever block home may not have ([`HomeAgent::rescued`],
//!   the bytes go into home's memory).
//!
//! | a live node has | then the entry is |
//! |---|---|
//! | a writable copy | `Modified`, that node |
//! | clean copies | `Shared`, those nodes |
//! | none, and the last content may have died with a node and was not rescued | `Lost` |
//! | none otherwise | `Unshared` |
//!
//! All entries are home's again, whatever their owner was, and unlocked,
//! but for the bare locks that live nodes hold.

use super::directory::{Entry, Owner};
use super::home_agent::HomeAgent;
use super::rebuild::Open;
use super::removal::KeptBlocks;
use super::{lock, score};
use crate::switch::{Grant, Registers, epoch_of};
use crate::wire::{Copyset, GlobalStatus, NodeId, Record, RequesterId, Tag};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// What is known of one block.
#[derive(Clone, Copy, Default, Hash, Debug)]
struct Finding {
    copyset: Copyset,
    writer: Option<NodeId>,
    /// An event of a live node holds the entry's lock.
    explained: bool,
    /// What a surviving switch has of it.
    registers: Option<Registers>,
}

/// What is known of a home's blocks.
#[derive(Clone, Default, Hash, Debug)]
pub struct Findings {
    blocks: BTreeMap<Tag, Finding>,
    /// Bare locks that live nodes hold.
    held: Vec<(RequesterId, Open)>,
    /// Blocks whose last content has come into home's memory. They outlive an attempt:
    /// the holder of the content has dropped it.
    rescued: BTreeSet<Tag>,
    /// Events of live nodes, of the epoch in which the entries were made.
    open: Vec<(RequesterId, Open)>,
    /// The epoch of a surviving switch's report.
    switch: Option<u32>,
    /// Grants of a surviving switch without an unlock.
    granted: BTreeSet<Grant>,
}

/// What was told in an epoch of homes that groups keep and that this node has not heard of yet.
#[derive(Clone, Default, Hash, Debug)]
pub struct Early {
    blocks: BTreeMap<Tag, Finding>,
    held: Vec<(RequesterId, Open)>,
}

/// What settling has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settled {
    /// Entries that live nodes have copies of.
    pub cached: u64,
    /// Blocks whose last content is lost.
    pub lost: u64,
}

impl Settled {
    /// Of two shards.
    #[must_use]
    pub fn and(self, other: Settled) -> Settled {
        Settled {
            cached: self.cached + other.cached,
            lost: self.lost + other.lost,
        }
    }
}

/// A word of a copy's record.
const WRITABLE: u64 = 1;

/// How a node tells that it has a copy.
pub fn copy_record(tag: Tag, writable: bool) -> Record {
    let word = if writable { WRITABLE } else { 0 };
    Record { tag, word }
}

impl HomeAgent {
    /// Serves nothing from here on, until [`HomeAgent::settle`]: the rack is in a new epoch.
    pub fn freeze(&mut self, epoch: u32) {
        let rescued = self.findings.take().map(|old| old.rescued);
        self.findings = Some(Findings {
            rescued: rescued.unwrap_or_default(),
            ..Findings::default()
        });
        if self.kept {
            // Another node may have served them, and has told nobody what it knew.
            self.directory.reset();
            self.early = Early::default();
        }
        self.config.epoch = epoch;
    }

    /// Forgets which blocks have come home, as no home should: a defect to plant.
    #[doc(hidden)]
    pub fn forget_rescued(&mut self) {
        if let Some(findings) = &mut self.findings {
            findings.rescued.clear();
        }
    }

    /// Whether a block's last content died with a node, and the loss is not accepted yet.
    pub fn lost(&mut self, tag: Tag) -> bool {
        let entry = self.directory.entry(tag);
        entry.is_some_and(|entry| entry.owner == Owner::Lost)
    }

    /// Whether a block is of coherent memory here.
    pub fn has(&mut self, tag: Tag) -> bool {
        self.directory.entry(tag).is_some()
    }

    /// Whether it serves nothing.
    pub fn frozen(&self) -> bool {
        self.findings.is_some()
    }

    /// A live node has a copy.
    pub fn note_copy(&mut self, node: NodeId, record: Record) {
        let Some(findings) = &mut self.findings else {
            return;
        };
        let finding = findings.blocks.entry(record.tag).or_default();
        finding.copyset = finding.copyset.with(node);
        if record.word & WRITABLE != 0 {
            finding.writer = Some(node);
        }
    }

    /// A live node had this event open when the last epoch ended. `settled` is the epoch in which
    /// this home's entries were made: an event of another does not explain any lock of theirs.
    pub fn note_open(&mut self, node: NodeId, open: Open, settled: u32) {
        let ours = self.serves(open.tag.home());
        let Some(findings) = self.findings.as_mut().filter(|_| ours) else {
            return;
        };
        let slot = open.slot;
        let id = RequesterId { node, slot };
        if open.bare {
            findings.held.push((id, open));
        }
        if open.is_of(settled) {
            findings.open.push((id, open));
        }
    }

    /// A surviving switch has this entry, or has granted this event.
    pub fn note_registers(&mut self, record: Record) {
        let Some(findings) = &mut self.findings else {
            return;
        };
        if let Some(epoch) = epoch_of(record) {
            findings.switch = Some(epoch);
        } else if let Some(grant) = Grant::from_record(record) {
            findings.granted.insert(grant);
        } else if let Some(registers) = Registers::from_word(record.word) {
            findings.blocks.entry(record.tag).or_default().registers = Some(registers);
        }
    }

    /// The last content of a block is in home's memory now.
    pub fn note_rescued(&mut self, tag: Tag) {
        if let Some(findings) = &mut self.findings {
            findings.rescued.insert(tag);
        }
    }

    /// Makes the entries anew and serves again. `gone`: nodes that have died since the entries were
    /// made. `switch_lost`: so has the switch.
    pub fn settle(&mut self, gone: Copyset, switch_lost: bool) -> Settled {
        let mut settled = Settled::default();
        let Some(mut findings) = self.findings.take() else {
            return settled;
        };
        self.explain(&mut findings);
        for (tag, entry) in self.directory.each() {
            let finding = findings.blocks.remove(&tag).unwrap_or_default();
            let rescued = findings.rescued.contains(&tag);
            let next = remake(*entry, finding, gone, switch_lost);
            *entry = match next.owner {
                Owner::Lost if rescued => Entry::default(),
                _ => next,
            };
            settled.lost += u64::from(entry.owner == Owner::Lost);
            settled.cached += u64::from(!entry.copyset.is_empty());
        }
        self.made = self.config.epoch;
        self.counters.lost = settled.lost;
        self.losses = settled.lost != 0;
        self.mover.reset();
        self.answering.iter_mut().for_each(|a| a.clear());
        self.scores = Default::default();
        self.executed = Default::default();
        let held = findings.held.into_iter();
        let early = held.filter(|(id, open)| !self.hold_again(*id, *open));
        let held = early.collect();
        if self.kept {
            let blocks = findings.blocks;
            self.early = Early { blocks, held };
        }
        settled
    }

    /// Has entries for what a group keeps from here on. What members have told of it in this epoch,
    /// while this node had not heard of it, counts; what they have of a removed region that had the
    /// number has no entry any more, and is forgotten with the epoch.
    pub fn lay_out(&mut self, group: u16, blocks: KeptBlocks) {
        self.directory.lay_out(group, blocks);
        let mut early = core::mem::take(&mut self.early);
        early.blocks.retain(|tag, finding| {
            let entry = self.directory.entry(*tag);
            let there = entry.map(|entry| *entry = remake(*entry, *finding, Copyset::EMPTY, false));
            there.is_none()
        });
        early.held.retain(|(id, open)| !self.hold_again(*id, *open));
        self.early = early;
    }

    /// Finds the locks that live nodes' events hold. That an event is open explains nothing:
    /// it may wait for a lock that the dead hold. Only its owner's score says that it was granted.
    fn explain(&mut self, findings: &mut Findings) {
        // A switch that missed the epoch of these entries, because its rebuild was cut off there
        // and not here, knows nothing of them.
        if findings.switch != Some(self.made) {
            findings.granted.clear();
            let blocks = findings.blocks.values_mut();
            blocks.for_each(|finding| finding.registers = None);
        }
        // Who only reads does not hold a lock alone.
        for (requester, open) in findings.open.iter().filter(|(_, open)| !open.shared) {
            let row = self.scores.row(*requester)[open.seq.parity()];
            let seq = open.seq.low();
            let by_switch = findings.granted.contains(&Grant {
                requester: *requester,
                seq,
            });
            if by_switch || row.holder() == Some(open.seq) {
                findings.blocks.entry(open.tag).or_default().explained = true;
            }
        }
    }

    /// A bare lock outlives the epoch: it is an application's, and the application is alive.
    /// False: there is no such block here.
    fn hold_again(&mut self, id: RequesterId, open: Open) -> bool {
        let Some(entry) = self.directory.entry(open.tag) else {
            return false;
        };
        if lock::acquire(&mut entry.lock, open.shared) {
            let row = &mut self.scores.row(id)[open.seq.parity()];
            score::enter(row, open.seq, true, true, score::Route::default());
        }
        true
    }
}

fn remake(old: Entry, finding: Finding, gone: Copyset, switch_lost: bool) -> Entry {
    let shared = |status, copyset| Entry {
        status,
        copyset,
        ..Entry::default()
    };
    if let Some(writer) = finding.writer {
        return shared(GlobalStatus::Modified, Copyset::of(writer));
    }
    if !finding.copyset.is_empty() {
        return shared(GlobalStatus::Shared, finding.copyset);
    }
    // What the entry's owner knew, as far as anyone still does.
    let own = Registers {
        lock: old.lock,
        status: old.status,
        copyset: old.copyset,
    };
    // An entry that the switch was giving back may be locked for that, or by an event:
    // no live member knows.
    let mut explained = finding.explained;
    let known = match (old.owner, finding.registers) {
        (Owner::Lost, _) => {
            let owner = Owner::Lost;
            return Entry {
                owner,
                ..Entry::default()
            };
        }
        (Owner::Home | Owner::Wanted, _) => Some(own),
        (_, Some(registers)) => Some(registers),
        // The switch has not taken it, and the lock is the move's.
        (Owner::Moving, None) if !switch_lost => {
            explained = true;
            Some(own)
        }
        (_, None) => None,
    };
    let died = match known {
        Some(last) => {
            let dirty = last.status == GlobalStatus::Modified && !last.copyset.is_empty();
            let holder_died = lock::held_alone(last.lock) && !explained;
            dirty && gone.covers(last.copyset) || holder_died && !gone.is_empty()
        }
        None => !gone.is_empty(),
    };
    let owner = if died { Owner::Lost } else { Owner::Home };
    Entry {
        owner,
        ..Entry::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::HomeConfig;
    use super::*;
    use crate::wire::{HomeId, Seq};

    const GONE: Copyset = Copyset(0b1000);

    /// A keeper that has come back hears of a home after it has settled: what members have told of
    /// it counts.
    #[test]
    fn what_is_told_of_a_home_counts_when_that_is_heard_of() {
        let config = HomeConfig {
            node: 0,
            epoch: 1,
            block: 4096,
            chunks: 1,
            incarnation: 2,
            migration: None,
            answering: None,
            seed: 0,
        };
        let first = HomeId::of_group(2).start();
        let nth = |block: u64| Tag(first.0 + block * 4096);
        let bare = Open {
            slot: 4,
            seq: Seq(7),
            tag: nth(3),
            shared: false,
            bare: true,
            awaits_data: false,
            epoch: 1,
        };
        let made = |early: bool| {
            let mut agent = HomeAgent::of_groups(config);
            let lay_out = |agent: &mut HomeAgent| {
                agent.lay_out(1, KeptBlocks::of_bytes(4096));
                agent.lay_out(2, KeptBlocks::of_bytes(4 * 4096));
            };
            agent.freeze(2);
            if early {
                lay_out(&mut agent);
            }
            agent.note_copy(3, copy_record(nth(0), true));
            agent.note_copy(1, copy_record(nth(1), false));
            agent.note_copy(3, copy_record(nth(1), false));
            agent.note_open(1, bare, 1);
            agent.settle(GONE, false);
            if !early {
                lay_out(&mut agent);
            }
            // Again, as with each change of groups: what has become of a block since stays.
            *agent.directory.entry(nth(2)).unwrap() =
                entry(Owner::Home, 0, GlobalStatus::Shared, 2);
            lay_out(&mut agent);
            [0, 1, 2, 3].map(|block| *agent.directory.entry(nth(block)).unwrap())
        };
        use GlobalStatus::{Modified, Shared, Unshared};
        let [writable, read, since, locked] = made(false);
        assert_eq!(writable, entry(Owner::Home, 0, Modified, 0b1000));
        assert_eq!(read, entry(Owner::Home, 0, Shared, 0b1010));
        assert_eq!(since, entry(Owner::Home, 0, Shared, 0b10));
        assert!(lock::held_alone(locked.lock) && locked.status == Unshared);
        assert_eq!(made(true), made(false));
    }

    fn entry(owner: Owner, lock: u16, status: GlobalStatus, copyset: u32) -> Entry {
        Entry {
            lock,
            status,
            owner,
            copyset: Copyset(copyset),
        }
    }

    fn found(copyset: u32, writer: Option<NodeId>) -> Finding {
        Finding {
            copyset: Copyset(copyset),
            writer,
            ..Finding::default()
        }
    }

    #[test]
    fn caches_say_what_an_entry_is() {
        let old = entry(Owner::Home, 3, GlobalStatus::Shared, 0b1111);
        let next = remake(old, found(0b11, None), GONE, false);
        assert_eq!(next, entry(Owner::Home, 0, GlobalStatus::Shared, 0b11));
        let next = remake(old, found(0b10, Some(1)), GONE, false);
        assert_eq!(next, entry(Owner::Home, 0, GlobalStatus::Modified, 0b10));
        let next = remake(old, found(0, None), GONE, false);
        assert_eq!(next, Entry::default());
    }

    #[test]
    fn what_only_the_dead_had_is_lost() {
        use GlobalStatus::{Modified, Unshared};
        let lost = |old, finding| remake(old, finding, GONE, false).owner == Owner::Lost;
        assert!(lost(
            entry(Owner::Home, 0, Modified, 0b1000),
            found(0, None)
        ));
        assert!(!lost(
            entry(Owner::Home, 0, Modified, 0b0100),
            found(0, None)
        ));
        // A dead node held the lock, and may have written.
        let locked = entry(Owner::Home, 0x8000, Unshared, 0);
        assert!(lost(locked, found(0, None)));
        let explained = Finding {
            explained: true,
            ..Finding::default()
        };
        assert!(!lost(locked, explained));
        // Nobody has died: the lock was a live node's, which has told of it or of its copy.
        assert_eq!(
            remake(locked, found(0, None), Copyset::EMPTY, true).owner,
            Owner::Home
        );
    }

    #[test]
    fn what_the_switch_knew_is_gone_with_it() {
        let old = entry(Owner::Switch, 0, GlobalStatus::Unshared, 0);
        let owner = |gone, registers, switch_lost| {
            let finding = Finding {
                registers,
                ..Finding::default()
            };
            remake(old, finding, gone, switch_lost).owner
        };
        assert_eq!(owner(Copyset::EMPTY, None, true), Owner::Home);
        assert_eq!(owner(GONE, None, true), Owner::Lost);
        let clean = Registers {
            lock: 0,
            status: GlobalStatus::Shared,
            copyset: GONE,
        };
        assert_eq!(owner(GONE, Some(clean), false), Owner::Home);
        let dirty = Registers {
            status: GlobalStatus::Modified,
            ..clean
        };
        assert_eq!(owner(GONE, Some(dirty), false), Owner::Lost);
    }
}
