//! Items by futures: one thread has many of them under way.

use crate::child::ChildTest;
use crate::executor::{beside, block_on, drop_at_any_moment, join, poll_once};
use crate::histories::{BOUND, ITEMS, ROUGH, judged};
use crate::processes::{CONFIG, LEASE, config};
use crate::{FABRICS, LONG, domains, rack, spec};
use rackmem::bounded::Domain;
use rackmem::diagnostics::{End, Faults};
use rackmem::{AccessError, Config, Fabric, Mode, Rack, RackError};
use rackmem_sim::history::{Call, Recorder, Reply};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn faulty(faults: Faults) -> Rack {
    let rack = Rack::builder(3).fabric(Fabric::Udp).mode(Mode::HomeOnly);
    let rack = rack.memory(64 << 20).cache(1 << 20).patience(LONG);
    rack.faults(faults).build().unwrap()
}

/// On all fabrics, and where packets are lost, doubled and late.
fn everywhere(claim: impl Fn(&str, &Rack)) {
    for fabric in FABRICS {
        claim(&format!("{fabric:?}"), &rack(fabric, 3));
    }
    claim("a bad network", &faulty(ROUGH));
}

#[test]
fn futures_of_items_say_what_calls_say() {
    everywhere(|what, rack| {
        let all = domains(rack, 10, LONG);
        let outside = AccessError::OutOfBounds {
            at: 10,
            len: 1,
            of: 10,
        };
        for (nth, domain) in (1..).zip(&all) {
            assert_eq!(block_on(domain.read_async(3)), Ok(nth - 1), "{what}");
            // A hit needs no other thread.
            assert_eq!(poll_once(domain.read_async(3)).0, Some(Ok(nth - 1)));
            assert_eq!(block_on(domain.set_async(3, nth)), Ok(()), "{what}");
            // Own writes are seen; those of others when it is asked for them.
            assert_eq!(poll_once(domain.read_async(3)).0, Some(Ok(nth)));
            for other in &all {
                block_on(other.quiesce_async()).unwrap();
                assert_eq!(other.read(3), Ok(nth), "{what}");
            }
            assert_eq!(block_on(domain.read_async(10)), Err(outside));
            assert_eq!(block_on(domain.set_async(10, 1)), Err(outside));
            block_on(async {
                let section = domain.enter_async().await.unwrap();
                assert_eq!(section.get_async(3).await, Ok(nth), "{what}");
                assert_eq!(section.get_async(4).await, Ok(0), "{what}");
                assert_eq!(section.get_async(10).await, Err(outside));
                assert_eq!(section.finish(), Ok(()));
                let mut writer = domain.writer_async().await.unwrap();
                assert_eq!(writer.get_async(5).await, Ok(10 * (nth - 1)));
                assert_eq!(writer.update_async(5, |n| n + 10).await, Ok(10 * nth));
                assert_eq!(writer.set_async(6, nth).await, Ok(()));
                assert_eq!(writer.writes(), 2 * nth, "{what}");
                assert_eq!(writer.set_async(10, nth).await, Err(outside));
            });
        }
        rack.node(1).remove_region("items").unwrap();
        for domain in &all {
            let gone = block_on(domain.quiesce_async());
            assert_eq!(gone, domain.quiesce(), "{what}");
            assert!(matches!(gone, Err(AccessError::Gone { .. })), "{gone:?}");
            assert_eq!(block_on(domain.set_async(1, 1)), gone, "{what}");
        }
    });
}

