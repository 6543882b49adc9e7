//! What of a home's memory for objects is given out.
//!
//! Memory is slabs of 64 KiB. A region may have so many of them, wherever they are. A slab gets the
//! class of the first object that is put there, and keeps it for as long as its home lives: that
//! is what makes a late reader harmless (see [`super::layout`]). When a region is removed,
//! its slabs wait for other regions that want objects of their class.
//!
//! A region is named by an address of its home's memory that no other region of this life of the
//! home has had: the n-th one by the n-th line.

use super::layout::{HEADER, LINE, SLAB, class_bytes, class_of};
use crate::heap::slab::Slab;
use crate::wire::{Contract, HomeId, Reason, Tag};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Where an object is, and what fits there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spot {
    /// Its address.
    pub tag: Tag,
    /// The class of its slab.
    pub class: u8,
}

impl Spot {
    /// Bytes that it has room for.
    pub fn room(&self) -> u32 {
        class_bytes(self.class).map_or(0, |bytes| bytes - HEADER)
    }
}

/// An object's place that has just been given out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Given {
    /// Where.
    pub spot: Spot,
    /// Its slab had no class before.
    pub fresh: bool,
}

#[derive(Clone, Hash, Debug)]
struct Region {
    /// Slabs that it may have, and those that it has.
    quota: u32,
    slabs: Vec<u32>,
    /// By class, those with room.
    partial: BTreeMap<u8, Vec<u32>>,
    /// It is being removed.
    ends: bool,
}

#[derive(Clone, Hash, Debug)]
struct Slot {
    class: u8,
    objects: Slab,
    /// The region that has it.
    region: Option<u64>,
    /// Places in it whose generations are used up.
    retired: Vec<u64>,
}

/// See the module.
#[derive(Clone, Hash, Debug)]
pub struct Book {
    home: HomeId,
    /// Where memory begins: earlier lives of the home had what is below.
    base: u64,
    limit: u32,
    /// By number; the next one has this.
    regions: BTreeMap<u64, Region>,
    next: u64,
    /// Slabs that regions may have together.
    reserved: u32,
    /// Slabs that have a class: all before a certain one.
    slabs: BTreeMap<u32, Slot>,
    /// By class, those that no region has.
    spare: BTreeMap<u8, Vec<u32>>,
    live: u64,
}

impl Book {
    /// Of a home with room for so many slabs, from `base` bytes on.
    pub fn new(home: HomeId, base: u64, limit: u32) -> Self {
        Book {
            home,
            base,
            limit,
            regions: BTreeMap::new(),
            next: 0,
            reserved: 0,
            slabs: BTreeMap::new(),
            spare: BTreeMap::new(),
            live: 0,
        }
    }

    /// Objects that are given out.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Slabs that have a class.
    pub fn slabs(&self) -> u32 {
        self.slabs.len() as u32
    }

    fn at(&self, offset: u64) -> Tag {
        Tag(self.home.start().0 + self.base + offset).under(Contract::Object)
    }

    /// The number of the region that this address names.
    fn region_of(&self, tag: Tag) -> Result<u64, Reason> {
        let (slab, within) = self.slab_of(tag)?;
        let offset = u64::from(slab) * SLAB + within;
        let number = offset / u64::from(LINE);
        let known = offset.is_multiple_of(LINE.into()) && self.regions.contains_key(&number);
        known.then_some(number).ok_or(Reason::NoMemory)
    }

    /// The slab that an address is in, and how far.
    fn slab_of(&self, tag: Tag) -> Result<(u32, u64), Reason> {
        if !tag.is_under(Contract::Object) || tag.home() != self.home {
            return Err(Reason::Refused);
        }
        let offset = tag.offset().checked_sub(self.base).ok_or(Reason::Lost)?;
        let slab = u32::try_from(offset / SLAB).ok();
        let slab = slab.filter(|slab| *slab < self.limit);
        Ok((slab.ok_or(Reason::NoMemory)?, offset % SLAB))
    }

