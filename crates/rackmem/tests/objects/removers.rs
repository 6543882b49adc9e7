//! Processes that remove regions of objects with copies, and are killed meanwhile.

use crate::LONG;
use crate::processes::{Member, patient_config, started};
use rackmem::object::{Object, ObjectRef};
use rackmem::{AccessError, Config, Contract, Rack, RegionError, RegionSpec};
use std::time::{Duration, Instant};

/// Objects that the region has room for.
const OBJECTS: usize = 20;

/// Nodes 0 to 2 keep copies, and the remover none.
fn spec() -> RegionSpec {
    let spec = RegionSpec::new("again", OBJECTS * 64);
    spec.contract(Contract::Object).copies(3).line(64).on(0)
}

/// Not a test but a process that the next one starts: it makes the region, says where an object is,
/// and removes the region, until it is killed.
#[test]
fn remover() {
    let Some((config, node, _)) = started("removers::remover") else {
        return;
    };
    let rack = Rack::join(&config, node).unwrap();
    let node = rack.node(node);
    for nth in 0..u64::MAX {
        let region = node.create_region(&spec()).unwrap();
        let at = region.alloc(nth).unwrap().at();
        eprintln!("made {} {} {nth}", at.addr(), at.generation());
        node.remove_region("again").unwrap();
    }
}

/// Killed at any time, it leaves a region that is all there, or none.
fn killed_removers(fabric: &str) {
    let (text, _folder) = patient_config(fabric, 4);
    let parsed = Config::parse(&text).unwrap();
    let racks: Vec<Rack> = (0..3).map(|id| Rack::join(&parsed, id).unwrap()).collect();
    let nodes: Vec<_> = (0..3).map(|id| racks[id].node(id)).collect();
    for life in 0..3u32 {
        let mut remover = Member::start("removers::remover", &text, 3, "");
        let mut objects: Vec<(Object<u64>, u64)> = Vec::new();
        let end = Instant::now() + LONG;
        let mut noted = |line: &str| {
            let words: Vec<u64> = line.split(' ').skip(1).flat_map(str::parse).collect();
            let [addr, generation, nth] = words[..] else {
                return;
            };
            let at = ObjectRef::new(addr, generation as u32);
            objects.push((nodes[objects.len() % 3].attach_object(at).unwrap(), nth));
        };
        for _ in 0..10 + life {
            noted(&remover.line());
            assert!(
                Instant::now() < end,
                "{fabric}: it removes nothing any more"
            );
        }
        std::thread::sleep(Duration::from_micros(u64::from(life) * 700));
        remover.signal("-KILL");
        remover.rest().for_each(|line| noted(&line));
        let (last, all) = objects.split_last().unwrap();
        for (object, _) in all {
            let addr = object.addr();
            assert_eq!(object.read(), Err(AccessError::Gone { addr }), "{fabric}");
        }
        let addr = last.0.addr();
        match nodes[1].open_region(&spec()) {
            // Not removed, or made again.
            Ok(region) => {
                let read = last.0.read();
                let same = Object::<u64>::addr(&last.0) >= region.addr();
                assert!(!same || read == Ok(last.1), "{fabric}: {read:?}");
                nodes[2].remove_region("again").unwrap();
            }
            Err(RegionError::NotFound { .. }) => {}
            Err(error) => panic!("{fabric}: {error}"),
        }
        // Whoever looks next finds that it is finished.
        let region = nodes[1].create_region(&spec()).unwrap();
        assert!(region.is_new(), "{fabric}");
        assert_eq!(last.0.read(), Err(AccessError::Gone { addr }), "{fabric}");
        for nth in 0..OBJECTS as u64 {
            let object = region.alloc(nth).unwrap();
            assert_eq!(object.read(), Ok(nth), "{fabric}");
        }
        assert!(region.alloc(0u64).is_err(), "{fabric}: it is full");
        nodes[0].remove_region("again").unwrap();
    }
}

#[test]
fn removers_that_are_killed_leave_all_or_nothing_over_shared_memory() {
    killed_removers("shm");
}

#[test]
fn removers_that_are_killed_leave_all_or_nothing_over_udp() {
    killed_removers("udp");
}
