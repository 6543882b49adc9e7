//! A walk over all entries, bucket by bucket.

use super::super::Object;
use super::Map;
use super::bucket::{Entry, Part};
use crate::backoff::Backoff;
use crate::error::AccessError;

/// The entries of a [`Map`], in the order of its buckets: [`Map::entries`].
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::object::{Entries, MapSpec};
/// use rackmem::{Contract, Rack, RegionSpec};
///
/// let rack = Rack::local(1)?;
/// let spec = RegionSpec::new("ages", 1 << 20).contract(Contract::Object);
/// let region = rack.node(0).create_region(&spec)?;
/// let map = rack.node(0).create_map(&[region.addr()], MapSpec::new(100, 20))?;
/// map.insert(b"ada", b"36")?;
/// let entries: Entries<'_> = map.entries();
/// let all = entries.collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(all, [(b"ada".to_vec(), b"36".to_vec())]);
/// # Ok(())
/// # }
/// ```
pub struct Entries<'a> {
    map: &'a Map,
    /// The bucket that is read next.
    next: usize,
    /// Of the one before it, last entry first.
    left: Vec<Entry>,
}

impl Map {
    /// All entries. Those of one bucket are of one moment, and each bucket is read when the walk
    /// comes to it: an entry that stays throughout comes once, one that comes or goes meanwhile
    /// may be there or not.
    ///
    /// After an error the walk goes on with the next bucket, so that what is at other homes can
    /// be had when one has died.
    pub fn entries(&self) -> Entries<'_> {
        Entries {
            map: self,
            next: 0,
            left: Vec::new(),
        }
    }

    /// What is in a bucket at one moment.
    fn bucket(&self, head: &Object<[u8]>) -> Result<Vec<Entry>, AccessError> {
        let mut backoff = Backoff::new(self.shape.node.inner.access.patience);
        loop {
            let mut part = Part::of(&head.read()?);
            if part.freed {
                return Err(head.gone());
            }
            // A tail never changes. When there is another one this one is gone.
            if let Some(mut tail) = self.read_tail(part.tail)? {
                part.entries.append(&mut tail.part.entries);
                return Ok(part.entries);
            }
            if !backoff.wait() {
                let addr = head.addr();
                return Err(AccessError::Busy { addr });
            }
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>), AccessError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.left.pop() {
                return Some(Ok((entry.key, entry.value)));
            }
            let head = self.map.shape.heads.get(self.next)?;
            self.next += 1;
            match self.map.bucket(head) {
                Ok(entries) => self.left = entries,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
