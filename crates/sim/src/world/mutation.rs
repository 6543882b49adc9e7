//! Defects that can be put into a world, one at a time, to see that the invariants notice them.
//!
//! Each is a rule of the protocol that a host or a role could break; the roles themselves stay as shipped.

use crate::gcp::Mutation as LockDefect;
use rackmem_proto::engine::Defect;

/// A defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// A requester takes data of its earlier events for data of the current one (hard place FlowCC 5).
    AcceptStaleData,
    /// A reader's unlock does not name the reader, so the directory misses a copy (hard place FlowCC 4).
    ForgetReader,
    /// A provider says that dirty data is home when it is not (hard place FlowCC 3).
    SkipWriteBack,
    /// A provider keeps no copy of data that may have been lost on its way (§5.3.1).
    DontRetain,
    /// An agent executes every copy of a request as if it were the first (§5.3.1).
    ForgetExecuted,
    /// A home stores every segment it is sent, however old (§5.3.1).
    StoreStaleData,
    /// An agent acknowledges an invalidation and goes on using its copy (§5.1.2).
    KeepInvalidated,
    /// A cache drops clean copies without telling their owner.
    DropSilently,
    /// A dirty copy is dropped without being written back.
    EvictWithoutWriteBack,
    /// A requester never sends an unlock again.
    UnlockOnce,
    /// When an epoch ends, a node does not send home what it has downgraded (§5.4).
    ForgetDowngraded,
    /// It does not send home what it has read from another cache.
    ForgetRead,
    /// It does not send home what it gave away to an event that did not get it.
    ForgetGiven,
    /// A home takes an entry that was moving to the switch for its own when the switch has died: the switch may have taken it, and
    /// have granted it to a node that is dead as well.
    TrustMoving,
    /// It lets go of a block that it has sent home before home says that it has it.
    LetGoEarly,
    /// A home whose rebuild is cut off forgets which blocks have come home.
    ForgetRescued,
    /// A home makes its entries before everyone has told it of copies.
    SettleEarly,
    /// A node goes on using its copies of memory whose home is dead.
    KeepDeadCopies,
    /// A dirty copy that was being evicted when the epoch ended stays dropped.
    SkipRestore,
    /// A node whose lease is over goes on.
    ServeFenced,
    /// What was done is told without a look at the clock (docs/membership.md, "Before anybody is told").
    TellUnconfirmed,
    /// The clock is looked at when an operation begins, and not before it is told.
    ConfirmAtStart,
    /// The end of the lease is compared with a clock that stands still while the process is stopped.
    WrongClock,
    /// A beat brings a lease back that is over, before another version has been seen (docs/membership.md, rule 5).
    ExtendEndedTerm,
    /// A reader's unlock puts its copyset in place of the entry's, and another reader is forgotten (hard place FlowCC 4).
    OverwriteCopyset,
    /// A requester takes the refusal of an earlier event for one of the current one (hard place FlowCC 1).
    AcceptLateRefusal,
    /// An unlock goes to the home agent whoever has granted (hard place FlowCC 2).
    UnlockAnyOwner,
    /// Packets of another epoch are taken like those of this one (hard place FlowCC 6).
    ForgetEpoch,
    /// A late copy of ADD-TO-SWITCH is carried out again (§5.3, footnote 5).
    AddAgain,
    /// REMOVE-FROM-SWITCH frees its location in the first step, before home has the metadata.
    FreeInFirstStep,
    /// The lock that a dead node held stays.
    KeepDeadLocks,
    /// The shadow takes entries out of the switch without asking their homes (§5.2.2).
    DemoteAlone,
    /// A node that starts again gives out the addresses that it had before.
    ForgetIncarnation,
    /// A requester that is refused asks again at once.
    NeverBackOff,
    /// Owners always refuse one node, and serve the others.
    RefuseOne,
    /// A home lets every copy of a call for memory take effect, or with memory that goes back.
    ForgetCalls,
    /// A node numbers a call for memory anew that the end of an epoch has cut off.
    RenumberCalls,
    /// Who accepts the loss of a block frees the lock that another program holds on it (§6).
    FreeLockOnAccept,
    /// A home goes on moving entries to the switch of the last epoch, which may be dead.
    MoveOn,
    /// A node whose rebuild is cut off does not tell the next one of the events that it had told before.
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
    /// A block that a home rescues for itself is noted, and its bytes are not put in place.
    RescueNothing,
    /// A home acknowledges a rescued block whose bytes it has dropped.
    DropRescue,
    /// A node does not remember which copies it has downgraded.
    DowngradeUnnoted,
    /// The table of executed requests outlives its epoch.
    KeepExecuted,
    /// One of locks, as their host may have it.
    Lock(LockDefect),
    /// One of what the engine does with locks.
    Node(Defect),
    /// A node goes on when its own entries are made, and waits for nobody.
    GoOnAlone,
    /// A home makes its entries as if nobody had died.
    ForgetGone,
    /// A block is installed as soon as it is granted, before all of it is here (docs/protocols/flowcc.md, "An access").
    InstallInPart,
    /// An event is unlocked before its operation has run and its entry says so.
    UnlockFirst,
    /// A refusal is taken for a grant.
    TakeRefusal,
    /// An event that the end of its epoch has cut off is taken for granted.
    TakeFenced,
    /// A dirty copy stays usable until its bytes are home.
    LeaveLate,
}

