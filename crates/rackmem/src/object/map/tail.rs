//! What does not fit into a bucket's head: an object, or several where objects are short, of which
//! each names the next. None of them ever changes.

use super::super::{MAX_OBJECT, Object, ObjectRef};
use super::Map;
use super::bucket::{Entry, Part};
use crate::error::{AccessError, AllocError};

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
        let (mut tail, mut next) = (Tail::default(), first);
        while let Some(at) = next {
            let mut part = match self.shape.node.attach_object::<[u8]>(at)?.read() {
                Ok(bytes) => Part::of(&bytes),
                Err(AccessError::Gone { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            next = part.tail;
            tail.part.entries.append(&mut part.entries);
            tail.at.push(at);
        }
        Ok(Some(tail))
    }

    /// A new tail with these entries: its objects, of which the first one is what a head names.
    pub(super) fn make_tail(
        &self,
        region: u64,
        entries: Vec<Entry>,
    ) -> Result<Vec<ObjectRef>, AllocError> {
        let mut made: Vec<ObjectRef> = Vec::new();
        for mut part in pack(entries, self.shape.most).into_iter().rev() {
            part.tail = made.first().copied();
            match self.shape.node.new_object::<[u8]>(region, &part.bytes(), 0) {
                Ok(object) => made.insert(0, object.at()),
                Err(error) => {
                    self.free_tail(&made);
                    return Err(error);
                }
            }
        }
        Ok(made)
    }

    /// Nobody finds these any more. If their home is gone, so are they.
    pub(super) fn free_tail(&self, at: &[ObjectRef]) {
        for at in at {
            let object: Result<Object<[u8]>, _> = self.shape.node.attach_object(*at);
            let _ = object.and_then(Object::free);
        }
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
