//! Pages behind reader-writer locks, in one process.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rackmem::window::{Window, WindowMut};

use super::{Access, Entered, MemoryError, Pages};

/// Who is inside.
#[derive(Clone, Copy, Default)]
struct Inside {
    readers: usize,
    writer: bool,
}

impl Inside {
    fn bars(&self, access: Access) -> bool {
        self.writer || (access == Access::Write && self.readers != 0)
    }
}

struct Page {
    inside: Mutex<Inside>,
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
            inside: Mutex::default(),
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
    fn enter(
        &self,
        page: usize,
        access: Access,
        at_most: Duration,
    ) -> Result<Entered, MemoryError> {
        let page = &self.pages[page];
        let inside = page.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut inside, _) = page
            .left
            .wait_timeout_while(inside, at_most, |inside| inside.bars(access))
            .unwrap_or_else(PoisonError::into_inner);
        if inside.bars(access) {
            return Ok(Entered::Busy);
        }
        match access {
            Access::Read => inside.readers += 1,
            Access::Write => inside.writer = true,
        }
        Ok(Entered::Inside)
    }

    fn leave(&self, page: usize, access: Access) {
        let page = &self.pages[page];
        let mut inside = page.inside.lock().unwrap_or_else(PoisonError::into_inner);
        match access {
            Access::Read => inside.readers -= 1,
            Access::Write => inside.writer = false,
        }
        page.left.notify_all();
    }

    fn view(&self, page: usize) -> Window<'_> {
        Window::new(&self.pages[page].words, 0, self.len)
    }

    fn view_mut(&self, page: usize, _len: usize) -> WindowMut<'_> {
        WindowMut::new(&self.pages[page].words, 0, self.len)
    }

    fn trim(&self, page: usize, len: usize) {
        let behind = &self.pages[page].words[len.div_ceil(8)..];
        behind.iter().for_each(|word| word.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_enter_together_and_writers_alone() {
        let pages = Arc::new(HeapPages::new(2, 64));
        let try_enter = |access| pages.enter(0, access, Duration::ZERO).unwrap();
        assert_eq!(try_enter(Access::Read), Entered::Inside);
        assert_eq!(try_enter(Access::Read), Entered::Inside);
        assert_eq!(try_enter(Access::Write), Entered::Busy);
        pages.leave(0, Access::Read);
        pages.leave(0, Access::Read);
        assert_eq!(try_enter(Access::Write), Entered::Inside);
        assert_eq!(try_enter(Access::Read), Entered::Busy);
        let other = pages.enter(1, Access::Write, Duration::ZERO);
        assert_eq!(other.unwrap(), Entered::Inside);
        pages.leave(0, Access::Write);
        assert_eq!(try_enter(Access::Read), Entered::Inside);
    }
}
