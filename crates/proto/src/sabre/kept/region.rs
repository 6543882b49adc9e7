//! Where a region's objects are, and rows of requesters; and what is here of them as a majority has
//! it.

use super::record::{Call, CallRow, RECORD, ROWS};
use super::{Change, Content, Need, Next, Pending, Region, Step};
use crate::abd::first_line;
use crate::sabre::effects::Effects;
use crate::sabre::layout::Meta;
use crate::wire::{Contract, HomeId, Reason, RequesterId, Tag};

impl Region {
    /// Which line is the first one behind the rows.
    pub(super) fn first_record(&self) -> u32 {
        self.places + ROWS.div_ceil(self.line.max(1).into()) as u32
    }

    pub(super) fn line_of(&self, group: u16, nth: u32) -> Tag {
        Tag(first_line(group).0 + u64::from(nth) * u64::from(self.line))
    }

    /// The place of an object that begins there, if one can.
    pub(super) fn place(&self, tag: Tag) -> Result<u32, Reason> {
        if !tag.is_under(Contract::Object) {
            return Err(Reason::Refused);
        }
        let offset = tag.offset().checked_sub(self.laid.base);
        let (offset, line) = (offset.ok_or(Reason::Gone)?, u64::from(self.line.max(1)));
        let nth = u32::try_from(offset / line).ok();
        let nth = nth.filter(|nth| *nth < self.places && offset.is_multiple_of(line));
        nth.ok_or(Reason::NoMemory)
    }

    pub(super) fn tag(&self, group: u16, place: u32) -> Tag {
        let offset = self.laid.base + u64::from(place) * u64::from(self.line);
        Tag(HomeId::of_group(group).start().0 + offset).under(Contract::Object)
    }

    /// The line of a requester's row, counted behind the objects, and which of it.
    pub(super) fn row_at(&self, of: RequesterId) -> (u32, usize) {
        let (nth, rows) = (of.index(), (self.line / RECORD).max(1) as usize);
        ((nth / rows) as u32, nth % rows)
    }

    /// A requester's row.
    pub(super) fn row(&self, group: u16, of: RequesterId) -> Step<CallRow> {
        let (line, nth) = self.row_at(of);
        match self.rows.get(&line) {
            Some(rows) => Ok(rows.get(nth).copied().unwrap_or_default()),
            None => Err(Next::Needs(
                Need::Line(self.line_of(group, self.places + line)),
                None,
            )),
        }
    }

    /// A majority is to have this in a requester's row.
    pub(super) fn write_row<T>(&self, group: u16, of: RequesterId, row: CallRow) -> Step<T> {
        let (line, nth) = self.row_at(of);
        let mut rows = self.rows.get(&line).cloned().unwrap_or_default();
        if let Some(there) = rows.get_mut(nth) {
            *there = row;
        }
        let line = self.line_of(group, self.places + line);
        let store = Need::Store(line, CallRow::line(&rows));
        Err(Next::Needs(store, Some(Pending::Row(group, of, row))))
    }

    /// The call that has changed an object last.
    pub(super) fn last(&self, group: u16, place: u32) -> Step<Option<Call>> {
        match self.here.get(&place) {
            Some(last) => Ok(*last),
            None => Err(Next::Needs(Need::Line(self.line_of(group, place)), None)),
        }
    }

    /// An object is here as a majority has it.
    pub(super) fn note(&mut self, place: u32, meta: Meta, last: Option<Call>) {
        self.here.insert(place, last);
        // A place whose generations are used up is never used again.
        match meta.live || meta.generation == u32::MAX {
            true => self.free.remove(&place),
            false => self.free.insert(place),
        };
    }

    /// What a majority has is what readers find.
    pub(super) fn publish(&mut self, change: &Change, fx: &mut impl Effects) {
        let tag = change.answer.tag;
        let Ok(place) = self.place(tag) else {
            return;
        };
        let version = fx.version(tag);
        fx.take(tag, version);
        fx.set_meta(tag, change.head.meta);
        match change.content {
            Content::Written(bytes) => fx.put(change.of, tag, bytes),
            Content::Zeros(bytes) => fx.zero(tag, bytes),
            Content::Freed => {}
        }
        fx.release(tag, change.head.version);
        self.note(place, change.head.meta, change.head.last);
        self.calls.end(change.of, change.answer, fx.defect());
    }
}
