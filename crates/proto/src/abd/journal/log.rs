//! What is written together, and what may be acknowledged when it is durable: group commit.
//!
//! | state | take | durable | failed |
//! |---|---|---|---|
//! | nothing under way | all that waits, as one batch | – | ended |
//! | a batch is under way | nothing | its tickets may be acknowledged | ended |
//! | ended | nothing | nothing | – |

use super::record::{Entry, FILE_HEADER, FileHeader, write};
use crate::abd::Stamp;
use crate::wire::Tag;
use alloc::vec::Vec;

/// The number of a record. The first has 1.
pub type Number = u64;

/// The member has ended: a write or a sync has failed, and nothing is acknowledged any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended;

/// What waits to be written. Its line is behind the others' in one buffer.
#[derive(Clone, Debug)]
enum Waiting {
    Line { tag: Tag, stamp: Stamp, len: usize },
    Config(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State<T> {
    Idle,
    UnderWay(Vec<T>),
    Ended,
}

/// The records of a member's journal, on their way to its file. `T` is what the host knows an
/// acknowledgement by.
#[derive(Clone, Debug)]
pub struct Log<T> {
    file: FileHeader,
    /// Bytes of the file.
    offset: u64,
    /// A batch ends at a multiple of this.
    block: u64,
    /// The next record's number.
    next: Number,
    waiting: Vec<(Waiting, T)>,
    lines: Vec<u8>,
    state: State<T>,
}

impl<T> Log<T> {
    /// Goes on behind `offset` bytes of a file, with this number.
    pub fn new(file: FileHeader, offset: u64, next: Number) -> Self {
        Log {
            file,
            offset: offset.max(FILE_HEADER as u64),
            block: 1,
            next,
            waiting: Vec::new(),
            lines: Vec::new(),
            state: State::Idle,
        }
    }

    /// A batch takes whole blocks of so many bytes, zeros at its end.
    pub fn in_blocks(self, block: usize) -> Self {
        let block = block.max(1) as u64;
        Log { block, ..self }
    }

    /// The file that batches go to.
    pub fn file(&self) -> &FileHeader {
        &self.file
    }

    /// Bytes of that file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record's number.
    pub fn next(&self) -> Number {
        self.next
    }

    /// Records that wait, and bytes of their lines.
    pub fn waiting(&self) -> (usize, usize) {
        (self.waiting.len(), self.lines.len())
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// A record. Its ticket comes back when it is durable, after those of all records before it.
    pub fn put(&mut self, entry: &Entry<'_>, ticket: T) -> Result<(), Ended> {
        if self.has_ended() {
            return Err(Ended);
        }
        let waiting = match *entry {
            Entry::Line { tag, stamp, bytes } => {
                self.lines.extend_from_slice(bytes);
                let len = bytes.len();
                Waiting::Line { tag, stamp, len }
            }
            Entry::Config(number) => Waiting::Config(number),
            // A journal has no end.
            Entry::End(_) => return Ok(()),
        };
        self.waiting.push((waiting, ticket));
        Ok(())
    }

    /// Batches go to another file from here on, which begins with the next record. It has to be
    /// durable, header and name. Not while a batch is under way.
    pub fn roll(&mut self) -> Option<FileHeader> {
        if self.state_is_busy() {
            return None;
        }
        self.file.first = self.next;
        self.offset = FILE_HEADER as u64;
        Some(self.file)
    }

    fn state_is_busy(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    /// All that waits, as bytes to be appended to the file and made durable. None: nothing waits,
    /// a batch is under way, or the member has ended.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if self.state_is_busy() || self.waiting.is_empty() {
            return None;
        }
        let (seed, batch) = (self.file.seed(), self.next);
        let mut bytes = Vec::with_capacity(self.lines.len() + self.waiting.len() * 64);
        let mut tickets = Vec::with_capacity(self.waiting.len());
        let mut lines = &self.lines[..];
        for (waiting, ticket) in self.waiting.drain(..) {
            let entry = match waiting {
                Waiting::Config(number) => Entry::Config(number),
                Waiting::Line { tag, stamp, len } => {
                    let (bytes, rest) = lines.split_at(len);
                    lines = rest;
                    Entry::Line { tag, stamp, bytes }
                }
            };
            let at = self.offset + bytes.len() as u64;
            write(&mut bytes, (seed, at), (self.next, batch), &entry);
            self.next += 1;
            tickets.push(ticket);
        }
        self.lines.clear();
        let end = (self.offset + bytes.len() as u64).next_multiple_of(self.block);
        bytes.resize((end - self.offset) as usize, 0);
        self.offset = end;
        self.state = State::UnderWay(tickets);
        Some(bytes)
    }

    /// The batch under way is durable: these may be acknowledged.
    pub fn durable(&mut self) -> Vec<T> {
        match core::mem::replace(&mut self.state, State::Idle) {
            State::UnderWay(tickets) => tickets,
            State::Idle => Vec::new(),
            State::Ended => {
                self.state = State::Ended;
                Vec::new()
            }
        }
    }

    /// A write or a sync has failed. What was written may be durable or not, and a sync that
    /// succeeds later says nothing of it: the member ends.
    pub fn failed(&mut self) {
        self.state = State::Ended;
        self.waiting.clear();
        self.lines.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{FileKind, Identity, read};
    use super::*;
    use crate::abd::Layout;
    use alloc::vec;

    fn log() -> Log<u8> {
        let identity = Identity {
            rack: 1,
            group: 0,
            layout: Layout::new(64, 4096).unwrap(),
            store: 2,
        };
        let file = FileHeader {
            identity,
            kind: FileKind::Journal,
            first: 1,
        };
        Log::new(file, 0, 1)
    }

    #[test]
    fn what_waits_is_one_batch_and_is_acknowledged_in_order_when_that_is_durable() {
        let mut log = log();
        assert_eq!(log.take(), None);
        for nth in 0..3 {
            log.put(&Entry::Config(nth), nth as u8).unwrap();
        }
        let bytes = log.take().unwrap();
        log.put(&Entry::Config(3), 3).unwrap();
        assert_eq!(log.take(), None, "one batch at a time");
        assert_eq!(log.roll(), None);
        assert_eq!(log.durable(), [0, 1, 2]);
        assert_eq!(log.durable(), []);
        let (mut at, mut batches) = (0, vec![]);
        while let Some(record) = read(&bytes[at..], (log.file().seed(), 64 + at as u64)) {
            batches.push((record.number, record.batch));
            at += record.len;
        }
        assert_eq!(
            (at, &batches[..]),
            (bytes.len(), &[(1, 1), (2, 1), (3, 1)][..])
        );
        assert_eq!(log.roll().map(|file| file.first), Some(4));
        let bytes = log.take().unwrap();
        let record = read(&bytes, (log.file().seed(), 64)).unwrap();
        assert_eq!((record.number, record.batch), (4, 4));
    }

    #[test]
    fn a_failure_is_for_ever() {
        let mut log = log();
        log.put(&Entry::Config(1), 1).unwrap();
        log.take().unwrap();
        log.put(&Entry::Config(2), 2).unwrap();
        log.failed();
        assert_eq!(log.durable(), []);
        assert_eq!(log.take(), None);
        assert_eq!(log.put(&Entry::Config(3), 3), Err(Ended));
        assert_eq!((log.durable(), log.has_ended()), (vec![], true));
    }
}
