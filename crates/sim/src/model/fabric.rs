//! The network: packets without bytes, links with queues, and what is counted of them.

use super::agenda::{Agenda, Occurrence};
use super::params::Network;
use super::{BLOCK, outcome};
use crate::site::{Bare, Load};
use rackmem_proto::membership::host;
use rackmem_proto::wire::{Header, NodeId};
use rackmem_proto::{Data, Dest, Output};

/// A packet under way.
#[derive(Clone, Debug)]
pub struct ModelPacket {
    /// To whom: the switch, an agent or a requester.
    pub to: Dest,
    /// What.
    pub header: Header,
    /// What is behind the header.
    pub body: Bare,
}

/// What is behind a header that is sent. `locked`: bytes that a lock protects.
pub fn body(output: &Output, load: Load<()>, locked: u32) -> Bare {
    let bytes = match load {
        Load::Records(records) => return Bare::of(records),
        Load::Block(()) => BLOCK,
        Load::Words(_) => locked,
        Load::Nothing if output.data == Data::Operand => 8,
        Load::Nothing => 0,
    };
    Bare {
        bytes,
        ..Bare::default()
    }
}

/// One direction of a node's link.
#[derive(Clone, Copy, Default)]
struct Link {
    free: u64,
    used: u64,
}

impl Link {
    /// Sends what is ready at `ready` and takes `time`; when its last bit is through.
    fn pass(&mut self, ready: u64, time: u64) -> u64 {
        self.free = self.free.max(ready) + time;
        self.used += time;
        self.free
    }
}

/// The links, the packets, and the time.
pub struct Fabric {
    /// What happens when.
    pub agenda: Agenda,
    network: Network,
    out: Box<[Link]>,
    into: Box<[Link]>,
    packets: Vec<ModelPacket>,
    free: Vec<u32>,
    /// What was sent and received.
    pub traffic: outcome::Traffic,
}

impl Fabric {
    /// A quiet network.
    pub fn new(nodes: u16, network: Network) -> Self {
        Fabric {
            agenda: Agenda::default(),
            network,
            out: vec![Link::default(); nodes.into()].into(),
            into: vec![Link::default(); nodes.into()].into(),
            packets: Vec::new(),
            free: Vec::new(),
            traffic: outcome::Traffic::default(),
        }
    }

    /// The time.
    pub fn now(&self) -> u64 {
        self.agenda.now()
    }

    /// How many packets are under way, or wait to be served.
    pub fn in_flight(&self) -> u64 {
        (self.packets.len() - self.free.len()) as u64
    }

    /// Time that the busiest link has been in use.
    pub fn busiest_link(&self) -> u64 {
        let links = self.out.iter().chain(&*self.into);
        links.map(|link| link.used).max().unwrap_or(0)
    }

    /// Forgets how long links were in use.
    pub fn reset(&mut self) {
        let links = self.out.iter_mut().chain(&mut *self.into);
        links.for_each(|link| link.used = 0);
    }

    /// A packet under way.
    pub fn packet(&self, id: u32) -> &ModelPacket {
        &self.packets[id as usize]
    }

    /// Takes a packet out of the network.
    pub fn take(&mut self, id: u32) -> ModelPacket {
        self.free.push(id);
        self.traffic.received += 1;
        let packet = &mut self.packets[id as usize];
        let body = std::mem::take(&mut packet.body);
        ModelPacket { body, ..*packet }
    }

    fn keep(&mut self, mut packet: ModelPacket) -> u32 {
        packet.to = packet.to.hosted(host).unwrap_or(packet.to);
        self.traffic.sent += 1;
        match self.free.pop() {
            Some(id) => {
                self.packets[id as usize] = packet;
                id
            }
            None => {
                self.packets.push(packet);
                (self.packets.len() - 1) as u32
            }
        }
    }

