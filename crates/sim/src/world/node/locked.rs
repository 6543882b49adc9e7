//! The engine's locks at a node of a world.

use super::Here;
use crate::world::block;
use crate::world::fabric::Fabric;
use crate::world::locks::{Fx, Sent};
use crate::world::node::Node;
use rackmem_proto::Output;
use rackmem_proto::engine::{Gcp, Host, LockCommand, LockHost, NodeLock, Protocol, Told};
use rackmem_proto::gcp::Access;
use rackmem_proto::wire::Tag;

impl Here<'_> {
    fn post(&mut self, sent: Sent) {
        for (output, words) in sent {
            for (to, header) in output.copies() {
                self.fabric.send_words(&Output::new(to, header), &words);
            }
        }
    }

    fn each(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Fx<'_>)) {
        for tag in self.node.locks.tags() {
            LockHost::lock(self, tag, &mut section);
        }
    }
}

impl LockHost for Here<'_> {
    type Seat = u16;
    type Fx<'f> = Fx<'f>;

    fn lock<R>(
        &mut self,
        tag: Tag,
        section: impl FnOnce(&mut NodeLock<u16>, &mut Fx<'_>) -> R,
    ) -> Option<R> {
        let defect = self.defect();
        let (header, body) = match self.packet {
            Some(packet) => (Some(&packet.header), &packet.body[..]),
            None => (None, &[][..]),
        };
        let locks = &mut self.node.locks;
        let (result, sent) = locks.turn(tag, body, defect, |lock, fx| {
            header.into_iter().for_each(|header| fx.acknowledge(header));
            section(lock, fx)
        })?;
        self.post(sent);
        Some(result)
    }

    fn each_lock(&mut self, section: impl FnMut(&mut NodeLock<u16>, &mut Fx<'_>)) {
        self.each(section);
    }

    fn each_due(&mut self, mut section: impl FnMut(&mut NodeLock<u16>, &mut Fx<'_>)) {
        let leaving = self.node.locks.leaving;
        if self.node.locks.asks_again() {
            self.each(|lock, fx| {
                section(lock, fx);
                if leaving {
                    lock.get_rid(fx);
                }
            });
        }
    }

    fn told<R>(&mut self, section: impl FnOnce(&mut Told) -> R) -> R {
        section(&mut self.node.locks.told)
    }

    fn is_current(&self, tag: Tag) -> bool {
        self.node.view.incarnation(tag.home()) == Some(block::incarnation(tag))
    }

    fn remove(&mut self, tag: Tag) {
        self.node.locks.remove(tag);
    }
}

impl Node {
    /// A thread of this node wants to enter a lock. `false`: the lock is not there.
    pub fn enter_lock(&mut self, tag: Tag, slot: u16, access: Access, fabric: &mut Fabric) -> bool {
        let there = self.locks.open(tag, &self.view);
        self.command(slot, (tag, LockCommand::Enter(slot, access)), fabric);
        there
    }

    /// It leaves one.
    pub fn leave_lock(&mut self, tag: Tag, slot: u16, access: Access, fabric: &mut Fabric) {
        self.command(slot, (tag, LockCommand::Leave(access)), fabric);
    }

    fn command(&mut self, slot: u16, command: (Tag, LockCommand<u16>), fabric: &mut Fabric) {
        let mut here = Here::new(self, fabric, None);
        Gcp::command(&mut here, slot as u8, command);
    }
}
