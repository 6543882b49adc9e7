//! Objects that a transaction writes together: what a majority's record says of them.
//!
//! A keeper does one thing after the other, so a region needs one record. It is stored before any
//! of the lines that it changes: a majority that has the record is the moment of the transaction.
//! Then readers find all of it at once, the lines are stored, and only then is anything else
//! changed. The next keeper reads the record before it answers anything about the region, and
//! carries out what the lines do not have: an object's version says whether its line has.
//!
//! | where | | |
//! |---|---|---|
//! | the line behind all rows | 0 | the call: incarnation:32, node:16, slot:16 |
//! | | 8 | that call's number; 0: none |
//! | | 16 | objects:32, bytes of what follows:32 |
//! | | 24 | which stretch has what does not fit here |
//! | | 32… | the objects, each with its new version; then their contents |
//! | behind it | | two stretches of lines, in turn |
//!
//! What does not fit into the first line is stored before it, in the stretch that the last record
//! does not use: so that one stays whole until the first line names another.

use super::super::effects::{Defect, Effects};
use super::super::layout::{MAX_BYTES, Meta};
use super::super::rule::{Wanted, may_copy, next};
use super::super::transaction::{Entry, MAX_OBJECTS, decode};
use super::record::{Call, Head, RECORD, who_of, who_to, words};
use super::{Answer, Need, Next, Pending, Region, Step, ends};
use crate::wire::{Header, Own, Reason, Tag};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// Bytes of objects and contents at most.
const MOST: u32 = MAX_BYTES;
/// Bytes of a stretch.
const STRETCH: u64 = MOST as u64;

/// Bytes of all that a region has behind its rows, in lines of so many.
pub(super) const fn bytes_of_records(line: u32) -> u64 {
    line as u64 + 2 * STRETCH.next_multiple_of(line as u64)
}

/// What a majority is to have of a transaction, or has.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Record {
    call: Option<Call>,
    stretch: u32,
    objects: u32,
    len: u32,
    /// As far as it is here.
    bytes: Vec<u8>,
}

/// An object that a record writes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Change {
    tag: Tag,
    head: Head,
    content: Vec<u8>,
}

/// What is here of a region's records.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Together {
    /// The last one. None: nobody has asked for it in this epoch.
    last: Option<Record>,
    /// Readers find what it says.
    published: bool,
    /// What it changes and no line of a majority says.
    left: VecDeque<Change>,
    /// Lines of a stretch that a majority has of this call's record.
    stored: Option<(Call, u32)>,
}

impl Record {
    fn of(line: &[u8]) -> Self {
        let [who, number, counts, stretch] = words(line);
        let (objects, len) = ((counts >> 32) as u32, counts as u32);
        if number == 0 || len > MOST {
            return Record::default();
        }
        let mut record = Record {
            call: Some(who_of(who, number)),
            stretch: stretch as u32 & 1,
            objects,
            len,
            bytes: Vec::new(),
        };
        record.take(line.get(RECORD as usize..).unwrap_or_default());
        record
    }

    /// The next bytes of it.
    fn take(&mut self, bytes: &[u8]) {
        let missing = self.len as usize - self.bytes.len();
        self.bytes.extend(bytes.iter().take(missing));
    }

    /// Its first line, and how many bytes of it are in that.
    fn first_line(&self, line: u32) -> (Vec<u8>, usize) {
        let fits = self.bytes.len().min((line - RECORD) as usize);
        let (who, number) = self.call.map_or((0, 0), |call| who_to(&call));
        let counts = u64::from(self.objects) << 32 | u64::from(self.len);
        let mut first = Vec::with_capacity(line as usize);
        for word in [who, number, counts, self.stretch.into()] {
            first.extend(word.to_be_bytes());
        }
        first.extend(&self.bytes[..fits]);
        first.resize(line as usize, 0);
        (first, fits)
    }

    fn changes(&self, class: u8) -> Vec<Change> {
        let entries = decode(&self.bytes, self.objects).unwrap_or_default();
        let change = |(entry, at): (Entry, core::ops::Range<usize>)| Change {
            tag: entry.object.tag,
            head: Head {
                version: entry.expected,
                meta: Meta {
                    generation: entry.object.generation,
                    class,
                    live: true,
                    len: entry.len as u16,
                },
                last: self.call,
            },
            content: self.bytes.get(at).unwrap_or_default().to_vec(),
        };
        entries.into_iter().map(change).collect()
    }
}

