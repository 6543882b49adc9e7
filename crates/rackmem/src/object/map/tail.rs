//! What does not fit into a bucket's head: an object, or several where objects are short, of which
//! each names the next. None of them ever changes.

use super::super::making::Making;
use super::super::reading::Reading;
use super::super::{Content, MAX_OBJECT, Object, ObjectRef, Retry};
use super::Map;
use super::bucket::{Entry, Part};
use crate::error::{AccessError, AllocError};
use crate::host::driving::errand::Action;
use crate::host::objects::{Answered, Asks};
use std::time::Instant;

/// A bucket's tail.
#[derive(Default)]
pub(super) struct Tail {
    /// The entries of all its objects.
    pub part: Part,
    /// Where these are.
    pub at: Vec<ObjectRef>,
}

impl Map {
    /// The tail that a head names. Nothing where another change has freed it: then the head names
    /// it no more.
    pub(super) fn read_tail(&self, first: Option<ObjectRef>) -> Result<Option<Tail>, AccessError> {
        let mut reading = TailReading::new(first);
        self.call(|came| reading.go_on(self, came))
    }

    /// Nobody finds these any more. If their home is gone, so are they.
    pub(super) fn free_tail(&self, at: &[ObjectRef]) -> Result<(), AccessError> {
        let mut freeing = TailFreeing::new(at.to_vec());
        self.call(|came| freeing.go_on(self, came))
    }

    fn object(&self, at: ObjectRef) -> Result<Object<[u8]>, AccessError> {
        self.shape.node.attach_object(at)
    }
}

/// A tail that is read, object by object. It comes to nothing where another change has freed it.
pub(super) struct TailReading {
    tail: Tail,
    next: Option<ObjectRef>,
    /// The read of that, once it has begun.
    reading: Option<(Object<[u8]>, Reading)>,
}

impl TailReading {
    /// Of the tail that a head names, if it names one.
    pub fn new(next: Option<ObjectRef>) -> Self {
        TailReading {
            tail: Tail::default(),
            next,
            reading: None,
        }
    }

    /// What is to be done next, when a home has answered this if it was asked.
    pub fn go_on(&mut self, map: &Map, mut came: Option<Answered>) -> Action<Option<Tail>, Asks> {
        loop {
            let Some(at) = self.next else {
                return Action::Over(Ok(Some(std::mem::take(&mut self.tail))));
            };
            let (object, reading) = match &mut self.reading {
                Some(begun) => begun,
                none => match map.object(at) {
                    Ok(object) => {
                        let reading = Reading::new(object.expected(0), Retry::default());
                        none.insert((object, reading))
                    }
                    Err(error) => return Action::Over(Err(error)),
                },
            };
            let read = reading.go_on(object, came.take(), &mut <[u8]>::copied);
            let read = read.and_then(|(version, seen)| object.whole(version, seen));
            let mut part = match read.over() {
                Ok(Ok(Some((_, bytes)))) => Part::of(&bytes),
                Ok(Ok(None) | Err(AccessError::Gone { .. })) => return Action::Over(Ok(None)),
                Ok(Err(error)) => return Action::Over(Err(error)),
                Err(next) => return next,
            };
            (self.next, self.reading) = (part.tail, None);
            self.tail.part.entries.append(&mut part.entries);
            self.tail.at.push(at);
        }
    }
}

/// A new tail that is made, object by object, the last one first. It comes to its objects, of which
/// the first one is what a head names; where one cannot be made, the others are freed.
pub(super) struct TailMaking {
    region: u64,
    /// What is to be in objects, the first one first.
    parts: Vec<Part>,
    made: Vec<ObjectRef>,
    making: Option<(Vec<u8>, Making<[u8]>)>,
    failed: Option<(AllocError, TailFreeing)>,
}

impl TailMaking {
    /// Of these entries, in objects of so many bytes at most.
    pub fn new(region: u64, entries: Vec<Entry>, most: usize) -> Self {
        TailMaking {
            region,
            parts: pack(entries, most),
            made: Vec::new(),
            making: None,
            failed: None,
        }
    }

    /// See [`Making::owes`].
    pub fn owes(&self, asked: bool) -> bool {
        let making = self.making.as_ref();
        let making = making.is_some_and(|(_, making)| making.owes(asked));
        making || !self.made.is_empty() || self.failed.is_some()
    }

