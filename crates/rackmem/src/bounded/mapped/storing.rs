//! Writing objects, and the memory for them.

use super::arena::Attached;
use super::estate::{Estate, Gain};
use super::lines::WORDS;
use super::pointer::{ArenaSlot, Fresh, MOST, Pointer, lines_for};
use crate::backoff::Backoff;
use crate::bytes::value::Value;
use crate::error::ArenaError;
use crate::locked::MutexGuard;
use rackmem_fabric::Whole;
use rackmem_proto::bi::{
    BiPtr, Board, Bound, Change, DomainRow, Extent, Phase, Presence, Queue, RingFull, RingOwner,
    Roll, Tick, Tracking,
};
use std::collections::BTreeSet;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

/// What a domain has modified and freed, and what it has to give out.
pub(super) struct Storing {
    pub rings: [RingOwner; 2],
    pub roll: Roll,
    pub estate: Estate,
    /// Lines of objects that were not freed, each with a word that has led there, and of which
    /// nobody was told that it leads elsewhere.
    pub untold: BTreeSet<(u64, u64)>,
}

impl Storing {
    pub fn new(me: u8, bound: Bound, slabs: u64) -> Self {
        Storing {
            rings: Queue::BOTH.map(|queue| RingOwner::new(me, queue, None)),
            roll: Roll::new(bound, None),
            estate: Estate::new(slabs),
            untold: BTreeSet::new(),
        }
    }
}

/// What stands in a ring, without a stamp yet.
type Entered = Vec<(u64, Extent)>;

impl Attached {
    /// What was modified, and freed, before these ticks is in no cache.
    pub fn horizon(&self) -> [Tick; 2] {
        self.horizon_of(&mut self.storing.lock().whole())
    }

    fn horizon_of(&self, storing: &mut Storing) -> [Tick; 2] {
        let now = self.now();
        let lives = |domain: u8, row: &DomainRow| self.lives(domain, row.incarnation);
        storing.roll.horizon(&mut self.board(), lives, now)
    }

    /// See [`super::Arena::reclaim`].
    pub fn reclaim(&self) -> usize {
        let mut storing = self.storing.lock().whole();
        let kept = storing.rings.iter().any(|ring| ring.kept() > 0);
        let kept = kept || storing.estate.waiting() > 0;
        // After it has left, its rings are those of another life.
        match kept && !self.over.load(SeqCst) {
            true => self.reclaim_in(&mut storing),
            false => 0,
        }
    }

    fn reclaim_in(&self, storing: &mut Storing) -> usize {
        let before = self.horizon_of(storing);
        storing.rings[0].trim(before[0], &mut self.board());
        let freed = self.give_due(storing, before[1]);
        self.counters.reused.fetch_add(freed as u64, Relaxed);
        freed
    }

    /// Freed objects whose memory is not free yet.
    pub fn waiting(&self) -> u64 {
        let storing = self.storing.lock().whole();
        storing.rings[1].kept() + storing.estate.waiting() as u64
    }

    /// The live domain that has quiesced least lately.
    fn slowest(&self) -> u16 {
        let board = self.board();
        let rows = (0..self.front.board.domains).map(|domain| (domain, board.row(domain)));
        let live = rows.filter(|(domain, row)| {
            row.presence != Presence::Absent && self.lives(*domain, row.incarnation)
        });
        live.min_by_key(|(_, row)| row.freed)
            .map_or(0, |(domain, _)| domain.into())
    }

    /// Tries until there is room: memory comes back meanwhile, or `more` of it is found.
    fn patiently<R>(
        &self,
        mut f: impl FnMut(&mut Storing) -> Result<R, ArenaError>,
        more: impl Fn() -> Result<Gain, ArenaError>,
    ) -> Result<R, ArenaError> {
        let mut backoff = Backoff::new(self.node.inner.access.patience);
        loop {
            let mut storing = self.storing.lock().whole();
            let full = match f(&mut storing) {
                Err(full @ (ArenaError::RingFull { .. } | ArenaError::ArenaFull { .. })) => full,
                done => return done,
            };
            let waiting = storing.rings[1].kept() > 0
                || storing.estate.waiting() > 0
                || matches!(full, ArenaError::RingFull { .. });
            if self.reclaim_in(&mut storing) > 0 {
                continue;
            }
            drop(storing);
            let more = more()?;
            if more == Gain::Some {
                continue;
            }
            if (!waiting && more == Gain::Nothing) || !backoff.wait() {
                return Err(match full {
                    ArenaError::RingFull { .. } => ArenaError::RingFull {
                        slowest: self.slowest(),
                    },
                    full => full,
                });
            }
            self.node.open()?;
        }
    }

