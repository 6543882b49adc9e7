//! The bytes of lines: what a node that keeps copies has, and what its threads write and read.
//!
//! [`ReplicatedMemory`] is what one lock of a host covers: the protocol's value and its bytes. A
//! section puts segments together and cuts lines into segments, and leaves what is to be done when
//! the lock is not held any more ([`Effect`]).

use super::mirror::{Kernels, room};
use super::{Abd, Body, Defect, Effects, FILLING, GROUPS, Layout, MAX_LINE, Outcome};
use super::{Staging, Stamp, config_of, first_line};
use crate::call::{Operands, Parcel, put_segment};
use crate::wire::{Dest, Flags, Header, Kind, NodeId, OWN_LEN, Own, Record, Tag, segment_len};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

/// A line that has not been written.
static ZEROS: [u8; MAX_LINE as usize] = [0; MAX_LINE as usize];

impl Parcel {
    /// The config that it was sent in, if it is of replicated memory.
    pub fn config(&self) -> u32 {
        config_of(&self.split().0)
    }
}

/// What a section leaves to its host, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Sends a packet.
    Send(Parcel),
    /// Makes a line durable, which this packet has completed: see [`Effects::sync`].
    Sync(Box<[u8]>, Header, Own),
    /// A line has another content.
    Stored(Tag, Stamp),
    /// A group has another config here.
    Adopted(u16),
    /// No copy of a group is kept here any more.
    Forgot(u16),
    /// The operation in this slot has ended.
    Ended(u8),
    /// A group has a newer config than is known here.
    Behind,
}

/// Lines of a node, by address, and their parts.
#[derive(Clone, Debug)]
pub struct Lines {
    me: NodeId,
    /// Bytes of a packet's body.
    room: u32,
    layouts: Vec<Option<Layout>>,
    lines: BTreeMap<Tag, Box<[u8]>>,
    staging: BTreeMap<Staging, Vec<u8>>,
    /// What threads write, or have read.
    pub operands: Operands<Outcome>,
    /// Whose kernels answer, as they have said.
    pub kernels: Kernels,
    /// A rule that is broken, to see that checkers notice.
    broken: Option<Defect>,
}

impl Lines {
    /// None, at a node whose packets have room for so many bytes.
    fn new(me: NodeId, room: usize) -> Self {
        Lines {
            me,
            room: room.saturating_sub(OWN_LEN) as u32,
            layouts: Vec::new(),
            lines: BTreeMap::new(),
            staging: BTreeMap::new(),
            operands: Operands::default(),
            kernels: Kernels::default(),
            broken: None,
        }
    }

    /// The lines of a group are these.
    pub fn lay_out(&mut self, group: u16, layout: Layout) {
        let at = usize::from(group);
        if at >= GROUPS {
            return;
        }
        if self.layouts.len() <= at {
            self.layouts.resize(at + 1, None);
        }
        self.layouts[at] = Some(layout);
    }

    /// The lines of a group.
    pub fn layout(&self, group: u16) -> Option<Layout> {
        self.layouts.get(usize::from(group)).copied().flatten()
    }

    /// Bytes of a line of a group that one packet carries as it is.
    pub fn in_one(&self, group: u16) -> Option<u32> {
        let line = self.layout(group)?.line;
        (line <= self.room).then_some(line)
    }

    /// Bytes of a line of the group that an address is in.
    fn line_len(&self, tag: Tag) -> usize {
        let layout = self.layout(tag.home().0);
        layout.map_or(0, |layout| layout.line as usize)
    }

    /// Lines of a group as a store has them, and no others.
    pub fn restore(&mut self, group: u16, lines: BTreeMap<Tag, Box<[u8]>>) {
        self.forget(group);
        self.lines.extend(lines);
    }

    /// The content of a line.
    pub fn set(&mut self, tag: Tag, line: Box<[u8]>) {
        self.lines.insert(tag, line);
    }

    /// The same, in place where the line has been written before.
    fn write(&mut self, tag: Tag, bytes: &[u8]) {
        match self.lines.get_mut(&tag) {
            Some(line) if line.len() == bytes.len() => line.copy_from_slice(bytes),
            _ => self.set(tag, bytes.into()),
        }
    }

    /// A line that has been written.
    pub fn line(&self, tag: Tag) -> Option<&[u8]> {
        self.lines.get(&tag).map(|line| &line[..])
    }

