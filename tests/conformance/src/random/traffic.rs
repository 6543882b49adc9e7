//! Hosts that remember enough of what they were told to ask for what may be granted.

use crate::{Reply, Setup};
use fastrand::Rng;
use rackmem_proto::flowcc::tables;
use rackmem_proto::wire::{
    Copyset, Flags, GlobalStatus, HEADER_LEN, Header, Kind, NodeId, OWN_LEN, RequesterId, Seq, Tag,
    decode, encode,
};
use std::collections::VecDeque;

/// Blocks of a rack: more than the switch has entries for.
const BLOCKS: usize = 12;
/// Packets that may still come a second time.
const REMEMBERED: usize = 48;
/// Moves of a home that go on at a time: few, so that their slots are used again.
const SLOTS: u16 = 3;

const REQUESTS: [Kind; 7] = [
    Kind::ReadMiss,
    Kind::WriteMiss,
    Kind::WriteShared,
    Kind::EvictShared,
    Kind::EvictModified,
    Kind::LockRead,
    Kind::LockWrite,
];

/// The hosts of a small rack, and what is on the wire between them and the switch.
pub struct Traffic {
    rng: Rng,
    setup: Setup,
    /// What homes and caches believe: each block's status and copyset.
    blocks: Vec<(Tag, GlobalStatus, Copyset)>,
    /// Next sequence number of each requester.
    seqs: Vec<Seq>,
    /// Next sequence number of each slot for moves.
    moves: Vec<Seq>,
    /// Requests that were granted and not unlocked, as the switch sent them on.
    granted: Vec<Header>,
    /// Entries that the switch has given up in the first step.
    retired: Vec<Header>,
    sent: VecDeque<Vec<u8>>,
}

impl Traffic {
    pub fn new(seed: u64, setup: Setup) -> Self {
        let mut rng = Rng::with_seed(seed);
        let nodes = setup.nodes;
        // Some requesters are half way round what a row has room for.
        let seqs = std::iter::repeat_with(|| Seq(if rng.bool() { 1 } else { 0x8000_0000 }))
            .take(usize::from(nodes * setup.requesters))
            .collect();
        Traffic {
            setup,
            blocks: (0..BLOCKS)
                .map(|n| {
                    let home = n as u64 % u64::from(nodes);
                    let tag = Tag(home << 48 | (n as u64) << 12);
                    (tag, GlobalStatus::Unshared, Copyset::EMPTY)
                })
                .collect(),
            seqs,
            moves: vec![Seq(1); usize::from(nodes * SLOTS)],
            granted: Vec::new(),
            retired: Vec::new(),
            sent: VecDeque::new(),
            rng,
        }
    }

    /// The next packet that reaches the switch.
    pub fn next_packet(&mut self) -> Vec<u8> {
        let packet = match self.rng.u32(..100) {
            0..36 => self.request(),
            36..62 => self.unlock(),
            62..70 => self.add(),
            70..77 => self.remove(),
            77..90 => return self.late(),
            90..94 => self.out_of_place(),
            94..97 => self.contradiction(),
            _ => return self.malformed(),
        };
        self.sent.push_back(packet.clone());
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
        packet
    }

    /// What became of it.
    pub fn heard(&mut self, packet: &[u8], reply: &Reply) {
        let (Ok((asked, _)), Reply::Sent(sent)) = (decode(packet), reply) else {
            return;
        };
        let told = sent.first().and_then(|sent| decode(&sent.bytes).ok());
        let Some((told, _)) = told else { return };
        let same = |held: &Header| held.requester == asked.requester && held.seq == asked.seq;
        match asked.kind {
            kind if kind.is_request() => {
                let granted = told.flags.has(Flags::GRANTED);
                let known = self.granted.iter().any(same);
                let open = (granted && !known).then_some(Header { kind, ..told });
                self.granted.extend(open);
            }
            Kind::RemoveFromSwitch if told.reason as u8 == 0 => {
                self.retired.retain(|retired| retired.tag != told.tag);
                if !asked.flags.has(Flags::GRANTED) {
                    self.retired.push(told);
                }
            }
            _ => {}
        }
        self.granted.truncate(64);
    }

