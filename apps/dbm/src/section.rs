//! What happens while the lock is held: pages are read once, changed in memory of the thread, and
//! written when the section has come to its end. So a section that fails changes nothing.

use crate::error::{DbmError, Result};
use crate::memory::Memory;
use crate::page::{MAX_KEY, MAX_VALUE, Page};
use crate::{hash, tree};
use std::collections::BTreeMap;

/// How records are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// By the hash of their keys: chains of pages.
    Hash,
    /// In the order of their keys: a tree of pages (a B⁺-tree).
    Tree,
}

impl Kind {
    /// All of them, with the names used in commands and reports.
    pub const ALL: [(Kind, &'static str); 2] = [(Kind::Hash, "hash"), (Kind::Tree, "tree")];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Hash => "hash",
            Kind::Tree => "tree",
        }
    }
}

/// Words of the first page.
const MAGIC: usize = 0;
/// The kind, and below it how many pages there are.
const SHAPE: usize = 1;
/// Odd while pages are being written; otherwise it rises by two with every section that has
/// written some.
const STAMP: usize = 2;
/// Pages that have ever been used, and below it the first one that is free; 0: none.
const ROOM: usize = 3;
/// Records.
const COUNT: usize = 4;

const NAME: u64 = u64::from_le_bytes(*b"rackdbm1");
/// The header, a root or a bucket, and what a root needs to grow for the first time.
const LEAST: u32 = 4;

/// Which pages are in use, and how many records there are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Room {
    used: u32,
    free: u32,
    count: u64,
}

/// A database while its lock is held.
pub struct Section<'a> {
    memory: &'a dyn Memory,
    kind: Kind,
    pages: BTreeMap<u32, Held>,
    /// As it was when it was first needed, and as it is to be.
    room: Option<(Room, Room)>,
    stamp: u64,
}

/// A page that was read.
struct Held {
    page: Page,
    is_changed: bool,
}

/// Makes an empty database of memory of zeros.
pub(crate) fn format(memory: &dyn Memory, kind: Kind) -> Result<()> {
    if memory.load(MAGIC)? == NAME {
        return Err(DbmError::Exists);
    }
    if memory.pages() < LEAST {
        return Err(DbmError::TooSmall { least: LEAST });
    }
    memory.store(ROOM, u64::from(hash::first(kind, memory.pages())) << 32)?;
    memory.store(SHAPE, (kind as u64) << 32 | u64::from(memory.pages()))?;
    memory.store(MAGIC, NAME)
}

/// Which kind of database is in this memory.
pub(crate) fn kind(memory: &dyn Memory) -> Result<Kind> {
    let shape = memory.load(SHAPE)?;
    let known = Kind::ALL.iter().map(|row| row.0);
    let mut is_it = known.filter(|kind| shape >> 32 == *kind as u64);
    if memory.load(MAGIC)? != NAME || shape as u32 != memory.pages() {
        return Err(DbmError::NoDatabase);
    }
    is_it.next().ok_or(DbmError::NoDatabase)
}

