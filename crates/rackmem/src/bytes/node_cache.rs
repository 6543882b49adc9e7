//! Copies of blocks that a node has: in the sets of its cache, or as pages of a mapping.
//!
//! An entry's number says where it is; those of the sets come first.
//! A block of a mapping that is in use comes as a page. One that came before stays in its set until
//! it leaves, or until a fault sends it home.

use super::cache::{Cache, Locked};
use super::mapped::{Frames, Granted, LockedPage, Shown, Stop};
use crate::error::RegionError;
use rackmem_fabric::Whole;
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, OnceLock};

/// Ranges of blocks that a process maps in its life, at most. A range that is mapped again counts
/// once.
pub(crate) const MAPPINGS: usize = 256;

/// Bits of an entry's number that say which page of its mapping.
const PAGE_BITS: u32 = 32;

/// A node's cache.
pub(crate) struct NodeCache {
    /// Hits by word go here.
    sets: Cache,
    /// Not in the value: it is half a megabyte, and moves about before a node has it.
    mapped: Box<[OnceLock<Frames>]>,
    /// How many of them there are.
    mappings: AtomicUsize,
    /// Whoever adds one.
    adding: Mutex<()>,
}

/// Why there is no mapping.
pub(crate) enum Unmapped {
    /// A mapping has some of these blocks, and not just these.
    Overlaps,
    /// There are as many as there can be.
    Full,
    Refused(RegionError),
}

