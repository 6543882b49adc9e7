//! An operation of a thread on an object of another home: one a slot, or several reads together.
//!
//! | the answer to a read | then |
//! |---|---|
//! | a segment, the first or of the same version | its granules are here; when all are, done; when all that were asked for are, the next ones are |
//! | of a newer version | the attempt begins anew with it, and what is missing is asked for |
//! | of an older one | dropped |
//! | a refusal | the operation ends: what follows is the reader's policy ([`super::Retry`]) |
//! | none | the granules that are missing are asked for again |
//!
//! The paper sends data at once and a verdict last. On a network that loses and reorders, each
//! segment comes with the version under which the home has found it unchanged *after* copying, so
//! no object can be put together from two attempts, and a lost segment costs one segment.
//!
//! Where the kernel of the home's host answers reads ([`super::Forms`]), it makes one packet of
//! one: each request is for one granule, and as long as the answer to it. That is the paper's
//! unrolling at the source (SABRes §5.1). A program that writes all the time could void such a read
//! again and again, so after [`ANEW`] times the home's agent is asked for all of it, which it
//! copies at once.

use super::effects::{Bytes, Defect, Effects};
use super::layout::{GRANULE, MAX_BYTES, all_granules, granules};
use super::rule::is_odd;
use super::{generation_of, len_of, own};
use crate::wire::{Dest, Flags, Header, Kind, Own, Reason, RequesterId, Seq, Tag};

/// Granules that are asked for together, where one packet asks for one: their answers have room in
/// the receiver's socket.
pub const BURST: u32 = 16;
/// How often a read by granules begins anew with a newer version before all of it is asked for.
pub const ANEW: u8 = 3;

/// In an `ObjFree`'s version: it is of a region.
pub(super) const REGION: u64 = 1;

/// An object, as a handle has it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ref {
    /// Its address.
    pub tag: Tag,
    /// Which of the objects that are there one after the other.
    pub generation: u32,
}

/// An operation's place at its node: a slot, and which of the operations that are under way
/// together there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lane {
    /// The slot.
    pub slot: u8,
    /// From 0 on; 0 unless several reads began together.
    pub nth: u8,
}

impl Lane {
    /// In place of a number: the slot's transaction.
    pub const TRANSACTION: u8 = u8::MAX;
}

/// What a reader knows of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Known {
    /// The version that it has, or 0.
    pub version: u64,
    /// How long it expects the object to be, or 0. A wrong length costs packets, and nothing else.
    pub len: u32,
}

/// What a thread asks for. A value that is written is the host's, who has it until the outcome.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// The object, unless it has this version.
    Read(Ref, Known),
    /// The object, with writers kept out.
    ReadLocked(Ref),
    /// A new content of so many bytes, if the object has this version; 0: whatever it has.
    Write(Ref, u64, u32),
    /// A new object of so many bytes in the region that begins there.
    Alloc(Tag, u32),
    /// A region of so many bytes in the memory that this address is in.
    Reserve(Tag, u64),
    /// The object is no more.
    Free(Ref),
    /// The region that begins there is no more, nor are its objects.
    Remove(Tag),
}

impl Command {
    /// What it is about.
    pub const fn tag(&self) -> Tag {
        match self {
            Command::Read(object, _)
            | Command::ReadLocked(object)
            | Command::Write(object, ..)
            | Command::Free(object) => object.tag,
            Command::Alloc(tag, _) | Command::Reserve(tag, _) | Command::Remove(tag) => *tag,
        }
    }

