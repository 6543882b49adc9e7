//! Transactions that write objects with copies and objects without: accounts of both kinds, between
//! which money moves and of which none is lost, whoever dies.

use crate::executor::block_on;
use crate::processes::{Member, patient_config, started};
use crate::together::{bank, opened, outlived};
use crate::transactions::{MONEY, accounts_of, attached, audit, moved, numbers, transfer};
use crate::{FABRICS, LONG, Stop, rack, region};
use rackmem::object::{
    MAX_TRANSACTION_BYTES, MAX_TRANSACTION_BYTES_WITH_COPIES, Object, ObjectRef, Transaction,
};
use rackmem::{
    AccessError, Changed, Config, Contract, Fabric, Mode, Node, Rack, RackError, RegionSpec,
    TransactionError,
};
use rackmem_sim::serial::{self, Deed};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Accounts with copies, of so many regions, and then two at each of these nodes.
fn accounts(rack: &Rack, regions: usize, homes: &[usize]) -> Vec<ObjectRef> {
    let lines = [64, 128].into_iter().enumerate().take(regions);
    let banks: Vec<_> = lines
        .map(|(nth, line)| bank(&rack.node(homes[0]), &format!("kept {nth}"), line, 8))
        .collect();
    let mut all = opened(&banks, 3);
    for home in homes {
        let bank = region(rack, *home, &format!("bank {home}"));
        all.extend((0..2).map(|_| bank.alloc(MONEY).unwrap().at()));
    }
    all
}

#[test]
fn no_money_is_lost_or_made_between_accounts_with_copies_and_without() {
    for (fabric, regions) in FABRICS
        .iter()
        .flat_map(|fabric| [1, 2].map(|regions| (*fabric, regions)))
    {
        let mode = [Mode::HomeOnly, Mode::Switch][regions - 1];
        let rack = rack(fabric, mode, 3);
        let accounts = accounts(&rack, regions, &[1, 0, 2]);
        let count = if fabric == Fabric::Inline { 100 } else { 30 };
        let history = moved(&rack, &accounts, count);
        let writers = history.iter().filter(|deed| !deed.writes.is_empty());
        assert_eq!(writers.count(), 3 * count, "{fabric:?}, {regions}");
        assert_eq!(serial::check(&history), Ok(()), "{fabric:?}, {regions}");
    }
}

/// All kinds in one: what has copies and what has none, written with a read and without one, and
/// only read.
#[test]
fn a_transaction_writes_what_has_copies_and_what_has_none() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let node = &rack.node(0);
        let (one, two) = (
            bank(node, "one", 64, 4),
            bank(&rack.node(1), "two", 4096, 20),
        );
        let kept: [Object<u64>; 3] = [&one, &two, &two].map(|bank| bank.alloc(1u64).unwrap());
        let plain: [Object<u64>; 3] = [0, 1, 2].map(|home| {
            let made = region(&rack, home, &format!("plain {home}")).alloc(2u64);
            node.attach_object(made.unwrap().at()).unwrap()
        });
        let versions = |all: &[Object<u64>; 3]| {
            all.each_ref()
                .map(|object| object.read_versioned().unwrap().0)
        };
        let before = (versions(&kept), versions(&plain));
        let sum = node.transaction(|t| {
            let sum =
                t.read(&kept[0])? + t.read(&kept[2])? + t.read(&plain[0])? + t.read(&plain[2])?;
            t.write(&kept[0], sum)?;
            t.write(&kept[1], sum)?;
            t.write(&plain[0], sum)?;
            t.write(&plain[1], sum)?;
            Ok(sum)
        });
        assert_eq!(sum, Ok(6), "{fabric:?}");
        let read = |all: &[Object<u64>; 3]| all.each_ref().map(|object| object.read().unwrap());
        assert_eq!(
            (read(&kept), read(&plain)),
            ([6, 6, 1], [6, 6, 2]),
            "{fabric:?}"
        );
        // What was only read is as it was, and nothing is locked.
        let after = (versions(&kept), versions(&plain));
        assert_eq!((after.0[2], after.1[2]), (before.0[2], before.1[2]));
        assert_eq!(after.0[0], before.0[0] + 2, "{fabric:?}");
        for object in plain.iter().chain(&kept) {
            object.write(&7).unwrap();
        }
        // By a future, and from the node that keeps nothing of it.
        let other = &rack.node(2);
        let [a, b] = [&kept[0], &plain[1]].map(|it| other.attach_object::<u64>(it.at()).unwrap());
        let moved = block_on(other.transaction_async(async |t| {
            let amount = t.read_async(&a).await?;
            t.write(&a, 0)?;
            t.write(&b, 100 + amount)
        }));
        assert_eq!(
            (moved, kept[0].read(), plain[1].read()),
            (Ok(()), Ok(0), Ok(107))
        );
    }
}

