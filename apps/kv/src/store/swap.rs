//! Swapping two databases: all their keys change places at one moment.
//!
//! A key's bucket does not depend on its database, so no key leaves its bucket; its record says
//! another database from then on. All buckets are held meanwhile.

use super::bucket::{At, Bucket};
use super::bus::{Message, News};
use super::db::Db;
use super::held::Held;
use super::lookup::MAX_CHAIN;
use crate::error::{Error, Result};
use crate::layout::counters::Counts;
use crate::layout::page::Page;
use crate::layout::page_mut::PageMut;
use crate::memory::{Access, Memory};

/// Two databases, and what each has lost to the other so far.
type Pair = [(u8, Counts); 2];

impl<M: Memory> Db<'_, M> {
    /// The keys of this database are those of `other` from now on, and the other way round. All
    /// buckets are held while it takes: commands of all nodes wait, for a time that grows with the
    /// number of keys.
    ///
    /// # Errors
    /// As of any change; then nothing has been swapped, unless a journal of so many keys would have
    /// been too long or the memory has failed.
    pub(crate) fn swap_with(&self, other: u8) -> Result<()> {
        if self.number == other {
            return Ok(());
        }
        if let Some(held) = self.scope.0 {
            return held.swap(self.number, other);
        }
        let mut held = self.core.hold_all(Access::Write)?;
        held.keep_journal();
        held.swap(self.number, other).map_err(|error| {
            // What cannot be put back has failed as well.
            held.undo().err().unwrap_or(error)
        })
    }
}

impl<M: Memory> Held<'_, M> {
    fn swap(&self, one: u8, other: u8) -> Result<()> {
        if !self.whole {
            return Err(Error::BadOption("the transaction was not planned to swap"));
        }
        for number in self.buckets() {
            self.bucket(*number, Access::Write)?.swap(one, other)?;
        }
        // Every key of both may be another one.
        let told = [one, other].map(|db| News {
            nodes: u64::MAX,
            message: Message::Flush { db: Some(db) },
        });
        self.news.borrow_mut().extend(told);
        Ok(())
    }
}

impl<M: Memory> Bucket<'_, M> {
    fn swap(&mut self, one: u8, other: u8) -> Result<()> {
        let flushes = self.flushes()?;
        if self.head().epoch() < flushes.epoch && !self.is_empty() {
            // Else a flush of one database would take what has come from the other.
            self.refresh()?;
        }
        let of_these = |page: &Page<'_>| page.records().any(|r| [one, other].contains(&r.db()));
        let mut any = false;
        self.all_pages(of_these, |found| any |= found)?;
        if !any {
            return Ok(());
        }
        let stamp = self.head().version() + 1;
        let mut pair: Pair = [one, other].map(|db| (db, Counts::default()));
        let mut next = Some(At::Head);
        for _ in 0..MAX_CHAIN {
            let Some(at) = next else {
                break;
            };
            next = At::next(self.change(at, |page| {
                swap_in(page, &mut pair, stamp);
                page.page().next()
            })?);
        }
        self.change_head(|page| {
            page.set_version(stamp);
            page.set_deleted(stamp);
        })?;
        let [(_, lost), (_, won)] = pair;
        let changes = [
            (one, won.plus(lost.negative())),
            (other, lost.plus(won.negative())),
        ];
        changes
            .into_iter()
            .try_for_each(|(db, change)| self.count(db, flushes.era(db).flushed, change))
    }

    fn is_empty(&self) -> bool {
        self.head().count() == 0 && self.head().next() == 0
    }
}

/// Swaps them in a page, and counts what each had there.
fn swap_in(page: &mut PageMut<'_, '_>, pair: &mut Pair, stamp: u64) {
    let mut at = crate::layout::page::HEADER;
    while let Some(record) = page.page().record_from(at) {
        if let Some(had) = pair.iter().position(|(db, _)| *db == record.db()) {
            let (to, _) = pair[1 - had];
            let counts = &mut pair[had].1;
            *counts = counts.plus(Counts::record(true, record.expiry != 0));
            page.set_record_db(&record, to, stamp);
        }
        at += record.size;
    }
}