    /// Frees the lines of a group: no copy of it is kept here.
    pub fn forget(&mut self, group: u16) {
        self.staging.retain(|at, _| at.group() != group);
        let (first, last) = lines_of(group);
        let mut from = self.lines.split_off(&first);
        if let Some(next) = last.0.checked_add(1) {
            self.lines.append(&mut from.split_off(&Tag(next)));
        }
    }

    /// Lines of a group that have been written.
    pub fn written(&self, group: u16) -> u64 {
        let (first, last) = lines_of(group);
        self.lines.range(first..=last).count() as u64
    }
}

/// The first and the last address of a group.
fn lines_of(group: u16) -> (Tag, Tag) {
    let first = first_line(group);
    (first, Tag(first.0 | (Tag::SPACE - 1)))
}

/// See the module.
#[derive(Clone, Debug)]
pub struct ReplicatedMemory {
    /// The protocol's value.
    pub abd: Abd,
    /// Its bytes.
    pub lines: Lines,
}

impl Hash for ReplicatedMemory {
    fn hash<H: Hasher>(&self, into: &mut H) {
        self.abd.fingerprint(into);
        (&self.lines.lines, &self.lines.staging).hash(into);
        self.lines.operands.hash(into);
    }
}

impl ReplicatedMemory {
    /// Of a node that knows of no group, whose packets have room for so many bytes.
    pub fn new((me, incarnation): (NodeId, u32), room: usize) -> Self {
        ReplicatedMemory {
            abd: Abd::new(me, incarnation),
            lines: Lines::new(me, room),
        }
    }

    /// Breaks a rule, to see that checkers notice.
    #[must_use]
    pub fn breaking(mut self, rule: Option<Defect>) -> Self {
        self.lines.broken = rule;
        self
    }

    /// A section. `segment`: where that of the packet at hand belongs, and what it is.
    pub fn section<R>(
        &mut self,
        segment: (u32, &[u8]),
        act: impl FnOnce(&mut Abd, &mut Section<'_>) -> R,
    ) -> (R, Vec<Effect>) {
        let mut section = Section {
            lines: &mut self.lines,
            segment,
            at: None,
            effects: Vec::new(),
        };
        let result = act(&mut self.abd, &mut section);
        section.put();
        (result, section.effects)
    }

    /// A packet comes. The engine does the same for a host that has other protocols too.
    pub fn packet(&mut self, parcel: &Parcel) -> Vec<Effect> {
        let (header, (own, rest)) = (&parcel.header, parcel.split());
        let records: Vec<Record> = match header.kind {
            Kind::AbdFillAck => Record::all(rest).collect(),
            _ => Vec::new(),
        };
        let len = rest.len() as u32;
        let act = |abd: &mut Abd, section: &mut Section<'_>| {
            abd.packet(header, &own, (len, &records), section);
        };
        self.section((header.offset, rest), act).1
    }

    /// The thread in a slot waits no longer. Says what came of its operation if it had ended.
    pub fn abandon(&mut self, slot: u8) -> Option<(Outcome, Vec<u8>)> {
        self.abd.abandon(slot);
        self.lines.operands.abandon(slot)
    }
}

/// What a section acts by.
#[derive(Debug)]
pub struct Section<'s> {
    /// Lines of the node.
    pub lines: &'s mut Lines,
    segment: (u32, &'s [u8]),
    /// Where the segment is to be staged. One that is a whole line never is.
    at: Option<Staging>,
    effects: Vec<Effect>,
}

impl<'s> Section<'s> {
    fn parcel(&mut self, to: Dest, header: Header, own: Own, rest: &[u8]) {
        if matches!(to, Dest::Agent(_) | Dest::Switch) {
            let parcel = Parcel::new(to, header, own, rest);
            return self.effects.push(Effect::Send(parcel));
        }
        let each = Parcel::each((to, header), own, rest);
        self.effects.extend(each.map(Effect::Send));
    }

    /// Asks for a line: who is asked for its bytes has room for them, if its kernel answers.
    fn ask(&mut self, to: Dest, header: Header, own: Own) {
        let line = self.lines.in_one(header.tag.home().0);
        let room = line.map_or(0, room);
        let kernels = self.lines.kernels.of(header.tag.home().0);
        for mut each in Parcel::each((to, header), own, &[]) {
            let asks = each.header.flags.has(Flags::PROVIDER) && each.header.reply_port != 0;
            if let (true, Dest::Agent(node)) = (asks, each.to)
                && kernels.contains(node)
            {
                each = Parcel::new(each.to, each.header, own, &ZEROS[..room]);
            }
            self.effects.push(Effect::Send(each));
        }
    }