#[test]
fn what_is_refused_of_both_kinds_leaves_both_as_they_were() {
    for fabric in FABRICS {
        let rack = rack(fabric, Mode::HomeOnly, 3);
        let node = &rack.node(0);
        let kept: Object<u64> = bank(node, "kept", 64, 4).alloc(1).unwrap();
        let home = region(&rack, 1, "plain");
        let plain: Object<u64> = node.attach_object(home.alloc(2u64).unwrap().at()).unwrap();
        let both = |last: &dyn Fn(&mut Transaction<'_>) -> Result<(), TransactionError>| {
            node.transaction(|t| {
                t.write(&kept, 9)?;
                t.write(&plain, 9)?;
                last(t)
            })
        };
        // One that is gone, with copies and without.
        for gone in [
            bank(node, "kept", 64, 4).alloc(3u64).unwrap(),
            home.alloc(3u64).unwrap(),
        ] {
            let addr = gone.addr();
            let handle: Object<u64> = node.attach_object(gone.at()).unwrap();
            gone.free().unwrap();
            let error = TransactionError::Access(AccessError::Gone { addr });
            assert_eq!(both(&|t| t.write(&handle, 9)), Err(error), "{fabric:?}");
        }
        // One that is too long for its place, in either.
        let spec = RegionSpec::new("large", 4 << 20).contract(Contract::Object);
        let large = rack.node(2).create_region(&spec).unwrap();
        let many = bank(node, "many", 4096, 20);
        for (region, len) in [(&many, 5000), (&large, 5000)] {
            let made = region.alloc_bytes(b"x", 10).unwrap();
            let object: Object<[u8]> = node.attach_object(made.at()).unwrap();
            let (addr, is) = (object.addr(), 0);
            let error = TransactionError::Access(AccessError::OtherSize { addr, len, is });
            assert_eq!(both(&|t| t.write_bytes(&object, &vec![1; len])), Err(error));
        }
        // Each kind has a bound of its own, and both together have one.
        let objects = |region: &rackmem::Region, count: usize, len: usize| -> Vec<Object<[u8]>> {
            let all = (0..count).map(|_| region.alloc_bytes(&[], len).unwrap().at());
            all.map(|at| node.attach_object(at).unwrap()).collect()
        };
        let (small, long) = (objects(&many, 18, 4064), objects(&large, 16, 65_000));
        for (small, most) in [
            (&small[..17], MAX_TRANSACTION_BYTES_WITH_COPIES),
            (&small[..3], MAX_TRANSACTION_BYTES),
        ] {
            let written = both(&|t| {
                let all = small.iter().map(|object| (object, 4064));
                let all = all.chain(long.iter().map(|object| (object, 65_000)));
                all.clone()
                    .try_for_each(|(object, len)| t.write_bytes(object, &vec![1; len]))
            });
            assert!(
                matches!(written, Err(TransactionError::TooManyBytes { most: m, .. }) if m == most),
                "{fabric:?}: {written:?}"
            );
        }
        assert_eq!((kept.read(), plain.read()), (Ok(1), Ok(2)), "{fabric:?}");
        kept.write(&3).unwrap();
        plain.write(&3).unwrap();
    }
}

/// Not a test but a process that others start: it serves, with an account of its own if it is asked
/// for one, until it is killed; or with accounts it moves money between them.
#[test]
fn member() {
    let Some((config, node, argument)) = started("mixed::member") else {
        return;
    };
    let rack = Rack::join(&config, node).unwrap();
    match &argument[..] {
        "" => eprintln!("is there"),
        "account" => {
            let bank = region(&rack, node, &format!("bank {node}"));
            eprintln!("{}", numbers(&bank.alloc(MONEY).unwrap().at()));
        }
        accounts => return moves_until_killed(&rack.node(node), &accounts_of(accounts)),
    }
    std::thread::sleep(Duration::from_secs(3600));
}

