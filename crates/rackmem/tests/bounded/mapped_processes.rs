//! Arenas of processes that are stopped and killed: each process has a cache of its own, and each
//! object, and each value of a map, has the number of its making in every word of every line.

use crate::LONG;
use crate::child::ChildTest;
use crate::mapped::{ArenaFile, Members};
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec, Map};
use rackmem::locked::Lock;
use rackmem::{ArenaError, Config, Rack};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const RACK: &str = "RACKMEM_TEST_ARENA";
const BOUND: Duration = Duration::from_millis(100);
const LEASE: Duration = Duration::from_secs(2);
/// Slots that are changed one after the other, and keys of a map in the slot behind them.
const SLOTS: u64 = 4;
/// Its buckets: of each the list has several links.
const BUCKETS: usize = 2;

type Canary = [u64; 24];
type Canaries = Map<u64, Canary>;

/// Where a number stood.
#[derive(Clone, Copy)]
enum Place {
    Slot,
    Map,
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64
}

fn spec(path: &Path) -> ArenaSpec {
    ArenaSpec::new(path, 1 << 20)
        .bound(BOUND)
        .ring(16)
        .emulated()
}

/// Node 0 of a rack of two processes, its arena, and what the other one is told.
struct Story {
    rack: Rack,
    arena: Arena,
    lock: Lock,
    text: String,
    members: Members,
    _file: ArenaFile,
    map: Canaries,
    /// When each number was superseded in its slot, and in the map.
    superseded: [Vec<u64>; 2],
}

impl Story {
    fn new(name: &str, lease: Duration) -> Self {
        let file = ArenaFile::new(name);
        let (members, text) = Members::new(name, lease);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let arena = Arena::create(&rack.node(0), &spec(&file.0)).unwrap();
        let lock = Lock::create(&rack.node(0), ()).unwrap();
        let mut writer = arena.writer(&lock).unwrap();
        let map = Map::create(&arena, &mut writer, SLOTS, BUCKETS).unwrap();
        drop(writer);
        let samples = members.0.join("samples");
        let text = format!("{}\n{}\n{text}", file.0.display(), samples.display());
        let mut story = Story {
            rack,
            arena,
            lock,
            text,
            members,
            _file: file,
            map,
            superseded: [Vec::new(), Vec::new()],
        };
        (0..SLOTS).for_each(|_| story.change());
        story
    }

    /// The next number is in its slot. Waits for memory, if that has to come back first.
    fn change(&mut self) {
        let number = self.superseded[0].len() as u64;
        let slot: ArenaSlot<Canary> = self.arena.slot(number % SLOTS).unwrap();
        let mut writer = self.arena.writer(&self.lock).unwrap();
        let new = writer.alloc(&[number; 24]).unwrap();
        let old = writer.assign(slot, new).unwrap();
        Self::supersede(&mut self.superseded[Place::Slot as usize]);
        if let Some(old) = old {
            writer.free(old).unwrap();
        }
        let key = number % SLOTS;
        self.map.insert(&mut writer, &key, &[number; 24]).unwrap();
        Self::supersede(&mut self.superseded[Place::Map as usize]);
    }

    /// The number before the next one is no more where it was.
    fn supersede(superseded: &mut Vec<u64>) {
        if let Some(before) = superseded.len().checked_sub(SLOTS as usize) {
            superseded[before] = now();
        }
        superseded.push(u64::MAX);
    }

    fn reader(&self) -> ChildTest {
        let mut child = ChildTest::start("mapped_processes::reader_process", (RACK, &self.text));
        assert_eq!(child.line(), "reads");
        child
    }

    /// Judges what the reader has believed: where it stood, number, and when its section began.
    fn judge(&self) -> usize {
        let samples = std::fs::read_to_string(self.members.0.join("samples")).unwrap();
        let mut counts = [0; 2];
        for line in samples.lines() {
            let words = line.split(' ').map(str::parse);
            let words: Result<Vec<u64>, _> = words.collect();
            let Ok([place, number, began]) = words.as_deref() else {
                continue; // It was killed while it wrote this.
            };
            let place = *place as usize;
            let old = began.saturating_sub(self.superseded[place][*number as usize]);
            assert!(
                Duration::from_nanos(old) <= BOUND,
                "{number} is {old} ns old in place {place}"
            );
            counts[place] += 1;
        }
        counts.into_iter().min().unwrap_or_default()
    }
}

