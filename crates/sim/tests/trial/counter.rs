//! A protocol that exists nowhere but here: a counter that every node has a copy of.

use rackmem_proto::engine::{Reporter, Single, Wants};
use rackmem_proto::flowcc::Members;
use rackmem_proto::wire::{Copyset, Header, HomeId, Kind, NodeId, Record, RequesterId, Seq, Tag};
use rackmem_sim::driver::Complaint;
use rackmem_sim::trial::{Trial, TrialNode};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// One that waits for no other node, and one that tells nothing for an epoch.
pub const CARELESS: u8 = 1;
pub const SILENT: u8 = 2;

/// What each node has added, as one node knows it. `C`: its defect.
#[derive(Clone, Hash, Debug)]
pub struct Counter<const C: u8> {
    me: NodeId,
    members: Members,
    added: BTreeMap<NodeId, u64>,
    /// What this node's thread waits for: that these have heard of it.
    unheard: Option<Copyset>,
}

impl<const C: u8> Counter<C> {
    fn learn(&mut self, of: NodeId, count: u64) {
        let known = self.added.entry(of).or_default();
        *known = count.max(*known);
    }

    /// Asks those again that have not said that they have heard.
    fn ask(&mut self, wants: &mut Wants<()>) {
        let count = self.added.get(&self.me).copied().unwrap_or_default();
        for to in self.unheard.unwrap_or_default().iter() {
            tell(wants, Kind::GuestAsk, to, (self.me, count));
        }
        if self.unheard == Some(Copyset::EMPTY) {
            self.unheard = None;
            wants.done(0, ());
        }
    }
}

/// Tells a node how much one has added: a record, so that the packet has a body.
fn tell(wants: &mut Wants<()>, kind: Kind, to: NodeId, (of, count): (NodeId, u64)) {
    let (tag, requester) = (HomeId::of(to).start(), RequesterId { node: of, slot: 0 });
    let header = Header::request(kind, 0, tag, requester, Seq(count));
    wants.send(to, header, &[Record { tag, word: count }]);
}

impl<const C: u8> Single for Counter<C> {
    const NAME: &'static str = "counter";
    const NUMBER: u8 = 7;
    const KINDS: &'static [RangeInclusive<Kind>] = &[Kind::GuestAsk..=Kind::GuestTell];
    type Command = ();
    type Outcome = ();

    fn packet(&mut self, header: &Header, wants: &mut Wants<()>) {
        let (of, count) = (header.requester.node, header.seq.0);
        if header.kind == Kind::GuestAsk {
            self.learn(of, count);
            return tell(wants, Kind::GuestTell, header.sender, (of, count));
        }
        if let Some(unheard) = &mut self.unheard
            && of == self.me
            && Some(&count) == self.added.get(&of)
        {
            *unheard = unheard.without(header.sender);
        }
        if self.unheard == Some(Copyset::EMPTY) {
            self.ask(wants);
        }
    }

    fn command(&mut self, _: u8, (): (), wants: &mut Wants<()>) {
        *self.added.entry(self.me).or_default() += 1;
        self.unheard = Some(match C {
            CARELESS => Copyset::EMPTY,
            _ => self.members.founders.without(self.me),
        });
        self.ask(wants);
    }

    fn tick(&mut self, wants: &mut Wants<()>) {
        self.ask(wants);
    }

    fn enter(&mut self, members: Members) {
        self.members = members;
    }

    /// To every member of the epoch, all that is known here.
    fn report(&self) -> Vec<Record> {
        let told = self.members.founders.iter().filter(|_| C != SILENT);
        let all = told.flat_map(|to| self.added.iter().map(move |row| (to, row)));
        let record = |(to, (of, count)): (NodeId, (&NodeId, &u64))| Record {
            tag: Tag(HomeId::of(to).start().0 | u64::from(*of) << 4),
            word: *count,
        };
        all.map(record).collect()
    }

    fn hear(&mut self, _: Reporter, record: Record) {
        self.learn((record.tag.offset() >> 4) as NodeId, record.word);
    }

    /// What was told for the epoch was told to all who are in it.
    fn resume(&mut self, wants: &mut Wants<()>) {
        self.unheard = self.unheard.map(|_| Copyset::EMPTY);
        self.ask(wants);
    }
}

impl<const C: u8> Trial for Counter<C> {
    fn new(me: NodeId, members: Members) -> Self {
        Counter {
            me,
            members,
            added: BTreeMap::new(),
            unheard: None,
        }
    }

    fn asks(_: NodeId, _: u8) {}

    /// Every living member knows what was told to be added.
    fn broken(nodes: &[TrialNode<Self>]) -> Option<Complaint> {
        let known = |m: &TrialNode<Self>, n: NodeId| m.part.added.get(&n).copied().unwrap_or(0);
        let pairs = nodes.iter().flat_map(|n| nodes.iter().map(move |m| (m, n)));
        let mut forgets = pairs.filter(|(m, n)| m.up && known(m, n.me) < n.done.into());
        let (m, n) = forgets.next()?;
        let detail = format!("node {} has not what node {} added", m.me, n.me);
        Some(("what is added stays", "counter", detail))
    }
}
