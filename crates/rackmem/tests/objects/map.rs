//! Maps: against a model, used by all nodes at a time, and while members are killed.

use crate::processes::{Member, config};
use crate::{FABRICS, LONG, Stop, rack, region, until};
use rackmem::object::{MAX_OBJECT, Map, MapSpec, ObjectRef};
use rackmem::{
    AccessError, AllocError, Config, Contract, Fabric, Mode, Rack, RackError, RegionSpec,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Buckets at the first two nodes, so small that many have tails.
pub fn small_map(rack: &Rack) -> Map {
    let regions = [0, 1].map(|node| region(rack, node, ["first", "second"][node]).addr());
    let spec = MapSpec::new(20, 30).bucket(112);
    rack.node(0).create_map(&regions, spec).unwrap()
}

pub fn handles(rack: &Rack, map: &Map) -> Vec<Map> {
    let attach = |node: &rackmem::Node| node.attach_map(map.at()).unwrap();
    rack.nodes().iter().map(attach).collect()
}

#[test]
fn a_map_is_a_map_at_every_node() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let first = small_map(&rack);
        let maps = handles(&rack, &first);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(14);
        let steps = if fabric == Fabric::Inline { 4000 } else { 500 };
        for _ in 0..steps {
            let map = random.choice(&maps).unwrap();
            let key = vec![b'k'; random.usize(..24)];
            let key = [&key[..], &[random.u8(..3)]].concat();
            let len = if random.u8(..20) == 0 { 9000 } else { 40 };
            let value: Vec<u8> = (0..random.usize(..len)).map(|_| random.u8(..)).collect();
            let before = model.get(&key).cloned();
            match random.u8(..5) {
                0 => assert_eq!(map.remove(&key), Ok(model.remove(&key))),
                1 => {
                    let done = map.update(&key, |old| {
                        assert_eq!(old, before.as_deref());
                        old.map(|old| [old, b"!"].concat())
                    });
                    assert_eq!(done, Ok(before));
                    model
                        .get_mut(&key)
                        .into_iter()
                        .for_each(|value| value.push(b'!'));
                }
                2 => {
                    assert_eq!(map.insert(&key, &value), Ok(before));
                    model.insert(key, value);
                }
                _ => assert_eq!(map.get(&key), Ok(before)),
            }
        }
        let keys: Vec<&[u8]> = model
            .keys()
            .map(Vec::as_slice)
            .chain([&b"none"[..]])
            .collect();
        for map in &maps {
            let got = map.get_many(&keys);
            for (key, got) in keys.iter().zip(got) {
                assert_eq!(got, Ok(model.get(*key).cloned()), "{fabric:?}");
            }
        }
        for map in &maps {
            let all: BTreeMap<_, _> = map.entries().collect::<Result<_, _>>().unwrap();
            assert_eq!(all, model, "{fabric:?}");
        }
        // Its memory is there for another one.
        let live = || -> u64 { rack.nodes().iter().map(|n| n.metrics().objects.live).sum() };
        let addr = first.at().addr();
        maps[2].clone().free().unwrap();
        assert_eq!(live(), 0, "{fabric:?}");
        assert_eq!(first.clone().free(), Err(AccessError::Gone { addr }));
        for map in &maps {
            let gone = |error| matches!(error, AccessError::Gone { .. });
            assert!(gone(map.get(b"kk").unwrap_err()));
            assert!(map.entries().all(|entry| gone(entry.unwrap_err())));
            let error = map.insert(b"kk", b"").unwrap_err();
            assert!(
                matches!(error, AllocError::Access(error) if gone(error)),
                "{error}"
            );
        }
    }
}

/// A count in front, and after it so many bytes that are all alike: parts of two would be seen.
pub fn value(count: u64) -> Vec<u8> {
    let mut value = count.to_le_bytes().to_vec();
    value.resize(8 + (count as usize * 7) % 150, count as u8);
    value
}

pub fn count_of(value: &[u8]) -> u64 {
    let (first, rest) = value.split_first_chunk::<8>().expect("a count");
    let count = u64::from_le_bytes(*first);
    assert_eq!(rest.len(), (count as usize * 7) % 150, "torn");
    assert!(rest.iter().all(|byte| *byte == count as u8), "torn");
    count
}

pub fn add(map: &Map, key: &[u8]) -> Result<Option<Vec<u8>>, AllocError> {
    map.update(key, |old| Some(value(old.map_or(0, count_of) + 1)))
}

