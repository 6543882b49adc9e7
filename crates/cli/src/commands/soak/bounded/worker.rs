//! A member whose threads read and write bounded memory and tell of it, until it is killed: one
//! thread the items of a region, one objects in an arena, in which each process has a cache of its
//! own.

use super::super::copies::line::{Line, What};
use super::super::locks::now;
use crate::failure::Result;
use crate::out;
use crate::stop::Stop;
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec, Domain};
use rackmem::locked::Mutex;
use rackmem::{AccessError, ArenaError, Contract, Node, RackError, RegionError, RegionSpec};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The region's name, and that of the arena's lock.
const REGION: &str = "soak/items";
const LOCK: &str = "soak/arena";
/// Items, and slots of the arena.
const PLACES: u64 = 6;
/// In a history, slots of the arena are the keys from here on.
pub const ARENA: u64 = 100;
/// Of so many operations one is a write.
const WRITE: u8 = 6;
/// Longest pause between two operations, in microseconds.
const BETWEEN: u64 = 4000;
/// Before another try.
const AGAIN: Duration = Duration::from_millis(20);
/// Bytes of the arena, and of each minute more: a killed process leaves its slabs behind.
const BYTES: u64 = 64 << 20;
const A_MINUTE: u64 = 16 << 20;
/// How many times the bound nodes go by where it is broken.
const BROKEN: u32 = 20;

/// An item: one number, over and over, so that a mixture of two writes shows.
type Item = [u64; 32];
/// An object in the arena: of several lines.
type Object = [u64; 40];

/// Items, an arena, and the lock of its writers.
type Memory = (Domain<Item>, Arena, Mutex<u64>);

/// What processes are to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundedWork {
    pub bound: Duration,
    /// Minutes that the run may take.
    pub minutes: u64,
    /// Nodes go by a much longer bound.
    pub old: bool,
    /// The arena's file.
    pub arena: PathBuf,
}

impl fmt::Display for BoundedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bound, minutes, old) = (self.bound.as_nanos(), self.minutes, u8::from(self.old));
        write!(f, "{bound}:{minutes}:{old}:{}", self.arena.display())
    }
}

impl FromStr for BoundedWork {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let wrong = || format!("`{text}` is not NANOSECONDS:MINUTES:OLD:ARENA");
        let parts: Vec<&str> = text.splitn(4, ':').collect();
        let [bound, minutes, old, arena] = parts[..] else {
            return Err(wrong());
        };
        Ok(BoundedWork {
            bound: Duration::from_nanos(bound.parse().map_err(|_| wrong())?),
            minutes: minutes.parse().map_err(|_| wrong())?,
            old: old == "1",
            arena: arena.into(),
        })
    }
}

impl BoundedWork {
    fn arena(&self) -> ArenaSpec {
        let bytes = BYTES + self.minutes * A_MINUTE;
        let spec = ArenaSpec::new(&self.arena, bytes).ring(64).emulated();
        spec.bound(self.bound)
    }
}

/// What came of an operation.
enum Did {
    Ended(What),
    /// It has failed, and the process goes on.
    Failed,
    /// The rack has gone on without this process.
    Over,
}

/// Reads and writes until told to stop.
pub fn work(node: &Node, work: &BoundedWork, stop: &Stop) -> Result<()> {
    let Some((items, arena, lock)) = find(node, work, stop)? else {
        return Ok(());
    };
    out::line(serde_json::json!({"bounded": work.bound.as_nanos() as u64}));
    std::thread::scope(|scope| {
        let of_items = scope.spawn(|| {
            take_turns(node, (0, 0), stop, |place, value| {
                item(&items, place as usize, value)
            })
        });
        let of_objects = scope.spawn(|| {
            take_turns(node, (1, ARENA), stop, |place, value| {
                object(&arena, &lock, place, value)
            })
        });
        // Both are waited for.
        let ended = [of_items, of_objects].map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.into_iter().collect()
    })
}

/// The region, the arena and its lock, once node 0 has made them. None when told to stop.
fn find(node: &Node, work: &BoundedWork, stop: &Stop) -> Result<Option<Memory>> {
    let bytes = PLACES as usize * size_of::<Item>();
    let spec = RegionSpec::new(REGION, bytes).contract(Contract::Bounded);
    let spec = spec.line(size_of::<Item>() as u32);
    let bound = work.bound * if work.old { BROKEN } else { 1 };
    while !stop.requested() {
        let region = match node.id() {
            0 => node.create_region(&spec),
            _ => node.open_region(&spec),
        };
        let region = match region {
            Ok(region) => region,
            Err(RegionError::Rack(error)) => return Err(error.into()),
            Err(_) => {
                std::thread::sleep(AGAIN);
                continue;
            }
        };
        // Its home is node 0, which makes it before there is an arena.
        let lock = match node.id() {
            0 => Some(Mutex::renewed(node, LOCK, 0)?),
            _ => None,
        };
        let arena = match node.id() {
            0 => Arena::create(node, &work.arena()),
            _ => Arena::open(node, &work.arena()),
        };
        let arena = match arena {
            Err(ArenaError::IsThere) => Arena::open(node, &work.arena()),
            arena => arena,
        };
        let arena = match arena {
            Ok(arena) => arena,
            // Node 0 has not made it yet.
            Err(ArenaError::NoFile { tried: "open", .. }) => {
                std::thread::sleep(AGAIN);
                continue;
            }
            Err(error) => return Err(rackmem::Error::from(error).into()),
        };
        let items = Domain::of(&region, bound)?;
        let lock = lock.map_or_else(|| Mutex::renewed(node, LOCK, 0), Ok)?;
        return Ok(Some((items, arena, lock)));
    }
    Ok(None)
}

