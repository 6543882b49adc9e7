//! Changing a key the long way: all of its bucket's pages are walked.
//!
//! A bucket whose head page is full continues in further pages.
//! No other thread reads or changes any of them while a writer holds the bucket's lock.

use super::bucket::{At, Bucket};
use super::edit::{Current, Edit, Effects, Operation, apply, goes_with, retire, seal, suits};
use super::lookup::MAX_CHAIN;
use super::value::{Meta, Value};
use crate::Error;
use crate::error::Result;
use crate::layout::counters::Counts;
use crate::layout::page::{KeyId, Record, record_size};
use crate::layout::superblock::Era;
use crate::memory::{Memory, MemoryError};

/// A page of a chain.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub at: At,
    pub used: usize,
}

/// A held bucket's pages, and where the key's record is.
pub(crate) struct Chain {
    pub pages: Vec<Link>,
    pub version: u64,
    pub epoch: u64,
    pub soonest: u64,
    /// Index into `pages`, and the record.
    pub found: Option<(usize, Record)>,
    /// The record's value when it lies in the page.
    pub inline: Vec<u8>,
}

impl<M: Memory> Bucket<'_, M> {
    /// Walks the bucket's pages, all of them.
    pub fn walk(&self, id: &KeyId<'_>) -> Result<Chain> {
        let mut chain = Chain {
            pages: Vec::new(),
            version: 0,
            epoch: 0,
            soonest: 0,
            found: None,
            inline: Vec::new(),
        };
        let (mut next, mut value) = (Some(At::Head), Vec::new());
        while let Some(at) = next {
            if chain.pages.len() == MAX_CHAIN {
                return Err(Error::Corrupt("a chain of pages does not end"));
            }
            let (found, used, behind, head) = self.look(at, |page| {
                let found = page.find(id);
                value.clear();
                if let Some(record) = found.as_ref().filter(|r| r.extent.is_none()) {
                    let (view, at, len) = (page.view, record.value_at(), record.val_len);
                    Value::Window { view, at, len }.append_to(&mut value);
                }
                let head = [page.version(), page.epoch(), page.soonest()];
                (found, page.used(), page.next(), head)
            })?;
            if at == At::Head {
                [chain.version, chain.epoch, chain.soonest] = head;
            }
            if let Some(record) = found {
                chain.found = Some((chain.pages.len(), record));
                std::mem::swap(&mut chain.inline, &mut value);
            }
            chain.pages.push(Link { at, used });
            next = At::next(behind);
        }
        Ok(chain)
    }

    /// [`Bucket::walk`], after removing what flushes and, when the chain would otherwise grow,
    /// time have ended.
    pub fn walk_clean(&mut self, id: &KeyId<'_>) -> Result<Chain> {
        let chain = self.walk(id)?;
        let overdue = chain.soonest != 0 && chain.soonest <= self.core.clock.now();
        if overdue || chain.epoch < self.flushes()?.epoch {
            self.refresh()?;
            return self.walk(id);
        }
        Ok(chain)
    }

    /// Does an operation.
    #[cold]
    pub fn edit_chain(&mut self, id: &KeyId<'_>, op: &mut dyn Operation) -> Result<Effects> {
        let mut patience = self.core.patience();
        let (chain, live, fetched) = loop {
            match self.survey_for(id, op) {
                Ok(found) => break found,
                Err(error) => {
                    self.recover(error)?;
                    patience.pause()?;
                }
            }
        };
        let current = live.map(|record| {
            let value = match (record.extent, &fetched) {
                (None, _) => Value::Bytes(&chain.inline),
                (Some(_), Some(bytes)) => Value::Bytes(bytes),
                (Some(extent), None) => Value::Remote(extent),
            };
            Current {
                meta: Meta::from(&record),
                value,
            }
        });
        if !suits(op, current.as_ref()) {
            return Err(Error::WrongType);
        }
        let edit = op.decide(current.as_ref());
        self.apply_chain(id, &chain, edit, op)
    }

    /// All that an operation looks at before it changes anything.
    fn survey_for(
        &mut self,
        id: &KeyId<'_>,
        op: &dyn Operation,
    ) -> Result<(Chain, Option<Record>, Option<Vec<u8>>)> {
        let chain = self.walk_clean(id)?;
        let live = chain
            .found
            .map(|(_, record)| record)
            .filter(|r| !r.expired(|| self.core.clock.now()));
        let fetched = self.fetch(live.as_ref(), op)?;
        Ok((chain, live, fetched))
    }

    /// The bytes of a value in an extent, for an operation that wants them.
    fn fetch(&self, record: Option<&Record>, op: &dyn Operation) -> Result<Option<Vec<u8>>> {
        let Some(Record {
            extent: Some(extent),
            val_len,
            ..
        }) = record.filter(|_| op.wants_value())
        else {
            return Ok(None);
        };
        let mut bytes = vec![0; *val_len];
        self.core.memory.read(extent.addr, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Makes a change in a chain just walked.
    pub fn apply_chain(
        &mut self,
        id: &KeyId<'_>,
        chain: &Chain,
        edit: Edit,
        op: &dyn Operation,
    ) -> Result<Effects> {
        let Era {
            flushed, watchers, ..
        } = self.flushes()?.era(id.db);
        let mut effects = match (edit, chain.found) {
            (_, Some((page, record))) => {
                match self.apply_at(chain, page, id, Some(&record), edit, op)? {
                    Some(effects) => effects,
                    None => self.relocate(id, chain, Some((page, &record)), edit, op)?,
                }
            }
            (Edit::Put { .. }, None) => self.relocate(id, chain, None, edit, op)?,
            (Edit::Escalate, None) => Effects {
                escalated: true,
                ..Effects::default()
            },
            (_, None) => Effects::default(),
        };
        let expiry = match edit {
            Edit::Put { expiry } | Edit::Expire(expiry) => expiry,
            _ => 0,
        };
        self.change_head(|page| {
            let nearer = page.note_expiry(expiry);
            effects.counts = effects.counts.plus(Counts::nearer(nearer));
            seal(page, &mut effects, chain.version + 1);
        })?;
        if self.core.is_unbalanced(&self.head(), &effects) {
            self.unbalanced = Some(id.hash);
        }
        self.note_effects(id, &effects, watchers);
        self.count(id.db, flushed, effects.counts)?;
        Ok(effects)
    }

    /// [`apply`] in one page of the chain.
    fn apply_at(
        &mut self,
        chain: &Chain,
        page: usize,
        id: &KeyId<'_>,
        old: Option<&Record>,
        edit: Edit,
        op: &dyn Operation,
    ) -> Result<Option<Effects>> {
        let stamp = chain.version + 1;
        self.change(chain.pages[page].at, |page| {
            apply(page, id, old, edit, op, stamp)
        })
    }

    /// Puts the record in a page with room, a new one if need be, and only then takes the old one
    /// out.
    fn relocate(
        &mut self,
        id: &KeyId<'_>,
        chain: &Chain,
        old: Option<(usize, &Record)>,
        edit: Edit,
        op: &dyn Operation,
    ) -> Result<Effects> {
        let size = record_size(id.key.len(), op.payload().stored_len());
        let skip = old.map(|(page, _)| page);
        let room = chain.pages.iter().enumerate();
        let mut room = room
            .filter(|(i, link)| Some(*i) != skip && link.used + size <= self.core.geometry.page);
        let at = match room.next() {
            Some((_, link)) => link.at,
            None => {
                let last = chain.pages[chain.pages.len() - 1].at;
                self.grow(last, chain.pages.len())?
            }
        };
        let stamp = chain.version + 1;
        let put = self.change(at, |page| apply(page, id, None, edit, op, stamp))?;
        let mut effects = put.ok_or(Error::Corrupt("a page has less room than it said"))?;
        if let Some((page, record)) = old {
            self.change(chain.pages[page].at, |page| page.remove(record))?;
            let nodes = goes_with(op, record).then(|| chain.inline.clone());
            retire(&mut effects, record, &op.payload(), nodes);
        }
        Ok(effects)
    }

    /// Adds an empty page behind `last`, the last of the bucket's `pages` pages.
    pub fn grow(&mut self, last: At, pages: usize) -> Result<At> {
        if pages >= MAX_CHAIN {
            return Err(MemoryError::OutOfMemory.into());
        }
        let addr = self.core.alloc_near(self.home(), self.core.geometry.page)?;
        self.scope().note_fresh(addr, self.core.geometry.page);
        self.change(At::Memory(addr), |page| page.format())?;
        self.change(last, |page| page.set_next(addr))?;
        Ok(At::Memory(addr))
    }
}
