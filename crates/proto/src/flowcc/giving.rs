//! The home agent gives memory out and takes it back.
//!
//! A node asks by calls: `Alloc` for objects of one size, `Free` with objects of any. A call
//! changes what is given out, so it must take effect once, however often its packet comes and
//! whatever epoch begins meanwhile. A node has up to 64 *streams* of calls to a home and numbers
//! each stream's; of a stream one call at a time is under way, and the next begins when the last is
//! answered. So the home remembers the last one of each stream, with its answer
//! ([`crate::call::Answers`]): a copy of it is answered again, an older one ignored.
//!
//! What a call was given outlives the epoch that it was made in, and its number too: a node asks
//! again under the same number until it has an answer. When the node has died and is back,
//! its streams begin anew.

use super::directory::{ChunkKind, Entry, Owner};
use super::home_agent::HomeAgent;
use super::lock::LockWord;
use crate::call::{Call, Executed};
use crate::heap::{Given, Heap};
use crate::wire::{Contract, Copyset, Flags, Header, Kind, Reason, Record, Tag};
use crate::{Dest, Output, Outputs};
use alloc::sync::Arc;
use core::ops::Range;

/// What a call is answered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Answer {
    reason: Reason,
    tag: Tag,
    copyset: Copyset,
    flags: Flags,
}

/// Makes so many bytes of home's memory zeros from an address on. Says whether it has.
pub type Wipe<'a> = &'a mut dyn FnMut(Tag, u64) -> bool;

/// Objects that were given out together.
struct Objects {
    first: Tag,
    /// Bit n: the one n times its size behind the first is one of them.
    bits: u32,
    zeros: bool,
}

impl HomeAgent {
    /// What of its memory is given out.
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Bytes of its longest free range.
    pub fn longest_free(&mut self) -> u64 {
        Arc::make_mut(&mut self.heap).longest()
    }

    /// Whether it has ever given memory; what it has [reserved](HomeAgent::reserve)
    /// does not count.
    pub fn has_given(&self) -> bool {
        self.gave
    }

    /// From now on nothing is given out, as if there were no memory left, or it is again.
    pub fn withhold(&mut self, yes: bool) {
        self.withheld = yes;
    }

    /// Whether other nodes have anything of this memory, or are about to. What the switch decides
    /// about is not known here.
    pub fn is_held_elsewhere(&mut self) -> bool {
        let own = self.config.node;
        let free = LockWord::default();
        let mut entries = self.directory.each();
        entries.any(|(_, entry)| {
            let held = !entry.copyset.without(own).is_empty() || entry.lock != free;
            held && entry.owner == Owner::Home
        })
    }

    /// The first free memory of at least so many bytes, for the host, for ever.
    pub fn reserve(&mut self, bytes: u64) -> Option<Tag> {
        let had = self.directory.chunks();
        let first = Arc::make_mut(&mut self.heap).reserve(bytes)?;
        let base = self.directory.reach(first + bytes)?;
        self.spread(had, 0..0);
        Some(self.tag(base + first))
    }

    /// The same, in chunks.
    pub fn grow(&mut self, count: u32) -> Option<Tag> {
        self.reserve(u64::from(count) * crate::CHUNK)
    }

    /// Whole chunks for memory under another contract, or with another backing, for as long as this
    /// home lives: where they begin, under that contract.
    pub fn set_aside(&mut self, count: u32, kind: ChunkKind) -> Option<Tag> {
        let bytes = u64::from(count) * crate::CHUNK;
        let heap = Arc::make_mut(&mut self.heap);
        let first = heap.reserve_aligned(bytes, crate::CHUNK)?;
        self.directory.set_kind(first, first + bytes, kind)?;
        self.spread(u32::MAX, 0..0);
        let base = self.directory.reach(0)?;
        Some(self.tag(base + first).under(kind.contract))
    }

    /// What the chunk of an address is, if it is one of ours.
    pub fn chunk(&self, tag: Tag) -> Option<ChunkKind> {
        self.directory.kind(tag)
    }

    /// Gives out one object of `len` bytes, to a thread of this node.
    /// Says whether it is zeros for certain.
    pub fn give_known(&mut self, len: u64) -> Option<(Tag, bool)> {
        let given = self.give_some(len, 1)?;
        Some((given.first, given.zeros))
    }

    /// Gives out one object of `len` bytes, to a thread of this node.
    pub fn give(&mut self, len: u64) -> Option<Tag> {
        self.give_known(len).map(|(tag, _)| tag)
    }

    /// Makes a part of a block zeros, if no cache has anything of it and no event is about it, so
    /// that home's memory is all that there is of it. Says whether it has.
    /// Only the block's shard can know.
    pub fn wipe(&mut self, from: Tag, len: u64, wipe: Wipe<'_>) -> bool {
        let block = u64::from(self.config.block);
        let within = from.0 % block + len <= block;
        within && self.has_alone(Tag(from.0 / block * block)) && wipe(from, len)
    }

    /// Free blocks that are not known to be zeros: the first run from a block of its memory on,
    /// of at most so many.
    pub fn used_from(&self, from: u64, most: u64) -> Option<Range<u64>> {
        self.heap.used_from(from, most)
    }

    /// A block of its memory, if it is free, is zeros: cleared while it could not be allocated.
    pub fn cleaned(&mut self, nth: u64) {
        Arc::make_mut(&mut self.heap).cleaned(nth..nth + 1);
    }

