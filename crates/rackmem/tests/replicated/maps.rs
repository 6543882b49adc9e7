//! Maps on objects with copies: they do not die with the node that serves them.

use crate::history::{LINES, judge, record};
use crate::homes::replaced;
use crate::members::{Cluster, NETWORKS};
use crate::{FABRICS, LONG, MODES, Stop, eventually, rack};
use rackmem::membership::{self, Role};
use rackmem::object::{Map, MapSpec, ObjectRef};
use rackmem::{AllocError, Contract, Fabric, Node, Rack, Region, RegionSpec};
use rackmem_sim::history::Recorder;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Leases are so long that a machine with much else to do gives up no member that lives: two of
/// three copies would be gone with the one that dies here.
pub const MORE: &str = "lease = '10s'\npatience = '60s'\nreplace_after = '200ms'\n";

/// Node 0 dies, and the others are told at once.
pub fn first_dies(cluster: &Cluster, racks: &mut [Option<Rack>]) {
    racks[0] = None;
    membership::remove(&cluster.store(), Role::Node(0), LONG).unwrap();
}

fn spec(name: &str, line: u32, bytes: usize) -> RegionSpec {
    let spec = RegionSpec::new(name, bytes).contract(Contract::Object);
    spec.copies(3).line(line)
}

/// A map for so many entries in lines of so many bytes, and so many lines beside it.
#[derive(Clone, Copy)]
struct Wanted {
    entries: usize,
    bytes: usize,
    line: u32,
    beside: usize,
}

impl Wanted {
    fn map(&self) -> MapSpec {
        MapSpec::new(self.entries, self.bytes)
    }

    fn lines(&self) -> usize {
        self.map().bytes_in_lines(self.line) / self.line as usize + self.beside
    }

    fn region(&self, name: &str) -> RegionSpec {
        spec(name, self.line, self.lines() * self.line as usize)
    }

    fn made(&self, node: &Node, name: &str) -> Map {
        let region = node.create_region(&self.region(name)).unwrap();
        node.create_map(&[region.addr()], self.map()).unwrap()
    }
}

/// Lines of a region that have no object.
fn free_lines(region: &Region) -> usize {
    let given = (0..).map_while(|nth: u64| region.alloc(nth).ok());
    given.count()
}

#[test]
fn a_map_with_copies_is_a_map() {
    const LINE: u32 = 256;
    for (fabric, mode) in FABRICS.into_iter().flat_map(|f| MODES.map(|m| (f, m))) {
        let which = format!("{fabric:?} {mode:?}");
        let rack = rack(fabric, mode, 4);
        // So few buckets that tails have several objects.
        let wanted = Wanted {
            entries: 8,
            bytes: 60,
            line: LINE,
            beside: 60,
        };
        let first = wanted.made(&rack.node(1), "map");
        assert_eq!(first.buckets(), 5);
        let attach = |node: &Node| node.attach_map(first.at()).unwrap();
        let maps: Vec<Map> = rack.nodes().iter().map(attach).collect();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(14);
        for _ in 0..if fabric == Fabric::Inline { 2000 } else { 300 } {
            let map = random.choice(&maps).unwrap();
            let key = vec![b'k'; random.usize(..24)];
            let key = [&key[..], &[random.u8(..3)]].concat();
            let value: Vec<u8> = (0..random.usize(..120)).map(|_| random.u8(..)).collect();
            match random.u8(..4) {
                0 => assert_eq!(map.remove(&key), Ok(model.remove(&key)), "{which}"),
                1 => assert_eq!(map.get(&key), Ok(model.get(&key).cloned()), "{which}"),
                _ => {
                    let before = map.insert(&key, &value);
                    assert_eq!(before, Ok(model.insert(key, value)), "{which}");
                }
            }
        }
        let keys: Vec<&[u8]> = model.keys().map(Vec::as_slice).collect();
        for map in &maps {
            let all: BTreeMap<_, _> = map.entries().collect::<Result<_, _>>().unwrap();
            assert_eq!(all, model, "{which}");
            let got = map.get_many(&keys).into_iter();
            let got: Vec<Vec<u8>> = got.map(|value| value.unwrap().unwrap()).collect();
            assert!(got.iter().eq(model.values()), "{which}");
        }
        // A key and a value are in one line.
        let long = maps[2].insert(b"long", &[0; LINE as usize]);
        let most = LINE as usize - 32;
        assert!(
            matches!(long, Err(AllocError::TooLarge { most: m, .. }) if m == most),
            "{which}: {long:?}"
        );
        // All of its lines are another map's afterwards.
        maps[3].clone().free().unwrap();
        let region = rack.node(2).open_region(&wanted.region("map")).unwrap();
        assert_eq!(free_lines(&region), wanted.lines(), "{which}");
    }
}

#[test]
fn what_no_map_with_copies_can_have_is_refused() {
    const LINES: usize = 100;
    let rack = rack(Fabric::Inline, MODES[0], 3);
    let node = rack.node(0);
    let create = |line: u32, entries: usize| {
        let spec = spec(&format!("{line}"), line, LINES * line as usize);
        let region = node.create_region(&spec).unwrap();
        let map = node.create_map(&[region.addr()], MapSpec::new(entries, 20));
        (map, region)
    };
    // No room for the root, or for what it names.
    for (line, entries) in [(64, 1), (128, 1000)] {
        let (refused, _) = create(line, entries);
        let most = line as usize - 32;
        assert!(
            matches!(refused, Err(AllocError::TooLarge { most: m, .. }) if m == most),
            "{line}: {refused:?}"
        );
    }
    // What was made until the region was full is freed.
    let (full, region) = create(256, 500);
    assert!(
        matches!(full, Err(AllocError::OutOfMemory { .. })),
        "{full:?}"
    );
    assert_eq!(free_lines(&region), LINES);
    assert!(create(512, 10).0.is_ok());
}

