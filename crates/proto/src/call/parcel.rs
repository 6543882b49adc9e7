//! Packets with their bytes, for protocols whose values are vectors.

use crate::Output;
use crate::membership::host;
use crate::wire::{Dest, Header, OWN_LEN, Own};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A packet, and one place to which it goes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Parcel {
    /// The place.
    pub to: Dest,
    /// The packet.
    pub header: Header,
    /// What its kind has of its own, and behind that a segment or records.
    pub bytes: Arc<[u8]>,
}

impl Parcel {
    /// A packet with this behind its header.
    pub fn new(to: Dest, header: Header, own: Own, rest: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(OWN_LEN + rest.len());
        bytes.extend(own.to_bytes());
        bytes.extend(rest);
        let bytes = bytes.into();
        Parcel { to, header, bytes }
    }

    /// The packets that one stands for: a multicast is one for each node.
    pub fn each(
        (to, header): (Dest, Header),
        own: Own,
        rest: &[u8],
    ) -> impl Iterator<Item = Parcel> {
        let Parcel { bytes, .. } = Parcel::new(to, header, own, rest);
        let copies = Output::new(to, header).copies(host);
        copies.map(move |(to, header)| Parcel {
            to,
            header,
            bytes: bytes.clone(),
        })
    }

    /// What its kind has of its own, and what is behind that.
    pub fn split(&self) -> (Own, &[u8]) {
        Own::split(&self.bytes).unwrap_or_default()
    }
}
