//! What happened last, and the hash of everything that happened.

use super::block;
use rackmem_proto::Dest;
use rackmem_proto::wire::{Header, Kind, NodeId, PacketLine, RequesterId, Tag};
use std::collections::VecDeque;

/// Records kept: enough to hold the last few events of one block.
const KEPT: usize = 4096;
/// Records of the block in question that a violation shows.
const SHOWN: usize = 48;

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It was sent, and will arrive.
    Sent,
    /// It was sent, and never arrives.
    Lost,
    /// It was sent, and arrives twice.
    Doubled,
    /// It has arrived.
    Arrived,
}

/// What a trace is wanted of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// Everything that happened to a block.
    Block(Tag),
    /// Everything that happened on behalf of a requester.
    Requester(RequesterId),
}

#[derive(Clone, Copy)]
enum What {
    Packet(Fate, Dest, Header),
    Local(NodeId, Tag, &'static str),
}

/// The end of a run's history.
pub struct Trace {
    records: VecDeque<(u64, What)>,
    hash: u64,
    nodes: u16,
}

impl Trace {
    /// Of a rack with so many nodes.
    pub fn new(nodes: u16) -> Self {
        Trace {
            records: VecDeque::new(),
            hash: 0xcbf2_9ce4_8422_2325,
            nodes,
        }
    }

    /// Takes note of a packet.
    pub fn packet(&mut self, now: u64, fate: Fate, to: Dest, header: &Header) {
        let about = [
            now,
            fate as u64,
            header.kind as u64 | u64::from(header.flags.0) << 8 | (header.reason as u64) << 16,
            header.tag.0 ^ u64::from(header.offset),
            header.requester.index() as u64 | u64::from(header.seq.0) << 32,
            u64::from(header.copyset.0) << 8 | header.status as u64,
        ];
        about.into_iter().for_each(|word| self.mix(word));
        self.keep(now, What::Packet(fate, to, *header));
    }

    /// Takes note of a change in a node's cache.
    pub fn local(&mut self, now: u64, node: NodeId, tag: Tag, action: &'static str) {
        self.mix(now ^ tag.0 ^ u64::from(node) << 40);
        self.keep(now, What::Local(node, tag, action));
    }

    fn keep(&mut self, now: u64, what: What) {
        if self.records.len() == KEPT {
            self.records.pop_front();
        }
        self.records.push_back((now, what));
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.hash ^= self.hash >> 29;
    }

    /// Hash of everything noted so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The last records about a block or a requester, a line each.
    pub fn about(&self, subject: Subject) -> Vec<String> {
        let about = |what: &What| match (what, subject) {
            (What::Packet(_, _, header), Subject::Block(tag)) => {
                header.tag == tag && !is_list(header.kind)
            }
            (What::Local(_, changed, _), Subject::Block(tag)) => *changed == tag,
            (What::Packet(_, _, header), Subject::Requester(id)) => header.requester == id,
            (What::Local(..), Subject::Requester(_)) => false,
        };
        let mut lines: Vec<String> = self
            .records
            .iter()
            .rev()
            .filter(|record| about(&record.1))
            .take(SHOWN)
            .map(|(at, what)| self.line(*at, what))
            .collect();
        lines.reverse();
        lines
    }

    fn line(&self, at: u64, what: &What) -> String {
        let us = at as f64 / 1000.0;
        match what {
            What::Local(node, tag, action) => {
                let number = block::number(*tag, self.nodes);
                format!("{us:9.2}  node {node} block {number}: {action}")
            }
            What::Packet(fate, to, header) => {
                let fate = format!("{fate:?}");
                let line = PacketLine {
                    to: *to,
                    header,
                    block: &block::number(header.tag, self.nodes),
                };
                format!("{us:9.2}  {fate:<8}{line}")
            }
        }
    }
}

/// Packets that are about no block.
fn is_list(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Rebuild | Kind::RebuildAck | Kind::HeatReport | Kind::ReadTags | Kind::Tags
    )
}
