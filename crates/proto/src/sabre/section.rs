//! Bytes that are no object's, and how they travel: what requesters write until all of it is here,
//! what a node's threads write and have read, and the segments of packets.
//!
//! The words of objects are the host's ([`Words`]).

use super::transaction::{ENDED, Entry, Parts, decode};
use super::{Bytes, Defect, Effects, GRANULE, LINE, Lane, MAX_BYTES, Memory, Meta, Outcome, Spot};
use crate::call::{Operands, Parcel, put_segment};
use crate::wire::{Dest, Flags, Header, HomeId, NodeId, OWN_LEN, Own, RequesterId, Tag};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes behind what a request has of its own that make room for so many of an object: the answer
/// is copied by lines.
const fn room_for(bytes: u32) -> usize {
    (OWN_LEN + bytes as usize).next_multiple_of(LINE as usize) - OWN_LEN
}

/// The room for a granule.
static NO_CONTENT: [u8; room_for(GRANULE)] = [0; room_for(GRANULE)];

/// Objects with their bytes.
pub trait Words: Memory {
    /// Copies bytes of an object out, from this one on.
    fn copy_out(&mut self, object: Tag, from: u32, out: &mut [u8]);
    /// These are its first bytes. A writer is in.
    fn copy_in(&mut self, object: Tag, bytes: &[u8]);
    /// Makes zeros of its first bytes. A writer is in.
    fn zero(&mut self, object: Tag, bytes: u32);
}

/// What a node keeps beside objects, behind the lock of its [`super::Sabre`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Values {
    staging: BTreeMap<RequesterId, Vec<u8>>,
    /// By the place of an operation among those that its thread has begun together.
    lanes: Vec<Operands<Outcome>>,
    /// Parts of transactions that write at this home.
    parts: BTreeMap<RequesterId, Vec<u8>>,
    /// Transactions of this node's threads, by slot.
    transactions: BTreeMap<u8, Commit>,
}

/// A transaction of a thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Commit {
    reply_port: u16,
    /// What it writes, by home.
    parts: Vec<Vec<u8>>,
    outcome: Option<Outcome>,
}

impl Values {
    /// A thread commits a transaction in a slot that it has for itself, and in which none is under
    /// way: what it writes at each home, and where it listens.
    pub fn begin_transaction(&mut self, slot: u8, reply_port: u16, parts: &mut Parts) {
        let commit = Commit {
            reply_port,
            parts: core::mem::take(&mut parts.bytes),
            outcome: None,
        };
        self.transactions.insert(slot, commit);
    }

    /// What came of it, once it has ended.
    pub fn end_transaction(&mut self, slot: u8) -> Option<Outcome> {
        let outcome = self.transactions.get(&slot)?.outcome?;
        self.transactions.remove(&slot);
        Some(outcome)
    }

    /// Its thread listens no longer: answers are the node's.
    pub fn leave_transaction(&mut self, slot: u8) {
        if let Some(commit) = self.transactions.get_mut(&slot) {
            commit.reply_port = 0;
        }
    }

    /// A thread begins so many operations in a slot that it has for itself: what the first one
    /// writes, and where it listens for answers; zero: nowhere but at the node.
    pub fn begin(&mut self, slot: u8, reply_port: u16, (value, count): (Vec<u8>, usize)) {
        if self.lanes.len() < count {
            self.lanes.resize_with(count, Operands::default);
        }
        let mut value = Some(value);
        for lane in self.lanes.iter_mut().take(count) {
            lane.begin(slot, value.take().unwrap_or_default(), reply_port);
        }
    }

    /// What came of an operation and what it has read, once it has ended.
    pub fn take(&mut self, lane: Lane) -> Option<(Outcome, Vec<u8>)> {
        let operands = self.lanes.get_mut(usize::from(lane.nth))?;
        operands.take(lane.slot)
    }

    fn of(&self, nth: u8) -> Option<&Operands<Outcome>> {
        self.lanes.get(usize::from(nth))
    }
}

