//! Blocks that are pages of this process: entries of a node's cache whose bytes a program loads and
//! stores by plain instructions.
//!
//! The processor asks nobody, so what an entry's lock is for others is here the right that the
//! program's mapping has: [`rackmem_proto::pages`] says which, and what is done in which order.

use super::cache::wait_until;
use super::pages::Pages;
use super::pins::{PINS, Pins};
use super::runs::Runs;
use super::shown::Lost;
pub use super::shown::OnLost;
pub(crate) use super::shown::{Granted, Shown};
use super::written::Written;
use crate::error::AccessError;
use crate::faulting::view::View;
use rackmem_fabric::Whole;
use rackmem_proto::flowcc::LocalStatus;
pub(crate) use rackmem_proto::pages::Stop;
use rackmem_proto::pages::{self, Act, Habit, Right};
use rackmem_proto::wire::Tag;
use std::ops::Range;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;

/// Parts of the pages that make room among themselves.
const PARTS: usize = 64;

/// Who waits for a page that rests for longer than this many nanoseconds gives the processor away.
const GIVES_WAY: u64 = 20_000;

const LOCKED: u64 = 1;
const STATUS: u64 = 0b110;
const RIGHT: u64 = 0b11 << 3;
/// There is memory behind the page.
const FRAMED: u64 = 1 << 5;
/// The right that a program has pinned.
const PINNED: u64 = 0b11 << PINNED_AT;
const PINNED_AT: u32 = 6;
/// How the program uses it.
const HABIT: u64 = ((1 << Habit::BITS) - 1) << HABIT_AT;
const HABIT_AT: u32 = 8;
/// Its bytes are compared when another node takes it.
const KEPT: u64 = 1 << (HABIT_AT + Habit::BITS);
/// It was written here and is clean now, and no rebuild has said that home has it.
const DOWNGRADED: u64 = KEPT << 1;
/// From this bit on: when a right was given last, in steps of 64 ns.
const SINCE: u32 = HABIT_AT + Habit::BITS + 2;
const STEP: u32 = 6;

fn status_of(word: u64) -> LocalStatus {
    match (word & STATUS) >> 1 {
        1 => LocalStatus::Shared,
        2 => LocalStatus::Modified,
        _ => LocalStatus::Invalid,
    }
}

fn right(bits: u64) -> Right {
    match bits {
        0 => Right::Hidden,
        1 => Right::Load,
        _ => Right::Store,
    }
}

fn right_of(word: u64) -> Right {
    right((word & RIGHT) >> 3)
}

fn habit_of(word: u64) -> Habit {
    Habit::of((word & HABIT) >> HABIT_AT)
}

/// What a mapping has done.
#[derive(Default)]
pub(crate) struct Counters {
    pub faults: AtomicU64,
    /// Faults whose block was here already.
    pub shown: AtomicU64,
    /// Rights that were taken away for other nodes.
    pub taken: AtomicU64,
    /// Blocks that made room.
    pub evicted: AtomicU64,
    /// Blocks that came before a fault asked for them.
    pub ahead: AtomicU64,
}

/// A range of blocks as pages.
pub(crate) struct Frames {
    first: Tag,
    /// Bytes of a block.
    block: usize,
    /// A word for each block; nothing of them costs memory until it is used.
    words: Pages,
    blocks: usize,
    view: View,
    began: Instant,
    /// For how long a page that was just shown stays, in nanoseconds.
    hold: AtomicU64,
    /// Handles on it. Without one blocks do not come here any more.
    handles: AtomicUsize,
    /// No right is given: this process cannot show that it is alive.
    closed: AtomicBool,
    /// Blocks that have memory, and how many may.
    framed: AtomicUsize,
    most: usize,
    /// Where each part looks for room next.
    hands: [AtomicUsize; PARTS],
    pub counters: Counters,
    /// What programs have pinned; the words say so as well.
    pins: Mutex<Pins>,
    written: Written,
    runs: Runs,
    lost: RwLock<Option<Lost>>,
}

/// A block of it whose entry this thread has locked.
pub(crate) struct LockedPage<'a> {
    frames: &'a Frames,
    nth: usize,
}

