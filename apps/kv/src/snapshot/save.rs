//! Keys into a file.

use std::fmt;
use std::io::{self, Write};

use crate::error::Error;
use crate::memory::Memory;
use crate::rdb::Writer;
use crate::store::moving::Passed;
use crate::store::{Db, Plan, Store};

/// Which moment a snapshot shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Moment {
    /// For each key another one, while others use the store.
    #[default]
    Each,
    /// One for all keys. No command changes any in the rack until the snapshot has been written;
    /// those that wait longer than the store is patient fail. [`save_file`](super::save_file) lets
    /// others read meanwhile.
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
/// bucket, and says whether to go on.
///
/// # Errors
/// `out` cannot be written, or some of the store cannot be read: then there is no snapshot.
pub fn save<M: Memory, W: Write>(
    store: &Store<M>,
    moment: Moment,
    out: W,
    go_on: impl FnMut(&Saved) -> bool,
) -> Result<(W, Saved), SaveError> {
    let view = match moment {
        Moment::Each => View::Each,
        Moment::All => View::Alone,
    };
    save_as(store, view, out, go_on)
}

/// How the store is held while it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// Bucket by bucket.
    Each,
    /// As it is at one moment, together with other readers. What has died with a node ends it.
    Shared,
    /// As it is at one moment, alone. What has died is mended on the way.
    Alone,
}

pub(super) fn save_as<M: Memory, W: Write>(
    store: &Store<M>,
    view: View,
    out: W,
    go_on: impl FnMut(&Saved) -> bool,
) -> Result<(W, Saved), SaveError> {
    let standstill = match view {
        View::Each => None,
        View::Shared => Some(store.standstill()?),
        View::Alone => {
            let plan = Plan {
                whole: true,
                ..Plan::default()
            };
            Some(store.transaction([], plan)?)
        }
    };
    let held = standstill.as_ref().and_then(|held| held.db(0));
    write(store, held.unwrap_or(store.first()), out, go_on)
}

/// Writes the keys of all databases, as `db` sees them.
fn write<M: Memory, W: Write>(
    store: &Store<M>,
    db: Db<'_, M>,
    out: W,
    mut go_on: impl FnMut(&Saved) -> bool,
) -> Result<(W, Saved), SaveError> {
    reachable(store)?;
    let mut writer = Writer::new(out)?;
    writer.about(b"rackmem-version", env!("CARGO_PKG_VERSION").as_bytes())?;
    let seconds = db.now() / 1000;
    writer.about(b"ctime", seconds.to_string().as_bytes())?;
    let (mut saved, mut keys, mut cursor) = (Saved::default(), Vec::new(), 0);
    loop {
        cursor = db.pass(cursor, &mut keys)?;
        for key in &keys {
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
    // What was looked for in buckets that were away was not found.
    reachable(store)?;
    store.confirm()?;
    let out = writer.finish()?;
    Ok((out, saved))
}

/// Writes a key, if it is still there.
fn one<M: Memory, W: Write>(
    db: &Db<'_, M>,
    one: &Passed,
    writer: &mut Writer<W>,
) -> Result<bool, SaveError> {
    let far = match one.body {
        Some(_) => None,
        None => db
            .select(one.db)
            .map(|db| db.export(&one.key))
            .transpose()?
            .flatten(),
    };
    let (body, expiry) = match (&one.body, &far) {
        (Some(body), _) => (body, one.expiry),
        (None, Some(far)) => (&far.body, far.expiry),
        (None, None) => return Ok(false),
    };
    let expiry = Some(expiry).filter(|expiry| *expiry != 0);
    writer.key(one.db.into(), &one.key, expiry, body)?;
    Ok(true)
}

fn reachable<M: Memory>(store: &Store<M>) -> Result<(), SaveError> {
    match store.buckets_away() {
        0 => Ok(()),
        away => Err(SaveError::Away(away)),
    }
}