/// Tasks of one thread a node read and write; what they are told is judged as that of threads is.
#[test]
fn what_tasks_read_of_items_was_current_within_the_bound() {
    const TASKS: usize = 4;
    const OPERATIONS: usize = 1500;
    everywhere(|what, rack| {
        let all = domains(rack, ITEMS, BOUND);
        let end = Instant::now() + LONG;
        let mut old = 0;
        while old == 0 {
            assert!(Instant::now() < end, "{what}: nothing old is read");
            let recorder = Recorder::new(1 << 20);
            std::thread::scope(|scope| {
                let recorder = &recorder;
                for (node, domain) in all.iter().enumerate() {
                    scope.spawn(move || {
                        join((0..TASKS).map(|nth| async move {
                            let task = node * TASKS + nth;
                            let mut log = recorder.client(node as u32);
                            let mut random = fastrand::Rng::with_seed(task as u64);
                            for done in 0..OPERATIONS {
                                let item = random.usize(..ITEMS);
                                let key = item.to_string();
                                if random.usize(..50) == 0 {
                                    let value = (task * OPERATIONS + done + 1) as u64;
                                    let text = value.to_string();
                                    let call = Call::Set { value: text };
                                    let ticket = log.begin(&key, call).unwrap();
                                    // The lock's turns of the tasks of one thread, too.
                                    let mut writer = domain.writer_async().await.unwrap();
                                    writer.set_async(item, value).await.unwrap();
                                    drop(writer);
                                    log.ok(ticket, Reply::Nil);
                                } else {
                                    let ticket = log.begin(&key, Call::Get).unwrap();
                                    match domain.read_async(item).await {
                                        Ok(0) => log.ok(ticket, Reply::Nil),
                                        Ok(read) => log.ok(ticket, Reply::Text(read.to_string())),
                                        Err(AccessError::Stale { .. }) => log.fail(ticket),
                                        Err(error) => panic!("{error}"),
                                    }
                                }
                                // Over several ticks.
                                if done % 100 == 0 {
                                    std::thread::sleep(BOUND / 20);
                                }
                            }
                        }));
                    });
                }
            });
            old = judged(&recorder.into_history()).old;
        }
    });
}

/// A network through which nothing comes: as many as may be wait there, and no more. What is here
/// goes on, and all of it when the network is there again.
#[test]
fn as_many_items_as_may_be_are_asked_for_and_no_more() {
    for dropped in [false, true] {
        let rack = faulty(Faults::NONE);
        let all = domains(&rack, 10, LONG);
        let far = &all[1];
        all[0].set(2, &7).unwrap();
        assert_eq!(far.read(2), Ok(7));
        let network = rack.faults().unwrap();
        network.part(&[End::Node(0)], &[End::Node(1)]);
        let mut reads: Vec<_> = (0..2048).map(|_| far.read_async(3)).collect();
        let mut writes: Vec<_> = (0..2048).map(|_| far.set_async(4, 9)).collect();
        for nth in 0..2048 {
            assert!(poll_once(&mut reads[nth]).0.is_none());
            assert!(poll_once(&mut writes[nth]).0.is_none());
        }
        let refused = AccessError::TooManyAsked { most: 4096 };
        assert_eq!(poll_once(far.read_async(3)).0, Some(Err(refused)));
        assert_eq!(poll_once(far.set_async(5, 1)).0, Some(Err(refused)));
        assert_eq!(poll_once(far.quiesce_async()).0, Some(Err(refused)));
        assert_eq!(poll_once(far.read_async(2)).0, Some(Ok(7)));
        assert_eq!(poll_once(all[0].read_async(2)).0, Some(Ok(7)));
        if dropped {
            reads.clear();
            writes.clear();
        }
        network.heal();
        assert!(join(reads).into_iter().all(|read| read == Ok(0)));
        assert!(join(writes).into_iter().all(|write| write == Ok(())));
        let end = Instant::now() + LONG;
        while block_on(far.read_async(3)) == Err(refused) {
            assert!(Instant::now() < end, "there is no room again");
        }
        all[0].quiesce().unwrap();
        assert_eq!(all[0].read(5), Ok(0), "refused is not written");
    }
}

/// One that waits for its turn is not done.
#[test]
fn a_write_that_was_dropped_before_it_began_is_not_made() {
    let rack = faulty(Faults::NONE);
    let all = domains(&rack, 10, LONG);
    let network = rack.faults().unwrap();
    network.part(&[End::Node(0)], &[End::Node(1)]);
    // As many as are under way at a time, and one behind them.
    let mut before: Vec<_> = (0..16).map(|_| all[1].set_async(0, 2)).collect();
    for write in &mut before {
        assert!(poll_once(write).0.is_none());
    }
    let mut write = all[1].set_async(0, 3);
    assert!(poll_once(&mut write).0.is_none());
    drop(write);
    network.heal();
    assert!(join(before).into_iter().all(|write| write.is_ok()));
    // Whatever was in front of these has been asked for.
    for _ in 0..16 {
        block_on(all[1].set_async(1, 1)).unwrap();
    }
    assert_eq!(block_on(all[0].writer().unwrap().get_async(0)), Ok(2));
}