    /// What is to be done next, when a home has answered this if it was asked.
    pub fn go_on(
        &mut self,
        map: &Map,
        mut came: Option<Answered>,
    ) -> Action<Result<Vec<ObjectRef>, AllocError>, Asks> {
        loop {
            if let Some((error, freeing)) = &mut self.failed {
                let error = *error;
                return freeing
                    .go_on(map, came.take())
                    .and_then(|()| Ok(Err(error)));
            }
            let (bytes, making) = match &mut self.making {
                Some(begun) => begun,
                none => {
                    let Some(mut part) = self.parts.pop() else {
                        return Action::Over(Ok(Ok(std::mem::take(&mut self.made))));
                    };
                    part.tail = self.made.first().copied();
                    none.insert((part.bytes(), Making::New))
                }
            };
            let wanted = (self.region, &bytes[..], 0);
            let failed = match making.go_on(&map.shape.node, wanted, came.take()).over() {
                Ok(Ok(Ok(object))) => {
                    self.made.insert(0, object.at());
                    self.making = None;
                    continue;
                }
                Ok(Ok(Err(error))) => error,
                Ok(Err(error)) => error.into(),
                Err(next) => return next,
            };
            let made = std::mem::take(&mut self.made);
            self.failed = Some((failed, TailFreeing::new(made)));
        }
    }
}

/// Objects that nobody finds any more are freed, one after the other. If their home is gone, so are
/// they: what stands in the way of one is no error of whoever frees it.
pub(super) struct TailFreeing {
    left: Vec<ObjectRef>,
    /// Since when others are in the way.
    since: Option<Instant>,
}

/// How long it is until one is tried again, in nanoseconds.
const PAUSE: u64 = 100_000;

impl TailFreeing {
    pub fn new(left: Vec<ObjectRef>) -> Self {
        let since = None;
        TailFreeing { left, since }
    }

    /// What is to be done next, when a home has answered this if it was asked.
    pub fn go_on(&mut self, map: &Map, mut came: Option<Answered>) -> Action<(), Asks> {
        let patience = map.shape.node.inner.access.patience;
        while let Some(at) = self.left.last() {
            match map.object(*at).map(|object| object.free_on(came.take())) {
                Ok(Action::Ask(question)) => return Action::Ask(question),
                Ok(Action::Pause(most)) => return Action::Pause(most),
                Ok(Action::Later(_))
                    if self.since.get_or_insert_with(Instant::now).elapsed() < patience =>
                {
                    return Action::Pause(PAUSE);
                }
                Ok(Action::Later(_) | Action::Over(_)) | Err(_) => {
                    self.left.pop();
                }
            }
        }
        Action::Over(Ok(()))
    }
}

/// Whether an object of so many bytes has room for an entry, and a bucket's tail for it beside
/// others.
pub(super) fn fits(tail: &Part, entry: &Entry, most: usize) -> Result<(), AllocError> {
    let alone = Part::default();
    for (part, most) in [(&alone, most), (tail, MAX_OBJECT)] {
        let len = part.len() + entry.bytes();
        if len > most {
            return Err(AllocError::TooLarge { len, most });
        }
    }
    Ok(())
}

/// Entries as objects of so many bytes have them, each of which has room for any of them.
fn pack(entries: Vec<Entry>, most: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for entry in entries {
        let mut entry = Some(entry);
        for part in &mut parts {
            entry = entry.and_then(|entry| part.put(entry, most).err());
        }
        if let Some(entry) = entry {
            let entries = vec![entry];
            parts.push(Part {
                entries,
                ..Part::default()
            });
        }
    }
    parts
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

    #[test]
    fn entries_are_packed_into_objects() {
        let entries: Vec<Entry> = (1..40).map(|key| entry(key, key as usize * 5)).collect();
        let parts = pack(entries.clone(), 224);
        assert!(parts.iter().all(|part| part.len() <= 224));
        let all = parts.iter().flat_map(|part| &part.entries);
        let mut all: Vec<Entry> = all.cloned().collect();
        all.sort_unstable_by_key(|entry| entry.hash);
        assert_eq!(all, entries);
        // Where objects are long there is one, and no entry needs none.
        assert_eq!(pack(entries, MAX_OBJECT).len(), 1);
        assert_eq!(pack(Vec::new(), 224).len(), 0);
    }

    #[test]
    fn an_entry_fits_into_an_object_and_beside_others() {
        let tail = Part {
            entries: (0..100).map(|key| entry(key, 600)).collect(),
            ..Part::default()
        };
        let refused = |len, objects| match fits(&tail, &entry(200, len), objects) {
            Ok(()) => None,
            Err(AllocError::TooLarge { len, most }) => Some((len > most, most)),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(refused(900, 992), None);
        assert_eq!(refused(970, 992), Some((true, 992)));
        assert_eq!(refused(3000, MAX_OBJECT), None);
        assert_eq!(refused(6000, 8160), Some((true, MAX_OBJECT)));
    }
}
