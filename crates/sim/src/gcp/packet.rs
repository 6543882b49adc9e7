//! Packets in flight.

use crate::site::{self, Words};
use rackmem_proto::gcp::{Body, Queue, SEGMENT, first, version, with_version};
use rackmem_proto::membership::host;
use rackmem_proto::wire::{Copyset, Dest, Flags, Header, Kind, Record};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// Words of what a lock protects: two that writers count up, when they enter and when they leave;
/// the lock's life; and which lock it truly is, which only the oracle looks at.
/// Halves of the data hold one of each pair.
pub const ENTERED: usize = 0;
pub const LIFE: usize = site::LIFE;
pub const LEFT: usize = 2;
pub const TRUTH: usize = 3;
/// How many there are, and the bytes that they stand for.
const WORDS: usize = 4;
pub const BYTES: u32 = WORDS as u32 * SEGMENT;

/// The end of a way that is the directory.
pub const DIRECTORY: u8 = u8::MAX;

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockPacket {
    /// What.
    pub header: Header,
    /// The words that it carries, from `offset` on.
    pub words: Vec<u64>,
    /// Who waits.
    pub queue: Queue,
}

impl Hash for LockPacket {
    /// The version as one number.
    fn hash<H: Hasher>(&self, into: &mut H) {
        version(&self.header).hash(into);
        let mut rest = with_version(self.header, 0);
        if rest.kind == Kind::ReleaseAck {
            // The version of the release that it is about.
            (first(rest.epoch) & !1 | u64::from(rest.offset)).hash(into);
            rest.offset = 0;
        }
        rest.hash(into);
        // One by one: as a slice they are hashed by their bytes.
        self.words.iter().for_each(|word| word.hash(into));
        (self.words.len(), &self.queue).hash(into);
    }
}

impl LockPacket {
    /// Bytes of its body as roles count them.
    pub fn len(&self) -> u32 {
        self.words.len() as u32 * SEGMENT
    }

    /// The records of its body.
    pub fn records(&self) -> Vec<Record> {
        self.queue.records().collect()
    }
}

/// Packets by the two ends of their way, in the order in which they were sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ways(BTreeMap<(u8, u8), Vec<LockPacket>>);

impl Ways {
    /// Nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts a packet behind those that go the same way.
    pub fn push(&mut self, from: u8, to: u8, packet: LockPacket) {
        self.0.entry((from, to)).or_default().push(packet);
    }

    /// A packet by its way and its place in it.
    pub fn get(&self, way: (u8, u8), nth: usize) -> &LockPacket {
        &self.0[&way][nth]
    }

    /// Takes it out.
    pub fn take(&mut self, way: (u8, u8), nth: usize) -> LockPacket {
        let packets = self.0.get_mut(&way).expect("a way with packets");
        let packet = packets.remove(nth);
        if packets.is_empty() {
            self.0.remove(&way);
        }
        packet
    }

    /// Ways with packets, and how many there are.
    pub fn iter(&self) -> impl Iterator<Item = ((u8, u8), usize)> {
        self.0.iter().map(|(way, packets)| (*way, packets.len()))
    }

    /// Drops what does not pass.
    pub fn retain(&mut self, keep: impl Fn((u8, u8), &LockPacket) -> bool) {
        for (way, packets) in &mut self.0 {
            packets.retain(|packet| keep(*way, packet));
        }
        self.0.retain(|_, packets| !packets.is_empty());
    }
}

/// Where a packet goes: the unicast copies, each with its header.
pub fn copies(to: Dest, header: Header) -> Vec<(u8, Header)> {
    let Some(to) = to.hosted(host) else {
        return Vec::new();
    };
    match to {
        Dest::Agents { nodes, provider } => many(nodes, provider, header),
        Dest::Agent(node) if header.kind.asks_directory() => {
            debug_assert!(header.tag.home().is_of(node));
            vec![(DIRECTORY, header)]
        }
        Dest::Agent(node) => vec![(node as u8, header)],
        Dest::Switch | Dest::Requester(_) | Dest::Home(_) => vec![(DIRECTORY, header)],
    }
}

fn many(nodes: Copyset, provider: Option<u16>, header: Header) -> Vec<(u8, Header)> {
    let copy = |node| {
        let mut copy = header;
        if provider == Some(node) {
            copy.flags = copy.flags.and(Flags::PROVIDER);
        }
        (node as u8, copy)
    };
    nodes.iter().map(copy).collect()
}

/// The packets that a node's step stands for: data in so many segments.
pub fn cut(header: Header, body: &Body, data: &Words, segments: u8) -> Vec<LockPacket> {
    let bare = |header, words, queue| LockPacket {
        header,
        words,
        queue,
    };
    match body {
        Body::None => vec![bare(header, Vec::new(), Queue::default())],
        Body::Queue(queue) => vec![bare(header, Vec::new(), queue.clone())],
        Body::Regions => {
            let each = WORDS / usize::from(segments.clamp(1, WORDS as u8));
            let parts = data.chunks(each).enumerate();
            let part = |(nth, words): (usize, &[u64])| {
                let offset = (nth * each) as u32 * SEGMENT;
                let header = Header { offset, ..header };
                bare(header, words.to_vec(), Queue::default())
            };
            parts.map(part).collect()
        }
    }
}
