//! Objects that a transaction writes together: what a majority's records say of them.
//!
//! A keeper does one thing after the other, so a region needs one record. It is stored before any
//! of the lines that it changes. Then readers find all of it at once, the lines are stored, and
//! only then is anything else changed. The next keeper reads the record before it answers anything
//! about the region, and carries out what the lines do not have: an object's version says whether
//! its line has.
//!
//! *One region is written*: a majority that has its record is the moment of the transaction.
//!
//! *Several are*: each has a record of its own objects, which names all of them.
//!
//! | step | a majority has |
//! |---|---|
//! | 1 | the record of each region but the lowest one, *open*: it does not say whether it has taken effect |
//! | 2 | the record of the lowest region: **the transaction takes effect, whoever dies** |
//! | 3 | in each other record, from the lowest region up, that it has |
//! | 4 | readers find the objects of all of them, in one section; the lines follow |
//!
//! So nothing of it is seen, and no line says it, before each region can tell by itself: from then
//! on none needs the others, which may be without a majority, or removed. A keeper that finds an
//! open record whose objects' lines do not have it asks the lowest of its regions that is there;
//! if that does not say so, nothing has come of it.

use super::super::effects::{Defect, Effects};
use super::record::{Call, RECORD};
use super::written::{Change, Record, lines_of_stretch};
use super::{Need, Next, Pending, Region, Regions, Step};
use crate::wire::Tag;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// What is here of a region's records.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Together {
    /// The last one. None: nobody has asked for it in this epoch.
    pub last: Option<Record>,
    /// What readers find is what there is.
    published: bool,
    /// It is known what has come of the last record, and readers find that.
    pub settled: bool,
    /// What it changes and no line of a majority says.
    left: VecDeque<Change>,
    /// Lines of a stretch that a majority has of this call's record.
    pub stored: Option<(Call, u32)>,
}

impl Together {
    /// Whether readers find all that a majority has.
    pub fn is_published(&self) -> bool {
        self.published
    }

    /// Whether the last record is this call's.
    pub fn is_of(&self, call: Call) -> bool {
        self.last.as_ref().and_then(|last| last.call) == Some(call)
    }

    /// Whether it is this call's and says that it has taken effect.
    pub fn says(&self, call: Call) -> bool {
        self.is_of(call) && self.last.as_ref().is_some_and(|last| !last.open)
    }

    /// Whether this keeper has stored the last record, of this call, and nothing has come of it
    /// yet.
    pub fn waits_for(&self, call: Call) -> bool {
        self.is_of(call) && self.published && !self.settled
    }
}

impl Regions {
    /// Sees to it that readers of a region find what its last record says.
    pub(super) fn know(&mut self, group: u16, fx: &mut impl Effects) -> Step<()> {
        let region = self.0.get(&group);
        match region.is_none_or(|region| region.together.published) {
            true => Ok(()),
            false => self.settle(group, fx),
        }
    }

    /// Sees to it that lines say what the last record does, before anything else is changed.
    pub(super) fn carry_out(&mut self, group: u16, fx: &mut impl Effects) -> Step<()> {
        self.settle(group, fx)?;
        let Some(region) = self.0.get(&group) else {
            return Ok(());
        };
        let Some(Change { tag, head, content }) = region.together.left.front() else {
            return Ok(());
        };
        let Ok(place) = region.place(*tag) else {
            return Ok(());
        };
        let line = head.line(region.line, content);
        let store = Need::Store(region.line_of(group, place), line);
        Err(Next::Needs(store, Some(Pending::Left(group))))
    }

