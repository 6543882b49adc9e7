//! Keys into a file.

use std::fmt;
use std::io::{self, Write};

use crate::error::Error;
use crate::memory::Memory;
use crate::rdb::Writer;
use crate::store::{Db, Keys, Plan, Store};

/// Keys looked for at a time.
const BATCH: usize = 256;

/// Which moment a snapshot shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// For each key another one, while others use the store.
    #[default]
    Each,
    /// One for all keys. No other command runs in the rack until the snapshot has been written;
    /// those that wait longer than the store is patient fail.
    All,
}

/// What has been saved so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Keys.
    pub keys: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Why there is no snapshot.
#[derive(Debug)]
pub enum SaveError {
    /// The store cannot be read.
    Store(Error),
    /// Some of it cannot be: so many buckets are with nodes that are no members just now.
    Away(usize),
    /// The file cannot be written.
    Io(io::Error),
    /// The caller wants no more.
    Stopped,
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Away(buckets) => write!(
                f,
                "{buckets} buckets are with nodes that are no members of the rack just now"
            ),
            Self::Io(error) => error.fmt(f),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for SaveError {}

impl From<Error> for SaveError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for SaveError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes all keys to `out`, which gets many small writes. `go_on` is told of progress after each
/// batch of keys, and says whether to go on.
///
/// # Errors
/// `out` cannot be written, or some of the store cannot be read: then there is no snapshot.
pub fn save<M: Memory, W: Write>(
    store: &Store<M>,
    moment: Moment,
    out: W,
    go_on: impl FnMut(&Saved) -> bool,
) -> Result<(W, Saved), SaveError> {
    match moment {
        Moment::Each => all(store, |number| store.db(number), out, go_on),
        Moment::All => {
            let plan = Plan {
                whole: true,
                ..Plan::default()
            };
            let standstill = store.transaction([], plan)?;
            all(store, |number| standstill.db(number), out, go_on)
        }
    }
}

fn all<'a, M: Memory, W: Write>(
    store: &Store<M>,
    db: impl Fn(u8) -> Option<Db<'a, M>>,
    out: W,
    mut go_on: impl FnMut(&Saved) -> bool,
) -> Result<(W, Saved), SaveError> {
    reachable(store)?;
    let mut writer = Writer::new(out)?;
    writer.about(b"rackmem-version", env!("CARGO_PKG_VERSION").as_bytes())?;
    let seconds = store.first().now() / 1000;
    writer.about(b"ctime", seconds.to_string().as_bytes())?;
    let mut saved = Saved::default();
    for db in (0..crate::DATABASES as u8).filter_map(db) {
        let (mut keys, mut cursor) = (Keys::default(), 0);
        loop {
            keys.clear();
            cursor = db.scan(cursor, BATCH, &mut keys)?;
            for key in keys.iter() {
                saved.keys += u64::from(one(&db, key, &mut writer)?);
            }
            saved.bytes = writer.written();
            if !go_on(&saved) {
                return Err(SaveError::Stopped);
            }
            if cursor == 0 {
                break;
            }
        }
    }
    // What was looked for in buckets that were away was not found.
    reachable(store)?;
    store.confirm()?;
    let out = writer.finish()?;
    Ok((out, saved))
}

/// Writes a key, if it is still there.
fn one<M: Memory, W: Write>(
    db: &Db<'_, M>,
    key: &[u8],
    writer: &mut Writer<W>,
) -> Result<bool, SaveError> {
    let Some(found) = db.export(key)? else {
        return Ok(false);
    };
    let expiry = Some(found.expiry).filter(|expiry| *expiry != 0);
    writer.key(db.number().into(), key, expiry, &found.body)?;
    Ok(true)
}

fn reachable<M: Memory>(store: &Store<M>) -> Result<(), SaveError> {
    match store.buckets_away() {
        0 => Ok(()),
        away => Err(SaveError::Away(away)),
    }
}
