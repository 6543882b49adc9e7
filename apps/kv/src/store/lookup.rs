//! Reading a key inside of its bucket's lock: in the head page mostly, which came with the lock.
//!
//! A record further down the bucket's chain, or a value in an extent, is read from memory.
//! It does not change meanwhile.

use super::bucket::{At, Bucket};
use super::core::Core;
use super::lock::Scope;
use super::value::{Meta, Reach, Value};
use crate::Error;
use crate::error::Result;
use crate::layout::page::{Extent, KeyId, Page, Record};
use crate::memory::Memory;

/// Pages in a chain at most. A longer walk is a walk in circles.
pub(crate) const MAX_CHAIN: usize = 1 << 16;

/// What a read saw, and when the bucket last lost a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<R> {
    pub found: Option<R>,
    pub deleted: u64,
}

/// What one page says about a key.
enum Probe<R> {
    Seen(Option<R>),
    /// The value is elsewhere.
    Far(Meta, Extent),
    /// Not here, but there is a further page.
    Next(u64),
}

impl<M: Memory> Core<M> {
    /// Reads a key, and gives what `reach` asks for to `sink`, which may be called several times;
    /// its last answer counts.
    #[inline]
    pub fn lookup<R>(
        &self,
        scope: Scope<'_, M>,
        id: &KeyId<'_>,
        reach: Reach,
        mut sink: impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Seen<R>> {
        self.reading_key(scope, id.hash, |bucket| bucket.lookup(id, reach, &mut sink))
    }
}

impl<M: Memory> Bucket<'_, M> {
    /// [`Core::lookup`], inside.
    #[inline]
    pub fn lookup<R>(
        &self,
        id: &KeyId<'_>,
        reach: Reach,
        sink: &mut impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Seen<R>> {
        let era = self.era(id.db)?;
        let head = self.head();
        let deleted = head.deleted();
        let seen = |found| Ok(Seen { found, deleted });
        if era.flushed > head.epoch() {
            return seen(None);
        }
        match self.probe(&head, id, reach, sink) {
            Probe::Seen(found) => seen(found),
            far => seen(self.far(far, id, reach, sink)?),
        }
    }

    #[inline]
    fn probe<R>(
        &self,
        page: &Page<'_>,
        id: &KeyId<'_>,
        reach: Reach,
        sink: &mut impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Probe<R> {
        let found = page.find(id);
        if found.is_none() && page.next() != 0 {
            return Probe::Next(page.next());
        }
        let Some(record) = found.filter(|record| !record.expired(|| self.core.clock.now())) else {
            return Probe::Seen(None);
        };
        let meta = Meta::from(&record);
        match record.extent {
            Some(extent) if !matches!(reach, Reach::Nothing) => Probe::Far(meta, extent),
            _ => Probe::Seen(Some(sink(&meta, window(page, &record, reach)))),
        }
    }

    /// The rest of a read that the head page alone does not answer.
    #[cold]
    fn far<R>(
        &self,
        mut probe: Probe<R>,
        id: &KeyId<'_>,
        reach: Reach,
        sink: &mut impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Option<R>> {
        for _ in 0..MAX_CHAIN {
            match probe {
                Probe::Seen(found) => return Ok(found),
                Probe::Far(meta, extent) => {
                    let range = reach.of(meta.len);
                    let mut bytes = vec![0; range.len()];
                    let addr = extent.addr + range.start as u64;
                    self.core.memory.read(addr, &mut bytes)?;
                    return Ok(Some(sink(&meta, Value::Bytes(&bytes))));
                }
                Probe::Next(addr) => {
                    probe =
                        self.look(At::Memory(addr), |page| self.probe(page, id, reach, sink))?;
                }
            }
        }
        Err(Error::Corrupt("a chain of pages does not end"))
    }
}

/// The wanted part of an inline value.
#[inline]
fn window<'a>(page: &Page<'a>, record: &Record, reach: Reach) -> Value<'a> {
    if record.extent.is_some() {
        return Value::Bytes(&[]);
    }
    let range = reach.of(record.val_len);
    Value::Window {
        view: page.view,
        at: record.value_at() + range.start,
        len: range.len(),
    }
}
