//! Blocks without bytes, for simulations in which only statuses and lengths count.

use super::{Deed, Form, Load, Site, Speaks};
use rackmem_proto::Output;
use rackmem_proto::wire::{RECORD_LEN, Record};

/// A body of which only the length counts, and the records or the words of a lock that it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bare {
    /// How many bytes there are.
    pub bytes: u32,
    /// The records that they are.
    pub records: Vec<Record>,
    /// The words that they are.
    pub words: Vec<u64>,
}

impl Bare {
    /// These records, and nothing else.
    pub fn of(records: Vec<Record>) -> Self {
        Bare {
            bytes: (records.len() * RECORD_LEN) as u32,
            records,
            words: Vec::new(),
        }
    }
}

/// Blocks without bytes.
impl Form for () {
    type Body = Bare;

    fn zeroes() -> Self {}
    fn put(&mut self, _: u32, _: &Bare) {}

    fn len(body: &Bare) -> u32 {
        body.bytes
    }

    fn records(body: &Bare) -> Vec<Record> {
        body.records.clone()
    }

    fn words(body: &Bare) -> &[u64] {
        &body.words
    }
}

impl<X: Speaks<()>> Site<(), X> {
    /// Packets that it has sent, and their records.
    pub fn sent(&mut self) -> impl Iterator<Item = (Output, Vec<Record>)> {
        let deeds = std::mem::take(&mut self.deeds).into_iter();
        deeds.filter_map(|deed| match deed {
            Deed::Sent(output, Load::Records(records)) => Some((output, records)),
            Deed::Sent(output, _) => Some((output, Vec::new())),
            _ => None,
        })
    }
}
