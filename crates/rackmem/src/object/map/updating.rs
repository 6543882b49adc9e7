//! A change of one key: one conditional write of its bucket's head.

use super::super::{MAX_OBJECT, Object, ObjectRef};
use super::bucket::{Entry, Part};
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
    /// [`AllocError::TooLarge`] when key and value are longer than an object, or the bucket's tail
    /// would be; [`AllocError::OutOfMemory`] when the bucket needs a tail and its region is full;
    /// those of [`Object::write_if`]. [`AccessError::Busy`] when other changes came first for
    /// longer than the configuration's `patience`.
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
        let (room, old_tail) = (self.shape.room, head.tail);
        let in_head = head.find(of.hash, key).is_some();
        // A tail is read only where it is needed.
        let mut tail = None;
        if !in_head && !self.read_tail(old_tail, &mut tail)? {
            return Ok(Attempt::Again);
        }
        let has = |part: &Part| part.find(of.hash, key).cloned();
        let before = has(&head).or_else(|| tail.as_ref().and_then(has));
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
        let fits = entry
            .as_ref()
            .is_none_or(|entry| head.has_room(entry, room));
        if !fits && tail.is_none() && !self.read_tail(old_tail, &mut tail)? {
            return Ok(Attempt::Again);
        }
        let parts = (head, tail.unwrap_or_default());
        let Changed { mut head, tail } = change(parts, room, (of.hash, key), entry)?;
        let new_tail = match &tail {
            None => None,
            Some(tail) if tail.entries.is_empty() => {
                head.tail = None;
                None
            }
            Some(tail) => {
                let node = &self.shape.node;
                let made: Object<[u8]> = node.new_object(of.region, &tail.bytes(), 0)?;
                head.tail = Some(made.at());
                Some(made)
            }
        };
        match of.head.write_if(version, &head.bytes())? {
            Ok(_) => {
                if let (Some(_), Some(old)) = (&tail, old_tail) {
                    // Nobody finds it any more; if its home is gone, so is it.
                    let _ = self.shape.node.attach_object::<[u8]>(old)?.free();
                }
                Ok(Attempt::Done(before))
            }
            Err(_) => {
                if let Some(made) = new_tail {
                    let _ = made.free();
                }
                Ok(Attempt::Again)
            }
        }
    }

    /// Reads a bucket's tail. False where another change has freed it.
    fn read_tail(
        &self,
        tail: Option<ObjectRef>,
        part: &mut Option<Part>,
    ) -> Result<bool, AccessError> {
        *part = Some(match tail {
            None => Part::default(),
            Some(tail) => match self.shape.node.attach_object::<[u8]>(tail)?.read() {
                Ok(bytes) => Part::of(&bytes),
                Err(AccessError::Gone { .. }) => return Ok(false),
                Err(error) => return Err(error),
            },
        });
        Ok(true)
    }
}

/// What is to become of a bucket in which a key is to have this entry, or none.
fn change(
    (mut head, mut tail): (Part, Part),
    room: usize,
    (hash, key): (u32, &[u8]),
    entry: Option<Entry>,
) -> Result<Changed, AllocError> {
    head.take(hash, key);
    let mut moved = tail.take(hash, key).is_some();
    if let Some(entry) = entry
        && let Err(entry) = head.put(entry, room)
    {
        let len = tail.len() + entry.key.len() + entry.value.len();
        let most = MAX_OBJECT;
        if tail.put(entry, most).is_err() {
            return Err(AllocError::TooLarge { len, most });
        }
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
    use super::*;

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
            change(parts, 100, (hash, &key), Some(entry)).unwrap()
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
        let gone = change(parts(), 100, (3, &[3]), None).unwrap();
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
        let error = change(parts.clone(), 100, (1, &[1]), Some(long)).map(drop);
        assert!(matches!(error, Err(AllocError::TooLarge { most: m, .. }) if m == most));
        let full = change(parts, 100, (1, &[1]), Some(entry(1, MAX_OBJECT - 32))).unwrap();
        let tail = full.tail.unwrap();
        assert!(tail.bytes().len() <= MAX_OBJECT);
        let next = change((full.head, tail), 10, (2, &[2]), Some(entry(2, 100))).map(drop);
        assert!(next.is_err());
    }
}
