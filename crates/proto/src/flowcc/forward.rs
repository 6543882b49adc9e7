//! From a granted request to packets: Table 3 carried out, the same for both kinds of owner.

use super::score::Route;
use super::tables::{self, Forward};
use crate::switch;
use crate::wire::{Copyset, Flags, GlobalStatus, Header, Kind, NodeId};
use crate::{Data, Dest, Output};

/// What an owner does with a request that it has locked and checked.
pub enum Granted {
    /// Send this.
    Send(Output),
    /// Home's memory is current and the requester needs it.
    FromHome(Header),
}

/// Where a request goes if its owner grants it now. `seed` decides which sharer provides the data.
/// For a read miss only the first grant counts: [`score`](super::score) keeps it for every later
/// copy.
pub fn choose(header: &Header, status: GlobalStatus, copyset: Copyset, seed: u32) -> Route {
    Route {
        status,
        provider: switch::provider(header, copyset, seed),
    }
}

/// Fills in and routes a granted request. `header` carries the entry's copyset already.
pub fn send(header: &Header, route: Route, owner: NodeId) -> Option<Granted> {
    let forward = tables::forward(header.kind, route.status)?;
    let mut granted = *header;
    granted.status = route.status;
    granted.flags = granted.flags.and(Flags::GRANTED);
    granted.sender = owner;
    let provider = route.provider;
    let to_agents =
        |nodes, provider| Granted::Send(Output::new(Dest::Agents { nodes, provider }, granted));
    Some(match forward {
        Forward::Home => Granted::FromHome(granted),
        Forward::Provider => to_agents(Copyset::of(provider?), provider),
        Forward::AllWithProvider => to_agents(header.copyset, provider),
        Forward::Others => match header.copyset.without(header.requester.node) {
            Copyset::EMPTY => to_requester(granted),
            others => to_agents(others, None),
        },
        Forward::Requester => to_requester(granted),
    })
}

fn to_requester(granted: Header) -> Granted {
    let header = Header {
        kind: Kind::Ack,
        ..granted
    };
    Granted::Send(Output::new(Dest::Requester(header.requester), header))
}

/// A home agent's acknowledgement with the block from its memory.
pub fn from_home(granted: Header, home: NodeId) -> Output {
    let mut ack = granted.answer(Kind::Ack, home);
    ack.flags = ack.flags.and(Flags::DATA);
    Output::with(Dest::Requester(ack.requester), ack, Data::Home)
}
