//! The tree database: records in the order of their keys, in the leaves of a tree of pages
//! (a B⁺-tree) whose root is always the same page. Leaves have no links: who reads on goes down
//! from the root again, to the key where the leaf before ends.

use crate::error::{DbmError, Result};
use crate::page::{CHILD, Page, Record, weight};
use crate::section::Section;

const ROOT: u32 = 1;
/// Levels of a tree at most: an inner page has fifteen records or more.
const MAX_LEVELS: usize = 12;

fn broken(what: &'static str) -> DbmError {
    DbmError::Broken { what }
}

/// Where a key is or would be.
struct Leaf {
    page: u32,
    /// The inner pages above, with the records taken.
    above: Vec<(u32, usize)>,
    /// The key at which the leaf ends; nothing: it is the last one.
    end: Option<Vec<u8>>,
}

fn leaf(section: &mut Section<'_>, key: &[u8]) -> Result<Leaf> {
    let mut leaf = Leaf {
        page: ROOT,
        above: Vec::new(),
        end: None,
    };
    for _ in 0..MAX_LEVELS {
        let view = section.page(leaf.page)?;
        if view.level() == 0 {
            return Ok(leaf);
        }
        let (slot, page) = view.below(key)?;
        if slot + 1 < view.count() {
            leaf.end = Some(view.key(slot + 1).to_vec());
        }
        leaf.above.push((leaf.page, slot));
        leaf.page = page;
    }
    Err(broken("a tree has too many levels"))
}

pub fn get(section: &mut Section<'_>, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let page = leaf(section, key)?.page;
    let view = section.page(page)?;
    let (nth, is_it) = view.find(key);
    Ok(is_it.then(|| view.entry(nth).1.to_vec()))
}

pub fn set(section: &mut Section<'_>, key: &[u8], value: &[u8]) -> Result<bool> {
    let Leaf { page, above, .. } = leaf(section, key)?;
    let (nth, is_it) = section.page(page)?.find(key);
    let edit = section.edit(page)?;
    if is_it {
        if edit.overwrite(nth, value) {
            return Ok(true);
        }
        edit.remove(nth);
    }
    insert(section, (page, above), nth, (key.into(), value.into()))?;
    Ok(is_it)
}

/// Puts a record before the nth one of a page. A page that is full is divided, and the one above
/// it gets a record for the new half.
fn insert(
    section: &mut Section<'_>,
    (mut page, mut above): (u32, Vec<(u32, usize)>),
    mut nth: usize,
    mut record: Record,
) -> Result<()> {
    loop {
        let edit = section.edit(page)?;
        if edit.insert(nth, &record.0, &record.1) {
            return Ok(());
        }
        let level = edit.level();
        let mut left = edit.records();
        let comes_last = nth == left.len();
        left.insert(nth, record);
        let right = left.split_off(half(&left, comes_last));
        let first: Box<[u8]> = right[0].0.clone();
        let other = section.take(Page::with(level, &right)?)?;
        let child = |page: u32| -> Box<[u8]> { page.to_le_bytes()[..CHILD].into() };
        let Some((parent, slot)) = above.pop() else {
            // The root stays where it is: both halves are below it.
            let low = section.take(Page::with(level, &left)?)?;
            let halves = [(Box::default(), child(low)), (first, child(other))];
            section.put(ROOT, Page::with(level + 1, &halves)?);
            return Ok(());
        };
        section.put(page, Page::with(level, &left)?);
        (page, nth, record) = (parent, slot + 1, (first, child(other)));
    }
}

/// Where records are divided so that both halves fit. Where they come in order the first half
/// stays full.
fn half(records: &[Record], comes_last: bool) -> usize {
    if comes_last {
        return records.len() - 1;
    }
    let all: usize = records.iter().map(weight).sum();
    let mut left = 0;
    let is_left = |record: &&Record| {
        left += weight(record);
        left <= all / 2
    };
    let count = records.iter().take_while(is_left).count();
    count.clamp(1, records.len() - 1)
}

pub fn remove(section: &mut Section<'_>, key: &[u8]) -> Result<bool> {
    let Leaf {
        mut page,
        mut above,
        ..
    } = leaf(section, key)?;
    let (mut nth, is_it) = section.page(page)?.find(key);
    if !is_it {
        return Ok(false);
    }
    // A page that has become empty leaves the tree.
    loop {
        let edit = section.edit(page)?;
        edit.remove(nth);
        if edit.count() > 0 {
            return Ok(true);
        }
        let Some((parent, slot)) = above.pop() else {
            section.put(ROOT, Page::new(0));
            return Ok(true);
        };
        section.give_back(page)?;
        (page, nth) = (parent, slot);
    }
}

pub fn scan(
    section: &mut Section<'_>,
    from: &[u8],
    each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<()> {
    let mut from = from.to_vec();
    for _ in 0..section.size() {
        let leaf = leaf(section, &from)?;
        let view = section.page(leaf.page)?;
        for nth in view.find(&from).0..view.count() {
            let (key, value) = view.entry(nth);
            if !each(key, value) {
                return Ok(());
            }
        }
        match leaf.end {
            Some(end) if end > from => from = end,
            None => return Ok(()),
            Some(_) => break,
        }
    }
    Err(broken("a tree has no last leaf"))
}

/// A part of the tree that has to be looked at.
struct Part {
    page: u32,
    level: Option<u16>,
    /// Its keys are from this one on, and before that one.
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Part {
    fn is_of(&self, view: &Page) -> bool {
        if self.level.is_some_and(|level| level != view.level()) {
            return false;
        }
        // The first record of an inner page has no key that counts.
        let first = usize::from(view.level() > 0);
        let keys: Vec<&[u8]> = (first..view.count()).map(|nth| view.key(nth)).collect();
        let rise = keys.is_sorted_by(|one, next| one < next);
        let from = keys.first().is_none_or(|key| self.low.as_slice() <= *key);
        let high = self.high.as_deref();
        rise && from && keys.last().zip(high).is_none_or(|(key, high)| *key < high)
    }

    /// What is below its nth record.
    fn below(&self, view: &Page, nth: usize) -> Result<Part> {
        let key = |nth: usize| (nth < view.count()).then(|| view.key(nth).to_vec());
        let low = if nth == 0 { None } else { key(nth) };
        Ok(Part {
            page: view.child(nth)?,
            level: view.level().checked_sub(1),
            low: low.unwrap_or_else(|| self.low.clone()),
            high: key(nth + 1).or_else(|| self.high.clone()),
        })
    }
}

/// Looks at all of the tree: keys rise, and are within what the pages above say. Pages that it has,
/// and records.
pub fn check(section: &mut Section<'_>) -> Result<(u32, u64)> {
    let (mut pages, mut records) = (0, 0);
    let mut open = vec![Part {
        page: ROOT,
        level: None,
        low: Vec::new(),
        high: None,
    }];
    while let Some(part) = open.pop() {
        pages += 1;
        let most = section.size();
        let view = section.page(part.page)?;
        if pages > most || !part.is_of(view) {
            return Err(broken("keys of a tree are in no order"));
        }
        if view.level() == 0 {
            records += view.count() as u64;
            continue;
        }
        for nth in 0..view.count() {
            open.push(part.below(view, nth)?);
        }
    }
    Ok((pages, records))
}