    /// Finds out what has come of a region's last record, and has readers find that.
    fn settle(&mut self, group: u16, fx: &mut impl Effects) -> Step<()> {
        let Some(region) = self.0.get(&group) else {
            return Ok(());
        };
        // What is removed has nothing left.
        if region.together.settled || region.places == 0 {
            return Ok(());
        }
        let last = region.whole_record(group)?;
        let (call, open, several) = (last.call, last.open, last.is_of_several());
        let regions = last.regions();
        let is_new = region.is_news(group, fx)?;
        if several && is_new && fx.defect() != Some(Defect::TrustOpen) {
            let live = self.live(&regions)?;
            let lowest = live.first().copied().filter(|_| live.contains(&group));
            let (Some(call), Some(lowest)) = (call, lowest) else {
                return self.nothing_came(group);
            };
            let asks = open && fx.defect() != Some(Defect::ForgetOpen);
            let took = match asks {
                true => self.with_record(lowest)?.together.says(call),
                false => !open,
            };
            if !took {
                return self.nothing_came(group);
            }
            self.tell_all(&live, call, fx)?;
            // All of what readers are answered by, in this section.
            let apart = fx.defect() == Some(Defect::PublishApart);
            for of in live.into_iter().filter(|of| *of != group && !apart) {
                let region = self.0.get_mut(&of);
                if let Some(region) = region.filter(|region| region.together.waits_for(call)) {
                    region.publish_record(fx);
                }
            }
        }
        if let Some(region) = self.0.get_mut(&group) {
            region.publish_record(fx);
        }
        Ok(())
    }

    /// What is in a region's last record has not taken effect, and never will.
    fn nothing_came(&mut self, group: u16) -> Step<()> {
        if let Some(region) = self.0.get_mut(&group) {
            (region.together.published, region.together.settled) = (true, true);
        }
        Ok(())
    }

    /// Sees to it that each of these regions says by itself that a call has taken effect: one after
    /// the other, so that the lowest one that is there says it if any does.
    fn tell_all(&mut self, live: &[u16], call: Call, fx: &mut impl Effects) -> Step<()> {
        if fx.defect() == Some(Defect::LeaveOpen) {
            return Ok(());
        }
        for group in live {
            let region = self.with_record(*group)?;
            let last = region.together.last.clone();
            let Some(mut last) = last.filter(|last| last.call == Some(call) && last.open) else {
                continue;
            };
            last.open = false;
            let (first, _) = last.lines(region.line);
            let store = Need::Store(region.record_line(*group, 0), first);
            return Err(Next::Needs(store, Some(Pending::Told(*group))));
        }
        Ok(())
    }

    /// Those of these regions that are not removed, the lowest one first.
    fn live(&self, regions: &[Tag]) -> Step<Vec<u16>> {
        let mut live = Vec::new();
        for tag in regions {
            let group = tag.home().group();
            let region = group.and_then(|group| Some((group, self.0.get(&group)?)));
            match region {
                Some((_, region)) if region.is_gone(*tag) => {}
                Some((group, region)) if !region.is_beyond(*tag) => live.push(group),
                // This node has yet to hear of it.
                _ => return Err(Next::Needs(Need::News, None)),
            }
        }
        Ok(live)
    }

    /// A region whose last record is here, as far as its first line says it.
    fn with_record(&self, group: u16) -> Step<&Region> {
        let region = self.0.get(&group);
        let region = region.ok_or(Next::Needs(Need::News, None))?;
        match region.together.last {
            Some(_) => Ok(region),
            None => Err(Next::Needs(Need::Line(region.record_line(group, 0)), None)),
        }
    }
}

impl Region {
    /// The n-th line behind the rows.
    pub(super) fn record_line(&self, group: u16, nth: u32) -> Tag {
        self.line_of(group, self.first_record() + nth)
    }

    /// The n-th line of a stretch.
    pub(super) fn stretch_line(&self, group: u16, stretch: u32, nth: u32) -> Tag {
        self.record_line(group, 1 + stretch * lines_of_stretch(self.line) + nth)
    }

    /// A line behind the rows is here: that of the last record, or the next one of its stretch.
    pub(super) fn fetched_record(&mut self, nth: u32, value: &[u8], defect: Option<Defect>) {
        let forgets = defect == Some(Defect::ForgetRecord);
        match (nth, &mut self.together.last) {
            (0, _) if forgets => self.together.last = Some(Record::default()),
            (0, _) => self.together.last = Some(Record::of(value)),
            (_, Some(last)) => last.take(value),
            (_, None) => {}
        }
    }

