//! The shadow node's part (§5.2.2): SHADOW-TAG, and which entries have to leave the switch.
//!
//! The paper duplicates TAG from copies of the switch's acknowledgements. Those can be lost,
//! so the shadow also reads TAG, a few sets a period, and a new shadow reads all of it before
//! anything else: what it knows of a set is replaced by what is there. And where the paper removes
//! the coldest of a full set whenever a block asks for a place, here the one that asks must be
//! hotter, or two of equal heat would drive each other out for ever.

use crate::switch::set_of;
use crate::wire::{Header, Kind, NodeId, Reason, Record, RequesterId, Seq, Tag};
use crate::{Dest, Output};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How a shadow works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShadowConfig {
    /// Its node.
    pub node: NodeId,
    /// Epoch of the rack.
    pub epoch: u32,
    /// Candidate locations of a tag in the switch.
    pub ways: u8,
    /// Entries in each way.
    pub sets: usize,
    /// Blocks asked to leave at the end of a period, at most.
    pub leave: u32,
    /// Periods without heat after which a block has to leave.
    pub patience: u32,
    /// Requests for TAG in a period, at most.
    pub reads: u32,
}

impl ShadowConfig {
    /// For a switch of so many ways and sets.
    pub fn new(node: NodeId, epoch: u32, ways: u8, sets: usize) -> Self {
        ShadowConfig {
            node,
            epoch,
            ways,
            sets: sets.max(1).next_power_of_two(),
            leave: 64,
            patience: 500,
            reads: 4,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    tag: Tag,
    heat: u32,
    /// Periods since it was last hot.
    idle: u32,
}

/// What a shadow has done.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ShadowCounters {
    /// Blocks asked to leave because they are no longer shared.
    pub cold: u64,
    /// Blocks asked to leave for a hotter one.
    pub displaced: u64,
    /// Sets read from the switch.
    pub read: u64,
}

/// The shadow of a switch.
#[derive(Clone, Debug)]
pub struct Shadow {
    config: ShadowConfig,
    /// SHADOW-TAG: the sets that hold anything.
    sets: BTreeMap<usize, Vec<Row>>,
    /// The set to read next, and whether a whole round has been made.
    cursor: usize,
    complete: bool,
    seq: Seq,
    counters: ShadowCounters,
}

impl Shadow {
    /// A shadow that knows nothing yet.
    pub fn new(config: ShadowConfig) -> Self {
        Shadow {
            config,
            sets: BTreeMap::new(),
            cursor: 0,
            complete: false,
            seq: Seq(0),
            counters: ShadowCounters::default(),
        }
    }

    /// Its epoch.
    pub fn epoch(&self) -> u32 {
        self.config.epoch
    }

    /// What it has done.
    pub fn counters(&self) -> ShadowCounters {
        self.counters
    }

    /// Blocks it knows to be in the switch.
    pub fn len(&self) -> usize {
        self.sets.values().map(Vec::len).sum()
    }

    /// Whether it knows of none.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Whether it has read all of TAG once.
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// The blocks it knows to be in the switch, with their heat.
    pub fn blocks(&self) -> impl Iterator<Item = (Tag, u32)> {
        self.sets.values().flatten().map(|row| (row.tag, row.heat))
    }

    fn set(&self, tag: Tag) -> usize {
        set_of(tag, self.config.sets)
    }

    fn find(&mut self, tag: Tag) -> Option<&mut Row> {
        let set = self.set(tag);
        let rows = self.sets.get_mut(&set)?;
        rows.iter_mut().find(|row| row.tag == tag)
    }

    fn insert(&mut self, tag: Tag, heat: u32) {
        if let Some(row) = self.find(tag) {
            row.heat = row.heat.max(heat);
            row.idle = 0;
            return;
        }
        let ways = usize::from(self.config.ways);
        let rows = self.sets.entry(set_of(tag, self.config.sets)).or_default();
        if rows.len() >= ways {
            // One of them has left without a report.
            remove_coldest(rows);
        }
        rows.push(Row { tag, heat, idle: 0 });
    }

