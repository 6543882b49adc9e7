//! The hash database: the hash of a key says in which bucket it is, and a bucket is a chain of
//! pages, the first of which is always there.

use crate::error::{DbmError, Result};
use crate::page::Page;
use crate::section::{Kind, Section};

/// The first bucket.
const FIRST: u32 = 1;

/// Buckets in so many pages: half of the pages are for what does not fit into the others.
fn buckets(pages: u32) -> u32 {
    ((pages - FIRST) / 2).max(1)
}

/// The first page that is in no use at first.
pub fn first(kind: Kind, pages: u32) -> u32 {
    match kind {
        Kind::Hash => FIRST + buckets(pages),
        Kind::Tree => FIRST + 1,
    }
}

/// FNV-1a, and then a mix of all bits, since its low ones are weak.
fn bucket(key: &[u8], pages: u32) -> u32 {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    FIRST + (mixed >> 32) as u32 % buckets(pages)
}

/// Where a key is.
struct Place {
    page: u32,
    nth: usize,
    /// The page before it in its chain; 0: none.
    before: u32,
}

fn find(section: &mut Section<'_>, key: &[u8]) -> Result<Option<Place>> {
    let (mut before, mut page) = (0, bucket(key, section.size()));
    for _ in 0..section.size() {
        let view = section.page(page)?;
        // Chains are in no order.
        let mut records = 0..view.count();
        if let Some(nth) = records.find(|nth| view.key(*nth) == key) {
            return Ok(Some(Place { page, nth, before }));
        }
        before = page;
        page = view.next();
        if page == 0 {
            return Ok(None);
        }
    }
    Err(endless())
}

fn endless() -> DbmError {
    let what = "a chain has no end";
    DbmError::Broken { what }
}

pub fn get(section: &mut Section<'_>, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let Some(Place { page, nth, .. }) = find(section, key)? else {
        return Ok(None);
    };
    Ok(Some(section.page(page)?.entry(nth).1.to_vec()))
}

pub fn set(section: &mut Section<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
    let found = find(section, key)?;
    if let Some(place) = &found {
        if section.edit(place.page)?.overwrite(place.nth, value) {
            return Ok(true);
        }
        take_out(section, place)?;
    }
    add(section, key, value)?;
    Ok(found.is_some())
}

/// Adds a record whose key is not there, to the first page of its chain that has room.
fn add(section: &mut Section<'_>, key: &[u8], value: &[u8]) -> Result<()> {
    let first = bucket(key, section.size());
    let mut page = first;
    for _ in 0..section.size() {
        let view = section.page(page)?;
        if view.fits(key, value) {
            let end = view.count();
            section.edit(page)?.insert(end, key, value);
            return Ok(());
        }
        match view.next() {
            0 => break,
            next => page = next,
        }
    }
    let mut more = Page::new(0);
    more.insert(0, key, value);
    more.set_next(section.page(first)?.next());
    let more = section.take(more)?;
    section.edit(first)?.set_next(more);
    Ok(())
}

/// Takes a record out of its page, and the page, if it has become empty, out of its chain.
fn take_out(section: &mut Section<'_>, place: &Place) -> Result<()> {
    let page = section.edit(place.page)?;
    page.remove(place.nth);
    let (left, next) = (page.count(), page.next());
    if left == 0 && place.before != 0 {
        section.edit(place.before)?.set_next(next);
        section.give_back(place.page)?;
    }
    Ok(())
}

pub fn remove(section: &mut Section<'_>, key: &[u8]) -> Result<bool> {
    let found = find(section, key)?;
    if let Some(place) = &found {
        take_out(section, place)?;
    }
    Ok(found.is_some())
}

pub fn scan(section: &mut Section<'_>, each: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
    for bucket in FIRST..first(Kind::Hash, section.size()) {
        let (mut page, mut pages) = (bucket, 0);
        while page != 0 {
            let view = section.page(page)?;
            for nth in 0..view.count() {
                let (key, value) = view.entry(nth);
                if !each(key, value) {
                    return Ok(());
                }
            }
            page = view.next();
            pages += 1;
            if pages > section.size() {
                return Err(endless());
            }
        }
    }
    Ok(())
}

/// Looks at all chains: each key is in its bucket, once. Pages that they have, and records.
pub fn check(section: &mut Section<'_>) -> Result<(u32, u64)> {
    let (mut pages, mut records) = (0, 0);
    for bucket_page in FIRST..first(Kind::Hash, section.size()) {
        let (mut page, mut keys) = (bucket_page, std::collections::BTreeSet::new());
        while page != 0 {
            pages += 1;
            if pages > section.size() {
                return Err(endless());
            }
            let size = section.size();
            let view = section.page(page)?;
            for nth in 0..view.count() {
                let key = view.key(nth);
                if bucket(key, size) != bucket_page || !keys.insert(key.to_vec()) {
                    let what = "a key is in another bucket, or there twice";
                    return Err(DbmError::Broken { what });
                }
                records += 1;
            }
            page = view.next();
        }
    }
    Ok((pages, records))
}
