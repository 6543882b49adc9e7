//! Moving the locks of buckets, a slab at a time, with the head pages that travel with them.

use std::ops::Range;

use super::{CannotLeave, Moved, Pass};
use crate::error::{Error, Result};
use crate::layout::counters::Counts;
use crate::memory::{Access, Memory, Pages};
use crate::store::bucket::Inside;
use crate::store::buckets::Slab;
use crate::store::core::Core;
use crate::store::held::Held;

impl<M: Memory> Core<M> {
    /// Moves all slabs that are this node's memory.
    pub(super) fn move_slabs(
        &self,
        moved: &mut Moved,
        pass: &mut Pass,
        go_on: &mut dyn FnMut(&Moved) -> bool,
    ) -> std::result::Result<(), CannotLeave> {
        let (mut bucket, all) = (0, self.numbers()?);
        while bucket < all {
            let slab = self.map.place(bucket).0;
            let buckets = bucket..bucket + self.map.slab_buckets(slab);
            bucket = buckets.end;
            if self.home_now(slab)? != self.memory.id() || self.known_slab(slab)?.is_none() {
                continue;
            }
            let count = buckets.len();
            match self.move_slab(slab, buckets) {
                Ok(()) => moved.buckets += count,
                Err(Error::Busy(_)) => pass.busy += 1,
                // Who was to get it has died: another one does.
                Err(error) if error.is_node_lost() && self.load_word(self.base).is_ok() => {
                    pass.busy += 1;
                }
                Err(error) => return Err(error.into()),
            }
            if !go_on(moved) {
                return Err(CannotLeave::Stopped);
            }
        }
        Ok(())
    }

    fn move_slab(&self, number: usize, buckets: Range<usize>) -> Result<()> {
        let (count, len) = (buckets.len(), self.map.slab_len(number));
        let addr = self.alloc_elsewhere(|node| self.memory.alloc_pages(node, count))?;
        let heads = self.memory.pages(addr, count, self.geometry.page)?;
        // From here on its addresses are not those of new locks any more: should this fail, they
        // stay unused.
        let held = self.hold_numbers(|_| buckets.clone().collect(), Access::Write)?;
        let (at, known) = self.entry_of(number)?;
        let old = Slab::<M>::addr_of(known);
        let mut copies = Vec::new();
        let filled = self.fill(&held, &heads, buckets.start, &mut copies);
        let named = filled.and_then(|()| self.name(at, known, addr | known & !old));
        for copy in copies {
            heads.leave(copy);
        }
        named?;
        for bucket in buckets {
            held.bucket(bucket, Access::Write)?.mark_moved();
        }
        self.look_again(number, old)?;
        // Another node sweeps it from now on, which has not seen what expires there.
        self.count(0, self.newest_era(0)?.flushed, Counts::nearer(true))?;
        self.leaving.retire(old, len);
        Ok(())
    }

    /// Copies head pages to new ones, which stay held.
    fn fill(
        &self,
        held: &Held<'_, M>,
        heads: &M::Pages,
        first: usize,
        copies: &mut Vec<Inside<M>>,
    ) -> Result<()> {
        for number in held.buckets() {
            let bucket = held.bucket(*number, Access::Write)?;
            let head = bucket.head();
            // One that was never written is as a new one.
            if !head.initialized() {
                continue;
            }
            let entered = heads.enter(*number - first, Access::Write, self.patience)?;
            copies.push(entered.ok_or_else(|| self.busy())?);
            let copy = copies
                .last_mut()
                .and_then(|copy| heads.view_mut(copy, head.used()));
            let Some(mut copy) = copy else {
                continue;
            };
            for at in (0..head.used()).step_by(8) {
                copy.set_u64(at, head.view.u64(at));
            }
        }
        Ok(())
    }

    /// Names a slab's new address in the store's table.
    fn name(&self, at: u64, known: u64, new: u64) -> Result<()> {
        let swap = || {
            self.memory.update(at, 8, |view| {
                let now = view.u64(0);
                if now == known {
                    view.set_u64(0, new);
                }
                now
            })
        };
        match swap().or_else(|error| self.insist(error, swap))? {
            now if now == known || now == new => Ok(self.memory.publish(at)?),
            _ => Err(self.busy()),
        }
    }
}
