//! A section, and what is read in it.

use super::super::counter;
use super::arena::Attached;
use super::lines::WORDS;
use super::open_sections::Counted;
use super::pointer::{ArenaSlot, Pointer, lines_of};
use crate::bytes::value::Value;
use crate::error::ArenaError;
use crate::threads::place;
use rackmem_proto::bi::{BiPtr, Extent, LINE, ReadSection, SLAB_LINES, Tick};
use std::cell::Cell;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

/// Reads of a section between two looks at the clock: one that goes round in what was reused ends.
const READS: u32 = 16;
/// Young objects that a node remembers to have dropped since its last quiescence.
pub(super) const YOUNG: usize = 1024;

/// A section that is open. What it reads was current within the bound before it began, if it
/// [ends](ArenaSection::finish) without an error: until then it may be anything, but never a fault.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::bounded::{Arena, ArenaSection, ArenaSpec};
/// use std::time::Duration;
///
/// # let path = std::env::temp_dir().join(format!("rackmem-doc-section-{}", std::process::id()));
/// let rack = Rack::local(1)?;
/// let spec = ArenaSpec::new(&path, 1 << 20).bound(Duration::from_secs(60)).emulated();
/// let arena = Arena::create(&rack.node(0), &spec)?;
/// let section: ArenaSection<'_> = arena.enter()?;
/// let empty = section.get::<u64>(arena.slot(0)?)?;
/// section.finish()?;
/// assert_eq!(empty, None);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct ArenaSection<'a> {
    at: &'a Attached,
    section: ReadSection,
    /// The quiescence that it counts on.
    modified: Tick,
    /// Until this count nobody has to look at the clock, unless that has jumped.
    deadline: u64,
    ahead: u64,
    lazily: Cell<bool>,
    reads: Cell<u32>,
    counted: Counted,
}

impl std::fmt::Debug for ArenaSection<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArenaSection")
            .field("section", &self.section)
            .finish()
    }
}

/// What a section counts on.
struct Begun {
    section: ReadSection,
    modified: Tick,
    deadline: u64,
    ahead: u64,
}

impl Drop for ArenaSection<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.at.open.leave(place(), self.counted);
    }
}

impl<'a> ArenaSection<'a> {
    #[inline(always)]
    pub(super) fn enter(at: &'a Attached) -> Result<Self, ArenaError> {
        let mut has_quiesced = false;
        loop {
            match Self::counted(at) {
                Ok(section) => return Ok(section),
                Err(ticks) => at.catch_up(ticks, has_quiesced)?,
            }
            has_quiesced = true;
        }
    }

    /// A section that is counted, or by how many ticks it would be late.
    #[inline(always)]
    fn counted(at: &'a Attached) -> Result<Self, u64> {
        let counted = at.open.enter(place());
        match Self::begin(at) {
            Ok(begun) => Ok(ArenaSection {
                at,
                section: begun.section,
                modified: begun.modified,
                deadline: begun.deadline,
                ahead: begun.ahead,
                lazily: Cell::new(false),
                reads: Cell::new(0),
                counted,
            }),
            Err(ticks) => {
                at.open.leave(place(), counted);
                Err(ticks)
            }
        }
    }

    /// What others have freed is there while the section is counted, so it is before it looks.
    #[inline(always)]
    fn begin(at: &Attached) -> Result<Begun, u64> {
        // Before the quiescence: a later one than the deadline's is better.
        let (deadline, ahead) = (at.deadline.count(), at.ahead.load(SeqCst));
        let modified = Tick(at.modified.load(SeqCst));
        let section = match deadline {
            0 => ReadSection::enter((at.now(), modified), at.bound(), None),
            _ => Ok(ReadSection::unseen(modified, at.bound(), None)),
        };
        match section {
            _ if at.over.load(Relaxed) => Err(0),
            Ok(section) => Ok(Begun {
                section,
                modified,
                deadline,
                ahead,
            }),
            Err(late) => Err(late.by),
        }
    }

    /// What a slot leads to; none if that is nothing.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`] where the slot is none of this arena's, or holds something else
    /// than a pointer; [`ArenaError::Late`].
    #[inline(always)]
    pub fn load<T: ?Sized>(&self, slot: ArenaSlot<T>) -> Result<Option<Pointer<T>>, ArenaError> {
        let word = self.at.place(slot).map_err(|error| self.why(error))?;
        if self.section.drops_path(self.lazily.get()) {
            self.at.lines.drop_one(slot.line());
        }
        self.look_now_and_then()?;
        Ok(Pointer::from_word(self.at.lines.load(word)))
    }

