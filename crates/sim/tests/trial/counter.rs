//! A protocol that exists nowhere but here: a counter that every node has a copy of.

use rackmem_proto::engine::{Change, Holds, Host, Payload, Protocol, Reporter};
use rackmem_proto::flowcc::Members;
use rackmem_proto::wire::{Copyset, Dest, Header, Kind, NodeId, Record, RequesterId, Seq, Tag};
use rackmem_proto::{Data, Output};
use rackmem_sim::driver::Complaint;
use rackmem_sim::trial::{Node, Trial};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
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
    fn hear(&mut self, of: NodeId, count: u64) {
        let known = self.added.entry(of).or_default();
        *known = count.max(*known);
    }

    fn mine(&self) -> u64 {
        self.added.get(&self.me).copied().unwrap_or_default()
    }
}

/// Tells a node how much one has added: a record, so that the packet has a body.
fn send<H: Host>(host: &mut H, kind: Kind, to: NodeId, of: NodeId, count: u64) {
    let (me, epoch) = (host.me(), host.epoch());
    let requester = RequesterId { node: of, slot: 0 };
    let tag = Tag(u64::from(to) << 48);
    let mut header = Header::request(kind, epoch, tag, requester, Seq(count));
    (header.sender, header.incarnation) = (me, host.incarnation(of));
    let output = Output::with(Dest::Agent(to), header, Data::Records);
    host.send(&output, Payload::Records(&[Record { tag, word: count }]));
}

/// Asks those again that have not said that they have heard.
fn ask<const C: u8, H: Holds<Counter<C>>>(host: &mut H) {
    let (me, count, unheard) = host.part(|c| (c.me, c.mine(), c.unheard));
    for to in unheard.unwrap_or(Copyset::EMPTY).iter() {
        send(host, Kind::GuestAsk, to, me, count);
    }
    if unheard == Some(Copyset::EMPTY) {
        host.part(|counter| counter.unheard = None);
        host.done(0, ());
    }
}

impl<const C: u8, H: Holds<Counter<C>>> Protocol<H> for Counter<C> {
    const NAME: &'static str = "counter";
    const NUMBER: u8 = 7;
    const KINDS: &'static [RangeInclusive<Kind>] = &[Kind::GuestAsk..=Kind::GuestTell];
    type Command = ();
    type Outcome = ();

    fn packet(host: &mut H, header: &Header) {
        let (of, count) = (header.requester.node, header.seq.0);
        if header.kind == Kind::GuestAsk {
            host.part(|counter| counter.hear(of, count));
            return send(host, Kind::GuestTell, header.sender, of, count);
        }
        host.part(|counter| match &mut counter.unheard {
            Some(unheard) if of == counter.me && Some(&count) == counter.added.get(&of) => {
                *unheard = unheard.without(header.sender);
            }
            _ => {}
        });
        if host.part(|counter| counter.unheard) == Some(Copyset::EMPTY) {
            ask(host);
        }
    }

    fn command(host: &mut H, _: u8, (): ()) {
        host.part(|counter| {
            *counter.added.entry(counter.me).or_default() += 1;
            let others = counter.members.founders.without(counter.me);
            let waits = if C == CARELESS {
                Copyset::EMPTY
            } else {
                others
            };
            counter.unheard = Some(waits);
        });
        ask(host);
    }

    fn tick(host: &mut H, _: bool) {
        ask(host);
    }

    fn enter(host: &mut H, members: Members) {
        host.part(|counter| counter.members = members);
    }

    fn report(host: &mut H) -> Vec<Record> {
        let record = |to: NodeId, (of, count): (&NodeId, &u64)| Record {
            tag: Tag(u64::from(to) << 48 | u64::from(*of) << 4),
            word: *count,
        };
        let tell = |c: &mut Counter<C>| -> Vec<Record> {
            let to = c.members.founders.iter();
            to.flat_map(|to| c.added.iter().map(move |row| record(to, row)))
                .collect()
        };
        host.part(|counter| {
            if C == SILENT {
                Vec::new()
            } else {
                tell(counter)
            }
        })
    }

    fn hear(host: &mut H, _: Reporter, record: Record) {
        let of = (record.tag.offset() >> 4) as NodeId;
        host.part(|counter| counter.hear(of, record.word));
    }

    fn settle(_: &mut H, _: &Change) {}

    /// What was told for the epoch was told to all who are in it.
    fn resume(host: &mut H) {
        host.part(|counter| counter.unheard = counter.unheard.map(|_| Copyset::EMPTY));
        ask(host);
    }

    fn fingerprint(host: &mut H, into: &mut impl Hasher)
    where
        H::Bytes: Hash,
    {
        host.part(|counter| counter.hash(into));
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
    fn broken(nodes: &[Node<Self>]) -> Option<Complaint> {
        let known = |m: &Node<Self>, n: NodeId| m.part.added.get(&n).copied().unwrap_or(0);
        let pairs = nodes.iter().flat_map(|n| nodes.iter().map(move |m| (m, n)));
        let mut forgets = pairs.filter(|(m, n)| m.up && known(m, n.me) < n.done.into());
        let (m, n) = forgets.next()?;
        let detail = format!("node {} has not what node {} added", m.me, n.me);
        Some(("what is added stays", "counter", detail))
    }
}
