//! APPEND and SETRANGE: changing a part of a value.
//!
//! A value that stays in its page is rewritten there. One that lies in an extent, or moves to one,
//! is changed in place while the extent has room, else in a new one of twice the size,
//! so that appending a byte at a time stays cheap.

use super::bucket::Bucket;
use super::chain::Chain;
use super::core::Core;
use super::edit::{Current, Edit, Operation};
use super::lock::Scope;
use super::ops::Set;
use super::value::Value;
use crate::MAX_VALUE;
use crate::error::{Error, Result};
use crate::layout::page::{Extent, KeyId, Record};
use crate::layout::page_mut::Payload;
use crate::memory::Memory;
use crate::store::db::{Condition, Expiry, SetOptions};

/// Bytes to put into a value.
#[derive(Clone, Copy)]
pub(crate) struct Patch<'a> {
    /// Where; `None`: behind the end.
    pub offset: Option<usize>,
    pub bytes: &'a [u8],
}

impl Patch<'_> {
    /// Where the bytes go in a value of `len` bytes, and the value's new length.
    fn plan(&self, len: usize) -> Result<(usize, usize)> {
        let at = self.offset.unwrap_or(len);
        let end = at
            .checked_add(self.bytes.len())
            .filter(|end| *end <= MAX_VALUE);
        Ok((at, len.max(end.ok_or(Error::ValueTooLong)?)))
    }
}

/// The change as long as the value stays in its page.
struct Splice<'a> {
    patch: Patch<'a>,
    limit: usize,
    value: Vec<u8>,
    result: Result<usize>,
}

impl Operation for Splice<'_> {
    fn decide(&mut self, current: Option<&Current<'_>>) -> Edit {
        let old = current.map_or(0, |c| c.meta.len);
        if self.patch.bytes.is_empty() && self.patch.offset.is_some() {
            // SETRANGE of nothing changes nothing; APPEND of nothing counts as a change.
            self.result = Ok(old);
            return Edit::Keep;
        }
        let (at, len) = match self.patch.plan(old) {
            Ok(plan) => plan,
            Err(error) => {
                self.result = Err(error);
                return Edit::Keep;
            }
        };
        self.result = Ok(len);
        if len > self.limit
            || matches!(
                current,
                Some(Current {
                    value: Value::Remote(_),
                    ..
                })
            )
        {
            return Edit::Escalate;
        }
        self.value.clear();
        if let Some(current) = current {
            current.value.append_to(&mut self.value);
        }
        self.value.resize(len, 0);
        self.value[at..at + self.patch.bytes.len()].copy_from_slice(self.patch.bytes);
        Edit::Put {
            expiry: current.map_or(0, |c| c.meta.expiry),
        }
    }

    fn payload(&self) -> Payload<'_> {
        Payload::Inline(&self.value)
    }
}

impl<M: Memory> Core<M> {
    /// Puts the patch's bytes into the value; says how long it is now.
    pub fn splice(&self, scope: Scope<'_, M>, id: &KeyId<'_>, patch: Patch<'_>) -> Result<usize> {
        let limit = self.geometry.inline_max();
        let mut op = Splice {
            patch,
            limit,
            value: Vec::new(),
            result: Ok(0),
        };
        if !self.edit(scope, id, &mut op)? {
            return op.result;
        }
        self.writing_key(scope, id.hash, |bucket| {
            match bucket.splice_far(id, patch) {
                Err(error) if error.is_node_lost() => {
                    bucket.recover(error)?;
                    bucket.splice_far(id, patch)
                }
                done => done,
            }
        })
    }
}

impl<M: Memory> Bucket<'_, M> {
    fn splice_far(&mut self, id: &KeyId<'_>, patch: Patch<'_>) -> Result<usize> {
        let chain = self.walk_clean(id)?;
        let found = chain
            .found
            .filter(|(_, record)| !record.expired(|| self.core.clock.now()));
        let old = found.map_or(0, |(_, record)| record.val_len);
        let (at, len) = patch.plan(old)?;
        if let Some((page, record)) = found
            && let Some(extent) = record.extent.filter(|extent| extent.capacity >= len)
        {
            self.fill_gap(extent, old, at)?;
            self.note_part(extent, at.min(old)..old.min(at + patch.bytes.len()))?;
            self.core
                .memory
                .write(extent.addr + at as u64, patch.bytes)?;
            self.set_len(&chain, page, &record, len)?;
            self.note_change(id)?;
            return Ok(len);
        }
        let capacity = if old == 0 {
            len
        } else {
            (len * 2).min(MAX_VALUE)
        };
        let extent = Extent {
            addr: self.core.alloc(capacity)?,
            capacity,
        };
        self.scope().note_fresh(extent.addr, capacity);
        let moved = self.move_value(
            id,
            &chain,
            found.map(|(_, record)| record),
            extent,
            (at, len),
            patch,
        );
        self.core.settle(self.scope(), extent, moved, |_| true)
    }

    /// Builds the new value in `to`, then points the record there.
    fn move_value(
        &mut self,
        id: &KeyId<'_>,
        chain: &Chain,
        record: Option<Record>,
        to: Extent,
        (at, len): (usize, usize),
        patch: Patch<'_>,
    ) -> Result<usize> {
        let old = record.map_or(0, |r| r.val_len);
        match record.and_then(|r| r.extent) {
            Some(from) => self.core.copy_bytes(from.addr, to.addr, old)?,
            None => self
                .core
                .memory
                .write(to.addr, chain.inline.get(..old).unwrap_or_default())?,
        }
        self.fill_gap(to, old, at)?;
        self.core.memory.write(to.addr + at as u64, patch.bytes)?;
        let payload = Payload::Extent { extent: to, len };
        let options = SetOptions {
            condition: Condition::Always,
            expiry: Expiry::Keep,
        };
        let op = Set::<false>::new(payload, options);
        let expiry = record.map_or(0, |r| r.expiry);
        let effects = self.apply_chain(id, chain, Edit::Put { expiry }, &op)?;
        self.core.free(self.scope(), &effects.freed)?;
        Ok(len)
    }

    /// Zeros between the old end and the place of the patch.
    fn fill_gap(&self, extent: Extent, old: usize, at: usize) -> Result<()> {
        let zeros = [0; 4096];
        let mut done = old;
        while done < at {
            let n = (at - done).min(zeros.len());
            self.core
                .memory
                .write(extent.addr + done as u64, &zeros[..n])?;
            done += n;
        }
        Ok(())
    }

    fn set_len(&mut self, chain: &Chain, page: usize, record: &Record, len: usize) -> Result<()> {
        let stamp = chain.version + 1;
        self.change(chain.pages[page].at, |page| {
            page.set_record_len(record, len, stamp);
        })?;
        self.change_head(|page| page.set_version(stamp))?;
        Ok(())
    }
}
