//! The block cache of a node (paper §6): sets of eight entries, LRU, write-back.
//!
//! A hit takes no lock and no system call. Every entry has a control word,
//! `version | status | locked`: a reader copies the bytes between two looks at the word and starts
//! over if it moved, a writer holds the locked bit for the length of its store, and the network's
//! invalidations take the same bit. So a read is linearized at its second look, and an invalidation
//! waits for a store under way (hard place FlowCC 8).
//!
//! Which entries are being filled or emptied by a coherence event is kept beside, in
//! [`crate::bytes::pending`].

use crate::bytes::pages::Pages;
use crate::bytes::table::Table;
use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, AtomicU64, fence, spin_loop, yield_now};
use rackmem_proto::flowcc::LocalStatus;
use rackmem_proto::wire::Tag;

/// Entries a set has.
pub(crate) const WAYS: usize = 8;

const LOCKED: u64 = 1;
const STATUS: u64 = 0b110;
const SHARED: u64 = (LocalStatus::Shared as u64) << 1;
const MODIFIED: u64 = (LocalStatus::Modified as u64) << 1;
const VERSION: u64 = 1 << 3;

/// The time that no entry was ever used at.
const CLOSED: u32 = 0;
/// In how many steps of LRU time a cache is filled once. More would be more exact,
/// and cost hits more: the first hit of an entry in a step writes to it.
const TICKS: usize = 64;

/// No block: real ones are stored with the low bit set.
const NO_TAG: u64 = 0;

fn status_of(word: u64) -> LocalStatus {
    match word & STATUS {
        SHARED => LocalStatus::Shared,
        MODIFIED => LocalStatus::Modified,
        _ => LocalStatus::Invalid,
    }
}

/// Looks again and again. Who is waited for is short, but may be preempted: yield after a while.
pub(super) fn wait_until(mut look: impl FnMut() -> bool) {
    let mut spins = 0u32;
    while !look() {
        spins = spins.wrapping_add(1);
        if spins.is_multiple_of(128) {
            yield_now();
        } else {
            spin_loop();
        }
    }
}

/// The tags of a set, one cache line. `switch/xdp/cache.h` has the same.
#[repr(C, align(64))]
pub(crate) struct Tags([AtomicU64; WAYS]);

/// What else an entry has, one cache line so that writers of two blocks do not meet.
/// `switch/xdp/cache.h` has the same.
#[repr(C, align(64))]
pub(crate) struct Control {
    word: AtomicU64,
    /// What [`Tags`] says of this way, again, so that a hit need not look there.
    tag: AtomicU64,
    used: AtomicU32,
    /// Whether the copy is one that was written here and is clean now, of which no rebuild has said
    /// that home has it. Written under the lock.
    written: AtomicU32,
}

/// A node's cache.
pub(crate) struct Cache {
    block_words: usize,
    block_mask: u64,
    set_mask: usize,
    tags: Table<Tags>,
    controls: Table<Control>,
    /// Aligned to pages, as home's memory is: copies between the two are the fastest there are.
    words: Pages,
    /// Coarse time for LRU: advances with misses, so that hits do not write to it.
    /// [`CLOSED`] ends all hits by word.
    clock: AtomicU32,
    /// The clock when it was closed.
    closed_at: AtomicU32,
    /// Misses that the clock stands still for.
    misses_a_tick: u32,
    misses: AtomicU32,
    /// `log2` of a block's words.
    block_shift: u32,
}

/// An entry that this thread has locked: local readers spin, the network waits.
pub(crate) struct Locked<'a> {
    cache: &'a Cache,
    entry: usize,
    word: u64,
}

/// Sets of a cache of at least so many bytes; none where no number says how many.
fn sets(bytes: usize, block: usize) -> Option<usize> {
    (bytes / block / WAYS).max(1).checked_next_power_of_two()
}