/// An entry that this thread has locked.
pub(crate) enum LockedEntry<'a> {
    Set(Locked<'a>),
    Page(usize, LockedPage<'a>),
}

/// What another node finds that wants a block.
pub(crate) enum Other<'a> {
    /// It is no page, or loses nothing.
    Elsewhere,
    Locked(LockedEntry<'a>),
    /// The program has pinned it.
    Pinned,
}

/// Sizes, addresses, hits by word: of the sets.
impl Deref for NodeCache {
    type Target = Cache;

    #[inline]
    fn deref(&self) -> &Cache {
        &self.sets
    }
}

impl NodeCache {
    /// See [`Cache::new`].
    pub fn new(bytes: usize, block: usize) -> Self {
        NodeCache::over(Cache::new(bytes, block))
    }

    /// The same with these sets.
    pub fn over(sets: Cache) -> Self {
        NodeCache {
            sets,
            mapped: (0..MAPPINGS).map(|_| OnceLock::new()).collect(),
            mappings: AtomicUsize::new(0),
            adding: Mutex::new(()),
        }
    }

    /// Whether an entry is one of a set, and no page.
    pub fn is_in_sets(&self, entry: usize) -> bool {
        entry < self.sets.capacity()
    }

    /// What is in the sets alone.
    pub fn sets(&self) -> &Cache {
        &self.sets
    }

    pub fn mappings(&self) -> impl Iterator<Item = &Frames> {
        let count = self.mappings.load(Acquire).min(MAPPINGS);
        self.mapped[..count].iter().filter_map(OnceLock::get)
    }

    /// A mapping by its number.
    #[inline]
    pub fn frames(&self, mapping: usize) -> Option<&Frames> {
        self.mapped.get(mapping)?.get()
    }

    /// The mapping of a range of blocks and its number, made if there is none.
    pub fn mapping(
        &self,
        (first, blocks): (Tag, usize),
        make: impl FnOnce() -> Result<Frames, RegionError>,
    ) -> Result<(usize, &Frames), Unmapped> {
        let _turn = self.adding.lock().whole();
        let end = |(first, blocks): (Tag, usize)| first.0 + (blocks * self.block_bytes()) as u64;
        for (nth, frames) in self.mappings().enumerate() {
            let (begins, ends) = (frames.range().0.0, end(frames.range()));
            if frames.range() == (first, blocks) {
                return Ok((nth, frames));
            }
            if begins < end((first, blocks)) && first.0 < ends {
                return Err(Unmapped::Overlaps);
            }
        }
        let nth = self.mappings.load(Acquire);
        let place = self.mapped.get(nth).ok_or(Unmapped::Full)?;
        let frames = make().map_err(Unmapped::Refused)?;
        let frames = place.get_or_init(|| frames);
        self.mappings.store(nth + 1, Release);
        Ok((nth, frames))
    }

    /// The page that a block is, or would be, in a mapping that is in use or has it still.
    #[cold]
    fn page_of(&self, tag: Tag, wanted: impl Fn(&Frames, usize) -> bool) -> Option<usize> {
        let first = self.sets.capacity();
        self.mappings().enumerate().find_map(|(nth, frames)| {
            let page = frames.nth(tag).filter(|page| wanted(frames, *page))?;
            Some(first + (nth << PAGE_BITS) + page)
        })
    }

    #[inline]
    fn page(&self, entry: usize) -> Option<(&Frames, usize)> {
        let number = entry.checked_sub(self.sets.capacity())?;
        let frames = self.frames(number >> PAGE_BITS)?;
        Some((frames, number & ((1 << PAGE_BITS) - 1)))
    }

    /// The entry that holds a block. What it holds may change at any moment.
    #[inline]
    pub fn find(&self, tag: Tag) -> Option<usize> {
        match self.sets.find(tag) {
            Some(entry) => Some(entry),
            None if self.mappings.load(Acquire) == 0 => None,
            None => self.page_of(tag, |frames, page| {
                frames.status(page) != LocalStatus::Invalid
            }),
        }
    }

    /// How often an entry of the sets has changed.
    pub fn changes(&self, entry: usize) -> Option<u64> {
        self.sets.changes(entry)
    }

    /// Whether a block is in the sets, and would be a page now.
    pub fn strays(&self, tag: Tag) -> bool {
        let used = |frames: &Frames, _| frames.is_used();
        self.sets.find(tag).is_some() && self.page_of(tag, used).is_some()
    }

    /// An entry for a block that this node has none of, or the one that has to make room first,
    /// with its block, if it has one. `near`: a block whose events are kept where this one's are;
    /// `free`: an entry that has no event.
    pub fn room(
        &self,
        tag: Tag,
        near: impl Fn(Tag) -> bool,
        free: impl Fn(usize) -> bool,
    ) -> Option<(usize, Option<Tag>)> {
        let used = |frames: &Frames, _| frames.is_used();
        let (set, _) = self.sets.set_of(tag);
        if let Some(entry) = self.page_of(tag, used)
            && let Some((frames, nth)) = self.page(entry)
        {
            let number = |page| entry - nth + page;
            let (page, victim) = frames.room(nth, set, near, |page| free(number(page)));
            return Some((number(page), victim));
        }
        self.sets.tick();
        if let Some(entry) = self.sets.free(set, &free) {
            return Some((entry, None));
        }
        // Without a block: the network has just taken it.
        let (victim, entry) = self.sets.oldest(set, free)?;
        Some((entry, victim))
    }

    /// See [`Cache::read`].
    #[inline]
    pub fn read<R>(&self, tag: Tag, mut f: impl FnMut(&[AtomicU64]) -> R) -> Option<R> {
        match self.sets.read(tag, &mut f) {
            Some(result) => Some(result),
            None if self.mappings.load(Acquire) == 0 => None,
            None => {
                let mut result = None;
                self.in_page(tag, LocalStatus::Shared, &mut |words| {
                    result = Some(f(words))
                });
                result
            }
        }
    }

    /// See [`Cache::write`].
    #[inline]
    pub fn write<R>(&self, tag: Tag, f: impl FnOnce(&[AtomicU64]) -> R) -> Option<R> {
        let mut once = Some(f);
        let mut run = |words: &[AtomicU64]| once.take().map(|f| f(words));
        let written = self.sets.write(tag, &mut run);
        match written {
            Some(result) => result,
            None if self.mappings.load(Acquire) == 0 => None,
            None => {
                let mut result = None;
                self.in_page(tag, LocalStatus::Modified, &mut |words| result = run(words));
                result
            }
        }
    }

    /// Uses a page's words, once, while the program does not store there; or not, if this node may
    /// not.
    #[cold]
    fn in_page(&self, tag: Tag, least: LocalStatus, f: &mut dyn FnMut(&[AtomicU64])) {
        let valid = |frames: &Frames, page| frames.status(page) != LocalStatus::Invalid;
        let page = self.page_of(tag, valid).and_then(|entry| self.page(entry));
        let Some((frames, page)) = page else {
            return;
        };
        let locked = frames.lock(page, Stop::Stores);
        if locked.status() >= least {
            f(frames.block(page));
        }
        locked.show_pinned();
    }

    /// Gives the program's mapping a right to a page, if this node's copy allows it.
    pub fn show(&self, tag: Tag, writes: bool) -> Shown {
        let valid = |frames: &Frames, page| frames.status(page) != LocalStatus::Invalid;
        let page = self.page_of(tag, valid).and_then(|entry| self.page(entry));
        page.map_or(Shown::No, |(frames, page)| frames.show(page, writes))
    }

    /// The same where this thread has the entry's lock, and a copy that allows it is in place.
    pub fn show_locked(&self, entry: usize, writes: bool, granted: Granted) -> Shown {
        self.page(entry).map_or(Shown::No, |(frames, page)| {
            frames.show_locked(page, writes, granted)
        })
    }

    /// Of sixty-four parts of a block those that the program has been seen to store to, by plain
    /// stores, as bits.
    pub fn written(&self, tag: Tag) -> u64 {
        let page = self.page_of(tag, |_, _| true);
        let page = page.and_then(|entry| self.page(entry));
        page.map_or(0, |(frames, page)| frames.written(page))
    }

    /// Whether a fault asks for the right to store.
    pub fn asks(&self, tag: Tag, stores: bool) -> bool {
        let page = self.page_of(tag, |frames, _| frames.is_used());
        let page = page.and_then(|entry| self.page(entry));
        page.map_or(stores, |(frames, page)| frames.asks(page, stores))
    }

    pub fn status(&self, entry: usize) -> LocalStatus {
        match self.page(entry) {
            Some((frames, page)) => frames.status(page),
            None => self.sets.status(entry),
        }
    }

    pub fn block(&self, entry: usize) -> &[AtomicU64] {
        match self.page(entry) {
            Some((frames, page)) => frames.block(page),
            None => self.sets.block(entry),
        }
    }

    /// See [`Cache::vacant`].
    pub fn vacant(&self, entry: usize) -> &[AtomicU64] {
        match self.page(entry) {
            Some((frames, page)) => {
                // Whoever has taken the block that was here is done with its bytes.
                drop(frames.lock(page, Stop::All));
                frames.block(page)
            }
            None => self.sets.vacant(entry),
        }
    }

    /// See [`Cache::lock`]; `stop`: what a program may not do any more where it is a page.
    pub fn lock(&self, entry: usize, stop: Stop) -> LockedEntry<'_> {
        match self.page(entry) {
            Some((frames, page)) => LockedEntry::Page(entry, frames.lock(page, stop)),
            None => LockedEntry::Set(self.sets.lock(entry)),
        }
    }

    /// Locks the entry of a block, if there is one, for another node, pinned or not.
    pub fn lock_tag(&self, tag: Tag, stop: Stop) -> Option<LockedEntry<'_>> {
        if let Some(locked) = self.sets.lock_tag(tag) {
            return Some(LockedEntry::Set(locked));
        }
        let entry = self.find(tag)?;
        let (frames, page) = self.page(entry)?;
        let locked = frames.lock_for_all(page, stop);
        Some(LockedEntry::Page(entry, locked))
    }

    /// Locks the entry of a block for another node, where it is a page that would lose a right.
    #[inline]
    pub fn lock_page_for_other(&self, tag: Tag, stop: Stop) -> Other<'_> {
        match self.mappings.load(Acquire) {
            0 => Other::Elsewhere,
            _ => self.page_for_other(tag, stop),
        }
    }

    #[cold]
    fn page_for_other(&self, tag: Tag, stop: Stop) -> Other<'_> {
        let least = match stop {
            Stop::Stores => LocalStatus::Modified,
            _ => LocalStatus::Shared,
        };
        let valid = |frames: &Frames, page| frames.status(page) >= least;
        let Some(entry) = self.page_of(tag, valid) else {
            return Other::Elsewhere;
        };
        match self
            .page(entry)
            .map(|(frames, page)| frames.lock_for_other(page, stop))
        {
            Some(Some(locked)) => Other::Locked(LockedEntry::Page(entry, locked)),
            Some(None) => Other::Pinned,
            None => Other::Elsewhere,
        }
    }

    /// Every block with a valid copy, and what the node may do with it.
    /// Others may change it meanwhile.
    pub fn copies(&self) -> impl Iterator<Item = (Tag, LocalStatus)> {
        self.sets
            .copies()
            .chain(self.mappings().flat_map(Frames::copies))
    }

    /// Every block with a clean copy that was written here, and that home may not have.
    pub fn downgraded(&self) -> impl Iterator<Item = Tag> {
        let pages = self.mappings().flat_map(Frames::downgraded);
        self.sets.downgraded().chain(pages)
    }

    /// Whether a block is one of these.
    pub fn is_downgraded(&self, tag: Tag) -> bool {
        let in_sets = self.sets.find(tag);
        in_sets.is_some_and(|entry| self.sets.is_downgraded(entry))
            || self.page_of(tag, Frames::is_downgraded).is_some()
    }

    /// Home has a block as it is here.
    pub fn home_has(&self, tag: Tag) {
        if let Some(locked) = self.sets.lock_tag(tag) {
            return locked.home_has();
        }
        let page = self.page_of(tag, Frames::is_downgraded);
        if let Some((frames, page)) = page.and_then(|entry| self.page(entry)) {
            frames.lock(page, Stop::Nothing).home_has();
        }
    }

    /// From now on no hit by word, and no page that a program can use.
    pub fn close(&self) {
        self.sets.close();
        self.mappings().for_each(|frames| frames.close(true));
    }

    /// Undoes [`NodeCache::close`].
    pub fn open(&self) {
        self.sets.open();
        self.mappings().for_each(|frames| frames.close(false));
    }
}

impl LockedEntry<'_> {
    /// Which entry.
    pub fn entry(&self) -> usize {
        match self {
            LockedEntry::Set(locked) => locked.entry(),
            LockedEntry::Page(entry, _) => *entry,
        }
    }

    /// What the node may do with it.
    pub fn status(&self) -> LocalStatus {
        match self {
            LockedEntry::Set(locked) => locked.status(),
            LockedEntry::Page(_, locked) => locked.status(),
        }
    }

    /// Puts a block there: its bytes are in place.
    pub fn install(self, tag: Tag, status: LocalStatus) {
        match self {
            LockedEntry::Set(locked) => locked.install(tag, status),
            LockedEntry::Page(_, locked) => locked.set(status),
        }
    }

    /// Ends with a new status.
    pub fn set(self, status: LocalStatus) {
        match self {
            LockedEntry::Set(locked) => locked.set(status),
            LockedEntry::Page(_, locked) => locked.set(status),
        }
    }
}
