//! What programs and other processes may give an arena that it cannot use: an error that says what
//! is wrong, and never a fault, a wait without end, or a value that nobody has assigned.

use crate::LONG;
use crate::mapped::{ArenaFile, arenas, read, replace, spec};
use rackmem::bounded::{Arena, ArenaReport, ArenaSlot, ArenaSpec, List, Map, Pointer};
use rackmem::locked::Lock;
use rackmem::{ArenaError, Rack};
use rackmem_proto::bi::{Board, BoardIn, BoardLayout, BoardWords, Presence, Queue, Tick};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Words of an arena's file, as another process loads and stores them.
struct Words(File);

impl Words {
    fn of(file: &ArenaFile) -> Self {
        let file = File::options().read(true).write(true).open(&file.0);
        Words(file.unwrap())
    }
}

impl BoardWords for Words {
    fn load(&self, word: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, word * 8).unwrap();
        u64::from_ne_bytes(bytes)
    }

    fn store(&mut self, word: u64, value: u64) {
        self.0.write_all_at(&value.to_ne_bytes(), word * 8).unwrap();
    }
}

/// A domain of node 1 that no thread quiesces: it has joined, and its clock stood so many ticks
/// ago.
fn another(rack: &Rack, file: &ArenaFile, spec: &ArenaSpec, room: u64) -> (BoardIn<Words>, u32) {
    drop(Arena::open(&rack.node(1), spec).unwrap());
    let mut board = BoardIn {
        layout: BoardLayout { domains: 2, room },
        me: 1,
        words: Words::of(file),
    };
    let (life, now) = (board.row(1).incarnation + 1, board.row(0).clock);
    board.join(life, now.minus(1));
    board.set_presence(life, Presence::Running);
    (board, life)
}