impl Mutation {
    /// Its name on a command line: `skip-write-back`.
    pub fn name(self) -> String {
        match self {
            Mutation::Lock(defect) => defect.name(),
            Mutation::Node(defect) => crate::names::kebab(defect),
            other => crate::names::kebab(other),
        }
    }

    /// The same as a rule of a node's engine, if it is one.
    pub fn in_engine(self) -> Option<Defect> {
        Some(match self {
            Mutation::SkipWriteBack => Defect::SkipWriteBack,
            Mutation::DontRetain => Defect::DontRetain,
            Mutation::ForgetExecuted => Defect::ForgetExecuted,
            Mutation::StoreStaleData => Defect::StoreStaleData,
            Mutation::KeepInvalidated => Defect::KeepInvalidated,
            Mutation::ForgetDowngraded => Defect::ForgetDowngraded,
            Mutation::ForgetRead => Defect::ForgetRead,
            Mutation::ForgetGiven => Defect::ForgetGiven,
            Mutation::TrustMoving => Defect::TrustMoving,
            Mutation::LetGoEarly => Defect::LetGoEarly,
            Mutation::ForgetRescued => Defect::ForgetRescued,
            Mutation::SettleEarly => Defect::SettleEarly,
            Mutation::KeepDeadCopies => Defect::KeepDeadCopies,
            Mutation::MoveOn => Defect::MoveOn,
            Mutation::ForgetTold => Defect::ForgetTold,
            Mutation::HideModified => Defect::HideModified,
            Mutation::HideClean => Defect::HideClean,
            Mutation::ForgetOwnCopies => Defect::ForgetOwnCopies,
            Mutation::ForgetOwnEvents => Defect::ForgetOwnEvents,
            Mutation::RescueInPart => Defect::RescueInPart,
            Mutation::RescueNothing => Defect::RescueNothing,
            Mutation::DropRescue => Defect::DropRescue,
            Mutation::DowngradeUnnoted => Defect::DowngradeUnnoted,
            Mutation::KeepExecuted => Defect::KeepExecuted,
            Mutation::GoOnAlone => Defect::GoOnAlone,
            Mutation::ForgetGone => Defect::ForgetGone,
            Mutation::EvictWithoutWriteBack => Defect::EvictWithoutWriteBack,
            Mutation::InstallInPart => Defect::InstallInPart,
            Mutation::UnlockFirst => Defect::UnlockFirst,
            Mutation::TakeRefusal => Defect::TakeRefusal,
            Mutation::TakeFenced => Defect::TakeFenced,
            Mutation::LeaveLate => Defect::LeaveLate,
            Mutation::SkipRestore => Defect::SkipRestore,
            Mutation::Node(defect) => defect,
            _ => return None,
        })
    }

    /// Those that explorers play.
    pub fn explored() -> impl Iterator<Item = Mutation> {
        let all = Self::IN_ONE_EPOCH.iter().chain(&Self::OF_EPOCHS);
        let all = all.chain(&Self::OF_REBUILDS);
        let all = all.chain(&Self::OF_THE_NODE);
        all.chain(&Self::OF_AN_ACCESS).copied()
    }