impl Together {
    /// Whether readers find all that a majority has.
    pub fn is_published(&self) -> bool {
        self.published
    }
}

impl Region {
    /// The n-th line behind the rows.
    fn record_line(&self, group: u16, nth: u32) -> Tag {
        self.line_of(group, self.first_record() + nth)
    }

    /// The n-th line of a stretch.
    fn stretch_line(&self, group: u16, stretch: u32, nth: u32) -> Tag {
        let lines = STRETCH.div_ceil(self.line.into()) as u32;
        self.record_line(group, 1 + stretch * lines + nth)
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

    /// Sees to it that readers find what the last record says.
    pub(super) fn know_record(&mut self, group: u16, fx: &mut impl Effects) -> Step<()> {
        if self.together.published {
            return Ok(());
        }
        let needs = |line| Err(Next::Needs(Need::Line(line), None));
        let Some(last) = &self.together.last else {
            return needs(self.record_line(group, 0));
        };
        if let Some(line) = self.next_of(group, last) {
            return needs(line);
        }
        for change in last.changes(self.class) {
            if let Ok(place) = self.place(change.tag) {
                self.last(group, place)?;
            }
        }
        self.publish_record(fx);
        Ok(())
    }

    /// What the record says is what readers find, all of it; where a line is newer, that is.
    fn publish_record(&mut self, fx: &mut impl Effects) {
        let changes = self
            .together
            .last
            .as_ref()
            .map(|last| last.changes(self.class));
        self.together.published = true;
        for change in changes.unwrap_or_default() {
            let (tag, head) = (change.tag, change.head);
            let version = fx.version(tag);
            let Some(place) = self.place(tag).ok().filter(|_| version < head.version) else {
                continue;
            };
            fx.take(tag, version);
            fx.set_meta(tag, head.meta);
            fx.fill(tag, &change.content);
            fx.release(tag, head.version);
            self.note(place, head.meta, head.last);
            self.together.left.push_back(change);
        }
    }

    /// Sees to it that lines say what the last record does, before anything else is changed.
    pub(super) fn carry_out(&mut self, group: u16, fx: &mut impl Effects) -> Step<()> {
        self.know_record(group, fx)?;
        let Some(Change { tag, head, content }) = self.together.left.front() else {
            return Ok(());
        };
        let Ok(place) = self.place(*tag) else {
            return Ok(());
        };
        let store = Need::Store(self.line_of(group, place), head.line(self.line, content));
        Err(Next::Needs(store, Some(Pending::Left(group))))
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
        (self.together.last, self.together.stored) = (Some(record), None);
        self.publish_record(fx);
    }

    /// A transaction that writes objects of this region, as far as it goes: once, as a call does.
    /// `others`: the other regions, whose objects it may have read.
    pub(super) fn commit(
        &mut self,
        (group, others): (u16, &mut BTreeMap<u16, Region>),
        (header, own, bytes): (&Header, &Own, u32),
        fx: &mut impl Effects,
    ) -> Step<()> {
        let call = Call::of(header);
        match self.calls.stage(header, own, bytes, fx) {
            None => return ends(Answer::refused(header.tag, Reason::Refused)),
            Some(false) => return Ok(()),
            Some(true) => {}
        }
        let done = Answer::refused(header.tag, Reason::None);
        let remembers = fx.defect() != Some(Defect::ForgetCalls);
        let row = self.row(group, call.who)?;
        if row.is_of(&call) && row.done && remembers {
            return ends(done);
        }
        let last = self.together.last.as_ref();
        if last.and_then(|last| last.call) == Some(call) && remembers {
            return ends(done);
        }
        let part = fx.staged(call.who, super::len_of(own));
        let objects = u32::try_from(own.a)
            .ok()
            .filter(|n| *n <= MAX_OBJECTS as u32);
        let Some(entries) = objects.and_then(|objects| decode(&part, objects)) else {
            return ends(Answer::refused(header.tag, Reason::Refused));
        };
        let mut written = Vec::new();
        for (entry, at) in entries {
            let version = match entry.object.tag.home().group() {
                Some(of) if of == group && self.is_beyond(entry.object.tag) => {
                    return Err(Next::Needs(Need::News, None));
                }
                Some(of) if of == group => self.is_as_read(group, &entry, fx)?,
                Some(of) if !entry.is_written() => match others.get_mut(&of) {
                    Some(other) if other.is_beyond(entry.object.tag) => {
                        return Err(Next::Needs(Need::News, None));
                    }
                    Some(other) => {
                        if !other.is_gone(entry.object.tag) {
                            other.know_record(of, fx)?;
                        }
                        other.is_as_read(of, &entry, fx)?
                    }
                    // This node has not heard of it yet: the call comes again.
                    None => return Ok(()),
                },
                _ => return ends(Answer::refused(entry.object.tag, Reason::Refused)),
            };
            if entry.is_written() {
                let expected = next(version);
                written.push((Entry { expected, ..entry }, at));
            }
        }
        if written.is_empty() {
            return ends(Answer::refused(header.tag, Reason::Refused));
        }
        self.keep_last_record(group, call, fx)?;
        let mut bytes = Vec::with_capacity(part.len());
        for (entry, _) in &written {
            let place = self.place(entry.object.tag).unwrap_or_default();
            self.keep_last(group, place, call, fx)?;
            entry.encode(&mut bytes);
        }
        for (_, at) in &written {
            bytes.extend(part.get(at.clone()).unwrap_or_default());
        }
        let stretch = self.together.last.as_ref().map_or(1, |last| last.stretch);
        let record = Record {
            call: Some(call),
            stretch: match fx.defect() {
                Some(Defect::OneStretch) => stretch,
                _ => 1 - stretch,
            },
            objects: written.len() as u32,
            len: bytes.len() as u32,
            bytes,
        };
        self.store_record(group, call, record)
    }

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
        if entry.is_written() && entry.len > super::room_of(self.line) {
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
    /// ask again.
    fn keep_last_record(&mut self, group: u16, call: Call, fx: &mut impl Effects) -> Step<()> {
        let last = self.together.last.as_ref();
        let Some((of, changes)) = last.and_then(|l| Some((l.call?, l.changes(self.class)))) else {
            return Ok(());
        };
        let place = changes.first().and_then(|first| self.place(first.tag).ok());
        self.keep_outcome((group, place.unwrap_or_default()), of, call, fx)
    }

    /// A majority is to have this record: what does not fit into its first line, and then that.
    fn store_record(&self, group: u16, call: Call, record: Record) -> Step<()> {
        let (first, fits) = record.first_line(self.line);
        let stored = self.together.stored.filter(|(of, _)| *of == call);
        let stored = stored.map_or(0, |(_, lines)| lines);
        let mut rest = record.bytes[fits..].chunks(self.line as usize);
        if let Some(bytes) = rest.nth(stored as usize) {
            let line = self.stretch_line(group, record.stretch, stored);
            let mut bytes = bytes.to_vec();
            bytes.resize(self.line as usize, 0);
            let pending = Pending::Stretch(group, call, stored + 1);
            return Err(Next::Needs(Need::Store(line, bytes), Some(pending)));
        }
        let store = Need::Store(self.record_line(group, 0), first);
        Err(Next::Needs(store, Some(Pending::Record(group, record))))
    }

    /// By object, the lines that a record says, if this is the first line of one.
    pub(super) fn lines_of_record<'a>(
        &self,
        first: Tag,
        value: &[u8],
        other: impl Fn(Tag) -> Option<&'a [u8]>,
    ) -> Vec<(Tag, Vec<u8>)> {
        let group = first.home().0;
        if first != self.record_line(group, 0) {
            return Vec::new();
        }
        let mut record = Record::of(value);
        while let Some(line) = self.next_of(group, &record) {
            match other(line) {
                Some(value) => record.take(value),
                None => return Vec::new(),
            }
        }
        let lines = record.changes(self.class).into_iter();
        let lines = lines.map(|Change { tag, head, content }| {
            let line = head.line(self.line, &content);
            (tag, line)
        });
        lines.collect()
    }

    /// The line that has the next bytes of a record, if some are missing.
    fn next_of(&self, group: u16, record: &Record) -> Option<Tag> {
        let (first, here) = ((self.line - RECORD) as usize, record.bytes.len());
        let nth = here.saturating_sub(first) / self.line.max(1) as usize;
        let missing = here < record.len as usize;
        missing.then(|| self.stretch_line(group, record.stretch, nth as u32))
    }
}
