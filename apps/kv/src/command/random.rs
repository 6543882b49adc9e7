//! Entries of a collection chosen at random.

use std::collections::HashSet;

use super::Failure;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::store::collection::Collection;

/// Bytes of entries chosen with repetition, at most.
const MAX_BYTES: usize = super::MAX_REPLY;

/// A count as HRANDFIELD and its like take it.
pub(super) fn count(count: i64) -> std::result::Result<i64, Failure> {
    let most = i64::MAX / 2;
    match (-most..=most).contains(&count) {
        true => Ok(count),
        false => Err("ERR value is out of range".into()),
    }
}

/// So many different entries, or all; with a negative count exactly so many, of which some may be
/// the same.
pub(super) fn entries<M: Memory>(
    collection: &Collection<'_, M>,
    tree: usize,
    count: i64,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let there = collection.count(tree);
    if there == 0 || count == 0 {
        return Ok(Vec::new());
    }
    let wanted = count.unsigned_abs();
    if count > 0 && wanted.saturating_mul(3) >= there {
        return most(collection, tree, wanted);
    }
    let (mut chosen, mut taken) = (Vec::new(), HashSet::new());
    let mut bytes = 0;
    while (chosen.len() as u64) < wanted {
        let at = fastrand::u64(..there);
        if count > 0 && !taken.insert(at) {
            continue;
        }
        let entry = collection.at(tree, at)?;
        let entry = entry.ok_or(Error::Corrupt(
            "a collection has fewer entries than it says",
        ))?;
        bytes += entry.0.len() + entry.1.len() + 16;
        if bytes > MAX_BYTES {
            return Err(Error::ReplyTooLong);
        }
        chosen.push(entry);
    }
    Ok(chosen)
}

/// Different ones where a good part of all is wanted: each entry is looked at once.
fn most<M: Memory>(
    collection: &Collection<'_, M>,
    tree: usize,
    wanted: u64,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let (mut left, mut wanted) = (collection.count(tree), wanted);
    let (mut chosen, mut bytes) = (Vec::new(), 0);
    collection.walk(tree, 0, |key, value| {
        if fastrand::u64(..left.max(1)) < wanted {
            wanted -= 1;
            bytes += key.len() + value.len() + 16;
            chosen.push((key.to_vec(), value.to_vec()));
        }
        left = left.saturating_sub(1);
        wanted != 0 && bytes <= MAX_BYTES
    })?;
    fastrand::shuffle(&mut chosen);
    match bytes > MAX_BYTES {
        true => Err(Error::ReplyTooLong),
        false => Ok(chosen),
    }
}
