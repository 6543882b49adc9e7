//! What an object's home does with packets: reads by the rule, writes once, and the books.
//!
//! A read needs nothing of the home but memory, so nothing is remembered of it. What changes
//! something takes effect once: of each requester the home remembers the last call, by a number
//! that outlives epochs, with what has come of it and what was answered.
//!
//! | a call | then |
//! |---|---|
//! | is new | its segments are awaited; when all are here it takes effect, and is answered |
//! | has taken effect | it is answered as before |
//! | meets a writer of the home's own process | `Locked`, and so are its copies: it never takes effect, and its requester makes another one |
//! | is of an older number, or of an older life of its node | nothing |
//! | has the number of the last one and asks for something else | nothing: it is forged |

use super::book::{Book, Spot};
use super::effects::{Bytes, Defect, Effects, Memory};
use super::layout::{GRANULE, Meta, all_granules, granules};
use super::operation::REGION;
use super::rule::{Refusal, Wanted, is_odd, may_copy, next, taken, unmoved};
use super::transaction::Participant;
use super::{generation_of, len_of, own};
use crate::call::PerRequester;
use crate::wire::{Dest, Flags, Header, Kind, Own, Reason, Tag};
use core::hash::Hasher;

/// Objects that one call of a removal frees: others' packets wait for it.
const AT_ONCE: usize = 1024;

/// What a call was answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Answer {
    /// Why not.
    pub reason: Reason,
    /// The object.
    pub tag: Tag,
    /// Its version.
    pub version: u64,
    /// Its generation.
    pub generation: u32,
}

impl Default for Answer {
    fn default() -> Self {
        Answer::refused(Tag(0), Reason::None)
    }
}

impl Answer {
    fn refused(tag: Tag, reason: Reason) -> Self {
        Answer {
            reason,
            tag,
            version: 0,
            generation: 0,
        }
    }
}

/// The last call of a requester.
#[derive(Clone, Copy, PartialEq, Hash, Debug, Default)]
struct Row {
    incarnation: u32,
    number: u64,
    /// What it asks for: its kind, of what, and how.
    asked: Option<(Kind, Tag, Own)>,
    /// Granules of what it writes that have come.
    received: u64,
    ended: bool,
    answer: Answer,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Home {
    /// What is given out.
    pub book: Book,
    /// The kernel of its host answers reads, too.
    pub kernel_reads: bool,
    rows: PerRequester<Row>,
    /// Transactions that write here.
    pub participant: Participant,
}

/// A new content.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// The object.
    pub tag: Tag,
    /// Its generation.
    pub generation: u32,
    /// The version that it must have, or 0.
    pub expected: u64,
    /// Bytes of the new content.
    pub len: u32,
}

impl Home {
    /// Of a node whose memory for objects has these books.
    pub fn new(book: Book) -> Self {
        Home {
            book,
            kernel_reads: false,
            rows: PerRequester::default(),
            participant: Participant::default(),
        }
    }

    /// A packet that asks for something.
    pub fn packet(&mut self, header: &Header, own: &Own, len: u32, fx: &mut impl Effects) {
        match header.kind {
            Kind::ObjRead => self.read(header, own, fx),
            Kind::ObjReadLocked => self.read_locked(header, own, fx),
            Kind::TxLock | Kind::TxCommit => self.transaction(header, own, len, fx),
            _ => self.call(header, own, len, fx),
        }
    }

    /// What of an object a read asks for: all from its offset on, or so many bytes.
    fn asked(header: &Header, own: &Own, meta: Meta) -> Option<(u32, u32)> {
        let (mut from, len) = (header.offset, u32::from(meta.len));
        if !from.is_multiple_of(GRANULE) {
            return None;
        }
        if from > len {
            // It has become shorter since the reader heard of it, who begins anew.
            from = 0;
        }
        let rest = len - from;
        Some(match len_of(own) {
            0 => (from, rest),
            asked => {
                let whole = asked.checked_next_multiple_of(GRANULE);
                (from, whole.unwrap_or(rest).min(rest))
            }
        })
    }

    fn read(&mut self, header: &Header, own: &Own, fx: &mut impl Effects) {
        let wanted = Wanted {
            generation: generation_of(own),
            known: own.a,
        };
        let answer = self.book.spot(header.tag).and_then(|spot| {
            let version = fx.version(spot.tag);
            let meta = fx.meta(spot.tag);
            let may = match (may_copy(version, meta, wanted), fx.defect()) {
                (Err(Refusal::Locked), Some(Defect::AcceptOdd)) => Ok(version),
                (may, _) => may,
            };
            let version = may.map_err(Refusal::reason)?;
            let asked = Home::asked(header, own, meta).ok_or(Reason::Refused)?;
            fx.copy(spot.tag, asked.0, asked.1);
            let now = fx.version_now(spot.tag);
            if fx.defect() != Some(Defect::CheckBeforeCopyOnly) {
                unmoved(version, now).map_err(Refusal::reason)?;
            }
            Ok((version, meta, asked.0))
        });
        self.tell(header, answer, fx);
    }

