//! What was acknowledged is there after a restart, wherever the power fails; or the member does not
//! count, and says why.

use rackmem_journal::faulty::{Faults, FaultyDisk};
use rackmem_journal::{Limits, Restored, Store, StoreError, Wanted};
use rackmem_proto::abd::journal::{BLOCK, Entry, Lost};
use rackmem_proto::abd::{Layout, Stamp, first_line};
use rackmem_proto::wire::Tag;
use std::collections::BTreeMap;

const LINE: usize = 256;
const LINES: u64 = 8;
const LIMITS: Limits = Limits {
    journal: 12 << 10,
    replay: 32 << 10,
    piece: 1 << 10,
};

fn wanted() -> Wanted {
    Wanted {
        rack: 7,
        group: 3,
        layout: Layout::new(LINE as u32, LINES * LINE as u64).unwrap(),
        fresh: 0xfeed,
    }
}

/// A line's content says its stamp.
fn content(stamp: u64) -> Vec<u8> {
    (0..LINE)
        .map(|at| (stamp as usize * 31 + at) as u8)
        .collect()
}

type Lines = BTreeMap<Tag, Vec<u8>>;

/// What a test knows a record by: the line and its stamp, or the config.
type Ticket = (u64, u64);

fn open(disk: &FaultyDisk) -> Result<(Store<FaultyDisk, Ticket>, Restored, Lines), StoreError> {
    let mut lines = Lines::new();
    let apply = |tag: Tag, bytes: &[u8]| {
        lines.insert(tag, bytes.to_vec());
    };
    let (store, restored) = Store::open(disk.clone(), &wanted(), LIMITS, apply)?;
    Ok((store, restored, lines))
}

fn tag(nth: u64) -> Tag {
    Tag(first_line(3).0 + nth * LINE as u64)
}

/// A member: what it has in memory, what it has acknowledged, and in which order.
#[derive(Default)]
struct Run {
    memory: BTreeMap<u64, u64>,
    acknowledged: BTreeMap<u64, u64>,
    config: u64,
    batches: Vec<Vec<Ticket>>,
    stamp: u64,
}

/// No line: a config.
const CONFIG: u64 = u64::MAX;

impl Run {
    fn acknowledge(&mut self, tickets: Vec<Ticket>) {
        for (nth, stamp) in &tickets {
            if *nth == CONFIG {
                self.config = self.config.max(*stamp);
                continue;
            }
            for at in [&mut self.memory, &mut self.acknowledged] {
                let known = at.entry(*nth).or_default();
                *known = stamp.max(known).to_owned();
            }
        }
        self.batches.push(tickets);
    }

    /// Batches of records until something fails.
    fn go(&mut self, disk: &FaultyDisk, batches: u64, seed: u64) -> Result<(), StoreError> {
        let (mut store, restored, _) = open(disk)?;
        // What was not acknowledged and is there has to stay: others may have read it.
        for (tag, stamp) in &restored.replay.stamps {
            let nth = (tag.0 - first_line(3).0) / LINE as u64;
            self.memory.insert(nth, stamp.0);
        }
        let mut draw = seed;
        for _ in 0..batches {
            draw = draw.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(99);
            for nth in 0..1 + (draw >> 40) % 3 {
                self.stamp += 1;
                // Two of a line, the later stamp first: members sync in any order.
                let stamp = (self.stamp + 1) ^ 1;
                let nth = (draw >> 33).wrapping_add(nth) % LINES;
                let bytes = content(stamp);
                let (tag, stamped) = (tag(nth), Stamp(stamp));
                let entry = Entry::Line {
                    tag,
                    stamp: stamped,
                    bytes: &bytes,
                };
                store.put(&entry, (nth, stamp))?;
            }
            if draw >> 61 == 0 {
                let config = self.stamp as u32;
                store.put(&Entry::Config(config), (CONFIG, config.into()))?;
            }
            let tickets = store.commit()?;
            self.acknowledge(tickets);
            if store.is_long() {
                let memory = self.memory.clone();
                store.checkpoint(|each| {
                    for (nth, stamp) in &memory {
                        each(tag(*nth), Stamp(*stamp), &content(*stamp));
                    }
                })?;
            }
        }
        Ok(())
    }

    /// What was acknowledged is there, or something later.
    fn holds(&self, restored: &Restored, lines: &Lines) {
        for (nth, stamp) in &self.acknowledged {
            let kept = restored.replay.stamps.get(&tag(*nth)).copied();
            let kept = kept.unwrap_or_default();
            assert!(kept >= Stamp(*stamp), "line {nth}: {kept:?}, not {stamp}");
        }
        for (tag, stamp) in &restored.replay.stamps {
            assert_eq!(lines[tag], content(stamp.0), "{tag:?} under {stamp:?}");
        }
        assert!(u64::from(restored.replay.config) >= self.config);
    }
}

