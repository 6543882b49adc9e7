//! UDP: a process a node and one for the switch, on any network, without privileges.
//!
//! Every agent and the switch have a socket and a thread; every requester has a socket of its own
//! and waits on it in the application's thread, so that an answer costs no wake-up but the one it
//! is for. A block travels in segments that fit the network's MTU:
//! they are sent by one system call, and where blocks come in several,
//! those that have come are taken by one.

use crate::awake::SPIN;
use crate::body::as_body;
use crate::burst::{Incoming, MOST, Outgoing};
use crate::poll::{TICK, receive, receive_within};
use crate::service::Service;
use crate::serving::serve_until;
use crate::{Body, Counters, Handler, Net, Nobody, Port, Receiver, words};
use rackmem_wire::{Dest, HEADER_LEN, Header, MAX_BODY, NodeId, decode, encode, segment_len};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Bytes of IPv6 and UDP headers: what of an MTU is not ours.
const UNDERLAY: usize = 48;
/// Socket buffers: room for every requester of a rack to have a block in flight at one agent.
const SOCKET_BUFFER: usize = 8 << 20;

/// Who listens where.
#[derive(Clone, Debug)]
pub struct Peers {
    /// The switch, if the rack has one.
    pub switch: Option<SocketAddr>,
    /// The agents, by node.
    pub agents: Vec<SocketAddr>,
    /// Bytes of the network's packets, headers included.
    pub mtu: usize,
}

/// Binds a socket with buffers that hold a burst. Errors name the address.
pub fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{addr} (UDP): {error}"));
    bind_unnamed(addr).map_err(named)
}

fn bind_unnamed(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    // The kernel caps these silently at its own limit; less than asked means more retransmissions,
    // not errors.
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

thread_local! {
    /// Where packets are put together: one a thread, so that sending allocates nothing.
    static PACKETS: RefCell<Outgoing> = RefCell::default();
}

/// One socket that sends to peers.
struct Sender {
    socket: UdpSocket,
    peers: Arc<Peers>,
    counters: Arc<Counters>,
}

impl Sender {
    fn address(&self, to: Dest, header: &Header) -> Option<SocketAddr> {
        match to {
            Dest::Switch => self.peers.switch,
            Dest::Agent(node) => self.peers.agents.get(node as usize).copied(),
            Dest::Requester(id) => {
                let agent = self.peers.agents.get(id.node as usize)?;
                (header.reply_port != 0).then(|| SocketAddr::new(agent.ip(), header.reply_port))
            }
            Dest::Agents { .. } | Dest::Home(_) => None,
        }
    }

    fn transmit(&self, to: Dest, header: &Header, body: Body<'_>) {
        let Some(address) = self.address(to, header) else {
            self.counters.unsent.fetch_add(1, Relaxed);
            return;
        };
        let refused = PACKETS.with_borrow_mut(|packets| {
            packets.clear();
            match body {
                Body::None => add(packets, header, 0, |_| ()),
                Body::Bytes(bytes) => {
                    add(packets, header, bytes.len(), |to| to.copy_from_slice(bytes));
                }
                Body::Block(words) => {
                    let segment = segment_bytes(words.len() * 8, self.peers.mtu);
                    for (i, part) in words.chunks(segment / 8).enumerate() {
                        let header = Header {
                            offset: (i * segment) as u32,
                            ..*header
                        };
                        add(packets, &header, part.len() * 8, |to| words::read(to, part));
                    }
                }
            }
            packets.send(&self.socket, address)
        });
        if refused > 0 {
            self.counters.unsent.fetch_add(refused, Relaxed);
        }
    }
}

/// Puts one more packet together.
fn add(packets: &mut Outgoing, header: &Header, len: usize, body: impl FnOnce(&mut [u8])) {
    let (head, rest) = packets.add(HEADER_LEN + len).split_at_mut(HEADER_LEN);
    head.copy_from_slice(&encode(header, len));
    body(rest);
}

/// Bytes of blocks that most racks have, for what to expect of a network.
const BLOCK: usize = 4096;

impl Peers {
    /// Packets to look for at a time: several where blocks come in several.
    fn incoming(&self) -> Incoming {
        let whole = body_room(self.mtu) >= BLOCK;
        Incoming::new(if whole { 1 } else { MOST })
    }
}

/// Bytes of body that one packet of the network carries.
pub fn body_room(mtu: usize) -> usize {
    mtu.saturating_sub(UNDERLAY + HEADER_LEN).min(MAX_BODY)
}

/// Bytes of a block that one packet of the network carries.
fn segment_bytes(block: usize, mtu: usize) -> usize {
    segment_len(block as u32, body_room(mtu) as u32) as usize
}

/// Bytes of packets that a path to this address carries: a loopback interface takes whole blocks.
pub fn path_mtu(address: IpAddr) -> usize {
    if address.is_loopback() { 65_535 } else { 1500 }
}

impl Net for Sender {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
        self.transmit(to, header, body);
    }

    fn segment(&self, block: usize) -> usize {
        segment_bytes(block, self.peers.mtu)
    }
}

