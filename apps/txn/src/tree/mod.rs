//! An ordered index in cells: a tree of pages (a B⁺-tree). The records of a table that is always
//! used in order are in it, so there is one thing to lock or to compare instead of two.
//!
//! The root is always the first page. Pages have no links to their neighbours: who reads on goes
//! down from the root again, to the key at which the page before ends. So a range that was read is
//! pages that were read, and nothing can appear in it unnoticed.

mod page;
#[cfg(test)]
mod tests;

pub use page::{PAGE, Shape};

use crate::access::{Access, Halt, Step, broken, known};
use crate::error::TxnError;
use crate::layout::{Cell, Space};
use page::{Edit, View};

const ROOT: u32 = 0;
/// Levels of a tree at most: an inner page has a hundred entries or more.
const MAX_LEVELS: usize = 8;

/// In which order rows come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coming {
    /// By their keys: leaves become full.
    InOrder,
    /// Anyhow: leaves are half full at least.
    Anyhow,
}

/// Pages for so many rows.
pub fn pages_for(shape: Shape, rows: u64, coming: Coming) -> u32 {
    let of = |level| {
        let most = shape.most(level) as u64;
        if coming == Coming::InOrder {
            most - 1
        } else {
            most / 2
        }
    };
    let leaves = rows.div_ceil(of(0));
    let inner = leaves.div_ceil(of(1)) + 1;
    let all = leaves + inner + inner.div_ceil(of(1)) + 4;
    u32::try_from(all).unwrap_or(u32::MAX)
}

/// An ordered index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tree {
    /// What it has, for errors.
    pub table: &'static str,
    /// Its pages.
    pub space: Space,
    /// Its entries.
    pub shape: Shape,
}

/// A key and its value.
pub type Row = (Vec<u8>, Vec<u8>);

impl Tree {
    fn cell(&self, page: u32) -> Step<Cell> {
        known(self.space.cell(page))
    }

