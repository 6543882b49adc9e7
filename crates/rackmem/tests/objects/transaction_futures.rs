//! Transactions by futures: one thread has many under way, which meet on the same accounts.

use crate::executor::{block_on, drop_at_any_moment, join, poll_once};
use crate::futures::{everywhere, rack};
use crate::processes::{Member, config};
use crate::together::{Moves, bank, killed_keepers, opened};
use crate::transactions::{Account, MONEY, accounts_of, attached, chosen, deed};
use crate::{LONG, region, until};
use rackmem::diagnostics::{End, Faults};
use rackmem::object::{MAX_TRANSACTION_OBJECTS, Object, ObjectRef};
use rackmem::{
    AccessError, Changed, Config, Fabric, Mode, Node, Rack, RackError, TransactionError,
};
use rackmem_sim::serial::{self, Deed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Moves some money between two accounts; what it has read and written, with versions.
async fn transfer(
    node: &Node,
    accounts: &[Account],
    began: Instant,
) -> Result<Deed<u64>, TransactionError> {
    let (from, to, amount) = chosen(accounts);
    let invoke = began.elapsed().as_nanos() as u64;
    let transfer = node.transaction_async(async |t| {
        let (had, has) = (t.read_async(from).await?, t.read_async(to).await?);
        let amount = amount.min(had);
        t.write(from, had - amount)?;
        t.write(to, has + amount)?;
        Ok([from, to].map(|account| (account.addr(), t.version_of(account).unwrap())))
    });
    Ok(deed(began, invoke, &transfer.await?, true))
}

/// Looks at all accounts at one moment.
async fn audit(
    node: &Node,
    accounts: &[Account],
    began: Instant,
) -> Result<Deed<u64>, TransactionError> {
    let invoke = began.elapsed().as_nanos() as u64;
    let audit = node.transaction_async(async |t| {
        let (mut sum, mut reads) = (0, Vec::new());
        for account in accounts {
            sum += t.read_async(account).await?;
            reads.push((account.addr(), t.version_of(account).unwrap()));
        }
        Ok((sum, reads))
    });
    let (sum, reads) = audit.await?;
    assert_eq!(sum, MONEY * accounts.len() as u64, "money is lost, or made");
    Ok(deed(began, invoke, &reads, false))
}

async fn add_one(node: &Node, objects: &[&Account]) -> Result<(), TransactionError> {
    let add = node.transaction_async(async |t| {
        for object in objects {
            let next = t.read_async(*object).await? + 1;
            t.write(object, next)?;
        }
        Ok(())
    });
    add.await
}

/// Accounts of three homes, or with copies.
fn made(rack: &Rack, kept: bool) -> Vec<ObjectRef> {
    if kept {
        return opened(&[bank(&rack.node(1), "kept", 64, 6)], 4);
    }
    let home = |node| opened(&[region(rack, node, &format!("bank {node}"))], 2);
    (0..3).flat_map(home).collect()
}

/// On all fabrics, also where packets are lost; accounts of homes, and with copies.
fn with_accounts(claim: impl Fn(&str, &Rack, &[ObjectRef])) {
    for kept in [false, true] {
        everywhere(|rack| {
            let accounts = made(rack, kept);
            claim(if kept { "kept" } else { "homes" }, rack, &accounts);
        });
    }
}

#[test]
fn tasks_move_money_and_none_is_lost_or_made() {
    const TASKS: usize = 5;
    const ROUNDS: usize = 6;
    with_accounts(|what, rack, accounts| {
        let began = Instant::now();
        let history: Vec<Deed<u64>> = std::thread::scope(|scope| {
            let threads = rack.nodes().iter().map(|node| {
                scope.spawn(move || {
                    let mine = &attached(node, accounts);
                    let all = join((0..TASKS).map(|nth| async move {
                        let mut all = Vec::new();
                        for _ in 0..ROUNDS {
                            all.push(match nth {
                                0 => audit(node, mine, began).await.unwrap(),
                                _ => transfer(node, mine, began).await.unwrap(),
                            });
                        }
                        all
                    }));
                    all.concat()
                })
            });
            let threads: Vec<_> = threads.collect();
            let all = threads.into_iter().map(|thread| thread.join().unwrap());
            all.flatten().collect()
        });
        let writers = history.iter().filter(|deed| !deed.writes.is_empty());
        assert_eq!(writers.count(), 4 * (TASKS - 1) * ROUNDS, "{what}");
        assert_eq!(serial::check(&history), Ok(()), "{what}");
    });
}

/// Those of one thread are in each other's way, in both directions, more of them than are asked for
/// at a time.
#[test]
fn transactions_of_one_thread_that_meet_all_end() {
    const TASKS: u64 = 40;
    with_accounts(|what, rack, accounts| {
        let node = &rack.node(1);
        let mine = &attached(node, accounts);
        let (first, last) = (&mine[0], &mine[3]);
        let added = join((0..TASKS).map(|nth| async move {
            match nth % 2 {
                0 => add_one(node, &[first, last]).await,
                _ => add_one(node, &[last, first]).await,
            }
        }));
        assert!(added.into_iter().all(|added| added == Ok(())), "{what}");
        for account in [first, last] {
            assert_eq!(account.read(), Ok(MONEY + TASKS), "{what}");
        }
    });
}

#[test]
fn transactions_by_futures_say_what_calls_say() {
    with_accounts(|what, rack, accounts| {
        let node = &rack.node(3);
        let mine = attached(node, accounts);
        let (a, b) = (&mine[0], &mine[1]);
        let (version, _) = a.read_versioned().unwrap();
        // What a run reads is what it has written; what it was is read once.
        let seen = block_on(node.transaction_async(async |t| {
            t.write(a, 7)?;
            let first = t.read_async(b).await?;
            t.write(b, first + 1)?;
            let now = (t.read_async(a).await?, t.read_async(b).await?);
            assert_eq!(now, (t.read(a)?, t.read(b)?));
            Ok((now, first, t.version_of(a)))
        }));
        assert_eq!(seen, Ok(((7, MONEY + 1), MONEY, None)), "{what}");
        assert_eq!(a.read_versioned(), Ok((version + 2, 7)), "{what}");
        // A program that gives it up, and what is wrong with what it reads or writes.
        let wrong: Object<[u64; 2]> = node.attach_object(a.at()).unwrap();
        let gone = accounts[2];
        attached(&rack.node(2), &[gone]).remove(0).free().unwrap();
        let gone: Account = node.attach_object(gone).unwrap();
        let long: Object<[u8]> = node.attach_object(a.at()).unwrap();
        type Case<'a> = (&'a str, [Result<(), TransactionError>; 2]);
        let cases: [Case<'_>; 4] = [
            (
                "cancelled",
                [
                    node.transaction(|t| t.write(a, 8).and(Err(TransactionError::Cancelled))),
                    block_on(node.transaction_async(async |t| {
                        t.write(a, 8).and(Err(TransactionError::Cancelled))
                    })),
                ],
            ),
            (
                "of another size",
                [
                    node.transaction(|t| t.read(&wrong).map(drop)),
                    block_on(
                        node.transaction_async(async |t| t.read_async(&wrong).await.map(drop)),
                    ),
                ],
            ),
            (
                "gone",
                [
                    node.transaction(|t| t.write(a, 8).and(t.write(&gone, 9))),
                    block_on(
                        node.transaction_async(async |t| t.write(a, 8).and(t.write(&gone, 9))),
                    ),
                ],
            ),
            (
                "too long",
                [
                    node.transaction(|t| t.write_bytes(&long, &[1; 5000])),
                    block_on(node.transaction_async(async |t| t.write_bytes(&long, &[1; 5000]))),
                ],
            ),
        ];
        for (case, [call, future]) in cases {
            assert_eq!(call, future, "{what}: {case}");
            assert_eq!(call.unwrap_err().changed(), Changed::No, "{what}: {case}");
        }
        let most = MAX_TRANSACTION_OBJECTS;
        let none = |nth| ObjectRef::new(a.addr() + 64 * nth, 1);
        let many = block_on(node.transaction_async(async |t| {
            for nth in 1..=most as u64 {
                t.write(&node.attach_object(none(nth)).unwrap(), 1u64)?;
            }
            t.read_async(a).await
        }));
        assert_eq!(many, Err(TransactionError::TooManyObjects { most }));
        assert_eq!(a.read(), Ok(7), "{what}");
        // Nothing is locked after all this.
        a.write(&8).unwrap();
    });
}

