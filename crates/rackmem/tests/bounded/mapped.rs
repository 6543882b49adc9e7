//! Arenas: memory that nodes have mapped, with a cache of its own for each node.

use crate::LONG;
use rackmem::bounded::{Arena, ArenaSlot, ArenaSpec, CacheOps, List, Map, Pointer, Tracking};
use rackmem::locked::Lock;
use rackmem::{ArenaError, Rack};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A file in memory that goes with this value.
pub struct ArenaFile(pub PathBuf);

impl ArenaFile {
    pub fn new(name: &str) -> Self {
        let shm = PathBuf::from("/dev/shm");
        let folder = if shm.is_dir() {
            shm
        } else {
            std::env::temp_dir()
        };
        let path = folder.join(format!("rackmem-arena-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        ArenaFile(path)
    }
}

impl Drop for ArenaFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A folder with the members of a rack of two processes, that goes with this value.
pub struct Members(pub PathBuf);

impl Members {
    /// With what the rack is described by.
    pub fn new(name: &str, lease: Duration) -> (Self, String) {
        let name = format!("rackmem-arenas-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let addresses = rackmem_hosts::addresses(2);
        let text = format!(
            "fabric = \"shm\"\nnodes = [\"{}\", \"{}\"]\nmembership = \"dir:{}\"\n\
             memory = {}\ncache = {}\npatience = \"{}ms\"\nlease = \"{}ms\"\n",
            addresses[0],
            addresses[1],
            folder.display(),
            64 << 20,
            1 << 20,
            LONG.as_millis(),
            lease.as_millis(),
        );
        (Members(folder), text)
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn spec(file: &ArenaFile, bound: Duration) -> ArenaSpec {
    ArenaSpec::new(&file.0, 1 << 20).bound(bound).emulated()
}

/// An arena at each node of a rack, and its writers' lock.
pub fn arenas(rack: &Rack, spec: &ArenaSpec) -> (Vec<Arena>, Lock) {
    let first = Arena::create(&rack.node(0), spec).unwrap();
    let others = rack.nodes()[1..].iter();
    let others = others.map(|node| Arena::open(node, spec).unwrap());
    let all = std::iter::once(first).chain(others).collect();
    (all, Lock::create(&rack.node(0), ()).unwrap())
}

/// Puts a new object in place and frees the one before.
pub fn replace<T: rackmem::Value>(
    arena: &Arena,
    lock: &Lock,
    slot: ArenaSlot<T>,
    value: &T,
) -> Result<(), ArenaError> {
    let mut writer = arena.writer(lock)?;
    let new = writer.alloc(value)?;
    match writer.assign(slot, new)? {
        Some(old) => writer.free(old),
        None => Ok(()),
    }
}

/// An object in a section of its own; none where the machine was too slow for the bound.
pub fn read<T: rackmem::Value>(arena: &Arena, slot: ArenaSlot<T>) -> Option<Option<T>> {
    let once = || {
        let section = arena.enter()?;
        let value = section.get(slot)?;
        section.finish()?;
        Ok(value)
    };
    match once() {
        Ok(value) => Some(value),
        Err(ArenaError::Late { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_others_assign_is_old_until_it_is_dropped_and_own_writes_are_seen() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("old"));
    let (all, lock) = arenas(&rack, &spec(&file, LONG));
    let slot: ArenaSlot<[u64; 20]> = all[0].slot(3).unwrap();
    assert_eq!(read(&all[1], slot), Some(None));
    replace(&all[0], &lock, slot, &[1; 20]).unwrap();
    assert_eq!(read(&all[0], slot), Some(Some([1; 20])));
    // Within the bound nothing is what was promised; lazily, and on demand, there is something.
    assert_eq!(read(&all[1], slot), Some(None));
    let section = all[1].enter().unwrap();
    assert_eq!(section.get(slot).unwrap(), None);
    let found = section.lookup_lazily(|section| section.get(slot));
    assert_eq!(found.unwrap(), Some([1; 20]));
    section.finish().unwrap();
    replace(&all[1], &lock, slot, &[2; 20]).unwrap();
    assert_eq!(read(&all[1], slot), Some(Some([2; 20])));
    assert_eq!(read(&all[0], slot), Some(Some([1; 20])));
    all[0].quiesce().unwrap();
    assert_eq!(read(&all[0], slot), Some(Some([2; 20])));
    // A writer sees what there is, with no quiescence.
    replace(&all[0], &lock, slot, &[3; 20]).unwrap();
    assert_eq!(read(&all[0], slot), Some(Some([3; 20])));
    let mut writer = all[1].writer(&lock).unwrap();
    assert_eq!(writer.get(slot).unwrap(), Some([3; 20]));
    let pointer = writer.load(slot).unwrap().unwrap();
    writer.set(pointer, 8, 9).unwrap();
    drop(writer);
    assert_eq!(read(&all[1], slot).unwrap().unwrap()[..3], [3, 9, 3]);
    assert_eq!(read(&all[0], slot), Some(Some([3; 20])));
    all[0].quiesce().unwrap();
    assert_eq!(read(&all[0], slot).unwrap().unwrap()[..3], [3, 9, 3]);
}

/// Pointers of one object in another, and a pointer that is led elsewhere.
#[test]
fn objects_hold_pointers() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("list"));
    let (all, lock) = arenas(&rack, &spec(&file, LONG));
    let head: ArenaSlot<[u64; 2]> = all[0].slot(0).unwrap();
    let mut writer = all[0].writer(&lock).unwrap();
    for value in 1..=3u64 {
        let next = writer.load(head).unwrap().map_or(0, Pointer::to_word);
        let new = writer.alloc(&[value, next]).unwrap();
        writer.assign(head, new).unwrap();
    }
    all[1].quiesce().unwrap();
    let values = |arena: &Arena| {
        let section = arena.enter().unwrap();
        let mut at = section.load(head).unwrap();
        let mut values = Vec::new();
        while let Some(pointer) = at {
            let [value, next] = section.read(pointer).unwrap();
            values.push(value);
            at = Pointer::from_word(next);
        }
        section.finish().unwrap();
        values
    };
    assert_eq!(values(&all[1]), [3, 2, 1]);
    // The second one leaves.
    let first = writer.load(head).unwrap().unwrap();
    let next: ArenaSlot<[u64; 2]> = first.slot(8).unwrap();
    let second = writer.load(next).unwrap().unwrap();
    let third = Pointer::from_word(writer.read(second).unwrap()[1]);
    assert_eq!(writer.lead(next, third).unwrap(), Some(second));
    writer.free(second).unwrap();
    assert_eq!(
        (values(&all[0]), values(&all[1])),
        (vec![3, 1], vec![3, 2, 1])
    );
    all[1].quiesce().unwrap();
    assert_eq!(values(&all[1]), [3, 1]);
    assert!(first.slot::<u64>(16).is_none() && first.slot::<u64>(4).is_none());
}

/// What nobody is told of is there until the program drops it.
#[test]
fn own_objects_are_dropped_by_the_program() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("own"));
    let (all, lock) = arenas(&rack, &spec(&file, LONG));
    let slot: ArenaSlot<u64> = all[0].slot(0).unwrap();
    replace(&all[0], &lock, slot, &1).unwrap();
    let holder: ArenaSlot<[u64; 1]> = all[0].slot(1).unwrap();
    replace(&all[0], &lock, holder, &[0]).unwrap();
    all[1].quiesce().unwrap();
    assert_eq!(read(&all[1], slot), Some(Some(1)));
    let object = all[1].enter().unwrap().load(holder).unwrap().unwrap();
    let own: ArenaSlot<u64> = object.slot(0).unwrap();
    assert_eq!(read(&all[1], own), Some(None));
    let mut writer = all[0].writer(&lock).unwrap();
    let new = writer.alloc(&7).unwrap();
    assert_eq!(writer.assign_untold(own, new).unwrap(), None);
    drop(writer);
    all[1].quiesce().unwrap();
    assert_eq!(read(&all[1], own), Some(None));
    all[1].quiesce_stale(&[object]).unwrap();
    assert_eq!(read(&all[1], own), Some(Some(7)));
    assert_ne!(Tracking::Own, Tracking::Tracked);
}

/// A reader that never drops what nobody is told of, while what it leads to is freed and its memory
/// is given out again.
#[test]
fn what_is_freed_is_told_of_though_its_modification_was_not() {
    type Large = [u64; 4096];
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("untold"));
    let (all, lock) = arenas(&rack, &spec(&file, Duration::from_millis(50)));
    let own: ArenaSlot<Large> = all[0].slot(0).unwrap();
    let other: ArenaSlot<Large> = all[0].slot(1).unwrap();
    let second: ArenaSlot<Large> = all[0].slot(2).unwrap();
    replace(&all[0], &lock, own, &[1; 4096]).unwrap();
    replace(&all[0], &lock, other, &[100; 4096]).unwrap();
    let reads = || {
        let values = [own, second].map(|slot| read(&all[1], slot).flatten());
        let mut values = values.into_iter().flatten();
        values.all(|value| value == [1; 4096] || value == [2; 4096])
    };
    while read(&all[1], own).flatten().is_none() {}
    let mut writer = all[0].writer(&lock).unwrap();
    let first = writer.load(own).unwrap().unwrap();
    assert_eq!(writer.lead(second, Some(first)).unwrap(), None);
    drop(writer);
    all[1].quiesce().unwrap();
    while read(&all[1], second).flatten().is_none() {}
    let mut writer = all[0].writer(&lock).unwrap();
    for slot in [own, second] {
        let new = writer.alloc(&[2; 4096]).unwrap();
        assert_eq!(writer.assign_untold(slot, new).unwrap(), Some(first));
    }
    writer.free(first).unwrap();
    drop(writer);
    // More than a node has room for: all of its memory is given out again.
    for value in 101..130 {
        assert!(reads());
        replace(&all[0], &lock, other, &[value; 4096]).unwrap();
        assert!(reads());
    }
    assert!(all[0].counts().reused >= 2);
}

/// Far more than there is room for passes through a few slots, and nobody sees parts of two.
#[test]
fn memory_is_reused_and_no_read_is_older_than_was_promised() {
    const VALUES: u64 = 3000;
    let bound = Duration::from_millis(25);
    for everything in [false, true] {
        let (rack, file) = (Rack::local(3).unwrap(), ArenaFile::new("reuse"));
        let mut spec = spec(&file, bound).ring(64);
        if everything {
            spec = spec.drop_everything();
        }
        let (all, lock) = arenas(&rack, &spec);
        let slot: ArenaSlot<[u64; 40]> = all[0].slot(2).unwrap();
        replace(&all[1], &lock, slot, &[0; 40]).unwrap();
        let assigned = Mutex::new(vec![Instant::now()]);
        let (last, believed) = (AtomicU64::new(0), AtomicU64::new(0));
        all.iter().for_each(|arena| arena.quiesce().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for value in 1..=VALUES {
                    let from = &all[value as usize % 2];
                    replace(from, &lock, slot, &[value; 40]).unwrap();
                    assigned.lock().unwrap().push(Instant::now());
                    last.store(value, SeqCst);
                }
            });
            for arena in [&all[0], &all[2], &all[2]] {
                scope.spawn(|| {
                    let end = Instant::now() + LONG;
                    while last.load(SeqCst) < VALUES || believed.load(SeqCst) == 0 {
                        assert!(Instant::now() < end, "nothing is read");
                        let began = Instant::now();
                        let Some(Some(value)) = read(arena, slot) else {
                            continue;
                        };
                        assert!(value.iter().all(|word| *word == value[0]), "{value:?}");
                        believed.fetch_add(1, SeqCst);
                        let assigned = assigned.lock().unwrap();
                        if let Some(superseded) = assigned.get(value[0] as usize + 1) {
                            let old = began.saturating_duration_since(*superseded);
                            assert!(old <= bound, "{} is {old:?} old", value[0]);
                        }
                    }
                });
            }
        });
        let end = Instant::now() + LONG;
        while all.iter().any(|arena| arena.counts().waiting > 0) {
            assert!(Instant::now() < end, "{:?}", all[0].counts());
            std::thread::sleep(Duration::from_millis(1));
        }
        let counts = all.iter().map(|arena| arena.counts());
        let reused: u64 = counts.clone().map(|counts| counts.reused).sum();
        assert_eq!(reused, VALUES);
        let jumps: u64 = counts.map(|counts| counts.jumps).sum();
        assert_eq!(jumps, 0, "clocks of one host");
    }
}

