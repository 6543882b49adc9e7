//! Coherent memory, objects and locks whose copies are durable: all processes end, and a rack that
//! starts again has what had returned.

use crate::durable::{damage, durable, folders};
use crate::homes::{BLOCK, spec};
use crate::members::Cluster;
use crate::{LONG, eventually};
use rackmem::locked::{Content, Mutex};
use rackmem::object::{Map, MapSpec, Object, ObjectRef};
use rackmem::{
    AccessError, Contract, CopyStatus, Durability, Node, Rack, Region, RegionSpec, Survives,
    membership,
};

const NODES: usize = 3;
const LIVES: u64 = 3;
const EACH: [Durability; 2] = [Durability::File, Durability::Sync];
const LINE: u32 = 256;

/// A change of the rack, which begins with one, interrupts what is under way.
fn put(region: &Region, block: usize, value: u64) {
    let bytes = value.to_le_bytes();
    eventually("it is written", || {
        region.write(block * BLOCK, &bytes).is_ok()
    });
}

fn get(region: &Region, block: usize) -> u64 {
    let mut bytes = [0; 8];
    eventually("it is read", || {
        region.read(block * BLOCK, &mut bytes).is_ok()
    });
    u64::from_le_bytes(bytes)
}

/// Each life of the rack has a cluster's nodes for this.
fn lives(cluster: &Cluster, mut live: impl FnMut(u64, &[Node])) {
    for life in 0..LIVES {
        let (racks, nodes) = cluster.nodes(NODES);
        live(life, &nodes);
        // At once, and not one after the other: the last ones have no majority.
        let end = |rack: Option<Rack>| move || drop(rack);
        std::thread::scope(|scope| {
            racks
                .into_iter()
                .for_each(|rack| drop(scope.spawn(end(rack))));
        });
    }
}

fn objects(durability: Durability) -> RegionSpec {
    let spec = RegionSpec::new("objects", 400 * LINE as usize).contract(Contract::Object);
    spec.copies(3).line(LINE).durability(durability)
}

#[test]
fn memory_whose_writes_survive_is_there_when_the_rack_starts_again() {
    for durability in EACH {
        let cluster = durable(&format!("homes-{durability}"), "");
        let spec = spec("pages", 20, Survives::Writes).durability(durability);
        lives(&cluster, |life, nodes| {
            let region = nodes[life as usize % NODES].create_region(&spec).unwrap();
            for block in 0..20 {
                let was = life.checked_sub(1).map_or(0, |last| 100 * last + block);
                assert_eq!(get(&region, block as usize), was, "{durability}: {life}");
                put(&region, block as usize, 100 * life + block);
            }
        });
    }
}

/// What has come home is there; what only caches had is not, and home's value is.
#[test]
fn of_memory_whose_rest_survives_what_was_at_rest_is_there() {
    for durability in EACH {
        let cluster = durable(&format!("rest-{durability}"), "");
        let spec = spec("pages", 2, Survives::Rest).durability(durability);
        lives(&cluster, |life, nodes| {
            let node = &nodes[1];
            let region = node.create_region(&spec).unwrap();
            assert_eq!(get(&region, 0), life, "{durability}");
            assert!(get(&region, 1) <= life, "{durability}");
            put(&region, 0, life + 1);
            eventually("it goes home", || node.evict(region.addr()).is_ok());
            put(&region, 1, life + 1);
        });
    }
}

