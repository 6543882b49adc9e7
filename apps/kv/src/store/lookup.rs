//! Reading a key: one snapshot of its bucket's head page, with no lock and no write.
//!
//! A record further down the bucket's chain, or a value in an extent, takes more reads. They count only
//! if the head page afterwards still shows the version it showed before: then nothing of the bucket
//! changed in between, and the read took place at any moment between the two looks.

use super::core::{Core, Scope};
use super::value::{Meta, Reach, Value};
use crate::Error;
use crate::error::Result;
use crate::layout::page::{Extent, KeyId, Page, Record};
use crate::layout::superblock::Era;
use crate::memory::Memory;

/// Pages in a chain at most. A longer walk is a walk in circles.
pub(crate) const MAX_CHAIN: usize = 1 << 16;
/// Disturbed reads before the bucket is held for reading.
const CALM_TRIES: u32 = 16;

/// What a read saw, and by which versions to tell whether it is still so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<R> {
    pub found: Option<R>,
    pub version: u64,
    pub deleted: u64,
}

/// How one look at a head page ends.
enum Probe<R> {
    Seen(Seen<R>),
    Locked,
    /// The page has seen a flush that the operation does not know of.
    Stale,
    Far(Far),
}

/// A read that has to go on elsewhere.
struct Far {
    version: u64,
    deleted: u64,
    next: u64,
    extent: Option<(Meta, Extent)>,
}

/// How a try at a read ends.
pub(crate) enum Try<R> {
    Seen(Seen<R>),
    Locked,
    Stale,
    /// The bucket changed meanwhile.
    Disturbed,
}

