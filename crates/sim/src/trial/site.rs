//! The host of one protocol on trial: the engine's sections that it needs, and lists in place of ports.

use super::Trial;
use rackmem_proto::Output;
use rackmem_proto::engine::{
    Copies, Holds, Home, Host, Memory, Migrating, Part, Payload, Protocol, Recovery,
};
use rackmem_proto::flowcc::{HomeAgent, HomeConfig, LocalStatus, Members, Migration, Shards};
use rackmem_proto::wire::{Dest, Header, NodeId, Record, Tag};

/// A packet on its way to a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Packet {
    /// The node.
    pub to: NodeId,
    /// What.
    pub header: Header,
    /// Words.
    pub body: Vec<u64>,
}

/// A node, while something happens to it.
pub struct Site<P> {
    pub(super) me: NodeId,
    pub(super) members: Members,
    pub(super) part: P,
    pub(super) recovery: Option<Recovery<()>>,
    pub(super) came: Option<Packet>,
    pub(super) sent: Vec<Packet>,
    pub(super) done: bool,
}

/// There are no blocks here.
pub struct Nothing;

impl Memory for Nothing {
    type Bytes = ();

    fn store(&mut self, _: &Header) {}
    fn put(&mut self, _: Tag, (): &()) {}
    fn clear(&mut self, _: Tag) {}
}

fn records(words: &[u64]) -> Vec<Record> {
    let pairs = words.chunks_exact(2);
    let record = |pair: &[u64]| Record {
        tag: Tag(pair[0]),
        word: pair[1],
    };
    pairs.map(record).collect()
}

impl<P: Trial> Site<P> {
    fn body(&self) -> &[u64] {
        self.came.as_ref().map_or(&[], |packet| &packet.body)
    }
}

impl<P: Trial> Host for Site<P> {
    type Protocols = (P,);
    type Bytes = ();
    type Memory<'m>
        = Nothing
    where
        Self: 'm;

    fn me(&self) -> NodeId {
        self.me
    }

    fn epoch(&self) -> u32 {
        self.members.epoch
    }

    fn incarnation(&self, _: NodeId) -> u32 {
        1
    }

    fn shards(&self) -> Shards {
        Shards::ONE
    }

    fn home<'m, R>(
        &'m mut self,
        _: usize,
        section: impl FnOnce(&mut Home, &mut Self::Memory<'m>) -> R,
    ) -> R {
        // No block is at home here: nothing is remembered of it.
        let config = HomeConfig {
            node: self.me,
            epoch: self.members.epoch,
            block: 4096,
            chunks: 1,
            incarnation: 1,
            migration: None,
            answering: None,
            seed: 0,
        };
        let mut home = Home::new(HomeAgent::new(config));
        section(&mut home, &mut Nothing)
    }

    fn copies<R>(&mut self, section: impl FnOnce(&mut Copies<()>) -> R) -> R {
        section(&mut Copies::new(true))
    }

    fn migrating<R>(&mut self, _: impl FnOnce(&mut Migrating) -> R) -> Option<R> {
        None
    }

    fn policy(&self) -> Option<Migration> {
        None
    }

    fn recovery(&mut self, section: impl FnOnce(&mut Recovery<()>, &mut Self)) {
        if let Some(mut recovery) = self.recovery.take() {
            section(&mut recovery, self);
            self.recovery = Some(recovery);
        }
    }

    fn body_len(&self) -> u32 {
        self.body().len() as u32 * 8
    }

    fn records(&self) -> Vec<Record> {
        records(self.body())
    }

    fn hold(&mut self, _: Tag, _: bool) -> Option<LocalStatus> {
        None
    }

    fn keep(&mut self) {}
    fn set(&mut self, _: LocalStatus) {}

    fn cached(&mut self) -> Vec<(Tag, LocalStatus)> {
        Vec::new()
    }

    fn clean(&mut self, _: Tag) -> Option<()> {
        None
    }

    fn send(&mut self, output: &Output, payload: Payload<'_, ()>) {
        let body: Vec<u64> = match payload {
            Payload::Records(records) => records.iter().flat_map(|r| [r.tag.0, r.word]).collect(),
            _ => Vec::new(),
        };
        for (to, header) in output.copies() {
            if let Dest::Agent(to)
            | Dest::Requester(rackmem_proto::wire::RequesterId { node: to, .. }) = to
            {
                let body = body.clone();
                self.sent.push(Packet { to, header, body });
            }
        }
    }

    fn requester(&mut self, _: &Header) {}
    fn elsewhere(&mut self, _: Part, _: &Header) {}
}

impl<P: Trial> Holds<P> for Site<P> {
    fn part<R>(&mut self, section: impl FnOnce(&mut P) -> R) -> R {
        section(&mut self.part)
    }

    fn done(&mut self, _: u8, _: <P as Protocol<Self>>::Outcome) {
        self.done = true;
    }
}