#[test]
fn files_specs_and_pointers_that_are_none_are_refused() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("bad"));
    let (node, good) = (rack.node(0), spec(&file, LONG));
    let open = |spec: &ArenaSpec| Arena::open(&node, spec).map(drop).unwrap_err();
    assert!(matches!(
        open(&good),
        ArenaError::NoFile { tried: "open", .. }
    ));
    let bad = |spec: ArenaSpec| matches!(open(&spec), ArenaError::BadSpec { .. });
    assert!(bad(good.clone().bound(Duration::from_millis(4))));
    assert!(bad(good.clone().bound(Duration::from_secs(3600))));
    assert!(bad(good.clone().ring(1)) && bad(good.clone().ring(5000)));
    assert!(bad(ArenaSpec::new(&file.0, 64 << 10)) && bad(ArenaSpec::new(&file.0, u64::MAX)));

    std::fs::write(&file.0, vec![7; 1 << 20]).unwrap();
    assert!(matches!(open(&good), ArenaError::NoArena { .. }));
    assert_eq!(
        Arena::create(&node, &good).map(drop),
        Err(ArenaError::IsThere)
    );
    std::fs::write(&file.0, [0; 4096]).unwrap();
    assert!(matches!(open(&good), ArenaError::NoFile { os: 0, .. }));
    // What is there and empty becomes one: a device, say.
    std::fs::write(&file.0, vec![0; 1 << 20]).unwrap();
    let arena = Arena::create(&node, &good).unwrap();
    assert_eq!(open(&good), ArenaError::AttachedTwice { node: 0 });
    assert_eq!(
        Arena::create(&rack.node(1), &good).map(drop),
        Err(ArenaError::IsThere)
    );
    let other = Rack::local(2).unwrap();
    let error = Arena::open(&other.node(0), &good).map(drop).unwrap_err();
    assert!(matches!(error, ArenaError::OtherRack { .. }));
    let shape = |spec: ArenaSpec| match open(&spec) {
        ArenaError::OtherShape { what, .. } => what,
        other => panic!("{other}"),
    };
    assert_eq!(shape(spec(&file, LONG * 2)), "nanoseconds of a tick");
    assert_eq!(shape(good.clone().ring(7)), "entries of a ring");
    // It leaves, and may come again.
    drop(arena);
    let arena = Arena::open(&node, &good).unwrap();
    let lock = Lock::create(&node, ()).unwrap();

    let slot: ArenaSlot<u64> = arena.slot(0).unwrap();
    replace(&arena, &lock, slot, &5).unwrap();
    assert!(matches!(
        arena.slot::<u64>(64),
        Err(ArenaError::BadPointer { .. })
    ));
    let section = arena.enter().unwrap();
    let pointer = section.load(slot).unwrap().unwrap();
    // In front of all objects, in a slab that nobody has used, and behind all.
    let line = pointer.to_word() >> 16;
    for line in [1, 8, line + 1024, 1 << 14, (1 << 48) - 1] {
        let forged = Pointer::<u64>::from_word(line << 16 | 3).unwrap();
        let error = section.read(forged).unwrap_err();
        assert!(matches!(error, ArenaError::BadPointer { .. }), "{line:#x}");
        let slot: ArenaSlot<u64> = forged.slot(0).unwrap();
        assert!(section.load(slot).is_err() || line & 1023 == (pointer.to_word() >> 16) & 1023);
        let mut writer = arena.writer(&lock).unwrap();
        assert!(writer.read(forged).is_err() && writer.free(forged).is_err());
        assert!(writer.set(forged, 0, 1).is_err() && writer.lead(slot, Some(forged)).is_err());
    }
    // The second line of an object of several.
    let long: ArenaSlot<[u64; 40]> = arena.slot(1).unwrap();
    replace(&arena, &lock, long, &[6; 40]).unwrap();
    let middle = section.load(long).unwrap().unwrap().to_word() + (1 << 16);
    let middle = Pointer::<[u64; 40]>::from_word(middle).unwrap();
    assert!(matches!(
        section.read(middle),
        Err(ArenaError::BadPointer { len: 320, .. })
    ));
    let longer = Pointer::<[u64; 9]>::from_word(pointer.to_word()).unwrap();
    assert!(matches!(
        section.read(longer),
        Err(ArenaError::BadPointer { len: 72, .. })
    ));
    section.finish().unwrap();

    let mut writer = arena.writer(&lock).unwrap();
    let large = writer.alloc(&[0u64; 8193]).map(drop);
    assert!(matches!(large, Err(ArenaError::ObjectTooLarge { .. })));
    let full = loop {
        match writer.alloc(&[0u64; 1024]) {
            Ok(fresh) => drop(fresh),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, ArenaError::ArenaFull { .. }));

    // Of a first line of which one bit is another one nothing is believed.
    let raw = File::options().read(true).write(true).open(&file.0);
    let raw = raw.unwrap();
    let mut byte = [0];
    raw.read_exact_at(&mut byte, 20).unwrap();
    raw.write_all_at(&[byte[0] ^ 1], 20).unwrap();
    let damaged = Arena::open(&rack.node(1), &good).map(drop);
    let why = "its first line is damaged";
    assert_eq!(damaged, Err(ArenaError::NoArena { why }));
}

/// Far more is modified than a ring tells of: what was missed may be anything.
#[test]
fn a_node_that_has_missed_news_drops_everything() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("missed"));
    let (all, lock) = arenas(&rack, &spec(&file, LONG).ring(4));
    let slots = (0..16).map(|nth| all[0].slot::<u64>(nth).unwrap());
    let slots: Vec<ArenaSlot<u64>> = slots.collect();
    let mut writer = all[0].writer(&lock).unwrap();
    for round in 1..=2 {
        for slot in &slots {
            let new = writer.alloc(&round).unwrap();
            writer.assign(*slot, new).unwrap();
        }
        let before = all[1].counts();
        all[1].quiesce().unwrap();
        assert!(all[1].counts().everything > before.everything);
        for slot in &slots {
            assert_eq!(read(&all[1], *slot), Some(Some(round)));
        }
    }
    // What a ring has room for is dropped by name.
    let new = writer.alloc(&3).unwrap();
    writer.assign(slots[7], new).unwrap();
    let before = all[1].counts();
    all[1].quiesce().unwrap();
    let after = all[1].counts();
    assert_eq!(after.everything, before.everything);
    assert!(after.dropped > before.dropped);
    assert_eq!(read(&all[1], slots[7]), Some(Some(3)));
}

