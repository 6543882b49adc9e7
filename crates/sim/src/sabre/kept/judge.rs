//! What was promised, and whether it holds: by what a majority has of each object.

use super::super::memory::{ObjectPlace, Value, writes_of};
use crate::driver::Complaint;
use crate::sabre::judge::Watch;
use rackmem_proto::sabre::{Meta, Ref};
use rackmem_proto::wire::{HomeId, Tag};
use std::collections::BTreeMap;

const ONE_WRITE: &str = "a read is of one write";
const CURRENT: &str = "a read is of what a majority had during it";
const ONCE: &str = "a call takes effect once";
const FOLLOWS: &str = "a conditional write follows its version";
const RISE: &str = "versions rise with every change";
const GONE: &str = "only what was freed is gone";
const ONE_MOMENT: &str = "what a transaction has read is of one moment";
const PLACES: &str = "no place is given to two, and none is lost";
const WHERE: &str = "SABRes §3, §4";

/// What a majority has of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Had {
    version: u64,
    meta: Meta,
    write: u16,
}

impl Had {
    fn of(line: &[u8]) -> Self {
        let word = |at: usize| {
            let bytes = line.get(at..at + 8).and_then(|b| b.try_into().ok());
            u64::from_be_bytes(bytes.unwrap_or_default())
        };
        Had {
            version: word(0),
            meta: Meta::from_word(word(8)),
            write: writes_of(&line[32..]).next().unwrap_or(0),
        }
    }
}

/// A read under way: what was current since it began.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Reading {
    object: Ref,
    current: Vec<u16>,
    /// It was not there at some moment.
    gone: bool,
}

