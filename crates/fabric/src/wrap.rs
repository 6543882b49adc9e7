//! What can be put between the ends of a rack and their fabric: faults,
//! and taps that see every packet.
//!
//! A [`Wrapping`] wraps what agents and the switch send (a [`Handler`]) and what requesters send (a
//! [`Port`]), on any fabric. It works on packets as they travel: a block that the fabric cuts into
//! segments is cut here, so that one of them can be lost. A rack without one has none of this in
//! its path.

use crate::body::append;
use crate::fault::{FaultControl, Verdict};
use crate::late::LateQueue;
use crate::{Body, Handler, Net, Port, Receiver};
use rackmem_wire::{Dest, Header, NodeId};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What a packet can come from or go to, as cables go: a node with all its agents and requesters,
/// or the switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// A node.
    Node(NodeId),
    /// The switch.
    Switch,
}

impl End {
    /// Where a packet ends up; `None` for a multicast, which fabrics get as single packets, and for
    /// a home, which they get as a node.
    pub fn of(to: Dest) -> Option<End> {
        match to {
            Dest::Switch => Some(End::Switch),
            Dest::Agent(node) => Some(End::Node(node)),
            Dest::Requester(id) => Some(End::Node(id.node)),
            Dest::Agents { .. } | Dest::Home(_) => None,
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It goes its way.
    Sent,
    /// It is lost.
    Lost,
    /// It is lost, because its two ends are parted.
    Parted,
    /// It goes its way a second time.
    Doubled,
    /// It is held back.
    HeldBack,
    /// It was held back, and goes its way now.
    Late,
}

impl Fate {
    /// Whether the packet is on the wire now.
    pub fn is_on_the_wire(self) -> bool {
        matches!(self, Fate::Sent | Fate::Doubled | Fate::Late)
    }
}

/// A packet that an end sends.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    /// From where.
    pub from: End,
    /// Whether one of the node's requesters sends it, and not its agents.
    pub from_requester: bool,
    /// To whom.
    pub to: Dest,
    /// The packet.
    pub header: &'a Header,
    /// Its body.
    pub body: Body<'a>,
}

/// Something that sees every packet. Called by all threads that send, at once.
pub trait Tap: Send + Sync {
    /// Takes note of a packet.
    fn packet(&self, packet: &Packet<'_>, fate: Fate);

    /// Puts what it has noted where others can read it.
    fn flush(&self) {}
}

/// Taps, in the order in which they see a packet.
pub type Taps = Vec<Arc<dyn Tap>>;

/// Faults and taps of a process's part of a rack.
pub struct Wrapping {
    faults: Option<(Arc<FaultControl>, LateQueue)>,
    taps: Taps,
}

impl Wrapping {
    /// With these faults, if any. What they hold back leaves through `late`,
    /// from a thread of its own.
    pub fn new(
        faults: Option<Arc<FaultControl>>,
        late: Arc<dyn Net + Send + Sync>,
        taps: Taps,
    ) -> io::Result<Arc<Self>> {
        let faults = match faults {
            Some(faults) => Some((faults, LateQueue::start(late, taps.clone())?)),
            None => None,
        };
        Ok(Arc::new(Wrapping { faults, taps }))
    }

    /// A handler whose packets pass through here.
    pub fn handler(self: &Arc<Self>, end: End, inner: Arc<dyn Handler>) -> Arc<dyn Handler> {
        let wrapping = self.clone();
        Arc::new(WrappedHandler {
            wrapping,
            end,
            inner,
        })
    }

    /// A requester's port whose packets pass through here.
    pub fn port(self: &Arc<Self>, node: NodeId, inner: Box<dyn Port>) -> Box<dyn Port> {
        let wrapping = self.clone();
        Box::new(WrappedPort {
            wrapping,
            end: End::Node(node),
            inner,
        })
    }

