//! A bucket whose lock is held: its head page, and the pages behind it.

use std::cell::Cell;

use super::buckets::Slab;
use super::bus::News;
use super::core::Core;
use super::held::Held;
use super::lock::Scope;
use crate::error::{Error, Result};
use crate::layout::page::{HEADER, Page};
use crate::layout::page_mut::PageMut;
use crate::layout::superblock::{Era, Flushes};
use crate::memory::{Memory, MemoryError, Pages};

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

/// What a bucket is to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The key is in it, or nowhere.
    Owner,
    /// The bucket was split, and the key is in one that came of it. Bits of its number.
    Split(u8),
    /// There is no such bucket any more, or not yet, or its page has died.
    Unknown,
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
    /// It is to be split or merged then: the hash of one of its keys.
    pub unbalanced: Option<u64>,
}

impl<M: Memory> Drop for Bucket<'_, M> {
    #[inline]
    fn drop(&mut self) {
        match (&self.holder, self.inside.take()) {
            (Holder::Alone(_), Some(inside)) => {
                self.slab.heads.leave(inside);
                self.core.tell_all(&self.news);
                if let Some(hash) = self.unbalanced {
                    self.core.balance(hash);
                }
            }
            (Holder::Held(held, place), inside) => {
                held.give_back(*place, inside);
                held.news.borrow_mut().append(&mut self.news);
                if let Some(hash) = self.unbalanced {
                    held.note_unbalanced(hash);
                }
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
            unbalanced: None,
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
            unbalanced: None,
        }
    }

    /// On whose behalf it is held.
    #[inline]
    pub fn scope(&self) -> Scope<'a, M> {
        match &self.holder {
            Holder::Alone(_) => Scope(None),
            Holder::Held(held, _) => Scope(Some(held)),
        }
    }

    /// Where its slab is, as its holder found it.
    pub fn slab_addr(&self) -> u64 {
        self.slab.addr()
    }

    /// The head page.
    #[inline]
    pub fn head(&self) -> Page<'_> {
        let inside = self.inside.as_ref().expect("it is not dropped");
        Page::new(self.slab.heads.view(inside), &self.core.geometry)
    }

    /// Whether the keys of this hash are in this bucket.
    #[inline]
    pub fn standing(&self, hash: u64) -> Standing {
        let head = self.head();
        if !head.initialized() {
            return match self.is_fresh_root() {
                true => Standing::Owner,
                false => Standing::Unknown,
            };
        }
        let depth = head.depth();
        if head.is_doubtful() {
            Standing::Unknown
        } else if (hash as usize ^ self.number) & ((1 << depth) - 1) == 0 {
            Standing::Owner
        } else {
            Standing::Split(depth)
        }
    }

    /// One of the first buckets, which nobody has written since.
    fn is_fresh_root(&self) -> bool {
        self.number < self.core.map.roots && !self.slab.is_replaced()
    }

    /// One of the first buckets, which may begin anew by itself.
    pub fn is_unsplit_root(&self) -> bool {
        let (map, number) = (&self.core.map, self.number);
        number < map.roots && !self.slab.is_replaced() && self.depth() == map.root_depth()
    }

    /// Bits of its number that are those of its keys' hashes.
    pub fn depth(&self) -> u8 {
        let head = self.head();
        match head.initialized() {
            true => head.depth(),
            false => self.core.map.birth_depth(self.number),
        }
    }

    /// Whether it is certain that there is this bucket.
    pub fn is_certain(&self) -> bool {
        let head = self.head();
        match head.initialized() {
            true => !head.is_doubtful(),
            false => self.is_fresh_root(),
        }
    }

    /// Changes the head page, which takes memory as it grows, and gives most of it back when it
    /// does not need half.
    #[inline]
    pub fn change_head<R>(&mut self, f: impl FnOnce(&mut PageMut<'_, '_>) -> R) -> Result<R> {
        let (mut f, mut result) = (Some(f), None);
        self.alter_head(&mut |page| result = f.take().map(|f| f(page)))?;
        result.ok_or(TO_READ)
    }

    fn alter_head(&mut self, f: &mut dyn FnMut(&mut PageMut<'_, '_>)) -> Result<()> {
        self.note_head();
        let heads = &self.slab.heads;
        let fresh = match self.is_fresh_root() {
            true => Some(self.core.map.root_depth()),
            false => None,
        };
        let inside = self.inside.as_mut().expect("it is not dropped");
        let mut view = heads.view_mut(inside, HEADER).ok_or(TO_READ)?;
        let mut page = PageMut::new(&mut view, &self.core.geometry);
        // Only a fresh root begins with a write; who begins another one says how deep it is.
        if let Some(depth) = fresh
            && page.page().depth() == 0
        {
            page.set_depth(depth, false);
        }
        f(&mut page);
        let used = page.page().used();
        if used * 2 < view.len() {
            heads.trim(inside, used);
        }
        Ok(())
    }

    /// The bucket is elsewhere from now on: who comes here looks it up again.
    pub fn mark_moved(&mut self) {
        let heads = &self.slab.heads;
        let inside = self.inside.as_mut().expect("it is not dropped");
        if let Some(mut view) = heads.view_mut(inside, HEADER) {
            PageMut::moved(&mut view, &self.core.geometry);
            heads.trim(inside, HEADER);
        }
    }

    /// The head page is as if it was never written, and takes no memory any more.
    pub fn give_up_head(&mut self) -> Result<()> {
        let heads = &self.slab.heads;
        let inside = self.inside.as_mut().expect("it is not dropped");
        if let Some(mut view) = heads.view_mut(inside, HEADER) {
            PageMut::erased(&mut view);
            heads.trim(inside, 0);
        }
        Ok(())
    }

    /// The head page is again as it was.
    pub fn put_back(&mut self, bytes: &[u8]) -> Result<()> {
        match bytes.is_empty() && self.head().watchers() == 0 {
            true => self.give_up_head(),
            false => self.change_head(|page| page.put_back(bytes)),
        }
    }

    /// Looks at a page. `f` may run several times; the last run counts.
    pub fn look<R>(&self, at: At, mut f: impl FnMut(&Page<'_>) -> R) -> Result<R> {
        let mut result = None;
        let mut keep = |page: &Page<'_>| result = Some(f(page));
        match at {
            At::Head => keep(&self.head()),
            At::Memory(addr) => self.look_far(addr, &mut keep)?,
        }
        result.ok_or(Error::Corrupt("a page could not be seen"))
    }

    /// Many look, and what brings a page from another node is the same for all.
    fn look_far(&self, addr: u64, f: &mut dyn FnMut(&Page<'_>)) -> Result<()> {
        let core = self.core;
        Ok(core.memory.snapshot(addr, core.geometry.page, |view| {
            f(&Page::new(*view, &core.geometry));
        })?)
    }

    /// Changes a page.
    pub fn change<R>(&mut self, at: At, f: impl FnOnce(&mut PageMut<'_, '_>) -> R) -> Result<R> {
        match at {
            At::Head => self.change_head(f),
            At::Memory(addr) => {
                let (mut f, mut result) = (Some(f), None);
                self.change_far(addr, &mut |page| result = f.take().map(|f| f(page)))?;
                result.ok_or(TO_READ)
            }
        }
    }

    fn change_far(&mut self, addr: u64, f: &mut dyn FnMut(&mut PageMut<'_, '_>)) -> Result<()> {
        let core = self.core;
        self.note_page(addr)?;
        Ok(core.memory.update(addr, core.geometry.page, |view| {
            f(&mut PageMut::new(view, &core.geometry));
        })?)
    }

    /// The node that further pages are allocated at.
    pub fn home(&self) -> u16 {
        let home = self.core.memory.home_of(self.slab.addr());
        home.unwrap_or_else(|| self.core.map.home(self.core.map.place(self.number).0))
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
        let doubt = self.core.map.parent(self.number).is_some();
        self.begin(doubt)?;
        self.news.push(News::everything());
        self.core.note_losses(1, 0)
    }

    /// Begins, empty. Nobody knows how often it was split: as often as any bucket, so that those
    /// that came of it are found. `doubt`: whether there was such a bucket is not certain.
    pub fn begin(&mut self, doubt: bool) -> Result<()> {
        let depth = self.core.deepest()?;
        let birth = self.core.map.birth_depth(self.number);
        self.change_head(|page| {
            page.format();
            page.set_depth(depth.max(birth), doubt);
        })
    }

    /// After a look at a bucket that is held to be changed has failed: mends what can be mended.
    /// `Ok` when trying again makes sense.
    ///
    /// # Errors
    /// What of it cannot be mended. Also when keys have left the bucket, and an earlier command of
    /// the same transaction or script has used it: what that has seen or written would be gone for
    /// the rest of what is to be one step.
    #[cold]
    pub fn recover(&mut self, error: Error) -> Result<()> {
        let lost = match &error {
            Error::Memory(MemoryError::Lost(addr)) => Some(*addr),
            _ => None,
        };
        if !self.core.lost_in_bucket(error)? {
            return Ok(());
        }
        let dropped = self.mend()?;
        match (&self.holder, lost) {
            (Holder::Held(held, place), Some(addr)) if dropped > 0 && held.was_used(*place) => {
                Err(MemoryError::Lost(addr).into())
            }
            _ => Ok(()),
        }
    }
}