#[test]
fn what_stays_in_a_map_is_in_every_walk() {
    for fabric in FABRICS {
        let rounds = if fabric == Fabric::Inline { 3000 } else { 100 };
        let rack = rack(fabric, Mode::HomeOnly, 2);
        let maps = handles(&rack, &small_map(&rack));
        let stays: Vec<[u8; 3]> = (0..30).map(|nth| [b's', nth, nth]).collect();
        for key in &stays {
            maps[0].insert(key, b"here").unwrap();
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let walks = scope.spawn(|| {
                let mut walks = 0;
                while !over.load(Relaxed) || walks == 0 {
                    let all: BTreeMap<_, _> = maps[1].entries().map(Result::unwrap).collect();
                    for key in &stays {
                        assert_eq!(all.get(&key[..]).map(Vec::as_slice), Some(&b"here"[..]));
                    }
                    walks += 1;
                }
            });
            // They come into heads and push others out to tails, and the other way round.
            for round in 0..rounds {
                let key = [b'c', (round % 40) as u8];
                let value = vec![b'v'; round % 70];
                maps[0].insert(&key, &value).unwrap();
                maps[0].remove(&[b'c', ((round + 13) % 40) as u8]).unwrap();
            }
            over.store(true, Relaxed);
            walks.join().unwrap();
        });
    }
}

#[test]
fn changes_of_all_nodes_count_once_and_reads_never_go_back() {
    const KEYS: usize = 12;
    for fabric in FABRICS {
        let each = if fabric == Fabric::Inline { 2000 } else { 150 };
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let maps = handles(&rack, &small_map(&rack));
        let over = AtomicBool::new(false);
        let key = |nth: usize| [b'a' + (nth % KEYS) as u8; 9];
        std::thread::scope(|scope| {
            let readers: Vec<_> = (maps.iter())
                .map(|map| {
                    let over = &over;
                    scope.spawn(move || {
                        let mut last = [0; KEYS];
                        for nth in (0..KEYS).cycle() {
                            if over.load(Relaxed) {
                                break;
                            }
                            let count = map.get(&key(nth)).unwrap().map_or(0, |v| count_of(&v));
                            assert!(count >= last[nth], "{count} after {}", last[nth]);
                            last[nth] = count;
                            std::thread::yield_now();
                        }
                    })
                })
                .collect();
            let writers: Vec<_> = (maps.iter())
                .map(|map| {
                    scope
                        .spawn(move || (0..each).for_each(|nth| drop(add(map, &key(nth)).unwrap())))
                })
                .collect();
            let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            over.store(true, Relaxed);
            readers
                .into_iter()
                .for_each(|reader| reader.join().unwrap());
            ended.into_iter().for_each(|writer| writer.unwrap());
        });
        let counts = (0..KEYS).map(|nth| count_of(&maps[0].get(&key(nth)).unwrap().unwrap()));
        assert_eq!(counts.sum::<u64>(), 3 * each as u64, "{fabric:?}");
    }
}

/// Of several who insert a key that is not there, one does.
#[test]
fn one_of_many_who_insert_a_key_wins() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let maps = handles(&rack, &small_map(&rack));
        let won = AtomicU64::new(0);
        const ROUNDS: u64 = 60;
        std::thread::scope(|scope| {
            for map in &maps {
                let won = &won;
                scope.spawn(move || {
                    for nth in 0..ROUNDS {
                        let key = nth.to_le_bytes();
                        let put = map.update(&key, |old| Some(old.unwrap_or(b"mine").to_vec()));
                        won.fetch_add(put.unwrap().is_none().into(), Relaxed);
                    }
                });
            }
        });
        assert_eq!(won.load(Relaxed), ROUNDS, "{fabric:?}");
    }
}

