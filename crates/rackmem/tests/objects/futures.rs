//! Objects by futures: one thread has many of them under way.

use crate::executor::{block_on, drop_at_any_moment, join, poll_once};
use crate::{FABRICS, LONG, region, until};
use rackmem::diagnostics::{End, Faults};
use rackmem::object::{Object, ObjectRef};
use rackmem::{
    AccessError, Contract, Fabric, Mode, Node, Rack, RackError, RegionSpec, TransactionError,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

const NODES: usize = 4;
/// Of an object that takes several packets where these are small.
const WORDS: usize = 200;
type Words = [u64; WORDS];

pub fn rack(fabric: Fabric, faults: Option<Faults>) -> Rack {
    let rack = Rack::builder(NODES).fabric(fabric).mode(Mode::HomeOnly);
    let rack = rack.memory(64 << 20).cache(1 << 20).patience(LONG);
    match faults {
        Some(faults) => rack.mtu(1500).faults(faults).build().unwrap(),
        None => rack.build().unwrap(),
    }
}

/// On all fabrics, also where packets are lost, doubled and late.
pub fn everywhere(claim: impl Fn(&Rack)) {
    for fabric in FABRICS {
        for faults in [None, Some(Faults::rough(0.02))] {
            if faults.is_none() || fabric != Fabric::Inline {
                eprintln!("{fabric:?} {}", faults.is_some());
                claim(&rack(fabric, faults));
            }
        }
    }
}

/// Objects of two homes, and two with copies.
fn made(rack: &Rack) -> Vec<ObjectRef> {
    let kept = RegionSpec::new("kept", 4 * 4096).contract(Contract::Object);
    let kept = rack.node(2).create_region(&kept.copies(3).line(4096));
    let regions = [
        region(rack, 0, "first"),
        region(rack, 1, "second"),
        kept.unwrap(),
    ];
    let all = (0..6).map(|nth| regions[nth % 3].alloc([0u64; WORDS]).unwrap().at());
    all.collect()
}

fn attached(node: &Node, all: &[ObjectRef]) -> Vec<Object<Words>> {
    let attach = |at: &ObjectRef| node.attach_object(*at).unwrap();
    all.iter().map(attach).collect()
}

fn is_whole(value: &Words) {
    assert!(value.iter().all(|word| *word == value[0]), "torn");
}

fn add_one(value: &mut Words) {
    value.iter_mut().for_each(|word| *word += 1);
}

#[test]
fn tasks_of_all_nodes_count_in_objects() {
    const TASKS: usize = 8;
    const ROUNDS: usize = 6;
    everywhere(|rack| {
        let all = made(rack);
        std::thread::scope(|scope| {
            for node in rack.nodes() {
                let all = &all;
                scope.spawn(move || {
                    let objects = &attached(node, all);
                    join((0..TASKS).map(|nth| async move {
                        let mut seen = [0; 6];
                        for round in 0..ROUNDS {
                            let at = (nth + round) % objects.len();
                            let new = objects[at].update_async(add_one).await.unwrap();
                            assert!(new > seen[at]);
                            seen[at] = new;
                            let at = (at + 1) % objects.len();
                            let (version, value) =
                                objects[at].read_versioned_async().await.unwrap();
                            is_whole(&value);
                            assert!(version >= seen[at]);
                            seen[at] = version;
                            let newer = objects[at].read_if_newer_async(version).await.unwrap();
                            assert!(newer.is_none_or(|(newer, _)| newer > version));
                        }
                    }));
                });
            }
        });
        let values = attached(&rack.node(3), &all);
        let sum: u64 = values.iter().map(|value| value.read().unwrap()[0]).sum();
        assert_eq!(sum, (NODES * TASKS * ROUNDS) as u64);
    });
}

#[test]
fn futures_say_what_calls_say() {
    everywhere(|rack| {
        let kept = RegionSpec::new("bytes", 4 * 1024).contract(Contract::Object);
        let kept = rack.node(1).create_region(&kept.copies(3).line(1024));
        for region in [region(rack, 0, "own"), kept.unwrap()] {
            let first = region.alloc_bytes(b"first", 100).unwrap();
            let number = region.alloc(7u64).unwrap();
            let freed = region.alloc(8u64).unwrap().at();
            let gone: Object<u64> = rack.node(2).attach_object(freed).unwrap();
            gone.clone().free().unwrap();
            for node in rack.nodes() {
                let bytes: Object<[u8]> = node.attach_object(first.at()).unwrap();
                let (version, now) = bytes.read_versioned().unwrap();
                assert_eq!(block_on(bytes.read_async()), Ok(now.clone()));
                assert_eq!(
                    block_on(bytes.read_versioned_async()),
                    Ok((version, now.clone()))
                );
                assert_eq!(block_on(bytes.read_if_newer_async(version)), Ok(None));
                let text = format!("by {}", node.id()).into_bytes();
                let new = block_on(bytes.write_if_async(version, text.clone()));
                let new = new.unwrap().unwrap();
                assert!(new > version);
                assert_eq!(
                    block_on(bytes.write_if_async(version, vec![1])),
                    Ok(Err(new))
                );
                let newer = block_on(bytes.read_if_newer_async(version));
                assert_eq!(newer, Ok(Some((new, text.clone()))));
                let last = block_on(bytes.write_async(text)).unwrap();
                assert!(last > new);
                // As one that is too long, one that has another size, one that is no more,
                // and none.
                let long = block_on(bytes.write_async(vec![0; 5000]));
                assert_eq!(long, bytes.write(&[0; 5000]));
                assert!(
                    matches!(long, Err(AccessError::OtherSize { .. })),
                    "{long:?}"
                );
                let wrong: Object<[u64; 2]> = node.attach_object(number.at()).unwrap();
                let read = block_on(wrong.read_async());
                assert_eq!(read, wrong.read());
                assert!(
                    matches!(read, Err(AccessError::OtherSize { .. })),
                    "{read:?}"
                );
                let gone: Object<u64> = node.attach_object(freed).unwrap();
                let addr = gone.addr();
                let is_gone = AccessError::Gone { addr };
                assert_eq!(block_on(gone.read_async()), Err(is_gone));
                assert_eq!(block_on(gone.write_async(1)), Err(is_gone));
                assert_eq!(block_on(gone.update_async(|n| *n += 1)), Err(is_gone));
                let none = ObjectRef::new(number.addr() + (1 << 20), 1);
                let none: Object<u64> = node.attach_object(none).unwrap();
                assert_eq!(block_on(none.read_async()), none.read());
                assert_eq!(block_on(none.write_async(1)), none.write(&1));
                assert!(none.read().is_err());
            }
        }
    });
}

/// Those of this process, of others and with copies, more than are asked for at a time.
#[test]
fn several_objects_by_a_future_are_those_of_the_call() {
    everywhere(|rack| {
        let all = made(rack);
        let freed = region(rack, 1, "freed").alloc([0u64; WORDS]).unwrap();
        let gone = freed.at();
        freed.free().unwrap();
        for node in rack.nodes() {
            let mut objects = attached(node, &all);
            for (nth, object) in (1..).zip(&objects) {
                object.write(&[nth; WORDS]).unwrap();
            }
            objects.insert(3, node.attach_object(gone).unwrap());
            let some: Vec<&Object<Words>> = objects.iter().cycle().take(50).collect();
            let read = block_on(node.read_many_async(&some));
            assert_eq!(read, node.read_many(&some));
            let addr = gone.addr();
            assert_eq!(read[3], Err(AccessError::Gone { addr }));
            let read: Vec<u64> = read.into_iter().flatten().map(|(_, all)| all[9]).collect();
            let is = (1..=6).cycle().take(read.len());
            assert!(read.len() == 43 && is.eq(read));
        }
        assert_eq!(block_on(rack.node(0).read_many_async::<u64>(&[])), []);
    });
}

/// Of those that wait behind others that nobody answers: each waits for its turn as long as the
/// patience, and is not asked for after that.
#[test]
fn a_question_waits_for_its_turn_no_longer_than_its_patience() {
    const BEHIND: usize = 160;
    let rack = Rack::builder(2).fabric(Fabric::Udp).mode(Mode::HomeOnly);
    let rack = rack.patience(Duration::from_secs(1)).faults(Faults::NONE);
    let rack = rack.build().unwrap();
    let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
    let node = rack.node(1);
    let far: Object<u64> = node.attach_object(near.at()).unwrap();
    rack.faults()
        .unwrap()
        .part(&[End::Node(0)], &[End::Node(1)]);
    let before = node.metrics().objects.asked;
    let write = || far.write_async(2);
    let mut all: Vec<_> = (0..16 + BEHIND).map(|_| write()).collect();
    for write in &mut all {
        assert!(poll_once(write).0.is_none());
    }
    let transaction = || Box::pin(node.transaction_async(async |t| t.write(&far, 3)));
    let mut last: Vec<_> = (0..16).map(|_| transaction()).collect();
    for transaction in &mut last {
        assert!(poll_once(transaction).0.is_none());
    }
    let why = RackError::Timeout { node: 0 };
    let silent = AccessError::Rack(why);
    assert!(join(all).into_iter().all(|write| write == Err(silent)));
    let given_up = TransactionError::GivenUp { why };
    assert!(join(last).into_iter().all(|ended| ended == Err(given_up)));
    // Those in front, and those whose turn came when these had not been answered.
    let asked = node.metrics().objects.asked - before;
    assert!(asked < (BEHIND / 2) as u64, "{asked} are asked for");
}

/// A network through which nothing comes: as many as may be wait there, and no more. What needs
/// nobody goes on, and all of it when the network is there again.
#[test]
fn as_many_objects_as_may_be_are_asked_for_and_no_more() {
    for dropped in [false, true] {
        let rack = rack(Fabric::Udp, Some(Faults::NONE));
        let near = region(&rack, 0, "objects").alloc([9u64; WORDS]).unwrap();
        let far: Object<Words> = rack.node(1).attach_object(near.at()).unwrap();
        let own = region(&rack, 1, "own").alloc(3u64).unwrap();
        let own: Object<u64> = rack.node(1).attach_object(own.at()).unwrap();
        let network = rack.faults().unwrap();
        network.part(&[End::Node(0)], &[End::Node(1)]);
        let mut waiting: Vec<_> = (0..4096).map(|_| far.read_async()).collect();
        for future in &mut waiting {
            assert!(poll_once(future).0.is_none());
        }
        let refused = AccessError::TooManyAsked { most: 4096 };
        assert_eq!(poll_once(far.read_async()).0, Some(Err(refused)));
        assert_eq!(poll_once(far.write_async([1; WORDS])).0, Some(Err(refused)));
        assert_eq!(poll_once(own.read_async()).0, Some(Ok(3)));
        assert!(matches!(poll_once(own.write_async(4)).0, Some(Ok(_))));
        if dropped {
            waiting.clear();
        }
        network.heal();
        assert!(join(waiting).into_iter().all(|read| read == Ok([9; WORDS])));
        until("there is room", || {
            block_on(far.read_async()) == Ok([9; WORDS])
        });
        assert_eq!(near.read(), Ok([9; WORDS]), "refused is not written");
    }
}

/// At any moment: before it is polled, while its home is asked, and when all is done.
#[test]
fn dropped_futures_of_objects_leave_nothing_locked_and_nothing_torn() {
    const ROUNDS: u64 = 60;
    everywhere(|rack| {
        let all = made(rack);
        let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for node in rack.nodes() {
                let (all, begun, done) = (&all, &begun, &done);
                scope.spawn(move || {
                    let mine = attached(node, all);
                    let (some, ended) = drop_at_any_moment(ROUNDS, |nth| {
                        let object = &mine[nth as usize % mine.len()];
                        let update = object.update_async(add_one);
                        async { update.await.unwrap() }
                    });
                    begun.fetch_add(some, SeqCst);
                    done.fetch_add(ended, SeqCst);
                });
            }
        });
        // Whoever had left something locked would stop these.
        let values = attached(&rack.node(3), &all);
        let sum = || -> u64 {
            let read = values.iter().map(|value| value.read().unwrap());
            read.inspect(is_whole).map(|value| value[0]).sum()
        };
        for value in &values {
            value.update(|_| ()).unwrap();
        }
        let (begun, done) = (begun.load(SeqCst), done.load(SeqCst));
        assert!((done..=begun).contains(&sum()), "{done} to {begun}");
    });
}

