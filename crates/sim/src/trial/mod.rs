//! A protocol on trial: a rack of nodes that speak it and nothing else, explored, walked through
//! with deaths, and given garbage.
//!
//! A protocol of the engine that is one value ([`Single`](rackmem_proto::engine::Single), or any
//! that [`Holds`](rackmem_proto::engine::Holds) hands out) says with [`Trial`] what threads do with
//! it and what it promises. [`TrialRack`] is a [`System`](crate::driver::System) for it, over the
//! engine's own dispatch and the engine's own rebuild, packet by packet: [`explore`] visits all of
//! a small one, [`walk`] goes seeded ways through a larger one, [`garbage`] hands a node packets
//! that nobody has sent, and [`golden`] gives the bytes of each kind of packet, to be pinned.

mod rack;
mod site;

pub use rack::{Budget, Move, State, TrialNode, TrialPacket, TrialRack};
pub use site::Site;

use crate::driver::{self, Complaint, Guide, Limits, Report};
use crate::world::Random;
use rackmem_proto::engine::Protocol;
use rackmem_proto::flowcc::Members;
use rackmem_proto::wire::{Copyset, Header, Kind, NodeId, Record, RequesterId, Seq, Tag, encode};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;

/// A protocol that can be tried.
pub trait Trial: Clone + Hash + Debug
where
    Self: Protocol<Site<Self>, Command: Copy + Debug, Outcome: Clone + Hash + Debug>,
{
    /// Its part of a node.
    fn new(me: NodeId, members: Members) -> Self;

    /// What the thread of a node asks for, the nth time.
    fn asks(node: NodeId, nth: u8) -> Self::Command;

    /// The first promise that nodes break, of those that live.
    fn broken(nodes: &[TrialNode<Self>]) -> Option<Complaint>;
}

/// Visits every state of a rack of nodes whose threads ask for so many things each,
/// up to so many states.
pub fn explore<P: Trial>(commands: &'static [u8], budget: Budget, states: usize) -> Report {
    let mut limits = Limits {
        states,
        time: None,
        stop: &mut |_| false,
    };
    driver::explore(&mut TrialRack::<P>::new(commands, budget), &mut limits)
}

/// Goes one seeded way. What it breaks, by as few moves as are found to do it.
pub fn walk<P: Trial>(
    seed: u64,
    commands: &'static [u8],
    budget: Budget,
) -> Result<usize, (Complaint, Vec<String>)> {
    let mut rack = TrialRack::<P>::new(commands, budget);
    let (way, _, broken) = driver::walk(&mut rack, &mut Chance(Random::new(seed)), 100_000);
    let Some(complaint) = broken else {
        return Ok(way.len());
    };
    let short = driver::shorten(&mut rack, complaint.0, &way);
    let (complaint, way) = short.unwrap_or((complaint, way));
    Err((complaint, driver::story(&mut rack, &way, 60)))
}

/// Packets arrive more often than anything else happens.
struct Chance(Random);

impl<P: Trial> Guide<TrialRack<P>> for Chance {
    fn choose(&mut self, _: &State<P>, moves: &[Move]) -> Option<Move> {
        let arrivals: Vec<Move> = moves.iter().copied().filter(Move::is_arrival).collect();
        let from = match self.0.below(4) > 0 && !arrivals.is_empty() {
            true => &arrivals[..],
            false => moves,
        };
        let nth = self.0.below(from.len() as u64);
        from.get(nth as usize).copied()
    }
}

/// Hands a node packets of the protocol's kinds that nobody has sent,
/// and says how many it has sent itself.
pub fn garbage<P: Trial>(seed: u64, packets: u32) -> usize {
    let mut random = Random::new(seed);
    let kinds: Vec<Kind> = P::KINDS
        .iter()
        .flat_map(|kinds| kinds_of(kinds.clone()))
        .collect();
    let mut node = TrialNode::<P>::new(0, 3);
    let mut sent = 0;
    for _ in 0..packets {
        let draw = random.draw();
        let requester = RequesterId {
            node: (draw % 3) as NodeId,
            slot: (draw >> 8) as u16 % 64,
        };
        let kind = kinds[random.below(kinds.len() as u64) as usize];
        let tag = Tag(u64::from(random.draw() as u8 % 3) << 48 | random.below(64) << 4);
        let seq = Seq(random.draw() >> random.below(64));
        let mut header = Header::request(kind, node.epoch(), tag, requester, seq);
        (header.incarnation, header.sender) = (1, (draw >> 16) as u16 % 3);
        header.copyset = Copyset(random.draw() as u32);
        header.offset = random.draw() as u32;
        let mut record = |_| Record {
            tag: Tag(random.draw()),
            word: random.draw(),
        };
        let records = (0..draw as usize % 3).map(&mut record).collect();
        let to = 0;
        sent += node
            .take(&TrialPacket {
                to,
                header,
                records,
            })
            .len();
    }
    sent
}

fn kinds_of(range: std::ops::RangeInclusive<Kind>) -> impl Iterator<Item = Kind> {
    let (first, last) = (*range.start() as u8, *range.end() as u8);
    (first..=last).filter_map(Kind::from_byte)
}

/// The bytes of the first packet of each kind, and of no other,
/// that a rack of two sends when nothing goes wrong.
pub fn golden<P: Trial>() -> BTreeMap<&'static str, String> {
    let mut rack = TrialRack::<P>::new(&[1, 0], Budget::default());
    let mut found = BTreeMap::new();
    let mut state = driver::System::first(&rack);
    while let Some(step) = driver::System::moves(&mut rack, &state).first().copied() {
        if driver::System::apply(&mut rack, &mut state, step).is_err() {
            break;
        }
        for packet in &state.packets {
            let bytes = encode(&packet.header, packet.records.len() * 16);
            let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            found.entry(packet.header.kind.name()).or_insert(hex);
        }
    }
    found
}
