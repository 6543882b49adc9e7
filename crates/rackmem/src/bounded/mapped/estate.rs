//! What a domain has to give out, as the arena's file has it: so it outlives the process.
//!
//! A domain has a bit for each object that is free in its hands, in lines that no other domain
//! writes. The bit goes before a word leads to the object, and comes back when no cache can hold
//! what was freed. So a process that dies takes nothing with it but an object that was just then on
//! its way into place, or out of it.
//!
//! The next life of its node goes on with that; or a domain that has no room takes it over, when
//! nobody waits for the dead one any more, and uses slabs of its share that nobody has used. One
//! domain does so at a time, under a lock of the rack, and says of which life before it begins: if
//! it dies in between, what it has not copied is lost, and nothing is given out twice.

use super::arena::Attached;
use super::front::BITS;
use super::lines::WORDS;
use super::storing::Storing;
use crate::error::{ArenaError, RegionError};
use crate::locked::Lock;
use rackmem_fabric::Whole;
use rackmem_proto::bi::{Board, DomainRow, Extent, Extents, Presence, Queue, SLAB_LINES, Tick};
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

/// Free objects of a domain.
#[derive(Default)]
pub(super) struct Estate {
    free: Extents,
    /// As they stand in the file, for all slabs.
    bits: Vec<u64>,
    /// What others had freed, and since when all have to quiesce before it is free.
    later: Vec<(Tick, Vec<Extent>)>,
    /// Slabs of its share that are in use, and those before them.
    next_slab: u64,
}

/// Whether there is something to take over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gain {
    Nothing,
    /// A domain is dead, and some wait for it yet.
    Soon,
    Some,
}

impl Estate {
    pub fn new(slabs: u64) -> Self {
        Estate {
            bits: vec![0; (slabs * BITS) as usize],
            ..Estate::default()
        }
    }

    /// Objects that others had freed and may read.
    pub fn waiting(&self) -> usize {
        self.later.iter().map(|(_, all)| all.len()).sum()
    }

    /// Those of which that is over.
    fn due(&mut self, before: Tick) -> Vec<Extent> {
        let due = self.later.extract_if(.., |(since, _)| *since < before);
        due.flat_map(|(_, all)| all).collect()
    }
}

impl Attached {
    /// The lock under which one domain at a time takes over what others have left.
    fn estates(&self) -> Result<Lock, ArenaError> {
        let name = format!("arena/{:016x}", self.front.number);
        Lock::renewed(&self.node, &name, ()).map_err(|error| match error {
            RegionError::Rack(error) => error.into(),
            RegionError::Access(error) => error.into(),
            RegionError::Alloc(error) => ArenaError::Alloc(error),
            RegionError::Lock(error) => error.into(),
            _ => ArenaError::NameTaken {
                number: self.front.number,
            },
        })
    }

    /// Where an object's bit is.
    fn bit(&self, extent: Extent) -> Option<(usize, u64)> {
        let nth = self.front.slab_of(extent.line)?;
        let within = (extent.line - self.first) % SLAB_LINES;
        let at = nth * BITS + within / 64;
        Some((at as usize, 1 << (within % 64)))
    }

    /// Says of one word which objects are free.
    fn store_bits(&self, estate: &mut Estate, at: usize, word: u64) {
        if let Some(bits) = estate.bits.get_mut(at)
            && *bits != word
        {
            *bits = word;
            let first = self.front.bits(self.me, 0) as usize;
            self.lines.store_through(first + at, word);
        }
    }

    /// An object is free.
    fn give(&self, estate: &mut Estate, extent: Extent) {
        if let Some((at, bit)) = self.bit(extent) {
            let word = estate.bits[at] | bit;
            self.store_bits(estate, at, word);
            estate.free.give(extent);
        }
    }

    /// What was freed and stamped before this, by this domain or by one that it has taken over
    /// from, is free. How many objects that are.
    pub fn give_due(&self, storing: &mut Storing, before: Tick) -> usize {
        let freed = storing.rings[Queue::Freed as usize].due(before, &self.board());
        let later = storing.estate.due(before);
        for extent in freed.iter().chain(&later) {
            self.give(&mut storing.estate, *extent);
        }
        // It is among the free ones before it is forgotten: a process may end in between.
        storing.rings[Queue::Freed as usize].forget(freed.len(), &mut self.board());
        freed.len() + later.len()
    }

    /// An object is about to be led to.
    pub fn claim(&self, extent: Extent) {
        if let Some((at, bit)) = self.bit(extent).filter(|_| extent.lines > 0) {
            let estate = &mut self.storing.lock().whole().estate;
            let word = estate.bits[at] & !bit;
            self.store_bits(estate, at, word);
        }
    }

