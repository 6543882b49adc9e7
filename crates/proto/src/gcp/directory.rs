//! The directory of the locks that live at a home: it serves them itself,
//! or has placed them at the switch.
//!
//! A lock's place is decided once in an epoch, by the first request for it:
//! the switch takes it or is full, and neither changes. So a late copy of anything about it finds
//! what it found before, and there is no migration to make safe. A lock that only its home uses is
//! never placed; a new epoch asks for nothing, however many locks there are, and placements under
//! way are as many as requests.

use super::entry::Entry;
use super::few::Few;
use super::rest::Rest;
use super::settle::{Before, Report};
use super::{Mode, settle, with_version};
use crate::wire::{
    Copyset, Dest, GlobalStatus, Header, Kind, NodeId, Reason, RequesterId, Seq, Tag,
};
use crate::{Output, Outputs};

/// Who serves a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockPlace {
    /// Its home, until the first request of this epoch.
    Undecided,
    /// Its home.
    Here,
    /// The switch has been asked: the lock is not served until it answers.
    Placing,
    /// The switch.
    Switch,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Slot {
    entry: Entry,
    place: LockPlace,
}

/// The directory of one home.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LockDirectory {
    node: NodeId,
    epoch: u32,
    /// The entries were another node's, which this one has not got: [`Before::Elsewhere`].
    taken_over: bool,
    slots: Few<Slot>,
    dropped: u64,
}

impl LockDirectory {
    /// A home without locks.
    pub fn new(node: NodeId, epoch: u32) -> Self {
        LockDirectory {
            node,
            epoch,
            taken_over: false,
            slots: Few::new(),
            dropped: 0,
        }
    }

    /// A home that a group keeps, and that another node served until now, with this lock. It serves
    /// from the first [`LockDirectory::enter_epoch`] on.
    pub fn taken_over(node: NodeId, tag: Tag) -> Self {
        let mut directory = LockDirectory::new(node, 0);
        directory.create(tag);
        directory.taken_over = true;
        directory
    }

    /// Whether a lock is in another node's memory.
    fn is_elsewhere(&self, tag: Tag) -> bool {
        tag.home().is_own() && !tag.home().is_of(self.node)
    }

    /// Makes an entry for a new lock, which its home's [`super::Blade`] has. `false`: it exists,
    /// or lives elsewhere.
    pub fn create(&mut self, tag: Tag) -> bool {
        if self.is_elsewhere(tag) || self.slots.contains(tag) {
            return false;
        }
        let slot = Slot {
            entry: Entry::new(self.node, self.epoch),
            place: LockPlace::Undecided,
        };
        self.slots.insert(tag, slot);
        true
    }

    /// Makes an entry again of which only [`Rest`] was kept, in the same epoch. `false`: it exists,
    /// or lives elsewhere.
    pub fn wake(&mut self, tag: Tag, rest: Rest) -> bool {
        if self.is_elsewhere(tag) || self.slots.contains(tag) {
            return false;
        }
        let slot = Slot {
            entry: rest.entry(self.node, self.epoch),
            place: rest.place,
        };
        self.slots.insert(tag, slot);
        true
    }

    /// Asks the switch to serve a lock, as often as it is called; from the first time on nobody
    /// serves it until the switch has answered. Nothing when that is decided.
    pub fn place(&mut self, tag: Tag, outputs: &mut Outputs) {
        let Some(slot) = self.slots.get_mut(tag) else {
            return;
        };
        if !matches!(slot.place, LockPlace::Undecided | LockPlace::Placing) {
            return;
        }
        slot.place = LockPlace::Placing;
        let Entry { state, sharers } = slot.entry;
        let holder = RequesterId {
            node: state.holder.into(),
            slot: 0,
        };
        let mut header = Header::request(Kind::Place, self.epoch, tag, holder, Seq(0));
        header.sender = self.node;
        header.copyset = sharers;
        header.offset = state.keeper.into();
        header.reason = state.reason;
        header.status = match state.mode {
            Mode::Shared => GlobalStatus::Shared,
            Mode::Modified => GlobalStatus::Modified,
        };
        outputs.push(Output::new(
            Dest::Switch,
            with_version(header, state.version),
        ));
    }

