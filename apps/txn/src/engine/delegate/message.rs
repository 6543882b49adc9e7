//! What is asked of an owner, and what it answers.
//!
//! ```text
//! question   number: u64, at: u64, seat: u32, what: u32, cell: u32, bytes: u32; a body
//! answer     what: u32, reads: u32, version: u64; a body
//! ```

use crate::access::{Footprint, Used};
use crate::layout::Cell;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask<'a> {
    /// The lock of a cell, and its content.
    Read { cell: Cell, to_write: bool },
    /// A cell's content as it was committed last, without a lock.
    Look { cell: Cell },
    /// A cell becomes this when the transaction commits, which has its lock alone.
    Write { cell: Cell, content: &'a [u8] },
    /// A part of a transaction.
    Part { code: u32, part: &'a [u8] },
    /// The transaction has committed.
    Commit,
    /// Nothing of it is to be.
    Leave,
    /// A cell becomes this, outside of transactions.
    Poke { cell: Cell, content: &'a [u8] },
}

/// What is answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// A cell.
    Content { version: u64, bytes: Vec<u8> },
    /// What a part has returned.
    Part(Vec<u8>),
    /// What a transaction has read and changed here; it has no locks any more.
    Left(Footprint),
    /// It is done.
    Done,
    /// Others have a lock that it takes. Nothing has changed.
    Busy,
    /// A lock will not be had before this transaction has left those that it has.
    Late,
    /// It cannot be done.
    Wrong,
}

impl Answer {
    /// Of a cell.
    pub fn content(used: Used) -> Answer {
        let Used { version, bytes, .. } = used;
        Answer::Content { version, bytes }
    }
}

/// A question with who asks it: which seat of the asker's node, and the how-many-eth it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question<'a> {
    pub number: u64,
    pub seat: u32,
    pub ask: Ask<'a>,
}

#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Head {
    number: u64,
    at: u64,
    seat: u32,
    what: u32,
    cell: u32,
    bytes: u32,
}

impl<'a> Question<'a> {
    pub fn to_bytes(self) -> Vec<u8> {
        let none: &[u8] = &[];
        let (what, cell, body) = match self.ask {
            Ask::Read {
                cell,
                to_write: false,
            } => (0, Some(cell), none),
            Ask::Read {
                cell,
                to_write: true,
            } => (1, Some(cell), none),
            Ask::Look { cell } => (2, Some(cell), none),
            Ask::Write { cell, content } => (3, Some(cell), content),
            Ask::Commit => (4, None, none),
            Ask::Leave => (5, None, none),
            Ask::Poke { cell, content } => (6, Some(cell), content),
            Ask::Part { code, part } => (PARTS + code, None, part),
        };
        let head = Head {
            number: self.number,
            at: cell.map_or(0, |it| it.at),
            seat: self.seat,
            what,
            cell: cell.map_or(0, |it| it.number),
            bytes: cell.map_or(0, |it| it.bytes),
        };
        [head.as_bytes(), body].concat()
    }

    /// From what has come to an owner.
    pub fn from_bytes(bytes: &'a [u8], home: u16) -> Option<Self> {
        let (head, body) = Head::read_from_prefix(bytes).ok()?;
        let cell = Cell {
            home,
            number: head.cell,
            at: head.at,
            bytes: head.bytes,
        };
        let ask = match head.what {
            0 | 1 => Ask::Read {
                cell,
                to_write: head.what == 1,
            },
            2 => Ask::Look { cell },
            3 => Ask::Write {
                cell,
                content: body,
            },
            4 => Ask::Commit,
            5 => Ask::Leave,
            6 => Ask::Poke {
                cell,
                content: body,
            },
            code => Ask::Part {
                code: code.checked_sub(PARTS)?,
                part: body,
            },
        };
        Some(Question {
            number: head.number,
            seat: head.seat,
            ask,
        })
    }
}

/// Codes of parts begin here.
const PARTS: u32 = 16;

#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Told {
    what: u32,
    reads: u32,
    version: u64,
}

impl Answer {
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut told = Told::default();
        let body = match self {
            Answer::Done => Vec::new(),
            Answer::Busy => {
                told.what = 1;
                Vec::new()
            }
            Answer::Wrong => {
                told.what = 2;
                Vec::new()
            }
            Answer::Late => {
                told.what = 6;
                Vec::new()
            }
            Answer::Content { version, bytes } => {
                (told.what, told.version) = (3, *version);
                bytes.clone()
            }
            Answer::Part(bytes) => {
                told.what = 4;
                bytes.clone()
            }
            Answer::Left(footprint) => {
                (told.what, told.reads) = (5, footprint.reads.len() as u32);
                let both = footprint.reads.iter().chain(&footprint.writes);
                let words = both.flat_map(|(key, version)| [*key, *version]);
                words.flat_map(u64::to_le_bytes).collect()
            }
        };
        [told.as_bytes(), &body].concat()
    }

    /// From what an owner has answered.
    pub fn from_bytes(bytes: &[u8]) -> Option<Answer> {
        let (told, body) = Told::read_from_prefix(bytes).ok()?;
        Some(match told.what {
            0 => Answer::Done,
            1 => Answer::Busy,
            2 => Answer::Wrong,
            3 => Answer::Content {
                version: told.version,
                bytes: body.to_vec(),
            },
            4 => Answer::Part(body.to_vec()),
            5 => {
                let word = |at: usize| Some(u64::from_le_bytes(*body[at..].first_chunk()?));
                let row = |nth: usize| Some((word(nth * 16)?, word(nth * 16 + 8)?));
                let all: Option<Vec<_>> = (0..body.len() / 16).map(row).collect();
                let mut reads = all?;
                let writes = reads.split_off(reads.len().min(told.reads as usize));
                Answer::Left(Footprint { reads, writes })
            }
            6 => Answer::Late,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Cell = Cell {
        home: 3,
        number: 9,
        at: 1 << 33,
        bytes: 2,
    };

    #[test]
    fn questions_are_read_as_they_were_written() {
        let content: &[u8] = &[1, 2];
        let asks = [
            Ask::Read {
                cell: CELL,
                to_write: true,
            },
            Ask::Read {
                cell: CELL,
                to_write: false,
            },
            Ask::Look { cell: CELL },
            Ask::Write {
                cell: CELL,
                content,
            },
            Ask::Part {
                code: 2,
                part: content,
            },
            Ask::Commit,
            Ask::Leave,
            Ask::Poke {
                cell: CELL,
                content,
            },
        ];
        for ask in asks {
            let question = Question {
                number: 5,
                seat: 7,
                ask,
            };
            let bytes = question.to_bytes();
            assert_eq!(Question::from_bytes(&bytes, 3), Some(question));
            assert_eq!(Question::from_bytes(&bytes[..20], 3), None);
        }
    }

    #[test]
    fn answers_are_read_as_they_were_written() {
        let footprint = Footprint {
            reads: vec![(1, 2), (3, 4)],
            writes: vec![(3, 5)],
        };
        let answers = [
            Answer::Content {
                version: 8,
                bytes: vec![1, 2, 3],
            },
            Answer::Part(vec![4]),
            Answer::Left(footprint),
            Answer::Left(Footprint::default()),
            Answer::Done,
            Answer::Busy,
            Answer::Late,
            Answer::Wrong,
        ];
        for answer in answers {
            let bytes = answer.to_bytes();
            assert_eq!(Answer::from_bytes(&bytes).as_ref(), Some(&answer));
            assert_eq!(Answer::from_bytes(&bytes[..10]), None);
        }
    }
}