/// At any moment: before it is polled, while objects are read, while homes are asked to make it one
/// step, and when all is done.
#[test]
fn dropped_transactions_leave_nothing_locked_and_no_half() {
    const ROUNDS: u64 = 60;
    let (effects, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    with_accounts(|what, rack, accounts| {
        let (begun, done) = (&AtomicU64::new(0), &AtomicU64::new(0));
        let mine = attached(&rack.node(3), accounts);
        let versions = || -> u64 {
            let read = mine.iter().map(|account| account.read_versioned().unwrap());
            read.map(|(version, _)| version / 2).sum()
        };
        let before = versions();
        std::thread::scope(|scope| {
            for node in rack.nodes() {
                scope.spawn(move || {
                    let mine = &attached(node, accounts);
                    let (some, ended) = drop_at_any_moment(ROUNDS, |_| async {
                        transfer(node, mine, Instant::now()).await.unwrap()
                    });
                    begun.fetch_add(some, SeqCst);
                    done.fetch_add(ended, SeqCst);
                });
            }
        });
        let began = Instant::now();
        block_on(audit(
            &rack.node(0),
            &attached(&rack.node(0), accounts),
            began,
        ))
        .unwrap();
        // What nobody awaits goes on to its end.
        until("all are over", || {
            let now = versions();
            std::thread::sleep(Duration::from_millis(20));
            now == versions()
        });
        let (begun, done) = (begun.load(SeqCst), done.load(SeqCst));
        let moved = (versions() - before) / 2;
        assert!(
            (done..=begun).contains(&moved),
            "{what}: {done} {moved} {begun}"
        );
        effects.fetch_add(moved, SeqCst);
        ended.fetch_add(done, SeqCst);
        // Whoever had left something locked would stop these.
        for account in &mine {
            account.update(|_| ()).unwrap();
        }
        block_on(audit(&rack.node(3), &mine, began)).unwrap();
    });
    let dropped = effects.into_inner() - ended.into_inner();
    assert!(dropped > 0, "none was dropped while it was committed");
}

/// One that waits for its turn never takes effect.
#[test]
fn a_transaction_that_was_dropped_before_it_began_is_not_made() {
    let rack = rack(Fabric::Udp, Some(Faults::NONE));
    let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
    let node = &rack.node(1);
    let far = &node.attach_object::<u64>(near.at()).unwrap();
    let write = |value| Box::pin(node.transaction_async(async move |t| t.write(far, value)));
    let network = rack.faults().unwrap();
    network.part(&[End::Node(0)], &[End::Node(1)]);
    // As many as are under way at a time, and one behind them.
    let mut before: Vec<_> = (0..16).map(|_| write(2)).collect();
    for write in &mut before {
        assert!(poll_once(write).0.is_none());
    }
    let mut last = write(3);
    assert!(poll_once(&mut last).0.is_none());
    drop(last);
    network.heal();
    assert!(join(before).into_iter().all(|write| write == Ok(())));
    assert_eq!(block_on(far.read_async()), Ok(2));
}

/// As many as may be wait there, and no more; nothing of one that is refused has happened.
#[test]
fn as_many_transactions_as_may_be_are_asked_for_and_no_more() {
    for dropped in [false, true] {
        let rack = rack(Fabric::Udp, Some(Faults::NONE));
        let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
        let own = &region(&rack, 1, "own").alloc(5u64).unwrap();
        let node = &rack.node(1);
        let far = &node.attach_object::<u64>(near.at()).unwrap();
        let write = |value| Box::pin(node.transaction_async(async move |t| t.write(far, value)));
        let network = rack.faults().unwrap();
        network.part(&[End::Node(0)], &[End::Node(1)]);
        let mut waiting: Vec<_> = (0..4096).map(|_| write(2)).collect();
        for write in &mut waiting {
            assert!(poll_once(write).0.is_none());
        }
        let full = AccessError::TooManyAsked { most: 4096 };
        let refused = Some(Err(TransactionError::Access(full)));
        assert_eq!(poll_once(write(3)).0, refused);
        // What one has read and it writes nothing needs nobody.
        let read = Box::pin(node.transaction_async(async |t| t.read_async(own).await));
        assert_eq!(poll_once(read).0, Some(Ok(5)));
        waiting.truncate(if dropped { 0 } else { 200 });
        network.heal();
        assert!(join(waiting).into_iter().all(|write| write == Ok(())));
        until("there is room", || {
            block_on(add_one(node, &[own])) == Ok(())
        });
        assert!(near.read().unwrap() <= 2, "refused is not written");
        near.write(&4).unwrap();
    }
}

/// Node 1 of three, with objects of the others' homes, whose network is taken away at times.
fn impatient(fabric: Fabric, pairs: usize, patience: u64) -> (Rack, Vec<[Account; 2]>) {
    let rack = Rack::builder(3).fabric(fabric).mode(Mode::HomeOnly);
    let rack = rack.memory(64 << 20).cache(1 << 20).faults(Faults::NONE);
    let rack = rack.patience(Duration::from_millis(patience));
    let rack = rack.build().unwrap();
    let homes = [0, 2].map(|node| region(&rack, node, &format!("bank {node}")));
    let near = |home: &rackmem::Region| -> Account {
        let there: Account = home.alloc(0).unwrap();
        rack.node(1).attach_object(there.at()).unwrap()
    };
    let pairs = (0..pairs).map(|_| homes.each_ref().map(near)).collect();
    (rack, pairs)
}

/// One home has locked its part, and the other one is silent: it is given up, the first home is
/// free again, and it does not take effect when the other one is there again.
#[test]
fn what_a_silent_home_keeps_waiting_is_given_up_and_released() {
    for fabric in [Fabric::Shm, Fabric::Udp] {
        let (rack, pairs) = impatient(fabric, 1, 2000);
        let ([first, second], node) = (&pairs[0], &rack.node(1));
        let network = rack.faults().unwrap();
        let given_up = block_on(node.transaction_async(async |t| {
            let sum = t.read_async(first).await? + t.read_async(second).await?;
            network.part(&[End::Node(1)], &[End::Node(2)]);
            t.write(first, sum + 1)?;
            t.write(second, sum + 1)
        }));
        let why = RackError::Timeout { node: 2 };
        let is = Err(TransactionError::GivenUp { why });
        assert_eq!(given_up, is, "{fabric:?}");
        let there: Account = rack.node(0).attach_object(first.at()).unwrap();
        until("it is free", || there.update(|n| *n += 10).is_ok());
        network.heal();
        let both = [second, first];
        until("they go on", || block_on(add_one(node, &both)) == Ok(()));
        let values = pairs[0].each_ref().map(|object| object.read());
        assert_eq!(values, [Ok(11), Ok(1)], "{fabric:?}");
    }
}

/// Wherever it is when the network goes away: what was given up is not made, what is said to have
/// taken effect has, and what was left behind keeps nobody out.
#[test]
fn what_is_given_up_is_not_made() {
    const PAIRS: usize = 8;
    for fabric in [Fabric::Shm, Fabric::Udp] {
        let (rack, pairs) = impatient(fabric, PAIRS, 500);
        let (node, network) = (&rack.node(1), rack.faults().unwrap());
        let (mut done, mut perhaps) = ([0; PAIRS], [0; PAIRS]);
        for nth in 0..5u16 {
            let ended = std::thread::scope(|scope| {
                scope.spawn(move || {
                    std::thread::sleep(Duration::from_micros(fastrand::u64(0..3000)));
                    network.part(&[End::Node(nth % 2 * 2)], &[End::Node(1)]);
                });
                join(pairs.iter().map(|pair| async move {
                    let mut done = 0;
                    loop {
                        match add_one(node, &pair.each_ref()).await {
                            Ok(()) => done += 1,
                            Err(error) => break (done, error.changed()),
                        }
                    }
                }))
            });
            network.heal();
            for (at, (more, changed)) in ended.into_iter().enumerate() {
                done[at] += more;
                perhaps[at] += u64::from(changed == Changed::Perhaps);
            }
            // In slots where others were given up.
            let again = join(pairs.iter().map(|pair| add_one_more(node, pair)));
            for (at, failed) in again.into_iter().enumerate() {
                done[at] += 1;
                perhaps[at] += failed;
            }
        }
        for (at, [first, second]) in pairs.iter().enumerate() {
            until("all are over", || first.read() == second.read());
            let (count, least) = (first.read().unwrap(), done[at]);
            let most = least + perhaps[at];
            assert!(
                (least..=most).contains(&count),
                "{fabric:?}: {least} {count} {most}"
            );
            first.update(|_| ()).unwrap();
        }
    }
}

/// However often it fails: how often it may have been made before.
async fn add_one_more(node: &Node, pair: &[Account; 2]) -> u64 {
    let (end, mut perhaps) = (Instant::now() + LONG, 0);
    while let Err(error) = add_one(node, &pair.each_ref()).await {
        assert!(Instant::now() < end, "it goes on: {error}");
        perhaps += u64::from(error.changed() == Changed::Perhaps);
    }
    perhaps
}

#[test]
fn a_panic_of_a_transaction_is_its_futures() {
    with_accounts(|what, rack, accounts| {
        let node = &rack.node(3);
        let mine = attached(node, accounts);
        let panics = node.transaction_async(async |t| {
            let had = t.read_async(&mine[0]).await?;
            t.write(&mine[0], had + 1)?;
            if had > 0 {
                std::panic::resume_unwind(Box::new("meant"));
            }
            Ok(())
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| block_on(panics)));
        let panic = panicked.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"meant"), "{what}");
        block_on(add_one(node, &[&mine[0]])).unwrap();
        assert_eq!(mine[0].read(), Ok(MONEY + 1), "{what}");
    });
}

