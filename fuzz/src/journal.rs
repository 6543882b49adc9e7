//! The files of a durable member: any bytes, any records, and stores that go on behind them.

use crate::dice::Dice;
use rackmem_journal::faulty::FaultyDisk;
use rackmem_journal::{Disk, Limits, Store, StoreError, Wanted};
use rackmem_proto::abd::journal::{Entry, FileHeader, FileKind, Identity, write};
use rackmem_proto::abd::{Layout, Stamp, first_line};
use rackmem_proto::wire::Tag;

const LINE: usize = 64;
const LINES: u64 = 4;
/// Files of one input at most, records of one, and lives of a store.
const MAX: [usize; 3] = [6, 24, 8];

fn wanted() -> Option<Wanted> {
    Some(Wanted {
        rack: 1,
        group: 2,
        layout: Layout::new(LINE as u32, LINES * LINE as u64)?,
        fresh: 3,
    })
}

fn tag(nth: u64) -> Tag {
    Tag(first_line(2).0 + nth * LINE as u64)
}

/// The first byte chooses: files that are bytes of the input, files of records that it decides, or
/// lives of a store whose power fails.
pub fn fuzz(input: &[u8]) {
    let mut dice = Dice::new(input);
    let Some(wanted) = wanted() else {
        return;
    };
    match dice.below(3) {
        0 => {
            let disk = FaultyDisk::new(1);
            put(
                &disk,
                (FileKind::Journal, 1),
                input.get(1..).unwrap_or_default(),
            );
            goes_on(&disk, &wanted);
        }
        1 => decided(&mut dice, &wanted),
        _ => lives(&mut dice, &wanted),
    }
}

fn put(disk: &FaultyDisk, (kind, first): (FileKind, u64), bytes: &[u8]) {
    let name = match kind {
        FileKind::Journal => format!("journal-{first:016x}"),
        FileKind::Checkpoint => format!("checkpoint-{first:016x}"),
    };
    let mut to = disk.clone();
    let made = to.create(&name).and_then(|()| to.sync_names());
    made.expect("a disk without faults");
    disk.damage(&name, |file| *file = bytes.to_vec());
}

/// Whole records with any numbers, and damage here and there.
fn decided(dice: &mut Dice<'_>, wanted: &Wanted) {
    let disk = FaultyDisk::new(1);
    for _ in 0..1 + dice.below(MAX[0]) {
        let kind = dice.pick(&[FileKind::Journal, FileKind::Journal, FileKind::Checkpoint]);
        let first = 1 + dice.below(12) as u64;
        let identity = Identity {
            rack: wanted.rack + u64::from(dice.one_in(16)),
            group: wanted.group,
            layout: wanted.layout,
            store: wanted.fresh + u64::from(dice.one_in(16)),
        };
        let header = FileHeader {
            identity,
            kind,
            first,
        };
        let mut bytes = header.encode().to_vec();
        let (mut number, mut batch) = (first, first);
        for _ in 0..dice.below(MAX[1]) {
            let line = vec![dice.byte(); if dice.one_in(12) { 32 } else { LINE }];
            let entry = match dice.below(8) {
                0 => Entry::Config(dice.word()),
                1 => Entry::End(dice.below(6) as u64),
                _ => Entry::Line {
                    tag: tag(dice.below(LINES as usize + 1) as u64),
                    stamp: Stamp(dice.below(40) as u64),
                    bytes: &line,
                },
            };
            if dice.one_in(3) {
                batch = number;
            }
            let at = (header.seed(), bytes.len() as u64);
            write(&mut bytes, at, (number, batch), &entry);
            number += if dice.one_in(20) { 2 } else { 1 };
        }
        if dice.one_in(2) {
            let at = dice.word() as usize % bytes.len();
            match dice.one_in(2) {
                true => bytes.truncate(at),
                false => bytes[at] ^= 1 << dice.below(8),
            }
        }
        put(&disk, (kind, first), &bytes);
    }
    goes_on(&disk, wanted);
}

