//! Stores in folders of this machine, and the thread that writes them.

use rackmem_journal::faulty::{Faults, FaultyDisk};
use rackmem_journal::{Committer, Disk, Folder, Limits, Member, Store, StoreError, Wanted};
use rackmem_proto::abd::journal::Entry;
use rackmem_proto::abd::{Layout, Stamp, first_line};
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const LINE: usize = 4096;

fn wanted() -> Wanted {
    Wanted {
        rack: 1,
        group: 0,
        layout: Layout::new(LINE as u32, 64 * LINE as u64).unwrap(),
        fresh: 5,
    }
}

fn tag(nth: u64) -> Tag {
    Tag(first_line(0).0 + nth * LINE as u64)
}

/// A folder that is removed at the end, with what is mounted there.
struct Place(PathBuf, bool);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("rackmem-journal-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Place(path, false)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.1 {
            let _ = Command::new("umount").arg(&self.0).status();
        }
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

type Opened = (Store<Folder, u64>, BTreeMap<Tag, u8>);

fn open(path: &Path) -> Result<Opened, StoreError> {
    let (mut lines, folder) = (BTreeMap::new(), Folder::open(path)?);
    let limits = Limits {
        journal: 1 << 18,
        replay: 1 << 20,
        piece: 1 << 15,
    };
    let apply = |tag, bytes: &[u8]| {
        lines.insert(tag, bytes[0]);
    };
    let (store, _) = Store::open(folder, &wanted(), limits, apply)?;
    Ok((store, lines))
}

/// What the thread has said.
enum Said {
    Durable(Vec<u64>),
    Failed(StoreError),
}

/// A member whose memory is a map.
struct Keeper(Sender<Said>, Arc<Mutex<BTreeMap<u64, u64>>>);

impl Member<u64> for Keeper {
    fn durable(&mut self, tickets: Vec<u64>) {
        let mut lines = self.1.lock().unwrap();
        for stamp in &tickets {
            let known = lines.entry(stamp % 64).or_default();
            *known = stamp.max(known).to_owned();
        }
        let _ = self.0.send(Said::Durable(tickets));
    }

    fn failed(&mut self, error: StoreError) {
        let _ = self.0.send(Said::Failed(error));
    }

    fn no_checkpoint(&mut self, error: &StoreError) {
        panic!("{error}");
    }

    fn lines(&mut self, last: Option<Tag>, each: &mut dyn FnMut(Tag, Stamp, &[u8])) {
        let lines = self.1.lock().unwrap();
        let behind = |nth: &u64| last.is_none_or(|last| tag(*nth) > last);
        for (nth, stamp) in lines.iter().filter(|(nth, _)| behind(nth)).take(8) {
            each(tag(*nth), Stamp(*stamp), &[*stamp as u8; LINE]);
        }
    }
}

fn keeper() -> (Keeper, Receiver<Said>) {
    let (sender, said) = channel();
    (Keeper(sender, Arc::default()), said)
}

fn put<T: Send + 'static>(to: &Committer<T>, stamp: u64, ticket: T) -> Result<(), StoreError> {
    let bytes = [stamp as u8; LINE];
    let line = Entry::Line {
        tag: tag(stamp % 64),
        stamp: Stamp(stamp),
        bytes: &bytes,
    };
    to.put(&line, ticket)
}

#[test]
fn what_threads_put_becomes_durable_in_batches_and_is_there_again() {
    let place = Place::new("threads");
    let (store, _) = open(&place.0).unwrap();
    let (keeper, said) = keeper();
    let committer = Committer::start(store, keeper).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let committer = &committer;
            scope.spawn(move || {
                for nth in 0..150 {
                    let stamp = 1 + nth * 4 + thread;
                    put(committer, stamp, stamp).unwrap();
                }
            });
        }
    });
    // Dropped with what waits: that is written first.
    drop(committer);
    let mut tickets = Vec::new();
    for said in said.try_iter() {
        match said {
            Said::Durable(batch) => tickets.extend(batch),
            Said::Failed(error) => panic!("{error}"),
        }
    }
    tickets.sort_unstable();
    assert!(tickets.iter().copied().eq(1..=600));
    let (_store, lines) = open(&place.0).unwrap();
    for (nth, byte) in (0..64).map(|nth| (nth, lines[&tag(nth)])) {
        let highest = (1..=600u64)
            .filter(|stamp| stamp % 64 == nth)
            .max()
            .unwrap();
        assert_eq!(byte, highest as u8, "line {nth}");
    }
    let checkpoint = std::fs::read_dir(&place.0).unwrap().any(|entry| {
        let name = entry.unwrap().file_name();
        name.to_string_lossy().starts_with("checkpoint")
    });
    assert!(
        checkpoint,
        "600 lines of 4 KiB are more than one MiB of journals"
    );
}

