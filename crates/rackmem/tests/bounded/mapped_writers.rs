//! Arenas of processes that are killed and stopped while they write: the lock that they had goes
//! on, and so does the memory that they had to give out. With caches that are not coherent, and
//! with this processor's.

use crate::LONG;
use crate::child::ChildTest;
use crate::mapped::{ArenaFile, Members};
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec, Pointer};
use rackmem::locked::Lock;
use rackmem::{ArenaError, Config, Rack};
use std::path::Path;
use std::time::{Duration, Instant};

const RACK: &str = "RACKMEM_TEST_ARENA_WRITER";
const LEASE: Duration = Duration::from_secs(2);
/// Slots that both processes write.
const SLOTS: u64 = 4;
/// A front and two slabs for each of two nodes.
const BYTES: u64 = 5 << 16;
/// Objects of a slab, of four lines each.
const SLAB: usize = 256;

type Canary = [u64; 24];
/// A slab of places for pointers.
type Places = [u64; 8192];

fn spec(path: &Path, emulated: bool) -> ArenaSpec {
    let spec = ArenaSpec::new(path, BYTES);
    let spec = spec.bound(Duration::from_millis(100)).ring(64);
    if emulated { spec.emulated() } else { spec }
}

/// Node 0 of a rack of two processes, and its arena.
struct Story {
    rack: Rack,
    arena: Arena,
    lock: Lock,
    text: String,
    _members: Members,
    _file: ArenaFile,
}

impl Story {
    fn new(name: &str, emulated: bool) -> Self {
        let name = format!("{name}-{emulated}");
        let file = ArenaFile::new(&name);
        let (members, text) = Members::new(&name, LEASE);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let arena = Arena::create(&rack.node(0), &spec(&file.0, emulated)).unwrap();
        let lock = Lock::create(&rack.node(0), ()).unwrap();
        let addr = lock.addr();
        let text = format!("{}\n{emulated} {addr}\n{text}", file.0.display());
        Story {
            rack,
            arena,
            lock,
            text,
            _members: members,
            _file: file,
        }
    }

    fn writer(&self) -> ChildTest {
        ChildTest::start("mapped_writers::writer_process", (RACK, &self.text))
    }

    /// Until the rack does without the other process.
    fn await_death(&self) {
        let end = Instant::now() + LONG;
        while self.rack.node(0).is_member(1) {
            assert!(Instant::now() < end, "it is a member still");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// As many objects as there is room for, each with its number in every word, one behind the
    /// other.
    fn fill(&self, slot: u64) -> (Pointer<Places>, u64) {
        let mut writer = self.arena.writer(&self.lock).unwrap();
        let places = self.arena.slot(slot).unwrap();
        let new = writer.alloc(&[0u64; 8192]).unwrap();
        writer.assign(places, new).unwrap();
        let places = writer.load(places).unwrap().unwrap();
        for number in 0..8192 {
            match writer.alloc(&[number; 24]) {
                Ok(new) => {
                    let at = places.slot::<Canary>(number as usize * 8).unwrap();
                    assert_eq!(writer.assign(at, new), Ok(None));
                }
                Err(ArenaError::ArenaFull { .. }) => return (places, number),
                Err(error) => panic!("{error}"),
            }
        }
        panic!("it is never full");
    }

    /// Each of them is what it was, and nobody else's.
    fn assert_filled(&self, (places, count): (Pointer<Places>, u64)) {
        let writer = self.arena.writer(&self.lock).unwrap();
        for number in 0..count {
            let at = places.slot::<Canary>(number as usize * 8).unwrap();
            assert_eq!(writer.get(at), Ok(Some([number; 24])));
        }
    }

    /// What is in the slots is whole.
    fn assert_whole(&self) {
        let writer = self.arena.writer(&self.lock).unwrap();
        for nth in 0..SLOTS {
            let slot: ArenaSlot<Canary> = self.arena.slot(nth).unwrap();
            let canary = writer.get(slot).unwrap();
            let whole = canary.is_none_or(|canary| canary.iter().all(|word| *word == canary[0]));
            assert!(whole, "parts of several objects: {canary:?}");
        }
    }
}

/// The next number is in its slot.
fn change(arena: &Arena, lock: &Lock, number: u64) -> Result<(), ArenaError> {
    let slot: ArenaSlot<Canary> = arena.slot(number % SLOTS)?;
    let mut writer = arena.writer(lock)?;
    let new = writer.alloc(&[number; 24])?;
    match writer.assign(slot, new)? {
        Some(old) => writer.free(old),
        None => Ok(()),
    }
}

/// Not a test but the process that another one starts: it writes without end, or, when it is told
/// anything, is inside until it is told more.
#[test]
fn writer_process() {
    let Some(text) = std::env::var_os(RACK) else {
        return;
    };
    let text = text.into_string().unwrap();
    let mut lines = text.splitn(3, '\n');
    let [path, kind, config] = [(); 3].map(|()| lines.next().unwrap());
    let (emulated, addr) = kind.split_once(' ').unwrap();
    let rack = Rack::join(&Config::parse(config).unwrap(), 1).unwrap();
    let spec = spec(Path::new(path), emulated == "true");
    let arena = Arena::open(&rack.node(1), &spec).unwrap();
    let lock = Lock::attach(&rack.node(1), addr.parse().unwrap()).unwrap();
    let told = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_line(&mut String::new());
            told.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut number = 1 << 32;
        while !told.load(std::sync::atomic::Ordering::SeqCst) {
            number += 1;
            match change(&arena, &lock, number) {
                Ok(()) if number == (1 << 32) + 50 => eprintln!("writes"),
                Ok(()) => {}
                Err(error) => {
                    eprintln!("{}", error.code());
                    std::process::exit(0);
                }
            }
        }
        let mut writer = arena.writer(&lock).unwrap();
        let new = writer.alloc(&[7u64; 24]).unwrap();
        eprintln!("inside");
        let _ = std::io::stdin().read_line(&mut String::new());
        let slot: ArenaSlot<Canary> = arena.slot(0).unwrap();
        let assigned = writer.assign(slot, new).map(drop);
        let again = writer.alloc(&[7u64; 24]).map(drop);
        eprintln!("{} {}", assigned.is_err(), again.is_err());
        std::process::exit(0);
    });
}

