//! Packets in flight.

use crate::site::{self, Bare, Load};
use rackmem_proto::gcp::{SEGMENT, first, version, with_version};
use rackmem_proto::membership::host;
use rackmem_proto::wire::{Copyset, Dest, Flags, Header, Kind, Tag};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Words of what a lock protects: two that writers count up, when they enter and when they leave;
/// the lock's life; and which lock it truly is, which only the oracle looks at.
/// Halves of the data hold one of each pair.
pub const ENTERED: usize = 0;
pub const LIFE: usize = site::LIFE;
pub const LEFT: usize = 2;
pub const TRUTH: usize = 3;

/// The end of a way that is the directory.
pub const DIRECTORY: u8 = u8::MAX;

/// A packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockPacket {
    /// What.
    pub header: Header,
    /// And what is behind it: words from `offset` on, or who waits.
    pub body: Bare,
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
        // There is one lock, and its address is as large as a version.
        rest.tag = Tag(0);
        rest.hash(into);
        // One by one: as a slice they are hashed by their bytes.
        let Bare { words, records, .. } = &self.body;
        words.iter().for_each(|word| word.hash(into));
        (words.len(), records).hash(into);
    }
}

/// Packets with the two ends of their way: ways in order, and on each the order in which they were
/// sent. One piece of memory, since every state has its own.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ways(Vec<((u8, u8), Rc<LockPacket>)>);

impl Ways {
    /// Nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts a packet behind those that go the same way.
    pub fn push(&mut self, from: u8, to: u8, packet: LockPacket) {
        let way = (from, to);
        let behind = self.0.partition_point(|(other, _)| *other <= way);
        self.0.insert(behind, (way, Rc::new(packet)));
    }

    fn first_of(&self, way: (u8, u8)) -> usize {
        self.0.partition_point(|(other, _)| *other < way)
    }

    /// A packet by its way and its place in it.
    pub fn get(&self, way: (u8, u8), nth: usize) -> &LockPacket {
        &self.0[self.first_of(way) + nth].1
    }

    /// Takes it out.
    pub fn take(&mut self, way: (u8, u8), nth: usize) -> LockPacket {
        let at = self.first_of(way) + nth;
        Rc::unwrap_or_clone(self.0.remove(at).1)
    }

    /// Ways with packets, and how many there are.
    pub fn iter(&self) -> impl Iterator<Item = ((u8, u8), usize)> {
        let ways = self.0.chunk_by(|one, other| one.0 == other.0);
        ways.map(|packets| (packets[0].0, packets.len()))
    }

    /// Drops what does not pass.
    pub fn retain(&mut self, keep: impl Fn((u8, u8), &LockPacket) -> bool) {
        self.0.retain(|(way, packet)| keep(*way, packet));
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
pub fn cut(header: Header, load: Load<()>, segments: u8) -> Vec<LockPacket> {
    let mut body = Bare::default();
    match load {
        Load::Words(data) => {
            let each = data.len() / usize::from(segments.clamp(1, data.len() as u8));
            let part = |(nth, words): (usize, &[u64])| LockPacket {
                header: Header {
                    offset: (nth * each) as u32 * SEGMENT,
                    ..header
                },
                body: Bare {
                    bytes: words.len() as u32 * SEGMENT,
                    words: words.to_vec(),
                    ..Bare::default()
                },
            };
            return data.chunks(each).enumerate().map(part).collect();
        }
        Load::Records(records) => body.records = records,
        Load::Nothing | Load::Block(()) => {}
    }
    vec![LockPacket { header, body }]
}
