//! Reading a key inside of its bucket's lock: in the head page mostly, which came with the lock.
//!
//! A record further down the bucket's chain, or a value in an extent, is read from memory.
//! It does not change meanwhile; or, where nobody has entered, what was read does not count then.

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
        self.glancing_key(scope, id.hash, |bucket| bucket.lookup(id, reach, &mut sink))
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
            // A page that is another's by now may name anything, and of any length.
            self.check()?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::kind::Kind;
    use crate::memory::CopiedMemory;
    use crate::{Options, Store};

    fn stores() -> (rackmem::Rack, [Store<CopiedMemory>; 2]) {
        let rack = rackmem::Rack::local(3).unwrap();
        let stores = [0, 1].map(|id| {
            let memory = CopiedMemory::open(&rack.node(id), "store", 8 << 20, 3).unwrap();
            let buckets = 4;
            let options = Options::default();
            Store::open(memory, Options { buckets, ..options }).unwrap()
        });
        (rack, stores)
    }

    /// A reader of memory with copies enters no lock: what it has seen before a change counts no
    /// more, and it reads again.
    #[test]
    fn who_was_overtaken_reads_again() {
        let (_rack, [here, there]) = stores();
        there.set(b"key", b"old").unwrap();
        let mut runs = 0;
        let db = here.db(0).unwrap();
        let read = db.read(b"key", Reach::All, |_, value| {
            runs += 1;
            if runs == 1 {
                there.set(b"key", b"new").unwrap();
            }
            let mut bytes = Vec::new();
            value.append_to(&mut bytes);
            bytes
        });
        assert_eq!(read.unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(runs, 2);
    }

    /// The page that it has seen may name memory that is another's by now, and any length of it.
    #[test]
    fn who_was_overtaken_follows_nothing() {
        let (_rack, [here, there]) = stores();
        there.set(b"key", &[7; 50_000]).unwrap();
        let (core, id) = (&here.core, here.core.id(0, b"key").unwrap());
        let mut runs = Vec::new();
        let read = core.glancing_key(Scope::ALONE, id.hash, |bucket| {
            if runs.is_empty() {
                there.set(b"key", &[8; 10]).unwrap();
            }
            let len = |_: &Meta, value: Value<'_>| {
                let mut bytes = Vec::new();
                value.append_to(&mut bytes);
                bytes.len()
            };
            let seen = bucket.lookup(&id, Reach::All, &mut { len });
            runs.push(seen.is_ok());
            Ok(seen?.found)
        });
        assert_eq!(read.unwrap(), Some(10));
        assert_eq!(runs, [false, true]);
    }

    /// A small collection is read as a string is, and the nodes of a large one inside of the lock,
    /// which is a write.
    #[test]
    fn a_collection_that_is_in_its_record_is_read_by_who_has_not_entered() {
        let (rack, [here, there]) = stores();
        let written = || -> u64 {
            let events = [0, 1].map(|id| rack.node(id).metrics().events);
            let writes = events.map(|events| events.write_miss + events.write_shared);
            writes.iter().sum()
        };
        for (key, members, enters) in [(b"small", 2_u32, false), (b"large", 5000, true)] {
            let fill = there.db(0).unwrap().change(key, Kind::Set, |set| {
                for member in 0..members {
                    set.put(0, &member.to_be_bytes(), b"")?;
                }
                Ok(set.count(0))
            });
            assert_eq!(fill.unwrap(), u64::from(members));
            let before = written();
            let db = here.db(0).unwrap();
            let last = (members - 1).to_be_bytes();
            let is = db.view(key, Kind::Set, |set| Ok(set.get(0, &last)?.is_some()));
            assert_eq!(is.unwrap(), Some(true));
            assert_eq!(written() > before, enters);
        }
    }
}
