//! A bucket whose lock is held: its head page, and the pages behind it.

use std::cell::Cell;

use super::buckets::Slab;
use super::bus::News;
use super::core::Core;
use super::lock::Held;
use crate::error::{Error, Result};
use crate::layout::page::{HEADER, Page};
use crate::layout::page_mut::PageMut;
use crate::layout::superblock::{Era, Flushes};
use crate::memory::{Memory, Pages};

/// One of a bucket's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The one that came with the lock.
    Head,
    /// One in memory, by its address.
    Memory(u64),
}

impl At {
    /// What a page's `next` says.
    pub fn next(addr: u64) -> Option<At> {
        (addr != 0).then_some(At::Memory(addr))
    }
}

/// That a thread is inside of a bucket's lock.
pub(crate) type Inside<M> = <<M as Memory>::Pages as Pages>::Inside;

/// On whose behalf the bucket is held.
enum Holder<'a, M: Memory> {
    /// An operation of its own, and the flushes it goes by once it has to know of all.
    Alone(Cell<Option<Flushes>>),
    /// Something that holds it for longer, and the place of the bucket in that.
    Held(&'a Held<'a, M>, usize),
}

/// See the module. Dropping it releases the lock, unless a transaction still holds it.
pub(crate) struct Bucket<'a, M: Memory> {
    pub core: &'a Core<M>,
    pub number: usize,
    slab: &'a Slab<M>,
    /// Until this is dropped.
    inside: Option<Inside<M>>,
    holder: Holder<'a, M>,
    /// What is told when the lock has been left.
    pub news: Vec<News>,
}

impl<M: Memory> Drop for Bucket<'_, M> {
    #[inline]
    fn drop(&mut self) {
        match (&self.holder, self.inside.take()) {
            (Holder::Alone(_), Some(inside)) => {
                self.slab.heads.leave(inside);
                self.core.tell_all(&self.news);
            }
            (Holder::Held(held, place), inside) => {
                held.give_back(*place, inside);
                held.news.borrow_mut().append(&mut self.news);
            }
            _ => {}
        }
    }
}

/// Why a bucket whose lock was entered to read is not changed.
const TO_READ: Error = Error::BadOption("the bucket is held to be read");

impl<'a, M: Memory> Bucket<'a, M> {
    /// One whose lock the caller has entered, and leaves with this.
    #[inline]
    pub fn entered(core: &'a Core<M>, number: usize, slab: &'a Slab<M>, inside: Inside<M>) -> Self {
        Bucket {
            core,
            number,
            slab,
            inside: Some(inside),
            holder: Holder::Alone(Cell::new(None)),
            news: Vec::new(),
        }
    }

    /// One that is held for longer, and gets this back.
    pub fn held(
        held: &'a Held<'a, M>,
        (number, place): (usize, usize),
        slab: &'a Slab<M>,
        inside: Inside<M>,
    ) -> Self {
        Bucket {
            core: held.core,
            number,
            slab,
            inside: Some(inside),
            holder: Holder::Held(held, place),
            news: Vec::new(),
        }
    }

    /// The head page.
    #[inline]
    pub fn head(&self) -> Page<'_> {
        let inside = self.inside.as_ref().expect("it is not dropped");
        Page::new(self.slab.heads.view(inside), &self.core.geometry)
    }

    /// Changes the head page, which takes memory as it grows, and gives most of it back when it
    /// does not need half.
    #[inline]
    pub fn change_head<R>(&mut self, f: impl FnOnce(&mut PageMut<'_, '_>) -> R) -> Result<R> {
        let heads = &self.slab.heads;
        let inside = self.inside.as_mut().expect("it is not dropped");
        let mut view = heads.view_mut(inside, HEADER).ok_or(TO_READ)?;
        let mut page = PageMut::new(&mut view, &self.core.geometry);
        let result = f(&mut page);
        let used = page.page().used();
        if used * 2 < view.len() {
            heads.trim(inside, used);
        }
        Ok(result)
    }

    /// The head page takes no memory any more: it is zeros, or what it was.
    pub fn give_up_head(&mut self) {
        if let Some(inside) = &mut self.inside {
            self.slab.heads.trim(inside, 0);
        }
    }

    /// Looks at a page. `f` may run several times; the last run counts.
    pub fn look<R>(&self, at: At, mut f: impl FnMut(&Page<'_>) -> R) -> Result<R> {
        let core = self.core;
        match at {
            At::Head => Ok(f(&self.head())),
            At::Memory(addr) => Ok(core.memory.snapshot(addr, core.geometry.page, |view| {
                f(&Page::new(*view, &core.geometry))
            })?),
        }
    }

    /// Changes a page.
    pub fn change<R>(&mut self, at: At, f: impl FnOnce(&mut PageMut<'_, '_>) -> R) -> Result<R> {
        let core = self.core;
        match at {
            At::Head => self.change_head(f),
            At::Memory(addr) => Ok(core.memory.update(addr, core.geometry.page, |view| {
                f(&mut PageMut::new(view, &core.geometry))
            })?),
        }
    }

    /// The node that further pages are allocated at.
    pub fn home(&self) -> u16 {
        let (slab, _) = self.core.map.place(self.number);
        self.core.map.home(slab)
    }

    /// What the operation must know about flushes of one database.
    #[inline]
    pub fn era(&self, db: u8) -> Result<Era> {
        match &self.holder {
            Holder::Held(held, _) => Ok(held.pinned.get().era(db)),
            Holder::Alone(pinned) => match pinned.get() {
                Some(flushes) => Ok(flushes.era(db)),
                None => self.core.newest_era(db),
            },
        }
    }

    /// The flushes that the operation goes by from now on: one that comes later takes effect after
    /// it.
    pub fn flushes(&self) -> Result<Flushes> {
        match &self.holder {
            Holder::Held(held, _) => Ok(held.pinned.get()),
            Holder::Alone(pinned) => match pinned.get() {
                Some(flushes) => Ok(flushes),
                None => {
                    let flushes = self.core.newest_flushes()?;
                    pinned.set(Some(flushes));
                    Ok(flushes)
                }
            },
        }
    }

    /// What it held is older than what was last written to it, which died with a node:
    /// it begins anew, empty.
    #[cold]
    pub fn begin_anew(&mut self) -> Result<()> {
        self.change_head(|page| page.format())?;
        self.news.push(News::everything());
        self.core.note_losses(1, 0)
    }

    /// After a look at a bucket that is held to be changed has failed: mends what can be mended.
    /// `Ok` when trying again makes sense.
    #[cold]
    pub fn recover(&mut self, error: Error) -> Result<()> {
        match self.core.lost_in_bucket(error)? {
            true => self.mend(),
            false => Ok(()),
        }
    }
}
