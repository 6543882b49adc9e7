//! Objects that are made and freed by futures, and what is left when those are dropped: nothing.

use crate::executor::{block_on, drop_at_any_moment, join, poll_once};
use crate::futures::{everywhere, rack};
use crate::processes::{Member, config};
use crate::together::bank;
use crate::{LONG, region, until};
use rackmem::diagnostics::{End, Faults};
use rackmem::object::{MAX_OBJECT, Object};
use rackmem::{AccessError, AllocError, Config, Contract, Fabric, Rack, RackError, RegionSpec};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Instant;

/// Objects that a region with copies has room for here.
const PLACES: usize = 48;

type Words = [u64; 3];

/// A region of node 0's home, and one with copies; on all fabrics, also where packets are lost.
fn with_regions(claim: impl Fn(&str, &Rack, &RegionSpec)) {
    let spec = |name| RegionSpec::new(name, PLACES * 64).contract(Contract::Object);
    let all = [
        ("own", spec("own").on(0)),
        ("kept", spec("kept").copies(3).line(64)),
    ];
    for (what, spec) in all {
        everywhere(|rack| {
            rack.node(0).create_region(&spec).unwrap();
            claim(what, rack, &spec);
        });
    }
}

/// Objects at all homes that nodes have to themselves.
fn live(rack: &Rack) -> u64 {
    let nodes = rack.metrics().nodes.into_iter();
    nodes.map(|node| node.objects.live).sum()
}

