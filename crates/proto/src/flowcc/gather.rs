//! The directory baseline: the home agent collects invalidations' acknowledgements and dirty data, and only
//! then answers the requester. As everywhere there is a row a requester and parity: a late copy of an event whose
//! requester has gone on must not be collected for anew, from sharers that have joined since. A seeded world found it.

use crate::call::PerRequester;
use crate::wire::{Copyset, Header, NodeId, RequesterId, Seq};
use core::hash::Hasher;

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
    /// Starts to collect from `waiting`, or says who is still missing when the request is a retransmission.
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

    /// Everything that decides what it will say.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.rows.fingerprint(into);
    }
}
