//! Regions have a contract and a backing, are listed, and are removed.

use rackmem::locked::{Mutex, RwLockArray};
use rackmem::{
    AccessError, Backing, Contract, Fabric, HomeId, Mode, Node, Rack, RegionError, RegionSpec,
    Result,
};
use rackmem_proto::wire::Tag;
use std::sync::Barrier;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

const MEMORY: u64 = 64 << 20;
/// Bytes of a region of which not many fit into a node's memory.
const LARGE: usize = 24 << 20;

fn rack(fabric: Fabric) -> Rack {
    let rack = Rack::builder(3).fabric(fabric).memory(MEMORY);
    rack.mode(Mode::Switch).build().unwrap()
}

fn everywhere(test: impl Fn(&Rack)) {
    for fabric in [Fabric::Inline, Fabric::Udp] {
        test(&rack(fabric));
    }
}

fn removed<T>(what: Result<T, RegionError>) -> bool {
    matches!(what, Err(RegionError::Removed { name }) if name == "r")
}

fn none(what: Result<(), RegionError>) -> bool {
    matches!(what, Err(RegionError::NotFound { name }) if name == "r")
}

fn given(node: &Node) -> u64 {
    node.metrics().memory.given
}

/// What is given back by other nodes comes home a little later.
fn falls_to(node: &Node, bytes: u64) -> bool {
    let began = Instant::now();
    while given(node) != bytes {
        if began.elapsed() > Duration::from_secs(60) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

#[test]
fn what_is_not_built_is_refused_by_its_name() {
    let rack = rack(Fabric::Inline);
    let node = rack.node(1);
    for contract in Contract::ALL {
        let spec = RegionSpec::new("r", 64).contract(contract);
        if contract == Contract::Replicated {
            // How many copies has to be said.
            let error = node.create_region(&spec).err().unwrap();
            assert_eq!(error, RegionError::BadCopies { copies: 0 });
            continue;
        }
        // All are built: there is none of this name.
        let error = node.open_region(&spec).err().unwrap();
        assert!(matches!(error, RegionError::NotFound { .. }), "{error}");
    }
    for backing in Backing::ALL.into_iter().skip(1) {
        let spec = RegionSpec::new("r", 64).backing(backing);
        for result in [node.create_region(&spec), node.open_region(&spec)] {
            let error = result.err().unwrap();
            assert!(
                matches!(error, RegionError::BackingNotBuilt { backing: which } if which == backing)
            );
            assert!(error.to_string().contains(backing.name()));
        }
    }
    assert_eq!(node.regions().unwrap(), []);
}

#[test]
fn a_region_is_opened_under_its_own_contract_only() {
    everywhere(|rack| {
        let (one, two) = (rack.node(1), rack.node(2));
        let spec = RegionSpec::new("r", 4096).element(3);
        let made = one.create_region(&spec).unwrap();
        assert!(made.is_new());
        assert_eq!(
            (made.bytes(), made.backing(), made.home()),
            (4096, Backing::Heap, HomeId::of(1))
        );
        let locked = spec.clone().contract(Contract::Locked);
        for result in [two.open_region(&locked), two.create_region(&locked)] {
            let error = result.err().unwrap();
            assert!(matches!(
                error,
                RegionError::Access(AccessError::WrongContract { addr, wanted: Contract::Locked, is: Contract::Coherent })
                    if addr == made.addr()
            ));
            let text = error.to_string();
            for part in ["coherent", "locked", "Node::read"] {
                assert!(text.contains(part), "{text}");
            }
        }
        assert!(matches!(
            Mutex::<u64>::named(&two, "r", 1),
            Err(RegionError::Access(AccessError::WrongContract {
                is: Contract::Coherent,
                ..
            }))
        ));
        let array = RegionSpec::new("array", 16 * 100).contract(Contract::Locked);
        let array = one.create_region(&array).unwrap();
        assert_eq!(array.contract(), Contract::Locked);
        assert_eq!(Tag(array.addr()).contract(), Some(Contract::Locked));
        assert!(matches!(
            two.region("array", 16 * 100, 0),
            Err(RegionError::Access(AccessError::WrongContract {
                wanted: Contract::Coherent,
                is: Contract::Locked,
                ..
            }))
        ));
        assert!(matches!(
            array.read(0, &mut [0]),
            Err(RegionError::Access(AccessError::WrongContract { .. }))
        ));
        let locks = |node: &Node| RwLockArray::attach(node, array.addr(), 100, 64).unwrap();
        let (ours, theirs) = (locks(&one), locks(&two));
        ours.write(99).unwrap().view_mut(8).set_u64(0, 7);
        assert_eq!(theirs.read(99).unwrap().view().u64(0), 7);
    });
}

#[test]
fn a_removed_region_gives_back_name_and_memory() {
    everywhere(|rack| {
        let (one, two) = (rack.node(1), rack.node(2));
        let before = given(&one);
        let old = RegionSpec::new("r", LARGE).on(1);
        for round in 0..5 {
            let region = two.create_region(&old).unwrap();
            let other = rack.node(0).open_region(&old).unwrap();
            region.write(LARGE - 1, &[1]).unwrap();
            let mut byte = [0];
            other.read(LARGE - 1, &mut byte).unwrap();
            assert_eq!(byte, [1]);
            rack.node(round % 3).remove_region("r").unwrap();
            for handle in [&region, &other] {
                assert!(removed(handle.check()));
                assert!(removed(handle.read(0, &mut byte)));
                assert!(removed(handle.write(0, &[2])));
            }
            assert!(none(rack.node(round % 3).remove_region("r")));
            assert!(none(two.open_region(&old).map(|_| ())));
            assert!(falls_to(&one, before));
        }
        // Another spec, and nothing of what was there.
        let new = RegionSpec::new("r", 8192).element(9).on(1);
        let region = rack.node(0).create_region(&new).unwrap();
        let mut bytes = [1; 8192];
        region.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 8192]);
        assert!(matches!(
            region.read(1, &mut bytes),
            Err(RegionError::OutOfBounds {
                at: 1,
                len: 8192,
                ..
            })
        ));
    });
}