/// All that was made is freed, a little later at most: it is counted at the home, and where there
/// are copies there is room for as many as ever.
fn is_empty(what: &str, rack: &Rack, spec: &RegionSpec) {
    until("no object is left", || live(rack) == 0);
    if what == "kept" {
        let region = rack.node(3).open_region(spec).unwrap();
        let mut filled = Vec::new();
        until("there is room for all", || {
            match region.alloc([1u64; 3]) {
                Ok(object) => filled.push(object),
                Err(AllocError::OutOfMemory { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            filled.len() == PLACES
        });
        filled.into_iter().for_each(|one| one.free().unwrap());
    }
}

#[test]
fn objects_are_made_and_freed_as_by_calls() {
    with_regions(|what, rack, spec| {
        for node in rack.nodes() {
            let region = node.open_region(spec).unwrap();
            let made: Object<Words> = block_on(region.alloc_async([7, 8, 9])).unwrap();
            assert_eq!(made.read(), Ok([7, 8, 9]), "{what}");
            let zeros: Object<u64> = block_on(region.alloc_async(0)).unwrap();
            assert_eq!(zeros.read(), Ok(0), "{what}");
            let bytes = block_on(region.alloc_bytes_async(b"some".to_vec(), 30)).unwrap();
            assert_eq!(bytes.read(), Ok(b"some".to_vec()), "{what}");
            bytes.write(&[1; 30]).unwrap();
            let long = MAX_OBJECT + 1;
            let refused = block_on(region.alloc_bytes_async(vec![1], long));
            let by_call = region.alloc_bytes(&[1], long);
            assert_eq!(refused.unwrap_err(), by_call.unwrap_err(), "{what}");
            let (other, addr) = (made.clone(), made.addr());
            assert_eq!(block_on(made.free_async()), Ok(()), "{what}");
            let gone = Err(AccessError::Gone { addr });
            assert_eq!(other.read().map(drop), gone, "{what}");
            assert_eq!(block_on(other.clone().free_async()), gone, "{what}");
            assert_eq!(other.free(), gone, "{what}");
            block_on(zeros.free_async()).unwrap();
            block_on(bytes.free_async()).unwrap();
        }
        is_empty(what, rack, spec);
    });
    let rack = rack(Fabric::Udp, None);
    let small = bank(&rack.node(1), "small", 64, 2);
    let made = join((1..6u64).map(|n| small.alloc_async(n)));
    let full = |made: &&Result<_, _>| matches!(made, Err(AllocError::OutOfMemory { .. }));
    assert_eq!(made.iter().filter(full).count(), 3);
    let large = block_on(small.alloc_async([1u64; 20])).unwrap_err();
    assert_eq!(large, small.alloc([1u64; 20]).unwrap_err());
    let other = rack
        .node(0)
        .create_region(&RegionSpec::new("other", 1 << 20));
    let other = other.unwrap();
    let wrong = block_on(other.alloc_async(1u64)).unwrap_err();
    assert_eq!(wrong, other.alloc(1u64).unwrap_err());
}

/// At any moment: before a home is asked, while it is, while the object gets its content, and when
/// all is done.
#[test]
fn a_dropped_making_leaves_no_object() {
    const ROUNDS: u64 = 300;
    with_regions(|what, rack, spec| {
        std::thread::scope(|scope| {
            for node in rack.nodes() {
                scope.spawn(move || {
                    let region = &node.open_region(spec).unwrap();
                    let made = &Mutex::new(Vec::<Object<Words>>::new());
                    let free_all = || {
                        let all = std::mem::take(&mut *made.lock().unwrap());
                        all.into_iter().for_each(|one| one.free().unwrap());
                    };
                    drop_at_any_moment(ROUNDS, |nth| {
                        free_all();
                        async move {
                            // Zeros are there when it is given.
                            match region.alloc_async([nth % 2 * nth; 3]).await {
                                Ok(object) => made.lock().unwrap().push(object),
                                // Those that are to be freed are in the way.
                                Err(AllocError::OutOfMemory { .. }) => {}
                                Err(error) => panic!("{what}: {error}"),
                            }
                        }
                    });
                    free_all();
                });
            }
        });
        is_empty(what, rack, spec);
    });
}

/// It is ready, and nobody has taken it.
#[test]
fn an_object_that_nobody_takes_is_freed() {
    const MANY: u64 = 20;
    with_regions(|what, rack, spec| {
        let region = rack.node(2).open_region(spec).unwrap();
        let mut all: Vec<_> = (0..MANY)
            .map(|nth| Box::pin(region.alloc_async([nth % 2; 3])))
            .collect();
        let woken: Vec<_> = all.iter_mut().map(poll_once).collect();
        for (ready, woken) in woken {
            assert!(ready.is_none(), "{what}");
            until("it is ready", || woken.is.load(SeqCst));
        }
        if what == "own" {
            assert_eq!(live(rack), MANY);
        }
        drop(all);
        is_empty(what, rack, spec);
    });
}

/// It is freed, or it is there as before; another handle knows.
#[test]
fn a_dropped_freeing_leaves_an_object_or_none() {
    const ROUNDS: usize = 40;
    with_regions(|what, rack, spec| {
        std::thread::scope(|scope| {
            for node in &rack.nodes()[..3] {
                scope.spawn(move || {
                    let region = node.open_region(spec).unwrap();
                    for nth in 1..ROUNDS as u64 {
                        let object: Object<Words> = region.alloc([nth; 3]).unwrap();
                        let (begun, _) = drop_at_any_moment(1 + nth % 4, |_| {
                            let same = object.clone();
                            async move { same.free_async().await }
                        });
                        let gone = Err(AccessError::Gone {
                            addr: object.addr(),
                        });
                        let read = object.read();
                        assert!(read == Ok([nth; 3]) || begun > 0 && read.map(drop) == gone);
                        let freed = object.free();
                        assert!(freed == Ok(()) || begun > 0 && freed == gone, "{what}");
                    }
                });
            }
        });
        is_empty(what, rack, spec);
    });
}

/// As many as may be are under way, and no more; dropped, they leave room.
#[test]
fn as_many_makings_as_may_be_are_asked_for_and_no_more() {
    let rack = rack(Fabric::Udp, Some(Faults::NONE));
    let home = region(&rack, 0, "objects");
    let there = RegionSpec::new("objects", 4 << 20).contract(Contract::Object);
    let far = &rack.node(1).open_region(&there).unwrap();
    let own = &region(&rack, 1, "own");
    let network = rack.faults().unwrap();
    network.part(&[End::Node(0)], &[End::Node(1)]);
    let mut waiting: Vec<_> = (0..4096).map(|n| Box::pin(far.alloc_async(n))).collect();
    for making in &mut waiting {
        assert!(poll_once(making).0.is_none());
    }
    let full = AllocError::Access(AccessError::TooManyAsked { most: 4096 });
    let refused = poll_once(Box::pin(far.alloc_async(1u64))).0;
    assert_eq!(refused.unwrap().unwrap_err(), full);
    // At its own home it needs nobody.
    let mine = poll_once(Box::pin(own.alloc_async(5u64))).0;
    mine.unwrap().unwrap().free().unwrap();
    let rest = waiting.split_off(40);
    drop(rest);
    network.heal();
    let made = join(waiting);
    until("nothing else is left", || live(&rack) == made.len() as u64);
    for (nth, object) in made.into_iter().enumerate() {
        let object = object.unwrap();
        assert_eq!(object.read(), Ok(nth as u64));
        block_on(object.free_async()).unwrap();
    }
    until("there is room", || block_on(far.alloc_async(1u64)).is_ok());
    home.alloc(1u64).unwrap();
}

#[test]
fn a_closed_rack_ends_makings() {
    let rack = rack(Fabric::Udp, Some(Faults::NONE));
    let near: Object<u64> = region(&rack, 0, "objects").alloc(1).unwrap();
    let spec = RegionSpec::new("objects", 4 << 20).contract(Contract::Object);
    let node = rack.node(1);
    let far = &node.open_region(&spec).unwrap();
    let freed: Object<u64> = node.attach_object(near.at()).unwrap();
    let network = rack.faults().unwrap();
    network.part(&[End::Node(0)], &[End::Node(1)]);
    let mut makings: Vec<_> = (0..40).map(|n: u64| Box::pin(far.alloc_async(n))).collect();
    let mut dropped: Vec<_> = (0..40).map(|n: u64| Box::pin(far.alloc_async(n))).collect();
    let mut freeing = freed.clone().free_async();
    for making in makings.iter_mut().chain(&mut dropped) {
        assert!(poll_once(making).0.is_none());
    }
    assert!(poll_once(&mut freeing).0.is_none());
    let closed = AccessError::Rack(RackError::Closed);
    std::thread::scope(|scope| {
        scope.spawn(move || drop(rack));
        for making in join(makings) {
            assert_eq!(making.unwrap_err(), closed.into());
        }
        assert_eq!(block_on(freeing), Err(closed));
    });
    drop(dropped);
    let late = block_on(far.alloc_async(1u64)).unwrap_err();
    assert_eq!(late, closed.into());
    assert_eq!(block_on(freed.free_async()), Err(closed));
}

/// The process of a home is killed while tasks make objects there and at another home: they are
/// told so, and at the other home none is left.
#[test]
fn tasks_that_make_objects_are_told_that_a_home_has_died() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = config(fabric, 2);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let mut member = Member::start("transactions::member", &text, 1, "");
        let _ = member.line();
        let spec = RegionSpec::new("bank 1", 4 << 20).contract(Contract::Object);
        let there = &rack.node(0).open_region(&spec).unwrap();
        let here = &region(&rack, 0, "bank 0");
        let (rounds, began) = (&AtomicU64::new(0), Instant::now());
        let lost = AllocError::Rack(RackError::NodeLost { node: 1 });
        std::thread::scope(|scope| {
            let tasks = scope.spawn(move || {
                join((0..12).map(|nth| async move {
                    loop {
                        assert!(began.elapsed() < 2 * LONG, "its death is not told");
                        // One that nobody takes.
                        drop(poll_once(Box::pin(there.alloc_async([nth; 3]))));
                        let mine = here.alloc_async([nth; 3]).await.unwrap();
                        mine.free_async().await.unwrap();
                        let freed = match there.alloc_async([nth; 3]).await {
                            Ok(object) => object.free_async().await.map_err(AllocError::from),
                            Err(error) => Err(error),
                        };
                        match freed {
                            Ok(()) => drop(rounds.fetch_add(1, SeqCst)),
                            Err(error) => break error,
                        }
                    }
                }))
            });
            until("they make objects", || rounds.load(SeqCst) >= 100);
            member.signal("-KILL");
            let told = tasks.join().unwrap();
            assert!(told.into_iter().all(|why| why == lost), "{fabric}");
        });
        until("no object is left", || live(&rack) == 0);
        let late = block_on(there.alloc_async(1u64)).unwrap_err();
        assert_eq!(late, lost, "{fabric}");
    }
}