    fn node(&mut self) -> NodeId {
        self.rng.u16(..self.setup.nodes)
    }

    fn header(&mut self, kind: Kind, tag: Tag, requester: RequesterId, seq: Seq) -> Header {
        Header {
            incarnation: self.rng.u32(..),
            offset: self.rng.u32(..),
            reply_port: 40_000 + requester.node * 8 + requester.slot,
            ..Header::request(kind, self.setup.epoch, tag, requester, seq)
        }
    }

    fn request(&mut self) -> Vec<u8> {
        let node = self.node();
        let slot = self.rng.u16(..self.setup.requesters);
        let requester = RequesterId { node, slot };
        let (tag, status, copyset) = self.blocks[self.rng.usize(..BLOCKS)];
        let valid: Vec<Kind> = REQUESTS
            .into_iter()
            .filter(|&kind| tables::check(kind, node, status, copyset))
            .collect();
        let kind = if self.rng.u8(..5) == 0 {
            REQUESTS[self.rng.usize(..REQUESTS.len())]
        } else {
            valid[self.rng.usize(..valid.len())]
        };
        let row = usize::from(node * self.setup.requesters + slot);
        let seq = self.seqs[row];
        // Now and then a number is left out, as when the older event of a parity is not over, or
        // many, as after calls that do not concern the switch: a few times of these are once round
        // what a row has room for.
        let step = match self.rng.u8(..) {
            0..4 => 0x4000_0001,
            4..32 => 2,
            _ => 1,
        };
        self.seqs[row] = Seq(seq.0 + step);
        let mut header = self.header(kind, tag, requester, seq);
        if self.rng.u8(..8) == 0 {
            // Flags that mean nothing here, and travel along.
            header.flags = Flags(self.rng.u8(..)).but(Flags(!Flags::KNOWN).and(Flags::GRANTED));
        }
        bytes(&header)
    }

    fn unlock(&mut self) -> Vec<u8> {
        if self.granted.is_empty() {
            return self.request();
        }
        let at = self.rng.usize(..self.granted.len());
        let grant = self.granted.swap_remove(at);
        let node = grant.requester.node;
        let (status, copyset) = tables::next(grant.kind, node, grant.status, grant.copyset);
        let mut flags = Flags::IN_SWITCH;
        if grant.kind.locks_shared() {
            flags = flags.and(Flags::READER);
        }
        if grant.kind.only_locks() || self.rng.u8(..10) == 0 {
            flags = flags.and(Flags::KEEP);
        } else if let Some(block) = self.blocks.iter_mut().find(|b| b.0 == grant.tag) {
            (block.1, block.2) = (status, copyset);
        }
        let header = self.header(Kind::Unlock, grant.tag, grant.requester, grant.seq);
        bytes(&Header {
            status,
            copyset,
            flags,
            ..header
        })
    }

    fn mover(&mut self, kind: Kind, tag: Tag) -> Header {
        let node = tag.home().0;
        let slot = self.rng.u16(..SLOTS);
        let row = usize::from(node * SLOTS + slot);
        let seq = self.moves[row];
        self.moves[row] = seq.next();
        self.header(kind, tag, RequesterId { node, slot }, seq)
    }

    fn add(&mut self) -> Vec<u8> {
        let (tag, status, copyset) = self.blocks[self.rng.usize(..BLOCKS)];
        let header = self.mover(Kind::AddToSwitch, tag);
        bytes(&Header {
            status,
            copyset,
            offset: self.rng.u32(..100),
            ..header
        })
    }

    fn remove(&mut self) -> Vec<u8> {
        let second = !self.retired.is_empty() && self.rng.u8(..3) != 0;
        if second {
            let at = self.rng.usize(..self.retired.len());
            let tag = self.retired[at].tag;
            let mut header = self.mover(Kind::RemoveFromSwitch, tag);
            header.flags = Flags::GRANTED;
            return bytes(&header);
        }
        let tag = self.blocks[self.rng.usize(..BLOCKS)].0;
        bytes(&self.mover(Kind::RemoveFromSwitch, tag))
    }

