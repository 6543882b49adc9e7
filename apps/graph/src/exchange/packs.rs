//! Columns in memory that is shared: cut into packs, which are written when they have changed and
//! read as a whole.

use super::Exchange;
use crate::error::Result;
use crate::part::{Column, Part};

/// Words of a pack: an item of bounded memory has room for as many.
pub(super) const PACK: usize = 128;
/// Bytes of one.
pub(super) const PACK_BYTES: usize = PACK * 8;

/// Words that are read and written at one moment.
pub(super) type Pack = [u64; PACK];

/// Memory of packs: a row of them at each node.
pub(super) trait Packs {
    /// A pack of another node.
    fn read(&self, from: usize, nth: usize) -> Result<Pack>;

    /// Packs of this node are these from now on.
    fn write(&self, packs: &[(usize, Pack)]) -> Result<()>;

    /// What the others have written before the barrier is to be seen.
    fn turn(&self) -> Result<()>;
}

/// Packs of a node's row: its data, then its sums. One at least.
pub(super) fn packs_of(part: &Part, node: usize) -> usize {
    let of = |column| part.words_of(column, node).div_ceil(PACK);
    (of(Column::Data) + of(Column::Sums)).max(1)
}

fn first_of(part: &Part, column: Column, node: usize) -> usize {
    match column {
        Column::Data => 0,
        Column::Sums => part.words_of(Column::Data, node).div_ceil(PACK),
    }
}

pub(super) struct Packed<'a, P> {
    part: &'a Part,
    packs: P,
    /// What was written last, by column: nothing before the first time.
    last: [Vec<u64>; 2],
    changed: Vec<(usize, Pack)>,
}

impl<'a, P: Packs> Packed<'a, P> {
    pub fn new(part: &'a Part, packs: P) -> Self {
        let (last, changed) = (Default::default(), Vec::new());
        Packed {
            part,
            packs,
            last,
            changed,
        }
    }
}

impl<P: Packs> Exchange for Packed<'_, P> {
    fn put(&mut self, column: Column, words: &[u64]) -> Result<()> {
        let first = first_of(self.part, column, self.part.me);
        let last = &mut self.last[column as usize];
        self.changed.clear();
        let mut before = last.chunks(PACK);
        for (nth, now) in words.chunks(PACK).enumerate() {
            if before.next() == Some(now) {
                continue;
            }
            let mut pack = [0; PACK];
            pack[..now.len()].copy_from_slice(now);
            self.changed.push((first + nth, pack));
        }
        last.clear();
        last.extend_from_slice(words);
        self.packs.write(&self.changed)
    }

    fn get(&mut self, column: Column, from: usize, words: &mut Vec<u64>) -> Result<()> {
        words.clear();
        let first = first_of(self.part, column, from);
        let places = &self.part.wants(column, from).places;
        for of_pack in places.chunk_by(|a, b| *a as usize / PACK == *b as usize / PACK) {
            let pack = self.packs.read(from, first + of_pack[0] as usize / PACK)?;
            words.extend(of_pack.iter().map(|place| pack[*place as usize % PACK]));
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<()> {
        self.packs.turn()
    }
}