    /// Enters lines, all of them or none.
    fn enter(&self, queue: Queue, extents: &[Extent]) -> Result<Entered, ArenaError> {
        let mut entered = Entered::new();
        for extent in extents.iter().filter(|extent| extent.lines > 0) {
            let push = |storing: &mut Storing| {
                let pushed = storing.rings[queue as usize].push(*extent, &mut self.board());
                pushed.map_err(|RingFull| ArenaError::RingFull { slowest: 0 })
            };
            let nth = self.patiently(push, || Ok(Gain::Nothing));
            match nth {
                Ok(nth) => entered.push((nth, *extent)),
                Err(error) => {
                    // What was entered is dropped by others for nothing.
                    self.stamp(queue, entered, self.now());
                    return Err(error);
                }
            }
        }
        Ok(entered)
    }

    fn stamp(&self, queue: Queue, entered: Entered, now: Tick) {
        let mut storing = self.storing.lock().whole();
        for row in entered {
            storing.rings[queue as usize].stamp(row, now, &mut self.board());
        }
    }

    /// Carries a change out. `word`: where, and what is to stand there by the clock of that moment.
    /// What stood there before.
    fn change(
        &self,
        mut change: Change,
        (at, to): (u64, impl Fn(Tick) -> u64),
        [new, old]: [Extent; 2],
    ) -> Result<u64, ArenaError> {
        let line = Extent {
            line: at / WORDS as u64,
            lines: 1,
        };
        let (mut entered, mut before) = ([Entered::new(), Entered::new()], 0);
        while let Some(phase) = change.phase() {
            match phase {
                Phase::Refresh => before = self.lines.load_past(at as usize),
                Phase::Intend => entered[0] = self.enter(Queue::Modified, &[line, new])?,
                // A process that the rack does without does not store any more: neither what it
                // has of the object in its cache, nor the word.
                Phase::WriteBack | Phase::Link => {
                    if let Err(error) = self.node.confirm() {
                        let [modified, _] = entered;
                        self.stamp(Queue::Modified, modified, self.now());
                        return Err(error.into());
                    }
                    if phase == Phase::Link {
                        self.lines.store(at as usize, to(change.clock()));
                    } else {
                        self.lines.write_back(new);
                        self.claim(new);
                    }
                }
                Phase::Clock => {}
                Phase::Publish => self.lines.write_back(line),
                Phase::Retire => entered[1] = self.enter(Queue::Freed, &[old])?,
                Phase::Stamp(queue) => {
                    let rows = std::mem::take(&mut entered[queue as usize]);
                    self.stamp(queue, rows, change.clock());
                }
            }
            change.done(self.now());
        }
        Ok(before)
    }

    fn take(&self, lines: u64) -> Result<Extent, ArenaError> {
        let share = self.front.slabs * MOST as u64;
        let take = |storing: &mut Storing| {
            let taken = self.take_here(&mut storing.estate, lines);
            taken.ok_or(ArenaError::ArenaFull { share })
        };
        let taken = self.patiently(take, || self.take_over(lines))?;
        // A process that the rack does without may have been taken over from.
        self.node.confirm()?;
        Ok(taken)
    }
}

/// One writer of the rack, as long as this lives. What it reads is as memory has it.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::Rack;
/// use rackmem::bounded::{Arena, ArenaSpec, ArenaWriter};
/// use rackmem::locked::Mutex;
/// use std::time::Duration;
///
/// # let path = std::env::temp_dir().join(format!("rackmem-doc-writer-{}", std::process::id()));
/// let rack = Rack::local(1)?;
/// let spec = ArenaSpec::new(&path, 1 << 20).bound(Duration::from_secs(60)).emulated();
/// let arena = Arena::create(&rack.node(0), &spec)?;
/// let lock = Mutex::create(&rack.node(0), 0u64)?;
/// let mut writer: ArenaWriter<'_, u64> = arena.writer(&lock)?;
/// for price in [250u64, 260] {
///     let new = writer.alloc(&price)?;
///     if let Some(old) = writer.assign(arena.slot(0)?, new)? {
///         writer.free(old)?; // not used again while any node may read it
///     }
/// }
/// assert_eq!(writer.get::<u64>(arena.slot(0)?)?, Some(260));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
pub struct ArenaWriter<'a, L: Value> {
    at: &'a Attached,
    guard: MutexGuard<'a, L>,
}

