//! A walk over all entries, bucket by bucket.

use super::super::reading::Reading;
use super::super::{Content, Object, Retry};
use super::Map;
use super::bucket::{Entry, Part};
use super::tail::TailReading;
use crate::error::AccessError;
use crate::host::driving::errand::{Action, Asked};
use crate::host::objects::{Answered, Asks};

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

    /// Reads a bucket in this thread.
    fn bucket(&self, head: &Object<[u8]>) -> Result<Vec<Entry>, AccessError> {
        let mut walking = Walking::new(head);
        self.call(|came| walking.go_on((self, head), came))
    }
}

/// A bucket that is read, between two steps: its head, and then the tail that this names.
struct Walking {
    head: Reading,
    tail: Option<(Vec<Entry>, TailReading)>,
}

impl Walking {
    fn new(head: &Object<[u8]>) -> Self {
        Walking {
            head: Reading::new(head.expected(0), Retry::default()),
            tail: None,
        }
    }

    /// What is to be done next, when a home has answered this if it was asked. It comes to what is
    /// in the bucket at one moment.
    fn go_on(
        &mut self,
        (map, head): (&Map, &Object<[u8]>),
        mut came: Option<Answered>,
    ) -> Action<Vec<Entry>, Asks> {
        loop {
            let Some((entries, tail)) = &mut self.tail else {
                let read = self.head.go_on(head, came.take(), &mut <[u8]>::copied);
                let read = read.and_then(|(version, seen)| head.whole(version, seen));
                let part = match read.over() {
                    Ok(Ok(Some((_, bytes)))) => Part::of(&bytes),
                    Ok(Ok(None)) => return Action::Over(Err(head.gone())),
                    Ok(Err(error)) => return Action::Over(Err(error)),
                    Err(next) => return next,
                };
                if part.freed {
                    return Action::Over(Err(head.gone()));
                }
                self.tail = Some((part.entries, TailReading::new(part.tail)));
                continue;
            };
            return match tail.go_on(map, came.take()).over() {
                Ok(Ok(Some(mut tail))) => {
                    entries.append(&mut tail.part.entries);
                    Action::Over(Ok(std::mem::take(entries)))
                }
                // A tail never changes. When there is another one this one is gone.
                Ok(Ok(None)) => {
                    *self = Walking::new(head);
                    let addr = head.addr();
                    Action::Later(AccessError::Busy { addr })
                }
                Ok(Err(error)) => Action::Over(Err(error)),
                Err(next) => next,
            };
        }
    }
}

/// An entry of a walk.
type Item = Result<(Vec<u8>, Vec<u8>), AccessError>;

impl Entries<'_> {
    /// One of the bucket that was read last, if there is one left.
    fn pop(&mut self) -> Option<Item> {
        let entry = self.left.pop()?;
        Some(Ok((entry.key, entry.value)))
    }

    /// The next bucket is this, or cannot be read.
    fn has_read(&mut self, bucket: Result<Vec<Entry>, AccessError>) -> Option<Item> {
        self.next += 1;
        match bucket {
            Ok(entries) => {
                self.left = entries;
                self.pop()
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// [`Iterator::next`] as a future: see [the page on futures](crate::futures). If it is dropped
    /// the walk is where it was.
    ///
    /// # Errors
    /// Those of the walk; [`AccessError::TooManyAsked`].
    pub async fn next_async(&mut self) -> Option<Item> {
        loop {
            if let Some(entry) = self.pop() {
                return Some(entry);
            }
            let head = self.map.shape.heads.get(self.next)?.clone();
            let (map, mut walking) = (self.map.clone(), Walking::new(&head));
            let inner = &self.map.shape.node.inner;
            let bucket = Asked::new(inner, move |came: Option<Answered>| {
                walking.go_on((&map, &head), came)
            });
            let bucket = bucket.await;
            if let Some(entry) = self.has_read(bucket) {
                return Some(entry);
            }
        }
    }
}

impl Iterator for Entries<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(entry) = self.pop() {
                return Some(entry);
            }
            let bucket = self.map.bucket(self.map.shape.heads.get(self.next)?);
            if let Some(entry) = self.has_read(bucket) {
                return Some(entry);
            }
        }
    }
}
