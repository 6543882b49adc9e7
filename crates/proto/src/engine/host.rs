//! What a node needs of whoever runs it.

use super::{Change, Copies, Home, Memory, Migrating, Part, Protocols, Recovery};
use crate::Output;
use crate::call::Executed;
use crate::flowcc::{LocalStatus, Migration, Settled, Shards};
use crate::membership::host;
use crate::wire::{Header, HomeId, NodeId, Record, Tag};
use alloc::vec::Vec;

/// The bytes behind a packet that is to be sent.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a, B> {
    /// None.
    Nothing,
    /// The copy that is held, or was until it was let go in this step.
    Copy,
    /// A block that was kept.
    Kept(&'a B),
    /// The block of the packet's tag, as home's memory has it.
    Home,
    /// What was gathered of home's memory ([`Memory::gather`]).
    Gathered,
    /// Records.
    Records(&'a [Record]),
}

/// What has happened, for metrics, stories and witnesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// A packet of another epoch or incarnation was ignored.
    NotOfNow {
        /// Its sender knows a view that this node does not: it may look for that now.
        later: bool,
    },
    /// A packet of a kind that no protocol of this node has was ignored.
    OfNobody,
    /// The home agent takes a packet.
    AtHome,
    /// Home's memory has bytes of this block from a packet.
    Stored(Tag),
    /// Home's memory has this block from a requester that keeps no copy.
    StoredInPlace(Tag),
    /// The application goes on with what home has of this block.
    Accepted(Tag),
    /// The cache agent takes a request.
    Asked {
        /// It has executed it before.
        again: bool,
        /// Its requester has ended it.
        old: bool,
        /// The block had left the cache and was kept.
        recalled: bool,
    },
    /// A copy was dropped because its home is gone.
    Dropped(Tag),
    /// This node has a block that its home may not have.
    ToRescue(Tag),
    /// Bytes of this block have come home while an epoch begins.
    Rescuing(Tag),
    /// All of this block has come home while an epoch begins.
    CameHome(Tag),
    /// This home has it, or another home says so: the node lets go of it.
    Rescued(Tag),
}