    fn view<'a>(&self, access: &'a mut dyn Access, page: u32) -> Step<View<'a>> {
        View::of(access.read(self.cell(page)?)?, self.shape)
    }

    fn edit<'a>(&self, access: &'a mut dyn Access, page: u32) -> Step<Edit<'a>> {
        Edit::of(access.change(self.cell(page)?)?, self.shape)
    }

    /// The leaf where a key is or would be; the key at which it ends, if it is not the last; and
    /// the inner pages above, with the entries taken.
    fn leaf(&self, access: &mut dyn Access, key: &[u8], to_change: bool) -> Step<Leaf> {
        let mut leaf = Leaf {
            page: ROOT,
            end: None,
            above: Vec::new(),
        };
        for _ in 0..MAX_LEVELS {
            let view = self.view(access, leaf.page)?;
            if view.level == 0 {
                return Ok(leaf);
            }
            let (slot, page) = view.below(key)?;
            if slot + 1 < view.count {
                leaf.end = Some(view.key(slot + 1).to_vec());
            }
            let is_last = view.level == 1;
            leaf.above.push((leaf.page, slot));
            leaf.page = page;
            if is_last && to_change {
                access.claim(self.cell(page)?)?;
            }
        }
        Err(broken("an index has too many levels"))
    }

    /// Calls `each` with rows in order, from one key on and before another, as long as it says so.
    ///
    /// # Errors
    /// Those of [`Access::read`].
    pub fn scan(
        &self,
        access: &mut dyn Access,
        (from, to): (&[u8], &[u8]),
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Step<()> {
        let mut from = from.to_vec();
        for _ in 0..self.space.count {
            let leaf = self.leaf(access, &from, false)?;
            let view = self.view(access, leaf.page)?;
            for nth in view.find(&from).0..view.count {
                let (key, value) = view.entry(nth);
                if key >= to || !each(key, value) {
                    return Ok(());
                }
            }
            match leaf.end {
                Some(end) if end.as_slice() < to && end > from => from = end,
                _ => return Ok(()),
            }
        }
        Err(broken("an index has more leaves than pages"))
    }

    /// The first row of a range.
    ///
    /// # Errors
    /// Those of [`Tree::scan`].
    pub fn first(&self, access: &mut dyn Access, range: (&[u8], &[u8])) -> Step<Option<Row>> {
        let mut found = None;
        self.scan(access, range, &mut |key, value| {
            found = Some((key.to_vec(), value.to_vec()));
            false
        })?;
        Ok(found)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// Those of [`Access::read`].
    pub fn get(&self, access: &mut dyn Access, key: &[u8]) -> Step<Option<Vec<u8>>> {
        let leaf = self.leaf(access, key, false)?;
        let view = self.view(access, leaf.page)?;
        let (nth, is_it) = view.find(key);
        Ok(is_it.then(|| view.entry(nth).1.to_vec()))
    }

    /// Calls `each` with the values of a range of keys, which it may change; how many there are.
    ///
    /// # Errors
    /// Those of [`Access::change`].
    pub fn update(
        &self,
        access: &mut dyn Access,
        (from, to): (&[u8], &[u8]),
        each: &mut dyn FnMut(&mut [u8]) -> Step<()>,
    ) -> Step<usize> {
        let (mut from, mut done) = (from.to_vec(), 0);
        for _ in 0..self.space.count {
            let leaf = self.leaf(access, &from, true)?;
            let view = self.view(access, leaf.page)?;
            let first = view.find(&from).0;
            let some = first..view.find(to).0.max(first);
            let mut edit = self.edit(access, leaf.page)?;
            for nth in some {
                each(edit.value(nth))?;
                done += 1;
            }
            match leaf.end {
                Some(end) if end.as_slice() < to && end > from => from = end,
                _ => return Ok(done),
            }
        }
        Err(broken("an index has more leaves than pages"))
    }

    /// Adds a row whose key is new.
    ///
    /// # Errors
    /// [`TxnError::Full`]; those of [`Access::change`].
    pub fn insert(&self, access: &mut dyn Access, key: &[u8], value: &[u8]) -> Step<()> {
        if self.view(access, ROOT)?.is_full() {
            self.grow(access)?;
        }
        let mut page = ROOT;
        // A page on the way may have to be split, after which the way is looked up again.
        for _ in 0..2 * MAX_LEVELS {
            let view = self.view(access, page)?;
            if view.level == 0 {
                let (nth, is_it) = view.find(key);
                if is_it {
                    return Err(broken("a row is there already"));
                }
                return self.edit(access, page)?.insert(nth, key, value);
            }
            let (slot, child) = view.below(key)?;
            if view.level == 1 {
                access.claim(self.cell(child)?)?;
            }
            match self.view(access, child)?.is_full() {
                true => self.split(access, (page, slot), child, key)?,
                false => page = child,
            }
        }
        Err(broken("an index has too many levels"))
    }

    /// The root's entries go into a page below it.
    fn grow(&self, access: &mut dyn Access) -> Step<()> {
        let page = self.take_page(access)?;
        let view = self.view(access, ROOT)?;
        let (level, first) = (view.level, view.key(0).to_vec());
        let entries = self.edit(access, ROOT)?.cut(0);
        self.edit(access, page)?.fill(level, &entries);
        let mut root = self.edit(access, ROOT)?;
        root.set_level(level + 1);
        root.insert_page(0, &first, page)
    }

    /// Divides a full page in two. Where rows come in order the first one stays full.
    fn split(
        &self,
        access: &mut dyn Access,
        (above, slot): (u32, usize),
        page: u32,
        key: &[u8],
    ) -> Step<()> {
        let other = self.take_page(access)?;
        let view = self.view(access, page)?;
        let (level, count) = (view.level, view.count);
        let keep = match view.key(count - 1) < key {
            // An inner page has an entry at least.
            true => count - usize::from(level > 0),
            false => count / 2,
        };
        let first = if keep < count { view.key(keep) } else { key }.to_vec();
        let rest = self.edit(access, page)?.cut(keep);
        self.edit(access, other)?.fill(level, &rest);
        self.edit(access, above)?
            .insert_page(slot + 1, &first, other)
    }

    /// Removes a row; whether there was one.
    ///
    /// # Errors
    /// Those of [`Access::change`].
    pub fn remove(&self, access: &mut dyn Access, key: &[u8]) -> Step<bool> {
        let leaf = self.leaf(access, key, true)?;
        let (nth, is_it) = self.view(access, leaf.page)?.find(key);
        if !is_it {
            return Ok(false);
        }
        let (mut page, mut above) = (leaf.page, leaf.above);
        let mut left = self.edit(access, page)?.remove(nth);
        // A page that has become empty is no longer one of the tree.
        while let (0, Some((next, slot))) = (left, above.pop()) {
            self.give_page_back(access, page)?;
            left = self.edit(access, next)?.remove(slot);
            page = next;
        }
        if page == ROOT && left == 0 {
            self.edit(access, ROOT)?.set_level(0);
        }
        Ok(true)
    }

    fn take_page(&self, access: &mut dyn Access) -> Step<u32> {
        let free = self.edit(access, ROOT)?.free();
        if free != ROOT {
            let mut page = self.edit(access, free)?;
            let next = page.free();
            page.set_free(ROOT);
            self.edit(access, ROOT)?.set_free(next);
            return Ok(free);
        }
        let mut root = self.edit(access, ROOT)?;
        let page = root.used();
        if page >= self.space.count {
            let table = self.table;
            return Err(Halt::Failed(TxnError::Full { table }));
        }
        root.set_used(page + 1);
        Ok(page)
    }

    fn give_page_back(&self, access: &mut dyn Access, page: u32) -> Step<()> {
        let free = self.edit(access, ROOT)?.free();
        let mut empty = self.edit(access, page)?;
        empty.set_level(0);
        empty.set_free(free);
        self.edit(access, ROOT)?.set_free(page);
        Ok(())
    }
}

struct Leaf {
    page: u32,
    end: Option<Vec<u8>>,
    above: Vec<(u32, usize)>,
}
