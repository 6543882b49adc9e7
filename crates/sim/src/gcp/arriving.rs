//! Packets that arrive, at a node or at the directory.

use super::oracle::Complaint;
use super::packet::{DIRECTORY, LockPacket, copies};
use super::world::{LockRack, Serves, World};
use crate::site::{Deed, LockDeed};
use rackmem_proto::engine;
use rackmem_proto::wire::Header;
use std::rc::Rc;

impl World {
    /// A packet arrives.
    pub(super) fn deliver(
        &mut self,
        rack: &LockRack,
        to: u8,
        mut packet: LockPacket,
    ) -> Result<(), Complaint> {
        self.misread(rack, to, &mut packet.header);
        match to {
            DIRECTORY => self.served(rack, packet.header),
            node => return self.taken(rack, node, packet),
        }
        Ok(())
    }

    /// The directory takes a packet.
    fn served(&mut self, rack: &LockRack, header: Header) {
        let before = self.entry().map(|(_, entry)| entry);
        let answers = match (self.serves(), &mut self.switch) {
            (Serves::Home, _) => self.asks(|home| engine::packet(home, &header)),
            (Serves::Switch, Some(switch)) => {
                let answers = Rc::make_mut(switch).handle(&header);
                answers.iter().copied().collect()
            }
            _ => return,
        };
        for (to, answer) in answers
            .iter()
            .flat_map(|answer| copies(answer.to, answer.header))
        {
            self.answered(rack, before, &header, to, answer);
        }
    }

    /// A node takes a packet.
    fn taken(&mut self, rack: &LockRack, node: u8, packet: LockPacket) -> Result<(), Complaint> {
        if !self.nodes[usize::from(node)].up {
            return Ok(());
        }
        let before = (self.lock(node).right(), self.comes_home());
        let ((), done) = self.turn(node, |site| site.take(&packet.header, packet.body));
        let inside = |deed: &Deed<_>| matches!(deed, Deed::Lock(_, LockDeed::Inside(..)));
        let enters = done.iter().any(inside);
        self.follow(rack, node, done)?;
        self.gained(node, before, enters);
        Ok(())
    }
}