/// A store is opened, or refused with a text and left as it is. One that is opened takes a record,
/// and has it and all that it had after the power has failed.
fn goes_on(disk: &FaultyDisk, wanted: &Wanted) {
    let before = disk.files();
    let opened = Store::open(disk.clone(), wanted, Limits::default(), |_, _| ());
    let (mut store, restored) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let refused = matches!(error, StoreError::Damaged { .. } | StoreError::Other { .. });
            assert!(refused, "{error}");
            return assert_eq!(disk.files(), before);
        }
    };
    let mut stamps = restored.replay.stamps;
    let highest = stamps.values().map(|stamp| stamp.0).max().unwrap_or(0);
    let Some(stamp) = highest.checked_add(1).map(Stamp) else {
        return;
    };
    let (tag, bytes) = (tag(0), &[7; LINE][..]);
    let taken = store.put(&Entry::Line { tag, stamp, bytes }, 1u8);
    taken.expect("the store has just been opened");
    assert_eq!(store.commit().expect("a disk without faults"), [1]);
    stamps.insert(tag, stamp);
    drop(store);
    disk.restart();
    let again = Store::<_, ()>::open(disk.clone(), wanted, Limits::default(), |_, _| ());
    let (_, again) = again.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.replay.stamps, stamps);
}

/// What is acknowledged in one life is there in the next one.
fn lives(dice: &mut Dice<'_>, wanted: &Wanted) {
    let disk = FaultyDisk::new(dice.word().into());
    let limits = Limits {
        journal: 512,
        replay: 2048,
        piece: 256,
    };
    let (mut acknowledged, mut stamp) = ([0u64; LINES as usize], 0);
    for _ in 0..MAX[2] {
        let opened = Store::open(disk.clone(), wanted, limits, |_, _| ());
        let (mut store, restored) = opened.unwrap_or_else(|error| panic!("{error}"));
        let mut memory = [0u64; LINES as usize];
        for (nth, kept) in memory.iter_mut().enumerate() {
            let found = restored.replay.stamps.get(&tag(nth as u64));
            *kept = found.map_or(0, |stamp| stamp.0);
            assert!(*kept >= acknowledged[nth], "line {nth}");
        }
        if dice.is_empty() {
            return;
        }
        disk.set(rackmem_journal::faulty::Faults {
            power_at: Some(dice.byte().into()),
            short: dice.one_in(2),
            ..Default::default()
        });
        for _ in 0..dice.below(64) {
            stamp += 1;
            let nth = dice.below(LINES as usize);
            let (tag, bytes) = (tag(nth as u64), &[stamp as u8; LINE][..]);
            let line = Entry::Line {
                tag,
                stamp: Stamp(stamp),
                bytes,
            };
            if store.put(&line, (nth, stamp)).is_err() {
                break;
            }
            if dice.one_in(3) {
                continue;
            }
            let Ok(tickets) = store.commit() else {
                break;
            };
            for (nth, stamp) in tickets {
                acknowledged[nth] = stamp.max(acknowledged[nth]);
                memory[nth] = stamp.max(memory[nth]);
            }
            let lines = |each: &mut dyn FnMut(Tag, Stamp, &[u8])| {
                for (nth, kept) in memory.iter().enumerate().filter(|row| *row.1 > 0) {
                    each(tag_of(nth), Stamp(*kept), &[*kept as u8; LINE]);
                }
            };
            if store.is_long() && store.checkpoint(lines).is_err() {
                break;
            }
        }
        drop(store);
        disk.restart();
    }
}

fn tag_of(nth: usize) -> Tag {
    tag(nth as u64)
}

/// A journal and a checkpoint as they are written, and decisions.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(4);
    let mut seeds: Vec<Vec<u8>> = [64, 256, 1024, 256, 1024]
        .map(|n| std::iter::repeat_with(|| random.u8(..)).take(n).collect())
        .into();
    for (nth, seed) in seeds.iter_mut().enumerate() {
        seed[0] = if nth < 3 { 1 } else { 2 };
    }
    let Some(wanted) = wanted() else {
        return seeds;
    };
    let identity = Identity {
        rack: wanted.rack,
        group: wanted.group,
        layout: wanted.layout,
        store: wanted.fresh,
    };
    let header = FileHeader {
        identity,
        kind: FileKind::Journal,
        first: 1,
    };
    let mut bytes = vec![0];
    bytes.extend(header.encode());
    for number in 1..6 {
        let (tag, line) = (tag(number % LINES), [number as u8; LINE]);
        let line = Entry::Line {
            tag,
            stamp: Stamp(number),
            bytes: &line,
        };
        let at = (header.seed(), bytes.len() as u64 - 1);
        write(&mut bytes, at, (number, number), &line);
    }
    seeds.push(bytes);
    seeds
}