/// How a node sends.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// The node.
    pub node: NodeId,
    /// The epoch that it is in.
    pub epoch: u32,
    /// Bytes of a packet's body.
    pub room: usize,
    /// A rule that is broken, to see that checkers notice.
    pub broken: Option<Defect>,
}

/// What a section acts by.
#[derive(Debug)]
pub struct Section<'s, W> {
    words: W,
    values: &'s mut Values,
    /// Where the segment of the packet at hand belongs, and what it is.
    segment: (u32, &'s [u8]),
    sender: Sender,
    /// What was copied of an object.
    copied: Vec<u8>,
    /// What is to be sent when the lock is not held any more.
    pub sent: Vec<Parcel>,
    /// Whether an operation has ended.
    pub ended: bool,
}

impl<'s, W: Words> Section<'s, W> {
    /// A section over these objects. `segment`: where that of the packet at hand belongs, and what
    /// it is.
    pub fn new(words: W, values: &'s mut Values, segment: (u32, &'s [u8]), sender: Sender) -> Self {
        Section {
            words,
            values,
            segment,
            sender,
            copied: Vec::new(),
            sent: Vec::new(),
            ended: false,
        }
    }

    fn has_room(&self) -> bool {
        let (offset, segment) = self.segment;
        offset as usize + segment.len() <= MAX_BYTES as usize
    }
}

impl<W: Words> Memory for Section<'_, W> {
    fn version(&mut self, object: Tag) -> u64 {
        self.words.version(object)
    }

    fn meta(&mut self, object: Tag) -> Meta {
        self.words.meta(object)
    }

    fn version_now(&mut self, object: Tag) -> u64 {
        self.words.version_now(object)
    }

    fn take(&mut self, object: Tag, version: u64) -> bool {
        self.words.take(object, version)
    }

    fn set_meta(&mut self, object: Tag, meta: Meta) {
        self.words.set_meta(object, meta);
    }

    fn release(&mut self, object: Tag, version: u64) {
        self.words.release(object, version);
    }

    fn open_slab(&mut self, spot: Spot) -> bool {
        self.words.open_slab(spot)
    }
}