#[test]
fn a_closed_rack_ends_transactions() {
    let rack = rack(Fabric::Udp, Some(Faults::NONE));
    let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
    let node = &rack.node(1);
    let far = &node.attach_object::<u64>(near.at()).unwrap();
    let network = rack.faults().unwrap();
    network.part(&[End::Node(0)], &[End::Node(1)]);
    let write = || Box::pin(node.transaction_async(async |t| t.write(far, 2)));
    let far_one = &[far];
    let mut reads = Box::pin(add_one(node, far_one));
    assert!(poll_once(&mut reads).0.is_none());
    // More than are under way at a time.
    let mut writes: Vec<_> = (0..40).map(|_| write()).collect();
    for write in &mut writes {
        assert!(poll_once(write).0.is_none());
    }
    let why = RackError::Closed;
    std::thread::scope(|scope| {
        scope.spawn(move || drop(rack));
        assert_eq!(block_on(reads), Err(TransactionError::Rack(why)));
        for write in join(writes) {
            assert_eq!(write, Err(TransactionError::GivenUp { why }));
        }
    });
    assert_eq!(block_on(write()), Err(TransactionError::Rack(why)));
}

/// A rack that is closed after the closure has run and before homes are asked:
/// nothing has happened, and the call and its future say so with the same error.
#[test]
fn a_rack_closed_before_homes_are_asked_is_said_by_both_in_the_same_way() {
    let why = RackError::Closed;
    let with_rack = |end: &dyn Fn(Rack, &Node, &Account) -> Result<(), TransactionError>| {
        let rack = rack(Fabric::Shm, None);
        let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
        let node = rack.node(1);
        let far: Account = node.attach_object(near.at()).unwrap();
        end(rack, &node, &far)
    };
    let call = with_rack(&|rack, node, far| {
        let mut rack = Some(rack);
        node.transaction(|t| {
            t.write(far, 2)?;
            drop(rack.take());
            Ok(())
        })
    });
    let future = with_rack(&|rack, node, far| {
        let mut rack = Some(rack);
        block_on(node.transaction_async(async |t| {
            t.write(far, 2)?;
            drop(rack.take());
            Ok(())
        }))
    });
    assert_eq!(call, Err(TransactionError::GivenUp { why }));
    assert_eq!(future, call);
}

