//! Checkpoints that are written while records come: nothing waits for a whole one, and the power
//! may fail between any two of their pieces.

use rackmem_journal::faulty::{Faults, FaultyDisk};
use rackmem_journal::{Committer, Disk, Limits, Member, Store, StoreError, Wanted};
use rackmem_proto::abd::journal::Entry;
use rackmem_proto::abd::{Layout, Stamp, first_line};
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

const LINE: usize = 256;
const LINES: u64 = 64;
const LIMITS: Limits = Limits {
    journal: 8 << 10,
    replay: 24 << 10,
    piece: 1 << 10,
};
/// Lines that a member copies at a time, and what a record has beside its line.
const PAGE: usize = 3;
const RECORD: usize = LINE + 64;

fn wanted() -> Wanted {
    Wanted {
        rack: 1,
        group: 3,
        layout: Layout::new(LINE as u32, LINES * LINE as u64).unwrap(),
        fresh: 5,
    }
}

fn tag(nth: u64) -> Tag {
    Tag(first_line(3).0 + nth * LINE as u64)
}

fn nth(tag: Tag) -> u64 {
    (tag.0 - first_line(3).0) / LINE as u64
}

fn content(stamp: u64) -> [u8; LINE] {
    std::array::from_fn(|at| (stamp as usize * 31 + at) as u8)
}

type Lines = BTreeMap<u64, u64>;
type Writer = Committer<u64>;

/// A member whose lines are a map, by line and stamp.
struct Keeper {
    lines: Arc<Mutex<Lines>>,
    said: Sender<Result<u64, StoreError>>,
}

impl Member<u64> for Keeper {
    fn durable(&mut self, tickets: Vec<u64>) {
        for stamp in tickets {
            let mut lines = self.lines.lock().unwrap();
            let known = lines.entry(stamp % LINES).or_default();
            *known = stamp.max(*known);
            drop(lines);
            let _ = self.said.send(Ok(stamp));
        }
    }

    fn failed(&mut self, error: StoreError) {
        let _ = self.said.send(Err(error));
    }

    fn no_checkpoint(&mut self, error: &StoreError) {
        let full = matches!(error, StoreError::Full { .. } | StoreError::Io { .. });
        assert!(full, "{error}");
    }

    fn lines(&mut self, last: Option<Tag>, each: &mut dyn FnMut(Tag, Stamp, &[u8])) {
        let from = last.map_or(0, |last| nth(last) + 1);
        for (nth, stamp) in self.lines.lock().unwrap().range(from..).take(PAGE) {
            each(tag(*nth), Stamp(*stamp), &content(*stamp));
        }
    }
}

type Hears = Receiver<Result<u64, StoreError>>;

fn open<D: Disk + Send + 'static>(disk: D) -> Result<(Writer, Hears, Lines), StoreError> {
    let mut bytes = BTreeMap::new();
    let apply = |tag: Tag, line: &[u8]| {
        bytes.insert(tag, line.to_vec());
    };
    let (store, restored) = Store::open(disk, &wanted(), LIMITS, apply)?;
    let mut lines = Lines::new();
    for (tag, stamp) in &restored.replay.stamps {
        assert_eq!(bytes[tag], content(stamp.0), "{tag:?} under {stamp:?}");
        lines.insert(nth(*tag), stamp.0);
    }
    let (said, hears) = channel();
    let member = Keeper {
        lines: Arc::new(Mutex::new(lines.clone())),
        said,
    };
    Ok((Committer::start(store, member).unwrap(), hears, lines))
}

fn put(writer: &Writer, stamp: u64) -> Result<(), StoreError> {
    let bytes = content(stamp);
    let line = Entry::Line {
        tag: tag(stamp % LINES),
        stamp: Stamp(stamp),
        bytes: &bytes,
    };
    writer.put(&line, stamp)
}

/// A disk at each of whose steps another record comes, up to a last one: so records always wait.
struct Busy {
    disk: FaultyDisk,
    next: u64,
    last: u64,
    writer: Arc<OnceLock<Arc<Writer>>>,
    /// Bytes of the batch that was written last, and of checkpoints since it was durable.
    batch: usize,
    since: usize,
    /// Of these, the most.
    most: Arc<Mutex<usize>>,
    checkpoints: Arc<Mutex<usize>>,
}

impl Busy {
    /// The writer, while records come at every step.
    fn busy(&self) -> Option<&Writer> {
        let writer = self.writer.get().map(Arc::as_ref);
        writer.filter(|_| self.next <= self.last)
    }

    fn comes(&mut self) {
        if let Some(writer) = self.busy() {
            put(writer, self.next).unwrap();
            self.next += 1;
        }
    }
}

impl Disk for Busy {
    fn place(&self) -> String {
        self.disk.place()
    }

