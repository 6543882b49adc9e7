//! Nodes that ask for locks and pass them on, as far as they have heard of them.

use crate::{Reply, Setup};
use fastrand::Rng;
use rackmem_proto::gcp::{first, version, with_version};
use rackmem_proto::wire::{
    Copyset, GlobalStatus, Header, Kind, MAX_NODES, NodeId, Reason, RequesterId, Seq, Tag, decode,
    encode,
};
use std::collections::VecDeque;

/// Locks of a rack: more than the switch has entries for.
const LOCKS: usize = 6;
/// Packets that may still come a second time.
const REMEMBERED: usize = 24;

/// What has been heard of a lock.
#[derive(Clone, Copy)]
struct Heard {
    tag: Tag,
    holder: NodeId,
    version: u64,
}

/// The nodes of a small rack, and what is on the wire between them and the switch.
pub struct Locks {
    rng: Rng,
    setup: Setup,
    locks: [Heard; LOCKS],
    sent: VecDeque<Vec<u8>>,
}

impl Locks {
    pub fn new(seed: u64, setup: Setup) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x10c5);
        let locks = std::array::from_fn(|n| {
            let home = n as NodeId % setup.nodes;
            // Some are about to carry into the upper half of their version.
            let near = if rng.bool() { 0xffff_fff0 } else { 0 };
            Heard {
                tag: Tag(u64::from(home) << 48 | (n as u64 + 0x100) << 4),
                holder: home,
                version: first(setup.epoch) + near,
            }
        });
        Locks {
            rng,
            setup,
            locks,
            sent: VecDeque::new(),
        }
    }

    /// The next packet that reaches the switch.
    pub fn next_packet(&mut self) -> Vec<u8> {
        let mut header = match self.rng.u32(..100) {
            0..40 => self.acquire(),
            40..66 => self.release(),
            66..76 => self.place(),
            76..90 => return self.late(),
            _ => self.any(),
        };
        if self.rng.u8(..12) == 0 {
            self.spoil(&mut header);
        }
        if self.rng.u8(..40) == 0 {
            let mut packet = encode(&header, 4).to_vec();
            packet.extend([0xbd; 4]);
            return packet;
        }
        let packet = encode(&header, 0).to_vec();
        self.sent.push_back(packet.clone());
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
        packet
    }

    /// What became of it.
    pub fn heard(&mut self, reply: &Reply) {
        let Reply::Sent(sent) = reply else { return };
        let Some((told, _)) = sent.first().and_then(|sent| decode(&sent.bytes).ok()) else {
            return;
        };
        let lock = self.locks.iter_mut().find(|lock| lock.tag == told.tag);
        let Some(lock) = lock else { return };
        match told.kind {
            Kind::Grant | Kind::Invalidate => {
                lock.version = lock.version.max(version(&told));
                lock.holder = told.requester.node;
            }
            Kind::Wait | Kind::ReleaseAck => lock.version = lock.version.max(version(&told)),
            _ => {}
        }
    }

    fn node(&mut self) -> NodeId {
        self.rng.u16(..self.setup.nodes)
    }

    fn lock(&mut self) -> Heard {
        self.locks[self.rng.usize(..LOCKS)]
    }

    fn status(&mut self) -> GlobalStatus {
        match self.rng.u8(..12) {
            0 => GlobalStatus::Unshared,
            1..6 => GlobalStatus::Shared,
            _ => GlobalStatus::Modified,
        }
    }

    fn header(&mut self, kind: Kind, tag: Tag, sender: NodeId, about: NodeId) -> Header {
        let slot = self.rng.u16(..self.setup.requesters);
        let requester = RequesterId { node: about, slot };
        Header {
            sender,
            status: self.status(),
            copyset: Copyset(self.rng.u32(..) & u32::MAX >> (MAX_NODES as u16 - self.setup.nodes)),
            offset: self.rng.u32(..MAX_NODES as u32),
            reason: Reason::from_byte(self.rng.u8(..10)).unwrap_or(Reason::None),
            incarnation: self.rng.u32(..),
            reply_port: 40_000 + slot,
            ..Header::request(
                kind,
                self.setup.epoch,
                tag,
                requester,
                Seq(self.rng.u64(..)),
            )
        }
    }

    fn acquire(&mut self) -> Header {
        let (lock, node) = (self.lock(), self.node());
        self.header(Kind::Acquire, lock.tag, node, node)
    }

    fn release(&mut self) -> Header {
        let (lock, to) = (self.lock(), self.node());
        // Mostly the holder with the number that it has heard of.
        let from = if self.rng.u8(..8) == 0 {
            self.node()
        } else {
            lock.holder
        };
        let number = match self.rng.u8(..12) {
            0 => lock.version.wrapping_sub(self.rng.u64(..6)),
            1 => lock.version.wrapping_add(1),
            2 => lock.version ^ 1 << self.rng.u32(..64),
            _ => lock.version,
        };
        with_version(self.header(Kind::Release, lock.tag, from, to), number)
    }

    fn place(&mut self) -> Header {
        let lock = self.lock();
        let holder = self.node();
        let header = self.header(Kind::Place, lock.tag, lock.tag.home().0, holder);
        with_version(header, lock.version)
    }

    fn any(&mut self) -> Header {
        let kind = [Kind::Acquire, Kind::Release, Kind::Place][self.rng.usize(..3)];
        let (lock, sender, about) = (self.lock(), self.node(), self.node());
        self.header(kind, lock.tag, sender, about)
    }

    /// A packet that has come before.
    fn late(&mut self) -> Vec<u8> {
        match self.sent.len() {
            0 => encode(&self.place(), 0).to_vec(),
            all => self.sent[self.rng.usize(..all)].clone(),
        }
    }

    /// Well-formed, and not for this switch, or from nobody.
    fn spoil(&mut self, header: &mut Header) {
        match self.rng.u8(..6) {
            0 => header.epoch = header.epoch.wrapping_add(1),
            1 => header.epoch = header.epoch.wrapping_sub(1),
            2 => header.sender = self.rng.u16(30..40),
            4 => header.tag = Tag(header.tag.0 | (MAX_NODES as u64) << 48),
            3 => header.offset = self.rng.u32(30..40) << self.rng.u32(..8),
            _ => header.requester.node = self.rng.u16(..MAX_NODES as u16),
        }
    }
}
