//! Pages behind reader-writer locks, in one process.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rackmem::waiting::sleeps;
use rackmem::window::{Window, WindowMut};

use super::{Access, MemoryError, Pages};

/// Who is inside.
#[derive(Clone, Copy, Default)]
struct Holders {
    readers: usize,
    writer: bool,
}

impl Holders {
    fn bars(&self, access: Access) -> bool {
        self.writer || (access == Access::Write && self.readers != 0)
    }
}

/// That a thread is inside of the lock of one of [`HeapPages`].
#[derive(Debug)]
pub struct HeapInside {
    page: usize,
    access: Access,
}

impl HeapInside {
    /// Which page's.
    pub fn page(&self) -> usize {
        self.page
    }
}

struct Page {
    holders: Mutex<Holders>,
    left: Condvar,
    words: Box<[AtomicU64]>,
}

/// The pages of a [`super::HeapMemory`] at one address.
pub struct HeapPages {
    pages: Box<[Page]>,
    len: usize,
}

impl HeapPages {
    pub(super) fn new(count: usize, len: usize) -> Self {
        let page = |_| Page {
            holders: Mutex::default(),
            left: Condvar::new(),
            words: (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect(),
        };
        HeapPages {
            pages: (0..count).map(page).collect(),
            len,
        }
    }
}

impl Pages for Arc<HeapPages> {
    type Inside = HeapInside;

    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<HeapInside>, MemoryError> {
        let Page { holders, left, .. } = &self.pages[page];
        let holders = holders.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.bars(access) {
            sleeps();
        }
        let (mut holders, _) = left
            .wait_timeout_while(holders, at_most, |holders| holders.bars(access))
            .unwrap_or_else(PoisonError::into_inner);
        if holders.bars(access) {
            return Ok(None);
        }
        match access {
            Access::Read => holders.readers += 1,
            Access::Write => holders.writer = true,
        }
        Ok(Some(HeapInside { page, access }))
    }

    fn leave(&self, inside: HeapInside) {
        let page = &self.pages[inside.page];
        let mut holders = page.holders.lock().unwrap_or_else(PoisonError::into_inner);
        match inside.access {
            Access::Read => holders.readers -= 1,
            Access::Write => holders.writer = false,
        }
        page.left.notify_all();
    }

    fn view<'a>(&'a self, inside: &'a HeapInside) -> Window<'a> {
        Window::new(&self.pages[inside.page].words, 0, self.len)
    }

    fn view_mut<'a>(&'a self, inside: &'a mut HeapInside, _len: usize) -> Option<WindowMut<'a>> {
        let words = &self.pages[inside.page].words;
        (inside.access == Access::Write).then(|| WindowMut::new(words, 0, self.len))
    }

    fn trim(&self, inside: &mut HeapInside, len: usize) {
        if inside.access == Access::Write {
            let behind = &self.pages[inside.page].words[len.div_ceil(8)..];
            behind.iter().for_each(|word| word.store(0, Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_enter_together_and_writers_alone() {
        let pages = Arc::new(HeapPages::new(2, 64));
        let try_enter = |access| pages.enter(0, access, Duration::ZERO).unwrap();
        let one = try_enter(Access::Read).unwrap();
        let mut other = try_enter(Access::Read).unwrap();
        assert!(pages.view_mut(&mut other, 8).is_none());
        assert!(try_enter(Access::Write).is_none());
        pages.leave(one);
        pages.leave(other);
        let mut writer = try_enter(Access::Write).unwrap();
        assert!(pages.view_mut(&mut writer, 8).is_some());
        assert!(try_enter(Access::Read).is_none());
        let other = pages.enter(1, Access::Write, Duration::ZERO);
        assert!(other.unwrap().is_some());
        pages.leave(writer);
        assert!(try_enter(Access::Read).is_some());
    }
}