    fn names(&mut self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn read(&mut self, name: &str) -> io::Result<Vec<u8>> {
        self.disk.read(name)
    }

    fn create(&mut self, name: &str) -> io::Result<()> {
        self.comes();
        self.disk.create(name)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<usize> {
        self.comes();
        if name.starts_with("journal") {
            self.batch = bytes.len();
        } else if name == "new-checkpoint" && self.busy().is_some() {
            self.since += bytes.len();
            let most = (LIMITS.piece as usize).max(self.batch) + (PAGE + 2) * RECORD;
            assert!(self.since <= most, "{}", self.since);
            let mut seen = self.most.lock().unwrap();
            *seen = self.since.max(*seen);
        }
        self.disk.append(name, bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.comes();
        if name.starts_with("journal") {
            self.since = 0;
        }
        self.disk.sync(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.comes();
        *self.checkpoints.lock().unwrap() += usize::from(to.starts_with("checkpoint"));
        self.disk.rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.comes();
        self.disk.sync_names()
    }
}

/// Records come at every step, also at those of new files: threads that put are never held up by
/// one, and between two batches a checkpoint gets a piece and no more. So do journals not grow
/// without a bound while it is written.
#[test]
fn records_are_durable_while_a_checkpoint_is_written() {
    const LAST: u64 = 3_000;
    let disk = FaultyDisk::new(1);
    let (writer, most, checkpoints) = <(Arc<OnceLock<_>>, Arc<_>, Arc<_>)>::default();
    let busy = Busy {
        disk: disk.clone(),
        next: LINES + 1,
        last: LAST,
        writer: writer.clone(),
        batch: 0,
        since: 0,
        most: Arc::clone(&most),
        checkpoints: Arc::clone(&checkpoints),
    };
    let (committer, hears, _) = open(busy).unwrap();
    // It is full from the beginning.
    for stamp in 1..=LINES {
        put(&committer, stamp).unwrap();
        hears.recv().unwrap().unwrap();
    }
    assert!(writer.set(Arc::new(committer)).is_ok());
    put(&writer.get().unwrap().clone(), LAST + 1).unwrap();
    let mut heard: Vec<u64> = Vec::new();
    while heard.len() < (LAST - LINES) as usize + 1 {
        heard.push(hears.recv().unwrap().unwrap());
        let of_lines = LINES as usize * RECORD;
        let most = LIMITS.replay as usize + of_lines + 2 * LIMITS.journal as usize;
        let bytes = writer.get().unwrap().written().bytes as usize;
        assert!(bytes <= most, "{bytes} bytes of journals, not {most}");
    }
    heard.sort_unstable();
    assert!(heard.into_iter().eq(LINES + 1..=LAST + 1));
    writer.get().unwrap().close();
    let (most, checkpoints) = (*most.lock().unwrap(), *checkpoints.lock().unwrap());
    assert!(checkpoints > 5, "{checkpoints}");
    assert!(most > LIMITS.piece as usize, "{most}");
    let (_, _, lines) = open(disk).unwrap();
    let newest = |nth| (1..=LAST + 1).rev().find(|stamp| stamp % LINES == nth);
    assert!(
        lines
            .iter()
            .all(|(nth, stamp)| newest(*nth) == Some(*stamp))
    );
    assert_eq!(lines.len() as u64, LINES);
}

/// Wherever the power fails, what was acknowledged is there; so it is after a second failure.
#[test]
fn the_power_fails_between_pieces_and_nothing_is_lost() {
    let run = |disk: &FaultyDisk, from: u64, acknowledged: &mut Lines| {
        let Ok((writer, hears, _)) = open(disk.clone()) else {
            return false;
        };
        for stamp in from..from + 220 {
            if put(&writer, stamp).is_err() {
                return false;
            }
            match hears.recv() {
                Ok(Ok(stamp)) => acknowledged.insert(stamp % LINES, stamp),
                _ => return false,
            };
        }
        true
    };
    let disk = FaultyDisk::new(1);
    assert!(run(&disk, 1, &mut Lines::new()));
    let files = disk.files();
    assert!(files.iter().any(|file| file.0.starts_with("checkpoint")));
    let (steps, _) = disk.steps();
    for at in (0..steps).step_by(3) {
        let disk = FaultyDisk::new(at);
        let mut acknowledged = Lines::new();
        for (life, power_at) in [at, at / 2].into_iter().enumerate() {
            disk.set(Faults {
                power_at: Some(power_at),
                ..Faults::default()
            });
            run(&disk, 1 + 1_000 * life as u64, &mut acknowledged);
            disk.restart();
            let (_, _, lines) = open(disk.clone()).unwrap();
            for (line, stamp) in &acknowledged {
                assert!(lines.get(line) >= Some(stamp), "step {at}: line {line}");
            }
        }
    }
}
