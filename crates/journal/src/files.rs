//! Steps with files, each of which is whole or has failed.

use crate::{Disk, StoreError};
use rackmem_proto::abd::journal::{FileHeader, FileKind};

/// A journal that has no name yet.
const NEW: &str = "new";
/// A checkpoint that is not whole yet: journals begin while it is written.
pub const NEW_CHECKPOINT: &str = "new-checkpoint";
/// Bytes that are written at a time.
const PIECE: usize = 1 << 20;

/// How a file in persistent memory begins: a page, behind which is what other files begin with.
pub const PUBLISHED: &[u8; 8] = b"RMMAPPED";
/// Bytes of that page.
pub const FRONT: u64 = 4096;

/// The name of a file.
pub fn name(kind: FileKind, first: u64) -> String {
    match kind {
        FileKind::Journal => format!("journal-{first:016x}"),
        FileKind::Checkpoint => format!("checkpoint-{first:016x}"),
    }
}

/// What a name says.
pub fn parsed(name: &str) -> Option<(FileKind, u64)> {
    let (kind, first) = name.split_once('-')?;
    let kind = match kind {
        "journal" => FileKind::Journal,
        "checkpoint" => FileKind::Checkpoint,
        _ => return None,
    };
    let whole = first.len() == 16;
    let first = u64::from_str_radix(first, 16).ok().filter(|_| whole)?;
    Some((kind, first))
}

/// Files of a store.
pub struct Files<D> {
    pub disk: D,
}

impl<D: Disk> Files<D> {
    /// Where a file is, for messages.
    pub fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.disk.place())
    }

    pub fn failed<T>(
        &self,
        doing: &'static str,
        name: &str,
        result: std::io::Result<T>,
    ) -> Result<T, StoreError> {
        result.map_err(|cause| StoreError::io(doing, self.at(name), cause))
    }

    pub fn read(&mut self, name: &str) -> Result<Vec<u8>, StoreError> {
        let read = self.disk.read(name);
        self.failed("read it", name, read)
    }

    /// Appends all of it.
    pub fn append(&mut self, name: &str, mut bytes: &[u8]) -> Result<(), StoreError> {
        while !bytes.is_empty() {
            let piece = &bytes[..bytes.len().min(PIECE)];
            let taken = match self.disk.append(name, piece) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(0) => Err(std::io::ErrorKind::WriteZero.into()),
                other => other,
            };
            let taken = self.failed("write it", name, taken)?;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Makes a file durable. It is never tried again.
    pub fn sync(&mut self, name: &str) -> Result<(), StoreError> {
        let synced = self.disk.sync(name);
        self.failed("make it durable", name, synced)
    }

    pub fn begin(&mut self, new: &str) -> Result<(), StoreError> {
        let made = self.disk.create(new);
        self.failed("make it", new, made)
    }

    /// What was written to a new file gets its name, when it is durable.
    pub fn finish(&mut self, new: &str, name: &str) -> Result<(), StoreError> {
        self.sync(new)?;
        let renamed = self.disk.rename(new, name);
        self.failed("rename it", name, renamed)?;
        let synced = self.disk.sync_names();
        self.failed("make its name durable", name, synced)
    }

    /// A journal with nothing but these bytes.
    pub fn journal(&mut self, header: &FileHeader, bytes: &[u8]) -> Result<String, StoreError> {
        let name = name(FileKind::Journal, header.first);
        self.begin(NEW)?;
        self.append(NEW, bytes)?;
        self.finish(NEW, &name)?;
        Ok(name)
    }

    /// Removes files that a checkpoint has made needless. What stays is removed the next time.
    pub fn remove_before(&mut self, first: u64) {
        for name in self.disk.names().unwrap_or_default() {
            if parsed(&name).is_some_and(|(_, of)| of < first) {
                let _ = self.disk.remove(&name);
            }
        }
    }
}