impl Cache {
    /// Whether this machine gives a process memory for such a cache.
    pub fn fits(bytes: usize, block: usize) -> bool {
        let words = sets(bytes, block).and_then(|sets| sets.checked_mul(WAYS * (block / 8)));
        // Reserved and given back: none of it is touched.
        words.is_some_and(|words| Vec::<AtomicU64>::new().try_reserve_exact(words).is_ok())
    }

    /// Sets of a cache of at least `bytes` bytes of blocks of `block` bytes.
    pub fn sets_of(bytes: usize, block: usize) -> usize {
        sets(bytes, block).unwrap_or(1)
    }

    /// A cache of at least `bytes` bytes of blocks of `block` bytes, which [`Cache::fits`].
    pub fn new(bytes: usize, block: usize) -> Self {
        let sets = Cache::sets_of(bytes, block);
        let tags = (0..sets).map(|_| Tags(std::array::from_fn(|_| AtomicU64::new(NO_TAG))));
        let controls = (0..sets * WAYS).map(|_| Control {
            word: AtomicU64::new(0),
            tag: AtomicU64::new(NO_TAG),
            used: AtomicU32::new(0),
            written: AtomicU32::new(0),
        });
        Cache::shared(
            (bytes, block),
            (Table::new(tags), Table::new(controls)),
            None,
        )
    }

    /// The same whose tags and control words are these, zeros, and its blocks if they are elsewhere
    /// than in memory of its own: of [`Cache::sets_of`] so many bytes and that block.
    pub fn shared(
        (bytes, block): (usize, usize),
        (tags, controls): (Table<Tags>, Table<Control>),
        blocks: Option<Pages>,
    ) -> Self {
        let sets = Cache::sets_of(bytes, block);
        let entries = sets * WAYS;
        debug_assert!(tags.len() >= sets && controls.len() == entries);
        Cache {
            block_words: block / 8,
            block_mask: block as u64 - 1,
            set_mask: sets - 1,
            tags,
            controls,
            words: blocks.unwrap_or_else(|| Pages::new(entries * block)),
            clock: AtomicU32::new(CLOSED + 1),
            closed_at: AtomicU32::new(CLOSED + 1),
            misses_a_tick: (entries / TICKS).max(1) as u32,
            misses: AtomicU32::new(0),
            block_shift: (block / 8).trailing_zeros(),
        }
    }