#[test]
fn an_old_handle_does_not_take_another_region_for_its_own() {
    let rack = rack(Fabric::Inline);
    let (one, two) = (rack.node(1), rack.node(2));
    let spec = RegionSpec::new("r", 4096).on(1);
    let old = two.create_region(&spec).unwrap();
    one.remove_region("r").unwrap();
    let new = one.create_region(&spec).unwrap();
    assert_eq!(old.addr(), new.addr(), "or this test shows nothing");
    new.write(0, &[5]).unwrap();
    assert!(removed(old.read(0, &mut [0])));
    assert!(removed(old.write(0, &[6])));
    new.check().unwrap();
    // Nor does it remove that.
    assert!(removed(old.remove()));
    new.check().unwrap();
    new.remove().unwrap();
    assert!(removed(new.remove()) && none(one.remove_region("r")));
}

#[test]
fn of_several_removers_one_removes() {
    everywhere(|rack| {
        for _ in 0..20 {
            let spec = RegionSpec::new("r", 3 << 20).on(1);
            rack.node(1).create_region(&spec).unwrap();
            let before = given(&rack.node(1));
            let (done, stop) = (AtomicUsize::new(0), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for id in 0..3 {
                    let (node, done) = (rack.node(id), &done);
                    scope.spawn(move || match node.remove_region("r") {
                        Ok(()) => drop(done.fetch_add(1, Relaxed)),
                        error => assert!(none(error)),
                    });
                }
                // Somebody creates other regions meanwhile, in rows beside it.
                let (node, stop) = (rack.node(2), &stop);
                scope.spawn(move || {
                    let name = format!("other/{}", stop.fetch_add(1, Relaxed));
                    node.region(&name, 64, 0).unwrap();
                });
            });
            assert_eq!(done.into_inner(), 1);
            assert!(falls_to(
                &rack.node(1),
                before - ((3 << 20) as u64).next_multiple_of(4096)
            ));
        }
    });
}

#[test]
fn removers_and_creators_leave_one_region_or_none() {
    everywhere(|rack| {
        let spec = RegionSpec::new("r", 200_000);
        std::thread::scope(|scope| {
            for id in 0..3 {
                let (node, spec) = (rack.node(id), &spec);
                scope.spawn(move || {
                    for round in 0..30 {
                        let region = node.create_region(spec).unwrap();
                        let byte = region.write(round, &[1]);
                        assert!(byte.is_ok() || removed(byte));
                        let gone = node.remove_region("r");
                        assert!(gone.is_ok() || none(gone));
                    }
                });
            }
        });
        assert!(none(rack.node(0).open_region(&spec).map(|_| ())));
        for id in 0..3 {
            let table = if id == 0 { 256 << 10 } else { 0 };
            assert!(falls_to(&rack.node(id), table), "node {id}");
        }
    });
}

/// A rack that lives long has had many more names than its table has rows.
#[test]
fn names_that_are_free_leave_their_rows_to_others() {
    let rack = rack(Fabric::Inline);
    let name = |nth: usize| format!("of job {nth}");
    let spec = |nth| RegionSpec::new(&name(nth), 64).on(1);
    let kept: Vec<_> = (0..500)
        .map(|nth| rack.node(0).create_region(&spec(nth)).unwrap())
        .collect();
    let before = given(&rack.node(1));
    for nth in 500..8000 {
        let region = rack.node(nth % 3).create_region(&spec(nth)).unwrap();
        assert!(region.is_new());
        let by = rack.node(nth / 3 % 3);
        by.remove_region(&name(nth)).unwrap();
        assert!(region.check().is_err());
        let long_ago = RegionSpec::new(&name(nth - nth % 100), 64).on(1);
        assert!(nth % 100 == 0 || by.open_region(&long_ago).is_err());
    }
    let end = Instant::now() + Duration::from_secs(60);
    while given(&rack.node(1)) > before {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(1));
    }
    for region in &kept {
        region.check().unwrap();
        assert_eq!(
            rack.node(2).find_region(region.name(), 0).unwrap().0,
            region.addr()
        );
    }
    assert_eq!(rack.node(2).regions().unwrap().len(), kept.len());
}

