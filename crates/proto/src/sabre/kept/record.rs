//! What a group's line says of an object, and of requesters' calls.
//!
//! | bytes of an object's line | |
//! |---|---|
//! | 0 | its version, 0 before the first object |
//! | 8 | [`Meta`] |
//! | 16 | the last call that has changed it: incarnation:32, node:16, slot:16 |
//! | 24 | that call's number; 0: none |
//! | 32… | content |
//!
//! Behind the objects each requester of the rack has a row of 32 bytes:
//!
//! | bytes of a row | |
//! |---|---|
//! | 0 | incarnation:32, 1 if the call has taken effect and 0 if it is about to |
//! | 8 | the call's number; 0: none |
//! | 16 | the object's generation:32, its place:32 |
//! | 24 | the object's version |

use super::super::layout::Meta;
use crate::wire::{Header, RequesterId};
use alloc::vec::Vec;

/// Bytes in front of an object's content, and bytes of a row.
pub const RECORD: u32 = 32;
/// Bytes of all rows.
pub const ROWS: u64 = RequesterId::COUNT as u64 * RECORD as u64;

/// A call of a requester.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in super::super) struct Call {
    pub who: RequesterId,
    pub incarnation: u32,
    pub number: u64,
}

/// What an object's line begins with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Head {
    pub version: u64,
    pub meta: Meta,
    pub last: Option<Call>,
}

/// What is known of a requester's call, when no object says it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct CallRow {
    pub incarnation: u32,
    pub number: u64,
    /// It has taken effect; else it is about to, in this place.
    pub done: bool,
    pub place: u32,
    pub generation: u32,
    pub version: u64,
}

/// The four words in front of `bytes`; what is missing is zeros.
pub(super) fn words(bytes: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    words
}

/// A call as two words say it.
pub(in super::super) fn who_of(who: u64, number: u64) -> Call {
    Call {
        who: RequesterId {
            node: (who >> 16) as u16,
            slot: who as u16,
        },
        incarnation: (who >> 32) as u32,
        number,
    }
}

/// The two words of a call.
pub(in super::super) fn who_to(call: &Call) -> (u64, u64) {
    let (who, incarnation) = (call.who, u64::from(call.incarnation));
    let who = incarnation << 32 | u64::from(who.node) << 16 | u64::from(who.slot);
    (who, call.number)
}

impl Call {
    /// The one that a packet is of.
    pub fn of(header: &Header) -> Self {
        Call {
            who: header.requester,
            incarnation: header.incarnation,
            number: header.seq.0,
        }
    }
}

impl Head {
    /// From a line of an object. One that no keeper has written is of no object.
    pub fn of(line: &[u8]) -> Self {
        let [version, meta, who, number] = words(line);
        Head {
            version: version & !1,
            meta: Meta::from_word(meta),
            last: (number != 0).then(|| who_of(who, number)),
        }
    }

    /// A line of so many bytes with this content.
    pub fn line(&self, bytes: u32, content: &[u8]) -> Vec<u8> {
        let (who, number) = self.last.map_or((0, 0), |call| who_to(&call));
        let mut line = Vec::with_capacity(bytes as usize);
        for word in [self.version, self.meta.to_word(), who, number] {
            line.extend(word.to_be_bytes());
        }
        line.extend(content);
        line.resize(bytes as usize, 0);
        line
    }
}

impl CallRow {
    /// Rows of a line.
    pub fn all(line: &[u8]) -> Vec<CallRow> {
        let rows = line.chunks(RECORD as usize).map(|row| {
            let [first, number, place, version] = words(row);
            CallRow {
                incarnation: (first >> 32) as u32,
                number,
                done: first & 1 == 1,
                place: place as u32,
                generation: (place >> 32) as u32,
                version,
            }
        });
        rows.collect()
    }

    /// The line of these.
    pub fn line(rows: &[CallRow]) -> Vec<u8> {
        let bytes = rows.iter().flat_map(|row| {
            let first = u64::from(row.incarnation) << 32 | u64::from(row.done);
            let place = u64::from(row.generation) << 32 | u64::from(row.place);
            [first, row.number, place, row.version].map(u64::to_be_bytes)
        });
        bytes.flatten().collect()
    }

    /// Whether it is of a later call of the same requester.
    pub fn is_past(&self, call: &Call) -> bool {
        (self.incarnation, self.number) > (call.incarnation, call.number)
    }

    /// Whether it is of this call.
    pub fn is_of(&self, call: &Call) -> bool {
        (self.incarnation, self.number) == (call.incarnation, call.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_was_put_into_them() {
        let call = Call {
            who: RequesterId { node: 31, slot: 63 },
            incarnation: 7,
            number: u64::MAX,
        };
        let meta = Meta {
            generation: 9,
            class: 2,
            live: true,
            len: 3,
        };
        for last in [None, Some(call)] {
            let head = Head {
                version: 12,
                meta,
                last,
            };
            let line = head.line(64, &[1, 2, 3]);
            assert_eq!((line.len(), &line[32..36]), (64, &[1, 2, 3, 0][..]));
            assert_eq!(Head::of(&line), head);
        }
        let row = |nth: u32| CallRow {
            incarnation: nth,
            number: u64::from(nth) << 40,
            done: nth % 2 == 1,
            place: nth + 1,
            generation: nth + 2,
            version: u64::from(nth) + 3,
        };
        let rows: Vec<CallRow> = (0..4).map(row).collect();
        let line = CallRow::line(&rows);
        assert_eq!((line.len(), CallRow::all(&line)), (128, rows));
        // One that was never written.
        assert_eq!(Head::of(&[0; 64]).last, None);
        assert_eq!(CallRow::all(&[0; 64]), [CallRow::default(); 2]);
    }
}
