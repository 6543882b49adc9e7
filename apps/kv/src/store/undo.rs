//! Undoing what a transaction has written, so that it can run again with more buckets.
//!
//! Buckets are changed in place. A holder that may have to begin anew keeps a journal: of every
//! page what it was before its first change, of values that are changed where they lie the bytes
//! that were written over, what was counted, what memory was taken. Memory that it gives back is
//! given back when its buckets have been left, unless it took it itself: until then the old pages
//! may point there. All of that is this node's, so it costs no packet.
//!
//! What is put back is what others would have seen, but for two words of a bucket's head page: its
//! version goes on, so that none comes twice, and a node that has begun to watch it goes on.
//!
//! A node that dies meanwhile leaves what it would have left without a journal.

use std::cell::RefMut;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use super::bucket::Bucket;
use super::bus::{Message, News};
use super::collection::Place;
use super::core::Core;
use super::held::Held;
use super::lock::Scope;
use super::value::Extents;
use crate::error::{Error, Result};
use crate::layout::counters::Counts;
use crate::layout::page::Extent;
use crate::memory::{Access, Memory};

/// Bytes that a journal keeps, about; what writes over more cannot be undone.
const MOST: usize = 64 << 20;
/// What an entry of a journal takes besides its bytes, about.
const ENTRY: usize = 48;

/// What a holder has changed since it began to keep this.
#[derive(Default)]
pub(crate) struct Journal {
    /// The heads of buckets, by their numbers, as far as they were in use. Empty: never written.
    heads: HashMap<usize, Vec<u8>>,
    /// Other pages, by their addresses.
    pages: HashMap<u64, Vec<u8>>,
    /// Parts of values, the latest last.
    bytes: Vec<(u64, Vec<u8>)>,
    /// Memory taken: its length by its address.
    fresh: HashMap<u64, usize>,
    /// Memory to be given back.
    freed: Vec<(u64, usize)>,
    /// By database and the flush that it counts from.
    counts: HashMap<(u8, u64), Counts>,
    /// News that were there before.
    news: usize,
    /// Bytes that all of this takes, about.
    size: usize,
    /// It is not complete.
    given_up: bool,
}

impl Journal {
    fn grow(&mut self, bytes: usize) {
        self.size += ENTRY + bytes;
        if self.size > MOST {
            self.give_up();
        }
    }

    /// Forgets everything but what is to be given back.
    fn give_up(&mut self) {
        *self = Journal {
            freed: std::mem::take(&mut self.freed),
            given_up: true,
            ..Journal::default()
        };
    }
}

impl<M: Memory> Held<'_, M> {
    /// From now on what is changed can be undone.
    pub fn keep_journal(&mut self) {
        let news = self.news.get_mut().len();
        *self.journal.get_mut() = Some(Box::new(Journal {
            news,
            ..Journal::default()
        }));
    }

    fn journal(&self) -> Option<RefMut<'_, Journal>> {
        let journal = RefMut::filter_map(self.journal.borrow_mut(), |journal| {
            journal.as_deref_mut().filter(|journal| !journal.given_up)
        });
        journal.ok()
    }

    /// Whether what was changed can be undone.
    pub fn can_undo(&self) -> bool {
        self.journal().is_some()
    }

    /// What happens now cannot be undone.
    pub fn give_up_journal(&self) {
        if let Some(mut journal) = self.journal() {
            journal.give_up();
        }
    }

    /// Puts everything back; `false`: it cannot, and everything stays.
    ///
    /// # Errors
    /// When the memory fails. What died with nodes is no error: whoever looks finds out.
    pub fn undo(&self) -> Result<bool> {
        let Some(journal) = self
            .journal()
            .map(|mut journal| std::mem::take(&mut *journal))
        else {
            return Ok(false);
        };
        // What is changed from here on is not noted.
        self.journal.take();
        let mut outcome = Ok(());
        let mut note = |done: Result<()>| match done {
            Err(error) if !error.is_node_lost() && outcome.is_ok() => outcome = Err(error),
            _ => {}
        };
        let memory = &self.core.memory;
        let parts = journal
            .bytes
            .iter()
            .rev()
            .map(|(addr, bytes)| (addr, bytes));
        for (addr, bytes) in parts.chain(&journal.pages) {
            note(memory.write(*addr, bytes).map_err(Error::from));
        }
        for (number, bytes) in &journal.heads {
            let put = |mut bucket: Bucket<'_, M>| bucket.put_back(bytes);
            note(self.bucket(*number, Access::Write).and_then(put));
        }
        for ((db, flushed), counts) in &journal.counts {
            note(self.core.count(*db, *flushed, counts.negative()));
        }
        for (addr, len) in &journal.fresh {
            note(memory.free(*addr, *len).map_err(Error::from));
        }
        self.forget_news(journal.news);
        outcome.map(|()| true)
    }

    /// Nothing is told of what was undone, but for what is not.
    fn forget_news(&self, before: usize) {
        let mut at = 0;
        self.news.borrow_mut().retain(|News { message, .. }| {
            at += 1;
            at <= before || matches!(message, Message::Flush { db: None })
        });
    }

    /// Gives back what was kept for the case of an undoing, when the buckets have been left.
    pub fn settle_journal(&self) {
        let Some(journal) = self.journal.take() else {
            return;
        };
        for (addr, len) in journal.freed {
            // What cannot be given back is lost, as what a node had not given back when it died.
            let _ = self.core.memory.free(addr, len);
        }
    }
}

