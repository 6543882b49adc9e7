//! A member whose threads read and write lines with copies and tell of it, until it is killed.

use super::super::locks::now;
use super::beside;
use super::line::{Line, What};
use crate::failure::{Failure, Result};
use crate::out;
use crate::stop::Stop;
use rackmem::object::{Object, ObjectRef, Transaction};
use rackmem::{
    AccessError, AllocError, Contract, Durability, ErrorKind, Node, RackError, Region, RegionError,
    RegionSpec, Replicated, TransactionError,
};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The region's name.
pub const REGION: &str = "soak";
/// That of another region, of objects, which transactions write beside the first one's.
pub const BESIDE: &str = "soak beside";
/// Threads of each process.
const THREADS: u32 = 2;
/// Lines that are written at a time. Then others are, so that the history of each is short.
const LINES: u64 = 8;
/// For so long.
const WINDOW: Duration = Duration::from_secs(5);
/// Windows of a region, at most: then its first lines are written again.
const WINDOWS: u64 = 1024;
/// Longest pause between two operations, in microseconds.
const BETWEEN: u64 = 4000;
/// Of so many operations one reads a line that is not written any more.
const EARLIER: u8 = 4;
/// Before another try.
pub const AGAIN: Duration = Duration::from_millis(20);

/// A line: one number, over and over, so that a mixture of two writes shows.
pub type Value = [u64; 512];

/// What processes are to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// When the run began, in nanoseconds since 1970.
    pub began: u64,
    /// Seconds that it may take.
    pub seconds: u64,
    /// Copies at the beginning.
    pub copies: u8,
    pub durability: Durability,
    /// With objects in place of lines.
    pub objects: bool,
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (began, seconds) = (self.began, self.seconds);
        let (copies, durability, objects) = (self.copies, self.durability, self.objects);
        write!(f, "{began}:{seconds}:{copies}:{durability}:{objects}")
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let wrong = || format!("`{text}` is not BEGAN:SECONDS:COPIES:DURABILITY:OBJECTS");
        let [began, seconds, copies, durability, objects] = parts[..] else {
            return Err(wrong());
        };
        Ok(Work {
            began: began.parse().map_err(|_| wrong())?,
            seconds: seconds.parse().map_err(|_| wrong())?,
            copies: copies.parse().map_err(|_| wrong())?,
            durability: Durability::named(durability).ok_or_else(wrong)?,
            objects: objects.parse().map_err(|_| wrong())?,
        })
    }
}

impl Work {
    /// Lines or objects of a region.
    fn all(&self) -> u64 {
        self.windows() * LINES
    }

    /// Whether the last node has objects without copies: not where all nodes are killed at once.
    pub fn has_plain(&self) -> bool {
        self.objects && self.durability == Durability::Memory
    }

    fn windows(&self) -> u64 {
        (self.seconds / WINDOW.as_secs() + 1).min(WINDOWS)
    }

    fn spec(&self, name: &str) -> RegionSpec {
        let line = size_of::<Value>() as u32 * if self.objects { 2 } else { 1 };
        let bytes = self.all() * u64::from(line);
        let spec = RegionSpec::new(name, bytes as usize);
        let spec = spec.line(line).durability(self.durability);
        match self.objects {
            true => spec.contract(Contract::Object),
            false => spec,
        }
    }

    /// The lines that are written at a time, and how many there were before.
    fn window(&self, now: u64) -> u64 {
        now.saturating_sub(self.began) / WINDOW.as_nanos() as u64
    }
}

