//! What a step needs of its host: the words of objects, packets, and the rules that can be broken.

use super::operation::{Lane, Outcome};
use super::transaction::Entry;
use super::{Meta, Spot};
use crate::wire::{Dest, Header, Own, RequesterId, Tag};
use alloc::vec::Vec;
use core::ops::Range;

/// The words of objects, in memory that readers look at while it is written.
///
/// The order in which its functions are called is the order in which others see what they do: see
/// [`super::rule`].
pub trait Memory {
    /// The version, before anything of the object is looked at.
    fn version(&mut self, object: Tag) -> u64;
    /// The header's second word.
    fn meta(&mut self, object: Tag) -> Meta;
    /// The version, after everything that has been copied.
    fn version_now(&mut self, object: Tag) -> u64;
    /// Makes an even version odd, if it is this one, before anything of the object is changed.
    fn take(&mut self, object: Tag, version: u64) -> bool;
    /// Changes the header's second word. A writer is in.
    fn set_meta(&mut self, object: Tag, meta: Meta);
    /// Makes the version even, after everything that has been changed.
    fn release(&mut self, object: Tag, version: u64);
    /// A slab has objects of this class from here on. Says whether there is memory for it.
    fn open_slab(&mut self, spot: Spot) -> bool;
}

/// The bytes that travel with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bytes {
    /// None.
    Nothing,
    /// What was copied last ([`Effects::copy`]), in as many segments as the network needs, the
    /// first of them at the header's offset.
    Copied,
    /// What the operation in this slot writes, likewise.
    Value(u8),
    /// What the transaction in this slot writes at the home of its n-th part: from this byte on so
    /// many, perhaps none.
    Part(u8, u8, (u32, u32)),
    /// Zeros: as many as make the packet as long as an answer with so many bytes of an object, in
    /// whole lines.
    Room(u32),
}

/// What a step wants done, in this order.
pub trait Effects: Memory {
    /// Copies bytes of an object into what will be sent.
    fn copy(&mut self, object: Tag, from: u32, bytes: u32);
    /// Puts the segment of the packet at hand in its place in what this requester writes.
    fn stage(&mut self, of: RequesterId);
    /// The first bytes of that, zeros where none have come. A host that serves no home of a group
    /// needs neither this nor [`Effects::fill`].
    fn staged(&mut self, _of: RequesterId, _bytes: u32) -> Vec<u8> {
        Vec::new()
    }
    /// These are the object's first bytes, and a majority has them. A writer is in.
    fn fill(&mut self, _object: Tag, _content: &[u8]) {}
    /// The first bytes of what is staged are the object's. A writer is in.
    fn put(&mut self, of: RequesterId, object: Tag, bytes: u32);
    /// Puts the segment of the packet at hand in its place in this requester's part of a
    /// transaction.
    fn stage_part(&mut self, of: RequesterId);
    /// What that writes and where the contents are in it, if it is so many objects with all their
    /// bytes.
    fn entries(&mut self, of: RequesterId, objects: u32) -> Option<Vec<(Entry, Range<usize>)>>;
    /// These bytes of it are the object's content. A writer is in.
    fn put_part(&mut self, of: RequesterId, content: Range<usize>, object: Tag);
    /// It is not needed any more.
    fn drop_part(&mut self, of: RequesterId);
    /// Makes zeros of the object's first bytes. A writer is in.
    fn zero(&mut self, object: Tag, bytes: u32);
    /// Puts the segment of the packet at hand in its place in what this operation reads.
    fn gather(&mut self, lane: Lane);
    /// Sends a packet; a body in segments comes with `DATA` and its offset in each of them.
    fn send(&mut self, to: Dest, header: &Header, own: Own, bytes: Bytes);
    /// This operation has ended.
    fn done(&mut self, lane: Lane, outcome: Outcome);
    /// The epoch that the node is in.
    fn epoch(&self) -> u32;
    /// The rule that is broken on purpose.
    #[inline]
    fn defect(&self) -> Option<Defect> {
        None
    }
}

defects! {
    "A rule of objects that can be broken, to see that checkers notice.":

    /// An object that a writer is in is copied, and taken, like any other.
    AcceptOdd,
    /// The version is not looked at again when all is copied.
    CheckBeforeCopyOnly,
    /// Segments of two versions are put together as one object.
    MixAttempts,
    /// An object that is freed keeps its generation.
    KeepGenerationOnFree,
    /// An object that takes another's place begins with the first version.
    ResetVersionOnReuse,
    /// A copy of a write is executed as if it were another one.
    WriteTwiceOnCopy,
    /// A call that was refused since a writer was in takes effect when a copy of it comes.
    RefuseForNow,
    /// A write takes effect when its first segment is there.
    WriteInPart,
    /// Segments of a requester's last write count as those of the next.
    MixTwoWrites,
    /// A conditional write does not look at the version.
    IgnoreExpected,
    /// A read with writers kept out leaves another version.
    LockedReadMoves,
    /// What readers find of an object with copies is changed before a majority has it.
    PublishBeforeQuorum,
    /// Whoever keeps an object's home next does not look whether a call has taken effect.
    ForgetCalls,
    /// An object is overwritten that alone says what has come of another one's call.
    OverwriteUnheard,
    /// Whoever keeps an object's home next does not carry out what a record says.
    ForgetRecord,
    /// What does not fit into a record's first line is stored where the last record has it.
    OneStretch,
    /// Of several regions the lowest one has its record of a transaction before the others.
    LowestFirst,
    /// Whoever keeps an object's home next takes a record that does not say whether it has taken
    /// effect for one that has.
    TrustOpen,
    /// The same, for one that has not: other regions are not asked.
    ForgetOpen,
    /// Readers find a transaction before each region that it writes says that it has taken effect.
    LeaveOpen,
    /// Readers find a transaction in one region after the other.
    PublishApart,
    /// A keeper says that a transaction has taken effect before a majority has its record.
    AnswerBeforeRecord,
    /// A keeper says that it knows of a removal before it does.
    AnswerUnheard,
    /// What was under way of a removed region is stored in the one that has its number next.
    StoreInNext,
    /// A region has the addresses of the removed one whose number it has.
    ReuseAddresses,
    /// A transaction does not look whether what it has read is still so.
    SkipValidation,
    /// What was read of other homes is not locked while a keeper decides.
    LeaveReadsUnlocked,
    /// An object that another transaction has locked counts as unchanged.
    ValidateLocked,
    /// A home locks what it can of a transaction's objects, and leaves out the others.
    LockInPart,
    /// A coordinator commits at its own home with the others.
    CommitOwnFirst,
    /// A release of a transaction that has not locked yet is forgotten: its lock may come late.
    ForgetRelease,
    /// A copy of a release makes objects even again, as they were.
    UnlockTwice,
    /// A home keeps what a dead coordinator has locked.
    KeepDeadLocks,
    /// A home releases what a dead coordinator has locked, and another home has committed.
    CommitAtOneHome,
    /// A home releases what a dead coordinator has locked beside objects with copies, without a
    /// question to their keeper.
    ReleaseInDoubt,
    /// The same, and it commits it.
    CommitInDoubt,
}
