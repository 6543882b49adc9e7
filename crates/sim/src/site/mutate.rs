//! Planted defects of a requester's host, and of a lock's.

use super::{Form, Site, Speaks};
use crate::gcp;
use crate::world::Mutation;
use rackmem_proto::Output;
use rackmem_proto::engine::Stored;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::gcp::Entered;
use rackmem_proto::wire::{Dest, Flags, Header, Kind, NodeId, Reason, Seq, Tag};

/// A clean copy that is dropped, and nobody hears of it.
pub fn eviction<B: Form, X: Speaks<B>>(tag: Tag, site: &mut Site<B, X>) {
    let clean = site.cache.status(tag) == LocalStatus::Shared;
    if clean && site.mutation == Some(Mutation::DropSilently) {
        site.cache.lower(tag, LocalStatus::Invalid);
    }
}

/// A store that the end of an epoch has cut off, and that is sent as a new one.
pub fn stored(stored: Stored, mutation: Option<Mutation>) -> Stored {
    match (stored, mutation) {
        (Stored::CutOff, Some(Mutation::StoreAnew)) => Stored::Open,
        (stored, _) => stored,
    }
}

/// An answer to an earlier event that is taken for one to the current event.
pub fn late_answer(
    mut header: Header,
    open: [Option<Seq>; 3],
    mutation: Option<Mutation>,
) -> Header {
    let awaited = header.reason == Reason::NoMemory && open[1] == Some(header.seq);
    if awaited && mutation == Some(Mutation::AwaitGone) {
        header.reason = Reason::None;
    }
    let late = match mutation {
        Some(Mutation::AcceptStaleData) => header.flags.has(Flags::DATA),
        Some(Mutation::AcceptLateRefusal) => header.reason != Reason::None,
        _ => false,
    };
    if let (true, Kind::Ack, [Some(current), ..]) = (late, header.kind, open) {
        header.seq = current;
    }
    header
}

/// An unlock that goes to the wrong owner, or does not name its reader.
pub fn unlock(mut output: Output, node: NodeId, mutation: Option<Mutation>) -> Output {
    let (tag, flags) = (output.header.tag, output.header.flags);
    match mutation.filter(|_| output.header.kind == Kind::Unlock) {
        Some(Mutation::UnlockAnyOwner) => {
            output.header.flags = flags.but(Flags::IN_SWITCH);
            output.to = Dest::Home(tag.home());
        }
        Some(Mutation::ForgetReader) if flags.has(Flags::READER) => {
            output.header.copyset = output.header.copyset.without(node);
        }
        _ => {}
    }
    output
}

/// A sharer acknowledges at once, with a reader inside.
pub fn ack_inside(
    header: &Header,
    me: NodeId,
    mutation: Option<gcp::Mutation>,
) -> Option<(Dest, Header)> {
    let asked = header.kind == Kind::Invalidate && header.requester.node != me;
    if !asked || mutation != Some(gcp::Mutation::AckInside) {
        return None;
    }
    let mut ack = header.answer(Kind::InvAck, me);
    ack.flags = Flags::default();
    Some((Dest::Agent(header.requester.node), ack))
}

/// What a thread that is let in is not told.
pub fn entered(mut entered: Entered, mutation: Option<gcp::Mutation>) -> Entered {
    match mutation {
        Some(gcp::Mutation::ForgetDeath) => entered.reason = Reason::None,
        Some(gcp::Mutation::TokenRestarts) => entered.token &= (1 << 41) - 1,
        _ => {}
    }
    entered
}
