//! A node of replicated memory: the shipped value, and lines of two words in place of bytes.

use rackmem_proto::abd::{Abd, Body, Defect, Effects, Outcome, Staging, Stamp};
use rackmem_proto::wire::{Dest, Flags, Header, Own, Record, Tag};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// What a line holds: each half says which write it is of.
pub type Value = [u8; 2];

/// Bytes of a line.
pub const LINE: u32 = 64;

/// What travels behind a header: a segment of a line, or records.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Load {
    /// How long the segment is.
    pub len: u32,
    /// What it has: where it is half a line, the other half is nothing.
    pub value: Value,
    /// A list.
    pub records: Vec<Record>,
}

/// What a section wants done.
#[derive(Clone, Debug)]
pub enum Deed {
    /// A packet.
    Sent(Dest, Header, Own, Load),
    /// A line is stored.
    Committed(Tag, Stamp, Value),
    /// What the packet at hand has completed is on its way to the durable store.
    Sync,
    /// The thread's operation has ended; what it has read.
    Done(Outcome, Value),
}

/// What a host keeps beside the shipped value.
#[derive(Clone, Hash, Debug, Default)]
pub struct Bytes {
    /// Lines.
    pub lines: BTreeMap<Tag, Value>,
    staging: BTreeMap<Staging, Value>,
    /// What the node's thread writes, or has read.
    pub operand: Value,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Part {
    /// The shipped value.
    pub abd: Abd,
    /// What it has no part in.
    pub bytes: Bytes,
}

impl Hash for Part {
    fn hash<H: Hasher>(&self, into: &mut H) {
        self.abd.fingerprint(into);
        self.bytes.hash(into);
    }
}

/// What a section acts by.
pub struct Fx<'a> {
    bytes: &'a mut Bytes,
    /// Where the segment of the packet at hand belongs, and what it is.
    segment: (u32, &'a Load),
    segments: u32,
    defect: Option<Defect>,
    deeds: Vec<Deed>,
}

impl Part {
    /// A section, with the packet at hand if there is one, and what it wants done.
    pub fn section(
        &mut self,
        (segments, defect): (u32, Option<Defect>),
        packet: Option<(u32, &Load)>,
        act: impl FnOnce(&mut Abd, &mut Fx<'_>),
    ) -> Vec<Deed> {
        let nothing = Load::default();
        let mut fx = Fx {
            bytes: &mut self.bytes,
            segment: packet.unwrap_or((0, &nothing)),
            segments,
            defect,
            deeds: Vec::new(),
        };
        act(&mut self.abd, &mut fx);
        fx.deeds
    }
}

/// Puts a segment in its place.
fn put(value: &mut Value, (offset, load): (u32, &Load)) {
    let halves = [(0, LINE / 2), (LINE / 2, LINE)];
    for (nth, (from, to)) in halves.into_iter().enumerate() {
        if offset <= from && to <= offset + load.len {
            value[nth] = load.value[nth];
        }
    }
}

impl Effects for Fx<'_> {
    fn stage(&mut self, at: Staging) {
        put(self.bytes.staging.entry(at).or_default(), self.segment);
    }

    fn sync(&mut self, _: Staging) {
        self.deeds.push(Deed::Sync);
    }

    fn commit(&mut self, at: Staging, line: Tag, stamp: Stamp) {
        let value = self.bytes.staging.get(&at).copied().unwrap_or_default();
        // A row that mixes writes reads what the last one has left there.
        if self.defect != Some(Defect::MixTwoWrites) {
            self.bytes.staging.remove(&at);
        }
        self.bytes.lines.insert(line, value);
        self.deeds.push(Deed::Committed(line, stamp, value));
    }

    fn gather(&mut self, _: u8) {
        put(&mut self.bytes.operand, self.segment);
    }

    fn send(&mut self, to: Dest, header: &Header, own: Own, body: Body<'_>) {
        let value = match body {
            Body::Line => self
                .bytes
                .lines
                .get(&header.tag)
                .copied()
                .unwrap_or_default(),
            Body::Value(_) => self.bytes.operand,
            Body::Nothing | Body::Records(_) => {
                let records = match body {
                    Body::Records(records) => records.to_vec(),
                    _ => Vec::new(),
                };
                let load = Load {
                    records,
                    ..Load::default()
                };
                return self.deeds.push(Deed::Sent(to, *header, own, load));
            }
        };
        for nth in 0..self.segments {
            let mut header = *header;
            header.flags = header.flags.and(Flags::DATA);
            let len = LINE / self.segments;
            // A read that goes through a switch names its provider there; what has a body does not.
            header.offset = nth * len;
            let mut part = value;
            if self.segments == 2 {
                part[1 - nth as usize] = 0;
            }
            let load = Load {
                len,
                value: part,
                records: Vec::new(),
            };
            self.deeds.push(Deed::Sent(to, header, own, load));
        }
    }

    fn done(&mut self, _: u8, outcome: Outcome) {
        self.deeds.push(Deed::Done(outcome, self.bytes.operand));
    }

    fn defect(&self) -> Option<Defect> {
        self.defect
    }
}