impl<W: Words> Effects for Section<'_, W> {
    fn copy(&mut self, object: Tag, from: u32, bytes: u32) {
        self.copied.resize(bytes as usize, 0);
        self.words.copy_out(object, from, &mut self.copied);
    }

    fn stage(&mut self, of: RequesterId) {
        if self.has_room() {
            put_segment(self.values.staging.entry(of).or_default(), self.segment);
        }
    }

    fn staged(&mut self, of: RequesterId, bytes: u32) -> Vec<u8> {
        let mut value = self.values.staging.get(&of).cloned().unwrap_or_default();
        value.resize(bytes as usize, 0);
        value
    }

    fn fill(&mut self, object: Tag, content: &[u8]) {
        self.words.copy_in(object, content);
    }

    fn put(&mut self, of: RequesterId, object: Tag, bytes: u32) {
        let staged = match self.sender.broken {
            // Segments of the last write are still there when the next one comes.
            Some(Defect::MixTwoWrites) => self.values.staging.get(&of).cloned(),
            // What is kept for a requester is given back with each write of it.
            _ => self.values.staging.remove(&of),
        };
        let mut value = staged.unwrap_or_default();
        value.resize(bytes as usize, 0);
        self.words.copy_in(object, &value);
    }

    fn stage_part(&mut self, of: RequesterId) {
        put_segment(self.values.parts.entry(of).or_default(), self.segment);
    }

    fn entries(&mut self, of: RequesterId, objects: u32) -> Option<Vec<(Entry, Range<usize>)>> {
        decode(self.values.parts.get(&of)?, objects)
    }

    fn put_part(&mut self, of: RequesterId, content: Range<usize>, object: Tag) {
        let part = self.values.parts.get(&of);
        if let Some(content) = part.and_then(|part| part.get(content)) {
            self.words.copy_in(object, content);
        }
    }

    fn drop_part(&mut self, of: RequesterId) {
        self.values.parts.remove(&of);
    }

    fn zero(&mut self, object: Tag, bytes: u32) {
        self.words.zero(object, bytes);
    }

    fn gather(&mut self, lane: Lane) {
        if self.has_room()
            && let Some(operands) = self.values.lanes.get_mut(usize::from(lane.nth))
        {
            put_segment(operands.value_mut(lane.slot), self.segment);
        }
    }

    fn send(&mut self, to: Dest, header: &Header, own: Own, bytes: Bytes) {
        let (
            Sender {
                node, epoch, room, ..
            },
            first,
        ) = (self.sender, self.values.of(0));
        let commit = match bytes {
            Bytes::Part(slot, ..) => self.values.transactions.get(&slot),
            _ => None,
        };
        let mut header = *header;
        (header.epoch, header.sender) = (epoch, node);
        let to = match to {
            // An answer for a thread that listens goes there and wakes no other.
            Dest::Requester(id) if header.reply_port == 0 => Dest::Agent(id.node),
            Dest::Home(_) => {
                let slot = header.requester.slot as u8;
                header.reply_port = match bytes {
                    // No thread has asked this, and none may be listening in the slot.
                    _ if header.seq == ENDED => 0,
                    // Its own home's answer is a call.
                    Bytes::Part(..) if to == Dest::Home(HomeId::of(node)) => 0,
                    Bytes::Part(..) => commit.map_or(0, |commit| commit.reply_port),
                    _ => first.map_or(0, |lane| lane.reply_port(slot)),
                };
                to
            }
            to => to,
        };
        let value = match bytes {
            Bytes::Nothing => &[],
            Bytes::Copied => &self.copied[..],
            Bytes::Value(slot) => first.map_or(&[][..], |lane| lane.value(slot)),
            Bytes::Part(_, nth, (from, count)) => {
                let part = commit.and_then(|commit| commit.parts.get(usize::from(nth)));
                let (from, end) = (from as usize, (from + count) as usize);
                part.and_then(|part| part.get(from..end))
                    .unwrap_or_default()
            }
            Bytes::Room(bytes) => {
                let zeros = &NO_CONTENT[..room_for(bytes).min(NO_CONTENT.len())];
                return self.sent.push(Parcel::new(to, header, own, zeros));
            }
        };
        if !matches!(bytes, Bytes::Nothing | Bytes::Part(_, _, (_, 0))) {
            header.flags = header.flags.and(Flags::DATA);
        }
        if value.is_empty() {
            return self.sent.push(Parcel::new(to, header, own, &[]));
        }
        let granule = GRANULE as usize;
        let segment = (room.saturating_sub(OWN_LEN) / granule * granule).max(granule);
        let from = header.offset;
        for (nth, part) in value.chunks(segment).enumerate() {
            header.offset = from + (nth * segment) as u32;
            self.sent.push(Parcel::new(to, header, own, part));
        }
    }

    fn done(&mut self, lane: Lane, outcome: Outcome) {
        if lane.nth == Lane::TRANSACTION {
            if let Some(commit) = self.values.transactions.get_mut(&lane.slot) {
                commit.outcome = Some(outcome);
                // What it has written is not sent any more.
                commit.parts = Vec::new();
            }
            self.ended = true;
            return;
        }
        let Some(operands) = self.values.lanes.get_mut(usize::from(lane.nth)) else {
            return;
        };
        if let Outcome::Read { len, .. } = outcome {
            operands.value_mut(lane.slot).resize(len as usize, 0);
        }
        operands.end(lane.slot, outcome);
        self.ended = true;
    }

    fn epoch(&self) -> u32 {
        self.sender.epoch
    }

    #[inline]
    fn defect(&self) -> Option<Defect> {
        self.sender.broken
    }
}
