//! Bytes to headers and back. The layout is the structs [`HeaderView`] and [`OwnView`];
//! its offsets are asserted below.

use crate::{Copyset, Flags, GlobalStatus, Header, Kind, Own, Reason, RequesterId, Seq, Tag};
use crate::{MAGIC, MAX_BODY, MAX_NODES, MAX_REQUESTERS, VERSION};
use core::mem::{offset_of, size_of};
use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A header as it lies in a packet.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct HeaderView {
    /// [`MAGIC`].
    pub magic: U16,
    /// [`VERSION`].
    pub version: u8,
    /// A [`Kind`].
    pub kind: u8,
    /// See [`Header::epoch`].
    pub epoch: U32,
    /// See [`Header::tag`].
    pub tag: U64,
    /// See [`Header::seq`].
    pub seq: U64,
    /// See [`Header::incarnation`].
    pub incarnation: U32,
    /// See [`Header::copyset`].
    pub copyset: U32,
    /// Node of [`Header::requester`].
    pub node_id: u8,
    /// Slot of [`Header::requester`].
    pub requester: u8,
    /// See [`Header::sender`].
    pub sender: U16,
    /// See [`Header::offset`].
    pub offset: U32,
    /// A [`GlobalStatus`].
    pub global_status: u8,
    /// [`Flags`].
    pub flags: u8,
    /// A [`Reason`].
    pub reason: u8,
    /// Zero.
    pub reserved: u8,
    /// Bytes that follow: the kind's own ones, if it has any, and the body.
    pub body_len: U16,
    /// See [`Header::reply_port`].
    pub reply_port: U16,
}

/// What a kind has of its own, as it lies behind the header.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy, Debug)]
#[repr(C)]
pub struct OwnView {
    /// See [`Own::a`].
    pub a: U64,
    /// See [`Own::b`].
    pub b: U64,
}

/// Bytes of the header that every packet has.
pub const HEADER_LEN: usize = size_of::<HeaderView>();

/// Bytes that a kind has of its own behind it, if it has any ([`Kind::own_len`]).
pub const OWN_LEN: usize = size_of::<OwnView>();

const _: () = {
    assert!(HEADER_LEN == 48);
    assert!(offset_of!(HeaderView, kind) == 3);
    assert!(offset_of!(HeaderView, epoch) == 4);
    assert!(offset_of!(HeaderView, tag) == 8);
    assert!(offset_of!(HeaderView, seq) == 16);
    assert!(offset_of!(HeaderView, incarnation) == 24);
    assert!(offset_of!(HeaderView, copyset) == 28);
    assert!(offset_of!(HeaderView, node_id) == 32);
    assert!(offset_of!(HeaderView, requester) == 33);
    assert!(offset_of!(HeaderView, sender) == 34);
    assert!(offset_of!(HeaderView, offset) == 36);
    assert!(offset_of!(HeaderView, global_status) == 40);
    assert!(offset_of!(HeaderView, flags) == 41);
    assert!(offset_of!(HeaderView, reason) == 42);
    assert!(offset_of!(HeaderView, body_len) == 44);
    assert!(offset_of!(HeaderView, reply_port) == 46);
    assert!(OWN_LEN == 16);
    assert!(offset_of!(OwnView, b) == 8);
    // Every number of a node and of a slot has room in its byte, and every length in its field.
    assert!(MAX_NODES <= 256 && MAX_REQUESTERS <= 256 && MAX_BODY <= u16::MAX as usize);
};

/// Why bytes are not a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireError {
    /// Fewer bytes than a header, or than header and body say.
    Short,
    /// More bytes than header and body say, or a body over [`MAX_BODY`].
    Long,
    /// Not rackmem's.
    Magic,
    /// A layout this build does not speak.
    Version(u8),
    /// An unknown kind.
    Kind(u8),
    /// This field has a value that no sender writes.
    Field(&'static str),
}

impl core::fmt::Display for WireError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            WireError::Short => f.write_str("packet is shorter than it says"),
            WireError::Long => f.write_str("packet is longer than it says or than a body may be"),
            WireError::Magic => f.write_str("not a rackmem packet"),
            WireError::Version(v) => write!(f, "wire version {v}, this build speaks {VERSION}"),
            WireError::Kind(k) => write!(f, "unknown packet kind {k:#04x}"),
            WireError::Field(name) => write!(f, "field `{name}` is out of range"),
        }
    }
}

impl core::error::Error for WireError {}