    /// Takes a request in a rack with a switch, or the switch's answer. The first request of an
    /// epoch goes to the switch, behind the question whether it serves the lock; if the switch has
    /// no room, the request comes back.
    pub fn handle_or_place(&mut self, header: &Header) -> Outputs {
        let slot = self.slots.get(header.tag);
        let undecided = slot.is_some_and(|slot| slot.place == LockPlace::Undecided);
        if !undecided || header.kind != Kind::Acquire || header.epoch != self.epoch {
            return self.handle(header);
        }
        let mut outputs = Outputs::default();
        self.place(header.tag, &mut outputs);
        outputs.push(Output::new(Dest::Switch, *header));
        outputs
    }

    /// Takes a request where this home serves whatever it has not placed, or the switch's answer.
    pub fn handle(&mut self, header: &Header) -> Outputs {
        let mut outputs = Outputs::default();
        let slot = match self.slots.get_mut(header.tag) {
            Some(slot) if header.epoch == self.epoch => slot,
            _ => {
                self.dropped += 1;
                return outputs;
            }
        };
        match (header.kind, slot.place) {
            (Kind::Acquire | Kind::Release, LockPlace::Here | LockPlace::Undecided) => {
                slot.place = LockPlace::Here;
                if let Some(output) = slot.entry.handle(header, self.node) {
                    outputs.push(output);
                }
            }
            (Kind::PlaceAck, LockPlace::Placing) => {
                slot.place = match header.reason {
                    Reason::None => LockPlace::Switch,
                    _ => LockPlace::Here,
                };
            }
            _ => self.dropped += 1,
        }
        outputs
    }

    /// An entry, and who serves it. While the switch does, it is what it was before.
    pub fn entry(&self, tag: Tag) -> Option<(Entry, LockPlace)> {
        self.slots.get(tag).map(|slot| (slot.entry, slot.place))
    }

    /// The locks.
    pub fn tags(&self) -> impl Iterator<Item = Tag> {
        self.slots.iter().map(|(tag, _)| tag)
    }

    /// Packets that were dropped: another epoch, an unknown lock, or one that is served elsewhere.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The epoch that its entries serve.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The next epoch: every entry is rebuilt from the live nodes' reports (`reports`)
    /// and, where the switch that served a lock has survived, from what it had in an epoch
    /// (`switch`). `since`: the epoch that this node settled last, and so many nodes that took part
    /// in it do not live. Entries that were made in this
    /// epoch stay as they are. What was the case in an epoch that the entries have left behind (a
    /// release under way, what a switch had) says nothing any more.
    pub fn enter_epoch(
        &mut self,
        epoch: u32,
        live: Copyset,
        since: (u32, u32),
        reports: impl Fn(Tag, &mut dyn FnMut(NodeId, Report)),
        switch: impl Fn(Tag) -> Option<(u32, Entry)>,
    ) {
        let served = core::mem::replace(&mut self.epoch, epoch);
        if served == epoch {
            return;
        }
        let (settled, dead) = since;
        let taken_over = core::mem::replace(&mut self.taken_over, false);
        for (tag, slot) in self.slots.iter_mut() {
            let before = match slot.place {
                _ if taken_over => Before::Elsewhere(settled),
                LockPlace::Here | LockPlace::Undecided => Before::Entry(slot.entry),
                // It may have taken the lock: only its own report counts.
                LockPlace::Placing | LockPlace::Switch => {
                    let had = switch(tag).filter(|had| had.0 == served);
                    let unknown = Before::Unknown(slot.entry.state.reason);
                    had.map_or(unknown, |had| Before::Entry(had.1))
                }
            };
            let mut told = alloc::vec::Vec::new();
            reports(tag, &mut |node, report| {
                let passing = report.passing.filter(|epoch| *epoch == served);
                told.push((node, Report { passing, ..report }));
            });
            slot.entry = settle(&told, before, live, dead, self.node, epoch);
            slot.place = LockPlace::Undecided;
        }
    }
}