defects! {
    "A rule of a node's engine that can be broken, to see that checkers notice.":

    /// Every copy of a request is executed as if it were the first (§5.3.1).
    ForgetExecuted,
    /// A provider keeps no copy of data that may have been lost on its way (§5.3.1).
    DontRetain,
    /// An invalidation is acknowledged and the copy goes on being used (§5.1.2).
    KeepInvalidated,
    /// A provider says that dirty data is home when it is not (hard place FlowCC 3).
    SkipWriteBack,
    /// A home stores every segment it is sent, however old (§5.3.1).
    StoreStaleData,
    /// When an epoch ends, a node does not send home what it has downgraded (§5.4).
    ForgetDowngraded,
    /// It does not send home what it has read from another cache.
    ForgetRead,
    /// It does not send home what it gave away to an event that did not get it.
    ForgetGiven,
    /// It lets go of a block that it has sent home before home says that it has it.
    LetGoEarly,
    /// A home whose rebuild is cut off forgets which blocks have come home.
    ForgetRescued,
    /// A home makes its entries before everyone has told it of copies, and of locks.
    SettleEarly,
    /// A node goes on using its copies of memory whose home is dead.
    KeepDeadCopies,
    /// A home takes an entry that was moving to the switch for its own when the switch has died.
    TrustMoving,
    /// A node whose rebuild is cut off does not tell the next one of the events that it had told
    /// before.
    ForgetTold,
    /// A node tells nobody of the copies that it may write.
    HideModified,
    /// A node tells nobody of its clean copies.
    HideClean,
    /// A home does not count its own node's copies.
    ForgetOwnCopies,
    /// A home does not note its own node's events that were cut off.
    ForgetOwnEvents,
    /// A home takes any packet of a rescued block for all of it.
    RescueInPart,
    /// A block that this node rescues for itself is noted and its bytes are not put in place.
    RescueNothing,
    /// A home says that nothing has come from a block whose rescue it has stored.
    DropRescue,
    /// A copy that was downgraded is not remembered.
    DowngradeUnnoted,
    /// The table of executed requests outlives its epoch.
    KeepExecuted,
    /// A node goes on when its own entries are made, and waits for nobody.
    GoOnAlone,
    /// A home makes its entries as if nobody had died.
    ForgetGone,
    /// A home goes on moving entries to the switch of the last epoch.
    MoveOn,
    /// A home answers who keeps no copy without a look at the block's status and lock.
    FetchLocked,
    /// A home takes blocks of which caches have copies from who keeps none.
    StoreShared,
    /// A home takes a late copy of such blocks for new ones.
    ForgetStores,
    /// A home does not keep what a word was before it operated on it, which a late copy of the
    /// packet is to be told.
    ForgetOld,
    /// A node that needs room drops what a lock protects before the lock's home has it (GCP).
    DropSole,
    /// A home that is asked to take a lock says that it has it without looking.
    DismissUnseen,
    /// A home that settles its locks does not count what its own node has.
    ForgetOwnReport,
    /// A thread is let in before what the lock protects has been put in place.
    EnterFirst,
    /// A block is installed as soon as it is granted, before all of it is here.
    InstallInPart,
    /// An event is unlocked before its operation has run and its entry says so.
    UnlockFirst,
    /// A refusal is taken for a grant.
    TakeRefusal,
    /// An event that the end of its epoch has cut off is taken for granted.
    TakeFenced,
    /// A dirty copy stays usable until its bytes are home.
    LeaveLate,
    /// A dirty copy whose way home the end of the epoch has cut off stays dropped.
    SkipRestore,
    /// A dirty copy is dropped and not sent home.
    EvictWithoutWriteBack,
    /// A thread that leaves a lock does not let in who waits for that.
    ForgetNext,
    /// A node does not ask again for what threads wait for when all homes serve in a new epoch.
    ForgetWaiting,
    /// A block that the switch has given back stays with the kernel of its home's host, which is
    /// not told what is written in place.
    ShowReturned,
    /// So does one when an epoch ends.
    ShowInNext,
    /// A keeper serves a block of a home that a group keeps before it has put that in place.
    ServeUnplaced,
    /// What was in place in an earlier epoch is taken for what a majority has.
    StayInPlace,
    /// A keeper says that a block is home before a majority has it.
    SayHomeEarly,
    /// A keeper serves packets about one block side by side.
    TakeTurnsTogether,
    /// A node that hears of a removal keeps its copies of the region.
    KeepRemoved,
    /// A block that comes when its node has heard of the removal stays.
    KeepComing,
    /// A copy whose eviction is refused, since its region is removed, stays.
    KeepRefused,
}

/// What runs a node, whatever protocols it speaks: it brings threads, bytes and ports.
///
/// A *section* is handed to a closure. Where threads share the node, the host holds the section's
/// lock meanwhile; the closure has nothing else of the host, so no two locks of sections are ever
/// held together. What sections there are is each protocol's to say, by the trait that it asks of a
/// host: [`CoherentHost`], [`super::LockHost`], [`super::ReplicatedHost`], [`super::Holds`].
pub trait Host: Sized {
    /// The protocols that the node speaks: here they are registered.
    type Protocols: Protocols<Self>;
    /// A block's bytes, kept apart from cache and memory. Where there are no blocks, nothing.
    type Bytes: Clone;

    /// The node.
    fn me(&self) -> NodeId;
    /// The epoch that it is in.
    fn epoch(&self) -> u32;
    /// Which node serves a home, by the view that this node lives by.
    fn host_of(&self, home: HomeId) -> Option<NodeId> {
        host(home)
    }
    /// Whether this node serves the home that an address is in.
    fn is_home_of(&self, tag: Tag) -> bool {
        self.host_of(tag.home()) == Some(self.me())
    }
    /// A node's incarnation, 0 for one that never was a member.
    fn incarnation(&self, node: NodeId) -> u32;