#[test]
fn one_process_has_a_store() {
    let place = Place::new("lock");
    let (store, _) = open(&place.0).unwrap();
    let error = open(&place.0).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    drop(store);
    assert!(open(&place.0).is_ok());
}

#[test]
fn a_member_whose_sync_has_failed_hears_of_it_once_and_of_nothing_else() {
    let disk = FaultyDisk::new(1);
    let opened = Store::open(disk.clone(), &wanted(), Limits::default(), |_, _| ());
    let (store, _) = opened.unwrap();
    disk.set(Faults {
        sync_fails_at: Some(2),
        ..Faults::default()
    });
    let (keeper, said) = keeper();
    let committer = Committer::start(store, keeper).unwrap();
    put(&committer, 1, 1).unwrap();
    assert!(matches!(said.recv(), Ok(Said::Durable(one)) if one == [1]));
    put(&committer, 2, 2).unwrap();
    let Ok(Said::Failed(StoreError::Io { cause, .. })) = said.recv() else {
        panic!("the second sync fails");
    };
    assert_eq!(cause.to_string(), "an input or output error");
    assert!(matches!(put(&committer, 3, 3), Err(StoreError::Ended)));
    drop(committer);
    assert!(said.recv().is_err(), "nothing follows");
}

#[test]
fn a_file_system_that_is_full_says_so_and_loses_nothing() {
    let mut place = Place::new("full");
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"]);
    if !mount
        .arg(&place.0)
        .output()
        .is_ok_and(|out| out.status.success())
    {
        let reason = "skipped: a small tmpfs cannot be mounted, which takes root";
        writeln!(std::io::stdout(), "{reason}").unwrap();
        return;
    }
    place.1 = true;
    let (mut store, _) = open(&place.0).unwrap();
    let (mut stamp, mut acknowledged) = (0, 0);
    let error = loop {
        stamp += 1;
        let bytes = [stamp as u8; LINE];
        let line = Entry::Line {
            tag: tag(stamp % 64),
            stamp: Stamp(stamp),
            bytes: &bytes,
        };
        assert!(stamp < 1_000, "4 MB are in 512 KiB");
        store.put(&line, stamp).unwrap();
        match store.commit() {
            Ok(tickets) => acknowledged = tickets.last().copied().unwrap_or(acknowledged),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(acknowledged > 50, "{acknowledged}");
    drop(store);
    // There is no room to write the last journal anew: nothing counts yet, and nothing is lost.
    if let Err(error) = open(&place.0) {
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
    }
    let mut larger = Command::new("mount");
    larger.args(["-o", "remount,size=4m"]).arg(&place.0);
    assert!(larger.status().unwrap().success());
    let (store, lines) = open(&place.0).unwrap();
    for nth in 0..64 {
        let kept = (1..=acknowledged).filter(|stamp| stamp % 64 == nth).max();
        assert_eq!(lines.get(&tag(nth)).copied(), kept.map(|stamp| stamp as u8));
    }
    drop(store);
}

#[test]
fn names_of_others_in_the_folder_are_left_alone() {
    let place = Place::new("others");
    std::fs::write(place.0.join("notes.txt"), "mine").unwrap();
    std::fs::write(place.0.join("journal-1"), "mine").unwrap();
    drop(open(&place.0).unwrap());
    let mut folder = Folder::open(&place.0).unwrap();
    assert_eq!(folder.read("notes.txt").unwrap(), b"mine");
    assert_eq!(folder.read("journal-1").unwrap(), b"mine");
}
