//! What a role wants done: packets to send, and which bytes travel with them.

use crate::wire::{Copyset, Dest, Flags, Header, HomeId, NodeId};

/// The bytes that travel with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Data {
    /// None.
    None,
    /// The block as the sender's cache holds it, in as many segments as the network needs.
    Cache,
    /// The block as its home's memory holds it, likewise.
    Home,
    /// What a question is about, or an answer says.
    Operand,
    /// A list of records, which the role has.
    Records,
}

/// One packet to send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Output {
    /// To whom.
    pub to: Dest,
    /// What.
    pub header: Header,
    /// With which bytes.
    pub data: Data,
}

impl Output {
    /// A packet without bytes.
    pub const fn new(to: Dest, header: Header) -> Self {
        Output {
            to,
            header,
            data: Data::None,
        }
    }

    /// A packet with bytes.
    pub const fn with(to: Dest, header: Header, data: Data) -> Self {
        Output { to, header, data }
    }

    /// The unicast packets this stands for, as a network that multiplies them delivers them.
    /// `host` says which node serves a home; a packet to a home that none serves is none.
    #[inline]
    pub fn copies(
        self,
        host: impl FnOnce(HomeId) -> Option<NodeId>,
    ) -> impl Iterator<Item = (Dest, Header)> {
        let (nodes, provider, single) = match self.to {
            Dest::Agents { nodes, provider } => (nodes, provider, None),
            one => {
                let to = one.hosted(host);
                (Copyset::EMPTY, None, to.map(|to| (to, self.header)))
            }
        };
        let header = self.header;
        single.into_iter().chain(nodes.iter().map(move |node| {
            let mut copy = header;
            if provider == Some(node) {
                copy.flags = copy.flags.and(Flags::PROVIDER);
            }
            (Dest::Agent(node), copy)
        }))
    }
}

/// The packets that one input causes. A multicast is one packet,
/// so there are never more than three.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Outputs([Option<Output>; 3]);

impl FromIterator<Output> for Outputs {
    fn from_iter<I: IntoIterator<Item = Output>>(packets: I) -> Self {
        let mut outputs = Outputs::default();
        packets.into_iter().for_each(|packet| outputs.push(packet));
        outputs
    }
}

impl Outputs {
    /// Adds a packet. One too many would be a defect of a role and is dropped,
    /// which loss recovery mends; `debug_assert` finds it in tests.
    #[inline]
    pub fn push(&mut self, output: Output) {
        match self.0.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some(output),
            None => debug_assert!(false, "a role sent more packets than an input may cause"),
        }
    }

    /// The packets in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &Output> {
        self.0.iter().flatten()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0[0].is_none()
    }
}
