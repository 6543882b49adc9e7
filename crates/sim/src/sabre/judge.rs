//! What was promised, and whether it holds.

use super::memory::{ObjectPlace, Value};
use crate::driver::Complaint;
use rackmem_proto::sabre::Meta;
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;

const ONE_WRITE: &str = "a read is of one write";
const CURRENT: &str = "a read was current during it";
const ONCE: &str = "a write takes effect once";
const FOLLOWS: &str = "a conditional write follows its version";
const RISE: &str = "versions rise, and stay where nothing has changed";
const GONE: &str = "only what was freed is gone";
const WHERE: &str = "SABRes §3, §4";

/// An object: its place, and which of those that are there one after the other. The judge counts
/// them itself.
pub type Life = (Tag, u32);

/// A read under way: which writes were current since it began.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reading {
    object: Life,
    current: Vec<u16>,
}

/// What a judge is told of objects in memory.
pub trait Watch {
    /// A writer who is in has changed something of a place.
    fn changed(&mut self, place: Tag);
    /// A write is put in place.
    fn put(&mut self, write: u16);
    /// Writers may come in again.
    fn released(&mut self, place: Tag, before: u64, now: &ObjectPlace);
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Judge {
    /// By thread.
    reading: BTreeMap<usize, Reading>,
    /// How many objects of each place have been freed.
    freed: BTreeMap<Tag, u32>,
    /// What is current of each place: which object is there, and which write it is of.
    current: BTreeMap<Tag, (u32, u16)>,
    /// The last even version of each place.
    last: BTreeMap<Tag, u64>,
    /// Places that a writer who is in has changed.
    dirty: Vec<Tag>,
    /// How often each write has taken effect.
    taken: BTreeMap<u16, u8>,
    /// The first promise that was broken in this step.
    broken: Option<(&'static str, String)>,
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

    /// Which of the objects that are there one after the other is in a place, or will be next.
    pub fn life_of(&self, place: Tag) -> u32 {
        self.freed.get(&place).copied().unwrap_or(0)
    }

    /// Whether a write has taken effect.
    pub fn has(&self, write: u16) -> bool {
        self.taken.contains_key(&write)
    }

    /// A thread begins to read.
    pub fn begin(&mut self, thread: usize, object: Life) {
        let mut reading = Reading {
            object,
            current: Vec::new(),
        };
        reading.see(&self.current);
        self.reading.insert(thread, reading);
    }

    /// It has read this.
    pub fn read(&mut self, thread: usize, value: Value) {
        let Some(reading) = self.reading.remove(&thread) else {
            return;
        };
        let [first, second] = value;
        if first != second {
            let what = format!("thread {thread} has read parts of writes {first} and {second}");
            self.complain(ONE_WRITE, what);
        } else if !reading.current.contains(&first) {
            let what = format!(
                "thread {thread} has read write {first}, and current were {:?}",
                reading.current
            );
            self.complain(CURRENT, what);
        }
    }

    /// It has been told why not, or waits no longer.
    pub fn not_read(&mut self, thread: usize) {
        self.reading.remove(&thread);
    }

    /// It was told that the object is gone.
    pub fn gone(&mut self, thread: usize, (place, life): Life) {
        let is = self.current.get(&place).map(|now| now.0);
        let held = self.dirty.contains(&place);
        if is == Some(life) && !held {
            self.complain(GONE, format!("thread {thread}, and it is there"));
        }
        self.reading.remove(&thread);
    }

    /// A write was acknowledged under a version; with `expected`, it was to follow that.
    pub fn written(&mut self, write: u16, version: u64, expected: u64) {
        if self.taken.get(&write) != Some(&1) {
            self.complain(
                ONCE,
                format!("write {write} was acknowledged and is not there"),
            );
        }
        if expected != 0 && version != expected + 2 {
            let what = format!("write {write} follows {}, not {expected}", version - 2);
            self.complain(FOLLOWS, what);
        }
    }

    /// It was said not to have been made.
    pub fn not_written(&mut self, write: u16) {
        if self.taken.contains_key(&write) {
            self.complain(ONCE, format!("write {write} was refused and is there"));
        }
    }
}

impl Watch for Judge {
    fn changed(&mut self, place: Tag) {
        if !self.dirty.contains(&place) {
            self.dirty.push(place);
        }
    }

    fn put(&mut self, write: u16) {
        let times = self.taken.entry(write).or_default();
        *times += 1;
        if *times > 1 {
            let what = format!("write {write} has taken effect {times} times");
            self.complain(ONCE, what);
        }
    }

    fn released(&mut self, place: Tag, before: u64, now: &ObjectPlace) {
        let changed = self.dirty.contains(&place);
        self.dirty.retain(|other| *other != place);
        let last = self.last.insert(place, now.version).unwrap_or(0);
        let rose = now.version > last.max(before);
        if changed != rose || now.version < last || now.version & 1 == 1 {
            let what = format!(
                "a place has version {} after {last}, and was {}changed",
                now.version,
                if changed { "" } else { "not " }
            );
            self.complain(RISE, what);
        }
        let [first, second] = now.value;
        if first != second {
            let what = format!("its halves are of writes {first} and {second}");
            self.complain(ONE_WRITE, what);
        }
        let meta = Meta::from_word(now.meta);
        let freed = self.freed.entry(place).or_default();
        if meta.live {
            self.current.insert(place, (*freed, first));
        } else if self.current.remove(&place).is_some() {
            *freed += 1;
        }
        for reading in self.reading.values_mut() {
            reading.see(&self.current);
        }
    }
}

impl Reading {
    fn see(&mut self, current: &BTreeMap<Tag, (u32, u16)>) {
        if let Some((life, write)) = current.get(&self.object.0)
            && *life == self.object.1
            && !self.current.contains(write)
        {
            self.current.push(*write);
            self.current.sort_unstable();
        }
    }
}
