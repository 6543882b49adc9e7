//! Items in a program's hands, and sections in which they are read.

use super::asking::{Entering, Reading};
use super::copies::Copies;
use super::counter;
use super::writing::DomainWriter;
use crate::bytes::value::Value;
use crate::error::{AccessError, RegionError};
use crate::locked::Mutex;
use crate::region::Region;
use rackmem_proto::bi::ReadSection;
use rackmem_proto::bi::cached::MEMBER_BOUND;
use rackmem_proto::wire::{Contract, Tag};
use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The shortest tick: a thread that rests for less does little else.
const LEAST_TICK: Duration = Duration::from_micros(250);

/// The items of a region under [`Contract::Bounded`], one a line, as this node has them: a read is
/// a look at a copy and at a clock, and what it returns was current within the bound before its
/// section began. Where that cannot be known, the read is [`AccessError::Stale`].
///
/// The node asks the region's home what was written, twice within the bound while it is read, and
/// is told what small items are now. Nobody waits for a node that only reads: if it sleeps or dies
/// it holds nothing up, and when it wakes it asks before it reads. A domain that is not read for a
/// while asks nothing.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::bounded::Domain;
/// use rackmem::{Contract, Rack, RegionSpec};
/// use std::time::Duration;
///
/// let rack = Rack::local(2)?;
/// let spec = RegionSpec::new("prices", 64 * 100).contract(Contract::Bounded);
/// let second = Duration::from_secs(1);
/// let prices: Domain<u64> = Domain::of(&rack.node(0).create_region(&spec)?, second)?;
/// prices.writer()?.set(7, &250)?;
///
/// let same: Domain<u64> = Domain::of(&rack.node(1).open_region(&spec)?, second)?;
/// let section = same.enter()?; // what follows is a second old at most, or an error
/// let sum = section.get(7)? + section.get(8)?;
/// section.finish()?;
/// assert_eq!(sum, 250);
/// # Ok(())
/// # }
/// ```
pub struct Domain<T: Value> {
    pub(super) copies: Arc<Copies<T>>,
    lock: Arc<WriterLock>,
}

/// Who has it writes. It has how often that was. A node that only reads never touches it: nobody
/// who writes waits for such a node.
struct WriterLock {
    name: String,
    found: OnceLock<Mutex<u64>>,
}

impl<T: Value> Clone for Domain<T> {
    fn clone(&self) -> Self {
        Domain {
            copies: self.copies.clone(),
            lock: self.lock.clone(),
        }
    }
}

impl<T: Value> std::fmt::Debug for Domain<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("of", &std::any::type_name::<T>())
            .field("addr", &format_args!("{:#018x}", self.copies.region.0))
            .field("items", &self.len())
            .field("bound", &self.bound())
            .finish()
    }
}

impl<T: Value> Domain<T> {
    /// The items of a region, none of which is read when it is older than this. The bound is this
    /// node's: others may have another one. Its writers' lock is named like the region, with
    /// `/writer` behind it.
    ///
    /// # Errors
    /// [`AccessError::WrongContract`] where the region is under another one,
    /// [`AccessError::OtherSize`] where a `T` is longer than a line, or the region was made with
    /// other lines; [`AccessError::TightBound`] below 5 ms; those of [`Region::check`] and
    /// [`Mutex::named`].
    pub fn of(region: &Region, bound: Duration) -> Result<Self, RegionError> {
        let (node, tag) = (region.node(), Tag(region.addr()));
        if !tag.is_under(Contract::Bounded) {
            return Err(AccessError::wrong_contract(tag, Contract::Bounded).into());
        }
        let ticks = MEMBER_BOUND;
        let period = bound / ticks.ticks() as u32;
        if period < LEAST_TICK {
            let least = LEAST_TICK * ticks.ticks() as u32;
            return Err(AccessError::TightBound { bound, least }.into());
        }
        let line = region.line();
        if size_of::<T>() > line {
            let (addr, len, is) = (tag.0, size_of::<T>(), line);
            return Err(AccessError::OtherSize { addr, len, is }.into());
        }
        region.check()?;
        let count = region.bytes() / line;
        let copies = Copies::new((node, tag), (line, count), (ticks, period))?;
        let lock = Arc::new(WriterLock {
            name: format!("{}/writer", region.name()),
            found: OnceLock::new(),
        });
        let domain = Domain { copies, lock };
        if region.is_new() {
            domain.lock()?;
        }
        Ok(domain)
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// Whether there is none: never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How old what is read may be when its section begins.
    pub fn bound(&self) -> Duration {
        self.copies.period * self.copies.bound.ticks() as u32
    }

    /// How long a section may last. One that begins long after this node has heard of the home may
    /// be refused earlier, as the first of its kind: the next ones may last as long as this.
    pub fn longest_section(&self) -> Duration {
        self.copies.period * self.copies.bound.section as u32
    }

    /// Begins a section. If it is known that this node has not heard of the home lately enough, it
    /// asks first, and waits for that; otherwise what is read says so.
    ///
    /// # Errors
    /// [`AccessError::Stale`] when the home's answer has taken longer than the bound;
    /// [`AccessError::Gone`] when the region was removed; those of [`Node`](crate::Node).
    #[inline(always)]
    pub fn enter(&self) -> Result<Pinned<'_, T>, AccessError> {
        let copies = &*self.copies;
        let (section, deadline) = match copies.enter_now() {
            Some(unseen) => unseen,
            None => (self.enter_seen()?, 0),
        };
        Ok(Pinned::new(copies, section, deadline))
    }

