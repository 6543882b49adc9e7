//! What was promised of transactions, and whether it holds.

use crate::driver::Complaint;
use crate::sabre::judge::Watch;
use crate::sabre::memory::ObjectPlace;
use crate::serial::{self, Deed};
use rackmem_proto::wire::{Copyset, NodeId, Tag};
use std::collections::{BTreeMap, BTreeSet};

const ORDER: &str = "there is one order of all transactions";
const ALL: &str = "a transaction takes effect with all of its writes, or with none";
const TOLD: &str = "what is said of a transaction is so";
const RISE: &str = "versions rise, and stay where nothing has changed";
const WHERE: &str = "SABRes §7";

/// Something that a thread does: a transaction, each attempt on its own, or one read or write.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Attempt {
    /// Under which versions it has read places.
    reads: Vec<(Tag, u64)>,
    /// Places that it is to write.
    writes: Vec<Tag>,
    /// Whether it has taken effect, as far as its thread has been told.
    told: Option<bool>,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Judge {
    /// By number, those that have taken effect or may.
    attempts: BTreeMap<u16, Attempt>,
    /// Those that never do, as was said.
    never: BTreeSet<u16>,
    /// Who began, and who ended: those between two changes of that overlap alike.
    moments: Vec<(bool, Vec<u16>)>,
    /// By place: versions with the attempts that have made them.
    made: BTreeMap<Tag, Vec<(u64, u16)>>,
    last: BTreeMap<Tag, u64>,
    /// Nodes that are dead.
    pub dead: Copyset,
    broken: Option<(&'static str, String)>,
}

impl Watch for Judge {
    fn changed(&mut self, _: Tag) {}

    fn put(&mut self, _: u16) {}

    fn released(&mut self, place: Tag, _: u64, now: &ObjectPlace) {
        let last = self.last.insert(place, now.version).unwrap_or(0);
        let [first, second] = now.value;
        if first != second || now.version & 1 == 1 || now.version < last {
            let what = format!("{place:x?} has {now:?} after version {last}");
            return self.complain(RISE, what);
        }
        let made = self.made.entry(place).or_default();
        let before = made.last().map_or(0, |(_, write)| *write);
        if now.version == last {
            if before != first {
                self.complain(RISE, format!("{place:x?} has changed under version {last}"));
            }
            return;
        }
        made.push((now.version, first));
        if self.never.contains(&first) {
            let what = format!("{first} takes effect at {place:x?} and was said never to");
            self.complain(TOLD, what);
        }
    }
}

impl Judge {
    fn complain(&mut self, promise: &'static str, what: String) {
        self.broken.get_or_insert((promise, what));
    }

    /// What was broken.
    pub fn verdict(&mut self) -> Result<(), Complaint> {
        match self.broken.take() {
            Some((promise, what)) => Err((promise, WHERE, what)),
            None => Ok(()),
        }
    }

    fn moment(&mut self, ends: bool, number: u16) {
        match self.moments.last_mut().filter(|last| last.0 == ends) {
            Some((_, numbers)) => {
                numbers.push(number);
                numbers.sort_unstable();
            }
            None => self.moments.push((ends, vec![number])),
        }
    }

    /// An attempt begins that is to write these places.
    pub fn begin(&mut self, number: u16, writes: Vec<Tag>) {
        let attempt = Attempt {
            reads: Vec::new(),
            writes,
            told: None,
        };
        if self.attempts.insert(number, attempt).is_none() {
            self.moment(false, number);
        }
    }

    /// It has read a place.
    pub fn read(&mut self, number: u16, place: Tag, version: u64) {
        if let Some(attempt) = self.attempts.get_mut(&number) {
            attempt.reads.push((place, version));
        }
    }

    /// What its thread is told: that it has taken effect, that it never does, or nothing.
    pub fn told(&mut self, number: u16, said: Option<bool>) {
        let Some(attempt) = self.attempts.get_mut(&number) else {
            return;
        };
        attempt.told = said;
        let writes = attempt.writes.clone();
        let made = writes.iter().filter(|place| self.has_made(number, **place));
        let (count, lives) = (made.count(), self.living(&writes));
        let missing = lives.iter().any(|place| !self.has_made(number, *place));
        if said == Some(true) && missing || said == Some(false) && count > 0 {
            let what = format!("{number} was said {said:?}, and has made {count} of {writes:x?}");
            self.complain(TOLD, what);
        }
        match said {
            Some(true) => {
                self.moment(true, number);
                self.order();
            }
            Some(false) => self.forget(number),
            None => {}
        }
    }

    /// Nothing of it is seen by anybody.
    fn forget(&mut self, number: u16) {
        self.attempts.remove(&number);
        self.never.insert(number);
        for (ends, mut numbers) in std::mem::take(&mut self.moments) {
            numbers.retain(|other| *other != number);
            numbers
                .into_iter()
                .for_each(|other| self.moment(ends, other));
        }
    }

    fn living(&self, places: &[Tag]) -> Vec<Tag> {
        let lives = |place: &&Tag| !self.dead.contains(place.home().0 as NodeId);
        places.iter().filter(lives).copied().collect()
    }

    fn has_made(&self, number: u16, place: Tag) -> bool {
        let made = self.made.get(&place);
        made.is_some_and(|made| made.iter().any(|(_, by)| *by == number))
    }

    /// Looks for an order of all that has taken effect.
    fn order(&mut self) {
        let at = |number: u16, ends: bool| {
            let mut moments = self.moments.iter();
            let at = moments.position(|(is, of)| *is == ends && of.contains(&number));
            at.map(|at| at as u64)
        };
        let (mut numbers, mut deeds) = (Vec::new(), Vec::new());
        for (number, attempt) in &self.attempts {
            let made = |(place, made): (&Tag, &Vec<(u64, u16)>)| {
                let found = made.iter().filter(|(_, by)| by == number);
                found
                    .map(|(version, _)| (*place, *version))
                    .collect::<Vec<_>>()
            };
            let writes: Vec<(Tag, u64)> = self.made.iter().flat_map(made).collect();
            let counts = match attempt.writes.is_empty() {
                true => attempt.told == Some(true),
                false => !writes.is_empty(),
            };
            if counts {
                numbers.push(*number);
                deeds.push(Deed {
                    invoke: at(*number, false).unwrap_or(0),
                    returned: at(*number, true),
                    reads: attempt.reads.clone(),
                    writes,
                });
            }
        }
        if let Err(disorder) = serial::check(&deeds) {
            self.complain(ORDER, format!("{disorder:?} of {numbers:?}: {deeds:x?}"));
        }
    }

    /// Everything has ended.
    pub fn over(&self) -> Result<(), Complaint> {
        for (number, attempt) in &self.attempts {
            let some = attempt
                .writes
                .iter()
                .any(|place| self.has_made(*number, *place));
            let lives = self.living(&attempt.writes);
            let missing = lives.iter().find(|place| !self.has_made(*number, **place));
            if let (true, Some(place)) = (some, missing) {
                let what = format!("{number} has not taken effect at {place:x?}, but elsewhere");
                return Err((ALL, WHERE, what));
            }
        }
        let mut last = self.clone();
        last.order();
        last.verdict()
    }
}