    /// The address of a block of its memory.
    pub fn nth_block(&mut self, nth: u64) -> Option<Tag> {
        let base = self.directory.reach(0)?;
        Some(self.tag(base + nth * u64::from(self.config.block)))
    }

    /// Takes back an object of `len` bytes. `false`: none of this size is given out there.
    pub fn take_back(&mut self, object: Tag, len: u64) -> bool {
        let base = self.directory.reach(0);
        let first = base.and_then(|base| object.offset().checked_sub(base));
        let ours = object.home() == self.home() && object.is_under(Contract::Coherent);
        let heap = Arc::make_mut(&mut self.heap);
        first.is_some_and(|first| ours && heap.free(first, len).is_ok())
    }

    fn tag(&self, offset: u64) -> Tag {
        Tag(self.home().start().0 | offset)
    }

    fn give_some(&mut self, len: u64, most: u32) -> Option<Objects> {
        if self.withheld {
            return None;
        }
        let had = self.directory.chunks();
        let given = Arc::make_mut(&mut self.heap).alloc(len, most)?;
        let Given {
            first,
            objects,
            fresh,
            zeros,
        } = given;
        let block = u64::from(self.config.block);
        let base = self.directory.reach(fresh.end * block)?;
        self.gave = true;
        let lossy = self.losses || self.counters.lost != 0;
        if self.counters.lost != 0 {
            self.renew(fresh.clone());
        }
        self.spread(had, if self.losses { fresh } else { 0..0 });
        Some(Objects {
            first: self.tag(base + first),
            bits: objects,
            // What died with a node has no content before it is written, and home's memory may have
            // an old one.
            zeros: zeros && !lossy,
        })
    }

    /// What died with a node in these blocks belonged to objects that are free.
    pub(super) fn renew(&mut self, blocks: Range<u64>) {
        let Some(base) = self.directory.reach(0) else {
            return;
        };
        for at in blocks {
            let tag = self.tag(base + at * u64::from(self.config.block));
            if let Some(entry) = self.directory.entry(tag)
                && entry.owner == Owner::Lost
            {
                *entry = Entry::default();
            }
        }
    }

    /// Other shards have to know of these blocks, and of chunks, of which there were so many.
    fn spread(&mut self, had: u32, fresh: Range<u64>) {
        if self.shared && (self.directory.chunks() != had || !fresh.is_empty()) {
            self.changes += 1;
            let news = self.news.get_or_insert_default();
            news.number = self.changes;
            news.kinds = self.directory.kinds();
            news.fresh.extend((!fresh.is_empty()).then_some(fresh));
        }
    }

    /// A node asks for objects of as many bytes as its tag says in place of an offset, under the
    /// tag's contract: this agent has memory under the coherent one. (What a lock protects is
    /// beside it, and needs addresses only.)
    pub(super) fn alloc(&mut self, header: &Header, outputs: &mut Outputs) {
        let len = header.tag.offset();
        let coherent = header.tag.is_under(Contract::Coherent);
        let give = |home: &mut Self| {
            if !coherent {
                return Answer {
                    reason: Reason::Refused,
                    ..Answer::default()
                };
            }
            let class = crate::heap::class(len, home.config.block.into());
            let most = class.map_or(1, crate::heap::batch);
            match home.give_some(len, most) {
                Some(given) => Answer {
                    reason: Reason::None,
                    tag: given.first,
                    copyset: Copyset(given.bits),
                    flags: match given.zeros {
                        true => Flags::ZEROS,
                        false => Flags(0),
                    },
                },
                None => Answer {
                    reason: Reason::Full,
                    ..Answer::default()
                },
            }
        };
        self.call(header, Kind::AllocAck, outputs, give);
    }

    /// A node gives objects back: the body has an address and a size of each. The answer says how
    /// many of them are not given out, and which is the first of these; the others are free.
    pub fn free(&mut self, header: &Header, objects: impl Iterator<Item = Record>) -> Outputs {
        let mut outputs = Outputs::default();
        if header.epoch != self.config.epoch
            || header.tag.home() != self.home()
            || self.findings.is_some()
        {
            self.counters.ignored += 1;
            return outputs;
        }
        let take = |home: &mut Self| {
            let mut answer = Answer::default();
            for Record { tag, word } in objects {
                if !home.take_back(tag, word) {
                    if answer.copyset.is_empty() {
                        answer.tag = tag;
                    }
                    answer.copyset.0 = answer.copyset.0.saturating_add(1);
                }
            }
            answer
        };
        self.call(header, Kind::FreeAck, &mut outputs, take);
        outputs
    }

    /// Lets a call take effect if it is new, and answers it.
    fn call(
        &mut self,
        header: &Header,
        kind: Kind,
        outputs: &mut Outputs,
        effect: impl FnOnce(&mut Self) -> Answer,
    ) {
        let (who, call) = (header.requester, Call::from_offset(header.offset));
        match self.calls.enter(who, header.incarnation, call) {
            Executed::Old => {
                self.counters.ignored += 1;
                return;
            }
            Executed::Again => {}
            Executed::New => {
                let answer = effect(self);
                self.calls.put(who, call, answer);
            }
        }
        let answer = self.calls.get(who, call);
        let ack = Header {
            reason: answer.reason,
            tag: answer.tag,
            copyset: answer.copyset,
            flags: answer.flags,
            ..header.answer(kind, self.config.node)
        };
        outputs.push(Output::new(Dest::Requester(header.requester), ack));
    }
}