    /// Those of what a thread does that found no usable copy.
    pub const OF_AN_ACCESS: [Mutation; 6] = [
        Mutation::InstallInPart,
        Mutation::UnlockFirst,
        Mutation::TakeRefusal,
        Mutation::TakeFenced,
        Mutation::LeaveLate,
        Mutation::SkipRestore,
    ];

    /// Those of the code around the roles of a node, which every host runs.
    pub const OF_THE_NODE: [Mutation; 11] = [
        Mutation::HideModified,
        Mutation::HideClean,
        Mutation::ForgetOwnCopies,
        Mutation::ForgetOwnEvents,
        Mutation::RescueInPart,
        Mutation::RescueNothing,
        Mutation::DropRescue,
        Mutation::DowngradeUnnoted,
        Mutation::KeepExecuted,
        Mutation::GoOnAlone,
        Mutation::ForgetGone,
    ];

    /// Those that show inside a rebuild or afterwards, and that explorers play.
    pub const OF_REBUILDS: [Mutation; 5] = [
        Mutation::KeepDeadCopies,
        Mutation::ForgetEpoch,
        Mutation::SettleEarly,
        Mutation::LetGoEarly,
        Mutation::ForgetRescued,
    ];

    /// Those that show when an epoch ends, and that explorers play.
    pub const OF_EPOCHS: [Mutation; 5] = [
        Mutation::ForgetDowngraded,
        Mutation::ForgetRead,
        Mutation::ForgetGiven,
        Mutation::TrustMoving,
        Mutation::FreeLockOnAccept,
    ];

    /// Those that show in one epoch of a rack whose members stay.
    pub const IN_ONE_EPOCH: [Mutation; 10] = [
        Mutation::AcceptStaleData,
        Mutation::ForgetReader,
        Mutation::SkipWriteBack,
        Mutation::DontRetain,
        Mutation::ForgetExecuted,
        Mutation::StoreStaleData,
        Mutation::KeepInvalidated,
        Mutation::DropSilently,
        Mutation::EvictWithoutWriteBack,
        Mutation::UnlockOnce,
    ];

    /// Everything that worlds play, with the defects of locks.
    pub fn played() -> impl Iterator<Item = Mutation> {
        let locks = LockDefect::IN_WORLDS.into_iter().map(Mutation::Lock);
        let node = Self::OF_LOCKS.into_iter().map(Mutation::Node);
        Self::ALL.into_iter().chain(locks).chain(node)
    }

    /// Those of the engine's locks that show in worlds.
    pub const OF_LOCKS: [Defect; 2] = [Defect::EnterFirst, Defect::ForgetOwnReport];

    /// All of coherent memory that worlds play.
    pub const ALL: [Mutation; 41] = [
        Mutation::AcceptStaleData,
        Mutation::ForgetReader,
        Mutation::SkipWriteBack,
        Mutation::DontRetain,
        Mutation::ForgetExecuted,
        Mutation::StoreStaleData,
        Mutation::KeepInvalidated,
        Mutation::DropSilently,
        Mutation::EvictWithoutWriteBack,
        Mutation::UnlockOnce,
        Mutation::ForgetDowngraded,
        Mutation::ForgetRead,
        Mutation::ForgetGiven,
        Mutation::SettleEarly,
        Mutation::KeepDeadCopies,
        Mutation::SkipRestore,
        Mutation::ServeFenced,
        Mutation::TellUnconfirmed,
        Mutation::ConfirmAtStart,
        Mutation::WrongClock,
        Mutation::ExtendEndedTerm,
        Mutation::OverwriteCopyset,
        Mutation::AcceptLateRefusal,
        Mutation::UnlockAnyOwner,
        Mutation::ForgetEpoch,
        Mutation::AddAgain,
        Mutation::FreeInFirstStep,
        Mutation::KeepDeadLocks,
        Mutation::DemoteAlone,
        Mutation::ForgetIncarnation,
        Mutation::NeverBackOff,
        Mutation::RefuseOne,
        Mutation::ForgetCalls,
        Mutation::RenumberCalls,
        Mutation::ForgetTold,
        Mutation::MoveOn,
        Mutation::InstallInPart,
        Mutation::UnlockFirst,
        Mutation::TakeRefusal,
        Mutation::TakeFenced,
        Mutation::LeaveLate,
    ];
}