/// A closure may leave a read that takes too long, and go on without that object.
#[test]
fn a_read_that_a_closure_drops_is_no_part_of_its_transaction() {
    with_accounts(|what, rack, accounts| {
        let node = &rack.node(3);
        let mine = &attached(node, accounts);
        let (left, other) = (&mine[0], &mine[1]);
        let had = other.read().unwrap();
        block_on(node.transaction_async(async |t| {
            drop(poll_once(Box::pin(t.read_async(left))));
            let unread = t.version_of(left).is_none();
            // Of the same process it is there at once.
            if unread {
                left.update(|money| *money += 1).unwrap();
            }
            let has = t.read_async(other).await?;
            t.write(other, has + 1)?;
            assert!(!unread || t.version_of(left).is_none());
            Ok(())
        }))
        .unwrap();
        assert_eq!(other.read(), Ok(had + 1), "{what}");
        // And it is read if it is asked for again.
        let again = node.transaction_async(async |t| {
            drop(poll_once(Box::pin(t.read_async(left))));
            let now = t.read_async(left).await?;
            t.write(left, now + 1)
        });
        let before = left.read().unwrap();
        block_on(again).unwrap();
        assert_eq!(left.read(), Ok(before + 1), "{what}");
    });
}

#[test]
fn transactions_may_go_to_another_thread() {
    let rack = rack(Fabric::Udp, None);
    let near = region(&rack, 0, "objects").alloc(1u64).unwrap();
    let node = rack.node(1);
    let far: Account = node.attach_object(near.at()).unwrap();
    // In a task of an executor that moves tasks, which awaits others of them.
    let mut twice = Box::pin(async move {
        for _ in 0..2 {
            let far = far.clone();
            let add = node.transaction_async(async move |t| {
                let next = t.read_async(&far).await? + 1;
                t.write(&far, next)
            });
            add.await.unwrap();
        }
    });
    let first = poll_once(&mut twice).0;
    let done = std::thread::spawn(move || first.unwrap_or_else(|| block_on(twice)));
    done.join().unwrap();
    assert_eq!(near.read(), Ok(3));
}