/// At any moment: before it is polled, while its home is asked, and when all is done.
#[test]
fn dropped_futures_of_items_keep_nobody_waiting() {
    const ROUNDS: u64 = 80;
    everywhere(|what, rack| {
        let all = domains(rack, ITEMS, BOUND);
        let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for domain in &all {
                let (begun, done) = (&begun, &done);
                scope.spawn(move || {
                    let (some, ended) = drop_at_any_moment(ROUNDS, |nth| {
                        let heard = domain.quiesce_async();
                        let read = domain.read_async(nth as usize % ITEMS);
                        let counts = async {
                            let mut writer = domain.writer_async().await.unwrap();
                            writer.update_async(0, |count| count + 1).await.unwrap();
                        };
                        beside(heard, beside(read, counts))
                    });
                    begun.fetch_add(some, SeqCst);
                    done.fetch_add(ended, SeqCst);
                });
            }
        });
        // Whoever had left something locked would stop these.
        let (done, begun) = (done.load(SeqCst), begun.load(SeqCst));
        let mut writer = block_on(all[1].writer_async()).unwrap();
        let count = writer.get(0).unwrap();
        assert!(
            count <= begun && count > 0,
            "{what}: {count}, {done}, {begun}"
        );
        writer.update(0, |count| count + 1).unwrap();
        // A write that was dropped may still come.
        let end = Instant::now() + LONG;
        let same = |domain: &Domain<u64>, count| {
            block_on(domain.quiesce_async()).unwrap();
            crate::read(domain, 0) == Some(count)
        };
        while let count = writer.get(0).unwrap()
            && !all.iter().all(|domain| same(domain, count))
        {
            assert!(Instant::now() < end, "{what}: they do not agree");
        }
    });
}

#[test]
fn a_closed_rack_ends_what_is_asked_of_items() {
    let rack = faulty(Faults::NONE);
    let all = domains(&rack, 10, LONG);
    let network = rack.faults().unwrap();
    network.part(&[End::Node(0)], &[End::Node(1)]);
    let mut reads: Vec<_> = (0..40).map(|_| all[1].read_async(3)).collect();
    for read in &mut reads {
        assert!(poll_once(read).0.is_none());
    }
    let domain = all[1].clone();
    drop(rack);
    let closed = AccessError::Rack(RackError::Closed);
    assert!(join(reads).into_iter().all(|read| read == Err(closed)));
    assert_eq!(block_on(domain.set_async(0, 1)), Err(closed));
}

/// The process of node 1, the home of the items, is killed while tasks of node 0 use them.
#[test]
fn tasks_are_told_that_their_home_has_died() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = config("tasks-home", fabric, [LONG, LEASE]);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let mut home = ChildTest::start("processes::home_process", (CONFIG, &text));
        assert_eq!(home.line(), "there");
        let region = rack.node(0).open_region(&spec(8)).unwrap();
        let items = &Domain::<u64>::of(&region, Duration::from_millis(100)).unwrap();
        drop(block_on(items.writer_async()).unwrap());
        let rounds = &AtomicU64::new(0);
        std::thread::scope(|scope| {
            let tasks = scope.spawn(move || {
                join((0..6).map(|nth| async move {
                    let end = Instant::now() + 2 * LONG;
                    loop {
                        assert!(Instant::now() < end, "its death is not told");
                        let done = match nth % 3 {
                            0 => items.read_async(nth).await.map(drop),
                            1 => items.set_async(nth, 1).await,
                            _ => items.quiesce_async().await,
                        };
                        match done {
                            Ok(()) | Err(AccessError::Stale { .. }) => {}
                            Err(error) => break error,
                        }
                        rounds.fetch_add(1, SeqCst);
                    }
                }))
            });
            let end = Instant::now() + LONG;
            while rounds.load(SeqCst) < 200 {
                assert!(Instant::now() < end);
                std::thread::sleep(Duration::from_millis(1));
            }
            home.signal("-KILL");
            let lost = AccessError::Rack(RackError::NodeLost { node: 1 });
            for error in tasks.join().unwrap() {
                assert_eq!(error, lost, "{fabric}");
            }
        });
        // Its writers' lock has gone with it.
        let end = Instant::now() + LONG;
        while block_on(items.writer_async()).is_ok() {
            assert!(Instant::now() < end, "{fabric}: it goes on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn futures_of_items_may_go_to_another_thread() {
    let rack = rack(Fabric::Udp, 2);
    let all = domains(&rack, 4, LONG);
    let mut write = all[1].set_async(0, 5);
    let first = poll_once(&mut write).0;
    let written = std::thread::spawn(move || first.unwrap_or_else(|| block_on(write)));
    written.join().unwrap().unwrap();
    assert_eq!(all[0].writer().unwrap().get(0), Ok(5));
}
