//! Messages: a node puts what another one wants, and nothing else, into that node's inbox, with one
//! bulk write for each column and reader. An inbox is memory of its node, which reads it there.
//!
//! A place in an inbox is written again after two barriers at the earliest: in the meantime its
//! node has read it.

use super::{Exchange, Place};
use crate::error::Result;
use crate::part::{Column, Part};
use rackmem::SharedSlice;

pub(super) struct Inboxes<'a> {
    part: &'a Part,
    boxes: Vec<Inbox>,
    batch: Vec<u64>,
}

/// A node's.
struct Inbox {
    words: SharedSlice<u64>,
    /// Where the messages of each node begin, by column.
    starts: Vec<[usize; 2]>,
}

impl Inbox {
    /// Each message begins with a block: what is written is whole blocks, and nobody else's.
    fn of(place: &Place<'_>, to: usize) -> Result<Inbox> {
        let block = place.node.block_size() / 8;
        let mut end = 0;
        let mut lay = |len: usize| {
            let start = end;
            end += len.next_multiple_of(block);
            start
        };
        let part = place.part;
        let lens = |from| Column::ALL.map(|column| part.traffic(column, from, to));
        let starts = (0..part.nodes).map(|from| lens(from).map(&mut lay));
        let starts = starts.collect();
        let words = place.node.named_slice(&place.of(to), end.max(block))?;
        Ok(Inbox { words, starts })
    }
}

impl<'a> Inboxes<'a> {
    pub fn make(place: &Place<'_>) -> Result<()> {
        Inbox::of(place, place.part.me).map(drop)
    }

    pub fn find(place: Place<'a>) -> Result<Self> {
        let boxes = (0..place.part.nodes).map(|to| Inbox::of(&place, to));
        Ok(Inboxes {
            boxes: boxes.collect::<Result<_>>()?,
            part: place.part,
            batch: Vec::new(),
        })
    }
}

impl Exchange for Inboxes<'_> {
    fn put(&mut self, column: Column, words: &[u64]) -> Result<()> {
        let me = self.part.me;
        for to in self.part.others() {
            let places = self.part.wanted(column, to);
            if places.is_empty() {
                continue;
            }
            self.batch.clear();
            self.batch
                .extend(places.iter().map(|at| words[*at as usize]));
            let inbox = &self.boxes[to];
            let start = inbox.starts[me][column as usize];
            inbox.words.write_from(start, &self.batch)?;
        }
        Ok(())
    }

    fn get(&mut self, column: Column, from: usize, words: &mut Vec<u64>) -> Result<()> {
        let inbox = &self.boxes[self.part.me];
        words.clear();
        words.resize(self.part.wants(column, from).places.len(), 0);
        inbox
            .words
            .read_into(inbox.starts[from][column as usize], words)?;
        Ok(())
    }

    fn turn(&mut self) -> Result<()> {
        Ok(())
    }
}