/// Reads and writes until told to stop.
pub fn work(node: &Node, work: Work, stop: &Stop) -> Result<()> {
    let mut regions = Vec::new();
    for name in [REGION, BESIDE].iter().take(1 + usize::from(work.objects)) {
        let spec = work.spec(name);
        let Some(region) = find(node, &spec, work.copies, stop)? else {
            return Ok(());
        };
        if work.objects && !fill(&region, stop)? {
            return Ok(());
        }
        regions.push(region);
    }
    let plain = match work.has_plain() {
        true => beside::objects(node, work, work.all().div_ceil(KINDS) as usize, stop)?,
        false => Some(Vec::new()),
    };
    let Some(plain) = plain else {
        return Ok(());
    };
    let places = Places { regions, plain };
    out::line(serde_json::json!({"copies": work.copies}));
    std::thread::scope(|scope| {
        let turn = |thread| {
            let places = &places;
            move || take_turns(node, places, (work, thread), stop)
        };
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(turn(n))).collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        // All of them are waited for.
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

/// The region, once there are members enough for it. None when told to stop.
pub fn find(node: &Node, spec: &RegionSpec, mut copies: u8, stop: &Stop) -> Result<Option<Region>> {
    while !stop.requested() {
        match node.create_region(&spec.clone().copies(copies)) {
            Ok(region) => return Ok(Some(region)),
            // It has grown.
            Err(RegionError::OtherCopies { has, .. }) => copies = has,
            Err(
                RegionError::FewMembers { .. }
                | RegionError::Unfinished { .. }
                | RegionError::NoGroups { .. },
            ) => std::thread::sleep(AGAIN),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// Does something until the rack has an answer to it. None: when told to stop, or when the rack has
/// gone on without this process.
pub fn insist<T>(
    mut act: impl FnMut() -> std::result::Result<T, rackmem::Error>,
    stop: &Stop,
) -> Result<Option<T>> {
    while !stop.requested() {
        match act() {
            Ok(done) => return Ok(Some(done)),
            Err(error) => match error.kind() {
                ErrorKind::NoAnswer | ErrorKind::Lost => std::thread::sleep(AGAIN),
                ErrorKind::Closed => return Ok(None),
                _ => return Err(error.into()),
            },
        }
    }
    Ok(None)
}

/// Makes objects until the region is full, as all processes do. `false` when told to stop.
fn fill(region: &Region, stop: &Stop) -> Result<bool> {
    let more = || match region.alloc::<Value>([0; 512]) {
        Err(AllocError::OutOfMemory { .. }) => Ok(false),
        made => Ok(made.map(|_| true)?),
    };
    loop {
        match insist(more, stop)? {
            Some(true) => {}
            full => return Ok(full.is_some()),
        }
    }
}

/// What there is to be read and written.
struct Places {
    /// One of lines, or two of objects.
    regions: Vec<Region>,
    /// Objects without copies.
    plain: Vec<u64>,
}

/// What is read and written.
enum Place {
    Line(Replicated<Value>),
    Object(Object<Value>),
    /// Two objects, of two regions, that transactions read and write, and that have one value at
    /// each moment. The second has no copies, or it has.
    Pair([Object<Value>; 2]),
}

/// Kinds of places in regions of objects, which come in turn; the last one has objects without
/// copies.
const KINDS: u64 = 3;

impl Place {
    fn of(node: &Node, places: &Places, nth: usize) -> Result<Self> {
        // None of them is ever freed.
        let at = |addr: u64| node.attach_object(ObjectRef::new(addr, 0));
        let object = |region: &Region| at(region.addr() + (nth * 2 * size_of::<Value>()) as u64);
        let kinds = KINDS as usize - usize::from(places.plain.is_empty());
        Ok(match (&places.regions[..], nth % kinds) {
            ([lines], _) => Place::Line(lines.replicated(nth)?),
            ([first, ..], 0) => Place::Object(object(first)?),
            ([first, second], 1) => Place::Pair([object(first)?, object(second)?]),
            ([first, ..], _) => Place::Pair([object(first)?, at(places.plain[nth / kinds])?]),
            ([], _) => return Err(Failure::new("there is no region", "report this")),
        })
    }

    /// Its number; what is torn, or of two moments, is told as what nobody has written.
    fn read(&self, node: &Node) -> std::result::Result<u64, TransactionError> {
        Ok(match self {
            Place::Line(line) => whole(&line.read()?),
            Place::Object(object) => whole(&object.read()?),
            Place::Pair([first, second]) => {
                let read = |run: &mut Transaction<'_>| Ok([run.read(first)?, run.read(second)?]);
                let [first, second] = node.transaction(read)?.map(|value| whole(&value));
                if first == second { first } else { u64::MAX }
            }
        })
    }

    fn write(&self, node: &Node, value: Value) -> std::result::Result<(), TransactionError> {
        match self {
            Place::Line(line) => line.write(value)?,
            Place::Object(object) => object.write(&value).map(drop)?,
            Place::Pair(both) => node.transaction(|run| {
                let mut both = both.iter();
                both.try_for_each(|object| run.write(object, value))
            })?,
        }
        Ok(())
    }
}

fn tell(thread: u32, what: What) {
    let at = now();
    out::line(Line { at, thread, what });
}

fn take_turns(
    node: &Node,
    places: &Places,
    (work, thread): (Work, u32),
    stop: &Stop,
) -> Result<()> {
    let mut random = fastrand::Rng::new();
    // No two writes of a run are of one value.
    let process = u64::from(node.id()) << 59 | u64::from(std::process::id()) << 37;
    let mine = process | u64::from(thread) << 34;
    for count in 1u64.. {
        if stop.requested() {
            break;
        }
        let window = work.window(now());
        let earlier = window > 0 && random.u8(..EARLIER) == 0;
        let line = match earlier {
            true => random.u64(..window * LINES),
            false => window * LINES + random.u64(..LINES),
        };
        let line = line % work.all();
        let place = Place::of(node, places, line as usize)?;
        let ended = match earlier || random.bool() {
            true => {
                tell(thread, What::Reads(line));
                place.read(node).map(What::Has)
            }
            false => {
                let fresh = mine | count & ((1 << 34) - 1);
                tell(thread, What::Writes(line, fresh));
                let written = place.write(node, [fresh; 512]);
                written.map(|()| What::Written)
            }
        };
        match ended {
            Ok(what) => tell(thread, what),
            // The rack has gone on without this process.
            Err(TransactionError::Rack(RackError::Fenced | RackError::Closed)) => return Ok(()),
            Err(
                TransactionError::Access(
                    AccessError::NoQuorum { .. } | AccessError::Interrupted { .. },
                )
                | TransactionError::Rack(RackError::Timeout { .. })
                | TransactionError::Conflict { .. }
                | TransactionError::GivenUp { .. }
                | TransactionError::Undecided { .. },
            ) => tell(thread, What::Failed),
            Err(error) => return Err(error.into()),
        }
        std::thread::sleep(Duration::from_micros(random.u64(..BETWEEN)));
    }
    Ok(())
}

/// What is torn is told as what nobody has written.
fn whole(value: &Value) -> u64 {
    match value.iter().all(|word| *word == value[0]) {
        true => value[0],
        false => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_written_as_it_is_read() {
        let work = Work {
            began: 5_000_000_000,
            seconds: 60,
            copies: 3,
            durability: Durability::Sync,
            objects: false,
        };
        assert_eq!(work.to_string().parse(), Ok(work));
        for wrong in [
            "",
            "1:2:3",
            "1:2:3:disk:true",
            "1:2:300:sync:true",
            "1:2:3:sync:4",
        ] {
            assert!(wrong.parse::<Work>().is_err(), "{wrong}");
        }
        assert_eq!(
            (work.window(4_000_000_000), work.window(15_000_000_000)),
            (0, 2)
        );
        assert_eq!(work.spec(REGION).bytes(), 13 * 8 * 4096);
        let objects = Work {
            objects: true,
            ..work
        };
        assert_eq!(objects.spec(BESIDE).asks_contract(), Contract::Object);
    }

    #[test]
    fn a_torn_line_is_nobodys_value() {
        let mut value = [7; 512];
        assert_eq!(whole(&value), 7);
        value[511] = 8;
        assert_eq!(whole(&value), u64::MAX);
    }
}
