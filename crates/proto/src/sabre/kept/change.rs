//! A call that makes, writes or frees one object: once, over deaths of keepers too.

use super::record::{Call, CallRow, Head};
use super::{Answer, Change, Content, Need, Next, Packet, Pending, Region, Step, ends, room_of};
use crate::sabre::effects::{Defect, Effects};
use crate::sabre::layout::Meta;
use crate::sabre::operation::REGION;
use crate::sabre::rule::{Wanted, may_copy, next};
use crate::sabre::{generation_of, len_of};
use crate::wire::{Header, Kind, Own, Reason};
use alloc::vec::Vec;

impl Region {
    /// A call that has not taken effect in this epoch, as far as it goes.
    pub(super) fn call(
        &mut self,
        group: u16,
        packet: Packet<'_>,
        fx: &mut impl Effects,
    ) -> Step<()> {
        let (header, own, _) = packet;
        let call = Call::of(header);
        let refused = |reason| Answer::refused(header.tag, reason);
        if header.kind == Kind::ObjWrite && !self.is_staged(packet, Reason::Refused, fx)? {
            return Ok(());
        }
        let row = self.row(group, call.who)?;
        let known = row.is_of(&call);
        if known && row.done && fx.defect() != Some(Defect::ForgetCalls) {
            return ends(Answer {
                reason: Reason::None,
                tag: self.tag(group, row.place),
                version: row.version,
                generation: row.generation,
            });
        }
        let asked = (header.kind, own);
        match asked {
            (Kind::ObjAlloc, own) if own.a == 0 => {
                self.alloc(group, (call, known.then_some(row.place)), len_of(own), fx)
            }
            (Kind::ObjWrite, _) => self.change(group, call, header, own, fx),
            (Kind::ObjFree, own) if own.a != REGION => self.change(group, call, header, own, fx),
            // Regions with copies are made and removed as groups.
            _ => ends(refused(Reason::Refused)),
        }
    }

    /// Whether all is here that a call writes. It ends so if the packet is no segment of it.
    pub(super) fn is_staged(
        &mut self,
        (header, own, bytes): Packet<'_>,
        wrong: Reason,
        fx: &mut impl Effects,
    ) -> Step<bool> {
        match self.calls.stage(header, own, bytes, fx) {
            Some(all) => Ok(all),
            None => ends(Answer::refused(header.tag, wrong)),
        }
    }

    /// What came of a call, if it is the last one that has changed this object.
    fn if_done(&self, group: u16, place: u32, call: Call, fx: &mut impl Effects) -> Step<()> {
        if self.last(group, place)? != Some(call) || fx.defect() == Some(Defect::ForgetCalls) {
            return Ok(());
        }
        let tag = self.tag(group, place);
        ends(Answer {
            reason: Reason::None,
            tag,
            version: fx.version(tag),
            generation: fx.meta(tag).generation,
        })
    }

    /// A new object, of zeros. `meant`: where this call was to make one when an epoch ended.
    fn alloc(
        &mut self,
        group: u16,
        (call, meant): (Call, Option<u32>),
        len: u32,
        fx: &mut impl Effects,
    ) -> Step<()> {
        if let Some(place) = meant {
            self.if_done(group, place, call, fx)?;
        }
        if len > room_of(self.line) {
            return ends(Answer::refused(self.tag(group, 0), Reason::Refused));
        }
        let place = match meant.filter(|place| self.free.contains(place)) {
            Some(place) => place,
            None => self.free_place(group)?,
        };
        self.keep_last(group, place, call, fx)?;
        let tag = self.tag(group, place);
        let meta = fx.meta(tag);
        if meant != Some(place) {
            let row = CallRow {
                incarnation: call.incarnation,
                number: call.number,
                done: false,
                place,
                generation: meta.generation,
                version: 0,
            };
            return self.write_row(group, call.who, row);
        }
        let meta = Meta {
            class: self.class,
            live: true,
            len: len as u16,
            ..meta
        };
        self.store(group, place, call, (meta, Content::Zeros(len)), fx)
    }

