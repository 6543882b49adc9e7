//! What a step sends.

use super::Defect;
use super::shelf::Changed;
use crate::call::Parcel;
use crate::wire::{Dest, Flags, Header, NodeId, Own};
use alloc::vec;
use alloc::vec::Vec;

/// Packets of one step, which leave when the host lets go of the section.
#[derive(Clone, Debug)]
pub struct BiOut {
    node: NodeId,
    epoch: u32,
    /// A rule that is broken, to see that checkers notice.
    pub broken: Option<Defect>,
    /// What leaves.
    pub sent: Vec<Parcel>,
    /// Whether something that a thread has asked for has ended.
    pub ended: bool,
    /// What of the home's regions is another than before.
    pub changed: Option<Changed>,
}

impl BiOut {
    /// Of a node in this epoch.
    pub fn new(node: NodeId, epoch: u32) -> Self {
        BiOut {
            node,
            epoch,
            broken: None,
            sent: Vec::new(),
            ended: false,
            changed: None,
        }
    }

    /// The epoch that the node is in.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// A question with so many zeros behind it: what answers it is as long.
    pub(super) fn ask(&mut self, to: Dest, header: &Header, own: Own, room: usize) {
        let mut header = *header;
        (header.epoch, header.sender) = (self.epoch, self.node);
        self.sent.push(Parcel::new(to, header, own, &vec![0; room]));
    }

    /// A packet with these bytes.
    pub fn send(&mut self, to: Dest, header: &Header, own: Own, bytes: &[u8]) {
        let mut header = *header;
        (header.epoch, header.sender) = (self.epoch, self.node);
        if !bytes.is_empty() {
            header.flags = header.flags.and(Flags::DATA);
        }
        let to = match to {
            // An answer for a thread that listens goes there and wakes no other.
            Dest::Requester(id) if header.reply_port == 0 => Dest::Agent(id.node),
            to => to,
        };
        self.sent.push(Parcel::new(to, header, own, bytes));
    }
}
