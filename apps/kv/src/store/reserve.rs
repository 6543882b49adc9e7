//! Room for several records before the first of them is stored, so that running out of memory on the way
//! cannot leave some of them stored and others not.

use super::core::Core;
use super::lookup::MAX_CHAIN;
use crate::error::{Error, Result};
use crate::layout::page::HEADER;
use crate::memory::Memory;

/// A bucket's pages, as far as room is concerned.
struct Room {
    last: u64,
    pages: usize,
    /// Bytes free in the page that has most.
    best: usize,
}

impl<M: Memory> Core<M> {
    /// Makes sure that held buckets have room for records of these sizes, given as (bucket, bytes).
    pub fn reserve(&self, sizes: &[(usize, usize)]) -> Result<()> {
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        for group in sizes.chunk_by(|a, b| a.0 == b.0) {
            let total = group.iter().map(|(_, size)| size).sum();
            self.reserve_in(group[0].0, total)?;
        }
        Ok(())
    }

    fn reserve_in(&self, bucket: usize, total: usize) -> Result<()> {
        let block = self.geometry.block;
        let free = self.look(self.head(bucket), |page| block - page.used())?;
        if free >= total {
            return Ok(());
        }
        let mut room = self.room(bucket)?;
        if room.best >= total {
            return Ok(());
        }
        // Records put one after the other where they fit fill all pages but one to half at least.
        for _ in 0..=2 * total / (block - HEADER) {
            room.last = self.grow(bucket, room.last, room.pages)?;
            room.pages += 1;
        }
        Ok(())
    }

    fn room(&self, bucket: usize) -> Result<Room> {
        let mut addr = self.head(bucket);
        let mut room = Room {
            last: addr,
            pages: 0,
            best: 0,
        };
        while addr != 0 {
            if room.pages == MAX_CHAIN {
                return Err(Error::Corrupt("a chain of pages does not end"));
            }
            let (used, next) = self.look(addr, |page| (page.used(), page.next()))?;
            room.best = room.best.max(self.geometry.block - used);
            room.pages += 1;
            (room.last, addr) = (addr, next);
        }
        Ok(room)
    }
}
