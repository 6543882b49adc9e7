//! A store: opened, written in batches, and shortened by checkpoints.

use crate::checkpoint::Checkpoint;
use crate::files::{Files, NEW_CHECKPOINT, name, parsed};
use crate::{Disk, StoreError};
use rackmem_proto::abd::journal::{
    BLOCK, Entry, FILE_HEADER, FileHeader, FileKind, Found, Identity, Log, Lost, Recovery, Replay,
};
use rackmem_proto::abd::{Layout, Stamp};
use rackmem_proto::wire::Tag;

/// Whose store is to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The rack.
    pub rack: u64,
    /// The group.
    pub group: u16,
    /// The group's lines.
    pub layout: Layout,
    /// The number that a new store gets: the life of its member. No other store has it.
    pub fresh: u64,
}

/// What a store had.
#[derive(Debug)]
pub struct Restored {
    /// The life of its member.
    pub life: u64,
    /// Whether the store is new.
    pub fresh: bool,
    /// Stamps, and the config that the member lives by: [`Replay::replica`].
    pub replay: Replay,
    /// Bytes of a batch that was cut off, which were never acknowledged.
    pub torn: u64,
}

/// How long files get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a journal, after which another one begins.
    pub journal: u64,
    /// Bytes of journals, after which a checkpoint is due. While it is written, between batches, as
    /// much comes on top as the member has lines.
    pub replay: u64,
    /// Bytes of a checkpoint that are written between two batches, or as many as the last batch
    /// had: so long nothing is acknowledged.
    pub piece: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            journal: 64 << 20,
            replay: 1 << 30,
            piece: 1 << 20,
        }
    }
}

/// See the module.
pub struct Store<D, T> {
    pub(crate) log: Log<T>,
    pub(crate) writing: Writing<D>,
}

/// What a thread that writes has.
pub(crate) struct Writing<D> {
    files: Files<D>,
    /// The journal that batches go to.
    journal: String,
    identity: Identity,
    limits: Limits,
    /// The config that a checkpoint has to have.
    pub config: u32,
    /// Bytes of journals behind the last checkpoint, without the last one's.
    behind: u64,
}

impl<D: Disk, T> Store<D, T> {
    /// Opens the store in a folder, or makes one where nothing is. `apply` gets lines with their
    /// content; of a line that comes more than once, the last one counts.
    pub fn open(
        disk: D,
        wanted: &Wanted,
        limits: Limits,
        apply: impl FnMut(Tag, &[u8]),
    ) -> Result<(Self, Restored), StoreError> {
        let mut files = Files { disk };
        let names = files.disk.names();
        let names = files.failed("list it", "", names)?;
        let mut found: Vec<(FileKind, u64)> = names.iter().filter_map(|n| parsed(n)).collect();
        found.sort_unstable();
        match found.is_empty() {
            true => Self::fresh(files, wanted, limits),
            false => Self::recover(files, wanted, limits, (found, apply)),
        }
    }

    fn fresh(
        mut files: Files<D>,
        wanted: &Wanted,
        limits: Limits,
    ) -> Result<(Self, Restored), StoreError> {
        let identity = Identity {
            rack: wanted.rack,
            group: wanted.group,
            layout: wanted.layout,
            store: wanted.fresh,
        };
        let header = journal(identity, 1);
        let name = files.journal(&header, &header.encode())?;
        let restored = Restored {
            life: identity.store,
            fresh: true,
            replay: Replay::default(),
            torn: 0,
        };
        let store = Self::behind(files, name, (header, 0, 1), limits);
        Ok((store, restored))
    }

    fn behind(
        files: Files<D>,
        journal: String,
        (header, offset, next): (FileHeader, u64, u64),
        limits: Limits,
    ) -> Self {
        Store {
            log: Log::new(header, offset, next).in_blocks(BLOCK),
            writing: Writing {
                files,
                journal,
                identity: header.identity,
                limits,
                config: 0,
                behind: 0,
            },
        }
    }