impl Frames {
    /// `most`: bytes that its blocks take.
    pub fn new(first: Tag, (blocks, block): (usize, usize), view: View, most: usize) -> Frames {
        Frames {
            first,
            block,
            words: Pages::new(blocks * 8),
            blocks,
            hold: AtomicU64::new(view.mode().hold()),
            view,
            began: Instant::now(),
            handles: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            framed: AtomicUsize::new(0),
            most: (most / block).max(PARTS),
            hands: [const { AtomicUsize::new(0) }; PARTS],
            counters: Counters::default(),
            pins: Mutex::default(),
            written: Written::new(blocks),
            runs: Runs::default(),
            lost: RwLock::default(),
        }
    }

    /// For how long a page that was just shown stays from now on.
    pub fn set_hold(&self, nanoseconds: u64) {
        self.hold.store(nanoseconds, Relaxed);
    }

    /// From now on this says what becomes of an access whose block cannot be had.
    pub fn on_lost(&self, lost: Option<Lost>) {
        *self.lost.write().unwrap_or_else(PoisonError::into_inner) = lost;
    }

    /// A fault has brought a page. Those that come with it are brought together; which of them are
    /// here, `bring` says.
    pub fn bring_ahead(&self, nth: usize, bring: impl FnOnce(&[Tag]) -> Vec<bool>) {
        let Some((place, run)) = self.runs.fault(nth) else {
            return;
        };
        let pages = run.ahead(self.blocks);
        self.runs.put(place, run.came(pages.end));
        let absent = pages.filter(|page| !self.allows(*page, false));
        let tags: Vec<Tag> = absent.map(|page| self.tag(page)).collect();
        let here = bring(&tags);
        let came = here.iter().filter(|here| **here).count();
        self.counters.ahead.fetch_add(came as u64, Relaxed);
        // The next fault of the run is of the first that is not here.
        let missing = here.iter().position(|here| !here);
        if let Some(page) = missing.and_then(|nth| self.nth(tags[nth])) {
            self.runs.put(place, run.came(page));
        }
    }

    /// What is to become of an access whose block cannot be had.
    pub fn ask_about_lost(&self, at: usize, stores: bool, error: &AccessError) -> OnLost {
        let lost = self.lost.read().unwrap_or_else(PoisonError::into_inner);
        let lost = lost.clone();
        lost.map_or(OnLost::Signal, |lost| lost(at, stores, error))
    }

    /// Keeps a right to a page, if the mapping has it. `None`: it has not; an error: as many are
    /// pinned as can be, which is said.
    pub fn pin(&self, nth: usize, stores: bool) -> Result<bool, usize> {
        let locked = self.lock(nth, Stop::Nothing);
        if right_of(locked.word()) < Right::wanted(stores) {
            return Ok(false);
        }
        let most = PINS.min((self.most / 2).max(1));
        let kept = (self.pins.lock().whole()).add(nth, stores, self.now(), most);
        let kept = kept.ok_or(most)?;
        locked.put(PINNED, (kept as u64) << PINNED_AT);
        Ok(true)
    }

    /// Undoes one [`Frames::pin`].
    pub fn unpin(&self, nth: usize, stores: bool) {
        let locked = self.lock(nth, Stop::Nothing);
        let kept = self.pins.lock().whole().remove(nth, stores);
        locked.put(PINNED, (kept as u64) << PINNED_AT);
    }

    /// Whether the mapping has the right to a page now.
    pub fn allows(&self, nth: usize, stores: bool) -> bool {
        right_of(self.word(nth).load(Acquire)) >= Right::wanted(stores)
    }

    fn is_pinned(&self, nth: usize) -> bool {
        self.word(nth).load(Relaxed) & PINNED != 0
    }