/// A value of a count, so long that some are in tails.
fn value(count: u64) -> Vec<u8> {
    let mut value = count.to_le_bytes().to_vec();
    value.resize(8 + (count as usize * 7) % 90, count as u8);
    value
}

fn count_of(value: &[u8]) -> u64 {
    let (first, rest) = value.split_first_chunk::<8>().expect("a count");
    let count = u64::from_le_bytes(*first);
    assert_eq!(rest.len(), (count as usize * 7) % 90, "torn");
    assert!(rest.iter().all(|byte| *byte == count as u8), "torn");
    count
}

const KEYS: usize = 9;

fn key(nth: usize) -> [u8; 5] {
    [b'a' + (nth % KEYS) as u8; 5]
}

/// The node that serves it dies twice, and comes back. Each change counts once, also one that its
/// death has met; whatever was read is there; and the next keeper has all of it.
#[test]
fn changes_of_a_map_count_once_while_the_home_dies() {
    for fabric in NETWORKS {
        let cluster = Cluster::new("map-counters", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        let wanted = Wanted {
            entries: 4,
            bytes: 30,
            line: 256,
            beside: 80,
        };
        let first = wanted.made(&nodes[3], "map");
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            for (thread, id) in [1, 2, 3, 3].into_iter().enumerate() {
                let (map, stop, done) = (nodes[id].attach_map(first.at()), &stop, &done);
                scope.spawn(move || {
                    let map = map.unwrap();
                    for nth in thread.. {
                        if stop.load(SeqCst) {
                            return;
                        }
                        let add = |old: Option<&[u8]>| Some(value(old.map_or(0, count_of) + 1));
                        map.update(&key(nth), add).unwrap();
                        done.fetch_add(1, SeqCst);
                    }
                });
            }
            // What is read never goes back.
            let (map, stop) = (nodes[2].attach_map(first.at()).unwrap(), &stop);
            scope.spawn(move || {
                let mut last = [0; KEYS];
                while !stop.load(SeqCst) {
                    for (nth, last) in last.iter_mut().enumerate() {
                        let now = map.get(&key(nth)).unwrap().map_or(0, |v| count_of(&v));
                        assert!(now >= *last, "{now} after {last}");
                        *last = now;
                    }
                }
            });
            for _ in 0..2 {
                let before = done.load(SeqCst);
                eventually("they count", || done.load(SeqCst) > before + 60);
                first_dies(&cluster, &mut racks);
                eventually("the death is noticed", || !nodes[1].is_member(0));
                let before = done.load(SeqCst);
                eventually("they go on", || done.load(SeqCst) > before + 60);
                replaced(&nodes[1], "map");
                racks[0] = Some(cluster.node(0));
            }
        });
        let map = nodes[1].attach_map(first.at()).unwrap();
        let sum = |map: &Map| -> u64 { map.entries().map(|e| count_of(&e.unwrap().1)).sum() };
        assert_eq!(sum(&map), done.load(SeqCst), "{fabric}");
        // No tail is left over: who was cut off in a change has finished it.
        map.free().unwrap();
        let region = nodes[2].open_region(&wanted.region("map")).unwrap();
        assert_eq!(free_lines(&region), wanted.lines(), "{fabric}");
    }
}

/// Threads' lookups and changes of keys are those of one map, while the node that serves it dies.
#[test]
fn histories_of_a_map_are_linearizable_while_the_home_dies() {
    const WORDS: usize = 9;
    const OPERATIONS: usize = 400;
    for fabric in NETWORKS {
        let cluster = Cluster::new("map-history", fabric, 4, MORE);
        let (mut racks, nodes) = cluster.nodes(4);
        // One bucket, and one of three keys is in its tail.
        let wanted = Wanted {
            entries: 2,
            bytes: 30,
            line: 256,
            beside: 60,
        };
        let first: ObjectRef = wanted.made(&nodes[3], "map").at();
        let (recorder, begun) = (Recorder::new(OPERATIONS), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for client in 0..4u32 {
                let (node, recorder) = (&nodes[1 + client as usize % 3], &recorder);
                let begun = &begun;
                scope.spawn(move || {
                    let map = node.attach_map(first).unwrap();
                    let read = |at: usize| {
                        begun.fetch_add(1, SeqCst);
                        let value = map.get(&key(at)).ok()?;
                        let mut words = [0; WORDS];
                        let bytes = value.iter().flat_map(|value| value.as_chunks::<8>().0);
                        for (word, bytes) in words.iter_mut().zip(bytes) {
                            *word = u64::from_le_bytes(*bytes);
                        }
                        Some(words)
                    };
                    let write = |at: usize, words: [u64; WORDS]| {
                        begun.fetch_add(1, SeqCst);
                        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
                        map.insert(&key(at), &bytes).is_ok()
                    };
                    let mut log = recorder.client(client);
                    record(LINES, (client, &mut log, OPERATIONS), read, write);
                });
            }
            eventually("they work", || begun.load(SeqCst) > 300);
            first_dies(&cluster, &mut racks);
        });
        judge(fabric, &recorder.into_history());
    }
}