/// The process of a home is killed: tasks are told so, and accounts of other homes are free.
#[test]
fn tasks_are_told_that_a_home_of_their_transactions_has_died() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = config(fabric, 2);
        let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
        let node = &rack.node(0);
        let mut home = Member::start("transactions::member", &text, 1, "");
        let mut accounts = accounts_of(&home.line());
        accounts.extend(opened(&[region(&rack, 0, "bank 0")], 2));
        let mine = &attached(node, &accounts);
        let (rounds, began) = (&AtomicU64::new(0), Instant::now());
        let lost = RackError::NodeLost { node: 1 };
        std::thread::scope(|scope| {
            let tasks = scope.spawn(move || {
                join((0..12).map(|_| async move {
                    loop {
                        assert!(began.elapsed() < 2 * LONG, "its death is not told");
                        match transfer(node, mine, began).await {
                            Ok(_) => drop(rounds.fetch_add(1, SeqCst)),
                            Err(TransactionError::Rack(why)) => break why,
                            Err(TransactionError::Undecided { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }))
            });
            until("they move money", || rounds.load(SeqCst) >= 100);
            home.signal("-KILL");
            let told = tasks.join().unwrap();
            assert!(told.into_iter().all(|why| why == lost), "{fabric}");
        });
        for account in &mine[1..] {
            account.update(|_| ()).unwrap();
        }
        block_on(add_one(node, &[&mine[1], &mine[2]])).unwrap();
        let dead = block_on(add_one(node, &[&mine[1], &mine[0]]));
        assert_eq!(dead, Err(TransactionError::Rack(lost)), "{fabric}");
    }
}

/// Four tasks of one thread.
fn moves(all: &Moves<'_>) -> Vec<Deed<u64>> {
    let moved = join((0..4).map(|_| async {
        let mut moved = Vec::new();
        while !all.over.load(SeqCst) {
            moved.push(transfer(all.node, &all.accounts, all.began).await.unwrap());
            add_one(all.node, &[&all.counted]).await.unwrap();
            all.done.fetch_add(1, SeqCst);
        }
        moved
    }));
    moved.concat()
}

#[test]
fn money_that_tasks_move_outlives_a_killed_keeper() {
    for fabric in ["shm", "udp"] {
        killed_keepers(fabric, (2, 1), moves);
    }
}
