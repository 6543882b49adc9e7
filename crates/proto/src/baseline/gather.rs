//! The directory baseline: the home agent collects invalidations' acknowledgements and dirty data, and only
//! then answers the requester. One event a requester at a time, so the table has a row for each.

use crate::flowcc::per_requester::PerRequester;
use crate::wire::{Copyset, Header, NodeId, RequesterId, Seq};
use core::hash::Hasher;

/// The events a home agent is collecting for.
#[derive(Clone, Debug, Default)]
pub struct Gathers {
    rows: PerRequester<Option<Row>>,
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
        let row = self.rows.row(granted.requester);
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
        let row = self.rows.row(requester).as_mut()?;
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
