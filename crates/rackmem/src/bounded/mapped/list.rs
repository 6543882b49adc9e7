//! A list of keys with values, in an arena.

use super::arena::Arena;
use super::chain::{self, Link};
use super::pointer::ArenaSlot;
use super::storing::ArenaWriter;
use crate::bytes::value::Value;
use crate::error::ArenaError;

/// Keys with values, one after the other, each of which is found by going through them. It begins
/// in a slot of an [`Arena`]; one that was never used is an empty list. All who change it do so
/// under one lock.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::bounded::{Arena, ArenaSpec, List};
/// use rackmem::locked::Lock;
/// use std::time::Duration;
///
/// # let path = std::env::temp_dir().join(format!("rackmem-doc-list-{}", std::process::id()));
/// let rack = Rack::local(1)?;
/// let spec = ArenaSpec::new(&path, 1 << 20).bound(Duration::from_secs(60)).emulated();
/// let arena = Arena::create(&rack.node(0), &spec)?;
/// let lock = Lock::create(&rack.node(0), ())?;
/// let ports: List<u32, [u8; 8]> = List::at(&arena, 0)?;
/// ports.insert(&mut arena.writer(&lock)?, &80, b"http    ")?;
/// assert_eq!(ports.get(&80)?, Some(*b"http    "));
/// assert_eq!(ports.get(&22)?, None);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct List<K: Value, V: Value> {
    arena: Arena,
    head: ArenaSlot<Link<K, V>>,
}

impl<K: Value + Eq, V: Value> List<K, V> {
    /// The one that begins in this slot of the arena.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`] where there is no such slot.
    pub fn at(arena: &Arena, nth: u64) -> Result<Self, ArenaError> {
        let (arena, head) = (arena.clone(), arena.slot(nth)?);
        Ok(List { arena, head })
    }

    /// The value of a key, old by the bound at most. A key that is not found is looked up again
    /// past the cache: what was inserted before this call is found.
    ///
    /// # Errors
    /// Those of [`Arena::enter`] and [`ArenaSection::finish`](super::ArenaSection::finish);
    /// [`ArenaError::BadPointer`] where the slot holds something else than such a list.
    pub fn get(&self, key: &K) -> Result<Option<V>, ArenaError> {
        let section = self.arena.enter()?;
        let found = match chain::find(&section, self.head, key)? {
            None => section.lookup_lazily(|section| chain::find(section, self.head, key))?,
            found => found,
        };
        section.finish()?;
        Ok(found)
    }

    /// All keys with their values, none of which is older than the bound.
    ///
    /// # Errors
    /// Those of [`List::get`].
    pub fn entries(&self) -> Result<Vec<(K, V)>, ArenaError> {
        let section = self.arena.enter()?;
        let all = chain::all(&section, self.head)?;
        section.finish()?;
        Ok(all)
    }

    /// Gives a key a value; the one before.
    ///
    /// # Errors
    /// Those of [`ArenaWriter::alloc`], [`ArenaWriter::assign`] and [`ArenaWriter::free`].
    pub fn insert<L: Value>(
        &self,
        writer: &mut ArenaWriter<'_, L>,
        key: &K,
        value: &V,
    ) -> Result<Option<V>, ArenaError> {
        chain::insert(writer, self.head, (key, value))
    }

    /// Takes a key out; its value.
    ///
    /// # Errors
    /// Those of [`ArenaWriter::assign`] and [`ArenaWriter::free`].
    pub fn remove<L: Value>(
        &self,
        writer: &mut ArenaWriter<'_, L>,
        key: &K,
    ) -> Result<Option<V>, ArenaError> {
        chain::remove(writer, self.head, key)
    }
}
