//! A protocol on trial at a node: a site that speaks it and nothing else, and has no block.

use super::Trial;
use crate::site::{self, Speaks};
use rackmem_proto::engine::{Holds, Protocol};
use rackmem_proto::membership::host;
use rackmem_proto::wire::{Dest, Header, NodeId, Record, RequesterId};

/// The node but for its thread.
pub type Site<P> = site::Site<(), P>;

/// A packet on its way to a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TrialPacket {
    /// The node.
    pub to: NodeId,
    /// What.
    pub header: Header,
    /// With these behind it.
    pub records: Vec<Record>,
}

impl<P: Trial> Speaks<()> for P {
    type Protocols = (P,);
}

impl<P: Trial> Holds<P> for Site<P> {
    fn part<R>(&mut self, section: impl FnOnce(&mut P) -> R) -> R {
        section(&mut self.part)
    }

    fn done(&mut self, _: u8, _: <P as Protocol<Self>>::Outcome) {
        self.passed = true;
    }
}

/// The packets that a site has sent.
pub fn sent<P: Trial>(site: &mut Site<P>) -> Vec<TrialPacket> {
    let mut sent = Vec::new();
    for (output, records) in site.sent() {
        for (to, header) in output.copies(host) {
            if let Dest::Agent(to) | Dest::Requester(RequesterId { node: to, .. }) = to {
                let records = records.clone();
                sent.push(TrialPacket {
                    to,
                    header,
                    records,
                });
            }
        }
    }
    sent
}