/// A write that was dropped before its home was asked is not made, however long others were in
/// front of it.
#[test]
fn a_write_that_was_dropped_before_it_began_is_not_made() {
    let rack = rack(Fabric::Udp, Some(Faults::NONE));
    let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
    let far: Object<u64> = rack.node(1).attach_object(near.at()).unwrap();
    let network = rack.faults().unwrap();
    network.part(&[End::Node(0)], &[End::Node(1)]);
    // As many as are under way at a time, and one behind them.
    let mut before: Vec<_> = (0..16).map(|_| far.write_async(2)).collect();
    for write in &mut before {
        assert!(poll_once(write).0.is_none());
    }
    let mut write = far.write_async(3);
    assert!(poll_once(&mut write).0.is_none());
    drop(write);
    network.heal();
    assert!(join(before).into_iter().all(|write| write.is_ok()));
    assert_eq!(block_on(far.read_async()), Ok(2));
}

#[test]
fn a_panic_of_a_change_is_its_futures() {
    for fabric in FABRICS {
        let rack = rack(fabric, None);
        let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
        for node in &rack.nodes()[..2] {
            let object: Object<u64> = node.attach_object(near.at()).unwrap();
            let panics = object.update_async(|_| std::panic::resume_unwind(Box::new("meant")));
            let panicked = catch_unwind(AssertUnwindSafe(|| block_on(panics)));
            let panic = panicked.unwrap_err();
            assert_eq!(panic.downcast_ref::<&str>(), Some(&"meant"), "{fabric:?}");
            assert!(block_on(object.update_async(|n| *n += 1)).is_ok());
        }
        assert_eq!(near.read(), Ok(3), "{fabric:?}");
    }
}