/// The header and the body of a packet, or why it is none. The body of a kind from 0x50 on begins
/// with its [`Own`].
pub fn decode(packet: &[u8]) -> Result<(Header, &[u8]), WireError> {
    let (head, rest) = packet
        .split_at_checked(HEADER_LEN)
        .ok_or(WireError::Short)?;
    Ok((decode_header(head, rest.len())?, rest))
}

/// The header alone of a packet whose body, of so many bytes, lies elsewhere.
#[inline]
pub fn decode_header(head: &[u8], body_len: usize) -> Result<Header, WireError> {
    let (view, _) = HeaderView::ref_from_prefix(head).map_err(|_| WireError::Short)?;
    if view.magic.get() != MAGIC {
        return Err(WireError::Magic);
    }
    if view.version != VERSION {
        return Err(WireError::Version(view.version));
    }
    let len = usize::from(view.body_len.get());
    if body_len < len {
        return Err(WireError::Short);
    }
    if body_len > len || len > MAX_BODY {
        return Err(WireError::Long);
    }
    let header = view.to_header()?;
    if body_len < header.kind.own_len() {
        return Err(WireError::Short);
    }
    Ok(header)
}

/// Writes a packet's header, for a body of `body_len` bytes that the caller puts behind it: [`Own`]
/// first, where its kind has one.
pub fn encode(header: &Header, body_len: usize) -> [u8; HEADER_LEN] {
    let view = HeaderView {
        magic: MAGIC.into(),
        version: VERSION,
        kind: header.kind as u8,
        epoch: header.epoch.into(),
        tag: header.tag.0.into(),
        seq: header.seq.0.into(),
        incarnation: header.incarnation.into(),
        copyset: header.copyset.0.into(),
        node_id: header.requester.node as u8,
        requester: header.requester.slot as u8,
        sender: header.sender.into(),
        offset: header.offset.into(),
        global_status: header.status as u8,
        flags: header.flags.0,
        reason: header.reason as u8,
        reserved: 0,
        body_len: (body_len as u16).into(),
        reply_port: header.reply_port.into(),
    };
    let mut bytes = [0; HEADER_LEN];
    bytes.copy_from_slice(view.as_bytes());
    bytes
}

impl Own {
    /// As the beginning of a body.
    pub fn to_bytes(self) -> [u8; OWN_LEN] {
        let view = OwnView {
            a: self.a.into(),
            b: self.b.into(),
        };
        let mut bytes = [0; OWN_LEN];
        bytes.copy_from_slice(view.as_bytes());
        bytes
    }

    /// From the beginning of a body, and what is behind it.
    pub fn split(body: &[u8]) -> Option<(Own, &[u8])> {
        let (view, rest) = OwnView::ref_from_prefix(body).ok()?;
        let own = Own {
            a: view.a.get(),
            b: view.b.get(),
        };
        Some((own, rest))
    }
}