    /// A section that looks at the clock.
    #[cold]
    fn enter_seen(&self) -> Result<ReadSection, AccessError> {
        let (copies, mut entering) = (&*self.copies, Entering::default());
        copies.call(copies.patience(), |came| entering.go_on(copies, came))
    }

    /// One item, in a section of its own.
    ///
    /// # Errors
    /// Those of [`Domain::enter`] and [`Pinned::get`].
    #[inline]
    pub fn read(&self, index: usize) -> Result<T, AccessError> {
        match self.copies.read_now(index) {
            Some(value) => Ok(value),
            None => self.read_slowly(index),
        }
    }

    /// The same, whatever stands in its way. Where a section has not looked at the clock and was
    /// too late, that says nothing about how long others last: this one looks.
    #[cold]
    fn read_slowly(&self, index: usize) -> Result<T, AccessError> {
        let (copies, mut reading) = (&*self.copies, Reading::new(index));
        copies.call(copies.patience(), |came| reading.go_on(copies, came))
    }

    /// An item is this from now on, without the region's lock: the home takes writes one after the
    /// other, and the last one stays. What a [writer](Domain::writer) makes of an item that it has
    /// read does not know of a write that comes in between.
    ///
    /// # Errors
    /// Those of [`DomainWriter::set`].
    pub fn set(&self, index: usize, value: &T) -> Result<(), AccessError> {
        self.copies.write(index, value)
    }

    /// Asks the home now what was written: what was acknowledged before this call is seen by
    /// sections that begin after it.
    ///
    /// # Errors
    /// Those of [`Domain::enter`].
    pub fn quiesce(&self) -> Result<(), AccessError> {
        let copies = &*self.copies;
        copies.quiesce(copies.since_now(), copies.patience())
    }

    /// The region's lock.
    pub(super) fn lock(&self) -> Result<&Mutex<u64>, RegionError> {
        let WriterLock { name, found } = &*self.lock;
        if let Some(lock) = found.get() {
            return Ok(lock);
        }
        let lock = Mutex::renewed(&self.copies.node, name, 0)?;
        Ok(found.get_or_init(|| lock))
    }

    /// Waits for the region's lock, a lock of the rack, and has it until the writer is dropped.
    ///
    /// # Errors
    /// Those of [`Mutex::renewed`] and [`Mutex::lock`].
    pub fn writer(&self) -> Result<DomainWriter<'_, T>, RegionError> {
        DomainWriter::new(self)
    }
}

/// A section that is open. What it reads was current within the bound before it began, if it
/// [ends](Pinned::finish) without an error.
///
/// ```
/// # fn main() -> rackmem::Result<()> {
/// use rackmem::bounded::{Domain, Pinned};
/// use rackmem::{Contract, Rack, RegionSpec};
/// use std::time::Duration;
///
/// let rack = Rack::local(1)?;
/// let spec = RegionSpec::new("flags", 64 * 8).contract(Contract::Bounded);
/// let flags = Domain::<u32>::of(&rack.node(0).create_region(&spec)?, Duration::from_secs(1))?;
/// let section: Pinned<'_, u32> = flags.enter()?;
/// assert_eq!(section.get(3)?, 0);
/// section.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pinned<'a, T: Value> {
    pub(super) copies: &'a Copies<T>,
    pub(super) section: ReadSection,
    /// Until this count nobody has to look at the clock.
    pub(super) deadline: u64,
    /// Its first read is checked when it ends, and those behind it at once.
    has_read: Cell<bool>,
}