    /// Bytes of blocks that it holds at most.
    pub fn bytes(&self) -> usize {
        self.capacity() * self.block_bytes()
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> usize {
        self.block_words * 8
    }

    /// How many blocks it holds.
    pub fn capacity(&self) -> usize {
        self.controls.len()
    }

    /// The block that a global address lies in.
    #[inline]
    pub fn tag_of(&self, addr: u64) -> Tag {
        Tag(addr & !self.block_mask)
    }

    /// The set of a block, and the way to look at first.
    #[inline]
    pub fn set_of(&self, tag: Tag) -> (usize, usize) {
        let mixed = (tag.0 >> 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (
            (mixed >> 24) as usize & self.set_mask,
            (mixed >> 61) as usize,
        )
    }

    /// The entry whose tag this is. What it holds may change at any moment.
    #[inline]
    pub fn find(&self, tag: Tag) -> Option<usize> {
        let (set, first) = self.set_of(tag);
        let tags = &self.tags[set].0;
        let wanted = tag.0 | 1;
        for i in 0..WAYS {
            let way = (first + i) % WAYS;
            if tags[way].load(Relaxed) == wanted {
                return Some(set * WAYS + way);
            }
        }
        None
    }

    /// Writes the tag of an entry that this thread has locked.
    fn set_tag(&self, entry: usize, stored: u64) {
        self.controls[entry].tag.store(stored, Relaxed);
        self.tags[entry / WAYS].0[entry % WAYS].store(stored, Relaxed);
    }

    /// The words of an entry's block.
    #[inline]
    pub fn block(&self, entry: usize) -> &[AtomicU64] {
        let at = entry * self.block_words;
        &self.words.words()[at..at + self.block_words]
    }

    /// The bytes of an entry that holds no block, to be filled without its lock by who has reserved
    /// it. Who still reads the block that was there sees that it is gone before a new byte, and who
    /// has taken it away is done with the old ones.
    pub fn vacant(&self, entry: usize) -> &[AtomicU64] {
        // Its tag is gone a moment before its word says so.
        let word = &self.controls[entry].word;
        wait_until(|| word.load(Acquire) & (LOCKED | STATUS) == 0);
        fence(Release);
        self.block(entry)
    }

    /// Marks the entry as used now. Writes only when the clock has moved,
    /// so a hot entry stays unwritten.
    #[inline]
    fn touch(&self, control: &Control) {
        let now = self.clock.load(Relaxed);
        if control.used.load(Relaxed) != now {
            control.used.store(now, Relaxed);
        }
    }

    /// Counts a miss, which advances LRU time now and then.
    pub fn tick(&self) {
        let misses = self.misses.fetch_add(1, Relaxed);
        if misses.is_multiple_of(self.misses_a_tick) {
            let next = |now: u32| (now != CLOSED).then(|| now.wrapping_add(1).max(CLOSED + 1));
            let _ = self.clock.fetch_update(Relaxed, Relaxed, next);
        }
    }

    /// From now on no hit by word: every access asks its node first, which says no.
    pub fn close(&self) {
        let now = self.clock.swap(CLOSED, Relaxed);
        if now != CLOSED {
            self.closed_at.store(now, Relaxed);
        }
    }

    /// Undoes [`Cache::close`].
    pub fn open(&self) {
        let then = self.closed_at.load(Relaxed);
        let _ = self.clock.compare_exchange(CLOSED, then, Relaxed, Relaxed);
    }

    /// Every block with a valid copy, and what the node may do with it.
    /// Others may change it meanwhile.
    pub fn copies(&self) -> impl Iterator<Item = (Tag, LocalStatus)> {
        (0..self.capacity()).filter_map(|entry| {
            let status = self.status(entry);
            let valid = status != LocalStatus::Invalid;
            Some((self.tag_at(entry).filter(|_| valid)?, status))
        })
    }

    /// Every block with a clean copy that was written here, and that home may not have.
    pub fn downgraded(&self) -> impl Iterator<Item = Tag> {
        let written = |entry: &usize| self.is_downgraded(*entry);
        let entries = (0..self.capacity()).filter(written);
        entries.filter_map(|entry| self.tag_at(entry))
    }

    /// Whether an entry has such a copy.
    pub fn is_downgraded(&self, entry: usize) -> bool {
        let clean = self.status(entry) == LocalStatus::Shared;
        clean && self.controls[entry].written.load(Relaxed) != 0
    }

    /// The shortest way to one word of a block that was at this entry when the caller last looked,
    /// and has been used in this step of LRU time. `None` says nothing: take the long way.
    #[inline]
    pub fn read_word(&self, entry: usize, tag: Tag, at: usize) -> Option<u64> {
        let control = self.controls.get(entry)?;
        let before = control.word.load(SeqCst);
        let unlocked = before & LOCKED == 0 && before & STATUS != 0;
        if !unlocked || !self.is_current(control, tag) {
            return None;
        }
        let value = self
            .words
            .words()
            .get((entry << self.block_shift) + at)?
            .load(Relaxed);
        fence(Acquire);
        (control.word.load(Relaxed) == before).then_some(value)
    }

    /// Likewise to change one word.
    #[inline]
    pub fn write_word<R>(
        &self,
        entry: usize,
        tag: Tag,
        at: usize,
        f: impl FnOnce(&AtomicU64) -> R,
    ) -> Option<R> {
        let control = self.controls.get(entry)?;
        let before = control.word.load(Relaxed);
        if before & (LOCKED | STATUS) != MODIFIED {
            return None;
        }
        let cell = self.words.words().get((entry << self.block_shift) + at)?;
        control
            .word
            .compare_exchange(before, before | LOCKED, Acquire, Relaxed)
            .ok()?;
        let locked = Locked {
            cache: self,
            entry,
            word: before,
        };
        if !self.is_current(control, tag) {
            return None;
        }
        fence(Release);
        let result = f(cell);
        drop(locked);
        Some(result)
    }

    #[inline]
    fn is_current(&self, control: &Control, tag: Tag) -> bool {
        control.tag.load(Relaxed) == tag.0 | 1
            && control.used.load(Relaxed) == self.clock.load(Relaxed)
    }

    /// Reads a valid block with `f`; `None` when this node may not read it.
    /// `f` may run more than once, and on bytes that change under it; what is returned comes from a
    /// run that saw one version of the block.
    #[inline]
    pub fn read<R>(&self, tag: Tag, f: impl FnMut(&[AtomicU64]) -> R) -> Option<R> {
        self.read_at(self.find(tag)?, tag, f)
    }

    /// The same for a block that was at this entry when the caller last looked.
    #[inline]
    pub fn read_at<R>(
        &self,
        entry: usize,
        tag: Tag,
        mut f: impl FnMut(&[AtomicU64]) -> R,
    ) -> Option<R> {
        let control = self.controls.get(entry)?;
        loop {
            let before = control.word.load(SeqCst);
            if before & LOCKED != 0 {
                spin_loop();
                continue;
            }
            if before & STATUS == 0 || control.tag.load(Relaxed) != tag.0 | 1 {
                return None;
            }
            let result = f(self.block(entry));
            fence(Acquire);
            if control.word.load(Relaxed) == before {
                self.touch(control);
                return Some(result);
            }
        }
    }

    /// Changes a block that this node may write, with `f`, alone; `None` when it may not.
    #[inline]
    pub fn write<R>(&self, tag: Tag, f: impl FnOnce(&[AtomicU64]) -> R) -> Option<R> {
        self.write_at(self.find(tag)?, tag, f)
    }

    /// The same for a block that was at this entry when the caller last looked.
    #[inline]
    pub fn write_at<R>(
        &self,
        entry: usize,
        tag: Tag,
        f: impl FnOnce(&[AtomicU64]) -> R,
    ) -> Option<R> {
        let control = self.controls.get(entry)?;
        loop {
            let before = control.word.load(Relaxed);
            if before & LOCKED != 0 {
                spin_loop();
                continue;
            }
            if before & STATUS != MODIFIED {
                return None;
            }
            if control
                .word
                .compare_exchange_weak(before, before | LOCKED, Acquire, Relaxed)
                .is_err()
            {
                continue;
            }
            let locked = Locked {
                cache: self,
                entry,
                word: before,
            };
            if control.tag.load(Relaxed) != tag.0 | 1 {
                return None;
            }
            fence(Release);
            let result = f(self.block(entry));
            self.touch(control);
            locked.set(LocalStatus::Modified);
            return Some(result);
        }
    }

    /// The local status of a block, for the slow paths.
    pub fn status(&self, entry: usize) -> LocalStatus {
        status_of(self.controls[entry].word.load(Acquire))
    }

    /// How often an entry has changed: each write, and each time that a block came or went.
    pub fn changes(&self, entry: usize) -> Option<u64> {
        let control = self.controls.get(entry)?;
        Some(control.word.load(Relaxed) / VERSION)
    }

    /// Locks an entry, whatever it holds.
    pub fn lock(&self, entry: usize) -> Locked<'_> {
        let control = &self.controls[entry];
        let mut before = 0;
        wait_until(|| {
            before = control.word.load(Relaxed);
            before & LOCKED == 0
                && control
                    .word
                    .compare_exchange_weak(before, before | LOCKED, Acquire, Relaxed)
                    .is_ok()
        });
        fence(Release);
        Locked {
            cache: self,
            entry,
            word: before,
        }
    }

    /// Locks the entry of a block, if the cache has one.
    pub fn lock_tag(&self, tag: Tag) -> Option<Locked<'_>> {
        let entry = self.find(tag)?;
        let locked = self.lock(entry);
        (self.controls[entry].tag.load(Relaxed) == tag.0 | 1).then_some(locked)
    }