    fn recover(
        mut files: Files<D>,
        wanted: &Wanted,
        limits: Limits,
        (found, mut apply): (Vec<(FileKind, u64)>, impl FnMut(Tag, &[u8])),
    ) -> Result<(Self, Restored), StoreError> {
        let last = |kind| found.iter().rfind(|file| file.0 == kind).map(|file| file.1);
        let checkpoint = last(FileKind::Checkpoint);
        let base = checkpoint.unwrap_or(1);
        let journals = found.iter().filter(|file| file.0 == FileKind::Journal);
        let journals: Vec<u64> = journals
            .map(|file| file.1)
            .filter(|of| *of >= base)
            .collect();
        // Whose it is, its newest file says.
        let newest = match (journals.last(), checkpoint) {
            (Some(first), _) => name(FileKind::Journal, *first),
            (None, Some(first)) => name(FileKind::Checkpoint, first),
            (None, None) => return Err(damaged(&files, "", Lost::Missing { number: base })),
        };
        let bytes = files.read(&newest)?;
        let Some(header) = FileHeader::decode(&bytes) else {
            return Err(damaged(&files, &newest, Lost::Header));
        };
        let identity = header.identity;
        let found = (identity.rack, identity.group, identity.layout);
        if found != (wanted.rack, wanted.group, wanted.layout) {
            return Err(StoreError::Other {
                file: files.at(&newest),
                found: identity,
            });
        }
        let mut recovery = Recovery::new(identity);
        let mut each = |entry: &Entry<'_>| {
            if let Entry::Line { tag, bytes, .. } = entry {
                apply(*tag, bytes);
            }
        };
        if let Some(first) = checkpoint {
            let name = name(FileKind::Checkpoint, first);
            let bytes = files.read(&name)?;
            let read = recovery.checkpoint(&bytes, first, &mut each);
            read.map_err(|lost| damaged(&files, &name, lost))?;
        }
        let (mut end, mut bytes, mut behind, mut torn) = (None, Vec::new(), 0, 0);
        for first in journals {
            let name = name(FileKind::Journal, first);
            bytes = files.read(&name)?;
            let read = recovery.journal(&bytes, first, &mut each);
            let Found { good, .. } = read.map_err(|lost| damaged(&files, &name, lost))?;
            torn = bytes.len() as u64 - good;
            bytes.truncate(good as usize);
            // What comes next begins with a block, as behind any batch.
            if bytes.len() > FILE_HEADER {
                bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
            }
            let good = bytes.len() as u64;
            behind += good;
            end = Some((first, good));
        }
        recovery
            .finish()
            .map_err(|lost| damaged(&files, "", lost))?;
        let Some((first, good)) = end else {
            return Err(damaged(&files, "", Lost::Missing { number: base }));
        };
        // A process before may have ended with a failed sync: what was read may be in the page
        // cache only, and another sync of that file would say that all is well.
        let header = journal(identity, first);
        let journal = files.journal(&header, &bytes)?;
        files.remove_before(base);
        // One that was not whole when the process before ended.
        let _ = files.disk.remove(NEW_CHECKPOINT);
        let mut store = Self::behind(files, journal, (header, good, recovery.next()), limits);
        store.writing.behind = behind - good;
        store.writing.config = recovery.replay().config;
        let restored = Restored {
            life: identity.store,
            fresh: false,
            replay: recovery.replay().clone(),
            torn,
        };
        Ok((store, restored))
    }

    /// What it was written to.
    pub fn into_disk(self) -> D {
        self.writing.files.disk
    }

    /// A record for the next batch.
    pub fn put(&mut self, entry: &Entry<'_>, ticket: T) -> Result<(), StoreError> {
        if let Entry::Config(number) = entry {
            self.writing.config = self.writing.config.max(*number);
        }
        let put = self.log.put(entry, ticket);
        put.map_err(|_| StoreError::Ended)
    }

    /// Makes all that waits durable: tickets of what may be acknowledged, in order.
    pub fn commit(&mut self) -> Result<Vec<T>, StoreError> {
        self.ended()?;
        let written = self.writing.turn(&mut self.log).and_then(|()| {
            let batch = self.log.take();
            batch.map_or(Ok(()), |bytes| self.writing.append(&bytes))
        });
        match written {
            Ok(()) => Ok(self.log.durable()),
            Err(error) => {
                self.log.failed();
                Err(error)
            }
        }
    }

    fn ended(&self) -> Result<(), StoreError> {
        match self.log.has_ended() {
            true => Err(StoreError::Ended),
            false => Ok(()),
        }
    }

    /// Whether journals are so long that a checkpoint is due.
    pub fn is_long(&self) -> bool {
        self.writing.is_long(self.log.offset())
    }

    /// Writes down every line that the member has, so that the journals before are needless:
    /// `lines` calls what it is given with each, in any order. It has at least what was
    /// acknowledged. Without room, the store is as it was.
    pub fn checkpoint(
        &mut self,
        lines: impl FnOnce(&mut dyn FnMut(Tag, Stamp, &[u8])),
    ) -> Result<(), StoreError> {
        self.ended()?;
        let rolled = self.writing.roll(&mut self.log);
        let first = rolled.inspect_err(|_| self.log.failed())?;
        let written = self.writing.begin(first).and_then(|mut checkpoint| {
            lines(&mut |tag, stamp, bytes| checkpoint.put(&Entry::Line { tag, stamp, bytes }));
            self.writing.finish(checkpoint)
        });
        written.map_err(|(error, ends)| {
            if ends {
                self.log.failed();
            }
            error
        })
    }
}