/// A thread that stays in its section: what it reads is not believed, the others' reads are as new
/// as ever, and memory comes back without it.
#[test]
fn a_section_that_lasts_too_long_holds_nothing_up() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("long"));
    let (all, lock) = arenas(&rack, &spec(&file, Duration::from_millis(50)));
    let slot: ArenaSlot<u64> = all[0].slot(0).unwrap();
    replace(&all[0], &lock, slot, &1).unwrap();
    let section = all[1].enter().unwrap();
    let _ = section.get(slot);
    for value in 2..=20 {
        replace(&all[0], &lock, slot, &value).unwrap();
    }
    let end = Instant::now() + LONG;
    while all[0].counts().waiting > 0 || read(&all[1], slot) != Some(Some(20)) {
        assert!(
            Instant::now() < end,
            "{:?} {:?}",
            all[0].counts(),
            all[0].domains()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(section.finish(), Err(ArenaError::Late { .. })));
    assert!(all[1].counts().late > 0);
    let of_node = rack.node(1).metrics().arenas;
    assert!(of_node.late > 0 && of_node.sections > 0);
}

/// A section that has a pointer and has not read through it yet, while the object is freed. It may
/// read on for longer than caches take to drop what was freed, so its memory waits for the section.
#[test]
fn memory_that_an_open_section_may_still_read_is_not_reused() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("open"));
    let (all, lock) = arenas(&rack, &spec(&file, Duration::from_secs(2)));
    let slot: ArenaSlot<[u64; 40]> = all[0].slot(0).unwrap();
    replace(&all[0], &lock, slot, &[1; 40]).unwrap();
    let end = Instant::now() + LONG;
    let (section, pointer) = loop {
        assert!(Instant::now() < end, "it is never seen");
        all[1].quiesce().unwrap();
        if let Ok(section) = all[1].enter()
            && let Ok(Some(pointer)) = section.load(slot)
        {
            break (section, pointer);
        }
    };
    replace(&all[0], &lock, slot, &[2; 40]).unwrap();
    // The last memory that was freed is the first that is given out.
    let mut next = 3;
    let mut put = |all: &[Arena]| {
        let slot = all[0].slot(1 + next % 8).unwrap();
        let mut writer = all[0].writer(&lock).unwrap();
        let new = writer.alloc(&[next; 40]).unwrap();
        writer.assign(slot, new).unwrap();
        next += 1;
    };
    // One of sixteen reads looks at the clock.
    let holds = || (0..16).all(|_| section.read(pointer).is_ok());
    while holds() {
        assert!(Instant::now() < end, "the section never ends");
        if all[0].counts().reused > 0 {
            put(&all);
        }
        let value = section.read(pointer);
        assert!(!holds() || value == Ok([1; 40]), "{value:?} in its section");
    }
    drop(section);
    while all[0].counts().waiting > 0 {
        assert!(Instant::now() < end, "{:?}", all[0].domains());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(all[0].counts().reused, 1);
}

