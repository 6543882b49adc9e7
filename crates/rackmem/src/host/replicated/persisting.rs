//! Stores in persistent memory, on ordinary shared memory: no machine of ours has the other. What
//! is tested is the order of stores, write-backs and fences, by a medium that has what was fenced
//! and any part of what was not; and that a file system without such memory is refused.

use super::persistent::{Persist, PersistentFolder, Processor};
use rackmem_journal::{Disk, Folder, Limits, Store, StoreError, Wanted};
use rackmem_proto::abd::journal::Entry;
use rackmem_proto::abd::{Layout, Stamp, first_line};
use rackmem_proto::wire::Tag;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const LINE: usize = 256;
const CACHE_LINE: usize = 64;

/// What the medium has of each cache line, by address.
#[derive(Default)]
struct Medium {
    durable: HashMap<usize, [u8; CACHE_LINE]>,
    /// Stored since the last fence: it may have come there by itself.
    stored: Vec<(usize, [u8; CACHE_LINE])>,
    steps: u64,
    power_at: u64,
    dice: u64,
}

impl Medium {
    fn has_power(&self) -> bool {
        self.steps < self.power_at
    }

    fn coin(&mut self) -> bool {
        self.dice = self.dice.wrapping_mul(0x5851_f42d_4c95_7f2d);
        self.dice = self.dice.wrapping_add(0x1405_7b7e_f767_814f);
        self.dice >> 63 == 1
    }

    /// The power fails after this step, if it is that one.
    fn step(&mut self) {
        self.steps += 1;
        if self.steps == self.power_at {
            for (at, line) in std::mem::take(&mut self.stored) {
                if self.coin() {
                    self.durable.insert(at, line);
                }
            }
        }
    }
}

/// Ordinary memory, which is durable as a [`Medium`] says.
#[derive(Clone, Default)]
struct Ordinary(Arc<Mutex<Medium>>);

impl Persist for Ordinary {
    fn flags(&self) -> libc::c_int {
        libc::MAP_SHARED
    }

    fn write_back(&mut self, bytes: &[u8]) {
        let mut medium = self.0.lock().unwrap();
        if !medium.has_power() {
            return;
        }
        let from = bytes.as_ptr().addr() / CACHE_LINE * CACHE_LINE;
        let to = bytes.as_ptr().addr() + bytes.len();
        for at in (from..to).step_by(CACHE_LINE) {
            // SAFETY: pages of a mapping, and whole lines of it: the bytes are in one of them.
            let line = unsafe { *std::ptr::with_exposed_provenance::<[u8; CACHE_LINE]>(at) };
            medium.stored.push((at, line));
        }
        bytes.as_ptr().expose_provenance();
        medium.step();
    }

    fn fence(&mut self) {
        let mut medium = self.0.lock().unwrap();
        if medium.has_power() {
            let stored = std::mem::take(&mut medium.stored);
            medium.durable.extend(stored);
            medium.step();
        }
    }
}

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let name = format!("rackmem-persistent-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tag(nth: u64) -> Tag {
    Tag(first_line(0).0 + nth * LINE as u64)
}

fn folder(path: &Path, medium: &Ordinary) -> PersistentFolder<Ordinary> {
    let names = Folder::open(path).unwrap();
    PersistentFolder::new(names, path.to_owned(), medium.clone()).unwrap()
}

/// A store there, and its lines' stamps and first bytes.
type Opened<D> = (Store<D, u64>, BTreeMap<Tag, u8>);

fn open<D: Disk>(disk: D) -> Result<Opened<D>, StoreError> {
    let wanted = Wanted {
        rack: 1,
        group: 0,
        layout: Layout::new(LINE as u32, 16 * LINE as u64).unwrap(),
        fresh: 5,
    };
    let mut lines = BTreeMap::new();
    let apply = |tag, bytes: &[u8]| {
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a torn line");
        lines.insert(tag, bytes[0]);
    };
    let (store, restored) = Store::open(disk, &wanted, Limits::default(), apply)?;
    assert_eq!(restored.life, 5);
    Ok((store, lines))
}