    /// An object (`bi_dereference`).
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`] where the pointer leads to no object of this size;
    /// [`ArenaError::Late`].
    #[inline(always)]
    pub fn read<T: Value>(&self, pointer: Pointer<T>) -> Result<T, ArenaError> {
        self.see(pointer)?;
        Ok(self.at.part(pointer.to.line, 0))
    }

    /// What a pointer leads to may be looked at, part by part.
    #[inline(always)]
    pub(super) fn see<T>(&self, pointer: Pointer<T>) -> Result<(), ArenaError> {
        let extent = self.at.check(pointer).map_err(|error| self.why(error))?;
        self.see_at(pointer.to, extent)
    }

    /// Why a pointer leads nowhere: if the section has lasted too long, what it was read from may
    /// have been reused.
    #[inline(always)]
    pub(super) fn why(&self, bad: ArenaError) -> ArenaError {
        self.at.why(self.section, bad)
    }

    /// The same, of an object that is there.
    #[inline(always)]
    pub(super) fn see_at(&self, to: BiPtr, extent: Extent) -> Result<(), ArenaError> {
        let times = (self.section.began(), self.modified);
        if self.section.drops_first(to, times, self.lazily.get()) {
            let again = self.lazily.get();
            self.at.drop_young(to, extent, (self.modified, again));
        }
        self.look_now_and_then()
    }

    pub(super) fn at(&self) -> &Attached {
        self.at
    }

    /// The object that a slot leads to.
    ///
    /// # Errors
    /// Those of [`ArenaSection::load`] and [`ArenaSection::read`].
    #[inline(always)]
    pub fn get<T: Value>(&self, slot: ArenaSlot<T>) -> Result<Option<T>, ArenaError> {
        match self.load(slot)? {
            Some(pointer) => self.read(pointer).map(Some),
            None => Ok(None),
        }
    }

    /// Looks again past the cache, for what was added just now: whatever `f` reads in this section
    /// is as memory has it.
    pub fn lookup_lazily<R>(&self, f: impl FnOnce(&Self) -> R) -> R {
        let before = self.lazily.replace(true);
        let found = f(self);
        self.lazily.set(before);
        found
    }

    /// Ends it (`bi_exit`): whether what it has read is within the bound.
    ///
    /// # Errors
    /// [`ArenaError::Late`]: the section has lasted too long, or the process has slept in it. What
    /// it has read is to be thrown away.
    #[inline(always)]
    pub fn finish(self) -> Result<(), ArenaError> {
        self.holds()
    }

    #[inline(always)]
    fn holds(&self) -> Result<(), ArenaError> {
        let known = counter::is_before(self.deadline);
        match known && self.at.ahead.load(SeqCst) == self.ahead {
            true => Ok(()),
            false => self.at.holds(self.section, self.deadline),
        }
    }

    #[inline(always)]
    fn look_now_and_then(&self) -> Result<(), ArenaError> {
        let reads = self.reads.get().wrapping_add(1);
        self.reads.set(reads);
        match reads.is_multiple_of(READS) {
            true => self.holds(),
            false => Ok(()),
        }
    }
}

/// What seldom happens in a section. None of it takes the section by its address, and what often
/// happens is inlined: so a section is a few registers. In memory its parts are written one by one
/// and read together when it is moved, and each time the processor waits for its own stores: that
/// was half of what a section cost.
impl Attached {
    /// Quiesces, for a section that would be late; it is when that has been done already.
    #[cold]
    fn catch_up(&self, ticks: u64, has_quiesced: bool) -> Result<(), ArenaError> {
        if has_quiesced {
            return Err(self.late(ticks));
        }
        self.counters.late.fetch_add(1, Relaxed);
        self.quiesce_if(|| ArenaSection::begin(self).is_err())
    }

    /// Whether what a section has read may be believed, by the clock.
    #[cold]
    fn holds(&self, section: ReadSection, deadline: u64) -> Result<(), ArenaError> {
        section.holds(self.now()).map_err(|late| {
            if deadline != 0 {
                self.deadline.was_missed();
            }
            self.late(late.by)
        })
    }

    #[cold]
    fn why(&self, section: ReadSection, bad: ArenaError) -> ArenaError {
        let held = section.holds(self.now());
        held.map_or_else(|late| self.late(late.by), |()| bad)
    }

    /// Once a quiescence is enough, but `again`: nothing that it leads to has changed its place
    /// since.
    #[cold]
    fn drop_young(&self, to: BiPtr, extent: Extent, (modified, again): (Tick, bool)) {
        let word = to.to_word();
        // Two words of one pointer and one quiescence: both, mixed so that no other two are alike
        // but by a collision of 64 bits.
        let mixed = word.rotate_left(17).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ modified.0.wrapping_mul(0xff51_afd7_ed55_8ccd);
        let seen = &self.dropped_young[(word >> 16) as usize % YOUNG];
        if again || seen.load(SeqCst) != mixed {
            self.counters.young.fetch_add(1, Relaxed);
            self.lines.drop_one(extent);
            seen.store(mixed, SeqCst);
        }
    }
}

impl Attached {
    /// The word that a slot is, if that may hold a pointer.
    #[inline(always)]
    pub fn place<T: ?Sized>(&self, slot: ArenaSlot<T>) -> Result<usize, ArenaError> {
        let line = slot.line().line;
        match self.slots.contains(&line) || self.slab(line).is_some() {
            true => Ok(slot.word as usize),
            false => Err(ArenaError::BadPointer { line, len: 8 }),
        }
    }

    /// The object of this size that begins where a pointer leads.
    #[inline(always)]
    pub fn check<T>(&self, pointer: Pointer<T>) -> Result<Extent, ArenaError> {
        let (line, len) = (pointer.to.line, size_of::<T>());
        let extent = self.object(line, len)?;
        let fits = lines_of::<T>().next_power_of_two() == u64::from(extent.lines);
        match fits {
            true => Ok(extent),
            false => Err(ArenaError::BadPointer { line, len }),
        }
    }

    /// The object that begins with this line, which so many bytes are expected of.
    #[inline(always)]
    pub fn object(&self, line: u64, len: usize) -> Result<Extent, ArenaError> {
        let bad = ArenaError::BadPointer { line, len };
        let at = self.slab(line).ok_or(bad)?;
        let class = self.class_of(at).ok_or(bad)?;
        let lines = 1u16 << (class - 1);
        let within = (line - self.first) % SLAB_LINES;
        // A division would cost as much as the rest of a read.
        match within & (u64::from(lines) - 1) == 0 {
            true => Ok(Extent { line, lines }),
            false => Err(bad),
        }
    }

    /// Which slab a line is of, counted over all domains.
    #[inline(always)]
    fn slab(&self, line: u64) -> Option<usize> {
        let nth = line.checked_sub(self.first)? / SLAB_LINES;
        usize::try_from(nth)
            .ok()
            .filter(|nth| *nth < self.classes.len())
    }

    /// What a slab's objects are, if it is in use. It never changes.
    #[inline(always)]
    pub fn class_of(&self, nth: usize) -> Option<u8> {
        match self.classes.get(nth)?.load(Relaxed) {
            0 => self.learn_class(nth),
            class => Some(class),
        }
    }

    #[cold]
    fn learn_class(&self, nth: usize) -> Option<u8> {
        let class = self.front.users(nth as u64).find_map(|by| {
            let word = self.front.class(by, nth as u64);
            let class = u8::try_from(self.lines.load_past(word as usize)).ok()?;
            (1..=11).contains(&class).then_some(class)
        })?;
        self.classes[nth].store(class, Relaxed);
        Some(class)
    }

    /// A value at a multiple of eight bytes from a line on, from the cache.
    #[inline(always)]
    pub fn part<P: Value>(&self, line: u64, at: usize) -> P {
        let mut value = P::new_zeroed();
        self.copy(line, at, value.as_mut_bytes());
        value
    }

    /// The bytes there.
    #[inline(always)]
    pub fn copy(&self, line: u64, at: usize, into: &mut [u8]) {
        let first = line as usize * WORDS + at / 8;
        for (nth, bytes) in into.chunks_mut(8).enumerate() {
            let word = self.lines.load(first + nth).to_ne_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }
}

const _: () = assert!(LINE as usize == WORDS * 8 && SLAB_LINES.ilog2() + 1 == 11);