    /// A place without an object.
    fn free_place(&mut self, group: u16) -> Step<u32> {
        if let Some(place) = self.free.first() {
            return Ok(*place);
        }
        while self.cursor < self.places {
            if !self.here.contains_key(&self.cursor) {
                return Err(Next::Needs(
                    Need::Line(self.line_of(group, self.cursor)),
                    None,
                ));
            }
            self.cursor += 1;
        }
        ends(Answer::refused(self.tag(group, 0), Reason::Full))
    }

    /// An object is written or freed.
    fn change(
        &mut self,
        group: u16,
        call: Call,
        header: &Header,
        own: &Own,
        fx: &mut impl Effects,
    ) -> Step<()> {
        let refused = |reason| Answer::refused(header.tag, reason);
        let place = match self.place(header.tag) {
            Ok(place) => place,
            Err(reason) => return ends(refused(reason)),
        };
        self.if_done(group, place, call, fx)?;
        let (version, meta) = (fx.version(header.tag), fx.meta(header.tag));
        let generation = generation_of(own);
        let known = 0;
        if let Err(refusal) = may_copy(version, meta, Wanted { generation, known }) {
            return ends(refused(refusal.reason()));
        }
        if header.kind == Kind::ObjFree {
            let meta = Meta {
                generation: generation.saturating_add(1),
                live: false,
                ..meta
            };
            self.keep_last(group, place, call, fx)?;
            return self.store(group, place, call, (meta, Content::Freed), fx);
        }
        let len = len_of(own);
        if len > room_of(self.line) {
            return ends(refused(Reason::Refused));
        }
        if own.a != 0 && own.a != version && fx.defect() != Some(Defect::IgnoreExpected) {
            return ends(Answer {
                reason: Reason::Invalid,
                tag: header.tag,
                version,
                generation,
            });
        }
        self.keep_last(group, place, call, fx)?;
        let meta = Meta {
            len: len as u16,
            ..meta
        };
        self.store(group, place, call, (meta, Content::Written(len)), fx)
    }

    /// Sees to it that the row of who has changed an object last says so, if it may ask again.
    pub(super) fn keep_last(
        &mut self,
        group: u16,
        place: u32,
        call: Call,
        fx: &mut impl Effects,
    ) -> Step<()> {
        match self.last(group, place)? {
            Some(last) => self.keep_outcome((group, place), last, call, fx),
            None => Ok(()),
        }
    }

    /// The same of a call that has changed the object in this place.
    pub(super) fn keep_outcome(
        &mut self,
        (group, place): (u16, u32),
        last: Call,
        call: Call,
        fx: &mut impl Effects,
    ) -> Step<()> {
        let past = self.calls.last(last.who) > (last.incarnation, last.number);
        if last.who == call.who || past || fx.defect() == Some(Defect::OverwriteUnheard) {
            return Ok(());
        }
        let row = self.row(group, last.who)?;
        if row.is_past(&last) || (row.is_of(&last) && row.done) {
            return Ok(());
        }
        let tag = self.tag(group, place);
        let row = CallRow {
            incarnation: last.incarnation,
            number: last.number,
            done: true,
            place,
            generation: fx.meta(tag).generation,
            version: fx.version(tag),
        };
        self.write_row(group, last.who, row)
    }

    /// A majority is to have this of an object.
    fn store(
        &self,
        group: u16,
        place: u32,
        call: Call,
        (meta, content): (Meta, Content),
        fx: &mut impl Effects,
    ) -> Step<()> {
        let tag = self.tag(group, place);
        let head = Head {
            version: next(fx.version(tag)),
            meta,
            last: Some(call),
        };
        let bytes = match content {
            Content::Written(bytes) => fx.staged(call.who, bytes),
            Content::Zeros(_) | Content::Freed => Vec::new(),
        };
        let answer = Answer {
            reason: Reason::None,
            tag,
            version: head.version,
            generation: meta.generation,
        };
        let of = call.who;
        let change = Change {
            head,
            of,
            content,
            answer,
        };
        let store = Need::Store(self.line_of(group, place), head.line(self.line, &bytes));
        Err(Next::Needs(store, Some(Pending::Change(change))))
    }
}