/// The row of the table in which a name is looked for first.
fn first_row(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    hash % 2048
}

/// Several create a name at a time, while the names come and go that have the rows in which it is
/// looked for first: one of them does, and all have its region.
#[test]
fn of_several_who_create_a_name_in_rows_of_others_one_does() {
    everywhere(|rack| {
        let (name, rounds) = ("wanted", 300);
        let spec = |name: &str| RegionSpec::new(name, 64).on(1);
        let near = |other: &String| first_row(other).wrapping_sub(first_row(name)) % 2048 < 4;
        let others = (0..).map(|nth| format!("other {nth}")).filter(near);
        let others: Vec<_> = others.take(12).collect();
        let (turn, over) = (Barrier::new(3), AtomicBool::new(false));
        let (made, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for who in 0..3 {
                let (others, turn, over) = (&others, &turn, &over);
                let (made, wrong) = (&made, &wrong);
                let node = rack.node(who);
                scope.spawn(move || {
                    for round in 1..=rounds {
                        turn.wait();
                        let region = node.create_region(&spec(name)).unwrap();
                        made.fetch_add(region.is_new().into(), Relaxed);
                        turn.wait();
                        // Who fails here has the others wait for ever.
                        if made.load(Relaxed) != round || region.check().is_err() {
                            wrong.fetch_add(1, Relaxed);
                        }
                        turn.wait();
                        let _ = region.remove();
                    }
                    over.store(true, Relaxed);
                });
                let node = rack.node(who);
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(who as u64);
                    while !over.load(Relaxed) {
                        let other = &others[random.usize(..others.len())];
                        match random.bool() {
                            true => drop(node.create_region(&spec(other))),
                            false => drop(node.remove_region(other)),
                        }
                    }
                });
            }
        });
        assert_eq!(wrong.load(Relaxed), 0);
        assert!(rack.node(1).find_region(name, 0).is_err());
    });
}

#[test]
fn regions_are_listed_with_what_they_are() {
    everywhere(|rack| {
        let (one, two) = (rack.node(1), rack.node(2));
        one.create_region(&RegionSpec::new("b/bytes", 5000).element(4))
            .unwrap();
        two.create_region(&RegionSpec::new("a/locks", 160).contract(Contract::Locked))
            .unwrap();
        two.region("c/gone", 64, 0).unwrap();
        let lock: Mutex<u64> = Mutex::named(&one, "d/lock", 1).unwrap();
        one.remove_region("c/gone").unwrap();
        let listed = rack.node(0).regions().unwrap();
        assert_eq!(listed, two.regions().unwrap());
        let told: Vec<_> = listed
            .iter()
            .map(|region| {
                let spec = &region.spec;
                assert_eq!(spec.asks_backing(), Backing::Heap);
                (spec.name(), spec.asks_contract(), region.home().0)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("a/locks", Contract::Locked, 2),
                ("b/bytes", Contract::Coherent, 1),
                ("d/lock", Contract::Locked, 1)
            ]
        );
        assert_eq!(
            (listed[1].spec.bytes(), listed[1].spec.element_type()),
            (5000, 4)
        );
        // What is listed can be opened.
        one.open_region(&listed[1].spec).unwrap();
        for name in ["a/locks", "d/lock"] {
            let no = two.remove_region(name);
            assert!(matches!(
                no,
                Err(RegionError::NotRemovable {
                    contract: Contract::Locked,
                    ..
                })
            ));
        }
        lock.free().unwrap();
        assert_eq!(rack.node(0).regions().unwrap().len(), 2);
    });
}

#[test]
fn the_table_is_not_freed_by_its_address() {
    let rack = rack(Fabric::Inline);
    rack.node(1).region("r", 64, 1).unwrap();
    for node in [0, 1].map(|id| rack.node(id)) {
        let _ = node.free_bytes(0, 256 << 10);
        let (addr, _) = node.region("r", 64, 1).unwrap();
        assert_eq!(Tag(addr).home(), HomeId::of(1));
    }
    let all = (0..).map_while(|_| rack.node(0).alloc_bytes(1 << 20).ok());
    assert!(all.into_iter().all(|addr| addr >= 256 << 10));
}
