//! From a granted request to packets: Table 3 carried out, the same for both kinds of owner.

use super::tables::{self, Forward};
use crate::wire::{Copyset, Flags, Header, Kind, NodeId};
use crate::{Data, Dest, Output};

/// What an owner does with a request that it has locked and checked.
pub enum Granted {
    /// Send this.
    Send(Output),
    /// Home's memory is current and the requester needs it.
    FromHome(Header),
}

/// Fills in and routes a granted request. `header` carries the entry's metadata already; `seed` decides which
/// sharer provides the data. The choice depends only on the event, so that a retransmission reaches the same
/// provider, which may have given its copy away the first time.
pub fn route(header: &Header, seed: u32, owner: NodeId) -> Option<Granted> {
    let forward = tables::forward(header.kind, header.status)?;
    let mut granted = *header;
    granted.flags = granted.flags.and(Flags::GRANTED);
    granted.sender = owner;
    let provider = header.copyset.pick(draw(seed, header));
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

/// A well-mixed number that only the event decides (a multiply and a shift: what a switch's hash unit does).
fn draw(seed: u32, header: &Header) -> u32 {
    let event = header.requester.index() as u32 ^ header.seq.0.rotate_left(11) ^ seed;
    let mixed = event.wrapping_mul(0x9e37_79b1);
    mixed ^ mixed >> 15
}
