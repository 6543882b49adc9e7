//! Cleaning a bucket: what flushes and time have ended leaves its pages,
//! empty pages leave the chain.

use std::sync::atomic::Ordering::Relaxed;

use super::bucket::{At, Bucket};
use super::lookup::MAX_CHAIN;
use super::value::Extents;
use crate::command::events::{EXPIRED, expiry_channels};
use crate::error::Result;
use crate::layout::counters::{Counts, is_uncounted};
use crate::layout::page::Record;
use crate::layout::page_mut::PageMut;
use crate::layout::superblock::{ALL_DATABASES, Flushes};
use crate::memory::Memory;
use crate::{DATABASES, Error};

/// What cleaning found so far.
#[derive(Default)]
struct Cleaned {
    counts: [Counts; ALL_DATABASES],
    freed: Extents,
    removed: bool,
    /// Keys that clients see and whose time was over.
    expired: u64,
    /// Keys that have gone, by database, if somebody wants to hear of it.
    gone: Vec<(u8, Vec<u8>, bool)>,
    /// The first expiry among what stays, 0 for none.
    soonest: u64,
}

/// What decides whether a record goes.
struct Broom<'a> {
    flushes: &'a Flushes,
    /// The last flush that has been applied to the bucket.
    epoch: u64,
    now: u64,
    /// The nodes that want to hear of keys that go, as bits.
    watchers: u64,
    /// Keys that expire are to be told of, in which classes.
    events: u64,
}

impl Broom<'_> {
    fn flushed(&self, record: &Record) -> bool {
        self.flushes
            .flushed
            .get(usize::from(record.db()))
            .is_none_or(|flushed| *flushed > self.epoch)
    }

    /// Removes what is over from a page; says how many records stay and which page is next.
    fn sweep(&self, page: &mut PageMut<'_, '_>, cleaned: &mut Cleaned) -> (usize, u64) {
        let mut at = crate::layout::page::HEADER;
        while let Some(record) = page.page().record_from(at) {
            let flushed = self.flushed(&record);
            if !flushed && !record.expired(|| self.now) {
                if record.expiry != 0 && (cleaned.soonest == 0 || record.expiry < cleaned.soonest) {
                    cleaned.soonest = record.expiry;
                }
                at += record.size;
                continue;
            }
            if !flushed {
                // A flush has already taken its records off the books.
                let counts = &mut cleaned.counts[usize::from(record.db())];
                *counts = counts.plus(Counts::record(false, record.expiry != 0));
                cleaned.expired += u64::from(!is_uncounted(record.db()));
            }
            cleaned.removed = true;
            cleaned.freed.push_record(&page.page(), &record);
            if self.watchers != 0 || self.events != 0 && !flushed {
                let mut key = vec![0; record.key_len()];
                page.page().view.read(record.key_at(), &mut key);
                cleaned.gone.push((record.db(), key, !flushed));
            }
            page.remove(&record);
        }
        (page.page().count(), page.page().next())
    }
}

/// The classes, if those are among them that tell of keys that expire.
fn expiry_events(classes: u64) -> u64 {
    if classes & EXPIRED != 0 { classes } else { 0 }
}

impl<M: Memory> Bucket<'_, M> {
    /// A key is gone because its time was over, which is published when the lock has been left.
    fn note_expired(&mut self, classes: u64, db: u8, key: &[u8]) -> Result<()> {
        for (channel, payload) in expiry_channels(classes, db, key) {
            let (_, news) = self.core.published(false, &channel, &payload)?;
            self.news.push(news);
        }
        Ok(())
    }

    /// Cleans the bucket, and gives its page back if nothing is left and no write has come since
    /// the last flush.
    pub fn clean(&mut self) -> Result<()> {
        let written = self.head().epoch();
        self.refresh()?;
        self.give_page_back(written)
    }

    /// The same, of a bucket that is clean.
    pub fn vacate(&mut self) -> Result<()> {
        self.give_page_back(self.head().epoch())
    }

    /// The page is as if never written, if it is empty, and was written last when
    /// `written` was the newest flush and is not any more. Who has been told that a key is absent
    /// has the number of the newest flush ([`super::Mark`]): pages that go once a flush at most
    /// cannot return to a value that a client remembers.
    fn give_page_back(&mut self, written: u64) -> Result<()> {
        let newest = self.flushes()?.epoch;
        let head = self.head();
        // A bucket that was split must go on saying so.
        let whole = !head.is_doubtful() && self.is_unsplit_root();
        let empty = whole && head.count() == 0 && head.next() == 0 && head.watchers() == 0;
        if empty && written < newest {
            return self.give_up_head();
        }
        Ok(())
    }

    /// Cleans the bucket.
    #[cold]
    pub fn refresh(&mut self) -> Result<()> {
        let flushes = self.flushes()?;
        let broom = Broom {
            flushes: &flushes,
            epoch: self.head().epoch(),
            now: self.core.clock.now(),
            watchers: self.head().watchers() | flushes.watchers,
            events: expiry_events(self.core.events()?),
        };
        let mut cleaned = Cleaned::default();
        let (mut kept, mut at) = (At::Head, At::Head);
        for round in 0.. {
            if round == MAX_CHAIN {
                return Err(Error::Corrupt("a chain of pages does not end"));
            }
            let (left, next) = self.change(at, |page| broom.sweep(page, &mut cleaned))?;
            match at {
                At::Memory(addr) if left == 0 => {
                    self.change(kept, |page| page.set_next(next))?;
                    let len = self.core.geometry.page;
                    self.core.release(self.scope(), addr, len)?;
                }
                at => kept = at,
            }
            let Some(behind) = At::next(next) else {
                break;
            };
            at = behind;
        }
        for (db, key, expired) in std::mem::take(&mut cleaned.gone) {
            // Of a flush all have heard.
            if expired && broom.watchers != 0 {
                self.note(broom.watchers, db, &key);
            }
            if expired && broom.events != 0 && usize::from(db) < DATABASES {
                self.note_expired(broom.events, db, &key)?;
            }
        }
        self.finish(&flushes, &cleaned)
    }

    fn finish(&mut self, flushes: &Flushes, cleaned: &Cleaned) -> Result<()> {
        self.change_head(|page| {
            let version = page.page().version() + 1;
            page.set_version(version);
            if cleaned.removed {
                page.set_deleted(version);
            }
            page.set_epoch(flushes.epoch);
            page.set_soonest(cleaned.soonest);
        })?;
        for (db, counts) in cleaned.counts.iter().enumerate() {
            self.count(db as u8, flushes.flushed[db], *counts)?;
        }
        self.core.expired.fetch_add(cleaned.expired, Relaxed);
        self.core.free(self.scope(), &cleaned.freed)
    }
}