#[test]
fn what_no_map_can_have_is_refused() {
    let rack = rack(Fabric::Inline, Mode::HomeOnly, 2);
    let objects = region(&rack, 0, "objects");
    let node = rack.node(0);
    let spec = MapSpec::new(10, 100);
    let map = node.create_map(&[objects.addr()], spec).unwrap();
    let error = map.insert(b"key", &vec![1; MAX_OBJECT]).unwrap_err();
    assert!(
        matches!(
            error,
            AllocError::TooLarge {
                most: MAX_OBJECT,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(map.get(b"key"), Ok(None));
    let long = vec![1; MAX_OBJECT - 100];
    assert_eq!(map.insert(b"key", &long), Ok(None));
    assert_eq!(map.get(b"key"), Ok(Some(long)));
    // Its place is another object's, or none.
    let other = objects.alloc([7u64; 8]).unwrap();
    let addr = other.addr();
    let error = node.attach_map(other.at()).unwrap_err();
    assert_eq!(error, AccessError::BadAddress { addr });
    let coherent = node.alloc_bytes(100).unwrap();
    assert!(node.attach_map(ObjectRef::new(coherent, 0)).is_err());
    assert!(node.create_map(&[coherent], spec).is_err());
    assert!(node.create_map(&[], spec).is_err());
    // A region without room: what was made is freed.
    let small = RegionSpec::new("small", 64 << 10).contract(Contract::Object);
    let small = node.create_region(&small).unwrap();
    let live = || node.metrics().objects.live;
    let before = live();
    let error = node
        .create_map(&[small.addr()], MapSpec::new(10_000, 100))
        .unwrap_err();
    assert_eq!(error, AllocError::OutOfMemory { node: 0 });
    assert_eq!(live(), before);
}

/// Not a test but a process that the next ones start: a member that counts up keys of a map, and
/// says so after each one.
#[test]
fn counting_process() {
    let Some((config, node, argument)) = crate::processes::started("map::counting_process") else {
        return;
    };
    let rack = Rack::join(&config, node).unwrap();
    let (addr, generation) = argument.split_once(' ').unwrap();
    let at = ObjectRef::new(addr.parse().unwrap(), generation.parse().unwrap());
    let map = rack.node(node).attach_map(at).unwrap();
    for nth in 0..u64::MAX {
        add(&map, &[nth as u8 % 8; 4]).unwrap();
        eprintln!("added {nth}");
    }
}

/// What a killed member had acknowledged is there, and nothing more than the one change that it
/// was in; the others go on.
#[test]
fn a_map_outlives_those_who_change_it() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = config(fabric, 2);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let node = rack.node(0);
        let spec = RegionSpec::new("map", 4 << 20).contract(Contract::Object);
        let region = node.create_region(&spec).unwrap();
        let spec = MapSpec::new(8, 100).bucket(240);
        let map = node.create_map(&[region.addr()], spec).unwrap();
        let sum = |map: &Map| -> u64 {
            (0..8u8)
                .map(|key| map.get(&[key; 4]).unwrap().map_or(0, |v| count_of(&v)))
                .sum()
        };
        let (mut least, mut own) = (0, 0);
        for kill in 0..3u64 {
            let argument = format!("{} {}", map.at().addr(), map.at().generation());
            let mut member = Member::start("map::counting_process", &text, 1, &argument);
            let mut said = 0;
            while said < 40 {
                assert!(member.line().starts_with("added"));
                said += 1;
                add(&map, &[said as u8 % 8; 4]).unwrap();
                own += 1;
            }
            member.signal("-KILL");
            // What it said before it died, and was not read yet.
            said += member
                .rest()
                .filter(|line| line.starts_with("added"))
                .count() as u64;
            least += said;
            // It may be in the middle of one; its home finishes that or does not.
            until("its last change is over", || {
                let now = sum(&map);
                std::thread::sleep(std::time::Duration::from_millis(20));
                now == sum(&map)
            });
            let now = sum(&map);
            let most = least + own + kill + 1;
            assert!(
                (least + own..=most).contains(&now),
                "{now}: {least} and {own}"
            );
            assert!(rack.node(0).metrics().objects.live < 200);
        }
    }
}

/// Not a test but a process that the next one starts: a home with a region of objects.
#[test]
fn map_home_process() {
    let Some((config, node, _)) = crate::processes::started("map::map_home_process") else {
        return;
    };
    let rack = Rack::join(&config, node).unwrap();
    let spec = RegionSpec::new("far", 4 << 20).contract(Contract::Object);
    let region = rack.node(node).create_region(&spec).unwrap();
    eprintln!("region {}", region.addr());
    std::thread::sleep(LONG);
}

/// Keys of a home that has died are lost, and said to be; the others go on.
#[test]
fn keys_of_other_homes_outlive_a_home() {
    let (text, _folder) = config("udp", 2);
    let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
    let node = rack.node(0);
    let mut home = Member::start("map::map_home_process", &text, 1, "");
    let far: u64 = home.line().rsplit(' ').next().unwrap().parse().unwrap();
    let spec = RegionSpec::new("near", 4 << 20).contract(Contract::Object);
    let near = node.create_region(&spec).unwrap().addr();
    let map = node.create_map(&[near, far], MapSpec::new(60, 30)).unwrap();
    let keys: Vec<[u8; 2]> = (0..60u8).map(|nth| [nth, 7]).collect();
    for key in &keys {
        map.insert(key, key).unwrap();
    }
    home.signal("-KILL");
    let lost =
        |error: &AccessError| matches!(error, AccessError::Rack(RackError::NodeLost { node: 1 }));
    until("the home's keys are lost", || {
        keys.iter()
            .any(|key| map.get(key).is_err_and(|error| lost(&error)))
    });
    let (mut kept, mut gone) = (0, 0);
    for key in &keys {
        match map.get(key) {
            Ok(value) => {
                assert_eq!(value.as_deref(), Some(&key[..]));
                map.insert(key, b"new").unwrap();
                kept += 1;
            }
            Err(error) => {
                assert!(lost(&error), "{error}");
                gone += 1;
            }
        }
    }
    assert!(kept > 0 && gone > 0, "{kept} {gone}");
    let all: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let got = map.get_many(&all);
    assert_eq!(got.iter().filter(|got| got.is_ok()).count(), kept);
}

/// Lines of the map below, each with a bucket or a part of a tail.
const LINE: u32 = 256;

fn kept_spec() -> RegionSpec {
    let spec = RegionSpec::new("kept", 100 * LINE as usize).line(LINE);
    spec.contract(Contract::Object).copies(3)
}

/// Where the map is; the names of what has no copies die with the member that is killed.
fn told_spec() -> RegionSpec {
    RegionSpec::new("told", 64).copies(3)
}

/// Not a test but a process that the next one starts: the member that serves a map with copies. It
/// counts up keys of it, too, and says so after each one.
#[test]
fn keeping_process() {
    let Some((config, node, _)) = crate::processes::started("map::keeping_process") else {
        return;
    };
    let rack = Rack::join(&config, node).unwrap();
    eprintln!("joined");
    let mut found = [0; 2];
    until("there is a map", || {
        let told = rack.node(node).open_region(&told_spec());
        found = told.map_or(found, |told| told.replicated(0).unwrap().read().unwrap());
        found != [0; 2]
    });
    let at = ObjectRef::new(found[0], found[1] as u32);
    let map = rack.node(node).attach_map(at).unwrap();
    for nth in 0..u64::MAX {
        add(&map, &[nth as u8 % 8; 4]).unwrap();
        eprintln!("added {nth}");
    }
}

/// The process that serves a map is killed in the middle of its changes and of others', and again
/// when it has come back: all that was acknowledged is there, each change once, and nothing more
/// than the one change that it was in.
#[test]
fn a_map_with_copies_outlives_the_process_that_serves_it() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = config(fabric, 4);
        // A member that lives is not given up on a machine with much else to do.
        let text = text.replace("lease = \"2s\"", "lease = \"10s\"");
        let start = || {
            let mut keeper = Member::start("map::keeping_process", &text, 0, "");
            assert_eq!(keeper.line(), "joined");
            keeper
        };
        let mut keeper = start();
        let parsed = Config::parse(&text).unwrap();
        let racks: Vec<Rack> = (1..4).map(|id| Rack::join(&parsed, id).unwrap()).collect();
        let nodes: Vec<_> = (1..4).map(|id| racks[id - 1].node(id)).collect();
        // So that the keeper has a copy, and the next one.
        let region = nodes[2].create_region(&kept_spec()).unwrap();
        let map = nodes[2].create_map(&[region.addr()], MapSpec::new(4, 100));
        let map = map.unwrap();
        let told = nodes[2].create_region(&told_spec()).unwrap();
        let at = [map.at().addr(), u64::from(map.at().generation())];
        told.replicated(0).unwrap().write(at).unwrap();
        let (own, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut least = 0;
        std::thread::scope(|scope| {
            let _stop = Stop(&over);
            for node in &nodes {
                let map = node.attach_map(map.at()).unwrap();
                let (own, over) = (&own, &over);
                scope.spawn(move || {
                    for nth in (0..8u8).cycle() {
                        if over.load(Relaxed) {
                            return;
                        }
                        add(&map, &[nth; 4]).unwrap();
                        own.fetch_add(1, Relaxed);
                    }
                });
            }
            for life in 0..2 {
                if life > 0 {
                    keeper = start();
                }
                let mut said = 0;
                while said < 20 {
                    let line = keeper.line();
                    if !line.starts_with("added") {
                        let rest: Vec<String> = keeper.rest().collect();
                        panic!("{fabric}: {line} {rest:?}");
                    }
                    said += 1;
                }
                keeper.signal("-KILL");
                said += keeper
                    .rest()
                    .filter(|line| line.starts_with("added"))
                    .count() as u64;
                least += said;
                let before = own.load(Relaxed);
                until("others go on", || own.load(Relaxed) > before + 20);
            }
        });
        let counts = map.entries().map(|entry| count_of(&entry.unwrap().1));
        let (now, least) = (counts.sum::<u64>(), least + own.load(Relaxed));
        assert!(
            (least..=least + 2).contains(&now),
            "{fabric}: {now}, {least}"
        );
    }
}
