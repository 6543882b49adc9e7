//! What a member remembers of each requester's writes: which segments of the last ones have come,
//! and what became of them.

use super::Stamp;
use crate::call::{Assembly, PerRequester};
use crate::wire::{Header, Seq, Tag};
use core::cmp::Ordering;
use core::hash::Hasher;

/// How far a write has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Progress {
    /// Segments of it are missing.
    #[default]
    Staging,
    /// All of it is here, and on its way to the durable store.
    Syncing,
    /// It is stored, or superseded.
    Stored,
}

/// One write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Row {
    incarnation: u32,
    seq: Seq,
    stamp: Stamp,
    line: Tag,
    /// Which segments have come.
    pub received: Assembly,
    /// How far it has come.
    pub progress: Progress,
}

/// Two rows a requester, one a parity of its numbers: whoever has a majority goes on while segments
/// of its write are still on their way to the others, and these must not be put together with the
/// next one's.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: PerRequester<[Row; 2]>,
}

impl Rows {
    /// The row of a packet's write. None: its requester has begun others since, and it is late.
    ///
    /// A write is one life, number and stamp of its requester. Another stamp under the same number
    /// begins a new row, so that bytes which were stamped differently never meet in one. No
    /// requester writes two lines under one number: such a packet is forged, and has no row either.
    pub fn enter(&mut self, header: &Header, stamp: Stamp, mix: bool) -> Option<&mut Row> {
        let row = &mut self.rows.row(header.requester)[header.seq.parity()];
        let name = (header.incarnation, header.seq, stamp);
        match name.cmp(&(row.incarnation, row.seq, row.stamp)) {
            Ordering::Less => return None,
            Ordering::Equal if row.line != header.tag => return None,
            Ordering::Equal => {}
            Ordering::Greater => {
                let received = if mix {
                    row.received
                } else {
                    Assembly::default()
                };
                *row = Row {
                    incarnation: header.incarnation,
                    seq: header.seq,
                    stamp,
                    line: header.tag,
                    received,
                    progress: Progress::Staging,
                };
            }
        }
        Some(row)
    }

    /// Under which stamp a write has come, or segments of it. None: it has not, or others since.
    pub fn stamp_of(&mut self, header: &Header) -> Stamp {
        let row = self.rows.row(header.requester)[header.seq.parity()];
        let name = (header.incarnation, header.seq, header.tag);
        match (row.incarnation, row.seq, row.line) == name {
            true => row.stamp,
            false => Stamp::NONE,
        }
    }

    /// Everything that decides what it will do.
    pub fn fingerprint(&self, into: &mut impl Hasher) {
        self.rows.fingerprint(into);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Kind, RequesterId};

    fn header(incarnation: u32, seq: u64) -> Header {
        let who = RequesterId { node: 1, slot: 2 };
        let mut header = Header::request(Kind::AbdWrite, 0, Tag(0), who, Seq(seq));
        header.incarnation = incarnation;
        header
    }

    #[test]
    fn segments_of_two_writes_never_meet() {
        let mut rows = Rows::default();
        let half = |rows: &mut Rows, header: &Header, stamp| {
            let row = rows.enter(header, Stamp(stamp), false)?;
            row.received.add(0, 32, 64);
            row.received.add(32, 32, 64);
            Some(row.received.complete())
        };
        let first = rows.enter(&header(1, 1), Stamp(5), false).unwrap();
        assert_eq!(first.received.add(0, 32, 64), Some(true));
        // The next of the same parity, a later life, and another stamp of the same number each
        // begin with nothing.
        for (header, stamp) in [(header(1, 3), 9), (header(2, 1), 9), (header(2, 1), 10)] {
            let row = rows.enter(&header, Stamp(stamp), false).unwrap();
            assert_eq!(row.received, Assembly::default());
        }
        assert_eq!(half(&mut rows, &header(2, 1), 10), Some(true));
        // What is late is not looked at: it changes no row.
        for (header, stamp) in [(header(1, 3), 99), (header(1, 1), 5), (header(2, 1), 9)] {
            assert_eq!(half(&mut rows, &header, stamp), None);
        }
        assert!(
            rows.enter(&header(2, 1), Stamp(10), false)
                .unwrap()
                .received
                .complete()
        );
    }
    #[test]
    fn a_number_is_of_one_line() {
        let mut rows = Rows::default();
        let written = header(1, 1);
        assert!(rows.enter(&written, Stamp(5), false).is_some());
        // The fuzzer's: acknowledged as the write of a line of which nothing had come.
        let forged = Header {
            tag: Tag(64),
            ..written
        };
        assert!(rows.enter(&forged, Stamp(5), false).is_none());
        assert_eq!(rows.stamp_of(&forged), Stamp::NONE);
        assert_eq!(rows.stamp_of(&written), Stamp(5));
    }
}
