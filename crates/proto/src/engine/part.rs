//! Which part of a node takes a packet.

use crate::flowcc::Rebuild;
use crate::wire::{Header, Kind, NodeId};

/// A part of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Who can be reached: of any epoch.
    Reach,
    /// A tool that asks how locks stand: of any epoch.
    Inspect,
    /// The node's part when an epoch begins.
    Recovery,
    /// A guest of the host, which is no protocol of this node.
    Guest,
    /// The protocol that has this kind of packet ([`super::Protocol::KINDS`]).
    Protocol,
}

/// Who takes a packet that has come to the agents of a node.
#[inline]
pub fn part(header: &Header) -> Part {
    match header.kind {
        Kind::Ping | Kind::Pong | Kind::Farewell => Part::Reach,
        Kind::Inspect => Part::Inspect,
        kind if Rebuild::concerns(kind) => Part::Recovery,
        _ => Part::Protocol,
    }
}

/// Whether a packet is of this epoch and, where a requester has sent it, of an incarnation of its
/// node that is a member. Some kinds have a fence of their own, and are of any epoch.
#[inline]
pub fn is_current(header: &Header, epoch: u32, incarnation: impl FnOnce(NodeId) -> u32) -> bool {
    let by_requester = header.kind.is_request()
        || matches!(
            header.kind,
            Kind::Unlock
                | Kind::WriteBack
                | Kind::Alloc
                | Kind::Free
                | Kind::AcceptLoss
                | Kind::Fetch
                | Kind::Store
                | Kind::Operate
        )
        || header.kind.asks_object()
        || header.kind.asks_bounded();
    let node = header.requester.node;
    let of_epoch = header.epoch == epoch || header.kind.is_fenced_by_config();
    of_epoch && (!by_requester || header.incarnation == incarnation(node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{RequesterId, Seq, Tag};

    #[test]
    fn what_has_a_fence_of_its_own_is_of_any_epoch() {
        for &kind in Kind::ALL {
            let who = RequesterId { node: 1, slot: 0 };
            let header = Header::request(kind, 7, Tag(0), who, Seq(1));
            assert!(is_current(&header, 7, |_| 0), "{kind:?}");
            let own_fence = kind.name().starts_with("Abd");
            assert_eq!(is_current(&header, 8, |_| 0), own_fence, "{kind:?}");
        }
    }

    /// What a node has asked for before it was excluded has no effect when it comes late.
    #[test]
    fn a_home_hears_no_life_that_has_ended() {
        for &kind in Kind::ALL {
            let who = RequesterId { node: 1, slot: 0 };
            let header = Header::request(kind, 7, Tag(0), who, Seq(1));
            if kind.asks_object() || kind.asks_bounded() {
                assert!(!is_current(&header, 7, |_| 1), "{kind:?}");
            }
        }
    }
}