    /// Locks the entry for another node, if the page is not pinned.
    pub fn lock_for_other(&self, nth: usize, stop: Stop) -> Option<LockedPage<'_>> {
        self.let_it_be_used(nth);
        let locked = self.lock(nth, Stop::Nothing);
        let word = locked.word();
        let pinned = right((word & PINNED) >> PINNED_AT);
        if pages::stays(pinned, right_of(word), stop) {
            if self.pins.lock().whole().is_kept(nth, self.now()) {
                return None;
            }
            locked.put(PINNED, 0);
        }
        self.taken(&locked, stop);
        Some(locked)
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    /// Its first block, and how many it has.
    pub fn range(&self) -> (Tag, usize) {
        (self.first, self.blocks)
    }

    /// One more handle, or one less: how many there are now.
    pub fn held(&self, more: bool) -> usize {
        match more {
            true => self.handles.fetch_add(1, SeqCst) + 1,
            false => self.handles.fetch_sub(1, SeqCst) - 1,
        }
    }

    /// Whether blocks come here.
    pub fn is_used(&self) -> bool {
        self.handles.load(SeqCst) > 0
    }

    pub fn nth(&self, tag: Tag) -> Option<usize> {
        let nth = tag.0.checked_sub(self.first.0)? as usize / self.block;
        (nth < self.blocks).then_some(nth)
    }

    pub fn tag(&self, nth: usize) -> Tag {
        Tag(self.first.0 + (nth * self.block) as u64)
    }

    fn bytes(&self, nth: usize) -> Range<usize> {
        nth * self.block..(nth + 1) * self.block
    }

    pub fn block(&self, nth: usize) -> &[AtomicU64] {
        let words = self.block / 8;
        &self.view.words()[nth * words..(nth + 1) * words]
    }

    fn word(&self, nth: usize) -> &AtomicU64 {
        &self.words.words()[nth]
    }

    pub fn status(&self, nth: usize) -> LocalStatus {
        status_of(self.word(nth).load(Acquire))
    }

    /// Blocks with a valid copy.
    pub fn copies(&self) -> impl Iterator<Item = (Tag, LocalStatus)> {
        (0..self.blocks).filter_map(|nth| {
            let status = self.status(nth);
            (status != LocalStatus::Invalid).then(|| (self.tag(nth), status))
        })
    }

    /// Whether a block has a clean copy that was written here, and that home may not have.
    pub fn is_downgraded(&self, nth: usize) -> bool {
        self.word(nth).load(Acquire) & DOWNGRADED != 0
    }

    /// Those that have.
    pub fn downgraded(&self) -> impl Iterator<Item = Tag> {
        let blocks = (0..self.blocks).filter(|nth| self.is_downgraded(*nth));
        blocks.map(|nth| self.tag(nth))
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Waits until a page that has just been shown has been of use.
    fn let_it_be_used(&self, nth: usize) {
        let word = self.word(nth).load(Relaxed);
        if right_of(word) == Right::Hidden {
            return;
        }
        // Longer than that nobody waits, whatever the word becomes.
        let hold = self.hold.load(Relaxed);
        let until = pages::rest(word >> SINCE << STEP, self.now(), hold).unwrap_or(0);
        while let Some(left) = until.checked_sub(self.now()).filter(|left| *left > 0) {
            match left > GIVES_WAY {
                // Who is to use it may wait for this processor.
                true => std::thread::yield_now(),
                // On a busy machine a turn of others' takes longer than the rest.
                false => std::hint::spin_loop(),
            }
        }
    }

    /// Another node takes something of a page.
    fn taken(&self, locked: &LockedPage<'_>, stop: Stop) {
        locked.learn(Habit::taken);
        if right_of(locked.word()) != Right::Hidden {
            self.counters.taken.fetch_add(1, Relaxed);
        }
        locked.stop(stop);
        if locked.word() & KEPT != 0 && right_of(locked.word()) != Right::Store {
            locked.put(KEPT, 0);
            self.written.stopped(locked.nth, self.block(locked.nth));
        }
    }

    /// Parts of a block that the program has been seen to store to, as bits.
    pub fn written(&self, nth: usize) -> u64 {
        self.written.parts(nth)
    }

    /// Whether a fault of a page that is not here asks for the right to store.
    pub fn asks(&self, nth: usize, stores: bool) -> bool {
        let word = self.word(nth).load(Relaxed);
        let absent = status_of(word) == LocalStatus::Invalid;
        stores || absent && habit_of(word).asks(stores)
    }

    /// Locks the entry for another node, pinned or not.
    pub fn lock_for_all(&self, nth: usize, stop: Stop) -> LockedPage<'_> {
        self.let_it_be_used(nth);
        let locked = self.lock(nth, Stop::Nothing);
        self.taken(&locked, stop);
        locked
    }

