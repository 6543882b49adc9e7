//! A tap that writes packets as they look on a network, for tcpdump and Wireshark.
//!
//! The file is classic pcap with nanoseconds and raw IP packets (link type 101).
//! Lost packets are not in it, duplicates are in it twice. On fabrics without addresses,
//! node *n* is 10.82.77.*n*+1 and the switch 10.82.77.254.

use crate::Whole;
use crate::udp::Peers;
use crate::{Body, End, Fate, Packet, Tap};
use rackmem_wire::{Dest, Header, encode};
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a capture at most; then it ends.
const MAX_CAPTURE: u64 = 4 << 30;
/// The longest packet of a capture, as the file's header has to say.
const SNAP: u32 = 65_535;
/// Packets that are IP packets, without a link's header.
const LINKTYPE_RAW: u32 = 101;
/// The file's first word: times are in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// A requester's port where it has none: this and its slot.
const FIRST_PORT: u16 = 49_152;

/// Writes packets to a capture.
pub struct Pcap {
    peers: Peers,
    out: Mutex<Out>,
    unwritten: AtomicU64,
}

struct Out {
    writer: BufWriter<Box<dyn Write + Send>>,
    written: u64,
    record: Vec<u8>,
}

impl Peers {
    /// Addresses for a rack that has none.
    pub fn made_up(nodes: usize) -> Peers {
        let address = |last: usize| {
            let last = u8::try_from(last).unwrap_or(u8::MAX);
            SocketAddr::from((Ipv4Addr::new(10, 82, 77, last), 7400))
        };
        Peers {
            switch: Some(address(254)),
            agents: (1..=nodes).map(address).collect(),
            mtu: usize::from(u16::MAX),
        }
    }
}

impl Pcap {
    /// A capture of the packets between these, in a file or anything else.
    /// What is written last is there when the capture is dropped.
    pub fn new(peers: Peers, writer: impl Write + Send + 'static) -> io::Result<Self> {
        let mut writer: BufWriter<Box<dyn Write + Send>> = BufWriter::new(Box::new(writer));
        writer.write_all(&MAGIC.to_le_bytes())?;
        for half in [2u16, 4] {
            writer.write_all(&half.to_le_bytes())?;
        }
        for word in [0, 0, SNAP, LINKTYPE_RAW] {
            writer.write_all(&word.to_le_bytes())?;
        }
        // An unwritable file should be found out now.
        writer.flush()?;
        Ok(Pcap {
            peers,
            out: Mutex::new(Out {
                writer,
                written: 24,
                record: Vec::new(),
            }),
            unwritten: AtomicU64::new(0),
        })
    }

    /// Packets that could not be written, or came after the last byte of a capture.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Relaxed)
    }

    /// Writes a packet that was on the wire at this time, counted from 1970 or from the beginning
    /// of virtual time. Times should not go back.
    pub fn packet_at(&self, packet: &Packet<'_>, at: Duration) {
        self.put(packet, || at);
    }

    fn put(&self, packet: &Packet<'_>, at: impl FnOnce() -> Duration) {
        let Some((from, to)) = self.ends(packet) else {
            self.unwritten.fetch_add(1, Relaxed);
            return;
        };
        let mut out = self.out.lock().whole();
        if out.add(at(), from, to, packet).is_err() {
            self.unwritten.fetch_add(1, Relaxed);
        }
    }

    fn ends(&self, packet: &Packet<'_>) -> Option<(SocketAddr, SocketAddr)> {
        let agent = |node: u16| self.peers.agents.get(usize::from(node)).copied();
        let requester = |node: u16| {
            let port = match packet.header.reply_port {
                0 => FIRST_PORT.saturating_add(packet.header.requester.slot),
                port => port,
            };
            Some(SocketAddr::new(agent(node)?.ip(), port))
        };
        let from = match packet.from {
            End::Switch => self.peers.switch,
            End::Node(node) if packet.from_requester => requester(node),
            End::Node(node) => agent(node),
        };
        let to = match packet.to {
            Dest::Switch => self.peers.switch,
            Dest::Agent(node) => agent(node),
            Dest::Requester(id) => requester(id.node),
            Dest::Agents { .. } | Dest::Home(_) => None,
        };
        Some((from?, to?))
    }
}

