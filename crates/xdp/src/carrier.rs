//! Ethernet, IPv4 and UDP around a packet, for test runs and benches:
//! the kernel does this for sockets.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Bytes of the three headers.
pub const CARRIER_LEN: usize = 42;

/// A datagram in its frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Ethernet addresses: to, from.
    pub macs: [[u8; 6]; 2],
    /// From where.
    pub from: SocketAddrV4,
    /// To where.
    pub to: SocketAddrV4,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// The Internet checksum.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|two| {
        let low = two.get(1).copied().unwrap_or(0);
        u32::from(two[0]) << 8 | u32::from(low)
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

impl Frame {
    /// As it is on the wire. A payload that fits no datagram is cut.
    pub fn to_bytes(&self) -> Vec<u8> {
        let most = usize::from(u16::MAX) - 28;
        let payload = &self.payload[..self.payload.len().min(most)];
        let udp_len = (payload.len() + 8) as u16;
        let mut bytes = self.macs.concat();
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend((udp_len + 20).to_be_bytes());
        // Number 0, not to be cut, 64 hops, UDP.
        bytes.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        bytes.extend(self.from.ip().octets());
        bytes.extend(self.to.ip().octets());
        let check = sum(&bytes[14..34]);
        bytes[24..26].copy_from_slice(&check.to_be_bytes());
        bytes.extend(self.from.port().to_be_bytes());
        bytes.extend(self.to.port().to_be_bytes());
        bytes.extend(udp_len.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(payload);
        bytes
    }

    /// What is in a frame, if all its lengths and its checksum are right.
    pub fn parse(bytes: &[u8]) -> Result<Frame, &'static str> {
        let headers = bytes
            .get(..CARRIER_LEN)
            .ok_or("it is shorter than its headers")?;
        let word = |at: usize| u16::from_be_bytes([headers[at], headers[at + 1]]);
        let ip = |at: usize| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|byte| headers[at + byte]);
            Ipv4Addr::new(a, b, c, d)
        };
        if word(12) != 0x0800 || headers[14] != 0x45 || headers[23] != 17 {
            return Err("it is no UDP over IPv4");
        }
        if sum(&headers[14..34]) != 0 {
            return Err("the checksum of its IP header is wrong");
        }
        if usize::from(word(16)) != bytes.len() - 14 || usize::from(word(38)) != bytes.len() - 34 {
            return Err("its lengths are wrong");
        }
        let mac = |at: usize| [0, 1, 2, 3, 4, 5].map(|byte| headers[at + byte]);
        Ok(Frame {
            macs: [mac(0), mac(6)],
            from: SocketAddrV4::new(ip(26), word(34)),
            to: SocketAddrV4::new(ip(30), word(36)),
            payload: bytes[CARRIER_LEN..].to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_a_broken_one_is_found() {
        let frame = Frame {
            macs: [[2; 6], [4; 6]],
            from: "10.0.0.1:40000".parse().unwrap(),
            to: "10.0.0.254:7400".parse().unwrap(),
            payload: vec![1, 2, 3],
        };
        let bytes = frame.to_bytes();
        assert_eq!(Frame::parse(&bytes).as_ref(), Ok(&frame));
        for at in [12, 14, 16, 20, 23, 24, 30, 38] {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            assert!(Frame::parse(&broken).is_err(), "byte {at}");
        }
        assert!(Frame::parse(&bytes[..41]).is_err());
    }
}