impl<'a> Section<'a> {
    /// The lock has just been taken.
    pub(crate) fn begin(memory: &'a dyn Memory, kind: Kind) -> Result<Section<'a>> {
        let stamp = memory.load(STAMP)?;
        if stamp % 2 == 1 {
            return Err(DbmError::Torn);
        }
        Ok(Section {
            memory,
            kind,
            pages: BTreeMap::new(),
            room: None,
            stamp,
        })
    }

    /// The lock is about to be left: nobody else has written meanwhile.
    pub(crate) fn end(&self) -> Result<()> {
        match self.memory.load(STAMP)? == self.stamp {
            true => Ok(()),
            false => Err(DbmError::Torn),
        }
    }

    /// Writes what has changed.
    pub(crate) fn commit(self) -> Result<()> {
        let rooms = self.room.filter(|(was, is)| was != is);
        if rooms.is_none() && !self.pages.values().any(|held| held.is_changed) {
            return Ok(());
        }
        let memory = self.memory;
        memory.store(STAMP, self.stamp + 1)?;
        for (number, held) in self.pages {
            if held.is_changed {
                memory.write(number, held.page.bytes())?;
            }
        }
        if let Some((was, is)) = rooms {
            if (was.used, was.free) != (is.used, is.free) {
                memory.store(ROOM, u64::from(is.used) << 32 | u64::from(is.free))?;
            }
            if was.count != is.count {
                memory.store(COUNT, is.count)?;
            }
        }
        memory.store(STAMP, self.stamp + 2)
    }

    /// Pages of the memory.
    pub(crate) fn size(&self) -> u32 {
        self.memory.pages()
    }

    fn held(&mut self, number: u32) -> Result<&mut Held> {
        let memory = self.memory;
        if number == 0 || number >= memory.pages() {
            let what = "a page is named that there is not";
            return Err(DbmError::Broken { what });
        }
        match self.pages.entry(number) {
            std::collections::btree_map::Entry::Occupied(held) => Ok(held.into_mut()),
            std::collections::btree_map::Entry::Vacant(absent) => {
                let page = Page::of(|bytes| memory.read(number, bytes))?;
                Ok(absent.insert(Held {
                    page,
                    is_changed: false,
                }))
            }
        }
    }

    /// A page, to look at.
    pub(crate) fn page(&mut self, number: u32) -> Result<&Page> {
        self.held(number).map(|held| &held.page)
    }

    /// A page, to change.
    pub(crate) fn edit(&mut self, number: u32) -> Result<&mut Page> {
        let held = self.held(number)?;
        held.is_changed = true;
        Ok(&mut held.page)
    }

    /// Gives a page another content.
    pub(crate) fn put(&mut self, number: u32, page: Page) {
        let is_changed = true;
        self.pages.insert(number, Held { page, is_changed });
    }

    fn room(&mut self) -> Result<&mut Room> {
        if self.room.is_none() {
            let (room, count) = (self.memory.load(ROOM)?, self.memory.load(COUNT)?);
            let room = Room {
                used: (room >> 32) as u32,
                free: room as u32,
                count,
            };
            self.room = Some((room, room));
        }
        // It has just been put there.
        self.room
            .as_mut()
            .map(|rooms| &mut rooms.1)
            .ok_or(DbmError::NoDatabase)
    }

    /// A page that nobody uses, for this content.
    pub(crate) fn take(&mut self, page: Page) -> Result<u32> {
        let Room { used, free, .. } = *self.room()?;
        if free != 0 {
            self.room()?.free = self.page(free)?.next();
            self.put(free, page);
            return Ok(free);
        }
        if used >= self.size() {
            return Err(DbmError::Full);
        }
        self.room()?.used = used + 1;
        self.put(used, page);
        Ok(used)
    }

    /// A page that nobody uses any more.
    pub(crate) fn give_back(&mut self, number: u32) -> Result<()> {
        let mut page = Page::new(0);
        page.set_next(std::mem::replace(&mut self.room()?.free, number));
        self.put(number, page);
        Ok(())
    }

    /// Pages in use, and pages that are free again.
    pub(crate) fn pages_used(&mut self) -> Result<(u32, u32)> {
        let Room { used, mut free, .. } = *self.room()?;
        let mut again = 0;
        while free != 0 && again < self.size() {
            again += 1;
            free = self.page(free)?.next();
        }
        Ok((used, again))
    }

    /// How many records there are.
    ///
    /// # Errors
    /// Those of the rack.
    pub fn count(&mut self) -> Result<u64> {
        Ok(self.room()?.count)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of the rack.
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.kind {
            Kind::Hash => hash::get(self, key),
            Kind::Tree => tree::get(self, key),
        }
    }

    /// Gives a key a value; whether it had one.
    ///
    /// # Errors
    /// [`DbmError::Full`], [`DbmError::TooLong`]; those of the rack.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        for (what, bytes, most) in [("key", key, MAX_KEY), ("value", value, MAX_VALUE)] {
            if bytes.len() > most {
                return Err(DbmError::TooLong { what, most });
            }
        }
        let had = match self.kind {
            Kind::Hash => hash::set(self, key, value)?,
            Kind::Tree => tree::set(self, key, value)?,
        };
        if !had {
            self.room()?.count += 1;
        }
        Ok(had)
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// Those of the rack.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let had = match self.kind {
            Kind::Hash => hash::remove(self, key)?,
            Kind::Tree => tree::remove(self, key)?,
        };
        if had {
            let room = self.room()?;
            room.count = room.count.saturating_sub(1);
        }
        Ok(had)
    }

    /// Calls `each` with records from a key on, as long as it says so: of a tree in the order of
    /// keys, of a hash in no order and all of them, whatever `from` is.
    ///
    /// # Errors
    /// Those of the rack.
    pub fn scan(&mut self, from: &[u8], each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        match self.kind {
            Kind::Hash => hash::scan(self, each),
            Kind::Tree => tree::scan(self, from, each),
        }
    }
}
