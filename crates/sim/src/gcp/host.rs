//! What happens at a node, and what follows from what it has decided: packets are on their way, and
//! threads are inside.

use super::mutation::Mutation;
use super::oracle::{Complaint, complain};
use super::packet::{DIRECTORY, LockPacket, copies, cut};
use super::world::{HOME, LockNode, LockRack, Witness, World};
use crate::site::{Bare, Deed, LockDeed, Site, Speaks};
use rackmem_proto::Output;
use rackmem_proto::engine::Gcp;
use rackmem_proto::wire::{Header, Kind};
use std::rc::Rc;

/// A site that speaks GCP and nothing else.
#[derive(Clone, Debug)]
pub struct LocksOnly;

/// A node but for its threads, and what it wants done.
pub type LockSite = Site<(), LocksOnly>;
pub type LockDeeds = Vec<Deed<()>>;

impl Speaks<()> for LocksOnly {
    type Protocols = (Gcp,);
}

impl World {
    /// A node, to change it: states have those in common that are alike.
    pub(super) fn node_mut(&mut self, node: u8) -> &mut LockNode {
        Rc::make_mut(&mut self.nodes[usize::from(node)])
    }

    /// Something happens to a node, and what comes of that.
    pub(super) fn turn<R>(
        &mut self,
        node: u8,
        act: impl FnOnce(&mut LockSite) -> R,
    ) -> (R, LockDeeds) {
        let site = &mut self.node_mut(node).site;
        let result = act(site);
        (result, std::mem::take(&mut site.deeds))
    }

    /// The same, and does what comes of it.
    pub(super) fn act_on<R>(
        &mut self,
        rack: &LockRack,
        node: u8,
        act: impl FnOnce(&mut LockSite) -> R,
    ) -> Result<R, Complaint> {
        let (result, done) = self.turn(node, act);
        self.follow(rack, node, done)?;
        Ok(result)
    }

    /// What the home's lock sends when something happens to it, if all of that goes to its
    /// directory.
    pub(super) fn asks(&mut self, act: impl FnOnce(&mut LockSite)) -> Vec<Output> {
        let ((), done) = self.turn(HOME, act);
        let sent = done.into_iter().filter_map(|deed| match deed {
            Deed::Sent(output, _) => Some(output),
            _ => None,
        });
        sent.collect()
    }

    /// Does what has come of a turn.
    pub(super) fn follow(
        &mut self,
        rack: &LockRack,
        node: u8,
        done: LockDeeds,
    ) -> Result<(), Complaint> {
        for deed in done {
            match deed {
                Deed::Lock(_, LockDeed::Dropped) => self.witness(Witness::Dropped),
                Deed::Lock(_, LockDeed::Inside(thread, entered, at_once, data)) => {
                    if data != self.nodes[usize::from(node)].cell().fx.data {
                        let detail = format!("thread {thread} finds {data:?}");
                        return complain("data is in place when a thread enters", detail);
                    }
                    self.let_in(rack, thread.into(), entered, !at_once)?;
                }
                Deed::Sent(Output { to, header, .. }, load) => {
                    let dropped = header.kind == Kind::Queue && rack.has(Mutation::DropQueue);
                    if dropped || header.kind == Kind::Place {
                        continue;
                    }
                    for packet in cut(header, load, rack.scenario.segments) {
                        for (to, header) in copies(to, packet.header) {
                            self.send(node, to, header, packet.body.clone());
                        }
                    }
                    if header.kind == Kind::Release && rack.has(Mutation::ApproveItself) {
                        self.approve(node, &header);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn send(&mut self, from: u8, to: u8, header: Header, body: Bare) {
        self.packets += 1;
        if to == DIRECTORY || self.nodes[usize::from(to)].up {
            self.ways.push(from, to, LockPacket { header, body });
        }
    }
}