impl<M: Memory> Core<M> {
    /// Reads a key, and gives what `reach` asks for to `sink`, which may be called several times; its last
    /// answer counts.
    #[inline]
    pub fn lookup<R>(
        &self,
        scope: Scope<'_>,
        id: &KeyId<'_>,
        reach: Reach,
        mut sink: impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Seen<R>> {
        let mut patience = self.patience();
        let mut tries = 0;
        loop {
            let era = self.era(scope, id.db)?;
            match self.try_lookup(scope.token, era, id, reach, &mut sink)? {
                Try::Seen(seen) => return Ok(seen),
                Try::Locked => self.await_lock(self.bucket(id), scope.token, &mut patience)?,
                Try::Stale => {}
                Try::Disturbed => tries += 1,
            }
            if tries >= CALM_TRIES && scope.token == 0 {
                return self.with_bucket(scope, self.bucket(id), |held| {
                    self.lookup_held(held, id, reach, &mut sink)
                });
            }
        }
    }

    /// A read with the bucket held; only a flush can make it start again.
    #[cold]
    fn lookup_held<R>(
        &self,
        held: Scope<'_>,
        id: &KeyId<'_>,
        reach: Reach,
        sink: &mut impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Seen<R>> {
        let mut patience = self.patience();
        loop {
            let era = self.era(held, id.db)?;
            if let Try::Seen(seen) = self.try_lookup(held.token, era, id, reach, sink)? {
                return Ok(seen);
            }
            // Ends when the bucket was lost under us, and its lock with it.
            patience.pause()?;
        }
    }

    /// One try. What it finds lost, and can be mended, counts as disturbed.
    #[inline]
    pub fn try_lookup<R>(
        &self,
        token: u64,
        era: Era,
        id: &KeyId<'_>,
        reach: Reach,
        sink: &mut impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Try<R>> {
        match self.try_once(token, era, id, reach, sink) {
            Ok(tried) => Ok(tried),
            Err(error) => {
                self.recover(token, self.bucket(id), error)?;
                Ok(Try::Disturbed)
            }
        }
    }

    #[inline]
    fn try_once<R>(
        &self,
        token: u64,
        era: Era,
        id: &KeyId<'_>,
        reach: Reach,
        sink: &mut impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Try<R>> {
        let head = self.head(self.bucket(id));
        let probe = self.look(head, |page| self.probe(page, token, era, id, reach, sink))?;
        Ok(match probe {
            Probe::Seen(seen) => Try::Seen(seen),
            Probe::Locked => Try::Locked,
            Probe::Stale => Try::Stale,
            Probe::Far(far) => self.far(token, head, id, far, reach, sink)?,
        })
    }

    #[inline]
    fn probe<R>(
        &self,
        page: &Page<'_>,
        token: u64,
        era: Era,
        id: &KeyId<'_>,
        reach: Reach,
        sink: &mut impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Probe<R> {
        if page.lock() != token {
            return Probe::Locked;
        }
        let epoch = page.epoch();
        if epoch > era.epoch {
            return Probe::Stale;
        }
        let (version, deleted) = (page.version(), page.deleted());
        let seen = |found| {
            Probe::Seen(Seen {
                found,
                version,
                deleted,
            })
        };
        let far = |next, extent| {
            Probe::Far(Far {
                version,
                deleted,
                next,
                extent,
            })
        };
        if era.flushed > epoch {
            return seen(None);
        }
        let found = page.find(id);
        if found.is_none() && page.next() != 0 {
            return far(page.next(), None);
        }
        let Some(record) = found.filter(|record| !record.expired(|| self.clock.now())) else {
            return seen(None);
        };
        let meta = Meta::from(&record);
        match record.extent {
            Some(extent) if !matches!(reach, Reach::Nothing) => far(0, Some((meta, extent))),
            _ => seen(Some(sink(&meta, window(page, &record, reach)))),
        }
    }

    /// The rest of a read that the head page alone does not answer.
    #[cold]
    fn far<R>(
        &self,
        token: u64,
        head: u64,
        id: &KeyId<'_>,
        far: Far,
        reach: Reach,
        sink: &mut impl FnMut(&Meta, Value<'_>) -> R,
    ) -> Result<Try<R>> {
        let mut bytes = Vec::new();
        let body = self.far_body(id, &far, reach, &mut bytes);
        let calm = self.look(head, |page| {
            page.lock() == token && page.version() == far.version
        })?;
        if !calm {
            return Ok(Try::Disturbed); // and an error on the way means nothing
        }
        let found = body?.map(|meta| sink(&meta, Value::Bytes(&bytes)));
        Ok(Try::Seen(Seen {
            found,
            version: far.version,
            deleted: far.deleted,
        }))
    }

    /// Finds the record in the chain and copies its value; all of it is to be doubted.
    fn far_body(
        &self,
        id: &KeyId<'_>,
        far: &Far,
        reach: Reach,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Meta>> {
        let (meta, extent) = match far.extent {
            Some(found) => found,
            None => match self.find_in_chain(id, far.next, reach, bytes)? {
                Some((meta, Some(extent))) => (meta, extent),
                Some((meta, None)) => return Ok(Some(meta)),
                None => return Ok(None),
            },
        };
        let range = reach.of(meta.len);
        bytes.clear();
        bytes.resize(range.len(), 0);
        self.memory.read(extent.addr + range.start as u64, bytes)?;
        Ok(Some(meta))
    }

    fn find_in_chain(
        &self,
        id: &KeyId<'_>,
        first: u64,
        reach: Reach,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<(Meta, Option<Extent>)>> {
        let mut addr = first;
        for _ in 0..MAX_CHAIN {
            if addr == 0 {
                return Ok(None);
            }
            let (found, next) = self.look(addr, |page| {
                let record = page.find(id);
                if let Some(record) = record.filter(|r| r.extent.is_none()) {
                    bytes.clear();
                    window(page, &record, reach).append_to(bytes);
                }
                (record, page.next())
            })?;
            if let Some(record) = found {
                let live = !record.expired(|| self.clock.now());
                return Ok(live.then_some((Meta::from(&record), record.extent)));
            }
            addr = next;
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
