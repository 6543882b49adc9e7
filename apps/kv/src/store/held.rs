//! Several buckets held at once.
//!
//! They are entered in rising order. Who holds them knows for certain which of them a key is in:
//! what is held is neither split nor merged.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use super::bucket::{Bucket, Inside, Standing};
use super::buckets::Slabs;
use super::bus::News;
use super::core::Core;
use super::lock::{Missed, Patience};
use super::undo::Journal;
use crate::error::{Error, Result};
use crate::layout::page::Page;
use crate::layout::superblock::{Flushes, MOST_DEPTH};
use crate::memory::{Access, Memory, Pages};

/// Of the buckets that a transaction has filled or emptied, so many are split or merged after it.
const MOST_UNBALANCED: usize = 1024;

const UNPLANNED: Error = Error::BadOption("the transaction was not planned to touch this key");

/// A bucket that is held.
struct Seat<M: Memory> {
    /// Nothing while a [`Bucket`] has it.
    inside: Cell<Option<Inside<M>>>,
    /// The step that has used it first.
    since: Cell<Option<u32>>,
}

impl<M: Memory> Seat<M> {
    fn new(inside: Inside<M>) -> Self {
        Seat {
            inside: Cell::new(Some(inside)),
            since: Cell::new(None),
        }
    }
}

/// Buckets held. Dropping it leaves them.
pub(crate) struct Held<'a, M: Memory> {
    pub core: &'a Core<M>,
    slabs: Arc<Slabs<M>>,
    pub access: Access,
    buckets: Vec<usize>,
    /// Of each bucket.
    seats: Vec<Seat<M>>,
    /// Commands that were begun on its behalf: what one of them has seen or changed is to be there
    /// for the next.
    steps: Cell<u32>,
    /// The flush count that the holder uses, so that no other flush falls into its middle.
    pub pinned: Cell<Flushes>,
    /// The lock that is its right, if the holder may flush.
    pub right: Option<u64>,
    /// What is told when the buckets have been left.
    pub news: RefCell<Vec<News>>,
    /// Whether all buckets that there are are held.
    pub whole: bool,
    /// What was changed, if that may have to be undone.
    pub journal: RefCell<Option<Box<Journal>>>,
    /// Hashes of keys whose buckets are to be split or merged once they are let go.
    unbalanced: RefCell<Vec<u64>>,
}
impl<M: Memory> Held<'_, M> {
    /// The buckets, in rising order.
    pub fn buckets(&self) -> &[usize] {
        &self.buckets
    }

    pub fn bucket(&self, number: usize, access: Access) -> Result<Bucket<'_, M>> {
        let enough = access == Access::Read || self.access == Access::Write;
        let place = self.buckets.binary_search(&number).ok();
        let Some(place) = place.filter(|_| enough) else {
            return Err(UNPLANNED);
        };
        let seat = &self.seats[place];
        seat.since.set(seat.since.get().or(Some(self.steps.get())));
        self.bucket_at(place)
    }

    /// A command begins.
    pub fn begin_step(&self) {
        self.steps.set(self.steps.get().wrapping_add(1));
    }

    /// Whether an earlier command has used the bucket at this place.
    pub fn was_used(&self, place: usize) -> bool {
        let since = self.seats[place].since.get();
        since.is_some_and(|step| step != self.steps.get())
    }

    fn bucket_at(&self, place: usize) -> Result<Bucket<'_, M>> {
        let number = self.buckets[place];
        let (slab, _) = self.core.map.place(number);
        let slab = self.slabs.get(slab).ok_or(UNPLANNED)?;
        let inside = self.seats[place].inside.take();
        let inside = inside.ok_or(Error::BadOption("the bucket is in use"))?;
        Ok(Bucket::held(self, (number, place), slab, inside))
    }

    /// What a bucket is to a key; `None`: it is not held.
    fn standing(&self, number: usize, hash: u64) -> Result<Option<Standing>> {
        match self.buckets.binary_search(&number) {
            Ok(place) => Ok(Some(self.bucket_at(place)?.standing(hash))),
            Err(_) => Ok(None),
        }
    }

    /// The bucket of a key, which is held.
    pub fn owner(&self, hash: u64) -> Result<usize> {
        let guess = self.slabs.guess(hash);
        if self.standing(guess, hash)? == Some(Standing::Owner) {
            return Ok(guess);
        }
        // Other threads learn meanwhile, and what they have learnt last may be old.
        for depth in self.core.map.root_depth()..=MOST_DEPTH {
            let number = hash as usize & ((1 << depth) - 1);
            if self.standing(number, hash)? == Some(Standing::Owner) {
                return Ok(number);
            }
        }
        Err(UNPLANNED)
    }

    /// A bucket that is not held, on the way to the one of a key, if it is known.
    pub fn missing(&self, hash: u64) -> Result<Option<usize>> {
        let mut number = self.slabs.guess(hash);
        loop {
            match self.standing(number, hash)? {
                None => return Ok(Some(number)),
                Some(Standing::Split(depth)) => number = next_on_path(number, depth, hash),
                Some(_) => return Ok(None),
            }
        }
    }

    /// Those that came of held ones when their numbers had so many bits; or which bucket does not
    /// say whether it was split.
    pub fn children(&self, depth: u8) -> Result<std::result::Result<Vec<usize>, usize>> {
        let mut children = Vec::new();
        for (place, number) in self.buckets.iter().copied().enumerate() {
            if number >> depth != 0 {
                break;
            }
            let bucket = self.bucket_at(place)?;
            if !bucket.is_certain() {
                return Ok(Err(number));
            }
            if bucket.depth() > depth {
                children.push(number + (1 << depth));
            }
        }
        Ok(Ok(children))
    }

    /// The bucket of a key is to be split or merged when it is let go.
    pub fn note_unbalanced(&self, hash: u64) {
        let mut noted = self.unbalanced.borrow_mut();
        if noted.len() < MOST_UNBALANCED {
            noted.push(hash);
        }
    }

    /// A bucket is not in use any more.
    pub fn give_back(&self, place: usize, inside: Option<Inside<M>>) {
        self.seats[place].inside.set(inside);
    }
}

