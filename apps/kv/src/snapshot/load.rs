//! Keys out of a file.

use std::fmt;
use std::io::Read;

use crate::error::Error;
use crate::memory::Memory;
use crate::rdb::{self, Entry, Item, Reader};
use crate::store::{Db, Store};

/// Which stores a file may be loaded into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadInto {
    /// One without keys.
    #[default]
    Empty,
    /// Any: keys of the file take the place of those of the same name.
    Any,
}

/// What has been loaded so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Keys put into the store.
    pub keys: u64,
    /// Keys left out because they had expired.
    pub expired: u64,
    /// Libraries of functions left out.
    pub functions: u64,
    /// Data of modules left out, other than keys.
    pub modules: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// Why loading ended early. What was loaded before is in the store.
#[derive(Debug)]
pub struct LoadError {
    /// Bytes from the file's beginning to where it happened.
    pub offset: u64,
    /// The key it happened with.
    pub key: Option<Vec<u8>>,
    /// What it was.
    pub cause: LoadCause,
}

/// What ended loading early.
#[derive(Debug)]
pub enum LoadCause {
    /// The file cannot be read, or is not what Redis would have written.
    File(rdb::Cause),
    /// The store does not take the key.
    Store(Error),
    /// The key's value is of a module's type, of this name.
    Module(String),
    /// The key is in a database of a number that a store does not have.
    Database(u64),
    /// The store has keys: so many.
    NotEmpty(u64),
    /// The caller wants no more.
    Stopped,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let LoadCause::NotEmpty(keys) = self.cause {
            return write!(f, "the store has {keys} keys already");
        }
        write!(f, "at byte {}", self.offset)?;
        if let Some(key) = &self.key {
            write!(f, ", key '{}'", key.escape_ascii())?;
        }
        match &self.cause {
            LoadCause::File(cause) => write!(f, ": {cause}"),
            LoadCause::Store(error) => write!(f, ": {error}"),
            LoadCause::Module(name) => write!(f, ": a value of the module type {name}"),
            LoadCause::Database(number) => {
                let last = crate::DATABASES - 1;
                write!(f, ": database {number}, and a store has 0 to {last}")
            }
            LoadCause::NotEmpty(_) => Ok(()),
            LoadCause::Stopped => f.write_str(": stopped"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Loads a file. `go_on` is told of progress after each key, and says whether to go on.
///
/// Others may use the store meanwhile. They see keys as they come, and a collection of more than
/// [`rdb::PART`] bytes as it grows.
///
/// # Errors
/// The file is damaged, or has what the store does not take; the store's memory is full.
pub fn load<M: Memory>(
    store: &Store<M>,
    input: impl Read,
    into: LoadInto,
    go_on: impl FnMut(&Loaded) -> bool,
) -> Result<Loaded, LoadError> {
    let failed = |cause| LoadError {
        offset: 0,
        key: None,
        cause,
    };
    if into == LoadInto::Empty {
        let keys = count(store).map_err(|error| failed(LoadCause::Store(error)))?;
        if keys != 0 {
            return Err(failed(LoadCause::NotEmpty(keys)));
        }
    }
    let reader = Reader::new(input).map_err(|error| failed(LoadCause::File(error.cause)))?;
    let mut loading = Loading {
        reader,
        db: store.first(),
        missing: None,
        key: None,
        skipping: false,
        start: 0,
        loaded: Loaded::default(),
        go_on,
    };
    loading.all().map_err(|cause| loading.failed(cause))?;
    Ok(loading.loaded)
}

/// Keys in all databases.
fn count<M: Memory>(store: &Store<M>) -> crate::Result<u64> {
    let mut keys = 0;
    for number in 0..crate::DATABASES as u8 {
        if let Some(db) = store.db(number) {
            keys += db.len()? as u64;
        }
    }
    Ok(keys)
}

struct Loading<'a, M: Memory, R: Read, F> {
    reader: Reader<R>,
    db: Db<'a, M>,
    /// The database of the keys that follow, if there is none of this number.
    missing: Option<u64>,
    /// The key whose value is being read.
    key: Option<Vec<u8>>,
    /// Its parts are not wanted.
    skipping: bool,
    /// Where the item began.
    start: u64,
    loaded: Loaded,
    go_on: F,
}

/// An end that is no error of the file, or one.
enum End {
    File(rdb::Error),
    Other(LoadCause),
}

impl From<rdb::Error> for End {
    fn from(error: rdb::Error) -> Self {
        Self::File(error)
    }
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Other(LoadCause::Store(error))
    }
}

impl<M: Memory, R: Read, F: FnMut(&Loaded) -> bool> Loading<'_, M, R, F> {
    fn all(&mut self) -> Result<(), End> {
        loop {
            self.start = self.reader.offset();
            let item = self.reader.next_item()?;
            self.loaded.bytes = self.reader.offset();
            match item {
                None => return Ok(()),
                Some(item) => self.take(item)?,
            }
        }
    }

    fn take(&mut self, item: Item) -> Result<(), End> {
        match item {
            Item::Key(entry) => self.key(entry)?,
            Item::Part { value, more } => {
                if let Some(key) = self.key.as_ref().filter(|_| !self.skipping) {
                    self.db.import_more(key, &value)?;
                }
                if !more {
                    self.key = None;
                }
            }
            Item::Database(number) => {
                let known = u8::try_from(number).ok().and_then(|n| self.db.select(n));
                self.missing = known.is_none().then_some(number);
                self.db = known.unwrap_or(self.db);
            }
            Item::Function(_) => self.loaded.functions += 1,
            Item::Module(_) => self.loaded.modules += 1,
            Item::ModuleKey { key, module } => {
                self.key = Some(key);
                return Err(End::Other(LoadCause::Module(module)));
            }
            Item::About { .. } | Item::Sizes { .. } => {}
        }
        Ok(())
    }

    fn key(&mut self, entry: Entry) -> Result<(), End> {
        self.key = Some(entry.key.clone());
        if let Some(number) = self.missing {
            return Err(End::Other(LoadCause::Database(number)));
        }
        let now = self.db.now();
        self.skipping = entry.expiry.is_some_and(|expiry| expiry <= now);
        match self.skipping {
            true => self.loaded.expired += 1,
            false => {
                self.db.import(&entry.key, &entry.value, entry.expiry)?;
                self.loaded.keys += 1;
            }
        }
        if !entry.more {
            self.key = None;
        }
        match (self.go_on)(&self.loaded) {
            true => Ok(()),
            false => Err(End::Other(LoadCause::Stopped)),
        }
    }

    fn failed(&mut self, end: End) -> LoadError {
        let (offset, cause) = match end {
            End::File(error) => (error.offset, LoadCause::File(error.cause)),
            End::Other(cause) => (self.start, cause),
        };
        LoadError {
            offset,
            key: self.key.take(),
            cause,
        }
    }
}
