//! Room for several records before the first of them is stored,
//! so that running out of memory on the way cannot leave some of them stored and others not.

use super::bucket::{At, Bucket};
use super::core::Core;
use super::lock::Scope;
use super::lookup::MAX_CHAIN;
use crate::error::{Error, Result};
use crate::layout::page::HEADER;
use crate::memory::Memory;

/// A bucket's pages, as far as room is concerned.
struct Room {
    last: At,
    pages: usize,
    /// Bytes free in the page that has most.
    best: usize,
}

impl<M: Memory> Core<M> {
    /// Makes sure that held buckets have room for records of these sizes, given as (hash, bytes).
    pub fn reserve(&self, scope: Scope<'_, M>, sizes: &[(u64, usize)]) -> Result<()> {
        let Some(held) = scope.0 else {
            return Ok(());
        };
        let owned = sizes
            .iter()
            .map(|(hash, size)| Ok((held.owner(*hash)?, *size)));
        let mut sizes = owned.collect::<Result<Vec<_>>>()?;
        sizes.sort_unstable();
        for group in sizes.chunk_by(|a, b| a.0 == b.0) {
            let total = group.iter().map(|(_, size)| size).sum();
            self.writing(scope, group[0].0, |bucket| bucket.reserve(total))?;
        }
        Ok(())
    }
}

impl<M: Memory> Bucket<'_, M> {
    fn reserve(&mut self, total: usize) -> Result<()> {
        let page = self.core.geometry.page;
        if page - self.head().used() >= total {
            return Ok(());
        }
        let mut room = self.room()?;
        if room.best >= total {
            return Ok(());
        }
        // Records put one after the other where they fit fill all pages but one to half at least.
        for _ in 0..=2 * total / (page - HEADER) {
            room.last = self.grow(room.last, room.pages)?;
            room.pages += 1;
        }
        Ok(())
    }

    fn room(&self) -> Result<Room> {
        let mut room = Room {
            last: At::Head,
            pages: 0,
            best: 0,
        };
        let mut next = Some(At::Head);
        while let Some(at) = next {
            if room.pages == MAX_CHAIN {
                return Err(Error::Corrupt("a chain of pages does not end"));
            }
            let (used, behind) = self.look(at, |page| (page.used(), page.next()))?;
            room.best = room.best.max(self.core.geometry.page - used);
            room.pages += 1;
            (room.last, next) = (at, At::next(behind));
        }
        Ok(room)
    }
}