    /// A node sends: the first packet is ready at `ready`, every further one `each` later.
    /// A node has no multicast, so it sends a packet to each. Returns how many that were.
    pub fn send(
        &mut self,
        from: NodeId,
        (ready, each): (u64, u64),
        output: &Output,
        body: &Bare,
    ) -> u64 {
        let mut count = 0;
        for (to, header) in output.copies(host) {
            let body = body.clone();
            let id = self.keep(ModelPacket { to, header, body });
            self.launch(from, ready + count * each, id);
            count += 1;
        }
        count
    }

    fn launch(&mut self, from: NodeId, ready: u64, id: u32) {
        let packet = &self.packets[id as usize];
        if destination(packet.to) == Some(from) {
            let at = ready + self.network.local;
            return self.agenda.enter(at, Occurrence::Arrival(id));
        }
        self.traffic.on_links += 1;
        let time = self.network.serialization(packet.body.bytes);
        let through = self.out[usize::from(from)].pass(ready, time);
        // The switch begins to forward with the first bit, so a packet's length counts once.
        let at = through - time + self.network.wire;
        self.agenda.enter(at, Occurrence::AtSwitch(id));
    }

    /// The switch passes a packet on to its node.
    pub fn forward(&mut self, id: u32) {
        let packet = &self.packets[id as usize];
        let Some(node) = destination(packet.to) else {
            return;
        };
        self.traffic.on_links += 1;
        let time = self.network.serialization(packet.body.bytes);
        let ready = self.now() + self.network.switch;
        let through = self.into[usize::from(node)].pass(ready, time);
        let at = through + self.network.wire;
        self.agenda.enter(at, Occurrence::Arrival(id));
    }

    /// The switch sends something of its own; a multicast leaves through every port at once.
    pub fn send_from_switch(&mut self, output: &Output, body: &Bare) {
        for (to, header) in output.copies(host) {
            let body = body.clone();
            let id = self.keep(ModelPacket { to, header, body });
            self.forward(id);
        }
    }
}

/// The node that a packet goes to.
fn destination(to: Dest) -> Option<NodeId> {
    match to {
        Dest::Agent(node) => Some(node),
        Dest::Requester(requester) => Some(requester.node),
        Dest::Switch | Dest::Agents { .. } | Dest::Home(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rackmem_proto::wire::{Kind, RequesterId, Seq, Tag};

    fn output(to: Dest) -> Output {
        let requester = RequesterId::default();
        let header = Header::request(Kind::Ack, 1, Tag(0), requester, Seq(1));
        Output::with(to, header, Data::Cache)
    }

    /// When packets arrive that leave one behind the other.
    fn arrivals(outputs: &[(NodeId, Output)]) -> Vec<u64> {
        let mut fabric = Fabric::new(3, Network::ETHERNET);
        for (from, output) in outputs {
            fabric.send(*from, (0, 0), output, &body(output, Load::Block(()), 0));
        }
        let mut arrived = Vec::new();
        while let Some(what) = fabric.agenda.next() {
            match what {
                Occurrence::AtSwitch(id) => fabric.forward(id),
                Occurrence::Arrival(id) => {
                    fabric.take(id);
                    arrived.push(fabric.now());
                }
                _ => {}
            }
        }
        assert_eq!(fabric.in_flight(), 0);
        assert_eq!(fabric.traffic.sent, fabric.traffic.received);
        arrived
    }

    #[test]
    fn links_pass_one_packet_at_a_time() {
        let network = Network::ETHERNET;
        let block = network.serialization(BLOCK);
        assert_eq!(block, 337);
        let alone = 2 * network.wire + network.switch + block;
        let data = |to| output(Dest::Agent(to));
        assert_eq!(arrivals(&[(0, data(1))]), [alone]);
        // From one node, and into one node, the second waits for the first.
        assert_eq!(
            arrivals(&[(0, data(1)), (0, data(2))]),
            [alone, alone + block]
        );
        assert_eq!(
            arrivals(&[(0, data(2)), (1, data(2))]),
            [alone, alone + block]
        );
        // Both directions of a link work at once, and what stays in a node uses none.
        assert_eq!(arrivals(&[(0, data(1)), (1, data(0))]), [alone, alone]);
        assert_eq!(arrivals(&[(1, data(1))]), [network.local]);
    }
}
