//! Packets with their bytes, for protocols whose values are vectors.

use crate::Output;
use crate::membership::host;
use crate::wire::{Dest, Header, OWN_LEN, Own};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::ops::Deref;

/// A packet, and one place to which it goes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Parcel {
    /// The place.
    pub to: Dest,
    /// The packet.
    pub header: Header,
    /// What its kind has of its own, and behind that a segment or records.
    pub bytes: Behind,
}

/// The bytes behind a header. Most packets have no more than their kind's own, which are in place:
/// an allocation each would cost as much as what a member does with them.
#[derive(Clone, Debug)]
pub enum Behind {
    /// What the kind has of its own.
    Own([u8; OWN_LEN]),
    /// More, which copies of a multicast share.
    Shared(Arc<[u8]>),
}

impl Behind {
    fn new(own: Own, rest: &[u8]) -> Self {
        if rest.is_empty() {
            return Behind::Own(own.to_bytes());
        }
        let mut bytes = Vec::with_capacity(OWN_LEN + rest.len());
        bytes.extend(own.to_bytes());
        bytes.extend_from_slice(rest);
        Behind::Shared(bytes.into())
    }
}

impl Deref for Behind {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Behind::Own(own) => own,
            Behind::Shared(bytes) => bytes,
        }
    }
}

impl PartialEq for Behind {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Behind {}

impl Hash for Behind {
    fn hash<H: Hasher>(&self, into: &mut H) {
        self[..].hash(into);
    }
}

impl Parcel {
    /// A packet with this behind its header.
    pub fn new(to: Dest, header: Header, own: Own, rest: &[u8]) -> Self {
        let bytes = Behind::new(own, rest);
        Parcel { to, header, bytes }
    }

    /// The packets that one stands for: a multicast is one for each node.
    pub fn each(
        (to, header): (Dest, Header),
        own: Own,
        rest: &[u8],
    ) -> impl Iterator<Item = Parcel> {
        let bytes = Behind::new(own, rest);
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