    /// The last record, with all of its lines.
    fn whole_record(&self, group: u16) -> Step<&Record> {
        let needs = |line| Err(Next::Needs(Need::Line(line), None));
        match &self.together.last {
            None => needs(self.record_line(group, 0)),
            Some(last) => match self.next_of(group, last) {
                Some(line) => needs(line),
                None => Ok(last),
            },
        }
    }

    /// What the last record changes in places that there are.
    fn changes(&self) -> Vec<(u32, Change)> {
        let last = self.together.last.as_ref();
        let all = last.map(|last| last.changes(self.class));
        let all = all.unwrap_or_default().into_iter();
        let room = super::room_of(self.line) as usize;
        let fits = all.filter(|change| change.content.len() <= room);
        fits.filter_map(|change| Some((self.place(change.tag).ok()?, change)))
            .collect()
    }

    /// Whether the last record says of an object what its line does not. Lines follow when all of
    /// its regions know that it has taken effect.
    fn is_news(&self, group: u16, fx: &mut impl Effects) -> Step<bool> {
        let mut is_new = false;
        for (place, Change { tag, head, .. }) in self.changes() {
            self.last(group, place)?;
            is_new |= fx.version(tag) < head.version;
        }
        Ok(is_new)
    }

    /// What the record says is what readers find, all of it; where a line is newer, that is.
    fn publish_record(&mut self, fx: &mut impl Effects) {
        (self.together.published, self.together.settled) = (true, true);
        for (place, change) in self.changes() {
            let (tag, head) = (change.tag, change.head);
            let version = fx.version(tag);
            if version >= head.version {
                continue;
            }
            fx.take(tag, version);
            fx.set_meta(tag, head.meta);
            fx.fill(tag, &change.content);
            fx.release(tag, head.version);
            self.note(place, head.meta, head.last);
            self.together.left.push_back(change);
        }
    }

    /// A majority has the first of the lines that were left.
    pub(super) fn stored_left(&mut self) {
        self.together.left.pop_front();
    }

    /// A majority has one more line of the record of this call.
    pub(super) fn stored_stretch(&mut self, call: Call, lines: u32) {
        self.together.stored = Some((call, lines));
    }

    /// A majority has this record.
    pub(super) fn stored_record(&mut self, record: Record, fx: &mut impl Effects) {
        let several = record.is_of_several();
        (self.together.last, self.together.stored) = (Some(record), None);
        match several {
            true => self.together.settled = false,
            false => self.publish_record(fx),
        }
    }

    /// A majority has it that the last record has taken effect.
    pub(super) fn stored_told(&mut self) {
        if let Some(last) = &mut self.together.last {
            last.open = false;
        }
    }

    /// A majority is to have this record: what does not fit into its first line, and then that.
    pub(super) fn store_record(&self, group: u16, call: Call, record: Record) -> Step<()> {
        let (first, mut rest) = record.lines(self.line);
        let stored = self.together.stored.filter(|(of, _)| *of == call);
        let stored = stored.map_or(0, |(_, lines)| lines);
        if let Some(bytes) = rest.nth(stored as usize) {
            let line = self.stretch_line(group, record.stretch, stored);
            let mut bytes = bytes.to_vec();
            bytes.resize(self.line as usize, 0);
            let pending = Pending::Stretch(group, call, stored + 1);
            return Err(Next::Needs(Need::Store(line, bytes), Some(pending)));
        }
        drop(rest);
        let store = Need::Store(self.record_line(group, 0), first);
        Err(Next::Needs(store, Some(Pending::Record(group, record))))
    }

    /// The line that has the next bytes of a record, if some are missing.
    pub(super) fn next_of(&self, group: u16, record: &Record) -> Option<Tag> {
        let first = (self.line - RECORD) as usize;
        let nth = record.missing_from()?.saturating_sub(first) / self.line.max(1) as usize;
        Some(self.stretch_line(group, record.stretch, nth as u32))
    }
}