/// Puts a batch, from this stamp on, and makes it durable.
fn commit<D: Disk>(store: &mut Store<D, u64>, stamps: std::ops::Range<u64>) {
    for stamp in stamps {
        let bytes = [stamp as u8; LINE];
        let line = Entry::Line {
            tag: tag(stamp % 16),
            stamp: Stamp(stamp),
            bytes: &bytes,
        };
        store.put(&line, stamp).unwrap();
    }
    store.commit().unwrap();
}

/// What a line is when everything up to this stamp is there.
fn after(stamp: u64, nth: u64) -> Option<u8> {
    let last = (1..=stamp).rev().find(|stamp| stamp % 16 == nth);
    last.map(|stamp| stamp as u8)
}

#[test]
fn whatever_of_the_last_batch_is_on_the_medium_what_was_acknowledged_is_there() {
    for seed in 0..400u64 {
        let place = Place::new(&format!("power-{seed}"));
        let medium = Ordinary::default();
        {
            let mut medium = medium.0.lock().unwrap();
            (medium.power_at, medium.dice) = (u64::MAX, seed);
        }
        let (mut store, _) = open(folder(&place.0, &medium)).unwrap();
        {
            let mut medium = medium.0.lock().unwrap();
            medium.power_at = medium.steps + 1 + seed % 37;
        }
        let mut acknowledged = 0;
        while medium.0.lock().unwrap().has_power() {
            let stamps = acknowledged + 1..acknowledged + 2 + seed % 3;
            let last = stamps.end - 1;
            commit(&mut store, stamps);
            if medium.0.lock().unwrap().has_power() {
                acknowledged = last;
            }
        }
        let left = store.into_disk().on_the_medium(|at| {
            let medium = medium.0.lock().unwrap();
            medium.durable.get(&at).copied().unwrap_or([0; CACHE_LINE])
        });
        for (name, bytes) in left {
            std::fs::write(place.0.join(name), bytes).unwrap();
        }
        let (_store, lines) = open(folder(&place.0, &Ordinary::default()))
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let next = acknowledged + 1 + seed % 3;
        let is = |stamp| (0..16).all(|nth| lines.get(&tag(nth)).copied() == after(stamp, nth));
        assert!(is(acknowledged) || is(next), "seed {seed}: {lines:?}");
    }
}

#[test]
fn what_was_appended_and_not_synced_does_not_count_and_files_outgrow_a_piece() {
    let place = Place::new("grows");
    let medium = Ordinary::default();
    let mut disk = folder(&place.0, &medium);
    disk.create("new").unwrap();
    let bytes: Vec<u8> = (0..3_000_001u32).map(|nth| nth as u8).collect();
    for piece in bytes.chunks(700_001) {
        assert_eq!(disk.append("new", piece).unwrap(), piece.len());
    }
    assert!(disk.read("new").unwrap().is_empty());
    disk.sync("new").unwrap();
    disk.rename("new", "journal").unwrap();
    disk.append("journal", b"more").unwrap();
    assert!(disk.read("journal").unwrap() == bytes);
    drop(disk);
    assert!(folder(&place.0, &medium).read("journal").unwrap() == bytes);
    std::fs::write(place.0.join("other"), vec![7; 5_000]).unwrap();
    let wrong = folder(&place.0, &medium).read("other").unwrap_err();
    assert!(wrong.to_string().contains("first page"), "{wrong}");
}

/// The instructions themselves, where the processor has them.
#[test]
fn a_file_system_without_such_memory_is_refused() {
    let place = Place::new("refused");
    let Some(processor) = Processor::new() else {
        return;
    };
    let names = Folder::open(&place.0).unwrap();
    match PersistentFolder::new(names, place.0.clone(), processor) {
        // This one has it.
        Ok(mut disk) => {
            disk.create("new").unwrap();
            disk.append("new", b"bytes").unwrap();
            disk.sync("new").unwrap();
            assert_eq!(disk.read("new").unwrap(), b"bytes");
        }
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{error}"),
    }
    let probe = std::fs::read_dir(&place.0).unwrap().flatten();
    assert!(
        probe
            .into_iter()
            .all(|entry| entry.file_name() == "lock" || entry.file_name() == "new")
    );
}
