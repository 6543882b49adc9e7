//! A checkpoint that is being written: a piece at a time, with batches of the journal between.
//!
//! It has every line that was durable when it began, as it is when its turn comes. What becomes
//! durable meanwhile is in the journals behind it as well, and of two records the higher stamp
//! counts. So it need not be of one moment.

use rackmem_proto::abd::journal::{Entry, FileHeader, write};
use rackmem_proto::wire::Tag;

/// See the module.
pub(crate) struct Checkpoint {
    header: FileHeader,
    /// What has been put and is not written yet, and where that begins.
    piece: Vec<u8>,
    offset: u64,
    records: u64,
    /// The last line that was put.
    pub last: Option<Tag>,
    /// Bytes of the journals that it makes needless.
    pub covers: u64,
}

impl Checkpoint {
    /// One without lines, of a member that lives by this config.
    pub fn new(header: FileHeader, config: u32, covers: u64) -> Self {
        let mut checkpoint = Checkpoint {
            header,
            piece: header.encode().to_vec(),
            offset: 0,
            records: 0,
            last: None,
            covers,
        };
        checkpoint.put(&Entry::Config(config));
        checkpoint
    }

    /// The first record that it does not stand for.
    pub fn first(&self) -> u64 {
        self.header.first
    }

    pub fn put(&mut self, entry: &Entry<'_>) {
        let at = (self.header.seed(), self.offset + self.piece.len() as u64);
        write(&mut self.piece, at, (self.records, 0), entry);
        self.records += 1;
        if let Entry::Line { tag, .. } = entry {
            self.last = Some(*tag);
        }
    }

    /// Nothing follows.
    pub fn end(&mut self) {
        self.put(&Entry::End(self.records));
    }

    /// Bytes that wait to be written.
    pub fn waiting(&self) -> u64 {
        self.piece.len() as u64
    }

    /// These.
    pub fn take(&mut self) -> Vec<u8> {
        let piece = std::mem::take(&mut self.piece);
        self.offset += piece.len() as u64;
        piece
    }
}
