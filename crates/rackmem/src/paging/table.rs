//! Which pages are in the buffer, and what is under way with each.
//!
//! | a page is | and a thread wants it | so |
//! |---|---|---|
//! | absent, and there is room | | it is fetched |
//! | absent, and the buffer is full | | the page that came first of those with which nothing is under way leaves, written back if it is dirty |
//! | clean | to read | it is there |
//! | clean | to write | it is dirty from here on: its protection goes |
//! | dirty | | it is there |
//! | coming, leaving or being saved | | the thread waits for that |
//!
//! First in, first out: who reads a page that is there is seen by nobody, so there is no better
//! order to be had. A page that came last leaves last: what one instruction touches is there
//! together once ([`LEAST`]).

use std::collections::{HashMap, HashSet, VecDeque};

/// Pages that one instruction can touch: two of what it copies from, two of where it copies to.
pub(super) const LEAST: usize = 4;

/// What a page in the buffer is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Page {
    Coming,
    /// As the copies have it. It is protected: the first write to it is a fault.
    Clean,
    Dirty,
    /// It is written back if it was dirty, and then absent.
    Leaving,
    /// It is written back, and then clean.
    Saving,
}

/// What a thread has to do that wants a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Want {
    /// It is there.
    Here,
    /// Take its protection away: it is dirty from here on.
    Unprotect,
    /// Fetch it.
    Fetch,
    /// Make room by this page, then look again.
    Evict { page: usize, dirty: bool },
    /// Wait until something has changed, then look again.
    Wait,
}

/// See the module.
pub(super) struct Table {
    /// Pages that the buffer has room for.
    most: usize,
    pages: HashMap<usize, Page>,
    /// Those that are there, in the order in which they came.
    order: VecDeque<usize>,
    /// Those whose loads fail by a signal, since no majority had answered.
    failed: HashSet<usize>,
}

impl Table {
    pub fn new(most: usize) -> Self {
        Table {
            most,
            pages: HashMap::new(),
            order: VecDeque::new(),
            failed: HashSet::new(),
        }
    }

    /// A thread wants a page.
    pub fn want(&mut self, page: usize, writes: bool) -> Want {
        match self.pages.get(&page) {
            Some(Page::Clean) if writes => {
                self.pages.insert(page, Page::Dirty);
                Want::Unprotect
            }
            Some(Page::Clean | Page::Dirty) => Want::Here,
            Some(Page::Coming | Page::Leaving | Page::Saving) => Want::Wait,
            None if self.pages.len() < self.most => {
                self.pages.insert(page, Page::Coming);
                Want::Fetch
            }
            None => self.evict().unwrap_or(Want::Wait),
        }
    }

    fn evict(&mut self) -> Option<Want> {
        let pages = &self.pages;
        let still = |page: &usize| matches!(pages[page], Page::Clean | Page::Dirty);
        let at = self.order.iter().position(still)?;
        let page = self.order.remove(at)?;
        let before = self.pages.insert(page, Page::Leaving);
        let dirty = before == Some(Page::Dirty);
        Some(Want::Evict { page, dirty })
    }

    /// Whether a page is dirty that is there and with which nothing is under way.
    pub fn here(&self, page: usize) -> Option<bool> {
        match self.pages.get(&page)? {
            Page::Clean => Some(false),
            Page::Dirty => Some(true),
            Page::Coming | Page::Leaving | Page::Saving => None,
        }
    }

    /// Whether a page is not in the buffer, nor on its way.
    pub fn is_absent(&self, page: usize) -> bool {
        !self.pages.contains_key(&page)
    }

    /// A page has been fetched, and is mapped.
    pub fn came(&mut self, page: usize, writes: bool) {
        let state = if writes { Page::Dirty } else { Page::Clean };
        self.pages.insert(page, state);
        self.order.push_back(page);
    }

    /// A page is absent: it has left, or could not be fetched.
    pub fn gone(&mut self, page: usize) {
        self.pages.remove(&page);
    }

    /// A page that was to leave stays: it could not be written back. Others leave before it.
    pub fn stays(&mut self, page: usize) {
        self.pages.insert(page, Page::Dirty);
        self.order.push_back(page);
    }

