//! A requester's end.

use super::hub::Member;
use super::receiving::Receiving;
use super::sender::Sender;
use crate::awake::SPIN;
use crate::body::as_body;
use crate::{Body, Counters, Net, Port, Receiver};
use rackmem_wire::{Dest, Header, decode};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// A requester's inbox, and its lanes to others.
pub struct ShmPort {
    sender: Sender,
    receiving: Receiving,
    member: Arc<Member>,
    inbox: usize,
    counters: Arc<Counters>,
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
            sender: Sender::new(member.clone(), number, counters.clone()),
            receiving: receiving.ok_or_else(none)?,
            member: member.clone(),
            inbox,
            counters,
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
        let Some(packet) = self.receiving.wait(SPIN, at_most) else {
            return false;
        };
        if let Ok((header, body)) = decode(packet) {
            reply.receive(&header, as_body(body));
            return true;
        }
        self.counters.malformed.fetch_add(1, Relaxed);
        false
    }

    fn reply_port(&self) -> u16 {
        self.inbox as u16
    }

    fn lossy(&self) -> bool {
        true
    }
}
