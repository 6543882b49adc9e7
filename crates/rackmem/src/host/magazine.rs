//! What a node keeps of another home's memory for its next allocations,
//! and what it has to give back: two short lists.
//!
//! Objects that the home has given to this node are *ready*. Objects that threads of this node have
//! freed wait to be given *back*, and none of them is used before the home has them in its books
//! again: only the home knows whether they were given out.

use rackmem_proto::heap::MAX_OBJECTS;
use rackmem_proto::wire::{Record, Tag};
use std::collections::BTreeMap;

/// Objects that wait to be given back before they are.
pub(crate) const BACK: usize = 32;
/// Bytes of either list; one object may be longer.
pub(crate) const BYTES: u64 = 64 << 10;
/// Objects that wait to be given back while their home does not answer.
pub(crate) const MOST_BACK: usize = 4096;
/// Objects that one call gives back.
const CALL: usize = 64;

/// Memory that a home has given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    pub addr: u64,
    /// Whether it is zeros for certain.
    pub zeros: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Magazine {
    /// The home's incarnation whose memory this is.
    incarnation: u32,
    ready: BTreeMap<u64, Vec<Object>>,
    ready_bytes: u64,
    back: Vec<(u64, u64)>,
    back_bytes: u64,
    /// Objects on the second list at which to try again, since the home did not answer.
    patient: usize,
    /// Used since this was asked last.
    used: bool,
    /// Whoever empties it while it is not used knows that there is something in it.
    pub noticed: bool,
}

/// What an object that is given back says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Back {
    /// It waits.
    Waits,
    /// It waits, and it is time to give back what does.
    Due,
    /// It is free already.
    Known,
    /// As many wait as can.
    Full,
}

