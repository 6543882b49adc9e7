//! What an object's home does with packets: reads by the rule, writes once, and the books.
//!
//! A read needs nothing of the home but memory, so nothing is remembered of it. What changes
//! something takes effect once ([`super::calls`]).

use super::book::{Book, Spot};
use super::calls::{Answer, Calls, Came};
use super::effects::{Bytes, Defect, Effects, Memory};
use super::layout::{GRANULE, Meta};
use super::operation::REGION;
use super::rule::{Refusal, Wanted, is_odd, may_copy, next, taken, unmoved};
use super::transaction::Participant;
use super::{generation_of, len_of, own};
use crate::wire::{Dest, Flags, Header, Kind, Own, Reason, Tag};
use core::hash::Hasher;

/// Objects that one call of a removal frees: others' packets wait for it.
const AT_ONCE: usize = 1024;

/// See the module.
#[derive(Clone, Debug)]
pub struct Home {
    /// What is given out.
    pub book: Book,
    /// The kernel of its host answers reads, too.
    pub kernel_reads: bool,
    calls: Calls,
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
            calls: Calls::default(),
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

    fn read(&mut self, header: &Header, own: &Own, fx: &mut impl Effects) {
        let place = self.book.spot(header.tag).map(|spot| spot.tag);
        read(place, header, own, self.flags(), fx);
    }

    /// The same, with writers kept out.
    fn read_locked(&mut self, header: &Header, own: &Own, fx: &mut impl Effects) {
        let generation = generation_of(own);
        let answer = self.book.spot(header.tag).and_then(|spot| {
            let version = enter(spot.tag, generation, fx)?;
            let meta = fx.meta(spot.tag);
            let asked = asked(header, own, meta);
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
        tell(header, answer, self.flags(), fx);
    }

    /// What all its answers say.
    fn flags(&self) -> Flags {
        match self.kernel_reads {
            true => Flags::BY_GRANULES,
            false => Flags(0),
        }
    }

    /// A call that takes effect once.
    fn call(&mut self, header: &Header, own: &Own, len: u32, fx: &mut impl Effects) {
        let answer = match self.calls.came(header, own, fx.defect()) {
            Came::Late => return,
            Came::Again(answer) => answer,
            Came::Open => match self.execute(header, own, len, fx) {
                Some(answer) => answer,
                None => return,
            },
        };
        self.calls.end(header.requester, answer, fx.defect());
        answer.tell(header, self.flags(), fx);
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
                match self.calls.stage(header, own, bytes, fx) {
                    None => return Some(refused(Reason::Refused)),
                    Some(false) => return None,
                    Some(true) => {}
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
        self.calls.fingerprint(into);
        self.participant.fingerprint(into);
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

/// Answers a read of the object in this place, if that may be copied and has been whole.
pub(super) fn read(
    place: Result<Tag, Reason>,
    header: &Header,
    own: &Own,
    flags: Flags,
    fx: &mut impl Effects,
) {
    let wanted = Wanted {
        generation: generation_of(own),
        known: own.a,
    };
    let answer = place.and_then(|tag| {
        let version = fx.version(tag);
        let meta = fx.meta(tag);
        let may = match (may_copy(version, meta, wanted), fx.defect()) {
            (Err(Refusal::Locked), Some(Defect::AcceptOdd)) => Ok(version),
            (may, _) => may,
        };
        let version = may.map_err(Refusal::reason)?;
        let asked = asked(header, own, meta).ok_or(Reason::Refused)?;
        fx.copy(tag, asked.0, asked.1);
        let now = fx.version_now(tag);
        if fx.defect() != Some(Defect::CheckBeforeCopyOnly) {
            unmoved(version, now).map_err(Refusal::reason)?;
        }
        Ok((version, meta, asked.0))
    });
    tell(header, answer, flags, fx);
}

/// Answers a read with what was copied, from which byte on, or why nothing was.
fn tell(
    header: &Header,
    answer: Result<(u64, Meta, u32), Reason>,
    flags: Flags,
    fx: &mut impl Effects,
) {
    let to = Dest::Requester(header.requester);
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
