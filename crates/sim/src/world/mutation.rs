//! Defects that can be put into a world, one at a time, to see that the invariants notice them.
//!
//! Each is a rule of the protocol that a host or a role could break;
//! the roles themselves stay as shipped.

use crate::gcp::Mutation as LockDefect;
use rackmem_proto::engine::Defect;

/// A defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// A requester takes data of its earlier events for data of the current one (hard place FlowCC
    /// 5).
    AcceptStaleData,
    /// A reader's unlock does not name the reader, so the directory misses a copy (hard place
    /// FlowCC 4).
    ForgetReader,
    /// A cache drops clean copies without telling their owner.
    DropSilently,
    /// A requester never sends an unlock again.
    UnlockOnce,
    /// A node whose lease is over goes on.
    ServeFenced,
    /// What was done is told without a look at the clock (docs/membership.md,
    /// "Before anybody is told").
    TellUnconfirmed,
    /// The clock is looked at when an operation begins, and not before it is told.
    ConfirmAtStart,
    /// The end of the lease is compared with a clock that stands still while the process is
    /// stopped.
    WrongClock,
    /// A beat brings a lease back that is over, before another version has been seen
    /// (docs/membership.md, rule 5).
    ExtendEndedTerm,
    /// A reader's unlock puts its copyset in place of the entry's, and another reader is forgotten
    /// (hard place FlowCC 4).
    OverwriteCopyset,
    /// A requester takes the refusal of an earlier event for one of the current one (hard place
    /// FlowCC 1).
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
    /// Who leaves goes politely, whatever has become of the epoch in which its cache was empty
    /// (docs/decisions/0136).
    LeaveAnyEpoch,
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
    /// A requester sends blocks as new ones after the end of an epoch has cut off their store.
    StoreAnew,
    /// A write that survives is told in another epoch than that in which it was done.
    TellOverEpochs,
    /// Who accepts the loss of a block frees the lock that another program holds on it (§6).
    FreeLockOnAccept,
    /// The kernel answers for a cache agent in an epoch that the node has left.
    AnswerAnyEpoch,
    /// It answers what was executed before.
    AnswerAgain,
    /// It does not enter what it has executed.
    AnswerUnnoted,
    /// It acknowledges and leaves the copy.
    AnswerAndKeep,
    /// It gives a reader what is dirty, and its entry does not say that it was written here.
    GiveUnnoted,
    /// What comes home does not come to the kernel that answers for the home.
    ProvideOld,
    /// A read whose block is on its way home waits for that when there is no such block any more.
    AwaitGone,
    /// The region that has the number of a removed one has its addresses.
    ReuseAddresses,
    /// One of locks, as their host may have it.
    Lock(LockDefect),
    /// One of what the engine does with locks.
    Node(Defect),
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
        match self {
            Mutation::Node(defect) => Some(defect),
            _ => None,
        }
    }

    /// The same as a rule of locks' host, if it is one.
    pub fn in_locks(self) -> Option<LockDefect> {
        match self {
            Mutation::Lock(defect) => Some(defect),
            _ => None,
        }
    }

    /// Those that explorers play.
    pub fn explored() -> impl Iterator<Item = Mutation> {
        let all = Self::IN_ONE_EPOCH.iter().chain(&Self::OF_EPOCHS);
        let all = all.chain(&Self::OF_REBUILDS);
        let all = all.chain(&Self::OF_THE_NODE);
        let all = all.chain(&Self::OF_THE_KERNEL);
        let all = all.chain(&Self::OF_REMOVALS);
        all.chain(&Self::OF_AN_ACCESS).copied()
    }

    /// Those of a kernel that answers for a cache agent, or for a home.
    pub const OF_THE_KERNEL: [Mutation; 8] = [
        Mutation::AnswerAnyEpoch,
        Mutation::AnswerAgain,
        Mutation::AnswerUnnoted,
        Mutation::AnswerAndKeep,
        Mutation::GiveUnnoted,
        Mutation::ProvideOld,
        Mutation::Node(Defect::ShowReturned),
        Mutation::Node(Defect::ShowInNext),
    ];

    /// Those of regions that are removed, and of which caches have copies.
    pub const OF_REMOVALS: [Mutation; 5] = [
        Mutation::Node(Defect::KeepRemoved),
        Mutation::Node(Defect::KeepComing),
        Mutation::Node(Defect::KeepRefused),
        Mutation::AwaitGone,
        Mutation::ReuseAddresses,
    ];

    /// Of these, those that worlds in which regions are removed show.
    pub const OF_REMOVALS_IN_WORLDS: [Mutation; 4] = [
        Mutation::Node(Defect::KeepRemoved),
        Mutation::Node(Defect::KeepComing),
        Mutation::Node(Defect::KeepRefused),
        Mutation::ReuseAddresses,
    ];

    /// Those of what a thread does that found no usable copy.
    pub const OF_AN_ACCESS: [Mutation; 11] = [
        Mutation::Node(Defect::InstallInPart),
        Mutation::Node(Defect::UnlockFirst),
        Mutation::Node(Defect::TakeRefusal),
        Mutation::Node(Defect::TakeFenced),
        Mutation::Node(Defect::LeaveLate),
        Mutation::Node(Defect::SkipRestore),
        Mutation::Node(Defect::FetchLocked),
        Mutation::Node(Defect::StoreShared),
        Mutation::Node(Defect::ForgetStores),
        Mutation::Node(Defect::ForgetOld),
        Mutation::StoreAnew,
    ];

    /// Those of the code around the roles of a node, which every host runs.
    pub const OF_THE_NODE: [Mutation; 11] = [
        Mutation::Node(Defect::HideModified),
        Mutation::Node(Defect::HideClean),
        Mutation::Node(Defect::ForgetOwnCopies),
        Mutation::Node(Defect::ForgetOwnEvents),
        Mutation::Node(Defect::RescueInPart),
        Mutation::Node(Defect::RescueNothing),
        Mutation::Node(Defect::DropRescue),
        Mutation::Node(Defect::DowngradeUnnoted),
        Mutation::Node(Defect::KeepExecuted),
        Mutation::Node(Defect::GoOnAlone),
        Mutation::Node(Defect::ForgetGone),
    ];

    /// Those that show inside a rebuild or afterwards, and that explorers play.
    pub const OF_REBUILDS: [Mutation; 5] = [
        Mutation::Node(Defect::KeepDeadCopies),
        Mutation::ForgetEpoch,
        Mutation::Node(Defect::SettleEarly),
        Mutation::Node(Defect::LetGoEarly),
        Mutation::Node(Defect::ForgetRescued),
    ];

    /// Those that show when an epoch ends, and that explorers play.
    pub const OF_EPOCHS: [Mutation; 5] = [
        Mutation::Node(Defect::ForgetDowngraded),
        Mutation::Node(Defect::ForgetRead),
        Mutation::Node(Defect::ForgetGiven),
        Mutation::Node(Defect::TrustMoving),
        Mutation::FreeLockOnAccept,
    ];

    /// Those that show in one epoch of a rack whose members stay.
    pub const IN_ONE_EPOCH: [Mutation; 10] = [
        Mutation::AcceptStaleData,
        Mutation::ForgetReader,
        Mutation::Node(Defect::SkipWriteBack),
        Mutation::Node(Defect::DontRetain),
        Mutation::Node(Defect::ForgetExecuted),
        Mutation::Node(Defect::StoreStaleData),
        Mutation::Node(Defect::KeepInvalidated),
        Mutation::DropSilently,
        Mutation::Node(Defect::EvictWithoutWriteBack),
        Mutation::UnlockOnce,
    ];

    /// Everything that worlds play, with the defects of locks.
    pub fn played() -> impl Iterator<Item = Mutation> {
        let locks = LockDefect::IN_WORLDS.into_iter().map(Mutation::Lock);
        let node = Self::OF_LOCKS.into_iter().map(Mutation::Node);
        Self::ALL
            .into_iter()
            .chain(locks)
            .chain(node)
            .chain(Self::OF_COPIES)
            .chain(Self::OF_REMOVALS_IN_WORLDS)
    }

    /// Whether only worlds with copies show it.
    pub fn is_of_copies(self) -> bool {
        Self::OF_COPIES.contains(&self) || self.is_of_removals()
    }

    /// Whether only worlds in which regions are removed show it.
    pub fn is_of_removals(self) -> bool {
        Self::OF_REMOVALS_IN_WORLDS.contains(&self)
    }

    /// Those of homes that groups keep: only worlds with copies show them.
    pub const OF_COPIES: [Mutation; 5] = [
        Mutation::Node(Defect::ServeUnplaced),
        Mutation::Node(Defect::StayInPlace),
        Mutation::Node(Defect::SayHomeEarly),
        Mutation::Node(Defect::TakeTurnsTogether),
        Mutation::TellOverEpochs,
    ];

    /// Those of the engine's locks that show in worlds.
    pub const OF_LOCKS: [Defect; 2] = [Defect::EnterFirst, Defect::ForgetOwnReport];

    /// All of coherent memory that worlds play.
    pub const ALL: [Mutation; 47] = [
        Mutation::AcceptStaleData,
        Mutation::ForgetReader,
        Mutation::Node(Defect::SkipWriteBack),
        Mutation::Node(Defect::DontRetain),
        Mutation::Node(Defect::ForgetExecuted),
        Mutation::Node(Defect::StoreStaleData),
        Mutation::Node(Defect::KeepInvalidated),
        Mutation::DropSilently,
        Mutation::Node(Defect::EvictWithoutWriteBack),
        Mutation::UnlockOnce,
        Mutation::Node(Defect::ForgetDowngraded),
        Mutation::Node(Defect::ForgetRead),
        Mutation::Node(Defect::ForgetGiven),
        Mutation::Node(Defect::SettleEarly),
        Mutation::Node(Defect::KeepDeadCopies),
        Mutation::Node(Defect::SkipRestore),
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
        Mutation::LeaveAnyEpoch,
        Mutation::ForgetIncarnation,
        Mutation::NeverBackOff,
        Mutation::RefuseOne,
        Mutation::ForgetCalls,
        Mutation::RenumberCalls,
        Mutation::Node(Defect::ForgetTold),
        Mutation::Node(Defect::MoveOn),
        Mutation::Node(Defect::InstallInPart),
        Mutation::Node(Defect::UnlockFirst),
        Mutation::Node(Defect::TakeRefusal),
        Mutation::Node(Defect::TakeFenced),
        Mutation::Node(Defect::LeaveLate),
        Mutation::Node(Defect::FetchLocked),
        Mutation::Node(Defect::StoreShared),
        Mutation::Node(Defect::ForgetStores),
        Mutation::Node(Defect::ForgetOld),
        Mutation::StoreAnew,
    ];

    /// Whether only long ranges show it.
    pub fn is_of_long_ranges(self) -> bool {
        matches!(
            self,
            Mutation::StoreAnew
                | Mutation::Node(
                    Defect::FetchLocked
                        | Defect::StoreShared
                        | Defect::ForgetStores
                        | Defect::ForgetOld
                )
        )
    }
}
