//! A map in an arena: an array of lists.

use super::arena::Arena;
use super::chain::{self, Link};
use super::pointer::{ArenaSlot, Pointer};
use super::storing::ArenaWriter;
use crate::bytes::value::Value;
use crate::error::ArenaError;
use crate::object::map::hash::hash;
use std::sync::Arc;

/// Buckets that lie together.
const PAGE: usize = 1024;
/// The first word of a map: how many buckets it has. Pointers to its pages follow.
type Head = [u64; 64];
type Page = [u64; PAGE];
/// Buckets of a map, at most.
const MOST: usize = (size_of::<Head>() / 8 - 1) * PAGE;

/// Keys with values, found by a hash of their bytes. It begins in a slot of an [`Arena`], and has
/// as many buckets as it was made with. All who change it do so under one lock.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::bounded::{Arena, ArenaSpec, Map};
/// use rackmem::locked::Lock;
/// use std::time::Duration;
///
/// # let path = std::env::temp_dir().join(format!("rackmem-doc-map-{}", std::process::id()));
/// let rack = Rack::local(2)?;
/// let spec = ArenaSpec::new(&path, 2 << 20).bound(Duration::from_secs(60)).emulated();
/// let here = Arena::create(&rack.node(0), &spec)?;
/// let lock = Lock::create(&rack.node(0), ())?;
/// let mut writer = here.writer(&lock)?;
/// let users: Map<u64, [u8; 4]> = Map::create(&here, &mut writer, 0, 1024)?;
/// users.insert(&mut writer, &7, b"anna")?;
///
/// let there = Arena::open(&rack.node(1), &spec)?;
/// let same: Map<u64, [u8; 4]> = Map::open(&there, 0)?.expect("it was made");
/// assert_eq!(same.get(&7)?, Some(*b"anna"));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Map<K: Value, V: Value> {
    arena: Arena,
    buckets: Arc<[ArenaSlot<Link<K, V>>]>,
}

impl<K: Value, V: Value> Clone for Map<K, V> {
    fn clone(&self) -> Self {
        Map {
            arena: self.arena.clone(),
            buckets: self.buckets.clone(),
        }
    }
}

impl<K: Value + Eq, V: Value> Map<K, V> {
    /// An empty one in this slot, with so many buckets: 1 to 64,512. What was in the slot stays
    /// where it is, and is found no more.
    ///
    /// # Errors
    /// [`ArenaError::ObjectTooLarge`] with more buckets than possible; those of
    /// [`ArenaWriter::alloc`] and [`ArenaWriter::assign`].
    pub fn create<L: Value>(
        arena: &Arena,
        writer: &mut ArenaWriter<'_, L>,
        nth: u64,
        buckets: usize,
    ) -> Result<Self, ArenaError> {
        if !(1..=MOST).contains(&buckets) {
            let (len, most) = (buckets.saturating_mul(8), MOST * 8);
            return Err(ArenaError::ObjectTooLarge { len, most });
        }
        let slot: ArenaSlot<Head> = arena.slot(nth)?;
        let mut words = [0; size_of::<Head>() / 8];
        words[0] = buckets as u64;
        let head = writer.alloc(&words)?;
        writer.assign(slot, head)?;
        let head = writer.load(slot)?;
        for page in 0..buckets.div_ceil(PAGE) {
            let slot = head.and_then(|head| head.slot::<Page>(8 * (page + 1)));
            let empty = writer.alloc(&[0; PAGE])?;
            if let Some(slot) = slot {
                writer.assign(slot, empty)?;
            }
        }
        // Not in a section: what a writer reads is never late.
        let made = Self::of(arena, slot, writer.get(slot)?)?;
        made.ok_or_else(|| Self::no_map(slot))
    }

    /// The one that begins in this slot; none where none was made, or not to its end.
    ///
    /// # Errors
    /// Those of [`Arena::enter`] and [`ArenaSection::finish`](super::ArenaSection::finish);
    /// [`ArenaError::BadPointer`] where the slot holds something else than a map.
    pub fn open(arena: &Arena, nth: u64) -> Result<Option<Self>, ArenaError> {
        let slot: ArenaSlot<Head> = arena.slot(nth)?;
        let section = arena.enter()?;
        let head = section.lookup_lazily(|section| section.get(slot))?;
        section.finish()?;
        Self::of(arena, slot, head)
    }

    /// The one that begins so.
    fn of(
        arena: &Arena,
        slot: ArenaSlot<Head>,
        head: Option<Head>,
    ) -> Result<Option<Self>, ArenaError> {
        let Some(head) = head else {
            return Ok(None);
        };
        let count = usize::try_from(head[0])
            .ok()
            .filter(|count| (1..=MOST).contains(count));
        let count = count.ok_or_else(|| Self::no_map(slot))?;
        let bucket = |nth: usize| {
            let page = Pointer::<Page>::from_word(head[1 + nth / PAGE])?;
            page.slot(nth % PAGE * 8)
        };
        let buckets: Option<Arc<[_]>> = (0..count).map(bucket).collect();
        let arena = arena.clone();
        Ok(buckets.map(|buckets| Map { arena, buckets }))
    }

    fn no_map(slot: ArenaSlot<Head>) -> ArenaError {
        ArenaError::BadPointer {
            line: slot.line().line,
            len: size_of::<Head>(),
        }
    }

    fn bucket(&self, key: &K) -> ArenaSlot<Link<K, V>> {
        let hash = hash(0, key.as_bytes());
        self.buckets[(hash % self.buckets.len() as u64) as usize]
    }

    /// The value of a key, old by the bound at most. A key that is not found is looked up again
    /// past the cache: what was inserted before this call is found.
    ///
    /// # Errors
    /// Those of [`Map::open`].
    pub fn get(&self, key: &K) -> Result<Option<V>, ArenaError> {
        let (section, bucket) = (self.arena.enter()?, self.bucket(key));
        let found = match chain::find(&section, bucket, key)? {
            None => section.lookup_lazily(|section| chain::find(section, bucket, key))?,
            found => found,
        };
        section.finish()?;
        Ok(found)
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
        chain::insert(writer, self.bucket(key), (key, value))
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
        chain::remove(writer, self.bucket(key), key)
    }
}