    /// Puts the segment where it is to be staged.
    fn put(&mut self) {
        if let Some(at) = self.at.take() {
            put_segment(self.lines.staging.entry(at).or_default(), self.segment);
        }
    }

    /// The segment, if it is all that is staged of a line: what is there else is of earlier ones.
    fn whole(&mut self, at: Staging, line: Tag) -> Option<&'s [u8]> {
        let (offset, bytes) = self.segment;
        let whole = offset == 0 && bytes.len() == self.lines.line_len(line);
        if !whole || self.lines.broken.is_some() || self.at != Some(at) {
            return None;
        }
        self.at = None;
        if !self.lines.staging.is_empty() {
            self.lines.staging.remove(&at);
        }
        Some(bytes)
    }
}

impl Effects for Section<'_> {
    fn stage(&mut self, at: Staging) {
        self.put();
        self.at = Some(at);
    }

    fn sync(&mut self, at: Staging, header: &Header, own: Own) {
        self.put();
        let mut line = self.lines.staging.get(&at).cloned().unwrap_or_default();
        line.resize(self.lines.line_len(header.tag), 0);
        self.effects.push(Effect::Sync(line.into(), *header, own));
    }

    fn commit(&mut self, at: Staging, line: Tag, stamp: Stamp) {
        if let Some(bytes) = self.whole(at, line) {
            self.lines.write(line, bytes);
            self.effects.push(Effect::Stored(line, stamp));
            return;
        }
        self.put();
        let staged = match self.lines.broken {
            // A place that mixes writes has what the last one has left there.
            Some(Defect::MixTwoWrites) => self.lines.staging.get(&at).cloned(),
            _ => self.lines.staging.remove(&at),
        };
        let mut staged = staged.unwrap_or_default();
        // A staging place may have been used for longer lines before.
        staged.resize(self.lines.line_len(line), 0);
        self.lines.set(line, staged.into());
        self.effects.push(Effect::Stored(line, stamp));
    }

    fn gather(&mut self, slot: u8) {
        put_segment(self.lines.operands.value_mut(slot), self.segment);
    }

    fn send(&mut self, to: Dest, header: &Header, own: Own, body: Body<'_>) {
        let mut header = *header;
        let mine = header.requester.node == self.lines.me && header.kind.asks_copies();
        if mine && header.seq != FILLING {
            let slot = header.requester.slot as u8;
            header.reply_port = self.lines.operands.reply_port(slot);
        }
        let lines = &*self.lines;
        let zeros = ZEROS.get(..lines.line_len(header.tag)).unwrap_or(&ZEROS);
        lines.kernels.say(&to, &mut header);
        let value = match body {
            Body::Nothing if mine && header.kind == Kind::AbdRead => {
                return self.ask(to, header, own);
            }
            Body::Nothing => return self.parcel(to, header, own, &[]),
            Body::Records(records) => {
                let bytes: Vec<u8> = records.iter().flat_map(|r: &Record| r.to_bytes()).collect();
                return self.parcel(to, header, own, &bytes);
            }
            Body::Line => lines.line(header.tag).unwrap_or(zeros),
            Body::Value(slot) => lines.operands.value(slot),
        };
        let segment = segment_len(value.len() as u32, lines.room) as usize;
        header.flags = header.flags.and(Flags::DATA);
        for (nth, part) in value.chunks(segment.max(1)).enumerate() {
            header.offset = (nth * segment) as u32;
            let each = Parcel::each((to, header), own, part);
            self.effects.extend(each.map(Effect::Send));
        }
    }

    fn done(&mut self, slot: u8, outcome: Outcome) {
        self.lines.operands.end(slot, outcome);
        self.effects.push(Effect::Ended(slot));
    }

    fn adopted(&mut self, group: u16, _: u32) {
        self.effects.push(Effect::Adopted(group));
    }

    fn forget(&mut self, group: u16) {
        self.lines.forget(group);
        self.effects.push(Effect::Forgot(group));
    }

    fn answered(&mut self, header: &Header) {
        self.lines.kernels.hear(self.lines.me, header);
    }

    fn behind(&mut self, _: u16, _: u32) {
        self.effects.push(Effect::Behind);
    }

    #[inline]
    fn defect(&self) -> Option<Defect> {
        self.lines.broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{RequesterId, Seq};
    use alloc::vec;

    fn memory() -> ReplicatedMemory {
        let mut memory = ReplicatedMemory::new((2, 1), OWN_LEN + 64);
        for group in [0, 1, GROUPS as u16 - 1] {
            memory.lines.lay_out(
                group,
                Layout {
                    line: 256,
                    bytes: 512,
                },
            );
        }
        memory
    }

    fn sent(memory: &mut ReplicatedMemory, header: &Header, body: Body<'_>) -> Vec<Parcel> {
        let to = Dest::Agent(5);
        let (_, effects) = memory.section((0, &[]), |_, section| {
            section.send(to, header, Own::default(), body);
        });
        let parcels = effects.into_iter().map(|effect| match effect {
            Effect::Send(parcel) => parcel,
            other => panic!("{other:?}"),
        });
        parcels.collect()
    }

    #[test]
    fn a_line_is_cut_into_segments_and_one_that_was_never_written_is_zeros() {
        let mut memory = memory();
        let written: Vec<u8> = (0..=255).collect();
        memory.lines.set(first_line(1), written.clone().into());
        for (tag, line) in [(first_line(1), written), (first_line(0), vec![0; 256])] {
            let who = RequesterId { node: 5, slot: 0 };
            let header = Header::request(Kind::AbdReadAck, 0, tag, who, Seq(1));
            let parcels = sent(&mut memory, &header, Body::Line);
            let mut value = Vec::new();
            for (nth, parcel) in parcels.iter().enumerate() {
                assert_eq!(parcel.header.offset, nth as u32 * 64);
                assert!(parcel.header.flags.has(Flags::DATA));
                put_segment(&mut value, (parcel.header.offset, parcel.split().1));
            }
            assert_eq!((parcels.len(), value), (4, line));
        }
    }

    #[test]
    fn only_questions_of_this_nodes_threads_say_where_they_listen() {
        let mut memory = memory();
        memory.lines.operands.begin(3, Vec::new(), 77);
        let port = |memory: &mut ReplicatedMemory, kind, node, seq| {
            let who = RequesterId { node, slot: 3 };
            let header = Header::request(kind, 0, first_line(0), who, seq);
            sent(memory, &header, Body::Nothing)[0].header.reply_port
        };
        assert_eq!(port(&mut memory, Kind::AbdRead, 2, Seq(1)), 77);
        assert_eq!(port(&mut memory, Kind::AbdRead, 5, Seq(1)), 0);
        assert_eq!(port(&mut memory, Kind::AbdRead, 2, FILLING), 0);
        assert_eq!(port(&mut memory, Kind::AbdReadAck, 2, Seq(1)), 0);
    }

    /// A node fills in two groups at once, and a requester writes to two.
    #[test]
    fn segments_of_lines_of_different_groups_are_kept_apart() {
        let id = RequesterId { node: 1, slot: 2 };
        let places: [fn(u16, RequesterId) -> Staging; 2] = [
            |group, _| Staging::Fill(group, 0),
            |group, id| Staging::Of(group, id, 1),
        ];
        for place in places {
            let mut memory = memory();
            let mut segment = |group: u16, offset: u32, last: bool| {
                let bytes = [group as u8 + 1; 128];
                let (at, line) = (place(group, id), first_line(group));
                let act = |_: &mut Abd, section: &mut Section<'_>| {
                    section.stage(at);
                    if last {
                        section.commit(at, line, Stamp(7));
                    }
                };
                memory.section((offset, &bytes), act);
            };
            segment(0, 0, false);
            segment(1, 0, false);
            segment(1, 128, true);
            segment(0, 128, true);
            for group in [0, 1] {
                let line = memory.lines.line(first_line(group)).unwrap();
                assert!(line.iter().all(|byte| *byte == group as u8 + 1), "{line:?}");
            }
        }
    }

    #[test]
    fn lines_of_one_group_are_forgotten_and_no_others() {
        let mut memory = memory();
        let last = GROUPS as u16 - 1;
        for group in [0, 1, last] {
            memory.lines.set(first_line(group), Box::new([1; 256]));
        }
        let kept = |lines: &Lines| [0, 1, last].map(|group| lines.written(group));
        memory.lines.forget(1);
        assert_eq!(kept(&memory.lines), [1, 0, 1]);
        memory.lines.forget(last);
        assert_eq!(kept(&memory.lines), [1, 0, 0]);
    }
}
