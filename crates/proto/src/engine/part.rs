//! Which part of a node takes a packet.

use crate::flowcc::Rebuild;
use crate::wire::{Flags, GlobalStatus, Header, Kind, NodeId};

/// A part of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Who can be reached: of any epoch.
    Reach,
    /// A tool that asks how locks stand: of any epoch.
    Inspect,
    /// The node's part when an epoch begins.
    Recovery,
    /// Locks that are coherence.
    Locks,
    /// The lock service that they are compared with.
    Service,
    /// The cache agent.
    Cache,
    /// One of the node's requesters.
    Requester,
    /// The shadow of the switch.
    Shadow,
    /// The home agent, and the shadow for a copy.
    ShadowAndHome,
    /// The home agent.
    Home,
}

/// Who takes a packet that has come to the agents of node `me`.
#[inline]
pub fn part(me: NodeId, header: &Header) -> Part {
    let forwarded = header.kind.is_request() && header.flags.has(Flags::GRANTED);
    match header.kind {
        Kind::Ping | Kind::Pong => Part::Reach,
        Kind::Inspect => Part::Inspect,
        Kind::ServiceAsk | Kind::ServiceTell => Part::Service,
        Kind::WriteBackAck => Part::Requester,
        kind if Rebuild::concerns(kind) => Part::Recovery,
        kind if (Kind::Acquire..=Kind::YieldAck).contains(&kind) => Part::Locks,
        // The shadow has a copy of every answer to a move, whoever asked for it.
        Kind::AddAck | Kind::RemoveAck if header.requester.node == me => Part::ShadowAndHome,
        Kind::AddAck | Kind::RemoveAck | Kind::HeatReport | Kind::Tags => Part::Shadow,
        _ if forwarded && header.status != GlobalStatus::Unshared => Part::Cache,
        _ => Part::Home,
    }
}

/// Whether a packet is of this epoch and, where a requester has sent it, of an incarnation of its node that is a member.
#[inline]
pub fn is_current(header: &Header, epoch: u32, incarnation: impl FnOnce(NodeId) -> u32) -> bool {
    let by_requester = header.kind.is_request()
        || matches!(
            header.kind,
            Kind::Unlock | Kind::WriteBack | Kind::Alloc | Kind::Free | Kind::AcceptLoss
        );
    let node = header.requester.node;
    header.epoch == epoch && (!by_requester || header.incarnation == incarnation(node))
}