fn journal(identity: Identity, first: u64) -> FileHeader {
    let kind = FileKind::Journal;
    FileHeader {
        identity,
        kind,
        first,
    }
}

fn damaged<D: Disk>(files: &Files<D>, name: &str, lost: Lost) -> StoreError {
    StoreError::Damaged {
        file: files.at(name),
        lost,
    }
}

impl<D: Disk> Writing<D> {
    pub fn is_long(&self, offset: u64) -> bool {
        self.bytes(offset) > self.limits.replay
    }

    /// Bytes of a checkpoint to write after a batch of so many: so journals grow no faster than it.
    pub fn piece(&self, batch: usize) -> u64 {
        self.limits.piece.max(batch as u64)
    }

    /// Bytes of journals behind the last checkpoint, of which the last has this many.
    pub fn bytes(&self, offset: u64) -> u64 {
        self.behind + offset
    }

    /// Another journal begins, if this one is long enough.
    fn turn<T>(&mut self, log: &mut Log<T>) -> Result<(), StoreError> {
        match self.is_full(log.offset()) {
            true => self.roll(log).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Whether a journal of so many bytes is long enough.
    pub fn is_full(&self, offset: u64) -> bool {
        offset >= self.limits.journal
    }

    /// Another journal begins: says with which number. Nothing is under way.
    fn roll<T>(&mut self, log: &mut Log<T>) -> Result<u64, StoreError> {
        let next = log.next();
        // One that has no record yet goes on.
        if log.file().first != next {
            self.begin_journal(next, log.offset())?;
            log.roll().ok_or(StoreError::Ended)?;
        }
        Ok(next)
    }

    /// A journal that begins with this record is durable; the one before has so many bytes.
    pub fn begin_journal(&mut self, first: u64, before: u64) -> Result<(), StoreError> {
        let header = journal(self.identity, first);
        self.journal = self.files.journal(&header, &header.encode())?;
        self.behind += before;
        Ok(())
    }

    /// A checkpoint could not be written: the next one is due when as much has come again.
    pub fn put_off(&mut self) {
        self.behind = 0;
    }

    /// A batch, durable.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.files.append(&self.journal, bytes)?;
        self.files.sync(&self.journal)
    }

    /// A checkpoint of what is written down in journals before this number begins. As of the
    /// others, an error says whether it ends the store: otherwise that is as it was.
    pub fn begin(&mut self, first: u64) -> Result<Checkpoint, (StoreError, bool)> {
        let header = FileHeader {
            identity: self.identity,
            kind: FileKind::Checkpoint,
            first,
        };
        let begun = self.files.begin(NEW_CHECKPOINT);
        begun.map_err(|error| (error, false))?;
        Ok(Checkpoint::new(header, self.config, self.behind))
    }

    /// Writes what has been put into a checkpoint, and makes it durable: what is left for its end
    /// takes no longer than any piece.
    pub fn write(&mut self, checkpoint: &mut Checkpoint) -> Result<(), (StoreError, bool)> {
        let written = self.files.append(NEW_CHECKPOINT, &checkpoint.take());
        if let Err(error) = written {
            // Nothing was promised by it, and its room is needed.
            let _ = self.files.disk.remove(NEW_CHECKPOINT);
            return Err((error, false));
        }
        let synced = self.files.sync(NEW_CHECKPOINT);
        synced.map_err(|error| (error, true))
    }

    /// All lines are in a checkpoint: the journals before it are needless.
    pub fn finish(&mut self, mut checkpoint: Checkpoint) -> Result<(), (StoreError, bool)> {
        checkpoint.end();
        self.write(&mut checkpoint)?;
        let name = name(FileKind::Checkpoint, checkpoint.first());
        let finished = self.files.finish(NEW_CHECKPOINT, &name);
        finished.map_err(|error| (error, true))?;
        self.files.remove_before(checkpoint.first());
        self.behind = self.behind.saturating_sub(checkpoint.covers);
        Ok(())
    }
}