    /// Room for an object of so many lines, of what is free, or of a new slab.
    pub fn take_here(&self, estate: &mut Estate, lines: u64) -> Option<Extent> {
        if let Some(extent) = estate.free.take(lines) {
            return Some(extent);
        }
        while estate.next_slab < self.front.slabs {
            let nth = u64::from(self.me) * self.front.slabs + estate.next_slab;
            estate.next_slab += 1;
            // What an earlier life has given out may still be read.
            if self.class_of(nth as usize).is_none() {
                self.begin_slab(estate, nth, lines);
                return estate.free.take(lines);
            }
        }
        None
    }

    /// A slab is used for objects of so many lines from now on. Its class is first: bits of a slab
    /// without one are nobody's.
    fn begin_slab(&self, estate: &mut Estate, nth: u64, lines: u64) {
        let lines = u64::from(Extents::rounded(lines).unwrap_or(1));
        let class = lines.ilog2() as u8 + 1;
        let word = self.front.class(self.me, nth) as usize;
        self.lines.store_through(word, class.into());
        self.classes[nth as usize].store(class, Relaxed);
        let (first, at) = (self.front.bits(self.me, nth), (nth * BITS) as usize);
        for (within, bits) in (0..BITS).zip(&mut estate.bits[at..]) {
            *bits = firsts(within, lines);
            self.lines.store((first + within) as usize, *bits);
        }
        self.lines.write_back(Extent {
            line: first / WORDS as u64,
            lines: (BITS / WORDS as u64) as u16,
        });
        estate.free.add_slab(self.first + nth * SLAB_LINES, lines);
    }

    /// What this node's life before has left, and has freed, is this one's, unless another domain
    /// has taken it over. `f` makes this life out of that one. Alone, where there was one.
    pub fn inherit(
        &mut self,
        f: impl FnOnce(&mut Self) -> Result<(), ArenaError>,
    ) -> Result<(), ArenaError> {
        let before = self.board().row(self.me).incarnation;
        if before == 0 {
            return f(self);
        }
        let lock = self.estates()?;
        let _alone = lock.lock()?;
        let freed = self.freed_by(self.me);
        f(self)?;
        let mut storing = self.storing.lock().whole();
        let is_taken = self.is_taken(self.me, before);
        self.copy_bits(&mut storing.estate, self.me, is_taken);
        if !is_taken {
            self.keep_for_later(&mut storing, freed);
        }
        Ok(())
    }

    /// Takes over what domains have left that have ended, until it has room for an object of so
    /// many lines.
    pub fn take_over(&self, lines: u64) -> Result<Gain, ArenaError> {
        let left = self.left();
        if left != Gain::Some {
            return Ok(left);
        }
        let lock = self.estates()?;
        let _alone = lock.lock()?;
        let mut storing = self.storing.lock().whole();
        if self.over.load(SeqCst) {
            return Err(ArenaError::Expelled);
        }
        let ended = self.ended(&storing);
        for (domain, row) in &ended {
            if self.is_taken(*domain, row.incarnation) {
                continue;
            }
            let word = self.front.taken(self.me, *domain) as usize;
            self.lines.store_through(word, row.incarnation.into());
            self.copy_bits(&mut storing.estate, *domain, false);
            let freed = self.freed_by(*domain);
            self.keep_for_later(&mut storing, freed);
            self.counters.taken_over.fetch_add(1, Relaxed);
            if storing.estate.free.has(lines) {
                return Ok(Gain::Some);
            }
        }
        for (domain, _) in ended {
            let first = u64::from(domain) * self.front.slabs;
            let mut slabs = first..first + self.front.slabs;
            if let Some(nth) = slabs.find(|nth| self.class_of(*nth as usize).is_none()) {
                self.begin_slab(&mut storing.estate, nth, lines);
                return Ok(Gain::Some);
            }
        }
        Ok(match storing.estate.waiting() {
            0 => Gain::Nothing,
            _ => Gain::Soon,
        })
    }

    /// Whether a domain has ended, and may have left something.
    fn left(&self) -> Gain {
        let storing = self.storing.lock().whole();
        let left = |(domain, row): &(u8, DomainRow)| {
            let first = u64::from(*domain) * self.front.slabs;
            !self.is_taken(*domain, row.incarnation)
                || self
                    .class_of((first + self.front.slabs - 1) as usize)
                    .is_none()
        };
        if self.ended(&storing).iter().any(left) {
            return Gain::Some;
        }
        let dies = |(domain, row): (u8, DomainRow)| {
            row.presence != Presence::Absent
                && !self.lives(domain, row.incarnation)
                && !storing.roll.has_ended(domain, row.incarnation, self.now())
        };
        match self.others().any(dies) {
            true => Gain::Soon,
            false => Gain::Nothing,
        }
    }