    pub fn lock(&self, nth: usize, stop: Stop) -> LockedPage<'_> {
        let cell = self.word(nth);
        wait_until(|| {
            let word = cell.load(Relaxed);
            let free = word & LOCKED == 0;
            free && cell
                .compare_exchange_weak(word, word | LOCKED, SeqCst, Relaxed)
                .is_ok()
        });
        let locked = LockedPage { frames: self, nth };
        locked.stop(stop);
        locked
    }

    /// Gives the program's mapping the right that a fault has asked for, if this node's copy
    /// allows it.
    pub fn show(&self, nth: usize, writes: bool) -> Shown {
        let locked = self.lock(nth, Stop::Nothing);
        match Right::is_enough(locked.status(), writes) {
            true => {
                self.counters.shown.fetch_add(1, Relaxed);
                if writes && right_of(locked.word()) == Right::Load {
                    locked.learn(Habit::stored);
                }
                locked.show(writes)
            }
            false => Shown::No,
        }
    }

    /// The same where this thread has the entry's lock, and an event is about to leave the copy as
    /// it says.
    pub fn show_locked(&self, nth: usize, writes: bool, granted: Granted) -> Shown {
        // Its lock is whose it was.
        let locked = std::mem::ManuallyDrop::new(LockedPage { frames: self, nth });
        let right = match granted {
            Granted::More => {
                locked.learn(Habit::stored);
                Right::Store
            }
            Granted::New(right) => {
                locked.put(KEPT, 0);
                locked.learn(|habit| habit.came(writes, right))
            }
        };
        locked.show(right == Right::Store)
    }

    /// No right is given from here on, and none is left; or they are given again.
    pub fn close(&self, closed: bool) {
        let was = self.closed.swap(closed, SeqCst);
        if closed && !was {
            // Who has locked an entry by now may not have seen it.
            let looked = |nth: &usize| {
                let word = self.word(*nth).load(SeqCst);
                pages::may_have_right(right_of(word), word & LOCKED != 0)
            };
            (0..self.blocks)
                .filter(looked)
                .for_each(|nth| drop(self.lock(nth, Stop::All)));
        }
    }

    /// The entry for a block that is about to come, or one that has to make room first.
    /// `near`: a block whose events are kept where this one's are; `free`: that has none.
    pub fn room(
        &self,
        nth: usize,
        part: usize,
        near: impl Fn(Tag) -> bool,
        free: impl Fn(usize) -> bool,
    ) -> (usize, Option<Tag>) {
        let has_frame = |nth: usize| self.word(nth).load(Relaxed) & FRAMED != 0;
        if has_frame(nth) || self.framed.load(Relaxed) < self.most {
            return (nth, None);
        }
        let hand = &self.hands[part % PARTS];
        for _ in 0..self.blocks {
            let at = hand.load(Relaxed) % self.blocks;
            let free = |at| has_frame(at) && !self.is_pinned(at) && free(at);
            if at != nth && free(at) && near(self.tag(at)) {
                if self.status(at) != LocalStatus::Invalid {
                    self.counters.evicted.fetch_add(1, Relaxed);
                    return (at, Some(self.tag(at)));
                }
                self.lock(at, Stop::All).discard();
                if self.framed.load(Relaxed) < self.most {
                    break;
                }
            }
            hand.store(at + 1, Relaxed);
        }
        // All that could make room are in use: it is one more than it should be.
        (nth, None)
    }

    /// Gives the memory of a block back that is not valid.
    pub fn discard(&self, nth: usize) {
        self.lock(nth, Stop::All).discard();
    }
}

