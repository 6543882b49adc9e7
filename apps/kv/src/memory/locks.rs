//! Pages behind reader-writer locks, in one process.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rackmem::waiting::sleeps;
use rackmem::window::{Window, WindowMut};

use super::events::{Events, Step};
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

struct Page {
    holders: Mutex<Holders>,
    left: Condvar,
    words: Box<[AtomicU64]>,
}

/// Pages of one length.
pub(super) struct Locked {
    pages: Box<[Page]>,
    len: usize,
}

impl Locked {
    pub fn new(count: usize, len: usize) -> Self {
        let page = |_| Page {
            holders: Mutex::default(),
            left: Condvar::new(),
            words: (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect(),
        };
        Locked {
            pages: (0..count).map(page).collect(),
            len,
        }
    }

    /// Enters a page's lock; `waits` is called if others are inside.
    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
        waits: impl FnOnce(),
    ) -> Option<HeapInside> {
        let Page { holders, left, .. } = &self.pages[page];
        let lock = || holders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inside = lock();
        if inside.bars(access) {
            drop(inside);
            waits();
            sleeps();
            inside = lock();
        }
        let (mut holders, _) = left
            .wait_timeout_while(inside, at_most, |holders| holders.bars(access))
            .unwrap_or_else(PoisonError::into_inner);
        if holders.bars(access) {
            return None;
        }
        match access {
            Access::Read => holders.readers += 1,
            Access::Write => holders.writer = true,
        }
        Some(HeapInside { page, access })
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
}

/// The pages of a [`super::HeapMemory`] at one address.
pub struct HeapPages {
    pub(super) locked: Arc<Locked>,
    pub(super) addr: u64,
    pub(super) events: Arc<dyn Events>,
}

impl Pages for HeapPages {
    type Inside = HeapInside;

    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
    ) -> Result<Option<HeapInside>, MemoryError> {
        self.events.happens(Step::Enter(self.addr, page))?;
        let entered = self.locked.enter(page, access, at_most, || {
            let _ = self.events.happens(Step::Wait(self.addr, page));
        });
        let _ = self.events.happens(Step::Entered(self.addr, page));
        Ok(entered)
    }

    fn leave(&self, inside: HeapInside) {
        let page = inside.page;
        let _ = self.events.happens(Step::Leave(self.addr, page));
        self.locked.leave(inside);
        let _ = self.events.happens(Step::Left(self.addr, page));
    }

    fn view<'a>(&'a self, inside: &'a HeapInside) -> Window<'a> {
        Window::new(&self.locked.pages[inside.page].words, 0, self.locked.len)
    }

    fn view_mut<'a>(&'a self, inside: &'a mut HeapInside, _len: usize) -> Option<WindowMut<'a>> {
        let words = &self.locked.pages[inside.page].words;
        (inside.access == Access::Write).then(|| WindowMut::new(words, 0, self.locked.len))
    }

    fn trim(&self, inside: &mut HeapInside, len: usize) {
        if inside.access == Access::Write {
            let behind = &self.locked.pages[inside.page].words[len.div_ceil(8)..];
            behind.iter().for_each(|word| word.store(0, Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::events::Calm;

    #[test]
    fn readers_enter_together_and_writers_alone() {
        let pages = HeapPages {
            locked: Arc::new(Locked::new(2, 64)),
            addr: 0,
            events: Arc::new(Calm),
        };
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
