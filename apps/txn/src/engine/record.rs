//! What a log keeps of a transaction: which bytes of which cells it changes, and into what. To do
//! that again changes nothing, also where a part of it has been done.
//!
//! ```text
//! head   0 life: u64        of the terminal's node, and one more; 0: there is nothing to do
//!        8 number: u64      of the commit in this log
//!       16 bytes: u64       of the body
//!       24 sum: u64         of the number and the body: blocks of a long body are written first
//!       32 orders, payments, delivered: u64 × 3, since the database was loaded
//! body   for each cell: home: u16, pieces: u16, number: u32, at: u64, bytes: u32, 0: u32,
//!        version: u64 before; for each piece: from: u32, bytes: u32, and the bytes
//! ```

use crate::layout::Cell;
use crate::tally::Counts;
use std::ops::Range;

/// Bytes of a head.
pub const HEAD: usize = 56;
/// Two pieces that are nearer than this are one.
const NEAR: usize = 8;

/// What is known of a log without its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Head {
    pub life: u64,
    pub number: u64,
    pub bytes: u64,
    pub sum: u64,
    pub done: Counts,
}

impl Head {
    /// Of a record with this body.
    pub fn of(life: u64, number: u64, done: Counts, body: &[u8]) -> Head {
        Head {
            life,
            number,
            bytes: body.len() as u64,
            sum: sum(number, body),
            done,
        }
    }

    /// Whether this is the body that it was written with.
    pub fn fits(&self, body: &[u8]) -> bool {
        self.bytes == body.len() as u64 && self.sum == sum(self.number, body)
    }

    pub fn to_bytes(self) -> [u8; HEAD] {
        let done = [self.done.orders, self.done.payments, self.done.delivered];
        let words = [self.life, self.number, self.bytes, self.sum];
        let mut bytes = [0; HEAD];
        let all = words.into_iter().chain(done);
        for (to, word) in bytes.chunks_exact_mut(8).zip(all) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8; HEAD]) -> Head {
        let word = |nth: usize| {
            let from = bytes[nth * 8..].first_chunk().copied();
            u64::from_le_bytes(from.unwrap_or_default())
        };
        Head {
            life: word(0),
            number: word(1),
            bytes: word(2),
            sum: word(3),
            done: Counts {
                orders: word(4),
                payments: word(5),
                delivered: word(6),
            },
        }
    }
}

/// FNV-1a.
fn sum(number: u64, body: &[u8]) -> u64 {
    let all = number.to_le_bytes();
    let all = all.iter().chain(body);
    all.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// What becomes of a cell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    pub cell: Cell,
    /// Its version before.
    pub version: u64,
    /// Where bytes become others, and which.
    pub pieces: Vec<(u32, Vec<u8>)>,
}

impl Change {
    /// What makes the one content of a cell of the other.
    pub fn between(cell: Cell, version: u64, (before, after): (&[u8], &[u8])) -> Change {
        let piece = |range: Range<usize>| (range.start as u32, after[range].to_vec());
        let pieces = differ(before, after).into_iter().map(piece).collect();
        Change {
            cell,
            version,
            pieces,
        }
    }

    /// Makes the change in a content, and says whether it has room.
    pub fn apply(&self, content: &mut [u8]) -> bool {
        self.pieces.iter().all(|(from, bytes)| {
            let from = *from as usize;
            let to = content.get_mut(from..from + bytes.len());
            to.map(|to| to.copy_from_slice(bytes)).is_some()
        })
    }

    /// Appends it to a body.
    pub fn put(&self, body: &mut Vec<u8>) {
        let cell = self.cell;
        body.extend(cell.home.to_le_bytes());
        body.extend((self.pieces.len() as u16).to_le_bytes());
        body.extend(cell.number.to_le_bytes());
        body.extend(cell.at.to_le_bytes());
        body.extend(cell.bytes.to_le_bytes());
        body.extend([0; 4]);
        body.extend(self.version.to_le_bytes());
        for (from, bytes) in &self.pieces {
            body.extend(from.to_le_bytes());
            body.extend((bytes.len() as u32).to_le_bytes());
            body.extend(bytes);
        }
    }

    /// All changes of a body; nothing if it is none.
    pub fn all(body: &[u8]) -> Option<Vec<Change>> {
        let (mut rest, mut changes) = (body, Vec::new());
        while !rest.is_empty() {
            changes.push(take(&mut rest)?);
        }
        Some(changes)
    }
}

fn take(rest: &mut &[u8]) -> Option<Change> {
    let home = u16::from_le_bytes(bytes(rest)?);
    let pieces = u16::from_le_bytes(bytes(rest)?);
    let cell = Cell {
        home,
        number: u32::from_le_bytes(bytes(rest)?),
        at: u64::from_le_bytes(bytes(rest)?),
        bytes: u32::from_le_bytes(bytes(rest)?),
    };
    bytes::<4>(rest)?;
    let version = u64::from_le_bytes(bytes(rest)?);
    let mut change = Change {
        cell,
        version,
        pieces: Vec::new(),
    };
    for _ in 0..pieces {
        let from = u32::from_le_bytes(bytes(rest)?);
        let len = u32::from_le_bytes(bytes(rest)?) as usize;
        let (piece, behind) = rest.split_at_checked(len)?;
        change.pieces.push((from, piece.to_vec()));
        *rest = behind;
    }
    Some(change)
}

fn bytes<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*first)
}

/// Where two contents differ.
fn differ(before: &[u8], after: &[u8]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..after.len()).filter(|at| before.get(*at) != after.get(*at)) {
        match ranges.last_mut() {
            Some(last) if at < last.end + NEAR => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Cell = Cell {
        home: 3,
        number: 70_000,
        at: 1 << 33,
        bytes: 100,
    };

    fn contents() -> (Vec<u8>, Vec<u8>) {
        let before = vec![7; 100];
        let mut after = before.clone();
        after[2] = 1;
        after[9] = 2;
        after[60..80].fill(3);
        after[99] = 4;
        (before, after)
    }

    #[test]
    fn a_change_is_what_differs_and_may_be_made_twice() {
        let (before, after) = contents();
        let change = Change::between(CELL, 5, (&before, &after));
        let places: Vec<(u32, usize)> = change.pieces.iter().map(|it| (it.0, it.1.len())).collect();
        assert_eq!(places, [(2, 8), (60, 20), (99, 1)]);
        let mut half = before.clone();
        half[..70].copy_from_slice(&after[..70]);
        for mut content in [before, half, after.clone()] {
            assert!(change.apply(&mut content) && content == after);
        }
        assert!(!change.apply(&mut [0; 80]));
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let (before, after) = contents();
        let other = Cell { number: 1, ..CELL };
        let changes = [
            Change::between(CELL, 5, (&before, &after)),
            Change::between(other, 0, (&after, &before)),
        ];
        let mut body = Vec::new();
        changes.iter().for_each(|change| change.put(&mut body));
        assert_eq!(Change::all(&body).unwrap(), changes);
        assert_eq!(Change::all(&body[1..]), None);
        let done = Counts {
            orders: 1,
            payments: 2,
            delivered: 3,
        };
        let head = Head::of(4, 9, done, &body);
        let read = Head::from_bytes(&head.to_bytes());
        assert!(read == head && read.fits(&body));
        body[40] ^= 1;
        assert!(!head.fits(&body));
        assert!(!Head { number: 8, ..head }.fits(&body));
    }
}