    /// This node's part in a new epoch. It outlasts other sections,
    /// which are entered while it is held. A host that hears of epochs otherwise has none.
    fn recovery(&mut self, _section: impl FnOnce(&mut Recovery<Self::Bytes>, &mut Self)) {}

    /// Bytes behind the header of the packet at hand.
    fn body_len(&self) -> u32;
    /// The records behind it.
    fn records(&self) -> Vec<Record>;

    /// Sends a packet.
    fn send(&mut self, output: &Output, payload: Payload<'_, Self::Bytes>);
    /// Gives a packet to a part that is not in the engine: [`Part::Reach`],
    /// [`Part::Inspect`] or [`Part::Guest`].
    fn elsewhere(&mut self, _part: Part, _header: &Header) {}

    /// Something has happened.
    fn note(&mut self, _note: Note) {}
    /// The rule that is broken on purpose.
    fn defect(&self) -> Option<Defect> {
        None
    }
}

/// What FlowCC needs of a host beside what all protocols need: blocks, in a home's memory and in a
/// cache.
pub trait CoherentHost: Host {
    /// Home's memory, and the bytes of the packet at hand.
    type Memory<'m>: Memory<Bytes = Self::Bytes>
    where
        Self: 'm;

    /// How its home is divided into sections.
    fn shards(&self) -> Shards;
    /// The section of a shard of its home.
    fn home<'m, R>(
        &'m mut self,
        shard: usize,
        section: impl FnOnce(&mut Home, &mut Self::Memory<'m>) -> R,
    ) -> R;
    /// The cache agent's.
    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<Self::Bytes>) -> R) -> R;
    /// Enters a request in the table of what its cache agent has executed, and says what was there,
    /// if the host keeps that table: where the kernel answers for the agent as well.
    fn executed(&mut self, _header: &Header) -> Option<Executed> {
        None
    }
    /// What this node does about the switch, where there can be one.
    fn migrating<R>(&mut self, section: impl FnOnce(&mut Migrating) -> R) -> Option<R>;
    /// Which entries go to a switch, where there is one.
    fn policy(&self) -> Option<Migration>;

    /// Holds this node's copy of a block, if there is one: until [`CoherentHost::set`] no thread
    /// here reads or writes it. With `reads`, one that is clean need not be held:
    /// whoever asks leaves it as it is.
    fn hold(&mut self, tag: Tag, reads: bool) -> Option<LocalStatus>;
    /// The held copy's bytes.
    fn keep(&mut self) -> Self::Bytes;
    /// The held copy has this status from here on, and is not held any more. One that was
    /// [`LocalStatus::Modified`] and is [`LocalStatus::Shared`] from here on was written here: home
    /// may not have it until the reader's event has ended, which its entry says
    /// ([`CoherentHost::downgraded`]) for as long as the copy stays. Whoever takes it away knows
    /// that home has it, or takes the only copy.
    fn set(&mut self, status: LocalStatus);
    /// The copies that this node has, but for those that come or go just now.
    fn cached(&mut self) -> Vec<(Tag, LocalStatus)>;
    /// The clean copies that were written here, and that home may not have for all that their
    /// entries say: most of them it has.
    fn downgraded(&mut self) -> Vec<Tag>;
    /// Home has this block: its entry says so from here on.
    fn home_has(&mut self, tag: Tag);
    /// The bytes of a clean copy.
    fn clean(&mut self, tag: Tag) -> Option<Self::Bytes>;
    /// Gives a packet to the requester that it names.
    fn requester(&mut self, header: &Header);

    /// The entries are about to be made anew.
    fn settling(&mut self, _change: &Change) {}
    /// They have been.
    fn settled(&mut self, _change: &Change, _settled: Settled) {}
}
