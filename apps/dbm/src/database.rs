//! A database: memory, and the lock over all of it.

use crate::error::{DbmError, Result};
use crate::lock::Lock;
use crate::memory::Memory;
use crate::section::{self, Kind, Section};
use crate::{hash, tree};

/// A database under one lock, as one node has it.
///
/// Every method is one section of the lock, and one step for all of the rack. Threads share it.
#[derive(Debug)]
pub struct Database<M, L> {
    memory: M,
    lock: L,
    kind: Kind,
}

/// What [`Database::check`] has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Records.
    pub records: u64,
    /// Pages that have records or lead to them.
    pub pages: u32,
}

impl<M: Memory, L: Lock> Database<M, L> {
    /// Makes an empty one in memory of zeros. Nobody else opens it meanwhile.
    ///
    /// # Errors
    /// [`DbmError::Exists`], [`DbmError::TooSmall`]; those of the rack.
    pub fn create(memory: M, lock: L, kind: Kind) -> Result<Self> {
        section::format(&memory, kind)?;
        Ok(Database { memory, lock, kind })
    }

    /// The one that some node has made in this memory. The lock is the same one.
    ///
    /// # Errors
    /// [`DbmError::NoDatabase`]; those of the rack.
    pub fn open(memory: M, lock: L) -> Result<Self> {
        let kind = section::kind(&memory)?;
        Ok(Database { memory, lock, kind })
    }

    /// How its records are found.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Runs a section beside which only others run that read.
    ///
    /// # Errors
    /// [`DbmError::Lock`], [`DbmError::Torn`]; those of `read` and of the rack.
    pub fn view<R>(&self, read: impl FnOnce(&mut Section<'_>) -> Result<R>) -> Result<R> {
        let mut read = Some(read);
        let mut told = None;
        let taken = self
            .lock
            .shared(&mut || told = read.take().map(|read| self.read(read)));
        taken.map_err(DbmError::Lock)?;
        told.unwrap_or(Err(DbmError::Torn))
    }

    fn read<R>(&self, read: impl FnOnce(&mut Section<'_>) -> Result<R>) -> Result<R> {
        let mut section = Section::begin(&self.memory, self.kind)?;
        let value = read(&mut section);
        // What was wrong with a moment that never was is no error of the reader's.
        section.end()?;
        value
    }

    /// Runs a section beside which no other runs. What it changes is there when it has come to its
    /// end without an error, and else not.
    ///
    /// # Errors
    /// [`DbmError::Lock`], [`DbmError::Torn`]; those of `change` and of the rack.
    pub fn change<R>(&self, change: impl FnOnce(&mut Section<'_>) -> Result<R>) -> Result<R> {
        let mut change = Some(change);
        let mut told = None;
        let taken = self
            .lock
            .exclusive(&mut || told = change.take().map(|change| self.write(change)));
        taken.map_err(DbmError::Lock)?;
        told.unwrap_or(Err(DbmError::Torn))
    }

    fn write<R>(&self, change: impl FnOnce(&mut Section<'_>) -> Result<R>) -> Result<R> {
        let mut section = Section::begin(&self.memory, self.kind)?;
        let value = change(&mut section);
        section.end()?;
        let value = value?;
        section.commit()?;
        Ok(value)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of [`Database::view`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.view(|section| section.get(key))
    }

    /// Gives a key a value; whether it had one.
    ///
    /// # Errors
    /// [`DbmError::Full`], [`DbmError::TooLong`]; those of [`Database::change`].
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.change(|section| section.set(key, value))
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// Those of [`Database::change`].
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        self.change(|section| section.remove(key))
    }

    /// How many records there are.
    ///
    /// # Errors
    /// Those of [`Database::view`].
    pub fn count(&self) -> Result<u64> {
        self.view(|section| section.count())
    }

    /// Looks at all pages, while nobody changes one: every record is where its key says, once, as
    /// many are there as are counted, and every page that was ever used is one of the database's or
    /// free.
    ///
    /// # Errors
    /// [`DbmError::Broken`]; those of [`Database::view`].
    pub fn check(&self) -> Result<Checked> {
        self.view(|section| {
            let (pages, records) = match self.kind {
                Kind::Hash => hash::check(section)?,
                Kind::Tree => tree::check(section)?,
            };
            let (used, free) = section.pages_used()?;
            let broken = |what| Err(DbmError::Broken { what });
            if section.count()? != records {
                return broken("another number of records is counted");
            }
            // The first page is the header.
            if 1 + pages + free != used {
                return broken("a page is lost");
            }
            Ok(Checked { records, pages })
        })
    }
}