/// Not a test but the process that another one starts: it reads all slots in sections until its
/// input ends or it is excluded, and writes down what it believes.
#[test]
fn reader_process() {
    let Some(text) = std::env::var_os(RACK) else {
        return;
    };
    let text = text.into_string().unwrap();
    let mut lines = text.splitn(3, '\n');
    let [path, samples, config] = [(); 3].map(|()| lines.next().unwrap());
    let rack = Rack::join(&Config::parse(config).unwrap(), 1).unwrap();
    let arena = Arena::open(&rack.node(1), &spec(Path::new(path))).unwrap();
    let mut map = None;
    let ends = std::sync::atomic::AtomicBool::new(false);
    let (ends, mut told) = (&ends, false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().lines().count();
            ends.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut text = String::new();
        let end = loop {
            if ends.load(std::sync::atomic::Ordering::SeqCst) {
                break "ended".to_owned();
            }
            let began = now();
            let read = section(&arena).and_then(|numbers| {
                for number in numbers {
                    writeln!(text, "{} {number} {began}", Place::Slot as u8).unwrap();
                }
                through_map(&arena, &mut map, &mut text)
            });
            match read {
                Ok(()) => {
                    let mut file = std::fs::OpenOptions::new();
                    let file = file.create(true).append(true).open(samples);
                    std::io::Write::write_all(&mut file.unwrap(), text.as_bytes()).unwrap();
                    text.clear();
                    if !std::mem::replace(&mut told, true) {
                        eprintln!("reads");
                    }
                }
                Err(ArenaError::Late { .. }) => {}
                Err(ArenaError::Expelled | ArenaError::Rack(_)) => break "out".to_owned(),
                Err(error) => break error.to_string(),
            }
        };
        eprintln!("{end}");
        // Its input may stay open: the thread that reads it goes with the process.
        std::process::exit(0);
    });
}

/// The number of a canary: it is in every word.
fn number(canary: Canary) -> u64 {
    let same = canary.iter().all(|word| *word == canary[0]);
    assert!(same, "parts of several objects: {canary:?}");
    canary[0]
}

/// Reads all keys of the map, each in a section of its own, and writes down what it believes.
fn through_map(
    arena: &Arena,
    map: &mut Option<Canaries>,
    text: &mut String,
) -> Result<(), ArenaError> {
    if map.is_none() {
        *map = Map::open(arena, SLOTS)?;
    }
    for key in 0..SLOTS {
        let began = now();
        let found = map.as_ref().expect("it was made").get(&key)?;
        let number = number(found.expect("all keys have values"));
        assert_eq!(number % SLOTS, key, "another key's value");
        writeln!(text, "{} {number} {began}", Place::Map as u8).unwrap();
    }
    Ok(())
}

/// The numbers in all slots, read in one section and believed.
fn section(arena: &Arena) -> Result<Vec<u64>, ArenaError> {
    let section = arena.enter()?;
    let mut all = Vec::new();
    for nth in 0..SLOTS {
        all.push(section.get::<Canary>(arena.slot(nth)?)?);
    }
    // It sleeps in some of them.
    if fastrand::u8(..) < 8 {
        std::thread::sleep(BOUND / 4);
    }
    section.finish()?;
    Ok(all.into_iter().flatten().map(number).collect())
}

#[test]
fn a_reader_that_is_stopped_for_less_than_the_lease_holds_memory_up_and_reads_nothing_old() {
    let mut story = Story::new("short", LONG);
    let mut reader = story.reader();
    for _ in 0..200 {
        story.change();
    }
    reader.signal("-STOP");
    std::thread::scope(|scope| {
        let changing = scope.spawn(|| (0..200).for_each(|_| story.change()));
        std::thread::sleep(Duration::from_secs(2));
        // A ring is full of what it might read.
        assert!(!changing.is_finished());
        reader.signal("-CONT");
        changing.join().unwrap();
    });
    for _ in 0..200 {
        story.change();
    }
    assert!(story.arena.domains().iter().all(|domain| domain.lives));
    drop(reader.child.stdin.take());
    assert_eq!(reader.line(), "ended");
    assert!(story.judge() > 0);
}

#[test]
fn a_reader_that_is_stopped_for_longer_is_not_waited_for_and_is_told_so() {
    let mut story = Story::new("longer", LEASE);
    let mut reader = story.reader();
    (0..50).for_each(|_| story.change());
    reader.signal("-STOP");
    let stopped = Instant::now();
    // Many times what a ring has room for, beside a reader that may be in a section.
    (0..300).for_each(|_| story.change());
    assert!(stopped.elapsed() >= LEASE && !story.rack.node(0).is_member(1));
    reader.signal("-CONT");
    (0..300).for_each(|_| story.change());
    assert_eq!(reader.line(), "out");
    assert!(story.judge() > 0);
}

#[test]
fn a_reader_that_is_killed_is_not_waited_for_and_comes_again() {
    let mut story = Story::new("killed", LEASE);
    for life in 0..2 {
        let reader = story.reader();
        (0..50).for_each(|_| story.change());
        reader.signal("-KILL");
        (0..200).for_each(|_| story.change());
        assert!(story.judge() > 0, "life {life}");
        let end = Instant::now() + LONG;
        while story.arena.counts().waiting > 0 {
            assert!(Instant::now() < end, "{:?}", story.arena.domains());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
