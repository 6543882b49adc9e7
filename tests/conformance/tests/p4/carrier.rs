//! What BMv2 is given and what leaves it: frames of the rack that golden packets make believe,
//! told apart by a number.

use rackmem_conformance::carrier::{
    AGENT_PORT, HEADERS, SWITCH_PORT, address_of, mac_of, ones_sum,
};
pub use rackmem_conformance::carrier::{SWITCH_ADDRESS, to_address};
use rackmem_conformance::{Port, Sent};
use rackmem_proto::wire::NodeId;

/// Hosts that are no nodes: the first of those that packets are sent to which mark a time.
pub const MARK_ADDRESS: u32 = 0x0a00_0100;

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
