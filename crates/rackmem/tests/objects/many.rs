//! Several objects in one step.

use crate::{FABRICS, LONG, rack, region};
use rackmem::object::Object;
use rackmem::{AccessError, Fabric, Mode, Rack};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// More than go together, of two homes, some of them long, two of them wrong.
#[test]
fn many_objects_are_read_in_their_order() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let regions = [0, 1].map(|node| region(&rack, node, ["first", "second"][node]));
        let made: Vec<Object<[u8]>> = (0..40usize)
            .map(|nth| {
                let bytes = vec![nth as u8; nth * 200];
                regions[nth % 2].alloc_bytes(&bytes, 0).unwrap()
            })
            .collect();
        for node in rack.nodes() {
            let mine: Vec<Object<[u8]>> = (made.iter())
                .map(|object| node.attach_object(object.at()).unwrap())
                .collect();
            let all: Vec<&Object<[u8]>> = mine.iter().collect();
            let read = node.read_many(&all);
            assert_eq!(read.len(), 40);
            for (nth, read) in read.into_iter().enumerate() {
                let (version, bytes) = read.unwrap();
                assert_eq!(bytes, vec![nth as u8; nth * 200], "{fabric:?}");
                assert_eq!(mine[nth].read_if_newer(version), Ok(None));
            }
            assert!(node.read_many::<[u8]>(&[]).is_empty());
        }
        let numbers: Vec<Object<u64>> = (0..3)
            .map(|nth| regions[0].alloc(nth + 7u64).unwrap())
            .collect();
        let ats: Vec<_> = numbers.iter().map(Object::at).collect();
        numbers.into_iter().nth(1).unwrap().free().unwrap();
        for node in rack.nodes() {
            let mine: Vec<Object<u64>> = (ats.iter())
                .map(|at| node.attach_object(*at).unwrap())
                .collect();
            // Of another size than is there.
            let wrong = node.attach_object::<u64>(made[3].at()).unwrap();
            let read = node.read_many(&[&mine[0], &mine[1], &wrong, &mine[2]]);
            let values: Vec<_> = read
                .into_iter()
                .map(|r| r.map(|(_, value)| value))
                .collect();
            let (addr, other) = (mine[1].addr(), wrong.addr());
            let (len, is) = (8, 600);
            let expected = [
                Ok(7),
                Err(AccessError::Gone { addr }),
                Err(AccessError::OtherSize {
                    addr: other,
                    len,
                    is,
                }),
                Ok(9),
            ];
            assert_eq!(values, expected, "{fabric:?}");
        }
    }
}

/// A bad network and a writer: each object is whole, and none goes back.
#[test]
fn many_objects_are_each_whole_while_others_write() {
    const WORDS: usize = 300;
    let faults = rackmem::diagnostics::Faults {
        loss: 0.05,
        duplication: 0.1,
        delay: 0.1,
        ..rackmem::diagnostics::Faults::NONE
    };
    let udp = Rack::builder(2).fabric(Fabric::Udp).mode(Mode::HomeOnly);
    let udp = udp.mtu(1500).patience(LONG).faults(faults).build().unwrap();
    for rack in [rack(Fabric::Shm, Mode::HomeOnly, 2), udp] {
        let region = region(&rack, 0, "objects");
        let made: Vec<Object<[u64; WORDS]>> =
            (0..20).map(|_| region.alloc([0; WORDS]).unwrap()).collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut nth = 0;
                while !over.load(Relaxed) {
                    nth += 1;
                    for object in &made {
                        object.write(&[nth; WORDS]).unwrap();
                    }
                    std::thread::yield_now();
                }
            });
            let far: Vec<Object<[u64; WORDS]>> = (made.iter())
                .map(|object| rack.node(1).attach_object(object.at()).unwrap())
                .collect();
            let all: Vec<&Object<[u64; WORDS]>> = far.iter().collect();
            let mut last = vec![0; all.len()];
            for _ in 0..60 {
                for (last, read) in last.iter_mut().zip(rack.node(1).read_many(&all)) {
                    let (version, value) = read.unwrap();
                    assert!(value.iter().all(|word| *word == value[0]), "torn");
                    assert!(version >= *last);
                    *last = version;
                }
            }
            over.store(true, Relaxed);
            writer.join().unwrap();
        });
    }
}

/// What is asked of homes is under way together: as many round trips as sixteens, not as objects.
#[test]
fn objects_elsewhere_are_asked_for_together() {
    let rack = rack(Fabric::Udp, Mode::HomeOnly, 2);
    let region = region(&rack, 0, "objects");
    let made: Vec<Object<u64>> = (0..32).map(|nth| region.alloc(nth).unwrap()).collect();
    let far: Vec<Object<u64>> = (made.iter())
        .map(|object| rack.node(1).attach_object(object.at()).unwrap())
        .collect();
    let all: Vec<&Object<u64>> = far.iter().collect();
    let before = rack.node(1).metrics().objects;
    let values: Vec<u64> = (rack.node(1).read_many(&all).into_iter())
        .map(|read| read.unwrap().1)
        .collect();
    assert_eq!(values, (0..32).collect::<Vec<u64>>());
    let after = rack.node(1).metrics().objects;
    assert_eq!(after.asked - before.asked, 32);
    assert_eq!(after.rounds - before.rounds, 2);
}