    /// A packet that has come before.
    fn late(&mut self) -> Vec<u8> {
        if self.sent.is_empty() {
            return self.request();
        }
        // Mostly the last one: a retransmission.
        let last = self.sent.len() - 1;
        let at = if self.rng.bool() {
            last
        } else {
            self.rng.usize(..=last)
        };
        self.sent[at].clone()
    }

    /// Well-formed, and not for this switch at this time.
    fn out_of_place(&mut self) -> Vec<u8> {
        let packet = match self.rng.u8(..4) {
            0 => self.request(),
            1 => self.unlock(),
            2 => self.add(),
            _ => self.remove(),
        };
        let Ok((mut header, _)) = decode(&packet) else {
            return packet;
        };
        match self.rng.u8(..10) {
            0 => header.epoch = header.epoch.wrapping_add(1),
            1 => header.epoch = header.epoch.wrapping_sub(1),
            2 => header.requester.node = self.setup.nodes + self.rng.u16(..4),
            3 => header.requester.slot = self.setup.requesters + self.rng.u16(..4),
            4 => header.flags = header.flags.and(Flags::GRANTED),
            5 => header.seq = Seq(self.rng.u64(..)),
            6 => header.flags = header.flags.but(Flags::IN_SWITCH),
            8 => header.tag = Tag(header.tag.0 | 32 << 48),
            7 => {
                let mut packet = encode(&header, 8).to_vec();
                packet.extend([0xbd; 8]);
                return packet;
            }
            _ => header.kind = [Kind::Ack, Kind::ReadTags, Kind::Rebuild][self.rng.usize(..3)],
        }
        bytes(&header)
    }

    /// Well-formed, and in contradiction to what came before: nobody sends it.
    fn contradiction(&mut self) -> Vec<u8> {
        if let Some(&open) = self.granted.last()
            && self.rng.bool()
        {
            let kind = REQUESTS[self.rng.usize(..REQUESTS.len())];
            let other = self.blocks[self.rng.usize(..BLOCKS)].0;
            let tag = if self.rng.bool() { open.tag } else { other };
            return bytes(&self.header(kind, tag, open.requester, open.seq));
        }
        let packet = match self.rng.u8(..3) {
            0 => self.late(),
            1 => self.unlock(),
            _ => self.add(),
        };
        let Ok((mut header, _)) = decode(&packet) else {
            return packet;
        };
        match self.rng.u8(..6) {
            0 if header.kind.is_request() => {
                header.kind = REQUESTS[self.rng.usize(..REQUESTS.len())]
            }
            0 | 1 => header.tag = self.blocks[self.rng.usize(..BLOCKS)].0,
            2 => header.copyset = Copyset::EMPTY,
            3 => header.status = GlobalStatus::Shared,
            4 => header.flags = Flags(header.flags.0 ^ Flags::READER.0),
            _ => header.flags = Flags(header.flags.0 ^ Flags::KEEP.0),
        }
        bytes(&header)
    }

    fn malformed(&mut self) -> Vec<u8> {
        let mut packet = self.late();
        match self.rng.u8(..8) {
            0 => packet.truncate(self.rng.usize(..packet.len())),
            1 => packet.push(0),
            2 => packet[0] ^= 1,
            3 if packet.len() == HEADER_LEN => {
                packet[3] = Kind::GuestAsk as u8;
                packet[45] = self.rng.u8(..OWN_LEN as u8);
                packet.extend(std::iter::repeat_n(7, usize::from(packet[45])));
            }
            _ => {
                let at = [2, 3, 9, 32, 33, 40, 41, 42, 43, 45][self.rng.usize(..10)];
                packet[at] = 0xee;
            }
        }
        packet
    }
}

fn bytes(header: &Header) -> Vec<u8> {
    encode(header, 0).to_vec()
}