fn moves_until_killed(node: &Node, accounts: &[ObjectRef]) {
    let accounts = attached(node, accounts);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (accounts, over) = (&accounts, &over);
        for _ in 0..3 {
            scope.spawn(move || {
                let mut done = 0;
                while !over.load(SeqCst) {
                    match transfer(node, accounts, Instant::now()) {
                        Ok(_) => {
                            done += 1;
                            if done == 5 {
                                eprintln!("moves");
                            }
                        }
                        Err(TransactionError::Rack(RackError::Fenced)) => over.store(true, SeqCst),
                        // An epoch is beginning.
                        Err(error) => {
                            assert!(error.changed() != Changed::Yes, "{error}");
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                }
            });
        }
    });
    eprintln!("is given up");
}

/// Coordinators are killed in the middle, or stopped until the rack goes on without them, and the
/// same node is back in the next round. Homes and those who keep copies live.
fn ended_coordinators(fabric: &str, ends: &[&str]) {
    let (text, _folder) = patient_config(fabric, 4);
    let mut home = Member::start("mixed::member", &text, 1, "account");
    let other = home.line();
    let rack = Rack::join(&Config::parse(&text).unwrap(), 0).unwrap();
    let node = &rack.node(0);
    let mut third = Member::start("mixed::member", &text, 2, "");
    assert_eq!(third.line(), "is there");
    let mut all = accounts(&rack, 2, &[0]);
    all.extend(accounts_of(&other));
    let written: Vec<String> = all.iter().map(numbers).collect();
    let (mine, began) = (attached(node, &all), Instant::now());
    for (round, end) in ends.iter().enumerate() {
        let mut mover = Member::start("mixed::member", &text, 3, &written.join(" "));
        for _ in 0..3 {
            assert_eq!(mover.line(), "moves", "{fabric}, round {round}");
        }
        std::thread::sleep(Duration::from_millis(20 + 17 * round as u64));
        mover.signal(end);
        // What it has locked is free again, as soon as it is known what has come of it.
        let (before, members) = (Instant::now(), || rack.view().unwrap().live);
        while members().contains(3) {
            assert!(before.elapsed() < LONG, "{fabric}: it is not given up");
            std::thread::sleep(Duration::from_millis(5));
        }
        audit(node, &mine, began).unwrap();
        for account in &mine {
            account.update(|_| ()).unwrap();
        }
        if *end == "-STOP" {
            mover.signal("-CONT");
            assert!(mover.rest().any(|line| line == "is given up"), "{fabric}");
        }
        for _ in 0..5 {
            transfer(node, &mine, began).unwrap();
            audit(node, &mine, began).unwrap();
        }
    }
}

#[test]
fn coordinators_of_both_kinds_that_are_killed_leave_no_half_over_shared_memory() {
    ended_coordinators("shm", &["-KILL", "-KILL", "-KILL"]);
}

#[test]
fn coordinators_of_both_kinds_that_are_killed_leave_no_half_over_udp() {
    ended_coordinators("udp", &["-KILL", "-KILL", "-KILL"]);
}

#[test]
fn coordinators_that_are_stopped_for_longer_than_their_lease_leave_no_half() {
    for fabric in ["shm", "udp"] {
        ended_coordinators(fabric, &["-STOP", "-KILL"]);
    }
}