    fn forget(&mut self, tag: Tag) {
        let set = self.set(tag);
        if let Some(rows) = self.sets.get_mut(&set) {
            rows.retain(|row| row.tag != tag);
            if rows.is_empty() {
                self.sets.remove(&set);
            }
        }
    }

    /// A packet for the shadow, with the records of its body.
    pub fn handle(
        &mut self,
        header: &Header,
        records: impl IntoIterator<Item = Record>,
    ) -> Vec<Output> {
        if header.epoch != self.config.epoch {
            return Vec::new();
        }
        match (header.kind, header.reason) {
            (Kind::AddAck, Reason::None) => self.insert(header.tag, header.offset),
            (Kind::AddAck, Reason::Full) => {
                return self.collided(header).into_iter().collect();
            }
            // The second step of a removal: its location is free.
            (Kind::RemoveAck, Reason::None) if header.flags.has(crate::wire::Flags::GRANTED) => {
                self.forget(header.tag);
            }
            (Kind::HeatReport, _) => {
                for record in records {
                    if let Some(row) = self.find(record.tag) {
                        row.heat = row.heat.saturating_add(record.word.min(1 << 30) as u32);
                        row.idle = 0;
                    }
                }
            }
            (Kind::Tags, _) if header.seq == self.seq => {
                return self.tags(header, records).into_iter().collect();
            }
            _ => {}
        }
        Vec::new()
    }

    /// A block finds all its locations taken: the coldest of them makes room, if it is colder.
    fn collided(&mut self, header: &Header) -> Option<Output> {
        let set = self.set(header.tag);
        let rows = self.sets.get_mut(&set)?;
        let coldest = rows.iter().min_by_key(|row| (row.heat, row.tag)).copied()?;
        if coldest.heat >= header.offset {
            return None;
        }
        rows.retain(|row| row.tag != coldest.tag);
        self.counters.displaced += 1;
        Some(self.demote(coldest.tag))
    }

    fn demote(&self, tag: Tag) -> Output {
        let id = RequesterId {
            node: self.config.node,
            slot: 0,
        };
        let header = Header::request(Kind::Demote, self.config.epoch, tag, id, Seq(0));
        Output::new(Dest::Home(tag.home()), header)
    }

    /// Ends a period: who was not hot cools down, who has been cold for long has to leave,
    /// and some sets are read.
    pub fn end_period(&mut self) -> Vec<Output> {
        let (leave, patience) = (self.config.leave as usize, self.config.patience);
        let mut cold = Vec::new();
        for rows in self.sets.values_mut() {
            for row in rows.iter_mut() {
                row.heat -= row.heat.div_ceil(8);
                row.idle = row.idle.saturating_add(1);
                if row.idle > patience && cold.len() < leave {
                    cold.push(row.tag);
                }
            }
        }
        let mut outputs = Vec::new();
        for tag in cold {
            self.forget(tag);
            self.counters.cold += 1;
            outputs.push(self.demote(tag));
        }
        outputs.extend(self.read());
        outputs
    }

    fn read(&mut self) -> Option<Output> {
        self.seq = self.seq.next();
        let id = RequesterId {
            node: self.config.node,
            slot: 0,
        };
        let mut header = Header::request(Kind::ReadTags, self.config.epoch, Tag(0), id, self.seq);
        header.offset = self.cursor as u32;
        Some(Output::new(Dest::Switch, header))
    }

