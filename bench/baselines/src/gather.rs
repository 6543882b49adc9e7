//! The directory baseline: the home agent collects invalidations' acknowledgements and dirty data,
//! and only then answers the requester. As everywhere there is a row a requester and parity:
//! a late copy of an event whose requester has gone on must not be collected for anew, from sharers
//! that have joined since. A seeded world found it.

use rackmem_proto::call::PerRequester;
use rackmem_proto::flowcc::{Answering, forward};
use rackmem_proto::wire::{Copyset, Flags, GlobalStatus, Header, Kind, NodeId, RequesterId, Seq};
use rackmem_proto::{Dest, Output, Outputs};
use std::hash::Hasher;

/// For [`HomeConfig::answering`](rackmem_proto::flowcc::HomeConfig).
pub fn answering() -> Box<dyn Answering> {
    Box::<Gathers>::default()
}

/// The events a home agent is collecting for.
#[derive(Clone, Debug, Default)]
pub struct Gathers {
    rows: PerRequester<[Option<Row>; 2]>,
}

#[derive(Clone, Copy, PartialEq, Hash, Debug)]
struct Row {
    seq: Seq,
    waiting: Copyset,
    granted: Header,
}

impl Gathers {
    /// Starts to collect from `waiting`, or says who is still missing when the request is a
    /// retransmission.
    pub fn begin(&mut self, granted: &Header, waiting: Copyset) -> Copyset {
        let row = &mut self.rows.row(granted.requester)[granted.seq.parity()];
        match row {
            Some(same) if same.seq == granted.seq => same.waiting,
            _ => {
                *row = Some(Row {
                    seq: granted.seq,
                    waiting,
                    granted: *granted,
                });
                waiting
            }
        }
    }

    /// One has answered. The granted request, when it was the last.
    pub fn answer(&mut self, requester: RequesterId, seq: Seq, from: NodeId) -> Option<Header> {
        let row = self.rows.row(requester)[seq.parity()].as_mut()?;
        if row.seq != seq || !row.waiting.contains(from) {
            return None;
        }
        row.waiting = row.waiting.without(from);
        row.waiting.is_empty().then_some(row.granted)
    }
}

impl Answering for Gathers {
    /// Collects first, and answers with home's data then.
    fn grant(&mut self, granted: &Header, me: NodeId, outputs: &mut Outputs) {
        let others = granted.copyset.without(granted.requester.node);
        let waiting = match (granted.kind, granted.status) {
            (Kind::ReadMiss | Kind::WriteMiss, GlobalStatus::Modified) => others,
            (Kind::WriteMiss | Kind::WriteShared, GlobalStatus::Shared) => others,
            _ => Copyset::EMPTY,
        };
        let granted = Header {
            flags: granted.flags.and(Flags::GRANTED).and(Flags::GATHER),
            sender: me,
            ..*granted
        };
        match self.begin(&granted, waiting) {
            Copyset::EMPTY => outputs.push(ack(granted, me)),
            nodes => {
                // Only a dirty copy has anything that home's memory has not.
                let dirty = granted.status == GlobalStatus::Modified;
                let provider = dirty.then(|| nodes.iter().next()).flatten();
                outputs.push(Output::new(Dest::Agents { nodes, provider }, granted));
            }
        }
    }

    fn answered(&mut self, header: &Header, me: NodeId, outputs: &mut Outputs) -> bool {
        let over = self.answer(header.requester, header.seq, header.sender);
        if let Some(granted) = over {
            outputs.push(ack(granted, me));
        }
        over.is_some()
    }

    fn clear(&mut self) {
        *self = Gathers::default();
    }

    fn fingerprint(&self, mut into: &mut dyn Hasher) {
        self.rows.fingerprint(&mut into);
    }

    fn copy(&self) -> Box<dyn Answering> {
        Box::new(self.clone())
    }
}

fn ack(granted: Header, me: NodeId) -> Output {
    if matches!(granted.kind, Kind::ReadMiss | Kind::WriteMiss) {
        return forward::from_home(granted, me);
    }
    let ack = granted.answer(Kind::Ack, me);
    Output::new(Dest::Requester(granted.requester), ack)
}
