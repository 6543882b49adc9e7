//! What a node remembers of locks that it has forgotten, until the epoch ends: eight bytes each.
//!
//! At another node that is what it gave up last, or a late grant would be believed. At the lock's
//! home it is [`Rest`]: a number, and who serves the lock. A packet or a thread that is about such
//! a lock makes it known again, as it was. What does not fit into eight bytes is not forgotten: a
//! lock that more than 2^26 requests of the epoch were about, or one of more than 256 kinds.

use super::SHARDS;
use rackmem_proto::gcp::{Known, LockPlace, Rest, first};
use rackmem_proto::wire::Tag;

/// From the top: bits 4 to 31 of a tag, those above as the number of a [`Kind`], who serves the
/// lock, and the bits of a number below its epoch's.
const KIND: u32 = 28;
const PLACE: u32 = 26;
const LOW: u32 = 36;
const KINDS: usize = 1 << (LOW - KIND);

/// What a lock protects, and whether it is one that nobody makes.
pub(crate) type What = (u32, bool);

/// What a row says only by a number: the upper half of a lock's tag, and what kind of lock it is.
type Kind = (u64, What);

/// See the module.
pub(crate) struct Ledger {
    epoch: u32,
    kinds: Vec<Kind>,
    shards: Box<[Vec<u64>]>,
}

fn low(tag: Tag) -> u64 {
    (tag.0 & u64::from(u32::MAX)) >> 4
}

fn shard(tag: Tag) -> usize {
    (tag.0 >> 6) as usize % SHARDS
}

fn part(row: u64, from: u32, to: u32) -> u64 {
    row >> from & ((1 << (to - from)) - 1)
}

