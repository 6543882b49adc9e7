//! The paper's tables, as data.

use crate::wire::GlobalStatus::{self, Modified, Shared, Unshared};
use crate::wire::Kind::{
    self, EvictModified, EvictShared, LockRead, LockWrite, ReadMiss, WriteMiss, WriteShared,
};
use crate::wire::{Copyset, NodeId};

/// What the check table asks of a request (Table 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// The requester's node holds no copy.
    Absent,
    /// The requester's node holds a copy and the status is this.
    Holds(GlobalStatus),
    /// Nothing: a bare lock (§6) is always valid.
    Always,
}

/// Table 2.
pub const CHECK: [(Kind, Check); 7] = [
    (ReadMiss, Check::Absent),
    (WriteMiss, Check::Absent),
    (WriteShared, Check::Holds(Shared)),
    (EvictShared, Check::Holds(Shared)),
    (EvictModified, Check::Holds(Modified)),
    (LockRead, Check::Always),
    (LockWrite, Check::Always),
];

/// Where the forward table sends a granted request (Table 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forward {
    /// To the home agent, which provides the data.
    Home,
    /// To one member of the copyset, which provides the data.
    Provider,
    /// To all members of the copyset, one of which provides the data.
    AllWithProvider,
    /// To all members of the copyset but the requester's node; to the requester when there is no
    /// other.
    Others,
    /// Back to the requester: holding the lock is all it needs.
    Requester,
}

/// Table 3. A pair that is absent fails the check table and never gets here.
pub const FORWARD: [(Kind, GlobalStatus, Forward); 15] = [
    (ReadMiss, Unshared, Forward::Home),
    (WriteMiss, Unshared, Forward::Home),
    (ReadMiss, Modified, Forward::Provider),
    (WriteMiss, Modified, Forward::Provider),
    (ReadMiss, Shared, Forward::Provider),
    (WriteMiss, Shared, Forward::AllWithProvider),
    (WriteShared, Shared, Forward::Others),
    (EvictShared, Shared, Forward::Requester),
    (EvictModified, Modified, Forward::Requester),
    (LockRead, Unshared, Forward::Requester),
    (LockRead, Shared, Forward::Requester),
    (LockRead, Modified, Forward::Requester),
    (LockWrite, Unshared, Forward::Requester),
    (LockWrite, Shared, Forward::Requester),
    (LockWrite, Modified, Forward::Requester),
];

/// Whether the request is valid under the entry's metadata.
#[inline]
pub fn check(kind: Kind, node: NodeId, status: GlobalStatus, copyset: Copyset) -> bool {
    let row = CHECK.iter().find(|row| row.0 == kind);
    match row.map(|row| row.1) {
        Some(Check::Absent) => !copyset.contains(node),
        Some(Check::Holds(wanted)) => copyset.contains(node) && status == wanted,
        Some(Check::Always) => true,
        None => false,
    }
}

/// Where a valid request goes.
#[inline]
pub fn forward(kind: Kind, status: GlobalStatus) -> Option<Forward> {
    FORWARD
        .iter()
        .find(|row| row.0 == kind && row.1 == status)
        .map(|row| row.2)
}

/// The metadata that the requester installs when its event ends (Figure 6 and §5.1.1).
/// A read miss names the old members and itself; the owner takes the union with what it has by
/// then.
pub fn next(
    kind: Kind,
    node: NodeId,
    status: GlobalStatus,
    copyset: Copyset,
) -> (GlobalStatus, Copyset) {
    match kind {
        ReadMiss => (Shared, copyset.with(node)),
        WriteMiss | WriteShared => (Modified, Copyset::of(node)),
        EvictShared => match copyset.without(node) {
            Copyset::EMPTY => (Unshared, Copyset::EMPTY),
            rest => (Shared, rest),
        },
        EvictModified => (Unshared, Copyset::EMPTY),
        _ => (status, copyset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: [Kind; 7] = [
        ReadMiss,
        WriteMiss,
        WriteShared,
        EvictShared,
        EvictModified,
        LockRead,
        LockWrite,
    ];
    const STATUSES: [GlobalStatus; 3] = [Unshared, Shared, Modified];

    /// Copysets that a status allows, over three nodes.
    fn copysets(status: GlobalStatus) -> impl Iterator<Item = Copyset> {
        (0..8).map(Copyset).filter(move |set| match status {
            Unshared => set.is_empty(),
            Shared => !set.is_empty(),
            Modified => set.len() == 1,
        })
    }

    #[test]
    fn every_valid_request_has_a_row_and_every_row_a_valid_request() {
        let mut used = [false; FORWARD.len()];
        for kind in REQUESTS {
            for status in STATUSES {
                for copyset in copysets(status) {
                    if check(kind, 0, status, copyset) {
                        let row = FORWARD.iter().position(|r| r.0 == kind && r.1 == status);
                        used[row.unwrap_or_else(|| panic!("no row for {kind:?} {status:?}"))] =
                            true;
                    }
                }
            }
        }
        assert!(used.iter().all(|&u| u));
    }

    #[test]
    fn every_event_leaves_metadata_that_agrees_with_itself() {
        for kind in REQUESTS {
            for status in STATUSES {
                for copyset in copysets(status).filter(|&set| check(kind, 0, status, set)) {
                    let (status, copyset) = next(kind, 0, status, copyset);
                    assert!(
                        copysets(status).any(|set| set == copyset),
                        "{kind:?} leaves {status:?} {copyset:?}"
                    );
                }
            }
        }
    }
}