#[test]
fn a_clock_that_is_ahead_is_followed_and_no_section_spans_the_jump() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("clock"));
    let spec = spec(&file, LONG);
    let arena = Arena::create(&rack.node(0), &spec).unwrap();
    let lock = Lock::create(&rack.node(0), ()).unwrap();
    let slot: ArenaSlot<u64> = arena.slot(0).unwrap();
    replace(&arena, &lock, slot, &1).unwrap();
    let (mut there, _) = another(&rack, &file, &spec, 4096);
    let section = arena.enter().unwrap();
    assert_eq!(section.get(slot), Ok(Some(1)));
    let now = there.row(0).clock;
    there.show(now.plus(1000));
    arena.quiesce().unwrap();
    assert_eq!(arena.counts().jumps, 1);
    assert!(matches!(section.finish(), Err(ArenaError::Late { .. })));
    assert_eq!(read(&arena, slot), Some(Some(1)));
    // Clocks never fall, and this one is not behind any more.
    arena.quiesce().unwrap();
    assert!(there.row(0).clock >= now.plus(1000));
    assert_eq!(arena.counts().jumps, 1);

    // One that stands at the end of time would have nothing be late any more.
    let shown = there.row(1).clock;
    there.show(Tick(u64::MAX));
    let skewed = |error| matches!(error, ArenaError::ClockSkew { .. });
    assert!(skewed(arena.quiesce().unwrap_err()));
    let joins = Arena::open(&rack.node(1), &spec).map(drop);
    assert!(skewed(joins.unwrap_err()));
    assert_eq!(arena.counts().jumps, 1);
    there.show(shown);
    arena.quiesce().unwrap();
    assert_eq!(read(&arena, slot), Some(Some(1)));
}

#[test]
fn a_ring_that_is_full_names_the_node_that_is_late() {
    let rack = Rack::builder(2).patience(Duration::from_millis(200));
    let (rack, file) = (rack.build().unwrap(), ArenaFile::new("full"));
    let spec = spec(&file, Duration::from_millis(50)).ring(2);
    let arena = Arena::create(&rack.node(0), &spec).unwrap();
    let lock = Lock::create(&rack.node(0), ()).unwrap();
    let slot: ArenaSlot<u64> = arena.slot(0).unwrap();
    let (mut there, life) = another(&rack, &file, &spec, 2);
    let mut writer = arena.writer(&lock).unwrap();
    let mut old = Vec::new();
    for value in 0..4u64 {
        let new = writer.alloc(&value).unwrap();
        old.extend(writer.assign(slot, new).unwrap());
    }
    assert_eq!((writer.free(old[0]), writer.free(old[1])), (Ok(()), Ok(())));
    let full = Err(ArenaError::RingFull { slowest: 1 });
    assert_eq!(writer.free(old[2]), full);
    // It is where it was: whoever reads it reads it.
    assert_eq!(writer.read(old[2]), Ok(2));
    assert_eq!((arena.counts().waiting, arena.counts().reused), (2, 0));
    // It quiesces at last, and then leaves.
    let now = there.row(0).clock.plus(10);
    for queue in Queue::BOTH {
        there.tell(queue, now);
    }
    let end = Instant::now() + LONG;
    while writer.free(old[2]).is_err() {
        assert!(Instant::now() < end, "{:?}", arena.domains());
    }
    there.set_presence(life, Presence::Absent);
    while arena.counts().waiting > 0 {
        assert!(Instant::now() < end, "{:?}", arena.domains());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(arena.counts().reused, 3);
}

/// A thread that is held back in its section finds what was put where its pointer led. That is no
/// error of the program.
#[test]
fn a_section_that_has_lasted_too_long_says_that_and_not_that_pointers_are_bad() {
    let (rack, file) = (Rack::local(1).unwrap(), ArenaFile::new("held"));
    let arena = Arena::create(&rack.node(0), &spec(&file, Duration::from_millis(5))).unwrap();
    let forged = Pointer::<u64>::from_word(1 << 16).unwrap();
    let bytes = Pointer::<[u8]>::from_word(1 << 16).unwrap();
    let end = Instant::now() + LONG;
    let section = loop {
        assert!(Instant::now() < end);
        match arena.enter() {
            Ok(section) => match section.read(forged) {
                Err(ArenaError::BadPointer { .. }) => break section,
                other => assert!(matches!(other, Err(ArenaError::Late { .. }))),
            },
            Err(error) => assert!(matches!(error, ArenaError::Late { .. })),
        }
    };
    std::thread::sleep(3 * arena.longest_section());
    let late = |error| matches!(error, ArenaError::Late { .. });
    assert!(late(section.read(forged).unwrap_err()));
    assert!(late(section.read_bytes(bytes, 0, &mut [0; 8]).unwrap_err()));
    let slot: ArenaSlot<u64> = ArenaSlot::from_word(1 << 40);
    assert!(late(section.load(slot).unwrap_err()));
}

/// Links that lead back to the first: nobody follows them without end.
#[test]
fn a_list_that_goes_round_is_an_error() {
    let (rack, file) = (Rack::local(1).unwrap(), ArenaFile::new("round"));
    let arena = Arena::create(&rack.node(0), &spec(&file, LONG)).unwrap();
    let lock = Lock::create(&rack.node(0), ()).unwrap();
    let list: List<u64, u64> = List::at(&arena, 0).unwrap();
    let mut writer = arena.writer(&lock).unwrap();
    for key in 1..=2 {
        assert_eq!(list.insert(&mut writer, &key, &key), Ok(None));
    }
    // A link begins with the word that leads to the next one.
    let link = |writer: &rackmem::bounded::ArenaWriter<'_, ()>, slot| {
        let found: Option<Pointer<[u64; 3]>> = writer.load(slot).unwrap();
        found.unwrap()
    };
    let first = link(&writer, arena.slot(0).unwrap());
    let second = link(&writer, first.slot(0).unwrap());
    writer.lead(second.slot(0).unwrap(), Some(first)).unwrap();
    let bad = |error| matches!(error, ArenaError::BadPointer { .. });
    assert!(bad(list.insert(&mut writer, &3, &3).unwrap_err()));
    assert!(bad(list.remove(&mut writer, &3).unwrap_err()));
    assert!(bad(list.get(&3).unwrap_err()) && bad(list.entries().unwrap_err()));
    assert_eq!(list.get(&2), Ok(Some(2)));
}