#[test]
fn what_was_acknowledged_is_there_wherever_the_power_fails() {
    let disk = FaultyDisk::new(1);
    Run::default().go(&disk, 60, 5).unwrap();
    let (steps, _) = disk.steps();
    assert!(
        disk.files()
            .iter()
            .any(|file| file.0.starts_with("checkpoint"))
    );
    for at in 0..steps {
        for seed in 0..4 {
            let disk = FaultyDisk::new(at << 8 | seed);
            disk.set(Faults {
                power_at: Some(at),
                short: seed % 2 == 1,
                ..Faults::default()
            });
            let mut run = Run::default();
            let ended = run.go(&disk, 60, 5);
            assert!(ended.is_err() || seed % 2 == 0, "step {at}");
            // Three lives: the second one is cut off too.
            for life in 0..3 {
                disk.restart();
                let (_, restored, lines) = open(&disk).unwrap_or_else(|error| {
                    panic!("step {at}, seed {seed}, life {life}: {error}");
                });
                run.holds(&restored, &lines);
                disk.set(Faults {
                    power_at: Some(at % 17 + life),
                    ..Faults::default()
                });
                let _ = run.go(&disk, 20, at + life);
            }
        }
    }
}

#[test]
fn a_sync_that_has_failed_ends_the_store_and_nothing_of_it_is_believed() {
    let disk = FaultyDisk::new(1);
    Run::default().go(&disk, 40, 5).unwrap();
    let (_, syncs) = disk.steps();
    for nth in 1..=syncs {
        let disk = FaultyDisk::new(nth);
        disk.set(Faults {
            sync_fails_at: Some(nth),
            ..Faults::default()
        });
        let mut run = Run::default();
        let error = run.go(&disk, 40, 5).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert!(error.to_string().contains("make it durable"), "{error}");
        // The process starts again without a power failure, and reads what is in the page cache.
        // What it counts then has to outlive one.
        disk.set(Faults::default());
        let (store, restored, lines) = open(&disk).unwrap();
        run.holds(&restored, &lines);
        let counted = restored.replay;
        drop(store);
        disk.restart();
        let (_, restored, _) = open(&disk).unwrap();
        assert_eq!(restored.replay.stamps, counted.stamps, "sync {nth}");
    }
}

#[test]
fn an_ended_store_takes_and_acknowledges_nothing() {
    let disk = FaultyDisk::new(1);
    let (mut store, _, _) = open(&disk).unwrap();
    disk.set(Faults {
        sync_fails_at: Some(1),
        ..Faults::default()
    });
    store.put(&Entry::Config(1), (CONFIG, 1)).unwrap();
    assert!(store.commit().is_err());
    assert!(matches!(store.commit(), Err(StoreError::Ended)));
    let put = store.put(&Entry::Config(2), (CONFIG, 2));
    assert!(matches!(put, Err(StoreError::Ended)));
    assert!(matches!(store.checkpoint(|_| ()), Err(StoreError::Ended)));
}

#[test]
fn a_full_disk_is_said_and_loses_nothing() {
    for room in (200..12_000).step_by(333) {
        let disk = FaultyDisk::new(room as u64);
        disk.set(Faults {
            room: Some(room),
            ..Faults::default()
        });
        let mut run = Run::default();
        let error = run.go(&disk, 200, 5).unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{room}: {error}");
        disk.restart();
        let (_, restored, lines) = open(&disk).unwrap();
        run.holds(&restored, &lines);
    }
}

#[test]
fn a_checkpoint_without_room_is_put_off() {
    let disk = FaultyDisk::new(1);
    let mut run = Run::default();
    run.go(&disk, 12, 5).unwrap();
    let (mut store, _, _) = open(&disk).unwrap();
    let used: usize = disk.files().iter().map(|file| file.1).sum();
    disk.set(Faults {
        room: Some(used + 2 * BLOCK),
        ..Faults::default()
    });
    let memory = run.memory.clone();
    // Longer than the batch that has room behind it.
    let lines = |each: &mut dyn FnMut(Tag, Stamp, &[u8])| {
        for (nth, stamp) in memory.iter().cycle().take(4 * LINES as usize) {
            each(tag(*nth), Stamp(*stamp), &content(*stamp));
        }
    };
    let error = store.checkpoint(lines).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    store.put(&Entry::Config(99), (CONFIG, 99)).unwrap();
    assert_eq!(store.commit().unwrap(), [(CONFIG, 99)]);
    disk.set(Faults::default());
    store.checkpoint(lines).unwrap();
    drop(store);
    disk.restart();
    let (_, restored, lines) = open(&disk).unwrap();
    assert_eq!(restored.replay.config, 99);
    run.holds(&restored, &lines);
}

