//! Guests of a model's nodes: the home of the delegation baseline,
//! and the managers of the lock service.

use super::{EPOCH, System};
use crate::site::{Deed, Load, Site, Speaks};
use rackmem_baselines::locks::{Access, Manager, Request, ThreadPlace};
use rackmem_proto::engine::{FlowCc, Gcp, Note, Part};
use rackmem_proto::wire::{GlobalStatus, Header, Kind, NodeId, RequesterId, Seq, Tag};
use rackmem_proto::{Data, Dest, Output};
use std::collections::BTreeMap;

/// A node's guest.
pub enum Guest {
    /// Does what is asked, and says so.
    Delegated,
    /// Manages locks.
    Managers(BTreeMap<Tag, Manager>),
}

/// What ships, and a guest.
impl Speaks<()> for Guest {
    type Protocols = (FlowCc, Gcp);

    fn elsewhere(site: &mut Site<(), Guest>, part: Part, header: &Header) {
        if part == Part::Guest {
            site.deeds.push(Deed::Noted(Note::AtHome));
            let answers = site.part.asked(site.id, header).into_iter();
            let sent = answers.map(|answer| Deed::Sent(answer, Load::Nothing));
            site.deeds.extend(sent);
        }
    }
}

impl Guest {
    /// That of a system's nodes.
    pub fn of(system: System) -> Self {
        match system {
            System::Delegate => Guest::Delegated,
            _ => Guest::Managers(BTreeMap::new()),
        }
    }

    /// A question has come to this node.
    pub fn asked(&mut self, me: NodeId, header: &Header) -> Vec<Output> {
        let Guest::Managers(managers) = self else {
            let answer = header.answer(Kind::GuestTell, me);
            let to = Dest::Requester(header.requester);
            return vec![Output::with(to, answer, Data::Operand)];
        };
        let manager = managers.entry(header.tag).or_default();
        let RequesterId { node, slot } = header.requester;
        let request = Request {
            seat: ThreadPlace { node, place: slot },
            turn: header.seq.0,
            want: Access::from_status(header.status),
        };
        let replies = manager.handle(&request).into_iter();
        let answer = replies.map(|reply| {
            let status = match reply.inside {
                true => GlobalStatus::Shared,
                false => GlobalStatus::Unshared,
            };
            let header = service(
                Kind::GuestTell,
                header.tag,
                (reply.seat, reply.turn),
                status,
            );
            Output::new(Dest::Requester(header.requester), header)
        });
        answer.collect()
    }
}

/// A packet of the lock service, as the bench has them.
fn service(kind: Kind, tag: Tag, (seat, turn): (ThreadPlace, u64), status: GlobalStatus) -> Header {
    let requester = RequesterId {
        node: seat.node,
        slot: seat.place,
    };
    let mut header = Header::request(kind, EPOCH, tag, requester, Seq(turn));
    header.status = status;
    header
}

/// What the manager of a lock is told.
pub fn ask(tag: Tag, request: &Request) -> Header {
    let want = request.want.map_or(GlobalStatus::Unshared, Access::status);
    service(Kind::GuestAsk, tag, (request.seat, request.turn), want)
}

/// Whether an answer lets somebody in.
pub fn lets_in(header: &Header) -> bool {
    header.kind == Kind::GuestTell && header.status != GlobalStatus::Unshared
}