/// A copy whose journal is damaged does not count: what the other two have is there, and is written
/// on. It is made anew, and stands in for another one that is damaged then.
#[test]
fn copies_whose_journals_are_damaged_are_made_anew() {
    let cluster = durable("homes-damaged", "replace_after = '0s'\n");
    let spec = spec("pages", 20, Survives::Writes).durability(Durability::Sync);
    for (life, damaged) in [None, Some(1), Some(2)].into_iter().enumerate() {
        if let Some(node) = damaged {
            damage(&folders(&cluster, node)[0]);
        }
        let (_racks, nodes) = cluster.nodes(NODES);
        let region = nodes[life].create_region(&spec).unwrap();
        if let Some(node) = damaged {
            eventually("its process says so", || {
                !nodes[node].ended_copies().is_empty()
            });
        }
        for block in 0..20 {
            let was = life.checked_sub(1).map_or(0, |last| 100 * last + block);
            assert_eq!(get(&region, block), was as u64, "life {life}");
            put(&region, block, (100 * life + block) as u64);
        }
        let Some(node) = damaged else {
            continue;
        };
        let same = (node as u16, node as u16);
        membership::replace(&cluster.store(), "pages", same, LONG).unwrap();
        eventually("it is made anew", || {
            let copies = nodes[node].groups().remove(0).copies;
            copies[node].life > 1 && copies.iter().all(CopyStatus::answers)
        });
    }
}

/// Objects are what they were, at their addresses and of their generations, also those that
/// transactions have written; what was freed is gone, and maps have what they had.
#[test]
fn objects_and_maps_are_there_when_the_rack_starts_again() {
    for durability in EACH {
        let cluster = durable(&format!("objects-{durability}"), "");
        let mut made: Option<([ObjectRef; 3], ObjectRef)> = None;
        lives(&cluster, |life, nodes| {
            let node = &nodes[life as usize % NODES];
            let region = node.create_region(&objects(durability)).unwrap();
            let (all, map) = *made.get_or_insert_with(|| {
                let all = [0, 1, 2].map(|_| region.alloc(0u64).unwrap().at());
                let map = MapSpec::new(60, 60);
                let map = node.create_map(&[region.addr()], map).unwrap();
                (all, map.at())
            });
            let [one, two, third] =
                all.map(|at| -> Object<u64> { node.attach_object(at).unwrap() });
            let map: Map = node.attach_map(map).unwrap();
            assert_eq!(
                (one.read(), two.read()),
                (Ok(life), Ok(life)),
                "{durability}"
            );
            for nth in 0..10 * life {
                let value = map.get(&nth.to_le_bytes()).unwrap();
                assert_eq!(value, Some(vec![nth as u8; 9]), "{durability}: {nth}");
            }
            for nth in 10 * life..10 * life + 10 {
                map.insert(&nth.to_le_bytes(), &[nth as u8; 9]).unwrap();
            }
            let both = node.transaction(|run| {
                let next = run.read(&one)? + 1;
                run.write(&one, next)?;
                run.write(&two, next)
            });
            both.unwrap();
            let addr = third.addr();
            match life {
                0 => third.free().unwrap(),
                _ => assert_eq!(
                    third.read(),
                    Err(AccessError::Gone { addr }),
                    "{durability}"
                ),
            }
        });
    }
}

/// A lock that a thread was inside of when all ended says so, and one that was left has what it
/// had.
#[test]
fn locks_are_there_when_the_rack_starts_again() {
    for durability in EACH {
        let cluster = durable(&format!("locks-{durability}"), "");
        let spec = spec("locks", 2, Survives::Writes).durability(durability);
        lives(&cluster, |life, nodes| {
            let region = nodes[life as usize % NODES].create_region(&spec).unwrap();
            let left: Mutex<u64> = Mutex::in_region(&region, 0, 0).unwrap();
            let held: Mutex<u64> = Mutex::in_region(&region, BLOCK, 0).unwrap();
            let mut inside = left.lock().unwrap();
            assert_eq!(
                (*inside, inside.content()),
                (life, Content::Current),
                "{durability}"
            );
            *inside += 1;
            drop(inside);
            // With the node that has it, it would be unsaid whether somebody was inside.
            eventually("it rests", || left.rest().is_ok());
            let inside = held.lock().unwrap();
            let found = inside.content();
            assert_eq!(
                found == Content::Current,
                life == 0,
                "{durability}: {found:?}"
            );
            std::mem::forget(inside);
        });
    }
}