impl<M: Memory> Drop for Held<'_, M> {
    fn drop(&mut self) {
        // What a bucket has got from another one, of a lower number, is in safety before it is gone
        // from there.
        for (bucket, seat) in self.buckets.iter().zip(&self.seats).rev() {
            let (slab, _) = self.core.map.place(*bucket);
            if let (Some(inside), Some(slab)) = (seat.inside.take(), self.slabs.get(slab)) {
                slab.heads.leave(inside);
            }
        }
        self.settle_journal();
        self.core.tell_all(&self.news.take());
        for hash in self.unbalanced.take() {
            self.core.balance(hash);
        }
    }
}

/// The bucket below `number`, which was split until it had so many bits, on the way to the bucket
/// of this hash.
pub(super) fn next_on_path(number: usize, depth: u8, hash: u64) -> usize {
    let other = (hash as usize ^ number) & ((1 << depth) - 1);
    let bits = other.trailing_zeros() + 1;
    hash as usize & ((1usize << bits) - 1)
}
impl<M: Memory> Core<M> {
    /// Enters the locks of the buckets of keys, or none.
    pub fn hold(&self, hashes: &[u64], access: Access) -> Result<Held<'_, M>> {
        let mut patience = self.patience();
        loop {
            let guess = |slabs: &Slabs<M>| hashes.iter().map(|hash| slabs.guess(*hash)).collect();
            let held = self.hold_numbers(guess, access)?;
            let elsewhere = |hash: &&u64| held.owner(**hash).is_err();
            let Some(hash) = hashes.iter().find(elsewhere).copied() else {
                return Ok(held);
            };
            // Another node has split its bucket, or merged it.
            drop(held);
            self.locate(hash)?;
            patience.follow()?;
        }
    }

    /// Enters the locks of all these buckets, or of none.
    pub fn hold_numbers(
        &self,
        buckets: impl Fn(&Slabs<M>) -> Vec<usize>,
        access: Access,
    ) -> Result<Held<'_, M>> {
        let mut patience = self.patience();
        loop {
            let mut held = self.holding(access);
            let mut buckets = buckets(&held.slabs);
            buckets.sort_unstable();
            buckets.dedup();
            let tried = self.enter_all(&mut held, &buckets)?;
            if let Some(held) = self.after_entering(held, tried, &mut patience)? {
                return Ok(held);
            }
        }
    }

    /// Enters the locks of all buckets that there are.
    pub fn hold_all(&self, access: Access) -> Result<Held<'_, M>> {
        let mut patience = self.patience();
        loop {
            let mut held = self.holding(access);
            let tried = self.enter_tree(&mut held)?;
            if let Some(held) = self.after_entering(held, tried, &mut patience)? {
                return Ok(held);
            }
        }
    }

    /// Nothing is held yet.
    fn holding(&self, access: Access) -> Held<'_, M> {
        Held {
            core: self,
            slabs: self.buckets.now(),
            access,
            buckets: Vec::new(),
            seats: Vec::new(),
            steps: Cell::new(0),
            pinned: Cell::default(),
            right: None,
            whole: false,
            news: RefCell::default(),
            journal: RefCell::default(),
            unbalanced: RefCell::default(),
        }
    }

    /// All were entered, or what could not be is mended.
    fn after_entering<'a>(
        &'a self,
        held: Held<'a, M>,
        missed: Option<(usize, Missed)>,
        patience: &mut Patience,
    ) -> Result<Option<Held<'a, M>>> {
        let Some((bucket, missed)) = missed else {
            held.pinned.set(self.newest_flushes()?);
            return Ok(Some(held));
        };
        // Repairing a bucket takes its lock to write.
        drop(held);
        self.after_reading(missed, bucket, bucket as u64, patience)?;
        Ok(None)
    }

    /// [`Self::enter_all`] of all there are, generation by generation: what is held is not split.
    fn enter_tree(&self, held: &mut Held<'_, M>) -> Result<Option<(usize, Missed)>> {
        let mut next: Vec<usize> = (0..self.map.roots).collect();
        for depth in self.map.root_depth().. {
            if let Some(failed) = self.enter_all(held, &next)? {
                return Ok(Some(failed));
            }
            next = match held.children(depth)? {
                Ok(children) => children,
                Err(number) => {
                    let unknown = Missed::Elsewhere(Standing::Unknown);
                    return Ok(Some((number, unknown)));
                }
            };
            if next.is_empty() {
                break;
            }
        }
        held.whole = true;
        Ok(None)
    }

    /// Says which bucket could not be entered and why not, or was found outdated by a reader.
    fn enter_all(
        &self,
        held: &mut Held<'_, M>,
        buckets: &[usize],
    ) -> Result<Option<(usize, Missed)>> {
        for &bucket in buckets {
            let (slab, index) = self.map.place(bucket);
            let Some(slab) = held.slabs.get(slab) else {
                return Ok(Some((bucket, Missed::Unknown)));
            };
            let inside = match self.enter(slab, index, held.access) {
                Ok(Some(inside)) => inside,
                Ok(None) => return Err(self.busy()),
                Err(error) => return Ok(Some((bucket, Missed::Barred(error)))),
            };
            let outdated = slab.heads.is_outdated(&inside);
            let moved = Page::new(slab.heads.view(&inside), &self.geometry).is_moved();
            held.buckets.push(bucket);
            held.seats.push(Seat::new(inside));
            match (outdated, held.access) {
                (false, _) => {}
                (true, Access::Read) => return Ok(Some((bucket, Missed::Outdated))),
                (true, Access::Write) => {
                    if self.begin_or_move(&mut held.bucket(bucket, Access::Write)?)? {
                        return Ok(Some((bucket, Missed::Moved(slab.addr()))));
                    }
                }
            }
            if moved {
                return Ok(Some((bucket, Missed::Moved(slab.addr()))));
            }
        }
        Ok(None)
    }

    /// Enters one more bucket for a holder of others, `wait` at most, or as long as any operation
    /// waits if it is behind all that are held, for then nobody waits in a circle. `false`: it
    /// could not, or the holder goes by flushes that the bucket is past; nothing has changed.
    pub fn hold_also(&self, held: &mut Held<'_, M>, bucket: usize, wait: Duration) -> Result<bool> {
        let Err(place) = held.buckets.binary_search(&bucket) else {
            return Ok(true);
        };
        let wait = match place == held.buckets.len() {
            true => self.patience,
            false => wait.min(self.patience),
        };
        let (number, index) = self.map.place(bucket);
        let slabs = held.slabs.clone();
        let Some(slab) = slabs.get(number) else {
            return Ok(false);
        };
        // Trouble with a home is mended when the bucket is entered by itself.
        let Ok(Some(inside)) = slab.heads.enter(index, held.access, wait) else {
            return Ok(false);
        };
        let outdated = slab.heads.is_outdated(&inside);
        let moved = Page::new(slab.heads.view(&inside), &self.geometry).is_moved();
        held.buckets.insert(place, bucket);
        held.seats.insert(place, Seat::new(inside));
        let flushed = self.newest_flushes()?.epoch != held.pinned.get().epoch;
        let writes = held.access == Access::Write;
        let gone = match moved || flushed || outdated && !writes {
            true => {
                // The next holder of these finds it.
                let _ = moved && self.look_again(number, slab.addr())?;
                true
            }
            false if outdated => {
                // What it had is not to come back.
                let journal = held.journal.take();
                let found = held.bucket(bucket, Access::Write);
                let moved = found.and_then(|mut bucket| self.begin_or_move(&mut bucket));
                held.journal.replace(journal);
                moved?
            }
            false => false,
        };
        if gone {
            held.buckets.remove(place);
            if let Some(inside) = held.seats.remove(place).inside.take() {
                slab.heads.leave(inside);
            }
        }
        Ok(!gone)
    }
}
