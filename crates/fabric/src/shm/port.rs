//! A requester's end.

use super::hub::Member;
use super::receiving::Receiving;
use super::sender::Sender;
use crate::awake::SPIN;
use crate::{Body, Counters, Net, Port, Receiver};
use rackmem_wire::{Dest, Header};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A requester's inbox, and its lanes to others.
pub struct ShmPort {
    sender: Sender,
    receiving: Receiving,
    member: Arc<Member>,
    inbox: usize,
}

impl ShmPort {
    /// A free inbox of a node. It has one for each requester, and a few more.
    pub fn open(member: &Arc<Member>) -> io::Result<ShmPort> {
        let none = || io::Error::other("no more ports at this node");
        let (inbox, number) = member.take_port().ok_or_else(none)?;
        let counters = Arc::<Counters>::default();
        let segment = member.segment().clone();
        let receiving = Receiving::begin(segment, inbox, counters.clone());
        Ok(ShmPort {
            sender: Sender::new(member.clone(), number, counters),
            receiving: receiving.ok_or_else(none)?,
            member: member.clone(),
            inbox,
        })
    }
}

impl Drop for ShmPort {
    fn drop(&mut self) {
        self.member.give_port_back(self.inbox);
    }
}

impl Net for ShmPort {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.sender.send(to, header, body, reply);
    }

    fn segment(&self, block: usize) -> usize {
        self.sender.segment(block)
    }
}

impl Port for ShmPort {
    fn wait(&mut self, at_most: Duration, reply: &mut dyn Receiver) -> bool {
        let take = |header: &Header, body: Body<'_>| reply.receive(header, body);
        self.receiving.receive((SPIN, at_most), take) == Some(true)
    }

    fn reply_port(&self) -> u16 {
        self.inbox as u16
    }

    fn lossy(&self) -> bool {
        true
    }
}
