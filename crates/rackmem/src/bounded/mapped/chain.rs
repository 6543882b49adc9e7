//! Links of one list, found by their keys: what [`List`](super::List) and [`Map`](super::Map) are
//! made of (the paper's Fig. 3).
//!
//! A link that is in place never changes but for where it leads. A new value is a new link in its
//! place, so a reader sees the value before or the one after.

use super::arena::Attached;
use super::pointer::{ArenaSlot, Pointer};
use super::reading::ArenaSection;
use super::storing::ArenaWriter;
use crate::bytes::value::Value;
use crate::error::ArenaError;
use rackmem_proto::bi::SLAB_LINES;
use std::mem::offset_of;
use zerocopy::IntoBytes as _;

/// A value in whole words.
#[repr(C, align(8))]
pub struct Words<T>(T);

/// A link as it lies in memory. Nobody has one: its parts are read and written.
#[repr(C)]
pub struct Link<K, V> {
    next: u64,
    key: Words<K>,
    value: Words<V>,
}

impl<K: Value, V: Value> Link<K, V> {
    fn next(at: Pointer<Self>) -> Result<ArenaSlot<Self>, ArenaError> {
        at.slot(offset_of!(Self, next))
            .ok_or(ArenaError::BadPointer {
                line: at.to.line,
                len: size_of::<Self>(),
            })
    }
}

/// The parts of a link that is in the cache.
fn parts<K: Value, V: Value>(
    at: &Attached,
    link: Pointer<Link<K, V>>,
) -> (K, Option<Pointer<Link<K, V>>>) {
    let key = at.part(link.to.line, offset_of!(Link<K, V>, key));
    let next: u64 = at.part(link.to.line, offset_of!(Link<K, V>, next));
    (key, Pointer::from_word(next))
}

fn value<K: Value, V: Value>(at: &Attached, link: Pointer<Link<K, V>>) -> V {
    at.part(link.to.line, offset_of!(Link<K, V>, value))
}

/// Links that a chain may still have: one that goes round is damaged, or was reused under its
/// section.
struct Left(u64);

impl Left {
    /// No more than the arena has lines.
    fn new(at: &Attached) -> Self {
        Left(at.front.all_slabs() * SLAB_LINES)
    }

    fn take<K, V>(&mut self, link: Pointer<Link<K, V>>) -> Result<(), ArenaError> {
        let (line, len) = (link.to.line, size_of::<Link<K, V>>());
        let left = self.0.checked_sub(1);
        self.0 = left.ok_or(ArenaError::BadPointer { line, len })?;
        Ok(())
    }
}

/// The value of a key.
pub fn find<K: Value + Eq, V: Value>(
    section: &ArenaSection<'_>,
    head: ArenaSlot<Link<K, V>>,
    key: &K,
) -> Result<Option<V>, ArenaError> {
    let mut left = Left::new(section.at());
    let mut link = section.load(head)?;
    while let Some(at) = link {
        left.take(at).map_err(|error| section.why(error))?;
        section.see(at)?;
        let (found, next) = parts(section.at(), at);
        if found == *key {
            return Ok(Some(value(section.at(), at)));
        }
        link = next;
    }
    Ok(None)
}

/// All keys and values.
pub fn all<K: Value, V: Value>(
    section: &ArenaSection<'_>,
    head: ArenaSlot<Link<K, V>>,
) -> Result<Vec<(K, V)>, ArenaError> {
    let (mut all, mut left) = (Vec::new(), Left::new(section.at()));
    let mut link = section.load(head)?;
    while let Some(at) = link {
        left.take(at).map_err(|error| section.why(error))?;
        section.see(at)?;
        let (key, next) = parts(section.at(), at);
        all.push((key, value(section.at(), at)));
        link = next;
    }
    Ok(all)
}

/// Where a key's link is led to from, the link, and what follows it; the end of the chain if there
/// is none.
type Place<K, V> = (
    ArenaSlot<Link<K, V>>,
    Option<(Pointer<Link<K, V>>, Option<Pointer<Link<K, V>>>)>,
);

fn place<K: Value + Eq, V: Value, L: Value>(
    writer: &ArenaWriter<'_, L>,
    head: ArenaSlot<Link<K, V>>,
    key: &K,
) -> Result<Place<K, V>, ArenaError> {
    let (mut slot, mut left) = (head, Left::new(writer.at()));
    while let Some(at) = writer.load(slot)? {
        left.take(at)?;
        writer.see(at)?;
        let (found, next) = parts(writer.at(), at);
        if found == *key {
            return Ok((slot, Some((at, next))));
        }
        slot = Link::next(at)?;
    }
    Ok((slot, None))
}

/// Gives a key a value; the one before.
pub fn insert<K: Value + Eq, V: Value, L: Value>(
    writer: &mut ArenaWriter<'_, L>,
    head: ArenaSlot<Link<K, V>>,
    (key, new): (&K, &V),
) -> Result<Option<V>, ArenaError> {
    let (slot, old) = place(writer, head, key)?;
    let next = old.and_then(|(_, next)| next).map_or(0, Pointer::to_word);
    let before = old.map(|(at, _)| value(writer.at(), at));
    let link = writer.alloc_parts(&[
        (offset_of!(Link<K, V>, next), next.as_bytes()),
        (offset_of!(Link<K, V>, key), key.as_bytes()),
        (offset_of!(Link<K, V>, value), new.as_bytes()),
    ])?;
    writer.assign(slot, link)?;
    if let Some((at, _)) = old {
        writer.free(at)?;
    }
    Ok(before)
}

/// Takes a key out; its value.
pub fn remove<K: Value + Eq, V: Value, L: Value>(
    writer: &mut ArenaWriter<'_, L>,
    head: ArenaSlot<Link<K, V>>,
    key: &K,
) -> Result<Option<V>, ArenaError> {
    let (slot, old) = place(writer, head, key)?;
    let Some((at, next)) = old else {
        return Ok(None);
    };
    let before = value(writer.at(), at);
    writer.lead(slot, next)?;
    writer.free(at)?;
    Ok(Some(before))
}