impl Magazine {
    /// Memory of an incarnation of its home; that of another has died with it.
    pub fn of(&mut self, incarnation: u32) -> &mut Self {
        if self.incarnation != incarnation {
            *self = Magazine {
                incarnation,
                noticed: self.noticed,
                ..Magazine::default()
            };
        }
        self
    }

    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.back.is_empty()
    }

    /// An object that is ready.
    pub fn take(&mut self, class: u64) -> Option<Object> {
        let objects = self.ready.get_mut(&class)?;
        let object = objects.pop()?;
        if objects.is_empty() {
            self.ready.remove(&class);
        }
        self.ready_bytes -= class;
        self.used = true;
        Some(object)
    }

    /// Objects that the home has given: bit n is the one n times their size behind `first`.
    pub fn put(&mut self, first: Object, objects: u32, class: u64) {
        let more = class * u64::from(objects.count_ones());
        if more != 0 && self.ready_bytes + more > BYTES {
            self.unready();
        }
        let objects = (0..u64::from(MAX_OBJECTS)).filter(|nth| objects >> nth & 1 == 1);
        let object = |nth| Object {
            addr: first.addr + nth * class,
            ..first
        };
        let mut objects = objects.map(object).rev().peekable();
        if objects.peek().is_some() {
            self.ready.entry(class).or_default().extend(objects);
        }
        self.ready_bytes += more;
        self.used = true;
    }

    /// Nothing stays ready: all of it goes back.
    pub fn unready(&mut self) {
        for (class, objects) in std::mem::take(&mut self.ready) {
            self.back
                .extend(objects.iter().map(|object| (object.addr, class)));
        }
        self.back_bytes += std::mem::take(&mut self.ready_bytes);
    }

    /// An object is not used any more.
    pub fn give_back(&mut self, object: u64, class: u64) -> Back {
        let ready = self.ready.get(&class);
        let known = self.back.contains(&(object, class))
            || ready.is_some_and(|ready| ready.iter().any(|known| known.addr == object));
        if known {
            return Back::Known;
        }
        if self.back.len() >= MOST_BACK {
            return Back::Full;
        }
        self.back.push((object, class));
        self.back_bytes += class;
        self.used = true;
        let due = match self.patient {
            0 => self.back.len() >= BACK || self.back_bytes > BYTES,
            patient => self.back.len() >= patient,
        };
        if due { Back::Due } else { Back::Waits }
    }

    /// The next objects that go back in one call.
    pub fn batch(&mut self) -> Vec<Record> {
        let from = self.back.len().saturating_sub(CALL);
        let batch = self.back.drain(from..).map(|(object, class)| Record {
            tag: Tag(object),
            word: class,
        });
        let batch: Vec<Record> = batch.collect();
        self.back_bytes -= batch.iter().map(|object| object.word).sum::<u64>();
        batch
    }

    /// The home has answered, or not: then this is not asked of threads again for every object.
    pub fn answered(&mut self, yes: bool) {
        self.patient = match yes {
            true => 0,
            false => (self.back.len() + BACK).min(MOST_BACK),
        };
    }

    /// Whether it was used since this was asked last.
    pub fn was_used(&mut self) -> bool {
        std::mem::take(&mut self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_to_go_back_is_bounded_and_not_used_again() {
        let mut magazine = Magazine::default();
        let mut due = 0;
        for nth in 0..1000 {
            match magazine.give_back(nth * 16, 16) {
                Back::Due => {
                    due += 1;
                    assert!(magazine.back.len() <= BACK);
                    while !magazine.batch().is_empty() {}
                }
                Back::Waits => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(due, 1000 / BACK);
        assert_eq!(magazine.take(16), None);
        // By bytes, too, and one long object at once.
        assert_eq!(magazine.give_back(1 << 20, 16_384), Back::Waits);
        assert_eq!(magazine.give_back(2 << 20, 1 << 20), Back::Due);
        while !magazine.batch().is_empty() {}
        assert_eq!(magazine.back_bytes, 0);
    }

    fn at(addr: u64) -> Object {
        Object { addr, zeros: true }
    }

    #[test]
    fn what_is_free_here_already_is_known() {
        let mut magazine = Magazine::default();
        magazine.put(at(4096), 0b1011, 64);
        assert_eq!(magazine.take(64), Some(at(4096)), "the lowest first");
        assert_eq!(magazine.give_back(4096, 64), Back::Waits);
        assert_eq!(magazine.give_back(4096, 64), Back::Known);
        assert_eq!(magazine.give_back(4096 + 64, 64), Back::Known, "ready");
        assert_eq!(magazine.give_back(4096 + 128, 64), Back::Waits);
    }

    #[test]
    fn what_is_ready_is_bounded() {
        let mut magazine = Magazine::default();
        for nth in 0..100 {
            magazine.put(at(nth << 20), 0b1111, 4096);
            assert!(magazine.ready_bytes <= BYTES);
        }
        magazine.unready();
        let mut back = 0;
        loop {
            match magazine.batch().len() {
                0 => break,
                some => back += some,
            }
        }
        assert_eq!(back, 400);
        assert!(magazine.is_empty() && magazine.back_bytes == 0 && magazine.ready_bytes == 0);
    }

    #[test]
    fn a_home_that_does_not_answer_is_not_asked_for_every_object() {
        let mut magazine = Magazine::default();
        let mut asked = 0;
        for nth in 0.. {
            match magazine.give_back(nth * 16, 16) {
                Back::Waits => {}
                Back::Due => {
                    asked += 1;
                    magazine.answered(false);
                }
                Back::Full => break,
                Back::Known => panic!("none is freed twice"),
            }
        }
        assert_eq!(magazine.back.len(), MOST_BACK);
        assert!(asked <= MOST_BACK / BACK + 1, "{asked}");
        while !magazine.batch().is_empty() {}
        magazine.answered(true);
        assert_eq!(magazine.give_back(1 << 30, 16), Back::Waits);
    }

    #[test]
    fn memory_of_a_dead_incarnation_is_forgotten() {
        let mut magazine = Magazine::default();
        magazine.of(1).put(at(0), 0b11, 64);
        assert_eq!(magazine.of(1).take(64), Some(at(0)));
        assert_eq!(magazine.of(2).take(64), None);
        assert!(magazine.is_empty());
    }
}
