//! Defects that can be put into a world, one at a time, to see that the invariants notice them.
//!
//! Each is a rule of the protocol that a host or a role could break; the roles themselves stay as shipped.

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
}

impl Mutation {
    /// Those that show when an epoch ends.
    pub const OF_EPOCHS: [Mutation; 3] = [
        Mutation::ForgetDowngraded,
        Mutation::ForgetRead,
        Mutation::ForgetGiven,
    ];

    /// All others.
    pub const ALL: [Mutation; 10] = [
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
}
