//! Ethernet, IPv4 and UDP around a packet, for switches that take frames:
//! addresses of a rack that the tests make believe.
//!
//! Node `n` is behind port `n + 1`, the control plane behind port 64.

use crate::{Port, Sent};
use rackmem_proto::wire::NodeId;

/// Bytes of the three headers.
pub const HEADERS: usize = 42;
/// UDP port of the switch.
pub const SWITCH_PORT: u16 = 4_000;
/// UDP port of every agent; requesters have others.
pub const AGENT_PORT: u16 = 4_001;
/// The switch's address; nodes count up from 10.0.0.1.
pub const SWITCH_ADDRESS: u32 = 0x0a00_00fe;
/// The port behind which the control plane is.
pub const CONTROL_PLANE: u16 = 64;

/// The switch's Ethernet address.
const SWITCH_MAC: u64 = 0x0200_0000_0100;
/// Who sends packets to the switch: a host outside the rack, since the program does not ask.
const HOST_MAC: u64 = 0x0200_0000_00aa;
const HOST_ADDRESS: u32 = 0x0a00_00aa;
const HOST_PORT: u16 = 50_000;

/// A node's Ethernet address.
pub fn mac_of(node: NodeId) -> u64 {
    0x0200_0000_0000 | u64::from(node)
}

/// A node's IPv4 address.
pub fn address_of(node: NodeId) -> u32 {
    0x0a00_0001 + u32::from(node)
}

/// The port behind which a node is.
pub fn port_of(node: NodeId) -> u16 {
    node + 1
}

/// Addresses of a frame: Ethernet, IPv4, UDP port.
type End = (u64, u32, u16);

fn frame(to: End, from: End, number: u16, payload: &[u8]) -> Vec<u8> {
    let udp = (payload.len() + 8) as u16;
    let mut frame = Vec::with_capacity(HEADERS + payload.len());
    frame.extend_from_slice(&to.0.to_be_bytes()[2..]);
    frame.extend_from_slice(&from.0.to_be_bytes()[2..]);
    frame.extend_from_slice(&[8, 0, 0x45, 0]);
    for half in [udp + 20, number, 0, 0x4011, 0] {
        frame.extend_from_slice(&half.to_be_bytes());
    }
    frame.extend_from_slice(&from.1.to_be_bytes());
    frame.extend_from_slice(&to.1.to_be_bytes());
    let sum = !ones_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    for half in [from.2, to.2, udp, 0] {
        frame.extend_from_slice(&half.to_be_bytes());
    }
    frame.extend_from_slice(payload);
    frame
}

/// A datagram for an address, on its way to the switch. `number` is IPv4's identification, which
/// the switch leaves alone.
pub fn to_address(address: u32, number: u16, payload: &[u8]) -> Vec<u8> {
    let to = (SWITCH_MAC, address, SWITCH_PORT);
    frame(to, (HOST_MAC, HOST_ADDRESS, HOST_PORT), number, payload)
}

/// A packet for the switch.
pub fn coming(number: u16, packet: &[u8]) -> Vec<u8> {
    to_address(SWITCH_ADDRESS, number, packet)
}

/// A datagram for a host that nobody knows: it is dropped.
pub fn stray() -> Vec<u8> {
    to_address(SWITCH_ADDRESS - 1, 0, &[])
}

/// A packet that leaves, as an answer to packet `number`, and the port by which it does.
pub fn leaving(number: u16, sent: &Sent) -> (u16, Vec<u8>) {
    let (node, udp) = match sent.port {
        Port::Agent(node) => (node, AGENT_PORT),
        Port::Requester { node, port } => (node, port),
    };
    let to = (mac_of(node), address_of(node), udp);
    let from = (SWITCH_MAC, SWITCH_ADDRESS, SWITCH_PORT);
    (port_of(node), frame(to, from, number, &sent.bytes))
}

/// The sum of 16-bit words that IPv4 checks: all ones over a header that is in order.
pub fn ones_sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks_exact(2);
    let sum: u32 = words
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_what_every_host_reads() {
        let frame = coming(7, &[0xab; 48]);
        assert_eq!(frame.len(), 90);
        assert_eq!(frame[12..16], [8, 0, 0x45, 0]);
        assert_eq!(ones_sum(&frame[14..34]), 0xffff);
        assert_eq!(frame[16..20], [0, 76, 0, 7]);
        assert_eq!(frame[36..42], [0x0f, 0xa0, 0, 56, 0, 0]);
        let sent = Sent {
            port: Port::Requester {
                node: 2,
                port: 40_128,
            },
            bytes: vec![0xcd; 48],
        };
        let (port, answer) = leaving(7, &sent);
        assert_eq!(port, 3);
        assert_eq!(answer[..6], [2, 0, 0, 0, 0, 2]);
        // It comes from where the packet went to.
        assert_eq!(answer[6..12], frame[..6]);
        assert_eq!(answer[26..30], frame[30..34]);
        assert_eq!(answer[30..34], [10, 0, 0, 3]);
        assert_eq!(answer[36..38], 40_128u16.to_be_bytes());
        assert_eq!(ones_sum(&answer[14..34]), 0xffff);
    }
}