impl<'a, T: Value> Pinned<'a, T> {
    #[inline(always)]
    pub(super) fn new(copies: &'a Copies<T>, section: ReadSection, deadline: u64) -> Self {
        Pinned {
            copies,
            section,
            deadline,
            has_read: Cell::new(false),
        }
    }

    /// An item: a copy, or what the home has if there is none. It is believed when the section
    /// [ends](Pinned::finish) without an error. From the second read on each looks at the clock.
    ///
    /// # Errors
    /// [`AccessError::Stale`] when the section has lasted too long, or the process has slept in it:
    /// nothing that it has read is to be used any more. [`AccessError::OutOfBounds`],
    /// [`AccessError::Gone`], those of [`Node`](crate::Node).
    #[inline(always)]
    pub fn get(&self, index: usize) -> Result<T, AccessError> {
        let value = self.copies.get(index)?;
        if self.has_read.replace(true) {
            self.holds()?;
        }
        Ok(value)
    }

    /// Ends it: whether what it has read is within the bound.
    ///
    /// # Errors
    /// [`AccessError::Stale`]: what it has read is to be thrown away.
    #[inline(always)]
    pub fn finish(self) -> Result<(), AccessError> {
        self.holds()
    }

    #[inline(always)]
    fn holds(&self) -> Result<(), AccessError> {
        holds(self.copies, self.section, self.deadline)
    }
}

/// Whether what a section has read is within the bound.
#[inline(always)]
pub(super) fn holds<T: Value>(
    copies: &Copies<T>,
    section: ReadSection,
    deadline: u64,
) -> Result<(), AccessError> {
    match counter::is_before(deadline) {
        true => Ok(()),
        false => holds_by_clock(copies, section, deadline),
    }
}

/// The same. A section that nothing takes the address of has none, and is a few registers.
#[cold]
fn holds_by_clock<T: Value>(
    copies: &Copies<T>,
    section: ReadSection,
    deadline: u64,
) -> Result<(), AccessError> {
    section.holds(copies.now()).map_err(|late| {
        if deadline != 0 {
            copies.deadline.was_missed();
        }
        copies.stale(late.by)
    })
}

#[cfg(test)]
mod tests {
    use super::super::counter::Moment;
    use super::*;
    use crate::{Rack, RegionSpec};
    use rackmem_proto::bi::Tick;
    use std::time::Instant;

    const BOUND: Duration = Duration::from_millis(20);
    /// Longer than anything here takes on a loaded machine.
    const LONG: Duration = Duration::from_secs(60);

    /// As if the thread that asks were late: what is known is too old, and nobody has said so.
    fn be_late(domain: &Domain<u64>) {
        let copies = &domain.copies;
        copies.set_quiesced(Tick(0));
        copies.deadline.set(Moment::now(|| 0), 0);
    }

    #[test]
    fn a_late_read_is_made_again_and_a_late_section_has_others_look_at_the_clock() {
        let rack = Rack::local(1).unwrap();
        let spec = RegionSpec::new("late", 64).contract(Contract::Bounded);
        let region = rack.node(0).create_region(&spec).unwrap();
        let domain: Domain<u64> = Domain::of(&region, BOUND).unwrap();
        domain.set(0, &7).unwrap();
        std::thread::sleep(10 * BOUND);
        let deadline = &domain.copies.deadline;
        for _ in 0..100 {
            be_late(&domain);
            assert_eq!(domain.read(0).unwrap(), 7);
            assert!(deadline.is_in_use());
        }
        if !counter::is_kept() {
            return; // Sections always look at the clock here.
        }
        let began = Instant::now();
        while deadline.is_in_use() {
            assert!(began.elapsed() < LONG);
            // The thread may ask in between.
            be_late(&domain);
            let section = domain.enter().unwrap();
            let _ = section.finish();
        }
        assert_eq!(domain.read(0).unwrap(), 7);
    }
}