    /// A region of so many bytes; what names it.
    pub fn reserve(&mut self, bytes: u64) -> Result<Tag, Reason> {
        let quota = u32::try_from(bytes.div_ceil(SLAB).max(1)).ok();
        let reserved = quota.and_then(|quota| self.reserved.checked_add(quota));
        let reserved = reserved.filter(|all| *all <= self.limit);
        let (quota, reserved) = quota.zip(reserved).ok_or(Reason::Full)?;
        let offset = self.next * u64::from(LINE);
        if offset >= u64::from(self.limit) * SLAB {
            return Err(Reason::Full);
        }
        let region = Region {
            quota,
            slabs: Vec::new(),
            partial: BTreeMap::new(),
            ends: false,
        };
        self.regions.insert(self.next, region);
        (self.reserved, self.next) = (reserved, self.next + 1);
        Ok(self.at(offset))
    }

    /// A place for an object of so many bytes in the region of this name.
    pub fn give(&mut self, region: Tag, len: u32) -> Result<Given, Reason> {
        let number = self.region_of(region)?;
        let class = class_of(len).ok_or(Reason::Refused)?;
        let bytes = u64::from(class_bytes(class).unwrap_or(SLAB as u32));
        let region = self.regions.get_mut(&number).ok_or(Reason::NoMemory)?;
        if region.ends {
            return Err(Reason::NoMemory);
        }
        let known = region.partial.get(&class).and_then(|slabs| slabs.last());
        let (slab, fresh) = match known {
            Some(slab) => (*slab, false),
            None => {
                let room = region.slabs.len() < region.quota as usize;
                let spare = self.spare.get_mut(&class).filter(|_| room);
                let spare = spare.and_then(Vec::pop);
                let fresh = self.slabs.len() as u32;
                let slab = match spare {
                    Some(slab) => slab,
                    None if room && fresh < self.limit => fresh,
                    None => return Err(Reason::Full),
                };
                region.slabs.push(slab);
                region.partial.entry(class).or_default().push(slab);
                (slab, spare.is_none())
            }
        };
        let new = || Slot {
            class,
            objects: Slab::new(SLAB, bytes, true),
            region: None,
            retired: Vec::new(),
        };
        let slot = self.slabs.entry(slab).or_insert_with(new);
        slot.region = Some(number);
        let (nth, ..) = slot.objects.take(1).ok_or(Reason::Full)?;
        if slot.objects.is_full()
            && let Some(slabs) = region.partial.get_mut(&class)
        {
            slabs.retain(|other| *other != slab);
        }
        self.live += 1;
        let tag = self.at(u64::from(slab) * SLAB + u64::from(nth) * bytes);
        Ok(Given {
            spot: Spot { tag, class },
            fresh,
        })
    }

    /// There is no memory for the slab that the last object was put in, and was fresh.
    pub fn close_slab(&mut self, spot: Spot) {
        let Ok((slab, _)) = self.slab_of(spot.tag) else {
            return;
        };
        if slab + 1 != self.slabs.len() as u32 {
            return;
        }
        let Some(slot) = self.slabs.remove(&slab) else {
            return;
        };
        self.live -= 1;
        let region = slot.region.and_then(|number| self.regions.get_mut(&number));
        if let Some(region) = region {
            region.slabs.retain(|other| *other != slab);
            if let Some(slabs) = region.partial.get_mut(&spot.class) {
                slabs.retain(|other| *other != slab);
            }
        }
    }

    /// A region is to be removed: nothing is put there any more. Some of its objects, so many at
    /// most, which are to be freed; none: it is no more, and its slabs are others'.
    pub fn end(&mut self, region: Tag, most: usize) -> Result<Vec<Spot>, Reason> {
        let number = self.region_of(region)?;
        let region = self.regions.get_mut(&number).ok_or(Reason::NoMemory)?;
        region.ends = true;
        let mut objects = Vec::new();
        for slab in &region.slabs {
            let Some(slot) = self.slabs.get(slab) else {
                continue;
            };
            let first = self.base + u64::from(*slab) * SLAB;
            let spot = |within: u64| Spot {
                tag: Tag(self.home.start().0 + first + within).under(Contract::Object),
                class: slot.class,
            };
            let left = most - objects.len();
            let there = |within: &u64| !slot.retired.contains(within);
            let given = slot.objects.given().filter(there);
            objects.extend(given.take(left).map(spot));
        }
        if !objects.is_empty() {
            return Ok(objects);
        }
        if let Some(region) = self.regions.remove(&number) {
            self.reserved -= region.quota;
            for slab in region.slabs {
                if let Some(slot) = self.slabs.get_mut(&slab) {
                    slot.region = None;
                    self.spare.entry(slot.class).or_default().push(slab);
                }
            }
        }
        Ok(objects)
    }