#[test]
fn a_disk_that_lies_loses_a_tail_or_is_found_out() {
    let disk = FaultyDisk::new(1);
    Run::default().go(&disk, 40, 5).unwrap();
    let (steps, syncs) = disk.steps();
    let (mut lost, mut refused) = (0, 0);
    for (nth, seed) in (1..=syncs).flat_map(|nth| (0..6).map(move |seed| (nth, seed))) {
        let disk = FaultyDisk::new(nth * 77 + seed);
        disk.set(Faults {
            sync_lies_at: Some(nth),
            power_at: Some(steps * (seed + 1) / 7),
            ..Faults::default()
        });
        let mut run = Run::default();
        let _ = run.go(&disk, 40, 5);
        disk.restart();
        match open(&disk) {
            // Whole batches from one on are missing, never one in the middle.
            Ok((_, restored, _)) => {
                let has = |(nth, stamp): &Ticket| match *nth {
                    CONFIG => u64::from(restored.replay.config) >= *stamp,
                    nth => restored.replay.stamps.get(&tag(nth)) >= Some(&Stamp(*stamp)),
                };
                let whole = |batch: &&Vec<Ticket>| batch.iter().all(has);
                let kept = run.batches.iter().take_while(whole).count();
                let mut later = run.batches.iter().skip(kept + 1).flatten();
                // What comes later and is there may be so by an earlier record's stamp.
                let highest = run.batches[..kept].iter().flatten().map(|ticket| ticket.1);
                let highest = highest.max().unwrap_or(0) + 2;
                assert!(
                    !later.any(|ticket| has(ticket) && ticket.1 > highest),
                    "{nth} {seed}"
                );
                lost += usize::from(kept < run.batches.len());
            }
            Err(StoreError::Damaged { .. }) => refused += 1,
            Err(error) => panic!("sync {nth}, seed {seed}: {error}"),
        }
    }
    assert!(lost > 0 && refused > 0, "{lost} {refused}");
}

#[test]
fn damage_is_refused_by_file_and_offset_or_nothing_is_lost() {
    let disk = FaultyDisk::new(1);
    let mut run = Run::default();
    run.go(&disk, 60, 5).unwrap();
    disk.restart();
    let mut refused = 0;
    for (name, len) in disk.files() {
        for bit in (0..len * 8).step_by(len / 40 + 1) {
            disk.damage(&name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
            // It is a copy that is opened: opening writes.
            let copy = copied(&disk);
            match open(&copy) {
                Ok((_, restored, _)) => {
                    // The last batch is as one that was cut off: nothing but its damage says that
                    // it was ever durable.
                    let batches = run.batches.len() - 1;
                    let has = |(nth, stamp): &Ticket| match *nth {
                        CONFIG => u64::from(restored.replay.config) >= *stamp,
                        nth => restored.replay.stamps[&tag(nth)] >= Stamp(*stamp),
                    };
                    assert!(
                        run.batches[..batches].iter().flatten().all(has),
                        "{name} {bit}"
                    );
                }
                Err(error @ StoreError::Damaged { .. }) => {
                    let text = error.to_string();
                    assert!(text.contains("replace this member"), "{text}");
                    refused += 1;
                }
                Err(other) => panic!("{name}, bit {bit}: {other}"),
            }
            disk.damage(&name, |bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        }
    }
    assert!(refused > 20, "{refused}");
}

fn copied(disk: &FaultyDisk) -> FaultyDisk {
    use rackmem_journal::Disk;
    let (mut from, mut to) = (disk.clone(), FaultyDisk::new(9));
    for (name, _) in disk.files() {
        let bytes = from.read(&name).unwrap();
        to.create(&name).unwrap();
        to.damage(&name, |file| *file = bytes);
    }
    to.sync_names().unwrap();
    to
}

#[test]
fn a_store_of_another_rack_group_or_line_is_refused_and_left_as_it_is() {
    let disk = FaultyDisk::new(1);
    Run::default().go(&disk, 5, 5).unwrap();
    let before = disk.files();
    let mut others = [wanted(); 3];
    others[0].rack += 1;
    others[1].group += 1;
    others[2].layout = Layout::new(512, LINES * LINE as u64).unwrap();
    for other in others {
        let opened = Store::<_, ()>::open(disk.clone(), &other, LIMITS, |_, _| ());
        let error = opened.map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Other { .. }), "{error}");
    }
    assert_eq!(disk.files(), before);
}

#[test]
fn a_file_that_is_gone_is_missed() {
    let disk = FaultyDisk::new(1);
    Run::default().go(&disk, 8, 5).unwrap();
    let journals = |file: &&(String, usize)| file.0.starts_with("journal");
    let files = disk.files();
    let names: Vec<&String> = files.iter().filter(journals).map(|file| &file.0).collect();
    assert!(names.len() > 1, "{names:?}");
    // The last one's loss shows only if there is another one behind it.
    for name in &names[..names.len() - 1] {
        use rackmem_journal::Disk;
        let mut copy = copied(&disk);
        copy.remove(name).unwrap();
        let error = open(&copy).map(|_| ()).unwrap_err();
        let missing = matches!(
            error,
            StoreError::Damaged {
                lost: Lost::Missing { .. },
                ..
            }
        );
        assert!(missing, "{name}: {error}");
    }
}