/// Words that another process has stored anywhere but in the first line: whatever they are, each
/// call comes back.
#[test]
fn nonsense_of_another_process_is_no_fault_and_holds_nothing_up_for_ever() {
    for seed in 0..8 {
        let mut random = fastrand::Rng::with_seed(seed);
        let rack = Rack::builder(2).patience(Duration::from_millis(20));
        let (rack, file) = (rack.build().unwrap(), ArenaFile::new("nonsense"));
        let spec = spec(&file, Duration::from_millis(20)).ring(8);
        let (mut all, lock) = arenas(&rack, &spec);
        let slot: ArenaSlot<u64> = all[0].slot(0).unwrap();
        let list: List<u64, u64> = List::at(&all[0], 1).unwrap();
        let mut writer = all[0].writer(&lock).unwrap();
        let map: Map<u64, u64> = Map::create(&all[0], &mut writer, 2, 8).unwrap();
        for key in 0..20 {
            let _ = list.insert(&mut writer, &key, &key);
            let _ = map.insert(&mut writer, &key, &key);
        }
        drop(writer);
        let mut words = Words::of(&file);
        for _ in 0..30 {
            // Rows and rings are in front, and slots and what is free behind them.
            for _ in 0..200 {
                let most = [200, 4000, (1 << 17) - 8][random.usize(..3)];
                let at = 8 + random.u64(..most);
                let is = words.load(8 + random.u64(..4000));
                let some = [
                    0,
                    1,
                    is,
                    is ^ 1 << random.u32(..64),
                    u64::MAX,
                    random.u64(..),
                ];
                words.store(at, some[random.usize(..some.len())]);
            }
            let key = random.u64(..30);
            for arena in &all {
                let _ = arena.quiesce();
                let _ = arena.enter().and_then(|section| {
                    let _ = section.get(slot);
                    section.finish()
                });
                let _ = (
                    arena.reclaim(),
                    arena.synchronize(),
                    arena.domains(),
                    arena.counts(),
                );
                let _ = replace(arena, &lock, slot, &key);
            }
            let _ = (list.get(&key), list.entries(), map.get(&key));
            let _ = Map::<u64, u64>::open(&all[0], 2);
            if let Ok(mut writer) = all[0].writer(&lock) {
                let _ = list.insert(&mut writer, &key, &key);
                let _ = map.remove(&mut writer, &key);
            }
            let report = ArenaReport::of(&file.0).map(|report| report.slowest());
            assert!(report.is_ok(), "the first line is whole");
        }
        drop(all.pop());
        let _ = Arena::open(&rack.node(1), &spec);
    }
}