impl Tap for Pcap {
    fn packet(&self, packet: &Packet<'_>, fate: Fate) {
        if !fate.is_on_the_wire() {
            return;
        }
        // The time is read under the lock, so that times in the file never go back.
        let now = || SystemTime::now().duration_since(UNIX_EPOCH);
        self.put(packet, || now().unwrap_or_default());
    }

    fn flush(&self) {
        let mut out = self.out.lock().whole();
        if out.writer.flush().is_err() {
            self.unwritten.fetch_add(1, Relaxed);
        }
    }
}

impl Out {
    fn add(
        &mut self,
        at: Duration,
        from: SocketAddr,
        to: SocketAddr,
        packet: &Packet<'_>,
    ) -> io::Result<()> {
        self.record.clear();
        frame(&mut self.record, from, to, packet.header, packet.body);
        let len = 16 + self.record.len() as u64;
        if self.written + len > MAX_CAPTURE || self.record.len() > SNAP as usize {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let length = self.record.len() as u32;
        for word in [at.as_secs() as u32, at.subsec_nanos(), length, length] {
            self.writer.write_all(&word.to_le_bytes())?;
        }
        self.writer.write_all(&self.record)?;
        self.written += len;
        Ok(())
    }
}

/// An IP packet with a UDP datagram with a packet of ours.
fn frame(out: &mut Vec<u8>, from: SocketAddr, to: SocketAddr, header: &Header, body: Body<'_>) {
    let body_len = body.len();
    let head = encode(header, body_len);
    let datagram = 8 + head.len() + body_len;
    let mut sum = Sum::default();
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ip4(out, from, to, datagram, &mut sum),
        (from, to) => ip6(out, as_v6(from), as_v6(to), datagram, &mut sum),
    }
    let udp = out.len();
    for half in [from.port(), to.port(), datagram as u16, 0] {
        out.extend_from_slice(&half.to_be_bytes());
    }
    out.extend_from_slice(&head);
    match body {
        Body::None => {}
        Body::Block(words) => crate::body::append(out, words),
        Body::Bytes(bytes) => out.extend_from_slice(bytes),
    }
    sum.add(&out[udp..]);
    // Zero would mean that there is none.
    let sum = if sum.fold() == 0 {
        u16::MAX
    } else {
        sum.fold()
    };
    out[udp + 6..udp + 8].copy_from_slice(&sum.to_be_bytes());
}

fn as_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// Protocol number of UDP.
const UDP: u8 = 17;

fn ip4(out: &mut Vec<u8>, from: Ipv4Addr, to: Ipv4Addr, datagram: usize, sum: &mut Sum) {
    let start = out.len();
    // Version 4, five words of header; not to be fragmented; 64 hops.
    out.extend_from_slice(&[0x45, 0]);
    out.extend_from_slice(&((20 + datagram) as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0, 0x40, 0, 64, UDP, 0, 0]);
    out.extend_from_slice(&from.octets());
    out.extend_from_slice(&to.octets());
    let mut own = Sum::default();
    own.add(&out[start..]);
    out[start + 10..start + 12].copy_from_slice(&own.fold().to_be_bytes());
    sum.add(&from.octets());
    sum.add(&to.octets());
    sum.add(&[0, UDP]);
    sum.add(&(datagram as u16).to_be_bytes());
}

fn ip6(out: &mut Vec<u8>, from: Ipv6Addr, to: Ipv6Addr, datagram: usize, sum: &mut Sum) {
    // Version 6; 64 hops.
    out.extend_from_slice(&[0x60, 0, 0, 0]);
    out.extend_from_slice(&(datagram as u16).to_be_bytes());
    out.extend_from_slice(&[UDP, 64]);
    out.extend_from_slice(&from.octets());
    out.extend_from_slice(&to.octets());
    sum.add(&from.octets());
    sum.add(&to.octets());
    sum.add(&(datagram as u32).to_be_bytes());
    sum.add(&[0, 0, 0, UDP]);
}

/// The Internet checksum (RFC 1071).
#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            self.0 += u64::from(u16::from_be_bytes([pair[0], low]));
        }
    }

    fn fold(&self) -> u16 {
        let mut sum = self.0;
        while sum > u64::from(u16::MAX) {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}
