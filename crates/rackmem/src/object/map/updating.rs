//! A change of one key: one conditional write of its bucket's head.

use super::bucket::{Entry, Part};
use super::tail::{Tail, fits};
use super::{Map, Of};
use crate::backoff::Backoff;
use crate::error::{AccessError, AllocError};

/// What a change makes of a bucket.
struct Changed {
    head: Part,
    /// What its tail is to be instead of what it was; nothing: it stays.
    tail: Option<Part>,
}

/// What an attempt came to.
enum Attempt {
    Done(Option<Vec<u8>>),
    /// Another change came first.
    Again,
}

impl Map {
    /// Gives a key this value; the one that it had.
    ///
    /// # Errors
    /// [`AllocError::TooLarge`] when key and value are longer than an object of the map's regions,
    /// or the bucket's tail would be than [`MAX_OBJECT`](crate::object::MAX_OBJECT);
    /// [`AllocError::OutOfMemory`] when the bucket needs a tail and its region is full; those of
    /// [`Object::write_if`](crate::object::Object::write_if). [`AccessError::Busy`] when other
    /// changes came first for longer than the configuration's `patience`.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, AllocError> {
        self.update(key, |_| Some(value.to_vec()))
    }

    /// Takes a key out; the value that it had.
    ///
    /// # Errors
    /// Those of [`Map::insert`].
    pub fn remove(&self, key: &[u8]) -> Result<Option<Vec<u8>>, AllocError> {
        self.update(key, |_| None)
    }

    /// Makes of a key's value, if it has one, another one or none, as one step; the value that it
    /// had. `f` may run several times, and what it did counts once.
    ///
    /// # Errors
    /// Those of [`Map::insert`].
    pub fn update(
        &self,
        key: &[u8],
        mut f: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, AllocError> {
        let of = self.of(key);
        let mut backoff = Backoff::new(self.shape.node.inner.access.patience);
        loop {
            match self.attempt(&of, key, &mut f)? {
                Attempt::Done(before) => return Ok(before),
                Attempt::Again if backoff.wait() => {}
                Attempt::Again => {
                    let addr = of.head.addr();
                    return Err(AccessError::Busy { addr }.into());
                }
            }
        }
    }

    fn attempt(
        &self,
        of: &Of<'_>,
        key: &[u8],
        f: &mut impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Attempt, AllocError> {
        let (version, bytes) = of.head.read_versioned()?;
        let head = Part::of(&bytes);
        if head.freed {
            return Err(of.head.gone().into());
        }
        let (room, named) = (self.shape.room, head.tail);
        // A tail is read only where it is needed.
        let mut tail: Option<Tail> = None;
        if head.find(of.hash, key).is_none() {
            tail = self.read_tail(named)?;
            if tail.is_none() {
                return Ok(Attempt::Again);
            }
        }
        let has = |part: &Part| part.find(of.hash, key).cloned();
        let before = has(&head).or_else(|| tail.as_ref().and_then(|tail| has(&tail.part)));
        let before = before.map(|entry| entry.value);
        let after = f(before.as_deref());
        if after == before {
            // It was so when the head was read.
            return Ok(Attempt::Done(before));
        }
        let entry = after.map(|value| Entry {
            hash: of.hash,
            key: key.to_vec(),
            value,
        });
        let stays = entry
            .as_ref()
            .is_none_or(|entry| head.has_room(entry, room));
        if !stays && tail.is_none() {
            tail = self.read_tail(named)?;
            if tail.is_none() {
                return Ok(Attempt::Again);
            }
        }
        let old = tail.unwrap_or_default();
        let bounds = (room, self.shape.most);
        let changed = change((head, old.part), bounds, (of.hash, key), entry)?;
        let Changed { mut head, tail } = changed;
        let mut made = Vec::new();
        let is_replaced = tail.is_some();
        if let Some(tail) = tail {
            made = self.make_tail(of.region, tail.entries)?;
            head.tail = made.first().copied();
        }
        match of.head.write_if(version, &head.bytes())? {
            Ok(_) => {
                if is_replaced {
                    self.free_tail(&old.at);
                }
                Ok(Attempt::Done(before))
            }
            Err(_) => {
                self.free_tail(&made);
                Ok(Attempt::Again)
            }
        }
    }
}

/// What is to become of a bucket, whose head has so much room and whose tail is of objects of so
/// many bytes, in which a key is to have this entry, or none.
fn change(
    (mut head, mut tail): (Part, Part),
    (room, most): (usize, usize),
    (hash, key): (u32, &[u8]),
    entry: Option<Entry>,
) -> Result<Changed, AllocError> {
    head.take(hash, key);
    let mut moved = tail.take(hash, key).is_some();
    if let Some(entry) = entry
        && let Err(entry) = head.put(entry, room)
    {
        fits(&tail, &entry, most)?;
        tail.entries.push(entry);
        moved = true;
    }
    if moved {
        // A new one is made in any case: what has room in the head goes there.
        tail.entries = (tail.entries.into_iter())
            .filter_map(|entry| head.put(entry, room).err())
            .collect();
    }
    Ok(Changed {
        head,
        tail: moved.then_some(tail),
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::MAX_OBJECT;
    use super::*;

    /// Of a head, and of an object of a tail.
    const BOUNDS: (usize, usize) = (100, MAX_OBJECT);

    fn entry(key: u8, len: usize) -> Entry {
        Entry {
            hash: key.into(),
            key: vec![key],
            value: vec![key; len],
        }
    }

    fn keys(part: &Part) -> Vec<u8> {
        let mut keys: Vec<u8> = part.entries.iter().map(|entry| entry.key[0]).collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn what_does_not_fit_goes_to_the_tail_and_comes_back() {
        let none = || (Part::default(), Part::default());
        let put = |parts: (Part, Part), entry: Entry| {
            let (hash, key) = (entry.hash, entry.key.clone());
            change(parts, BOUNDS, (hash, &key), Some(entry)).unwrap()
        };
        let first = put(none(), entry(1, 31));
        assert!(first.tail.is_none());
        let second = put((first.head, Part::default()), entry(2, 31));
        let tail = put((second.head, Part::default()), entry(3, 20));
        assert_eq!(
            (keys(&tail.head), keys(tail.tail.as_ref().unwrap())),
            (vec![1, 2], vec![3])
        );
        // The same key is never in both.
        let parts = || (tail.head.clone(), tail.tail.clone().unwrap());
        let longer = put(parts(), entry(1, 60));
        assert_eq!(keys(&longer.head), [2, 3]);
        assert_eq!(keys(longer.tail.as_ref().unwrap()), [1]);
        // What only concerns the head leaves the tail.
        let shorter = put(parts(), entry(1, 5));
        assert_eq!((keys(&shorter.head), shorter.tail), (vec![1, 2], None));
        let gone = change(parts(), BOUNDS, (3, &[3]), None).unwrap();
        assert_eq!(
            (keys(&gone.head), gone.tail),
            (vec![1, 2], Some(Part::default()))
        );
    }

    #[test]
    fn what_no_object_holds_is_refused() {
        let parts = (Part::default(), Part::default());
        let most = MAX_OBJECT;
        let long = entry(1, MAX_OBJECT);
        let error = change(parts.clone(), BOUNDS, (1, &[1]), Some(long)).map(drop);
        assert!(matches!(error, Err(AllocError::TooLarge { most: m, .. }) if m == most));
        let full = change(parts, BOUNDS, (1, &[1]), Some(entry(1, MAX_OBJECT - 32))).unwrap();
        let tail = full.tail.unwrap();
        assert!(tail.bytes().len() <= MAX_OBJECT);
        let next = change(
            (full.head, tail),
            (10, MAX_OBJECT),
            (2, &[2]),
            Some(entry(2, 100)),
        )
        .map(drop);
        assert!(next.is_err());
    }
}