/// A socket that only sends: for whoever has something to send that no agent or requester is just
/// sending.
pub struct Outlet(Sender);

impl Outlet {
    /// A socket on any free port of an address of this host.
    pub fn open(near: IpAddr, peers: Arc<Peers>) -> io::Result<Self> {
        let socket = bind(SocketAddr::new(near, 0))?;
        Ok(Outlet(Sender {
            socket,
            peers,
            counters: Arc::default(),
        }))
    }
}

impl Net for Outlet {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
        self.0.transmit(to, header, body);
    }

    fn segment(&self, block: usize) -> usize {
        self.0.segment(block)
    }
}

/// Serves a handler's socket in a thread of its own.
pub fn serve(
    name: &str,
    socket: UdpSocket,
    peers: Arc<Peers>,
    handler: Arc<dyn Handler>,
) -> io::Result<Service> {
    socket.set_read_timeout(Some(TICK))?;
    let counters = Arc::<Counters>::default();
    let sender = Sender {
        socket,
        peers,
        counters: counters.clone(),
    };
    Service::start(name, counters, move |stop| {
        answer(&sender, &*handler, stop);
    })
}

fn answer(sender: &Sender, handler: &dyn Handler, stop: &AtomicBool) {
    let mut incoming = sender.peers.incoming();
    let take = |spin| {
        let Some(packet) = receive(&sender.socket, &mut incoming, spin) else {
            return false;
        };
        match decode(packet) {
            Ok((header, body)) => {
                sender.counters.received.fetch_add(1, Relaxed);
                handler.handle(sender, &header, as_body(body), &mut Nobody);
            }
            Err(_) => {
                sender.counters.malformed.fetch_add(1, Relaxed);
            }
        }
        true
    };
    serve_until(stop, take, || handler.tick(sender));
}

/// A requester's socket.
pub struct UdpPort {
    sender: Sender,
    port: u16,
    incoming: Incoming,
}

impl UdpPort {
    /// A socket on any free port of the node's address.
    pub fn open(node: NodeId, peers: Arc<Peers>) -> io::Result<Self> {
        let agent = peers
            .agents
            .get(node as usize)
            .ok_or_else(|| io::Error::other("no such node in the rack"))?;
        let socket = bind(SocketAddr::new(agent.ip(), 0))?;
        let port = socket.local_addr()?.port();
        let incoming = peers.incoming();
        let sender = Sender {
            socket,
            peers,
            counters: Arc::default(),
        };
        Ok(UdpPort {
            sender,
            port,
            incoming,
        })
    }
}

impl Net for UdpPort {
    fn send(&self, to: Dest, header: &Header, body: Body<'_>, _: &mut dyn Receiver) {
        self.sender.transmit(to, header, body);
    }

    fn segment(&self, block: usize) -> usize {
        self.sender.segment(block)
    }
}

impl Port for UdpPort {
    fn wait(&mut self, at_most: Duration, reply: &mut dyn Receiver) -> bool {
        let socket = &self.sender.socket;
        let Some(packet) = receive_within(socket, &mut self.incoming, SPIN, at_most) else {
            return false;
        };
        if let Ok((header, body)) = decode(packet) {
            reply.receive(&header, as_body(body));
            return true;
        }
        self.sender.counters.malformed.fetch_add(1, Relaxed);
        false
    }

    fn reply_port(&self) -> u16 {
        self.port
    }

    fn lossy(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_cut_to_fit_the_network() {
        assert_eq!(segment_bytes(4096, 1500), 1344);
        assert_eq!(segment_bytes(4096, 65_535), 4096);
        assert_eq!(segment_bytes(65_536, 1500), 1024);
        assert_eq!(segment_bytes(65_536, 65_535), 32_768);
        assert_eq!(segment_bytes(256, 1500), 256);
    }
}
