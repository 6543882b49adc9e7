//! Bytes to headers and back. The layout is the struct [`HeaderView`]; its offsets are asserted below.

use crate::{Copyset, Flags, GlobalStatus, Header, Kind, Reason, RequesterId, Seq, Tag};
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
    /// Node of [`Header::requester`].
    pub node_id: U16,
    /// Slot of [`Header::requester`].
    pub requester: U16,
    /// See [`Header::seq`].
    pub seq: U32,
    /// See [`Header::incarnation`].
    pub incarnation: U32,
    /// See [`Header::copyset`].
    pub copyset: U32,
    /// A [`GlobalStatus`].
    pub global_status: u8,
    /// [`Flags`].
    pub flags: u8,
    /// A [`Reason`].
    pub reason: u8,
    /// Zero.
    pub reserved: u8,
    /// See [`Header::offset`].
    pub offset: U32,
    /// Bytes of body that follow.
    pub body_len: U32,
    /// See [`Header::reply_port`].
    pub reply_port: U16,
    /// See [`Header::sender`].
    pub sender: U16,
}

/// Bytes of a header on the wire.
pub const HEADER_LEN: usize = size_of::<HeaderView>();

const _: () = {
    assert!(HEADER_LEN == 48);
    assert!(offset_of!(HeaderView, kind) == 3);
    assert!(offset_of!(HeaderView, epoch) == 4);
    assert!(offset_of!(HeaderView, tag) == 8);
    assert!(offset_of!(HeaderView, node_id) == 16);
    assert!(offset_of!(HeaderView, requester) == 18);
    assert!(offset_of!(HeaderView, seq) == 20);
    assert!(offset_of!(HeaderView, incarnation) == 24);
    assert!(offset_of!(HeaderView, copyset) == 28);
    assert!(offset_of!(HeaderView, global_status) == 32);
    assert!(offset_of!(HeaderView, flags) == 33);
    assert!(offset_of!(HeaderView, reason) == 34);
    assert!(offset_of!(HeaderView, offset) == 36);
    assert!(offset_of!(HeaderView, body_len) == 40);
    assert!(offset_of!(HeaderView, reply_port) == 44);
    assert!(offset_of!(HeaderView, sender) == 46);
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

/// The header and the body of a packet, or why it is none.
pub fn decode(packet: &[u8]) -> Result<(Header, &[u8]), WireError> {
    let (view, body) = HeaderView::ref_from_prefix(packet).map_err(|_| WireError::Short)?;
    if view.magic.get() != MAGIC {
        return Err(WireError::Magic);
    }
    if view.version != VERSION {
        return Err(WireError::Version(view.version));
    }
    let len = view.body_len.get() as usize;
    if body.len() < len {
        return Err(WireError::Short);
    }
    if body.len() > len || len > MAX_BODY {
        return Err(WireError::Long);
    }
    Ok((view.to_header()?, body))
}

/// Writes a packet's header, for a body of `body_len` bytes that the caller puts behind it.
pub fn encode(header: &Header, body_len: usize) -> [u8; HEADER_LEN] {
    let view = HeaderView {
        magic: MAGIC.into(),
        version: VERSION,
        kind: header.kind as u8,
        epoch: header.epoch.into(),
        tag: header.tag.0.into(),
        node_id: header.requester.node.into(),
        requester: header.requester.slot.into(),
        seq: header.seq.0.into(),
        incarnation: header.incarnation.into(),
        copyset: header.copyset.0.into(),
        global_status: header.status as u8,
        flags: header.flags.0,
        reason: header.reason as u8,
        reserved: 0,
        offset: header.offset.into(),
        body_len: (body_len as u32).into(),
        reply_port: header.reply_port.into(),
        sender: header.sender.into(),
    };
    let mut bytes = [0; HEADER_LEN];
    bytes.copy_from_slice(view.as_bytes());
    bytes
}

impl HeaderView {
    fn to_header(self) -> Result<Header, WireError> {
        let node = self.node_id.get();
        let slot = self.requester.get();
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
        in_range((tag.home() as usize) < MAX_NODES, "tag")?;
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
                Seq(0xdead_beef),
            )
        }
    }

    #[test]
    fn every_kind_survives_the_wire() {
        for &kind in Kind::ALL {
            let mut packet = Vec::from(encode(&sample(kind), 5));
            packet.extend(b"12345");
            assert_eq!(decode(&packet), Ok((sample(kind), &b"12345"[..])));
            assert_eq!(Kind::from_byte(kind as u8), Some(kind));
        }
    }

    #[test]
    fn the_bytes_are_the_ones_that_are_drawn() {
        let bytes = encode(&sample(Kind::ReadMiss), 0);
        assert_eq!(
            bytes[..16],
            [0x52, 0x4d, 1, 0x10, 0, 0, 0, 7, 0, 2, 0, 0, 0, 3, 0x40, 0]
        );
        assert_eq!(
            bytes[16..32],
            [
                0, 4, 0, 63, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 9, 0x80, 0, 0, 3
            ]
        );
        assert_eq!(
            bytes[32..48],
            [2, 5, 3, 0, 0, 0, 5, 0x90, 0, 0, 0, 0, 0x9c, 0x41, 0, 31]
        );
    }

    #[test]
    fn bad_packets_get_the_reason() {
        let good = encode(&sample(Kind::Ack), 0);
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            decode(&bytes).map(|_| ()).unwrap_err()
        };
        assert_eq!(decode(&good[..47]).unwrap_err(), WireError::Short);
        assert_eq!(decode(&[]).unwrap_err(), WireError::Short);
        assert_eq!(with(0, 0), WireError::Magic);
        assert_eq!(with(2, 9), WireError::Version(9));
        assert_eq!(with(3, 0xee), WireError::Kind(0xee));
        assert_eq!(with(43, 1), WireError::Short);
        assert_eq!(with(17, 32), WireError::Field("node_id"));
        assert_eq!(with(19, 64), WireError::Field("requester"));
        assert_eq!(with(9, 32), WireError::Field("tag"));
        assert_eq!(with(32, 3), WireError::Field("global_status"));
        assert_eq!(with(33, 0x80), WireError::Field("flags"));
        assert_eq!(with(34, 10), WireError::Field("reason"));
        assert_eq!(with(35, 1), WireError::Field("reserved"));
        let mut long = Vec::from(good);
        long.push(0);
        assert_eq!(decode(&long).unwrap_err(), WireError::Long);
    }
}
