//! The call of a transaction that writes objects with copies: it comes to the lowest region that it
//! writes, and takes effect once, as any call does.

use super::super::effects::{Defect, Effects};
use super::super::rule::{Wanted, may_copy, next};
use super::super::transaction::{Entry, MAX_OBJECTS, decode};
use super::record::Call;
use super::written::{Record, Written};
use super::{Answer, Need, Next, Packet, Region, Regions, Step, ends, room_of};
use crate::sabre::len_of;
use crate::wire::{Own, Reason, Tag};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

/// The objects of a call, and where their contents are in its part.
type Entries = Vec<(Entry, Range<usize>)>;

/// The objects that a call says it has.
fn entries_of(part: &[u8], own: &Own) -> Option<Entries> {
    let objects = u32::try_from(own.a).ok();
    decode(part, objects.filter(|n| *n <= MAX_OBJECTS as u32)?)
}

impl Regions {
    /// A transaction that writes objects of this region and perhaps of higher ones, as far as it
    /// goes.
    pub(super) fn commit(
        &mut self,
        group: u16,
        packet: Packet<'_>,
        fx: &mut impl Effects,
    ) -> Step<()> {
        let (header, own, _) = packet;
        let call = Call::of(header);
        let refused = |tag| ends(Answer::refused(tag, Reason::Refused));
        let done = Answer::refused(header.tag, Reason::None);
        let Some(region) = self.0.get_mut(&group) else {
            return Ok(());
        };
        if !region.is_staged(packet, Reason::Refused, fx)? {
            return Ok(());
        }
        let remembers = fx.defect() != Some(Defect::ForgetCalls);
        let row = region.row(group, call.who)?;
        if row.is_of(&call) && row.done && remembers {
            return ends(done);
        }
        let part = fx.staged(call.who, len_of(own));
        let entries = entries_of(&part, own);
        if region.together.says(call) && remembers {
            for (of, _) in written(entries.as_deref().unwrap_or_default()) {
                self.carry_out(of, fx)?;
            }
            return ends(done);
        }
        let Some(entries) = entries else {
            return refused(header.tag);
        };
        let mut parts: BTreeMap<u16, Written> = BTreeMap::new();
        for (entry, at) in entries {
            let tag = entry.object.tag;
            let Some(of) = tag.home().group() else {
                return refused(tag);
            };
            // This node has not heard of it yet: the call comes again.
            let Some(region) = self.0.get(&of) else {
                return Ok(());
            };
            if region.is_beyond(tag) {
                return Err(Next::Needs(Need::News, None));
            }
            let waits = region.together.waits_for(call);
            match (region.is_gone(tag), entry.is_written()) {
                (true, _) => {}
                // What it has stored there itself is not in its way.
                (false, true) if waits => {}
                (false, true) => self.carry_out(of, fx)?,
                (false, false) => self.know(of, fx)?,
            }
            let Some(region) = self.0.get_mut(&of) else {
                return Ok(());
            };
            let version = region.is_as_read(of, &entry, fx)?;
            if entry.is_written() {
                let expected = next(version);
                let written = (Entry { expected, ..entry }, at);
                parts.entry(of).or_default().push(written);
            }
        }
        if parts.keys().next() != Some(&group) {
            return refused(header.tag);
        }
        for (of, written) in &parts {
            let Some(region) = self.0.get_mut(of) else {
                continue;
            };
            region.keep_last_record(*of, call, fx)?;
            for (entry, _) in written {
                let place = region.place(entry.object.tag).unwrap_or_default();
                region.keep_last(*of, place, call, fx)?;
            }
        }
        self.store_records(call, &parts, &part, fx.defect())
    }

    /// What has come of a transaction that came to a region which is removed: any other one that it
    /// has written says so. Before that loses it, its requester's row there has it.
    pub(super) fn came_of(
        &mut self,
        group: u16,
        packet: Packet<'_>,
        fx: &mut impl Effects,
    ) -> Step<()> {
        let (header, own, _) = packet;
        let call = Call::of(header);
        let answer = |reason| ends(Answer::refused(header.tag, reason));
        let Some(region) = self.0.get_mut(&group) else {
            return Ok(());
        };
        if !region.is_staged(packet, Reason::Gone, fx)? {
            return Ok(());
        }
        let part = fx.staged(call.who, len_of(own));
        let entries = entries_of(&part, own).unwrap_or_default();
        for (of, tag) in written(&entries).into_iter().filter(|(of, _)| *of != group) {
            let Some(region) = self.0.get(&of) else {
                return Ok(());
            };
            if region.is_beyond(tag) {
                return Err(Next::Needs(Need::News, None));
            }
            let Ok(place) = region.place(tag) else {
                continue;
            };
            if self.has_taken_effect(of, place, call, fx)? {
                return answer(Reason::None);
            }
        }
        answer(Reason::Gone)
    }