#[test]
fn the_real_instructions_do_as_well() {
    let Ok(ops) = CacheOps::detect() else {
        return;
    };
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("real"));
    let spec = ArenaSpec::new(&file.0, 1 << 20).ring(8);
    let (all, lock) = arenas(&rack, &spec);
    let slot: ArenaSlot<[u64; 9]> = all[0].slot(63).unwrap();
    for value in 0..200 {
        replace(&all[value as usize % 2], &lock, slot, &[value; 9]).unwrap();
        all[0].quiesce().unwrap();
        let seen = read(&all[0], slot);
        assert!(seen.is_none_or(|seen| seen == Some([value; 9])), "{ops:?}");
    }
}

/// A map that one node changes and another one reads, beside a model of it.
#[test]
fn maps_and_lists_have_what_was_put_into_them() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("map"));
    let spec = ArenaSpec::new(&file.0, 4 << 20).bound(LONG).emulated();
    let (all, lock) = arenas(&rack, &spec);
    assert!(Map::<u64, u64>::open(&all[0], 0).unwrap().is_none());
    let none = Map::<u64, u64>::create(&all[0], &mut all[0].writer(&lock).unwrap(), 0, 0);
    assert!(matches!(none, Err(ArenaError::ObjectTooLarge { .. })));
    let before = all[0].counts().sections;
    let here: Map<u64, [u8; 11]> =
        Map::create(&all[0], &mut all[0].writer(&lock).unwrap(), 0, 1500).unwrap();
    // A section may be late, and the map would be there all the same.
    assert_eq!(all[0].counts().sections, before);
    let there: Map<u64, [u8; 11]> = Map::open(&all[1], 0).unwrap().unwrap();
    let list: List<[u8; 3], u32> = List::at(&all[1], 1).unwrap();
    let mut model = std::collections::BTreeMap::new();
    for step in 0..2000u64 {
        let (key, from) = (step * 7919 % 501, &all[step as usize % 2]);
        let map = if step % 2 == 0 { &here } else { &there };
        let mut writer = from.writer(&lock).unwrap();
        let value = [step as u8; 11];
        let (before, expected) = match step % 5 {
            0 => (map.remove(&mut writer, &key), model.remove(&key)),
            _ => (
                map.insert(&mut writer, &key, &value),
                model.insert(key, value),
            ),
        };
        assert_eq!(before.unwrap(), expected, "{step}");
        // The writer's node sees it at once.
        assert_eq!(map.get(&key).unwrap(), model.get(&key).copied());
        if step % 40 == 0 {
            let key = [(step / 40 % 9) as u8; 3];
            list.insert(&mut writer, &key, &(step as u32)).unwrap();
        }
    }
    all.iter().for_each(|arena| arena.quiesce().unwrap());
    for key in 0..501 {
        let expected = model.get(&key).copied();
        assert_eq!(here.get(&key).unwrap(), expected);
        assert_eq!(there.get(&key).unwrap(), expected);
    }
    // What another node has inserted is found at once: a lookup that fails goes past the cache.
    let mut writer = all[0].writer(&lock).unwrap();
    assert_eq!(there.get(&9999).unwrap(), None);
    here.insert(&mut writer, &9999, &[9; 11]).unwrap();
    assert_eq!(there.get(&9999).unwrap(), Some([9; 11]));
    let same: List<[u8; 3], u32> = List::at(&all[0], 1).unwrap();
    assert_eq!(same.entries().unwrap().len(), 9);
    assert!(same.remove(&mut writer, &[3; 3]).unwrap().is_some());
    assert_eq!(same.get(&[3; 3]).unwrap(), None);
    assert_eq!(same.remove(&mut writer, &[3; 3]).unwrap(), None);
    assert_eq!(same.entries().unwrap().len(), 8);
}

/// A cache fetches the other line of a pair by itself: what was there before an object was is no
/// part of the object, though nobody has dropped that line since.
#[test]
fn a_line_that_came_by_itself_is_not_taken_for_a_new_object() {
    let (rack, file) = (Rack::local(2).unwrap(), ArenaFile::new("fetched"));
    let (all, lock) = arenas(&rack, &spec(&file, LONG));
    let [first, second] = [0, 1].map(|nth| all[0].slot::<u64>(nth).unwrap());
    replace(&all[0], &lock, first, &1).unwrap();
    // It is in the first line of a slab, and the second one comes with it.
    assert_eq!(read(&all[1], first), Some(Some(1)));
    replace(&all[0], &lock, second, &2).unwrap();
    let line = |slot| {
        let section = all[1].enter().unwrap();
        let pointer: Option<Pointer<u64>> = section.load(slot).unwrap();
        pointer.unwrap().to_word() >> 16
    };
    assert_eq!(line(second), line(first) ^ 1);
    assert_eq!(read(&all[1], second), Some(Some(2)));
    assert!(all[1].counts().young > 0);
}
