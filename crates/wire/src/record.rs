//! What the bodies of reports are made of: a block and a word about it.

use crate::{MAX_BODY, Tag};

/// One line of a report. What the word means is the report's business.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Record {
    /// The block.
    pub tag: Tag,
    /// What there is to say about it.
    pub word: u64,
}

/// Bytes of a record on the wire.
pub const RECORD_LEN: usize = 16;

/// How many records a body of at most `body` bytes carries; at least one.
pub const fn records_that_fit(body: usize) -> usize {
    let body = if body > MAX_BODY { MAX_BODY } else { body };
    if body < RECORD_LEN {
        1
    } else {
        body / RECORD_LEN
    }
}

impl Record {
    /// As it lies in a body.
    pub fn to_bytes(self) -> [u8; RECORD_LEN] {
        let mut bytes = [0; RECORD_LEN];
        bytes[..8].copy_from_slice(&self.tag.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.word.to_be_bytes());
        bytes
    }

    /// The records of a body; a part of one at its end is no record.
    pub fn all(body: &[u8]) -> impl ExactSizeIterator<Item = Record> {
        body.chunks_exact(RECORD_LEN).map(|bytes| {
            let word = |at: usize| {
                let mut eight = [0; 8];
                eight.copy_from_slice(&bytes[at..at + 8]);
                u64::from_be_bytes(eight)
            };
            Record {
                tag: Tag(word(0)),
                word: word(8),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn records_come_back_as_they_went() {
        let records = [(1 << 48, 7), (u64::MAX, 0)].map(|(tag, word)| Record {
            tag: Tag(tag),
            word,
        });
        let mut body: Vec<u8> = records.iter().flat_map(|r| r.to_bytes()).collect();
        assert!(Record::all(&body).eq(records));
        body.pop();
        assert_eq!(Record::all(&body).len(), 1);
    }

    #[test]
    fn a_body_has_room_for_at_least_one() {
        assert_eq!(records_that_fit(0), 1);
        assert_eq!(records_that_fit(1400), 87);
        assert_eq!(records_that_fit(usize::MAX), MAX_BODY / RECORD_LEN);
    }
}
