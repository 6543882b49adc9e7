//! The owned form of a packet's header.

use crate::{Copyset, GlobalStatus, Kind, NodeId, Reason, RequesterId, Seq, Tag};

/// One-bit fields of a header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The receiver is the data provider (Table 1).
    pub const PROVIDER: Flags = Flags(1);
    /// In an `OperateAck`, the same bit: nobody else has used the block for a while, so the
    /// requester had better have a copy.
    pub const BRING: Flags = Flags(1);
    /// The switch manages the entry (Table 1).
    pub const IN_SWITCH: Flags = Flags(1 << 1);
    /// In an answer about an object, the same bit: the kernel of the home's host has answered.
    pub const BY_KERNEL: Flags = Flags(1 << 1);
    /// The owner has locked and checked the entry: this is the forwarded request,
    /// its metadata is filled.
    pub const GRANTED: Flags = Flags(1 << 2);
    /// In an answer about an object, the same bit: the kernel of the home's host answers reads that
    /// ask for one granule and have room for it.
    pub const BY_GRANULES: Flags = Flags(1 << 2);
    /// The body is a segment of the block.
    pub const DATA: Flags = Flags(1 << 3);
    /// An unlock that leaves status and copyset as they are.
    pub const KEEP: Flags = Flags(1 << 4);
    /// In an `AllocAck`, the same bit: what is given is zeros.
    pub const ZEROS: Flags = Flags(1 << 4);
    /// An unlock of the reader's side of the lock.
    pub const READER: Flags = Flags(1 << 5);
    /// Answer to the home agent, which gathers (directory baseline).
    pub const GATHER: Flags = Flags(1 << 6);
    /// In an `AbdRead`, the same bit: the switch holds the line that comes back and counts it, so
    /// no answer without the line is needed.
    pub const HELD: Flags = Flags(1 << 6);
    /// Bits that have a meaning; a packet with another is malformed.
    pub const KNOWN: u8 = 0x7f;

    /// Whether all of `other` is set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// With `other` set.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// With `other` cleared.
    #[inline]
    #[must_use]
    pub const fn but(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

/// What a kind has of its own, from 0x50 on, at the beginning of its body: what the two words mean
/// is the kind's. It is no part of
/// [`Header`], which every packet of every kind is copied with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Own {
    /// The first word.
    pub a: u64,
    /// The second one.
    pub b: u64,
}

/// A packet's header, decoded: Table 1 of the paper, and what §5.2 and §5.3 add.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// What the packet is for.
    pub kind: Kind,
    /// Epoch of the rack's membership; a receiver of another epoch drops the packet.
    pub epoch: u32,
    /// The block it is about.
    pub tag: Tag,
    /// On whose behalf it travels (Table 1's `node_id`, and which requester of the node).
    pub requester: RequesterId,
    /// The requester's coherence event. GCP's packets are fenced by the epoch,
    /// and carry the lock's version here.
    pub seq: Seq,
    /// How often the requester's node has started; fences packets from before a restart.
    pub incarnation: u32,
    /// The entry's copyset, filled by its owner; in an unlock, the new one.
    pub copyset: Copyset,
    /// The entry's global status, filled by its owner; in an unlock, the new one.
    pub status: GlobalStatus,
    /// One-bit fields.
    pub flags: Flags,
    /// In an acknowledgement, why not.
    pub reason: Reason,
    /// Where the body belongs in the block, in bytes; in `Alloc` and `Free`, the call.
    pub offset: u32,
    /// UDP port at which the requester listens; zero where the fabric needs none.
    pub reply_port: u16,
    /// The node that sent this packet.
    pub sender: NodeId,
}

impl Header {
    /// A request of `requester`, every owner-filled field empty.
    pub const fn request(
        kind: Kind,
        epoch: u32,
        tag: Tag,
        requester: RequesterId,
        seq: Seq,
    ) -> Self {
        Header {
            kind,
            epoch,
            tag,
            requester,
            seq,
            incarnation: 0,
            copyset: Copyset::EMPTY,
            status: GlobalStatus::Unshared,
            flags: Flags(0),
            reason: Reason::None,
            offset: 0,
            reply_port: 0,
            sender: requester.node,
        }
    }

    /// The same packet as another kind, from another sender.
    #[inline]
    #[must_use]
    pub const fn answer(mut self, kind: Kind, sender: NodeId) -> Self {
        self.kind = kind;
        self.sender = sender;
        self
    }

    /// A refusal of this packet.
    #[inline]
    #[must_use]
    pub const fn refuse(mut self, kind: Kind, sender: NodeId, reason: Reason) -> Self {
        self.reason = reason;
        self.answer(kind, sender)
    }
}