    /// A majority is to have a record in each region, in the lowest one last.
    fn store_records(
        &self,
        call: Call,
        parts: &BTreeMap<u16, Written>,
        part: &[u8],
        defect: Option<Defect>,
    ) -> Step<()> {
        let mut regions: Vec<Tag> = parts.values().filter_map(first_of).collect();
        if regions.len() == 1 {
            regions.clear();
        }
        let mut order: Vec<(&u16, &Written)> = parts.iter().rev().collect();
        if defect == Some(Defect::LowestFirst) {
            order.reverse();
        }
        let lowest = parts.keys().next();
        for (of, written) in order {
            let Some(region) = self.0.get(of) else {
                continue;
            };
            let together = &region.together;
            let mut record = Record::new(call, &regions, written, part);
            record.open = Some(of) != lowest;
            let is_like = |last: &Record| last.is_like(&record);
            if !together.settled && together.last.as_ref().is_some_and(is_like) {
                continue;
            }
            let stretch = together.last.as_ref().map_or(1, |last| last.stretch);
            record.stretch = match defect {
                Some(Defect::OneStretch) => stretch,
                _ => 1 - stretch,
            };
            region.store_record(*of, call, record)?;
        }
        Ok(())
    }
}

/// The regions of the objects that are written, each once, with the first of those objects.
fn written(entries: &[(Entry, Range<usize>)]) -> Vec<(u16, Tag)> {
    let written = entries.iter().filter(|(entry, _)| entry.is_written());
    let tags = written.map(|(entry, _)| entry.object.tag);
    let mut all: Vec<(u16, Tag)> = tags
        .filter_map(|tag| Some((tag.home().group()?, tag)))
        .collect();
    all.dedup_by_key(|(group, _)| *group);
    all
}

fn first_of(written: &Written) -> Option<Tag> {
    written.first().map(|(entry, _)| entry.object.tag)
}

impl Region {
    /// The version of an object, if it is as the transaction has read it and can be written.
    fn is_as_read(&self, group: u16, entry: &Entry, fx: &mut impl Effects) -> Step<u64> {
        let tag = entry.object.tag;
        let refused = |reason| ends(Answer::refused(tag, reason));
        let place = match self.place(tag) {
            Ok(place) => place,
            Err(reason) => return refused(reason),
        };
        self.last(group, place)?;
        let (version, meta) = (fx.version(tag), fx.meta(tag));
        let (generation, known) = (entry.object.generation, 0);
        if let Err(refusal) = may_copy(version, meta, Wanted { generation, known }) {
            return refused(refusal.reason());
        }
        if entry.is_written() && entry.len > room_of(self.line) {
            return refused(Reason::Refused);
        }
        let skips = match entry.is_written() {
            true => Defect::IgnoreExpected,
            false => Defect::SkipValidation,
        };
        if entry.expected != 0 && entry.expected != version && fx.defect() != Some(skips) {
            return refused(Reason::Invalid);
        }
        Ok(version)
    }

    /// Before a record is overwritten, its requester's row says what has come of it, if that may
    /// ask again. Of what came to a lower region it is asked there.
    fn keep_last_record(&mut self, group: u16, call: Call, fx: &mut impl Effects) -> Step<()> {
        let Some(last) = &self.together.last else {
            return Ok(());
        };
        let (of, first) = (last.call, last.changes(self.class).into_iter().next());
        let lowest = last
            .regions()
            .first()
            .map_or(Some(group), |tag| tag.home().group());
        let Some(of) = of.filter(|_| lowest == Some(group)) else {
            return Ok(());
        };
        let place = first.and_then(|first| self.place(first.tag).ok());
        self.keep_outcome((group, place.unwrap_or_default()), of, call, fx)
    }
}