impl<'a, M: Memory> Scope<'a, M> {
    #[inline]
    fn journal(&self) -> Option<RefMut<'a, Journal>> {
        self.0.and_then(Held::journal)
    }

    /// Memory was taken, to which something that is changed will point.
    #[inline]
    pub fn note_fresh(&self, addr: u64, len: usize) {
        if let Some(mut journal) = self.journal() {
            journal.fresh.insert(addr, len);
            journal.grow(0);
        }
    }

    /// [`Self::note_fresh`], of nodes of collections.
    pub fn note_nodes(&self, places: &[Place]) {
        for place in places {
            self.note_fresh(place.addr, place.len);
        }
    }
}

impl<M: Memory> Core<M> {
    /// Gives memory back to which nothing points any more.
    #[inline]
    pub fn release(&self, scope: Scope<'_, M>, addr: u64, len: usize) -> Result<()> {
        if let Some(mut journal) = scope.journal()
            && journal.fresh.remove(&addr).is_none()
        {
            journal.freed.push((addr, len));
            journal.grow(0);
            return Ok(());
        }
        Ok(self.memory.free(addr, len)?)
    }

    /// Frees what a change left behind.
    pub fn free(&self, scope: Scope<'_, M>, extents: &Extents) -> Result<()> {
        for extent in extents.iter() {
            self.release(scope, extent.addr, extent.capacity)?;
        }
        for (kind, head) in extents.collections() {
            self.free_nodes(scope, *kind, head)?;
        }
        Ok(())
    }
}

impl<'a, M: Memory> Bucket<'a, M> {
    /// The head page is about to be changed.
    #[inline]
    pub fn note_head(&self) {
        if let Some(journal) = self.scope().journal() {
            self.keep_head(journal);
        }
    }

    #[cold]
    fn keep_head(&self, mut journal: RefMut<'_, Journal>) {
        if let Entry::Vacant(entry) = journal.heads.entry(self.number) {
            let head = self.head();
            let len = if head.initialized() { head.used() } else { 0 };
            let mut bytes = vec![0; len];
            head.view.read(0, &mut bytes);
            entry.insert(bytes);
            journal.grow(len);
        }
    }

    /// A page in memory is about to be changed.
    pub fn note_page(&self, addr: u64) -> Result<()> {
        let Some(mut journal) = self.scope().journal() else {
            return Ok(());
        };
        if !journal.fresh.contains_key(&addr) && !journal.pages.contains_key(&addr) {
            let mut bytes = vec![0; self.core.geometry.page];
            self.core.memory.read(addr, &mut bytes)?;
            journal.grow(bytes.len());
            journal.pages.insert(addr, bytes);
        }
        Ok(())
    }

    /// A part of a value is about to be written over, where it lies.
    pub fn note_part(&self, extent: Extent, part: Range<usize>) -> Result<()> {
        let Some(mut journal) = self.scope().journal() else {
            return Ok(());
        };
        if !part.is_empty() && !journal.fresh.contains_key(&extent.addr) {
            let (addr, mut bytes) = (extent.addr + part.start as u64, vec![0; part.len()]);
            self.core.memory.read(addr, &mut bytes)?;
            journal.grow(bytes.len());
            journal.bytes.push((addr, bytes));
        }
        Ok(())
    }

    /// Adds to this node's counters what a change of the bucket is about.
    #[inline]
    pub fn count(&self, db: u8, flushed: u64, change: Counts) -> Result<()> {
        if let Some(mut journal) = self.scope().journal() {
            let counts = journal.counts.entry((db, flushed)).or_default();
            *counts = counts.plus(change);
        }
        self.core.count(db, flushed, change)
    }
}

#[cfg(test)]
mod tests;