impl Ledger {
    /// Nothing is remembered of earlier epochs.
    pub fn new(epoch: u32) -> Self {
        Ledger {
            epoch,
            kinds: Vec::new(),
            shards: (0..SHARDS).map(|_| Vec::new()).collect(),
        }
    }

    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        self.shards.iter().map(Vec::capacity).sum::<usize>() * size_of::<u64>()
    }

    /// Remembers locks that were not remembered, as far as they can be. Says which are.
    pub fn add(&mut self, epoch: u32, locks: &[(Tag, What, Known)]) -> Vec<Tag> {
        let mut added = Vec::with_capacity(locks.len());
        let mut grown = [false; SHARDS];
        for (tag, what, known) in locks {
            if let Some(row) = self.row(epoch, *tag, *what, *known) {
                self.shards[shard(*tag)].push(row);
                grown[shard(*tag)] = true;
                added.push(*tag);
            }
        }
        for (rows, _) in self
            .shards
            .iter_mut()
            .zip(grown)
            .filter(|(_, grown)| *grown)
        {
            rows.sort();
            rows.shrink_to_fit();
        }
        added
    }

    fn row(&mut self, epoch: u32, tag: Tag, what: What, known: Known) -> Option<u64> {
        let (place, number) = match known {
            Known::Abroad(floor) => (0, floor),
            Known::Home(Rest { number, place }) => match place {
                LockPlace::Undecided => (1, number),
                LockPlace::Here => (2, number),
                LockPlace::Switch => (3, number),
                LockPlace::Placing => return None,
            },
        };
        let count = match number {
            0 => 0,
            // The first number of an epoch is one above its base.
            number => number.checked_sub(first(epoch) - 1).filter(|n| *n != 0)?,
        };
        let lies_well = tag.0.is_multiple_of(16);
        if epoch != self.epoch || count >> PLACE != 0 || !lies_well {
            return None;
        }
        let kind = (tag.0 >> 32, what);
        let found = self.kinds.iter().position(|other| *other == kind);
        let nth = found.unwrap_or(self.kinds.len());
        if nth == KINDS {
            return None;
        }
        if found.is_none() {
            self.kinds.push(kind);
        }
        Some(low(tag) << LOW | (nth as u64) << KIND | place << PLACE | count)
    }

    fn find(&self, tag: Tag) -> Option<(usize, What)> {
        let rows = &self.shards[shard(tag)];
        let from = rows.partition_point(|row| row >> LOW < low(tag));
        let same = rows[from..]
            .iter()
            .take_while(|row| **row >> LOW == low(tag));
        let mut found = same.enumerate().filter_map(|(at, row)| {
            let (upper, what) = *self.kinds.get(part(*row, KIND, LOW) as usize)?;
            (upper == tag.0 >> 32).then_some((from + at, what))
        });
        found.next()
    }

    /// What is remembered of a lock.
    pub fn get(&self, tag: Tag) -> Option<(What, Known)> {
        let (at, what) = self.find(tag)?;
        let row = self.shards[shard(tag)][at];
        let number = match part(row, 0, PLACE) {
            0 => 0,
            count => first(self.epoch) - 1 + count,
        };
        let place = match part(row, PLACE, KIND) {
            0 => return Some((what, Known::Abroad(number))),
            1 => LockPlace::Undecided,
            2 => LockPlace::Here,
            _ => LockPlace::Switch,
        };
        Some((what, Known::Home(Rest { number, place })))
    }

    /// The same, if it is of this epoch; from now on it is not remembered.
    pub fn take(&mut self, tag: Tag, epoch: u32) -> Option<Known> {
        let (_, known) = self.get(tag)?;
        let (at, _) = self.find(tag)?;
        self.shards[shard(tag)].remove(at);
        (epoch == self.epoch).then_some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_was_known() {
        let mut ledger = Ledger::new(7);
        // Of several homes, whose addresses differ in their upper halves alone.
        let at = |nth: u64| Tag(((nth % 4) << 48) | ((nth / 4) * 16));
        let home = |number, place| Known::Home(Rest { number, place });
        let known = |nth: u64| match nth % 5 {
            0 => Known::Abroad(0),
            1 => Known::Abroad(first(7) + nth),
            2 => home(first(7), LockPlace::Undecided),
            3 => home(first(7) + nth, LockPlace::Here),
            _ => home(first(7) + (1 << 26) - 2, LockPlace::Switch),
        };
        let what = |nth: u64| (8 << (nth % 3), nth.is_multiple_of(2));
        for batch in [0..1000, 1000..2000u64] {
            let rows: Vec<_> = batch.map(|n| (at(n), what(n), known(n))).collect();
            assert_eq!(ledger.add(7, &rows).len(), rows.len());
        }
        assert_eq!(ledger.bytes(), 2000 * 8);
        for nth in 0..2000 {
            assert_eq!(ledger.get(at(nth)), Some((what(nth), known(nth))));
        }
        assert_eq!(ledger.take(at(5), 7), Some(known(5)));
        assert_eq!((ledger.get(at(5)), ledger.get(at(2000))), (None, None));
        assert_eq!(ledger.take(at(6), 8), None, "of an epoch that has ended");
        assert_eq!(ledger.take(at(6), 7), None);
    }

    #[test]
    fn what_cannot_be_remembered_is_refused() {
        let mut ledger = Ledger::new(7);
        let placing = Rest {
            number: first(7),
            place: LockPlace::Placing,
        };
        for (epoch, known) in [
            (7, Known::Home(placing)),
            (7, Known::Abroad(first(6))),
            (7, Known::Abroad(first(7) - 1)),
            (7, Known::Abroad(first(7) + (1 << 26) - 1)),
            (6, Known::Abroad(first(6))),
        ] {
            assert_eq!(ledger.add(epoch, &[(Tag(16), (8, true), known)]), []);
        }
        assert_eq!(ledger.bytes(), 0);
        // As many kinds as there is room for, and one more.
        let of = |len: u32| (Tag(u64::from(len) * 16), (len, true), Known::Abroad(0));
        let all: Vec<_> = (0..=KINDS as u32).map(of).collect();
        assert_eq!(ledger.add(7, &all).len(), KINDS);
    }
}