impl HeaderView {
    fn to_header(self) -> Result<Header, WireError> {
        let node = u16::from(self.node_id);
        let slot = u16::from(self.requester);
        let tag = Tag(self.tag.get());
        let in_range = |ok: bool, name| {
            if ok {
                Ok(())
            } else {
                Err(WireError::Field(name))
            }
        };
        in_range((node as usize) < MAX_NODES, "node_id")?;
        in_range((slot as usize) < MAX_REQUESTERS, "requester")?;
        in_range(tag.home().can_be(), "tag")?;
        in_range(self.flags & !Flags::KNOWN == 0, "flags")?;
        in_range(self.reserved == 0, "reserved")?;
        Ok(Header {
            kind: Kind::from_byte(self.kind).ok_or(WireError::Kind(self.kind))?,
            epoch: self.epoch.get(),
            tag,
            requester: RequesterId { node, slot },
            seq: Seq(self.seq.get()),
            incarnation: self.incarnation.get(),
            copyset: Copyset(self.copyset.get()),
            status: GlobalStatus::from_byte(self.global_status)
                .ok_or(WireError::Field("global_status"))?,
            flags: Flags(self.flags),
            reason: Reason::from_byte(self.reason).ok_or(WireError::Field("reason"))?,
            offset: self.offset.get(),
            reply_port: self.reply_port.get(),
            // The switch is no node: it sends as `u16::MAX`, so the field has no range to check.
            sender: self.sender.get(),
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn sample(kind: Kind) -> Header {
        Header {
            incarnation: 9,
            copyset: Copyset(0x8000_0003),
            status: GlobalStatus::Modified,
            flags: Flags::PROVIDER.and(Flags::GRANTED),
            reason: Reason::Moved,
            offset: 1424,
            reply_port: 40_001,
            sender: 31,
            ..Header::request(
                kind,
                7,
                Tag(0x0002_0000_0003_4000),
                RequesterId { node: 4, slot: 63 },
                Seq(0x1122_3344_dead_beef),
            )
        }
    }

    fn packet(header: &Header, body: &[u8]) -> Vec<u8> {
        let mut packet = encode(header, body.len()).to_vec();
        packet.extend(body);
        packet
    }

    #[test]
    fn every_kind_survives_the_wire() {
        for &kind in Kind::ALL {
            let body = b"sixteen bytes, and more";
            let packet = packet(&sample(kind), body);
            assert_eq!(decode(&packet), Ok((sample(kind), &body[..])));
            assert_eq!(Kind::from_byte(kind as u8), Some(kind));
        }
    }

    #[test]
    fn the_bytes_are_the_ones_that_are_drawn() {
        let bytes = encode(&sample(Kind::ReadMiss), 0);
        assert_eq!(bytes.len(), HEADER_LEN);
        assert_eq!(
            bytes[..16],
            [0x52, 0x4d, 2, 0x10, 0, 0, 0, 7, 0, 2, 0, 0, 0, 3, 0x40, 0]
        );
        assert_eq!(
            bytes[16..32],
            [
                0x11, 0x22, 0x33, 0x44, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 9, 0x80, 0, 0, 3
            ]
        );
        assert_eq!(
            bytes[32..48],
            [4, 63, 0, 31, 0, 0, 5, 0x90, 2, 5, 3, 0, 0, 0, 0x9c, 0x41]
        );
    }

    #[test]
    fn what_a_kind_has_of_its_own_is_behind_the_header_and_is_counted_as_body() {
        let own = Own {
            a: 0x0102_0304_0506_0708,
            b: u64::MAX - 1,
        };
        let mut body = own.to_bytes().to_vec();
        body.extend(b"123");
        let bytes = packet(&sample(Kind::GuestAsk), &body);
        let (_, body) = decode(&bytes).unwrap();
        assert_eq!(Own::split(body), Some((own, &b"123"[..])));
        assert_eq!(bytes[44..46], [0, 19]);
        assert_eq!(bytes[48..56], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(
            bytes[56..],
            [
                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, b'1', b'2', b'3'
            ]
        );
        // A kind that has some must have all of it.
        let mut cut = bytes[..HEADER_LEN + OWN_LEN - 1].to_vec();
        cut[45] = 15;
        assert_eq!(decode(&cut), Err(WireError::Short));
    }

    #[test]
    fn a_packet_with_the_longest_body_is_one_and_a_longer_one_is_not() {
        for kind in [Kind::Ack, Kind::GuestTell] {
            let mut bytes = packet(&sample(kind), &std::vec![7; MAX_BODY]);
            assert!(decode(&bytes).is_ok_and(|(_, body)| body.len() == MAX_BODY));
            bytes.push(7);
            bytes[44..46].copy_from_slice(&(MAX_BODY as u16 + 1).to_be_bytes());
            assert_eq!(decode(&bytes), Err(WireError::Long));
        }
    }

    #[test]
    fn bad_packets_get_the_reason() {
        let good = encode(&sample(Kind::Ack), 0).to_vec();
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            decode(&bytes).map(|_| ()).unwrap_err()
        };
        assert_eq!(decode(&good[..47]).unwrap_err(), WireError::Short);
        assert_eq!(decode(&[]).unwrap_err(), WireError::Short);
        assert_eq!(with(0, 0), WireError::Magic);
        assert_eq!(with(2, 9), WireError::Version(9));
        assert_eq!(with(2, 1), WireError::Version(1));
        assert_eq!(with(3, 0xee), WireError::Kind(0xee));
        assert_eq!(with(45, 1), WireError::Short);
        assert_eq!(with(32, 32), WireError::Field("node_id"));
        assert_eq!(with(33, 64), WireError::Field("requester"));
        assert_eq!(with(9, 64), WireError::Field("tag"));
        assert_eq!(with(40, 3), WireError::Field("global_status"));
        assert_eq!(with(41, 0x80), WireError::Field("flags"));
        assert_eq!(with(42, 13), WireError::Field("reason"));
        assert_eq!(with(43, 1), WireError::Field("reserved"));
        let mut long = good;
        long.push(0);
        assert_eq!(decode(&long).unwrap_err(), WireError::Long);
    }
}