    /// The place of an object, given out or not.
    pub fn spot(&self, tag: Tag) -> Result<Spot, Reason> {
        let (slab, within) = self.slab_of(tag)?;
        let slot = self.slabs.get(&slab).ok_or(Reason::NoMemory)?;
        let (bytes, class) = (slot.objects.class, slot.class);
        let fits = within.is_multiple_of(bytes) && within + bytes <= SLAB;
        match fits {
            true => Ok(Spot { tag, class }),
            false => Err(Reason::NoMemory),
        }
    }

    /// The object is no more, and no other one is ever put there.
    pub fn retire(&mut self, spot: Spot) {
        let Ok((slab, within)) = self.slab_of(spot.tag) else {
            return;
        };
        if let Some(slot) = self.slabs.get_mut(&slab) {
            slot.retired.push(within);
            self.live -= 1;
        }
    }

    /// The object is no more, and another one may be put there.
    pub fn take_back(&mut self, spot: Spot) {
        let Ok((slab, within)) = self.slab_of(spot.tag) else {
            return;
        };
        let Some(slot) = self.slabs.get_mut(&slab) else {
            return;
        };
        let was_full = slot.objects.is_full();
        if !slot.objects.give(within) {
            return;
        }
        self.live -= 1;
        let region = slot.region.and_then(|number| self.regions.get_mut(&number));
        if let Some(region) = region.filter(|_| was_full) {
            region.partial.entry(slot.class).or_default().push(slab);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: HomeId = HomeId::of(2);

    fn book(limit: u32) -> Book {
        Book::new(HOME, 2 * SLAB, limit)
    }

    #[test]
    fn objects_of_one_size_share_slabs_and_others_do_not() {
        let mut book = book(4);
        let region = book.reserve(3 * SLAB - 1).unwrap();
        assert_eq!(region.offset(), 2 * SLAB);
        let first = book.give(region, 100).unwrap();
        assert!(first.fresh);
        assert_eq!((first.spot.tag, first.spot.room()), (region, 112));
        let second = book.give(region, 105).unwrap();
        assert!(!second.fresh);
        assert_eq!(second.spot.tag.0, region.0 + 128);
        let large = book.give(region, 5000).unwrap();
        assert!(large.fresh);
        assert_eq!(large.spot.tag.0, region.0 + SLAB);
        assert_eq!((book.live(), book.slabs()), (3, 2));
        assert_eq!(book.give(region, 65_521), Err(Reason::Refused));
        // One more slab, and no more of another size.
        book.give(region, 65_520).unwrap();
        assert_eq!(book.give(region, 1000), Err(Reason::Full));
        assert_eq!(book.reserve(2 * SLAB), Err(Reason::Full));
        book.reserve(1).unwrap();
    }

    #[test]
    fn a_full_slab_has_room_again_when_one_is_taken_back() {
        let mut book = book(1);
        let region = book.reserve(SLAB).unwrap();
        let all: Vec<Spot> = (0..1024)
            .map(|_| book.give(region, 48).unwrap().spot)
            .collect();
        assert_eq!(book.give(region, 48), Err(Reason::Full));
        book.take_back(all[77]);
        // Twice is nothing.
        book.take_back(all[77]);
        assert_eq!(book.live(), 1023);
        assert_eq!(book.give(region, 48).unwrap().spot, all[77]);
        assert_eq!(book.give(region, 48), Err(Reason::Full));
    }

    #[test]
    fn a_slab_without_memory_is_none() {
        let mut book = book(2);
        let region = book.reserve(2 * SLAB).unwrap();
        let before = book.give(region, 48).unwrap();
        let given = book.give(region, 65_520).unwrap();
        assert!(given.fresh);
        book.close_slab(given.spot);
        assert_eq!((book.live(), book.slabs()), (1, 1));
        assert_eq!(book.spot(given.spot.tag), Err(Reason::NoMemory));
        assert!(book.give(region, 1000).unwrap().fresh);
        assert_eq!(book.spot(before.spot.tag), Ok(before.spot));
    }

    #[test]
    fn what_is_no_objects_place_is_told_apart() {
        let mut book = book(2);
        let region = book.reserve(2 * SLAB).unwrap();
        let spot = book.give(region, 20_000).unwrap().spot;
        let at = |bytes: u64| Tag(region.0 + bytes);
        assert_eq!(book.spot(region), Ok(spot));
        assert!(book.spot(at(20_480)).is_ok());
        for (tag, reason) in [
            (at(64), Reason::NoMemory),
            // What is left of the slab is no object's.
            (at(3 * 20_480), Reason::NoMemory),
            (at(SLAB), Reason::NoMemory),
            (at(2 * SLAB), Reason::NoMemory),
            (Tag(region.0 - SLAB), Reason::Lost),
            (region.under(Contract::Coherent), Reason::Refused),
            (Tag(region.0 ^ 1 << 48), Reason::Refused),
        ] {
            assert_eq!(book.spot(tag), Err(reason), "{tag:x?}");
        }
        assert_eq!(book.give(at(SLAB), 10), Err(Reason::NoMemory));
        assert_eq!(book.give(at(64), 10), Err(Reason::NoMemory));
        assert_eq!(book.give(at(1), 10), Err(Reason::NoMemory));
    }

    #[test]
    fn slabs_of_a_region_that_is_removed_keep_their_class() {
        let mut book = book(3);
        let first = book.reserve(2 * SLAB).unwrap();
        let small = book.give(first, 48).unwrap().spot;
        let large = book.give(first, 60_000).unwrap().spot;
        assert_eq!(book.reserve(2 * SLAB), Err(Reason::Full));
        // So many at a time, until there is none; meanwhile nothing new is put there.
        assert_eq!(book.end(first, 1), Ok(alloc::vec![small]));
        assert_eq!(book.give(first, 48), Err(Reason::NoMemory));
        assert_eq!(book.end(first, 9), Ok(alloc::vec![small, large]));
        book.take_back(large);
        assert_eq!(book.end(first, 9), Ok(alloc::vec![small]));
        book.take_back(small);
        assert_eq!(book.end(first, 9), Ok(Vec::new()));
        assert_eq!(book.end(first, 9), Err(Reason::NoMemory));
        assert_eq!(book.give(first, 48), Err(Reason::NoMemory));
        // Places are of the sizes that they were of, and the name is another.
        assert_eq!(book.spot(large.tag), Ok(large));
        let next = book.reserve(3 * SLAB).unwrap();
        assert_ne!(next, first);
        let again = book.give(next, 60_001).unwrap();
        assert_eq!((again.spot, again.fresh), (large, false));
        assert!(book.give(next, 1000).unwrap().fresh);
        // The slab of small ones is no other size's, and all others are used.
        assert_eq!(book.give(next, 5000), Err(Reason::Full));
        assert_eq!(book.give(next, 40).map(|given| given.spot), Ok(small));
        assert_eq!((book.live(), book.slabs()), (3, 3));
        // A place that can never be used again keeps nobody waiting.
        book.retire(small);
        for spot in book.end(next, 9).unwrap() {
            assert_ne!(spot, small);
            book.take_back(spot);
        }
        assert_eq!((book.end(next, 9), book.live()), (Ok(Vec::new()), 0));
        let last = book.reserve(SLAB).unwrap();
        assert_ne!(book.give(last, 48).unwrap().spot, small);
    }
}