/// Operations of one thread, on places whose keys begin there.
fn take_turns(
    node: &Node,
    (thread, first): (u32, u64),
    stop: &Stop,
    operate: impl Fn(u64, Option<u64>) -> std::result::Result<Did, rackmem::Error>,
) -> Result<()> {
    let mut random = fastrand::Rng::new();
    // No two writes of a run are of one value.
    let process = u64::from(node.id()) << 59 | u64::from(std::process::id()) << 37;
    let mine = process | u64::from(thread) << 34;
    let tell = |what| {
        let at = now();
        out::line(Line { at, thread, what });
    };
    for count in 1u64.. {
        if stop.requested() {
            break;
        }
        let place = random.u64(..PLACES);
        let value = (random.u8(..WRITE) == 0).then_some(mine | count & ((1 << 34) - 1));
        tell(match value {
            Some(value) => What::Writes(first + place, value),
            None => What::Reads(first + place),
        });
        match operate(place, value)? {
            Did::Ended(what) => tell(what),
            Did::Failed => tell(What::Failed),
            Did::Over => return Ok(()),
        }
        std::thread::sleep(Duration::from_micros(random.u64(..BETWEEN)));
    }
    Ok(())
}

/// What is torn is told as what nobody has written.
fn whole(words: &[u64]) -> u64 {
    match words.iter().all(|word| *word == words[0]) {
        true => words[0],
        false => u64::MAX,
    }
}

/// One operation on an item.
fn item(
    items: &Domain<Item>,
    place: usize,
    value: Option<u64>,
) -> std::result::Result<Did, rackmem::Error> {
    let done = match value {
        None => items.read(place).map(|read| What::Has(whole(&read))),
        Some(value) => match items.writer() {
            Ok(mut writer) => writer.set(place, &[value; 32]).map(|()| What::Written),
            Err(error) => return failed(error.into()),
        },
    };
    match done {
        Ok(what) => Ok(Did::Ended(what)),
        Err(AccessError::Stale { .. }) => Ok(Did::Failed),
        Err(error) => failed(error.into()),
    }
}

/// One operation on the object that a slot leads to.
fn object(
    arena: &Arena,
    lock: &Mutex<u64>,
    place: u64,
    value: Option<u64>,
) -> std::result::Result<Did, rackmem::Error> {
    let slot: ArenaSlot<Object> = arena.slot(place)?;
    let read = || {
        let section = arena.enter()?;
        let value = section.get(slot)?;
        section.finish()?;
        Ok(What::Has(value.map_or(0, |value| whole(&value))))
    };
    let write = |value| {
        let mut writer = arena.writer(lock)?;
        let new = writer.alloc(&[value; 40])?;
        if let Some(old) = writer.assign(slot, new)? {
            writer.free(old)?;
        }
        Ok(What::Written)
    };
    match value.map_or_else(read, write) {
        Ok(what) => Ok(Did::Ended(what)),
        Err(ArenaError::Late { .. } | ArenaError::RingFull { .. }) => Ok(Did::Failed),
        Err(ArenaError::Expelled) => Ok(Did::Over),
        Err(error) => failed(error.into()),
    }
}

/// What goes wrong while others die, or this process is given up.
fn failed(error: rackmem::Error) -> std::result::Result<Did, rackmem::Error> {
    match error.rack() {
        Some(RackError::Fenced | RackError::Closed) => Ok(Did::Over),
        Some(_) => Ok(Did::Failed),
        None => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_written_as_it_is_read() {
        let work = BoundedWork {
            bound: Duration::from_millis(50),
            minutes: 10,
            old: true,
            arena: "/dev/shm/a:b".into(),
        };
        assert_eq!(work.to_string().parse(), Ok(work));
        for wrong in ["", "1:2:0", "x:2:0:/a", "1:x:0:/a"] {
            assert!(wrong.parse::<BoundedWork>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_of_two_objects_are_nobodys_value() {
        assert_eq!((whole(&[7; 3]), whole(&[7, 7, 8])), (7, u64::MAX));
    }
}
