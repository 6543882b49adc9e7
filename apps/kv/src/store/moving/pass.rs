//! All keys of a store, bucket by bucket, of all databases at once.
//!
//! What lies in a bucket's pages is taken as it is at one moment, in one look at the bucket. Long
//! values and large collections, which are elsewhere, are left to [`Db::export`], one at a time.

use super::export::body;
use crate::DATABASES;
use crate::error::Result;
use crate::layout::kind::Kind;
use crate::layout::page::{Page, Record};
use crate::layout::superblock::Flushes;
use crate::memory::Memory;
use crate::rdb::Body;
use crate::store::bucket::Bucket;
use crate::store::db::Db;

/// A key that a pass has come to.
pub(crate) struct Passed {
    pub db: u8,
    pub key: Vec<u8>,
    /// ms since 1970, 0 for never.
    pub expiry: u64,
    /// `None`: it is not in the bucket's pages.
    pub body: Option<Body>,
}

/// A record as its page has it.
struct Seen {
    db: u8,
    key: Vec<u8>,
    kind: Kind,
    expiry: u64,
    /// `None`: it has an extent.
    value: Option<Vec<u8>>,
}

impl<M: Memory> Db<'_, M> {
    /// Puts the live keys of all databases in the bucket that a cursor is at into `keys`. Says
    /// which cursor is next, 0 at the end.
    ///
    /// # Errors
    /// Those of reading the bucket. Outside of a transaction, one that has died with its node has
    /// no keys.
    pub(crate) fn pass(&self, cursor: u64, keys: &mut Vec<Passed>) -> Result<u64> {
        let look = |bucket: &Bucket<'_, M>| {
            keys.clear();
            bucket.pass(keys)
        };
        let (passed, next) = self.core.at_cursor(self.scope, cursor, look);
        match passed {
            Err(error) if error.is_node_lost() && self.scope.is_alone() => keys.clear(),
            passed => passed?,
        }
        Ok(next)
    }
}

impl<M: Memory> Bucket<'_, M> {
    fn pass(&self, keys: &mut Vec<Passed>) -> Result<()> {
        let (flushes, now, mut seen) = (self.flushes()?, self.core.clock.now(), Vec::new());
        let applied = self.head().epoch();
        let of_page = |page: &Page<'_>| {
            let live = page
                .records()
                .filter(|record| is_there(record, &flushes, applied) && !record.expired(|| now));
            live.map(|record| copy(page, &record)).collect::<Vec<_>>()
        };
        self.all_pages(of_page, |mut some| seen.append(&mut some))?;
        for one in seen {
            let body = match (one.kind, one.value) {
                (_, None) => None,
                (Kind::String, Some(value)) => Some(Body::string(&value)),
                (kind, Some(head)) => {
                    let found = self.core.found(kind, &head, one.expiry)?;
                    found.is_in_record().then(|| body(&found)).transpose()?
                }
            };
            keys.push(Passed {
                db: one.db,
                key: one.key,
                expiry: one.expiry,
                body,
            });
        }
        Ok(())
    }
}

/// Whether a record is of a database that clients have, which has not been flushed since.
fn is_there(record: &Record, flushes: &Flushes, applied: u64) -> bool {
    let db = record.db();
    usize::from(db) < DATABASES && flushes.era(db).flushed <= applied
}

fn copy(page: &Page<'_>, record: &Record) -> Seen {
    let mut key = vec![0; record.key_len()];
    page.view.read(record.key_at(), &mut key);
    Seen {
        db: record.db(),
        key,
        kind: record.kind,
        expiry: record.expiry,
        value: record.extent.is_none().then(|| page.inline_value(record)),
    }
}