    /// An entry of the set without a block, of those that `allowed` lets through.
    pub fn free(&self, set: usize, allowed: impl Fn(usize) -> bool) -> Option<usize> {
        let tags = &self.tags[set].0;
        let free = |way: &usize| tags[*way].load(Relaxed) == NO_TAG && allowed(set * WAYS + way);
        (0..WAYS).find(free).map(|way| set * WAYS + way)
    }

    /// The block of the set that was used least recently, of the entries that `allowed` lets
    /// through.
    pub fn oldest(
        &self,
        set: usize,
        allowed: impl Fn(usize) -> bool,
    ) -> Option<(Option<Tag>, usize)> {
        let now = self.clock.load(Relaxed);
        let age = |entry: &usize| now.wrapping_sub(self.controls[*entry].used.load(Relaxed));
        let entry = (set * WAYS..(set + 1) * WAYS)
            .filter(|&entry| allowed(entry))
            .max_by_key(age)?;
        Some((self.tag_at(entry), entry))
    }

    /// The block that an entry holds.
    pub fn tag_at(&self, entry: usize) -> Option<Tag> {
        match self.tags[entry / WAYS].0[entry % WAYS].load(Relaxed) {
            NO_TAG => None,
            stored => Some(Tag(stored & !1)),
        }
    }
}