    /// Those whose content the copies may not have. Who waited for one that comes may have stored
    /// to it before this table knows that it is there.
    pub fn unsaved(&self) -> Vec<usize> {
        let pages = self
            .pages
            .iter()
            .filter(|(_, state)| **state != Page::Clean);
        pages.map(|(page, _)| *page).collect()
    }

    /// Whether a page is to be written back now: true, and it is being saved; false, and it need
    /// not be; none, and something else is under way with it.
    pub fn save(&mut self, page: usize) -> Option<bool> {
        match self.pages.get_mut(&page) {
            Some(state @ Page::Dirty) => {
                *state = Page::Saving;
                Some(true)
            }
            Some(Page::Clean) | None => Some(false),
            Some(Page::Coming | Page::Leaving | Page::Saving) => None,
        }
    }

    /// It has been, or it could not be.
    pub fn saved(&mut self, page: usize, well: bool) {
        let state = if well { Page::Clean } else { Page::Dirty };
        self.pages.insert(page, state);
    }

    /// Loads of this page fail by a signal.
    pub fn fails(&mut self, page: usize) {
        self.failed.insert(page);
    }

    /// Those that have failed need not any more.
    pub fn heal(&mut self) -> Vec<usize> {
        self.failed.drain().collect()
    }

    /// Pages in the buffer, or on their way.
    pub fn len(&self) -> usize {
        self.pages.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(writes: bool) -> Table {
        let mut table = Table::new(LEAST);
        for page in 0..LEAST {
            assert_eq!(table.want(page, writes), Want::Fetch);
            table.came(page, writes);
        }
        table
    }

    #[test]
    fn what_came_first_leaves_first_and_is_written_back_if_it_is_dirty() {
        let mut table = full(false);
        assert_eq!(table.want(2, true), Want::Unprotect);
        assert_eq!(table.want(2, true), Want::Here);
        for (page, dirty) in [(0, false), (1, false), (2, true), (3, false)] {
            assert_eq!(table.want(9, false), Want::Evict { page, dirty });
        }
        // All leave: nothing more can be asked to.
        assert_eq!(table.want(9, false), Want::Wait);
        table.gone(0);
        assert_eq!(table.want(9, false), Want::Fetch);
        assert_eq!(table.want(9, false), Want::Wait);
        assert_eq!(table.want(2, false), Want::Wait, "it is written back");
        assert_eq!(table.len(), LEAST);
    }

    #[test]
    fn a_page_that_comes_may_have_been_stored_to() {
        let mut table = Table::new(LEAST);
        assert_eq!(table.want(7, true), Want::Fetch);
        assert_eq!(table.unsaved(), [7]);
        assert_eq!(table.save(7), None);
        table.came(7, true);
        assert_eq!(table.save(7), Some(true));
    }

    #[test]
    fn a_page_that_cannot_be_written_back_stays_and_others_leave() {
        let mut table = full(true);
        let evict = |page| Want::Evict { page, dirty: true };
        assert_eq!(table.want(9, false), evict(0));
        table.stays(0);
        assert_eq!(table.want(0, true), Want::Here);
        assert_eq!(table.want(9, false), evict(1));
        assert_eq!(table.unsaved().len(), LEAST);
    }

    #[test]
    fn what_is_saved_is_protected_again_and_leaves_no_sooner() {
        let mut table = full(true);
        assert_eq!(table.save(0), Some(true));
        assert_eq!(table.save(0), None, "another thread saves it");
        assert_eq!(table.want(0, true), Want::Wait);
        assert_eq!(
            table.want(9, true),
            Want::Evict {
                page: 1,
                dirty: true
            }
        );
        table.saved(0, true);
        assert_eq!(table.save(0), Some(false));
        assert_eq!(table.want(0, true), Want::Unprotect);
        assert_eq!(table.save(0), Some(true));
        table.saved(0, false);
        let mut unsaved = table.unsaved();
        unsaved.sort_unstable();
        assert_eq!(unsaved, [0, 1, 2, 3]);
    }
}