    /// The packet that asks for it, and what answers that.
    const fn kinds(&self) -> (Kind, Kind) {
        match self {
            Command::Read(..) => (Kind::ObjRead, Kind::ObjData),
            Command::ReadLocked(..) => (Kind::ObjReadLocked, Kind::ObjData),
            Command::Write(..) => (Kind::ObjWrite, Kind::ObjWriteAck),
            Command::Alloc(..) | Command::Reserve(..) => (Kind::ObjAlloc, Kind::ObjAllocAck),
            Command::Free(..) | Command::Remove(..) => (Kind::ObjFree, Kind::ObjFreeAck),
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The slot has the object's content of this version, so many bytes.
    Read {
        /// The version.
        version: u64,
        /// Bytes.
        len: u32,
    },
    /// It has this version now.
    Written(u64),
    /// It has not been written: it had this version.
    Conflict(u64),
    /// The object or region is there.
    Given(Ref),
    /// It is no more.
    Freed,
    /// The transaction has taken effect, all of it.
    Committed,
    /// It never will, since of this object.
    Aborted(Reason, Tag),
    /// Why not.
    Refused(Reason),
}

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Operation {
    command: Command,
    number: Seq,
    /// Of a read: the version of what is here, and how long the object is.
    version: u64,
    len: u32,
    /// Granules that are here.
    have: u64,
    /// Granules that have been asked for.
    asked: u64,
    /// How often the attempt has begun anew.
    anew: u8,
    /// The home's agent has sent some of it.
    by_agent: bool,
}

impl Operation {
    /// Begins one, under a number that its slot has never used.
    pub fn begin(command: Command, number: Seq) -> Self {
        Operation {
            command,
            number,
            version: 0,
            len: 0,
            have: 0,
            asked: 0,
            anew: 0,
            by_agent: false,
        }
    }

    /// Whether the kernel of the home's host has sent all that has come.
    pub fn is_by_kernel(&self) -> bool {
        !self.by_agent
    }

    /// What it is for.
    pub fn command(&self) -> Command {
        self.command
    }

    /// The number that its answers have.
    pub fn number(&self) -> Seq {
        self.number
    }

    /// Asks the home for what is missing. `by_granules`: a granule at a time.
    pub fn ask(
        &mut self,
        slot: u8,
        (who, incarnation): (RequesterId, u32),
        by_granules: bool,
        fx: &mut impl Effects,
    ) {
        let (tag, (kind, _)) = (self.command.tag(), self.command.kinds());
        let mut header = Header::request(kind, fx.epoch(), tag, who, self.number);
        header.incarnation = incarnation;
        let mut bytes = Bytes::Nothing;
        self.asked = u64::MAX;
        let own = match self.command {
            Command::Read(object, known) if by_granules && self.anew < ANEW => {
                return self.ask_by_granules(header, object, known, fx);
            }
            Command::Read(object, known) => {
                // What is copied in one go is of one version.
                let (from, missing) = match by_granules {
                    true => (0, 0),
                    false => self.missing(),
                };
                header.offset = from;
                own(known.version, object.generation, missing)
            }
            // The copy is made anew, and is of the same version or of a later one.
            Command::ReadLocked(object) => own(0, object.generation, 0),
            Command::Write(object, expected, len) => {
                bytes = Bytes::Value(slot);
                own(expected, object.generation, len)
            }
            Command::Alloc(_, len) => own(0, 0, len),
            Command::Reserve(_, bytes) => own(bytes, 0, 0),
            Command::Free(object) => own(0, object.generation, 0),
            Command::Remove(_) => own(REGION, 0, 0),
        };
        fx.send(Dest::Home(tag.home()), &header, own, bytes);
    }

    /// One packet a granule, each with room for what answers it.
    fn ask_by_granules(
        &mut self,
        mut header: Header,
        object: Ref,
        known: Known,
        fx: &mut impl Effects,
    ) {
        // Of an object of unknown length the first granule tells it.
        let len = match (self.have, known.len) {
            (0, 0) => GRANULE,
            (0, len) => len.min(MAX_BYTES),
            _ => self.len,
        };
        self.asked = 0;
        let mut missing = all_granules(len) & !self.have;
        for _ in 0..missing.count_ones().min(BURST) {
            let nth = missing.trailing_zeros();
            missing &= missing - 1;
            self.asked |= 1 << nth;
            header.offset = nth * GRANULE;
            let bytes = (len - header.offset).min(GRANULE);
            let own = own(known.version, object.generation, bytes);
            fx.send(
                Dest::Home(object.tag.home()),
                &header,
                own,
                Bytes::Room(bytes),
            );
        }
    }

    /// From the first granule that is missing to the last one, in bytes; 0 bytes: all.
    fn missing(&self) -> (u32, u32) {
        let missing = all_granules(self.len) & !self.have;
        if self.have == 0 || missing == 0 {
            return (0, 0);
        }
        let (first, last) = (missing.trailing_zeros(), 63 - missing.leading_zeros());
        (first * GRANULE, (last - first + 1) * GRANULE)
    }

    /// A packet for this slot.
    pub fn packet(
        &mut self,
        header: &Header,
        own: &Own,
        (lane, bytes): (Lane, u32),
        fx: &mut impl Effects,
    ) -> Heard {
        let (_, answer) = self.command.kinds();
        if header.seq != self.number || header.kind != answer {
            return Heard::Nothing;
        }
        match (header.reason, self.command) {
            (Reason::Invalid, Command::Write(..)) => Heard::Ended(Outcome::Conflict(own.a)),
            (Reason::None, Command::Read(..) | Command::ReadLocked(..)) => {
                self.segment(header, own, (lane, bytes), fx)
            }
            (Reason::None, Command::Write(..)) => Heard::Ended(Outcome::Written(own.a)),
            (Reason::None, Command::Alloc(..) | Command::Reserve(..)) => {
                let (tag, generation) = (header.tag, generation_of(own));
                Heard::Ended(Outcome::Given(Ref { tag, generation }))
            }
            (Reason::None, Command::Free(..) | Command::Remove(..)) => Heard::Ended(Outcome::Freed),
            (reason, _) => Heard::Ended(Outcome::Refused(reason)),
        }
    }

    fn segment(
        &mut self,
        header: &Header,
        own: &Own,
        (lane, bytes): (Lane, u32),
        fx: &mut impl Effects,
    ) -> Heard {
        let len = len_of(own);
        let Some(granules) = granules(header.offset, bytes, len) else {
            return Heard::Nothing;
        };
        // No home sends an object while somebody writes it.
        if is_odd(own.a) && fx.defect() != Some(Defect::AcceptOdd) {
            return Heard::Nothing;
        }
        let mixes = fx.defect() == Some(Defect::MixAttempts) && self.have != 0;
        if own.a < self.version && !mixes {
            return Heard::Nothing;
        }
        let mut begins_anew = false;
        if own.a > self.version && !mixes {
            begins_anew = self.have != 0;
            // Where all was asked for at once, all of the newer one follows.
            let by_granules = self.asked != u64::MAX;
            self.anew += u8::from(begins_anew && by_granules);
            (self.version, self.len, self.have) = (own.a, len, 0);
        }
        if self.have & granules != granules {
            fx.gather(lane);
            self.have |= granules;
            self.by_agent |= !header.flags.has(Flags::BY_KERNEL);
        }
        if self.have == all_granules(self.len) {
            let (version, len) = (self.version, self.len);
            return Heard::Ended(Outcome::Read { version, len });
        }
        match begins_anew || self.asked & !self.have == 0 {
            true => Heard::More,
            false => Heard::News,
        }
    }
}

/// What a packet has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heard {
    /// Nothing: it is another's, or a copy.
    Nothing,
    /// Something that was missing is here.
    News,
    /// The same, and what is missing is to be asked for: all that was asked for is here, or of an
    /// older version.
    More,
    /// The operation has ended.
    Ended(Outcome),
}
