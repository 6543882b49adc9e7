//! What happened last, and the hash of everything that happened.

use super::scene::{Fate, Passing, Scene, Sight, Watcher, block_of};
use rackmem_proto::Dest;
use rackmem_proto::wire::{Header, NodeId, RequesterId, Tag};
use std::collections::VecDeque;

/// Records kept: enough to hold the last few events of one block.
const KEPT: usize = 4096;
/// Records of the block in question that a violation shows.
const SHOWN: usize = 48;

/// What a trace is wanted of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// Everything that happened to a block.
    Block(Tag),
    /// Everything that happened on behalf of a requester.
    Requester(RequesterId),
    /// Nothing in particular.
    Rack,
}

#[derive(Clone, Copy)]
enum What {
    Packet(Fate, NodeId, Dest, Header),
    Local(NodeId, Tag, &'static str),
}

/// The end of a run's history.
pub struct Trace {
    records: VecDeque<(u64, What)>,
    hash: u64,
    homes: u16,
    watcher: Option<Watcher>,
}

impl Trace {
    /// Of a rack in which so many nodes are homes, for somebody who follows it.
    pub fn new(homes: u16, watcher: Option<Watcher>) -> Self {
        Trace {
            records: VecDeque::new(),
            hash: 0xcbf2_9ce4_8422_2325,
            homes,
            watcher,
        }
    }

    /// Takes note of a packet.
    pub fn packet(&mut self, now: u64, passing: Passing<'_>) {
        let Passing {
            fate, to, header, ..
        } = passing;
        let about = [
            now,
            fate as u64,
            header.kind as u64 | u64::from(header.flags.0) << 8 | (header.reason as u64) << 16,
            header.tag.0 ^ u64::from(header.offset),
            header.requester.index() as u64 | header.seq.0.rotate_left(32),
            u64::from(header.copyset.0) << 8 | header.status as u64,
        ];
        about.into_iter().for_each(|word| self.mix(word));
        self.keep(now, What::Packet(fate, passing.from, to, *header));
        self.show(now, Sight::Packet(passing));
    }

    /// Takes note of a change in a node's cache.
    pub fn local(&mut self, now: u64, node: NodeId, tag: Tag, action: &'static str) {
        self.mix(now ^ tag.0 ^ u64::from(node) << 40);
        self.keep(now, What::Local(node, tag, action));
        self.show(now, Sight::Local(node, tag, action));
    }

    /// Tells the watcher, if there is one, what happened to an operation.
    pub fn operation(&mut self, now: u64, tag: Option<Tag>, text: impl FnOnce() -> String) {
        if self.watcher.is_some() {
            self.show(now, Sight::Operation(tag, &text()));
        }
    }

    /// Tells the watcher, if there is one, what happened to the rack.
    pub fn rack(&mut self, now: u64, text: impl FnOnce() -> String) {
        if self.watcher.is_some() {
            self.show(now, Sight::Rack(&text()));
        }
    }

    fn show(&mut self, now: u64, what: Sight<'_>) {
        if let Some(watcher) = &mut self.watcher {
            watcher(&Scene::new(now, what, self.homes));
        }
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
            (What::Packet(.., header), Subject::Block(tag)) => block_of(header) == Some(tag),
            (What::Local(_, changed, _), Subject::Block(tag)) => *changed == tag,
            (What::Packet(.., header), Subject::Requester(id)) => header.requester == id,
            (What::Local(..), Subject::Requester(_)) | (_, Subject::Rack) => false,
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
        let sight = match what {
            What::Local(node, tag, action) => Sight::Local(*node, *tag, action),
            What::Packet(fate, from, to, header) => Sight::Packet(Passing {
                fate: *fate,
                from: *from,
                from_requester: false,
                to: *to,
                header,
                body: &[],
            }),
        };
        Scene::new(at, sight, self.homes).to_string()
    }
}