    /// The same, with writers kept out.
    fn read_locked(&mut self, header: &Header, own: &Own, fx: &mut impl Effects) {
        let generation = generation_of(own);
        let answer = self.book.spot(header.tag).and_then(|spot| {
            let version = enter(spot.tag, generation, fx)?;
            let meta = fx.meta(spot.tag);
            let asked = Home::asked(header, own, meta);
            if let Some((from, bytes)) = asked {
                fx.copy(spot.tag, from, bytes);
            }
            let left = match fx.defect() {
                Some(Defect::LockedReadMoves) => next(version),
                _ => version,
            };
            fx.release(spot.tag, left);
            let asked = asked.ok_or(Reason::Refused)?;
            Ok((version, meta, asked.0))
        });
        self.tell(header, answer, fx);
    }

    /// What all its answers say.
    fn flags(&self) -> Flags {
        match self.kernel_reads {
            true => Flags::BY_GRANULES,
            false => Flags(0),
        }
    }

    /// Answers a read with what was copied, from which byte on, or why nothing was.
    fn tell(
        &self,
        header: &Header,
        answer: Result<(u64, Meta, u32), Reason>,
        fx: &mut impl Effects,
    ) {
        let to = Dest::Requester(header.requester);
        let flags = self.flags();
        match answer {
            Ok((version, meta, offset)) => {
                let data = Header {
                    flags,
                    offset,
                    ..header.answer(Kind::ObjData, header.sender)
                };
                let own = own(version, meta.generation, meta.len.into());
                fx.send(to, &data, own, Bytes::Copied);
            }
            Err(reason) => {
                let no = Header {
                    flags,
                    ..header.refuse(Kind::ObjData, header.sender, reason)
                };
                fx.send(to, &no, Own::default(), Bytes::Nothing);
            }
        }
    }

    /// A call that takes effect once.
    fn call(&mut self, header: &Header, own: &Own, len: u32, fx: &mut impl Effects) {
        let row = self.rows.row(header.requester);
        let which = (header.incarnation, header.seq.0);
        let known = (row.incarnation, row.number);
        let asked = (header.kind, header.tag, *own);
        if which < known {
            return;
        }
        if which > known {
            let received = match fx.defect() {
                Some(Defect::MixTwoWrites) => row.received,
                _ => 0,
            };
            *row = Row {
                incarnation: header.incarnation,
                number: header.seq.0,
                asked: Some(asked),
                received,
                ..Row::default()
            };
        }
        if row.asked != Some(asked) {
            // Segments of one call are alike in this: a granule of another one proves nothing.
            return;
        }
        let again = row.ended && fx.defect() != Some(Defect::WriteTwiceOnCopy);
        let answer = match again {
            true => row.answer,
            false => match self.execute(header, own, len, fx) {
                Some(answer) => answer,
                None => return,
            },
        };
        let row = self.rows.row(header.requester);
        // Were it to take effect later, its requester would have made another one meanwhile.
        let open = answer.reason == Reason::Locked && fx.defect() == Some(Defect::RefuseForNow);
        (row.ended, row.answer) = (!open, answer);
        let kind = match header.kind {
            Kind::ObjWrite => Kind::ObjWriteAck,
            Kind::ObjAlloc => Kind::ObjAllocAck,
            _ => Kind::ObjFreeAck,
        };
        let mut ack = header.refuse(kind, header.sender, answer.reason);
        (ack.tag, ack.offset, ack.flags) = (answer.tag, 0, self.flags());
        let own = super::own(answer.version, answer.generation, 0);
        fx.send(Dest::Requester(header.requester), &ack, own, Bytes::Nothing);
    }

    /// `None`: not all of it is here yet.
    fn execute(
        &mut self,
        header: &Header,
        own: &Own,
        bytes: u32,
        fx: &mut impl Effects,
    ) -> Option<Answer> {
        let tag = header.tag;
        let refused = |reason| Answer::refused(tag, reason);
        let done = match header.kind {
            Kind::ObjWrite => {
                let len = len_of(own);
                let Some(granules) = granules(header.offset, bytes, len) else {
                    return Some(refused(Reason::Refused));
                };
                fx.stage(header.requester);
                let row = self.rows.row(header.requester);
                row.received |= granules;
                let all = all_granules(len);
                let early = fx.defect() == Some(Defect::WriteInPart);
                if row.received & all != all && !early {
                    return None;
                }
                let write = Write {
                    tag,
                    generation: generation_of(own),
                    expected: own.a,
                    len,
                };
                let put = |fx: &mut _| Effects::put(fx, header.requester, tag, len);
                self.write(write, put, fx)
            }
            Kind::ObjAlloc if own.a != 0 => self.book.reserve(own.a).map(|tag| Answer {
                tag,
                ..Answer::default()
            }),
            Kind::ObjAlloc => self.give(tag, len_of(own), fx),
            _ if own.a == REGION => self.remove(tag, fx),
            _ => self.free(tag, generation_of(own), fx),
        };
        Some(done.unwrap_or_else(refused))
    }