impl Locked<'_> {
    /// Which entry.
    pub fn entry(&self) -> usize {
        self.entry
    }

    /// What the node may do with it.
    pub fn status(&self) -> LocalStatus {
        status_of(self.word)
    }

    /// Puts a block there: its bytes are in place.
    pub fn install(self, tag: Tag, status: LocalStatus) {
        self.cache.set_tag(self.entry, tag.0 | 1);
        let control = &self.cache.controls[self.entry];
        self.cache.touch(control);
        self.set(status);
    }

    /// Home has the block as it is here.
    pub fn home_has(self) {
        let written = &self.cache.controls[self.entry].written;
        written.store(0, Relaxed);
    }

    /// Ends with a new status; an invalid entry forgets its tag.
    pub fn set(mut self, status: LocalStatus) {
        let written = &self.cache.controls[self.entry].written;
        match status {
            LocalStatus::Invalid => {
                self.cache.set_tag(self.entry, NO_TAG);
                written.store(0, Relaxed);
            }
            LocalStatus::Shared if self.status() == LocalStatus::Modified => {
                written.store(1, Relaxed);
            }
            _ => {}
        }
        self.word = (self.word & !STATUS) | (status as u64) << 1;
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let word = (self.word & !LOCKED).wrapping_add(VERSION);
        // An exchange, not a store: the new version is visible to every reader before this thread
        // returns, so "the write has returned" and "every later read sees it" agree with the clock
        // on the wall. With the first looks of readers it is in one order for all blocks: of two
        // threads that each write one and then read the other's, one sees what the other has
        // written.
        self.cache.controls[self.entry].word.swap(word, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 256;

    fn put(cache: &Cache, tag: Tag, status: LocalStatus) -> usize {
        let entry = cache
            .free(cache.set_of(tag).0, |_| true)
            .expect("a free entry");
        let locked = cache.lock(entry);
        locked.install(tag, status);
        entry
    }

    #[test]
    fn what_may_be_read_and_written_follows_the_status() {
        let cache = Cache::new(64 * BLOCK, BLOCK);
        let tag = Tag(0x1000);
        assert!(cache.read(tag, |_| ()).is_none());
        let entry = put(&cache, tag, LocalStatus::Shared);
        assert!(cache.read(tag, |_| ()).is_some());
        assert!(cache.write(tag, |_| ()).is_none());
        cache.lock(entry).set(LocalStatus::Modified);
        assert_eq!(
            cache.write(tag, |words| words[3].store(9, Relaxed)),
            Some(())
        );
        assert_eq!(cache.read(tag, |words| words[3].load(Relaxed)), Some(9));
        cache
            .lock_tag(tag)
            .expect("it is there")
            .set(LocalStatus::Invalid);
        assert!(cache.read(tag, |_| ()).is_none());
        assert_eq!(cache.tag_at(entry), None);
    }

    #[test]
    fn a_free_entry_goes_before_the_least_recently_used() {
        let cache = Cache::new(WAYS * BLOCK, BLOCK);
        assert_eq!(cache.capacity(), WAYS);
        for i in 0..WAYS as u64 {
            cache.tick();
            put(&cache, Tag(i * BLOCK as u64), LocalStatus::Shared);
        }
        assert_eq!(cache.free(0, |_| true), None);
        assert_eq!(cache.oldest(0, |_| true).unwrap().0, Some(Tag(0)));
        cache.tick();
        cache.read(Tag(0), |_| ());
        assert_eq!(
            cache.oldest(0, |_| true).unwrap().0,
            Some(Tag(BLOCK as u64))
        );
    }

    /// Waits until another thread has counted so far.
    fn wait_for(count: &AtomicU64, reached: u64) {
        wait_until(|| count.load(Acquire) >= reached);
    }

    const ROUNDS: u64 = if cfg!(miri) { 8 } else { 2_000 };

    /// Every read has a whole write between its first half and its second.
    #[test]
    fn readers_never_see_half_a_write() {
        let cache = Cache::new(64 * BLOCK, BLOCK);
        let tag = Tag(0x2000);
        put(&cache, tag, LocalStatus::Modified);
        let (begun, written) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    wait_for(&begun, round);
                    cache.write(tag, |words| {
                        words.iter().for_each(|w| w.store(round, Relaxed))
                    });
                    written.store(round, Release);
                }
            });
            for round in 1..=ROUNDS {
                let mut looks = 0;
                let read = cache.read(tag, |words| {
                    let (half, rest) = words.split_at(words.len() / 2);
                    let first = half.iter().map(|w| w.load(Relaxed)).collect::<Vec<_>>();
                    looks += 1;
                    if looks == 1 {
                        begun.store(round, Release);
                        wait_for(&written, round);
                    }
                    let same = |word: u64| word == first[0];
                    first.iter().all(|word| same(*word))
                        && rest.iter().all(|w| same(w.load(Relaxed)))
                });
                assert_eq!((read, looks), (Some(true), 2), "round {round}");
            }
        });
    }

    /// Every read begins while a write has stored its first half.
    #[test]
    fn readers_wait_for_a_write_that_has_begun() {
        let cache = Cache::new(64 * BLOCK, BLOCK);
        let tag = Tag(0x2000);
        put(&cache, tag, LocalStatus::Modified);
        let (begun, read) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    cache.write(tag, |words| {
                        let (half, rest) = words.split_at(words.len() / 2);
                        half.iter().for_each(|w| w.store(round, Relaxed));
                        begun.store(round, Release);
                        yield_now();
                        rest.iter().for_each(|w| w.store(round, Relaxed));
                    });
                    wait_for(&read, round);
                }
            });
            for round in 1..=ROUNDS {
                wait_for(&begun, round);
                let whole = cache.read(tag, |words| words.iter().all(|w| w.load(Relaxed) == round));
                assert_eq!(whole, Some(true), "round {round}");
                read.store(round, Release);
            }
        });
    }
}