    /// Puts what taps have noted where others can read it.
    pub fn flush(&self) {
        self.taps.iter().for_each(|tap| tap.flush());
    }

    fn tell(&self, packet: &Packet<'_>, fate: Fate) {
        self.taps.iter().for_each(|tap| tap.packet(packet, fate));
    }

    fn pass(&self, net: &dyn Net, packet: &Packet<'_>, reply: &mut dyn Receiver) {
        let send = |reply: &mut dyn Receiver| {
            net.send(packet.to, packet.header, packet.body, reply);
        };
        let Some((faults, late)) = &self.faults else {
            self.tell(packet, Fate::Sent);
            return send(reply);
        };
        let copies = match faults.judge(packet.from, End::of(packet.to)) {
            Verdict::Parted => return self.tell(packet, Fate::Parted),
            Verdict::Lost => return self.tell(packet, Fate::Lost),
            Verdict::Delivered => 1,
            Verdict::Doubled => 2,
        };
        for copy in 0..copies {
            if let Some(wait) = faults.hold_back() {
                if late.push(packet, wait) {
                    self.tell(packet, Fate::HeldBack);
                    continue;
                }
                faults.no_room();
            }
            let fate = if copy == 0 { Fate::Sent } else { Fate::Doubled };
            self.tell(packet, fate);
            send(reply);
        }
    }
}

struct WrappedNet<'a> {
    wrapping: &'a Wrapping,
    end: End,
    from_requester: bool,
    net: &'a dyn Net,
}

impl Net for WrappedNet<'_> {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        let packet = Packet {
            from: self.end,
            from_requester: self.from_requester,
            to,
            header,
            body,
        };
        let Body::Block(words) = body else {
            return self.wrapping.pass(self.net, &packet, reply);
        };
        let segment = self.net.segment(body.len());
        if segment >= body.len() {
            return self.wrapping.pass(self.net, &packet, reply);
        }
        let mut bytes = Vec::with_capacity(segment);
        for (number, part) in words.chunks((segment / 8).max(1)).enumerate() {
            bytes.clear();
            append(&mut bytes, part);
            let header = Header {
                offset: (number * segment) as u32,
                ..*header
            };
            let packet = Packet {
                header: &header,
                body: Body::Bytes(&bytes),
                ..packet
            };
            self.wrapping.pass(self.net, &packet, reply);
        }
    }

    fn segment(&self, block: usize) -> usize {
        self.net.segment(block)
    }
}

struct WrappedHandler {
    wrapping: Arc<Wrapping>,
    end: End,
    inner: Arc<dyn Handler>,
}

impl WrappedHandler {
    fn net<'a>(&'a self, net: &'a dyn Net) -> WrappedNet<'a> {
        WrappedNet {
            wrapping: &self.wrapping,
            end: self.end,
            from_requester: false,
            net,
        }
    }
}

impl Handler for WrappedHandler {
    fn handle(&self, net: &dyn Net, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        self.inner.handle(&self.net(net), header, body, reply);
    }

    fn tick(&self, net: &dyn Net) {
        self.inner.tick(&self.net(net));
    }
}

struct WrappedPort {
    wrapping: Arc<Wrapping>,
    end: End,
    inner: Box<dyn Port>,
}

impl Net for WrappedPort {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, reply: &mut dyn Receiver) {
        let net = WrappedNet {
            wrapping: &self.wrapping,
            end: self.end,
            from_requester: true,
            net: &*self.inner,
        };
        net.send(to, header, body, reply);
    }

    fn segment(&self, block: usize) -> usize {
        self.inner.segment(block)
    }
}

impl Port for WrappedPort {
    fn wait(&mut self, at_most: Duration, reply: &mut dyn Receiver) -> bool {
        self.inner.wait(at_most, reply)
    }

    fn reply_port(&self) -> u16 {
        self.inner.reply_port()
    }

    fn lossy(&self) -> bool {
        self.inner.lossy()
    }
}
