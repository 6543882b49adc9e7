//! Defects of a host or a role, one at a time, to see that they are noticed.

use rackmem_proto::engine::Defect;

/// A defect.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mutation {
    /// The directory approves a release whatever the holder has heard (§4.2.2 "Consistency during
    /// queue transfers").
    IgnoreVersion,
    /// The directory does not tell a release of an earlier tenure from one that came too early.
    ForgetTenure,
    /// A sharer acknowledges at once, with a reader inside.
    AckInside,
    /// The directory forgets a reader.
    ForgetSharer,
    /// A node goes on with the data that it had.
    SkipInstall,
    /// A node takes a release for approved when it has sent it.
    ApproveItself,
    /// Nobody asks again.
    NeverRetry,
    /// The queue does not go along to the next holder.
    DropQueue,
    /// Packets of another epoch are taken like those of this one.
    ForgetEpoch,
    /// The next who enters is not told that a holder died.
    ForgetDeath,
    /// The new entry names a node whose data is not the newest.
    SettleOldest,
    /// Threads of a node hand over among themselves for ever.
    NeverLeave,
    /// Tokens begin anew in every epoch.
    TokenRestarts,
    /// A node whose release was refused goes on by the highest number that it has heard,
    /// not by the directory's.
    BelieveHeard,
    /// A node tells what it had when the first epoch ended after which it has not gone on,
    /// though that one was served.
    StaleReport,
    /// A home believes that a release was under way when an epoch ended that its entry has left
    /// behind.
    StalePassing,
    /// A new epoch forgets a death that a thread has been told of, though no writer has left since.
    ForgetTold,
    /// A switch does not tell for a new epoch that a death has yet to be told.
    ForgetUntold,
    /// A node forgets what it keeps, though it has had the lock again since it was home.
    DropLate,
    /// A lock that is made in the place of another has the life of that one.
    SameLife,
    /// Who enters does not look which lock it is.
    SkipLife,
    /// A place is used again before it is known that the lock there has been freed.
    MakeUnasked,
    /// A lock of which its home has kept a number goes on with an old version.
    WakeOld,
    /// One of the engine's rules, which its own text tells of.
    Node(Defect),
}

impl Mutation {
    /// Its name on a command line: `drop-queue`.
    pub fn name(self) -> String {
        match self {
            Mutation::Node(defect) => crate::names::kebab(defect),
            other => crate::names::kebab(other),
        }
    }

    /// The rule of the engine that it breaks, if it lies there.
    pub fn in_engine(self) -> Option<Defect> {
        match self {
            Mutation::Node(defect) => Some(defect),
            _ => None,
        }
    }

    /// The same of a site.
    pub fn in_worlds(self) -> crate::world::Mutation {
        match self {
            Mutation::Node(defect) => crate::world::Mutation::Node(defect),
            other => crate::world::Mutation::Lock(other),
        }
    }

    /// Those that explorers play. The other one shows when packets are forged.
    pub fn explored() -> impl Iterator<Item = Mutation> {
        let all = Self::ALL.into_iter();
        all.filter(|mutation| *mutation != Mutation::BelieveHeard)
    }

    /// Those that show in seeded worlds, where locks live beside blocks.
    pub const IN_WORLDS: [Mutation; 5] = [
        Mutation::AckInside,
        Mutation::SkipInstall,
        Mutation::NeverRetry,
        Mutation::ForgetDeath,
        Mutation::TokenRestarts,
    ];

    /// All of them.
    pub const ALL: [Mutation; 31] = [
        Mutation::IgnoreVersion,
        Mutation::ForgetTenure,
        Mutation::AckInside,
        Mutation::ForgetSharer,
        Mutation::SkipInstall,
        Mutation::ApproveItself,
        Mutation::NeverRetry,
        Mutation::DropQueue,
        Mutation::ForgetEpoch,
        Mutation::ForgetDeath,
        Mutation::SettleOldest,
        Mutation::NeverLeave,
        Mutation::TokenRestarts,
        Mutation::BelieveHeard,
        Mutation::StaleReport,
        Mutation::StalePassing,
        Mutation::ForgetTold,
        Mutation::ForgetUntold,
        Mutation::DropLate,
        Mutation::SameLife,
        Mutation::SkipLife,
        Mutation::MakeUnasked,
        Mutation::Node(Defect::DropSole),
        Mutation::WakeOld,
        Mutation::Node(Defect::DismissUnseen),
        Mutation::Node(Defect::ForgetOwnReport),
        Mutation::Node(Defect::EnterFirst),
        Mutation::Node(Defect::ForgetGone),
        Mutation::Node(Defect::SettleEarly),
        Mutation::Node(Defect::ForgetNext),
        Mutation::Node(Defect::ForgetWaiting),
    ];
}
