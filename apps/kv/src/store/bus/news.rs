//! Watching buckets: which nodes want to hear of changes of their keys, and telling them.
//!
//! A bucket's head page says which nodes watch it. A node enters its bit inside of the bucket's
//! lock, to write; whoever changes a key of the bucket later sees it there, and tells the node once
//! the lock is left and before its client is answered. A node takes its bit back when it hears of
//! keys of a bucket of which it watches none. So no change goes unheard between a look at a key
//! after [`Db::watch_changes`] and the next.

use super::changes;
use super::message::Message;
use crate::error::Result;
use crate::layout::counters::Counts;
use crate::layout::page::KeyId;
use crate::memory::Memory;
use crate::store::Db;
use crate::store::bucket::Bucket;
use crate::store::core::Core;
use crate::store::edit::Effects;

/// Something to tell, and which nodes.
pub(crate) struct News {
    pub nodes: u64,
    pub message: Message,
}

impl News {
    /// Any key may have changed, in ways that nobody has noted.
    pub fn everything() -> Self {
        News {
            nodes: u64::MAX,
            message: Message::Flush { db: None },
        }
    }
}

impl<M: Memory> Core<M> {
    #[inline]
    pub fn tell_all(&self, news: &[News]) {
        for news in news {
            self.tell(news.nodes, &news.message);
        }
    }

    fn my_bit(&self) -> u64 {
        1 << self.memory.id()
    }
}

impl<M: Memory> Bucket<'_, M> {
    /// A key of this bucket has changed, which `watchers` want to hear.
    #[cold]
    pub fn note(&mut self, watchers: u64, db: u8, key: &[u8]) {
        let key = key.to_vec();
        self.news.push(News {
            nodes: watchers,
            message: Message::Key { db, key },
        });
    }

    /// [`Bucket::note`], of what an operation has done.
    #[inline]
    pub fn note_effects(&mut self, id: &KeyId<'_>, effects: &Effects, everywhere: u64) {
        if !effects.changed {
            return;
        }
        let watchers = effects.watchers | everywhere;
        if watchers != 0 {
            self.note(watchers, id.db, id.key);
        }
        changes::record(id, effects.counts);
    }

    /// [`Bucket::note`], of a key whose record was just changed.
    #[inline]
    pub fn note_change(&mut self, id: &KeyId<'_>) -> Result<()> {
        let watchers = self.head().watchers() | self.flushes()?.watchers;
        if watchers != 0 {
            self.note(watchers, id.db, id.key);
        }
        changes::record(id, Counts::default());
        Ok(())
    }
}

impl<M: Memory> Db<'_, M> {
    /// This node hears of every change of the key from now on, and of others in its bucket, as long
    /// as it attends. `anew`: the node may be about to leave off.
    pub(crate) fn watch_changes(&self, key: &[u8], anew: bool) -> Result<()> {
        let id = self.id(key)?;
        let bit = self.core.my_bit();
        let watched = |bucket: &Bucket<'_, M>| Ok(bucket.head().watchers() & bit != 0);
        if !anew && self.core.reading_key(self.scope, id.hash, watched)? {
            return Ok(());
        }
        self.core.writing_key(self.scope, id.hash, |bucket| {
            bucket.change_head(|page| page.set_watchers(page.page().watchers() | bit))
        })
    }

    /// The node does not want to hear of changes in the key's bucket, if `still` says so inside of
    /// the bucket's lock.
    pub(crate) fn unwatch_changes(&self, key: &[u8], still: impl FnOnce() -> bool) -> Result<()> {
        let id = self.id(key)?;
        let bit = self.core.my_bit();
        self.core.writing_key(self.scope, id.hash, |bucket| {
            if bucket.head().watchers() & bit != 0 && still() {
                bucket.change_head(|page| page.set_watchers(page.page().watchers() & !bit))?;
            }
            Ok(())
        })
    }

    /// The bucket that a key's bucket came of by splitting: the same for keys of one bucket.
    pub(crate) fn root_of(&self, key: &[u8]) -> usize {
        self.id(key)
            .map_or(0, |id| id.hash as usize & (self.core.map.roots - 1))
    }

    /// The longest key, in bytes.
    pub(crate) fn key_limit(&self) -> usize {
        self.core.geometry.key_max()
    }
}