/// Killed in the middle of its writes, more often than its share has slabs: each life goes on with
/// what is left, and in the end the other node takes that over.
#[test]
fn a_writer_that_is_killed_leaves_its_lock_and_its_memory() {
    for emulated in [true, false] {
        let story = Story::new("killed", emulated);
        for life in 0..4 {
            let mut writer = story.writer();
            assert_eq!(writer.line(), "writes", "life {life}");
            std::thread::sleep(Duration::from_millis(fastrand::u64(..20)));
            writer.signal("-KILL");
            // Waits for the lock until the rack knows that its holder is dead.
            for number in 0..100 {
                change(&story.arena, &story.lock, number).unwrap();
                story.assert_whole();
            }
            drop(writer);
            story.await_death();
        }
        assert_eq!(story.arena.counts().taken_over, 0);
        let filled = story.fill(10);
        // A slab of each node, and the dead node's other one; each death may have lost two.
        let least = 3 * SLAB as u64 - SLOTS - 2 * 4;
        assert!(filled.1 >= least, "{} of {least}", filled.1);
        assert_eq!(story.arena.counts().taken_over, 1);
        // The next life has nothing, and breaks nothing.
        let mut writer = story.writer();
        assert_eq!(writer.line(), "arena-full");
        story.assert_filled(filled);
        drop(writer);
    }
}

/// Stopped while it is inside, for longer than the lease: others go on without it, and it stores
/// nothing when it wakes.
#[test]
fn a_writer_that_is_stopped_is_done_without_and_stores_nothing_when_it_wakes() {
    for emulated in [true, false] {
        let story = Story::new("stopped", emulated);
        let mut writer = story.writer();
        assert_eq!(writer.line(), "writes");
        let tell = |writer: &mut ChildTest| {
            let input = writer.child.stdin.as_mut().unwrap();
            std::io::Write::write_all(input, b"\n").unwrap();
        };
        tell(&mut writer);
        assert_eq!(writer.line(), "inside");
        writer.signal("-STOP");
        for number in 0..100 {
            change(&story.arena, &story.lock, number).unwrap();
        }
        let filled = story.fill(10);
        assert!(filled.1 > 2 * SLAB as u64 && story.arena.counts().taken_over == 1);
        writer.signal("-CONT");
        tell(&mut writer);
        assert_eq!(writer.line(), "true true");
        story.assert_filled(filled);
        story.assert_whole();
    }
}

/// Without a death: a node that has left, and one that attaches again.
#[test]
fn what_a_node_leaves_is_its_next_attachments_or_another_nodes() {
    let rack = Rack::local(2).unwrap();
    let file = ArenaFile::new("left");
    let spec = spec(&file.0, true);
    let here = Arena::create(&rack.node(0), &spec).unwrap();
    let lock = Lock::create(&rack.node(0), ()).unwrap();
    for round in 0..5 {
        let there = Arena::open(&rack.node(1), &spec).unwrap();
        for number in 0..300 {
            change(&there, &lock, round << 32 | number).unwrap();
        }
    }
    // One object of all bytes of a slab: of its own share, then of the other one's.
    for slot in 10..13 {
        let mut writer = here.writer(&lock).unwrap();
        let new = writer.alloc(&[slot; 8192]).unwrap();
        writer.assign(here.slot(slot).unwrap(), new).unwrap();
    }
    assert_eq!(here.counts().taken_over, 1);
    let mut writer = here.writer(&lock).unwrap();
    let full = writer.alloc(&[0u64; 8192]).map(drop);
    assert!(matches!(full, Err(ArenaError::ArenaFull { .. })));
    for slot in 10..13 {
        let read = writer.get::<Places>(here.slot(slot).unwrap());
        assert_eq!(read, Ok(Some([slot; 8192])));
    }
}