impl LockedPage<'_> {
    fn word(&self) -> u64 {
        self.frames.word(self.nth).load(Relaxed)
    }

    /// Puts these bits in place of those of the mask. Nobody else changes the word meanwhile.
    fn put(&self, mask: u64, bits: u64) {
        let word = self.word() & !mask | bits;
        self.frames.word(self.nth).store(word, Relaxed);
    }

    /// What becomes of what is known of the program's habit.
    fn learn<R>(&self, f: impl FnOnce(&mut Habit) -> R) -> R {
        let mut habit = habit_of(self.word());
        let known = f(&mut habit);
        self.put(HABIT, habit.bits() << HABIT_AT);
        known
    }

    fn give(&self, right: Right) {
        self.put(RIGHT, (right as u64) << 3);
    }

    pub fn status(&self) -> LocalStatus {
        status_of(self.word())
    }

    /// What a program has pinned it has again.
    pub fn show_pinned(&self) {
        let pinned = right((self.word() & PINNED) >> PINNED_AT);
        if pinned > right_of(self.word()) && Right::of(self.status()) >= pinned {
            // Where it cannot be, system calls fail and faults say why.
            let _ = self.show(pinned == Right::Store);
        }
    }

    fn stop(&self, stop: Stop) {
        let Some((act, left)) = stop.act(right_of(self.word())) else {
            return;
        };
        let (view, bytes) = (&self.frames.view, self.frames.bytes(self.nth));
        let left = match view.act(act, bytes.clone()) {
            Ok(_) => left,
            // It fails where the program has unmapped these addresses: nobody has a right then.
            Err(_) => {
                let _ = view.act(Act::Hide, bytes);
                Right::Hidden
            }
        };
        self.give(left);
    }

    /// Lets the program load there, and store.
    fn show(&self, writes: bool) -> Shown {
        let (view, bytes) = (&self.frames.view, self.frames.bytes(self.nth));
        if self.frames.closed.load(SeqCst) {
            return Shown::No;
        }
        let had = right_of(self.word());
        let (acts, right) = pages::showing(had, writes);
        if had < right && right == Right::Store {
            // Whatever was kept before is not of this time.
            let (frames, nth) = (self.frames, self.nth);
            let kept = frames.written.opens(nth, frames.block(nth));
            self.put(KEPT, if kept { KEPT } else { 0 });
        }
        let mut placed = false;
        for act in acts {
            // What has just come for stores is open.
            if act == Act::Open && placed {
                continue;
            }
            match view.act(act, bytes.clone()) {
                Ok(done) => placed = done,
                Err(error) => return Shown::Refused(error.raw_os_error().unwrap_or(0)),
            }
        }
        self.give(right);
        self.put(!((1 << SINCE) - 1), self.frames.now() >> STEP << SINCE);
        self.framed();
        Shown::Yes
    }

    fn framed(&self) {
        if self.word() & FRAMED == 0 {
            self.put(FRAMED, FRAMED);
            self.frames.framed.fetch_add(1, Relaxed);
        }
    }

    /// Home has the block as it is here.
    pub fn home_has(self) {
        self.put(DOWNGRADED, 0);
    }

    /// Ends with a new status. What the program may not any more is over before.
    pub fn set(self, status: LocalStatus) {
        self.stop(Stop::before(status));
        match (self.status(), status) {
            (LocalStatus::Modified, LocalStatus::Shared) => self.put(DOWNGRADED, DOWNGRADED),
            (_, LocalStatus::Shared) => {}
            _ => self.put(DOWNGRADED, 0),
        }
        if status != LocalStatus::Invalid {
            self.framed();
        }
        self.put(STATUS, (status as u64) << 1);
        self.show_pinned();
    }

    /// Gives its memory back, if it is not valid.
    fn discard(self) {
        let empty = self.status() == LocalStatus::Invalid && self.word() & FRAMED != 0;
        let bytes = self.frames.bytes(self.nth);
        if empty && self.frames.view.discard(bytes).is_ok() {
            self.put(FRAMED, 0);
            self.frames.framed.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for LockedPage<'_> {
    fn drop(&mut self) {
        let word = self.word() & !LOCKED;
        self.frames.word(self.nth).store(word, Release);
    }
}