#[test]
fn a_closed_rack_ends_what_is_asked_for() {
    let rack = rack(Fabric::Udp, Some(Faults::NONE));
    let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
    let far: Object<u64> = rack.node(1).attach_object(near.at()).unwrap();
    let closed = AccessError::Rack(RackError::Closed);
    rack.faults()
        .unwrap()
        .part(&[End::Node(0)], &[End::Node(1)]);
    let mut read = far.read_async();
    let mut update = far.update_async(|n| *n += 1);
    assert!(poll_once(&mut read).0.is_none() && poll_once(&mut update).0.is_none());
    std::thread::scope(|scope| {
        scope.spawn(move || drop(rack));
        assert_eq!(block_on(read), Err(closed));
        assert_eq!(block_on(update), Err(closed));
    });
    assert_eq!(block_on(far.read_async()), Err(closed));
}

#[test]
fn futures_of_objects_may_go_to_another_thread() {
    let rack = rack(Fabric::Udp, None);
    let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
    let far: Object<u64> = rack.node(1).attach_object(near.at()).unwrap();
    let mut update = far.update_async(|n| *n += 1);
    // Woken by another waker than the one that it has begun with.
    let first = poll_once(&mut update).0;
    let updated = std::thread::spawn(move || first.unwrap_or_else(|| block_on(update)));
    updated.join().unwrap().unwrap();
    assert_eq!(near.read(), Ok(2));
}