    /// The switch has reported the tags from our cursor to the set in the packet's tag.
    fn tags(
        &mut self,
        header: &Header,
        records: impl IntoIterator<Item = Record>,
    ) -> Option<Output> {
        let end = (header.tag.0 as usize).min(self.config.sets);
        if end <= self.cursor {
            return None;
        }
        let mut there: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
        for record in records {
            let set = self.set(record.tag);
            if (self.cursor..end).contains(&set) {
                let known = self.find(record.tag).copied();
                let fresh = Row {
                    tag: record.tag,
                    heat: 0,
                    idle: 0,
                };
                there.entry(set).or_default().push(known.unwrap_or(fresh));
            }
        }
        let mut tail = self.sets.split_off(&self.cursor);
        let mut after = tail.split_off(&end);
        self.sets.append(&mut there);
        self.sets.append(&mut after);
        self.counters.read += (end - self.cursor) as u64;
        self.cursor = end;
        if end == self.config.sets {
            self.cursor = 0;
            self.complete = true;
            return None;
        }
        // A new shadow goes on at once; later, one answer a period keeps it true.
        if self.complete { None } else { self.read() }
    }
}

fn remove_coldest(rows: &mut Vec<Row>) {
    if let Some(at) = (0..rows.len()).min_by_key(|&at| (rows[at].heat, rows[at].tag)) {
        rows.swap_remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shadow(sets: usize) -> Shadow {
        Shadow::new(ShadowConfig {
            patience: 3,
            ..ShadowConfig::new(0, 1, 2, sets)
        })
    }

    fn ack(tag: u64, heat: u32, reason: Reason) -> Header {
        let id = RequesterId { node: 1, slot: 0 };
        let mut header = Header::request(Kind::AddAck, 1, Tag(tag), id, Seq(1));
        (header.offset, header.reason) = (heat, reason);
        header
    }

    fn demoted(outputs: &[Output]) -> Vec<u64> {
        let demotes = outputs.iter().filter(|o| o.header.kind == Kind::Demote);
        demotes.map(|o| o.header.tag.0).collect()
    }

    #[test]
    fn the_coldest_makes_room_for_a_hotter_one() {
        let mut shadow = shadow(1);
        shadow.handle(&ack(0x1000, 5, Reason::None), []);
        shadow.handle(&ack(0x2000, 9, Reason::None), []);
        let out = shadow.handle(&ack(0x3000, 5, Reason::Full), []);
        assert!(demoted(&out).is_empty(), "no hotter than the coldest");
        let out = shadow.handle(&ack(0x3000, 6, Reason::Full), []);
        assert_eq!(demoted(&out), [0x1000]);
        assert_eq!(out[0].to, Dest::Home(out[0].header.tag.home()));
        // Reports count as well.
        let mut report = ack(0, 0, Reason::None);
        report.kind = Kind::HeatReport;
        let told = Record {
            tag: Tag(0x2000),
            word: 100,
        };
        shadow.handle(&report, [told]);
        let out = shadow.handle(&ack(0x3000, 50, Reason::Full), []);
        assert!(demoted(&out).is_empty());
    }

    #[test]
    fn the_cold_have_to_leave_in_the_end() {
        let mut shadow = shadow(16);
        shadow.handle(&ack(0x1000, 1, Reason::None), []);
        let periods = (0..9).filter(|_| !demoted(&shadow.end_period()).is_empty());
        assert_eq!(periods.count(), 1);
        assert!(shadow.is_empty());
    }

    #[test]
    fn a_new_shadow_reads_all_tags_and_forgets_what_is_not_there() {
        let mut shadow = shadow(4);
        shadow.handle(&ack(0x1000, 1, Reason::None), []);
        let mut ask = shadow.end_period().pop().unwrap();
        let there = Tag(0x7000);
        let mut asked = 0;
        loop {
            asked += 1;
            assert_eq!(ask.header.kind, Kind::ReadTags);
            let from = ask.header.offset as usize;
            let mut answer = ask.header.answer(Kind::Tags, u16::MAX);
            answer.tag = Tag(from as u64 + 1);
            let here = (set_of(there, 4) == from).then_some(Record {
                tag: there,
                word: from as u64,
            });
            match shadow.handle(&answer, here).pop() {
                Some(next) => ask = next,
                None => break,
            }
        }
        assert_eq!(asked, 4);
        assert!(shadow.complete());
        assert!(shadow.blocks().eq([(there, 0)]));
    }
}
