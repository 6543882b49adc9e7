//! Moving what buckets point to: long values, nodes of collections, further pages.
//!
//! A bucket's keys are as they were for everybody, versions included: nobody is told of a change.

use super::{CannotLeave, Moved, Pass};
use crate::error::{Error, Result};
use crate::layout::kind::Kind;
use crate::layout::page::{Extent, Page, Record};
use crate::memory::Memory;
use crate::store::bucket::{At, Bucket};
use crate::store::core::Core;
use crate::store::lock::Scope;
use crate::store::lookup::MAX_CHAIN;

const ENDLESS: Error = Error::Corrupt("a chain of pages does not end");

/// A record that points to memory, and of a collection what the record has of it.
struct Far {
    record: Record,
    head: Vec<u8>,
}

fn far_records(page: &Page<'_>) -> Vec<Far> {
    let far = page
        .records()
        .filter(|record| record.extent.is_some() || record.kind != Kind::String);
    far.map(|record| Far {
        head: page.inline_value(&record),
        record,
    })
    .collect()
}

impl<M: Memory> Core<M> {
    fn is_mine(&self, addr: u64) -> bool {
        self.memory.home_of(addr) == Some(self.memory.id())
    }

    /// Goes through all buckets once.
    pub(super) fn move_values(
        &self,
        moved: &mut Moved,
        pass: &mut Pass,
        go_on: &mut dyn FnMut(&Moved) -> bool,
    ) -> std::result::Result<(), CannotLeave> {
        let mut cursor = 0;
        loop {
            let (found, mut next) =
                self.at_cursor(Scope::ALONE, cursor, |bucket| bucket.has_mine());
            let done = match found {
                Ok(true) => self
                    .move_values_at(cursor, moved)
                    .map(|behind| next = behind),
                found => found.map(|_| ()),
            };
            match done {
                Err(Error::Busy(_)) => pass.busy += 1,
                Err(error) if error.is_node_lost() => pass.skipped += 1,
                done => done?,
            }
            if !go_on(moved) {
                return Err(CannotLeave::Stopped);
            }
            cursor = next;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    /// Moves what the bucket at a cursor points to; which cursor is next.
    fn move_values_at(&self, cursor: u64, moved: &mut Moved) -> Result<u64> {
        self.writing_key(Scope::ALONE, cursor, |bucket| {
            let mut patience = self.patience();
            loop {
                match bucket.move_mine(&mut moved.values) {
                    Ok(()) => return Ok(bucket.cursor_behind(cursor)),
                    Err(error) => bucket.recover(error)?,
                }
                patience.pause()?;
            }
        })
    }
}

impl<M: Memory> Bucket<'_, M> {
    /// Whether it points to memory of this node.
    fn has_mine(&self) -> Result<bool> {
        let (core, mut next) = (self.core, Some(At::Head));
        let there = |addr| core.is_mine(addr);
        for _ in 0..MAX_CHAIN {
            let Some(at) = next else {
                return Ok(false);
            };
            if matches!(at, At::Memory(addr) if there(addr)) {
                return Ok(true);
            }
            let (far, behind) = self.look(at, |page| (far_records(page), page.next()))?;
            for Far { record, head } in &far {
                let mine = match record.extent {
                    Some(extent) => there(extent.addr),
                    None => core.has_nodes((record.kind, head), &there)?,
                };
                if mine {
                    return Ok(true);
                }
            }
            next = At::next(behind);
        }
        Err(ENDLESS)
    }

    /// Moves what it points to of this node's memory, and counts it.
    fn move_mine(&mut self, moved: &mut usize) -> Result<()> {
        // What is over does not move.
        self.refresh()?;
        let mut at = At::Head;
        for _ in 0..MAX_CHAIN {
            for far in self.look(at, far_records)? {
                *moved += usize::from(self.move_far(at, &far)?);
            }
            let next = self.look(at, |page| page.next())?;
            at = match At::next(next) {
                None => return Ok(()),
                Some(At::Memory(addr)) if self.core.is_mine(addr) => {
                    *moved += 1;
                    At::Memory(self.move_page(at, addr)?)
                }
                Some(next) => next,
            };
        }
        Err(ENDLESS)
    }

    /// Moves what a record points to: whether there was something to move.
    fn move_far(&mut self, at: At, Far { record, head }: &Far) -> Result<bool> {
        let core = self.core;
        let Some(old) = record.extent else {
            return core.renew_nodes((record.kind, head), &|addr| core.is_mine(addr), |head| {
                self.change(at, |page| page.set_record_bytes(record, head))
            });
        };
        if !core.is_mine(old.addr) {
            return Ok(false);
        }
        let new = Extent {
            addr: core.alloc(old.capacity)?,
            ..old
        };
        let moved = core
            .copy_bytes(old.addr, new.addr, record.val_len)
            .and_then(|()| self.change(at, |page| page.set_record_addr(record, new.addr)));
        core.settle(Scope::ALONE, new, moved, |()| true)?;
        core.discard(Scope::ALONE, old)?;
        Ok(true)
    }

    /// Moves the page behind `before`: where to.
    fn move_page(&mut self, before: At, addr: u64) -> Result<u64> {
        let (core, len) = (self.core, self.core.geometry.page);
        let words: Vec<u64> = self.look(At::Memory(addr), |page| {
            let words = (0..len / 8).map(|word| page.view.u64(word * 8));
            words.collect()
        })?;
        let new = Extent {
            addr: core.alloc_near(self.home(), len)?,
            capacity: len,
        };
        let copied = core.memory.update(new.addr, len, |view| {
            for (at, word) in words.iter().enumerate() {
                view.set_u64(at * 8, *word);
            }
        });
        let moved = copied
            .map_err(Error::from)
            .and_then(|()| self.change(before, |page| page.set_next(new.addr)));
        core.settle(Scope::ALONE, new, moved, |()| true)?;
        core.memory.free(addr, len)?;
        Ok(new.addr)
    }
}
