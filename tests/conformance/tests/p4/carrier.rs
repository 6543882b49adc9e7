//! Ethernet, IPv4 and UDP around a packet: addresses of the rack that the tests make believe.

use rackmem_conformance::{Port, Sent};
use rackmem_proto::wire::NodeId;

/// Bytes of the three headers.
const HEADERS: usize = 42;
/// UDP ports of the switch and of every agent; requesters have others.
pub const SWITCH_PORT: u16 = 4_000;
pub const AGENT_PORT: u16 = 4_001;
/// The switch's address; nodes count up from 10.0.0.1.
pub const SWITCH_ADDRESS: u32 = 0x0a00_00fe;
/// Hosts that are no nodes: the first of those that packets are sent to which mark a time.
pub const MARK_ADDRESS: u32 = 0x0a00_0100;

/// A node's Ethernet address.
pub fn mac_of(node: NodeId) -> u64 {
    0x0200_0000_0000 | u64::from(node)
}

/// A node's IPv4 address.
pub fn address_of(node: NodeId) -> u32 {
    0x0a00_0001 + u32::from(node)
}

/// A datagram for `to`. `number` is in the IPv4 header's identification, which the switch leaves alone.
pub fn wrap(to: u32, number: u16, payload: &[u8]) -> Vec<u8> {
    let udp = (payload.len() + 8) as u16;
    let mut frame = Vec::with_capacity(HEADERS + payload.len());
    frame.extend_from_slice(&[2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0xaa, 8, 0]);
    frame.extend_from_slice(&[0x45, 0]);
    for half in [udp + 20, number, 0, 0x4011, 0] {
        frame.extend_from_slice(&half.to_be_bytes());
    }
    frame.extend_from_slice(&0x0a00_00aa_u32.to_be_bytes());
    frame.extend_from_slice(&to.to_be_bytes());
    let sum = !ones_sum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    for half in [50_000, SWITCH_PORT, udp, 0] {
        frame.extend_from_slice(&half.to_be_bytes());
    }
    frame.extend_from_slice(payload);
    frame
}

fn ones_sum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

fn half(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

/// The number and the payload of a datagram that has left, if all of the carrier is in order.
pub fn unwrap(frame: &[u8]) -> Result<(u16, &[u8]), String> {
    if frame.len() < HEADERS {
        return Err(format!("a frame of {} bytes", frame.len()));
    }
    let payload = &frame[HEADERS..];
    let udp = payload.len() + 8;
    let fine = ones_sum(&frame[14..34]) == 0xffff
        && usize::from(half(frame, 16)) == udp + 20
        && usize::from(half(frame, 38)) == udp
        && half(frame, 40) == 0;
    if !fine {
        return Err(format!("lengths or sums of {:02x?}", &frame[..HEADERS]));
    }
    Ok((half(frame, 18), payload))
}

/// What has left by a node's port: to its agents, or to a requester of it.
pub fn sent(node: NodeId, frame: &[u8]) -> Result<(u16, Sent), String> {
    let (number, payload) = unwrap(frame)?;
    let to_node = frame[..6] == mac_of(node).to_be_bytes()[2..]
        && frame[30..34] == address_of(node).to_be_bytes()
        && frame[26..30] == SWITCH_ADDRESS.to_be_bytes()
        && half(frame, 34) == SWITCH_PORT;
    if !to_node {
        return Err(format!("addresses of {:02x?}", &frame[..HEADERS]));
    }
    let port = match half(frame, 36) {
        AGENT_PORT => Port::Agent(node),
        port => Port::Requester { node, port },
    };
    let bytes = payload.to_vec();
    Ok((number, Sent { port, bytes }))
}