/// A transaction under way that reads all objects.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Audit {
    /// What was current at one time, by object, since it began.
    moments: Vec<Vec<u16>>,
    read: Vec<u16>,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Judge {
    /// By the object's place.
    has: BTreeMap<Tag, Had>,
    reading: BTreeMap<usize, Reading>,
    auditing: BTreeMap<usize, Audit>,
    /// How often each write has taken effect.
    taken: BTreeMap<u16, u8>,
    /// The versions of all objects just before.
    found: BTreeMap<u16, Vec<u64>>,
    /// Objects that threads have been given.
    given: Vec<Ref>,
    /// What the region had that was removed.
    was: Option<(HomeId, BTreeMap<Tag, Had>)>,
    /// The removal is over: nobody is answered by that region.
    over: bool,
    broken: Option<(&'static str, String)>,
}

/// Memory is judged by what is read of it.
pub struct Nobody;

impl Watch for Nobody {
    fn changed(&mut self, _: Tag) {}
    fn put(&mut self, _: u16) {}
    fn released(&mut self, _: Tag, _: u64, _: &ObjectPlace) {}
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

    /// A majority has this of the objects in these places, all of it from one moment on.
    pub fn stored(&mut self, lines: &[(Tag, Vec<u8>)]) {
        let new = |(object, line): &(Tag, Vec<u8>)| {
            let now = Had::of(line);
            // A line that says what a record has said before.
            (self.has.get(object) != Some(&now)).then_some((*object, now))
        };
        let new: Vec<(Tag, Had)> = lines.iter().filter_map(new).collect();
        if new.is_empty() {
            return;
        }
        let versions: Vec<u64> = self.has.values().map(|had| had.version).collect();
        let mut writes = Vec::new();
        for (object, now) in new {
            let before = self
                .has
                .insert(object, now)
                .map_or(0, |before| before.version);
            if now.version <= before {
                self.complain(RISE, format!("version {} follows {before}", now.version));
            }
            if now.meta.live && now.write != 0 {
                writes.push(now.write);
            }
        }
        writes.dedup();
        for write in writes {
            let times = self.taken.entry(write).or_default();
            *times += 1;
            let times = *times;
            if times > 1 {
                let what = format!("write {write} has taken effect {times} times");
                self.complain(ONCE, what);
            }
            self.found.insert(write, versions.clone());
        }
        let removed = self.was.as_ref().map(|(home, _)| *home);
        for reading in self.reading.values_mut() {
            if removed != Some(reading.object.tag.home()) {
                reading.see(&self.has);
            }
        }
        let now = self.now();
        for audit in self.auditing.values_mut() {
            audit.moments.push(now.clone());
        }
    }

    /// A transaction that writes was acknowledged, whose objects were to have these versions or
    /// any.
    pub fn together(&mut self, write: u16, expected: [Option<u64>; 2]) {
        let found = self.found.get(&write).cloned().unwrap_or_default();
        let mut pairs = found.iter().zip(expected);
        if pairs.any(|(was, expected)| expected.is_some_and(|version| version != *was)) {
            let what = format!("write {write} was to find {expected:?}, and there were {found:?}");
            self.complain(ONE_MOMENT, what);
        }
        self.written(write, 0, 0);
    }

    /// What there is now.
    fn now(&self) -> Vec<u16> {
        self.has.values().map(|had| had.write).collect()
    }

    /// A thread begins to read all objects as one step.
    pub fn begin_audit(&mut self, thread: usize) {
        let audit = Audit {
            moments: vec![self.now()],
            read: Vec::new(),
        };
        self.auditing.insert(thread, audit);
    }

    /// It was told that it has, or that it has not.
    pub fn audited(&mut self, thread: usize, committed: bool) {
        let Some(Audit { moments, read }) = self.auditing.remove(&thread) else {
            return;
        };
        if committed && !moments.contains(&read) {
            let what = format!("thread {thread} has read {read:?}, and there were {moments:?}");
            self.complain(ONE_MOMENT, what);
        }
    }

    /// A thread begins to read.
    pub fn begin(&mut self, thread: usize, object: Ref) {
        let of = |(home, _): &&(HomeId, _)| *home == object.tag.home();
        let was = self.was.as_ref().filter(of);
        let mut reading = Reading {
            object,
            current: Vec::new(),
            gone: was.is_some(),
        };
        if was.is_none() || !self.over {
            reading.see(was.map_or(&self.has, |(_, was)| was));
        }
        self.reading.insert(thread, reading);
    }

    /// The region is not there any more. What is read of it until the removal is over may be of
    /// before.
    pub fn removed(&mut self, home: HomeId) {
        let of = |tag: &Tag| tag.home() == home;
        let all = std::mem::take(&mut self.has).into_iter();
        let (was, has) = all.partition(|(tag, _)| of(tag));
        (self.was, self.has) = (Some((home, was)), has);
        let reading = self.reading.values_mut();
        let reading = reading.filter(|reading| of(&reading.object.tag));
        reading.for_each(|reading| reading.gone = true);
    }

    /// Whoever has removed it was told that its keeper knows.
    pub fn removal_is_over(&mut self) {
        self.over = true;
    }

    /// It has read this.
    pub fn read(&mut self, thread: usize, [first, second]: Value) {
        let Some(reading) = self.reading.remove(&thread) else {
            return;
        };
        if let Some(audit) = self.auditing.get_mut(&thread) {
            audit.read.push(first);
        }
        if first != second {
            let what = format!("thread {thread} has read parts of writes {first} and {second}");
            self.complain(ONE_WRITE, what);
        } else if !reading.current.contains(&first) {
            let current = &reading.current;
            let what = format!("thread {thread} has read write {first}, and had were {current:?}");
            self.complain(CURRENT, what);
        }
    }

    /// It was told that the object is gone.
    pub fn gone(&mut self, thread: usize, object: Ref) {
        let read = self.reading.remove(&thread);
        let was = read.is_none_or(|reading| reading.gone);
        let is = self.has.get(&object.tag);
        let there = is.is_some_and(|is| is.meta.live && is.meta.generation == object.generation);
        if there && !was {
            self.complain(GONE, format!("thread {thread}, and it is there"));
        }
    }

    /// It has not read, or waits no longer.
    pub fn not_read(&mut self, thread: usize) {
        self.reading.remove(&thread);
    }

    /// A write was acknowledged under a version; with `expected`, it was to follow that.
    pub fn written(&mut self, write: u16, version: u64, expected: u64) {
        if self.taken.get(&write) != Some(&1) {
            let what = format!("write {write} was acknowledged and is not there");
            self.complain(ONCE, what);
        }
        if expected != 0 && version != expected + 2 {
            let what = format!("write {write} has version {version} and was to follow {expected}");
            self.complain(FOLLOWS, what);
        }
    }

    /// It was said not to have been made. One that was made in a region that is removed since may
    /// be told the same.
    pub fn not_written(&mut self, write: u16) {
        if self.was.is_none() && self.taken.contains_key(&write) {
            self.complain(ONCE, format!("write {write} was refused and is there"));
        }
    }

    /// The same of a transaction. What it has written elsewhere says what has come of it.
    pub fn not_committed(&mut self, write: u16, elsewhere: bool) {
        match self.taken.contains_key(&write) && elsewhere {
            true => self.complain(ONCE, format!("write {write} was refused and is there")),
            false => self.not_written(write),
        }
    }

    /// A thread has been given an object.
    pub fn given(&mut self, object: Ref) {
        if self.given.contains(&object) {
            self.complain(PLACES, format!("{object:x?} was given to two"));
        }
        self.given.push(object);
        self.given.sort_unstable();
    }

    /// All has ended: what is there is what threads have been given and not freed.
    pub fn all_given(&self) -> Option<Complaint> {
        let live = self.has.iter().filter(|(_, had)| had.meta.live);
        let mut lost = live.filter(|(tag, had)| {
            let (tag, generation) = (**tag, had.meta.generation);
            !self.given.contains(&Ref { tag, generation })
        });
        let (tag, _) = lost.next()?;
        Some((
            PLACES,
            WHERE,
            format!("nobody was given the object at {:x}", tag.0),
        ))
    }
}

impl Reading {
    fn see(&mut self, has: &BTreeMap<Tag, Had>) {
        let there = has
            .get(&self.object.tag)
            .filter(|had| had.meta.live && had.meta.generation == self.object.generation);
        match there {
            None => self.gone = true,
            Some(had) if self.current.contains(&had.write) => {}
            Some(had) => {
                self.current.push(had.write);
                self.current.sort_unstable();
            }
        }
    }
}