    fn others(&self) -> impl Iterator<Item = (u8, DomainRow)> {
        let others = (0..self.front.board.domains).filter(|domain| *domain != self.me);
        others.map(|domain| (domain, self.board().row(domain)))
    }

    /// Domains that were there and have left, or are waited for by nobody.
    fn ended(&self, storing: &Storing) -> Vec<(u8, DomainRow)> {
        let now = self.now();
        let has_ended = |(domain, row): &(u8, DomainRow)| match row.presence {
            Presence::Absent => row.incarnation != 0,
            _ => {
                !self.lives(*domain, row.incarnation)
                    && storing.roll.has_ended(*domain, row.incarnation, now)
            }
        };
        self.others().filter(has_ended).collect()
    }

    /// Whether some domain has taken over from a life of another one.
    fn is_taken(&self, domain: u8, incarnation: u32) -> bool {
        (0..self.front.board.domains).any(|by| {
            let word = self.front.taken(by, domain) as usize;
            self.lines.load_past(word) >= incarnation.into()
        })
    }

    /// What a domain has freed and not forgotten, as its ring stands.
    fn freed_by(&self, domain: u8) -> Vec<Extent> {
        let board = self.board();
        let (tail, head) = board.ends(domain, Queue::Freed);
        let entries = (tail..head).map(|nth| board.entry(domain, Queue::Freed, nth).extent);
        // Of a domain that writes nonsense no more is believed than can be.
        let sound = |extent: &Extent| self.object(extent.line, 0) == Ok(*extent);
        entries.filter(sound).collect()
    }

    /// They are freed anew, but those that are free already: in this domain's ring, as far as that
    /// has room, since it may die before all have quiesced.
    fn keep_for_later(&self, storing: &mut Storing, mut freed: Vec<Extent>) {
        let bits = &storing.estate.bits;
        let is_free = |extent: &Extent| {
            let bit = self.bit(*extent);
            bit.is_none_or(|(at, bit)| bits[at] & bit != 0)
        };
        freed.retain(|extent| !is_free(extent));
        freed.sort_unstable();
        freed.dedup();
        let (ring, mut board) = (&mut storing.rings[Queue::Freed as usize], self.board());
        while let Some(extent) = freed.last() {
            let Ok(nth) = ring.push(*extent, &mut board) else {
                break;
            };
            ring.stamp((nth, *extent), self.now(), &mut board);
            freed.pop();
        }
        if !freed.is_empty() {
            storing.estate.later.push((self.now(), freed));
        }
    }

    /// What a domain's bits say is free is this one's. `none`: nothing is, whatever they say.
    fn copy_bits(&self, estate: &mut Estate, of: u8, none: bool) {
        let used = (0..self.front.all_slabs()).filter_map(|nth| {
            let class = self.class_of(nth as usize)?;
            Some((nth, 1u64 << (class - 1)))
        });
        for (nth, lines) in used {
            let first = self.front.bits(of, nth);
            self.lines.drop_one(Extent {
                line: first / WORDS as u64,
                lines: (BITS / WORDS as u64) as u16,
            });
            for within in 0..BITS {
                let is = self.lines.load((first + within) as usize);
                let bits = if none { 0 } else { is & firsts(within, lines) };
                let at = (nth * BITS + within) as usize;
                let was = estate.bits[at];
                if of == self.me {
                    // What this process knows of its own is nothing yet.
                    estate.bits[at] = is;
                }
                self.store_bits(estate, at, was | bits);
                let begin = self.first + nth * SLAB_LINES + within * 64;
                let free = (0..64).filter(|bit| bits & !was & 1 << bit != 0);
                for line in free.map(|bit| begin + bit) {
                    let lines = lines as u16;
                    estate.free.give(Extent { line, lines });
                }
            }
        }
    }
}

/// Bits of a word of a slab's that are first lines of objects of so many lines.
fn firsts(within: u64, lines: u64) -> u64 {
    let is_first = |bit: &u64| (within * 64 + bit).is_multiple_of(lines);
    (0..64)
        .filter(is_first)
        .fold(0, |bits, bit| bits | 1 << bit)
}

const _: () = assert!(BITS * 64 == SLAB_LINES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_bit_of_its_first_line() {
        for class in 0..11 {
            let lines = 1 << class;
            let count: u32 = (0..BITS)
                .map(|within| firsts(within, lines).count_ones())
                .sum();
            assert_eq!(u64::from(count), SLAB_LINES / lines);
            assert_eq!(firsts(0, lines) & 1, 1);
        }
        assert_eq!((firsts(1, 128), firsts(2, 128)), (0, 1));
    }
}