/// Who serves the accounts with copies is killed while money moves between these and others, and
/// is counted; then a home with one of the accounts is.
fn killed_members(fabric: &str) {
    let (text, _folder) = patient_config(fabric, 4);
    // One after the other: the first one has the table of regions.
    let mut lines = Vec::new();
    let members = [(0, ""), (1, "account"), (2, "")].map(|(node, argument)| {
        let mut member = Member::start("mixed::member", &text, node, argument);
        lines.push(member.line());
        member
    });
    let rack = Rack::join(&Config::parse(&text).unwrap(), 3).unwrap();
    let node = &rack.node(3);
    let mut all = accounts(&rack, 2, &[3]);
    let lost = accounts_of(&lines[1])[0];
    all.push(lost);
    let counted: [Object<u64>; 2] = [
        bank(node, "counts", 64, 4).alloc(0).unwrap(),
        region(&rack, 3, "counts here").alloc(0).unwrap(),
    ];
    let (began, over, done) = (Instant::now(), AtomicBool::new(false), AtomicU64::new(0));
    let history: Vec<Deed<u64>> = std::thread::scope(|scope| {
        let (over, done, all, counted) = (&over, &done, &all, &counted);
        let _stop = Stop(over);
        let movers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(move || {
                    let (mine, mut moved) = (attached(node, all), Vec::new());
                    while !over.load(SeqCst) {
                        moved.push(transfer(node, &mine, began).unwrap());
                        // Each of these once in both.
                        let count = node.transaction(|t| {
                            counted.iter().try_for_each(|count| {
                                let next = t.read(count)? + 1;
                                t.write(count, next)
                            })
                        });
                        count.unwrap();
                        done.fetch_add(1, SeqCst);
                    }
                    moved
                })
            })
            .collect();
        let auditor = scope.spawn(move || {
            let (mine, mut seen) = (attached(node, all), Vec::new());
            while !over.load(SeqCst) {
                seen.push(audit(node, &mine, began).unwrap());
                let both = node.transaction(|t| Ok((t.read(&counted[0])?, t.read(&counted[1])?)));
                let (kept, plain) = both.unwrap();
                assert_eq!(kept, plain, "a half was seen");
            }
            seen
        });
        outlived((fabric, &members[0]), (over, done), (movers, auditor))
    });
    let expected = Ok(done.load(SeqCst));
    assert_eq!(
        counted.each_ref().map(|count| count.read()),
        [expected; 2],
        "{fabric}"
    );
    assert_eq!(serial::check(&history), Ok(()), "{fabric}");
}

#[test]
fn money_of_both_kinds_outlives_a_killed_keeper_over_shared_memory() {
    killed_members("shm");
}

#[test]
fn money_of_both_kinds_outlives_a_killed_keeper_over_udp() {
    killed_members("udp");
}

/// A home without copies is killed: its account dies with it, and transactions that write it are
/// told so. What has copies goes on, and nothing of such a transaction is there.
#[test]
fn a_home_that_is_killed_takes_its_objects_and_no_others_with_it() {
    for fabric in ["shm", "udp"] {
        let (text, _folder) = patient_config(fabric, 4);
        let mut others = [0, 2].map(|node| Member::start("mixed::member", &text, node, ""));
        others
            .iter_mut()
            .for_each(|other| assert_eq!(other.line(), "is there"));
        let mut home = Member::start("mixed::member", &text, 1, "account");
        let lost = accounts_of(&home.line())[0];
        let rack = Rack::join(&Config::parse(&text).unwrap(), 3).unwrap();
        let node = &rack.node(3);
        let kept: Object<u64> = bank(node, "kept", 64, 4).alloc(0).unwrap();
        let lost: Object<u64> = node.attach_object(lost).unwrap();
        let both = || {
            node.transaction(|t| {
                let count = t.read(&kept)? + 1;
                t.write(&kept, count)?;
                t.write(&lost, count)
            })
        };
        let mut done = 0;
        for _ in 0..20 {
            both().unwrap();
            done += 1;
        }
        home.signal("-KILL");
        let end = Instant::now() + LONG;
        let error = loop {
            assert!(Instant::now() < end, "{fabric}: it is never lost");
            match both() {
                Ok(()) => done += 1,
                Err(error) => break error,
            }
        };
        let is_lost = matches!(
            error,
            TransactionError::Rack(RackError::NodeLost { node: 1 })
                | TransactionError::Access(AccessError::Rack(RackError::NodeLost { node: 1 }))
        );
        assert!(is_lost, "{fabric}: {error:?}");
        assert_eq!(
            (error.changed(), kept.read()),
            (Changed::No, Ok(done)),
            "{fabric}"
        );
        kept.write(&0).unwrap();
    }
}