impl<L: Value> std::fmt::Debug for ArenaWriter<'_, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArenaWriter")
            .field("node", &self.at.me)
            .finish()
    }
}

impl<'a, L: Value> ArenaWriter<'a, L> {
    pub(super) fn new(at: &'a Attached, guard: MutexGuard<'a, L>) -> Self {
        ArenaWriter { at, guard }
    }

    /// What the lock protects beside.
    pub fn guard(&mut self) -> &mut MutexGuard<'a, L> {
        &mut self.guard
    }

    /// What a slot leads to now.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`].
    pub fn load<T: ?Sized>(&self, slot: ArenaSlot<T>) -> Result<Option<Pointer<T>>, ArenaError> {
        let word = self.at.place(slot)?;
        Ok(Pointer::from_word(self.at.lines.load_past(word)))
    }

    /// An object as it is now.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`].
    pub fn read<T: Value>(&self, pointer: Pointer<T>) -> Result<T, ArenaError> {
        self.see(pointer)?;
        Ok(self.at.part(pointer.to.line, 0))
    }

    /// What a pointer leads to may be looked at, part by part.
    pub(super) fn see<T>(&self, pointer: Pointer<T>) -> Result<(), ArenaError> {
        self.at.check(pointer)?;
        self.at.lines.drop_one(pointer.extent());
        Ok(())
    }

    pub(super) fn at(&self) -> &Attached {
        self.at
    }

    /// The object that a slot leads to now.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`].
    pub fn get<T: Value>(&self, slot: ArenaSlot<T>) -> Result<Option<T>, ArenaError> {
        self.load(slot)?
            .map(|pointer| self.read(pointer))
            .transpose()
    }

    /// A new object (`bi_alloc`), which nothing leads to yet. It takes whole lines: 64 bytes, or
    /// the next power of two, up to 64 KiB.
    ///
    /// # Errors
    /// [`ArenaError::ArenaFull`], [`ArenaError::ObjectTooLarge`].
    pub fn alloc<T: Value>(&mut self, value: &T) -> Result<Fresh<T>, ArenaError> {
        self.alloc_parts(&[(0, value.as_bytes())])
    }

    /// One whose parts are these, at multiples of eight bytes, and zeros where none is.
    pub(super) fn alloc_parts<T>(
        &mut self,
        parts: &[(usize, &[u8])],
    ) -> Result<Fresh<T>, ArenaError> {
        let extent = self.fill(size_of::<T>(), parts)?;
        Ok(Fresh::new(extent))
    }

    /// Memory for so many bytes, with these parts in it.
    pub(super) fn fill(
        &mut self,
        len: usize,
        parts: &[(usize, &[u8])],
    ) -> Result<Extent, ArenaError> {
        if len > MOST {
            return Err(ArenaError::ObjectTooLarge { len, most: MOST });
        }
        let extent = self.at.take(lines_for(len))?;
        let mut words = vec![0u64; usize::from(extent.lines) * WORDS];
        for (at, bytes) in parts {
            for (word, part) in words[at / 8..].iter_mut().zip(bytes.chunks(8)) {
                let mut bytes = [0; 8];
                bytes[..part.len()].copy_from_slice(part);
                *word = u64::from_ne_bytes(bytes);
            }
        }
        let first = extent.line as usize * WORDS;
        for (nth, word) in words.into_iter().enumerate() {
            self.at.lines.store(first + nth, word);
        }
        Ok(extent)
    }

    /// Puts an object in place (`bi_assign_pointer`): readers see what was there, or all of this.
    /// What was there, which is the caller's to free.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`] where the slot is no place for a pointer,
    /// [`ArenaError::RingFull`], those of [`Node::confirm`](crate::Node::confirm). The object is
    /// lost then.
    pub fn assign<T: ?Sized>(
        &mut self,
        slot: ArenaSlot<T>,
        new: Fresh<T>,
    ) -> Result<Option<Pointer<T>>, ArenaError> {
        self.put(slot, Some(new.extent), Tracking::Tracked)
    }

    /// The same, and nobody is told of it: programs drop it themselves, by
    /// [`Arena::quiesce_stale`](super::Arena::quiesce_stale). Until then they read what was there,
    /// however long ago; when this node [frees](ArenaWriter::free) that, all are told of the slot
    /// first. Another node that frees it does not know that it must.
    ///
    /// # Errors
    /// Those of [`ArenaWriter::assign`].
    pub fn assign_untold<T: ?Sized>(
        &mut self,
        slot: ArenaSlot<T>,
        new: Fresh<T>,
    ) -> Result<Option<Pointer<T>>, ArenaError> {
        self.put(slot, Some(new.extent), Tracking::Own)
    }

    /// Leads a slot to an object that is in place elsewhere, or nowhere.
    ///
    /// # Errors
    /// Those of [`ArenaWriter::assign`].
    pub fn lead<T>(
        &mut self,
        slot: ArenaSlot<T>,
        to: Option<Pointer<T>>,
    ) -> Result<Option<Pointer<T>>, ArenaError> {
        if let Some(pointer) = to {
            self.at.check(pointer)?;
        }
        self.put(slot, to.map(Pointer::extent), Tracking::Tracked)
    }

    pub(super) fn put<T: ?Sized>(
        &mut self,
        slot: ArenaSlot<T>,
        new: Option<Extent>,
        tracking: Tracking,
    ) -> Result<Option<Pointer<T>>, ArenaError> {
        self.at.place(slot)?;
        let born = |line, now| BiPtr::assigned(line, now, tracking, None).to_word();
        let to = |now| new.map_or(0, |new| born(new.line, now));
        let change = Change::assign(tracking, false, None);
        let extents = [new.unwrap_or_default(), Extent::default()];
        let before = self.at.change(change, (slot.word, to), extents)?;
        let before: Option<Pointer<T>> = Pointer::from_word(before);
        if let Some(before) = &before {
            let untold = &mut self.at.storing.lock().whole().untold;
            let row = (before.to.line, slot.word);
            match tracking {
                Tracking::Own => untold.insert(row),
                Tracking::Tracked => untold.remove(&row),
            };
        }
        Ok(before)
    }

    /// Changes a word of an object that is in place: its field of type `u64` at this byte. Readers
    /// see the old word or the new one.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`] where the object has no such word; those of
    /// [`ArenaWriter::assign`].
    pub fn set<T: Value>(
        &mut self,
        pointer: Pointer<T>,
        at: usize,
        word: u64,
    ) -> Result<(), ArenaError> {
        self.at.check(pointer)?;
        self.set_within(pointer.to, at, (size_of::<T>(), word))
    }

    /// The same, in an object that is there and has so many bytes.
    pub(super) fn set_within(
        &mut self,
        object: BiPtr,
        at: usize,
        (len, word): (usize, u64),
    ) -> Result<(), ArenaError> {
        let line = object.line;
        let slot = ArenaSlot::<u64>::within(object, at, len)
            .ok_or(ArenaError::BadPointer { line, len })?;
        let change = Change::assign(Tracking::Tracked, false, None);
        let set = (slot.word, |_| word);
        self.at
            .change(change, set, [Extent::default(); 2])
            .map(drop)
    }

    /// An object that nothing leads to any more is not used (`bi_free`): its memory is given out
    /// again when no node can read it. Waits, if too much is waiting for that.
    ///
    /// # Errors
    /// [`ArenaError::BadPointer`]; [`ArenaError::RingFull`] when the other nodes have not quiesced
    /// for as long as the configuration allows: then it is not freed.
    pub fn free<T>(&mut self, pointer: Pointer<T>) -> Result<(), ArenaError> {
        self.at.check(pointer)?;
        self.free_extent(pointer.extent())
    }

    pub(super) fn free_extent(&mut self, extent: Extent) -> Result<(), ArenaError> {
        let of_it = (extent.line, 0)..=(extent.line, u64::MAX);
        let storing = || self.at.storing.lock().whole();
        let untold: Vec<_> = storing().untold.range(of_it).copied().collect();
        for (_, word) in &untold {
            let nothing = [Extent::default(); 2];
            self.at.change(Change::tell(), (*word, |_| 0), nothing)?;
        }
        let extents = [Extent::default(), extent];
        self.at.change(Change::free(), (0, |_| 0), extents)?;
        for row in &untold {
            storing().untold.remove(row);
        }
        Ok(())
    }
}