    /// Changes an object. `Invalid` in the answer: it had another version than was expected.
    fn write<F: Effects>(
        &mut self,
        write: Write,
        put: impl FnOnce(&mut F),
        fx: &mut F,
    ) -> Result<Answer, Reason> {
        let spot = self.book.spot(write.tag)?;
        if write.len > spot.room() {
            return Err(Reason::Refused);
        }
        let version = enter(spot.tag, write.generation, fx)?;
        let mut answer = Answer {
            tag: spot.tag,
            version,
            generation: write.generation,
            reason: Reason::None,
        };
        let conditional = fx.defect() != Some(Defect::IgnoreExpected);
        if write.expected != 0 && write.expected != version && conditional {
            fx.release(spot.tag, version);
            answer.reason = Reason::Invalid;
            return Ok(answer);
        }
        let meta = fx.meta(spot.tag);
        let len = write.len as u16;
        fx.set_meta(spot.tag, Meta { len, ..meta });
        put(fx);
        answer.version = next(version);
        fx.release(spot.tag, answer.version);
        Ok(answer)
    }

    /// A new object of zeros in a region.
    pub fn give(&mut self, region: Tag, len: u32, fx: &mut impl Effects) -> Result<Answer, Reason> {
        let given = self.book.give(region, len)?;
        let Spot { tag, class } = given.spot;
        if given.fresh && !fx.open_slab(given.spot) {
            self.book.close_slab(given.spot);
            return Err(Reason::Full);
        }
        let before = fx.version(tag);
        // Nobody else makes it odd: no object is there.
        fx.take(tag, before);
        let meta = Meta {
            class,
            live: true,
            len: len as u16,
            ..fx.meta(tag)
        };
        fx.set_meta(tag, meta);
        fx.zero(tag, len);
        let version = match fx.defect() {
            Some(Defect::ResetVersionOnReuse) => next(0),
            _ => next(before),
        };
        fx.release(tag, version);
        Ok(Answer {
            reason: Reason::None,
            tag,
            version,
            generation: meta.generation,
        })
    }

    /// The object is no more: of the next one in its place the generation is another.
    pub fn free(
        &mut self,
        tag: Tag,
        generation: u32,
        fx: &mut impl Effects,
    ) -> Result<Answer, Reason> {
        let spot = self.book.spot(tag)?;
        let version = enter(tag, generation, fx)?;
        let meta = fx.meta(tag);
        let last = generation == u32::MAX;
        let after = match fx.defect() {
            Some(Defect::KeepGenerationOnFree) => generation,
            _ => generation.saturating_add(1),
        };
        fx.set_meta(
            tag,
            Meta {
                generation: after,
                live: false,
                ..meta
            },
        );
        fx.release(tag, next(version));
        // A place whose generations are used up is never used again.
        match last {
            true => self.book.retire(spot),
            false => self.book.take_back(spot),
        }
        Ok(Answer {
            tag,
            version: next(version),
            ..Answer::default()
        })
    }

    /// A region is no more, nor are its objects. `Locked`: some of them are there yet, and it is to
    /// be asked for again.
    pub fn remove(&mut self, region: Tag, fx: &mut impl Effects) -> Result<Answer, Reason> {
        let objects = self.book.end(region, AT_ONCE)?;
        for spot in &objects {
            let generation = fx.meta(spot.tag).generation;
            match self.free(spot.tag, generation, fx) {
                // A writer is in.
                Ok(_) | Err(Reason::Locked) => {}
                Err(reason) => return Err(reason),
            }
        }
        match objects.is_empty() || self.book.end(region, 1)?.is_empty() {
            true => Ok(Answer {
                tag: region,
                ..Answer::default()
            }),
            false => Err(Reason::Locked),
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        core::hash::Hash::hash(&self.book, into);
        self.rows.fingerprint(into);
        self.participant.fingerprint(into);
    }
}

/// Keeps writers out of an object of this generation; the version that it has. `Locked`: another
/// writer is in.
pub(super) fn enter(tag: Tag, generation: u32, memory: &mut impl Memory) -> Result<u64, Reason> {
    let wanted = Wanted {
        generation,
        known: 0,
    };
    let version = memory.version(tag);
    let meta = memory.meta(tag);
    let version = may_copy(version, meta, wanted).map_err(Refusal::reason)?;
    debug_assert!(!is_odd(version) && is_odd(taken(version)));
    if !memory.take(tag, version) {
        return Err(Reason::Locked);
    }
    // The look at its life was before.
    let meta = memory.meta(tag);
    match meta.live && meta.generation == generation {
        true => Ok(version),
        false => {
            memory.release(tag, version);
            Err(Reason::Gone)
        }
    }
}
